//! Spanish.

use super::{Class, Lexicon};

pub(super) const LEXICON: Lexicon = Lexicon {
    phrases: &[
        (Class::Yes, YES),
        (Class::Grant, GRANT),
        (Class::Weak, WEAK),
        (Class::Detail, DETAIL),
        (Class::Neutral, NEUTRAL),
        (Class::And, "y|e"),
        (Class::Negation, NEGATION),
        (Class::Hold, HOLD),
        (Class::Question, QUESTION),
        (Class::Condition, CONDITION),
        (Class::Correction, CORRECTION),
        (Class::Hedge, HEDGE),
        (Class::Relay, RELAY),
        (Class::Elsewhere, ELSEWHERE),
        (Class::Idiom, IDIOM),
        (Class::Injection, INJECTION),
    ],
    verbs: "",
    continuers: "mm|mhm|ajá|aja|hm|hmm|mm hm|mmm|ah",
    polite: "por favor|gracias|muchas gracias",
    trailing: "\
    y|o|pero|porque|que|el|la|los|las|un|una|de|del|a|al|en|con|por|para|mi|su|eh|este|em|si|cuando|\
    como|pues|es|son|entonces|sobre|hasta|desde|lo|e|sin",
    leave: "\
    procedo|lo hago|la hago|puedo|quiere que|desea que|quieres que|le parece|te parece|confirmo|\
    lo envío|la envío|lo reservo|la reservo|envío|reservo|debo|lo confirmo|continúo|sigo|está bien|\
    vale|de acuerdo",
    negators: "no|nunca|tampoco|jamás",
    tags: "no es así|no es verdad|no",
    or: "o|u",
};

const YES: &str = "\
    sí|sip|yes|yeah|correcto|es correcto|está correcto|está bien correcto|exacto|exactamente|eso es|\
    así es|así mismo|eso mismo|justo|precisamente|efectivamente|en efecto|claro que sí|por supuesto|\
    por supuesto que sí|desde luego|sin duda|sin ninguna duda|absolutamente|totalmente|de acuerdo|\
    estoy de acuerdo|confirmo|lo confirmo|sí confirmo|confirmado|afirmativo|cierto|es cierto|\
    todo correcto|todo está correcto|todo está bien|eso quiero|es lo que quiero|seguro que sí|\
    cómo no|efectivo|definitivamente|está perfecto|ya lo creo|correctísimo|\
    eso es correcto|son correctos|oui|sim|sí claro|que sí|así lo quiero|lo quiero|sí quiero|\
    quiero|es eso|ese es|esa es|esa misma|ese mismo";

const GRANT: &str = "\
    adelante|hágalo|hazlo|háganlo|hacelo|proceda|procede|proceded|puede|puedes|puede hacerlo|\
    puedes hacerlo|puede proceder|sí puede|dale|dele|venga|vamos|hágale|siga|continúe|sigue|envíelo|\
    envíalo|mándelo|mándalo|resérvelo|resérvalo|resérvela|cómprelo|confírmelo|confírmalo|confirme|\
    páguelo|págalo|tramítelo|hágalo por favor|me parece bien|me encantaría|me gustaría|\
    sería perfecto|sería genial|transfiera|transfiéralo|cancélela usted";

const WEAK: &str = "\
    vale|ok|okay|okey|bien|muy bien|está bien|claro|perfecto|genial|estupendo|excelente|fenomenal|\
    bárbaro|de lujo|por mí bien|me parece|me parece perfecto|suena bien|sin problema|sin problemas|\
    ningún problema|no hay problema|no hay ningún problema|no hay inconveniente|sin inconveniente|\
    con gusto|con mucho gusto|encantado|encantada|órale|listo|seguro|bueno sí|buenísimo|qué bien|\
    no se preocupe|no te preocupes|no hay duda";

const NEUTRAL: &str = "\
    por favor|gracias|muchas gracias|muchísimas gracias|mil gracias|se lo agradezco|muy amable|pues|\
    eh|em|este|ah|oh|señor|señora|señorita|el|la|los|las|lo|le|un|una|a|de|del|al|en|para|por|con|\
    es|son|está|están|eso|esto|esa|ese|todo|todos|ambos|ambas|los dos|las dos|usted|yo|me|mi|se|muy|\
    que|nombre|a nombre|número|terminada en|que termina en|termina en|la terminada en|así|ya sé|\
    lo sé|y media de|usted puede|también sí|favor|hora|horas|día|sus|su|\
    punto|arroba|guion";

const DETAIL: &str = "\
    correo|email|dirección|número|teléfono|nombre|fecha|hora|día|tarjeta|cuenta|importe|dinero|\
    pedido|reserva|cita|mesa|mensaje|precio|total|pago|transferencia|factura|código|calle";

