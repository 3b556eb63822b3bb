//! Portuguese.

use super::{Class, Lexicon};

pub(super) const LEXICON: Lexicon = Lexicon {
    phrases: &[
        (Class::Yes, YES),
        (Class::Grant, GRANT),
        (Class::Weak, WEAK),
        (Class::Detail, DETAIL),
        (Class::Neutral, NEUTRAL),
        (Class::And, "e"),
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
    continuers: "mm|mhm|aham|uhum|hum|hm|hmm|mm hm|ahã|ah",
    polite: "por favor|faz favor|obrigado|obrigada|muito obrigado|muito obrigada",
    trailing: "\
    e|ou|mas|porque|que|o|a|os|as|um|uma|de|do|da|em|no|na|com|por|para|pra|meu|minha|é|hã|se|\
    quando|como|então|até|sobre|tipo|ao|eu|às|sem",
    leave: "\
    posso|podemos|devo|quer que|deseja|confirmo|prossigo|continuo|envio|gostaria|tudo bem|está bem|\
    pode ser|combinado|faço|reservo|ok",
    negators: "não|nunca|nem|jamais",
    tags: "não é|não é verdade|né|não",
    or: "ou",
};

const YES: &str = "\
    sim|yes|yeah|isso|isso mesmo|isso aí|é isso|é isso mesmo|é isso aí|é sim|exato|exatamente|\
    correto|está correto|está certo|tá certo|está certinho|tá correto|está sim|tá sim|\
    está tudo certo|tudo certo|tudo correto|certíssimo|certo correto|com certeza|claro que sim|\
    sem dúvida|absolutamente|totalmente|perfeitamente|justamente|precisamente|efetivamente|confirmo|\
    eu confirmo|confirmado|confirmadíssimo|afirmativo|concordo|de acordo|estou de acordo|é verdade|\
    verdade|sim senhor|sim senhora|sim claro|positivo|certeza|é esse|é essa|esse mesmo|essa mesma|\
    quero|quero sim|eu quero|quero que sim|está perfeito|está ótimo|assim mesmo|sí|oui|\
    sem dúvida nenhuma|certo sim|são esses|é correto|é esse mesmo|é essa mesma|claramente";

const GRANT: &str = "\
    pode|pode sim|pode ser feito|pode fazer|podes|pode confirmar|pode transferir|pode mandar|\
    pode enviar|pode ir|pode seguir|pode prosseguir|pode cancelar|pode reservar|pode marcar|\
    pode agendar|pode continuar|faça|faça isso|faz|faz isso|faz favor|prossiga|siga|segue|continue|\
    vá em frente|vai em frente|em frente|manda|mande|manda ver|manda bala|envie|envia|reserve|\
    reserva|confirme|confirma|marque|marca|agende|agenda|cancele sim|transfira|avance|avança|bora|vamos|vamos lá|vamos nessa|seria ótimo|\
    seria perfeito|eu gostaria|gostaria|gostaria sim|por mim pode";

const WEAK: &str = "\
    certo|ok|okay|claro|bom|bem|muito bem|está bem|tá bem|tá bom|está bom|perfeito|ótimo|beleza|\
    combinado|fechado|legal|maravilha|excelente|tudo bem|por mim tudo bem|sem problema|\
    sem problemas|nenhum problema|não tem problema|não há problema|com prazer|com muito gosto|\
    pois claro|está certo então|jóia|show|por mim|sem objeção|não se preocupe|sem dúvidas";

const NEUTRAL: &str = "\
    por favor|se faz favor|por gentileza|obrigado|obrigada|muito obrigado|muito obrigada|obrigadão|\
    brigado|brigada|valeu|agradeço|ah|oh|é|eh|hã|bem|então|senhor|senhora|moça|moço|o|a|os|as|um|\
    uma|de|do|da|dos|das|em|no|na|nos|nas|para|pra|por|com|está|tá|são|ser|isto|esse|essa|este|esta|\
    eu|me|meu|minha|você|tudo|todos|os dois|as duas|ambos|ambas|muito|dia|hora|horas|nome|em nome|\
    número|terminado em|que termina em|final|eu sei|sei|favor|e meia da|lhe|ao|à|às|\
    ponto|arroba|hífen";

const DETAIL: &str = "\
    email|e mail|endereço|número|telefone|nome|data|hora|dia|cartão|conta|valor|dinheiro|pedido|\
    reserva|consulta|mesa|mensagem|preço|total|pagamento|transferência|fatura|código|rua";

const NEGATION: &str = "\
    não|nunca|jamais|nada|ninguém|nenhum|nenhuma|nem|tampouco|incorreto|errado|errada|está errado|\
    falso|erro|de jeito nenhum|de maneira nenhuma|esquece|esqueça|deixa|deixe|deixa pra lá|\
    deixa estar|para|pare|parar|cancela isso|cancele isso|pois não|que nada|negativo|no|nope|sem|\
    nem pensar|claro que não|pára|mantenha";

const HOLD: &str = "\
    espera|espere|espera aí|peraí|pera|aguarde|aguarda|um momento|um momentinho|momento|momentinho|\
    um segundo|segundinho|um minuto|minutinho|um instante|instante|só um|só um momento|só um minuto|\
    só um instante|calma|deixa eu|deixe me|deixa eu ver|deixa eu pensar|deixa ver|vou ver|\
    vou pensar|pensar|tenho que|preciso|depois|mais tarde|ainda não|já já|agora não|devagar";

const QUESTION: &str = "\
    o que|que é|quê|quem|quando|onde|aonde|como|qual|quais|quanto|quanta|quantos|quantas|por que|\
    por quê|porquê|para quê|pra quê|desculpa|desculpe|perdão|como assim|repita|repete|pode repetir|\
    de novo|posso|podemos|poderia|você pode|tem algum|tem alguma|há algum|será que|é possível|\
    uma pergunta|pergunta|está me ouvindo|me ouve|você é|oi|hein|pode me|pode dizer";

const CONDITION: &str = "\
    se for|se não|se der|se tiver|se o|se a|se você|se eu|se houver|se é|se ele|se puder|se estiver|\
    se|caso|desde que|contanto|contanto que|a não ser|a menos|a menos que|salvo|exceto|só se|\
    somente se|quando|enquanto|depende|conforme|sob condição|com a condição|antes|até|embora|\
    na condição";

const CORRECTION: &str = "\
    mas|porém|só que|na verdade|em vez|ao invés|no lugar|melhor|muda|mude|mudar|troca|troque|trocar|\
    altera|altere|alterar|quase|só|somente|apenas|outro|outra|outros|outras|quer dizer|quis dizer|\
    aliás|entretanto|contudo|mais|menos|também|além|adicione|acrescenta|acrescente|correção|prefiro|\
    preferia|ou|diferente|deveria|todavia|bom mas|mais um|mais uma|demais|e eu|e para mim|e pra mim";

const HEDGE: &str = "\
    talvez|acho|acho que|acho que sim|creio|creio que|creio que sim|penso que sim|imagino|\
    imagino que sim|suponho|suponho que sim|provavelmente|possivelmente|pode ser|deve ser|quem sabe|\
    espero|espero que sim|tomara|mais ou menos|parece|parece que sim|pelo visto|em princípio|\
    em teoria|tanto faz|como quiser|como você quiser|você que sabe|você decide|se quiser|o que for|\
    sei lá|não sei|por que não|porque não|aproximadamente|digamos|que seja|fazer o quê|até onde sei|\
    vai ver|quiçá|de certa forma|em parte|sei não";

const RELAY: &str = "\
    ele|ela|disse|disse que|diz|diz que|fala pra|fala que|diga a ele|diga a ela|minha esposa|\
    minha mulher|meu marido|meu chefe|mãe|pai|amor|querida|alguém|pergunta|me disse|falou|mandou|\
    já vou|tô indo|avisa";

const ELSEWHERE: &str = "\
    alô|olá|bom dia|boa tarde|boa noite|pronto|diga|fala|entendi|entendo|compreendo|percebi|\
    estou ouvindo|te ouço|ouço|ainda estou|estou aqui|tô aqui|ah tá|tchau|recado|mensagem|\
    secretária eletrônica|anotado|aham|uhum|hum|interessante|sei sei";

const IDIOM: &str = "\
    sim e não|sim não|não sim|sei sei|rs|kkk|haha|ah ótimo|ah tá bom|ah legal|que maravilha|\
    que ótimo|que beleza|tá tá|ah perfeito|já|já já|está bem assim|está bom assim|tá bom assim|\
    deixa assim|estou bem obrigado|estou bem obrigada";

const INJECTION: &str = "\
    sistema|assistente|usuário|ignore|ignora|instruções|instrução|responda|responde|prompt|json|\
    verdict|veredito|saída|imprima|o cliente|quem liga|papel|como um sim|um sim|desenvolvedor";