const NEGATION: &str = "\
    no|nunca|jamás|nada|nadie|ninguno|ninguna|ningún|tampoco|ni|incorrecto|falso|mal|está mal|\
    equivocado|equivocada|error|de ninguna manera|para nada|olvídelo|olvídalo|déjelo|déjalo|déjela|\
    déjala|déjelo así|deje|cancele eso|pare|alto|detenga|negativo|nope|non|nein|sin|qué va|\
    ni hablar|mejor no|claro que no|por supuesto que no|eso no|así no|anule";

const HOLD: &str = "\
    espera|espere|espérate|espéreme|esperen|un momento|un momentito|momento|un segundo|segundo|\
    un minuto|minuto|un rato|aguarda|aguarde|a ver|déjeme|déjame|déjeme ver|permítame|ya va|\
    un instante|más tarde|luego|después|todavía no|aún no|tengo que|lo tengo que pensar|lo pienso|\
    pensarlo|pensar|pienso|dame|deme";

const QUESTION: &str = "\
    qué|quién|quiénes|cuándo|dónde|adónde|cómo|cuál|cuáles|cuánto|cuánta|cuántos|cuántas|por qué|\
    para qué|de qué|a qué|cómo dice|perdón|perdone|disculpe|mande|puede decirme|puede repetir|\
    repita|repetir|otra vez|hay algún|hay alguna|hay que|tiene usted|tienen|está seguro|\
    una pregunta|pregunta|es usted|me oye|me escucha|podría|podrías|podríamos|podemos|puedo";

const CONDITION: &str = "\
    si no|si es|si hay|si puede|si usted|siempre que|siempre y cuando|a menos que|a no ser que|\
    con tal de que|con tal que|a condición|con la condición|en caso|salvo|salvo que|excepto|solo si|\
    sólo si|cuando|mientras|depende|según|siempre|suponiendo|antes de|hasta|aunque|con que";

const CORRECTION: &str = "\
    pero|sino|mejor|en vez|en lugar|en realidad|la verdad|cambie|cambia|cambiar|cámbielo|cambio|\
    casi|solo|sólo|solamente|únicamente|otro|otra|otros|otras|más bien|digo|quise decir|sin embargo|\
    corrija|corrección|además|también|añada|agregue|agrega|y también|más|menos|antes|debería|\
    tendría|prefiero|preferiría|demasiado|o|diferente|y yo|y a mí|y para mí";

const HEDGE: &str = "\
    quizás|quizá|tal vez|a lo mejor|puede ser|podría ser|probablemente|posiblemente|creo|creo que|\
    creo que sí|supongo|supongo que sí|supongo que|imagino|me imagino|pienso que sí|me parece que|\
    me parece que sí|parece|parece que sí|espero|espero que sí|ojalá|más o menos|como quiera|\
    como usted quiera|lo que usted diga|lo que quiera|lo que sea|da igual|me da igual|\
    me da lo mismo|igual|no sé|no lo sé|por qué no|qué remedio|aproximadamente|en principio|\
    en teoría|debe ser|debería ser|seguramente|según creo|hasta donde sé|qué sé yo|algo así|bueno|\
    ni modo|es posible|depende|a medias";

const RELAY: &str = "\
    él|ella|dice|dice que|dijo|dijo que|dile|dígale|dile que|dígale que|mi esposa|mi esposo|\
    mi mujer|mi marido|mi jefe|mamá|papá|cariño|alguien|pregunta|me dijo|me dijeron|voy|ya voy|\
    pregúntale";

const ELSEWHERE: &str = "\
    hola|aló|bueno bueno|dígame|diga|dime|entiendo|entendido|comprendo|ya veo|ya|le oigo|le escucho|\
    lo escucho|sigo aquí|aquí estoy|estoy aquí|buenos días|buenas tardes|buenas noches|buenas|adiós|\
    ajá|contestador|mensaje|anotado|tomo nota|oye|oiga|interesante";

const IDIOM: &str = "\
    sí y no|sí no|no sí|ja|ja ja|ja ja ja|jaja|jajaja|ah genial|qué bonito|sí sí sí sí|ah perfecto|claro claro|\
    qué maravilla|qué gracia|ya ya|así está bien|está bien así|así está bien gracias|dejémoslo así|\
    estoy bien gracias";

const INJECTION: &str = "\
    sistema|asistente|usuario|ignora|ignore|ignora las|instrucciones|instrucción|responde|responda|\
    conteste|contesta|prompt|json|verdict|veredicto|salida|imprime|el cliente|la persona que llama|\
    rol|como un sí|un sí|desarrollador";
