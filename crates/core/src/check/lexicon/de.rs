//! German.

use super::{Class, Lexicon};

pub(super) const LEXICON: Lexicon = Lexicon {
    phrases: &[
        (Class::Yes, YES),
        (Class::Grant, GRANT),
        (Class::Weak, WEAK),
        (Class::Detail, DETAIL),
        (Class::Neutral, NEUTRAL),
        (Class::And, "und|auch"),
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
    continuers: "mhm|hm|hmm|mm|mm hm|aha|ah ja|ähä|mmh|hmhm|hm hm|soso",
    polite: "bitte|bitte schön|danke|danke schön|vielen dank",
    trailing: "\
    und|oder|aber|weil|dass|der|die|das|den|dem|ein|eine|einen|einem|zu|für|mit|von|vom|auf|an|am|\
    im|in|um|bei|nach|äh|ähm|also|mein|meine|ich|wenn|dann|zum|zur|wegen|ob|wie|ist|sind|noch|hm",
    leave: "\
    soll ich|sollen wir|darf ich|dürfen wir|kann ich|können wir|möchten sie|wollen sie|möchtest du|\
    willst du|okay|in ordnung|einverstanden",
    negators: "nicht|kein|keine|keinen|keinem|keiner|nie|niemals",
    tags: "nicht wahr|oder nicht|nicht|stimmt s nicht",
    or: "oder",
};

const YES: &str = "\
    ja|jawohl|jap|jep|jo|joa nein|yes|yeah|ja genau|genau|ganz genau|genau so|genauso|exakt|korrekt|\
    richtig|stimmt|das stimmt|stimmt so|das stimmt so|stimmt genau|ist richtig|das ist richtig|\
    das ist korrekt|das ist so richtig|alles richtig|ist korrekt|alles korrekt|absolut|\
    auf jeden fall|unbedingt|selbstverständlich|natürlich|sicher|sicherlich|gewiss|ich bestätige|\
    bestätigt|ich bestätige das|das bestätige ich|bestätige ich|so ist es|so ist das|ganz richtig|\
    vollkommen richtig|völlig richtig|jawoll|ja sicher|einverstanden|bin einverstanden|\
    ich bin einverstanden|das passt|passt|passt so|das passt so|passt genau|ja passt|passt perfekt|\
    oui|si|definitiv|absolut richtig|das möchte ich|möchte ich|will ich|das will ich|\
    so soll es sein|sehr richtig|aber ja|aber sicher|aber natürlich|aber klar|aber gerne|aber gern|\
    na klar|ja klar|ja doch|das geht klar|geht klar";

const GRANT: &str = "\
    machen sie das|machen sie es|mach das|mach es|tun sie das|tu das|machen sie|bitte machen|\
    bitte machen sie das|das können sie machen|das kannst du machen|können sie machen|\
    kannst du machen|können sie so machen|nur zu|legen sie los|leg los|los|los geht s|nehmen wir|\
    machen wir|machen wir so|machen wir das|das machen wir|so machen wir das|so machen wir s|\
    ja bitte|bitte ja|gerne ja|ja gerne|ja gern|sehr gerne|sehr gern|tun sie s|mach s|machen sie s|\
    das dürfen sie|dürfen sie|sie dürfen|sie können|weiter|fahren sie fort|das wäre gut|\
    das wäre toll|das wäre super|das wäre prima|das wäre nett";

const WEAK: &str = "\
    okay|ok|o k|gut|na gut|also gut|in ordnung|geht in ordnung|alles klar|klar|gerne|gern|super|\
    prima|perfekt|toll|fein|schön|sehr gut|sehr schön|wunderbar|ausgezeichnet|hervorragend|bestens|\
    alles bestens|das ist gut|das ist okay|ist okay|ist gut|ist in ordnung|\
    das ist in ordnung|ist gut so|kein problem|gar kein problem|überhaupt kein problem|keine frage|\
    keine sorge|keine einwände|nichts dagegen|habe nichts dagegen|ich habe nichts dagegen|\
    kein thema|ohne zweifel|zweifellos|ohne frage|geht|das geht|das geht so|klingt gut|\
    das klingt gut|hört sich gut an|mit vergnügen";

const NEUTRAL: &str = "\
    bitte|danke|dankeschön|danke schön|danke sehr|vielen dank|herzlichen dank|besten dank|\
    bitteschön|bitte schön|äh|ähm|öh|hm|also|na|oh|ach|ich|sie|es|das|den|dem|der|die|des|ein|eine|\
    einen|einem|einer|ist|sind|so|am|um|im|in|an|auf|für|mit|zu|zum|zur|von|vom|und zwar|nach|mir|\
    mich|uns|wir|mein|meine|meinen|bin|habe|haben|wäre|wird|werden|dann|da|ja|sehr|herr|frau|uhr|\
    name|namen|den namen|beide|beides|alles|alle|dafür|damit|genau|bitte sehr|mal|machen|recht|gern|\
    euch|dir|du|ihnen|ihn|ihm|ihr|s|am ende|zum schluss|ihre hilfe|für die hilfe|für ihre hilfe|endet auf|mit der endung|\
    ich weiß|richtig|ganz|\
    punkt|at|unterstrich";

const DETAIL: &str = "\
    e mail|email|mail|adresse|nummer|telefonnummer|name|datum|zeit|uhrzeit|tag|karte|konto|betrag|\
    geld|bestellung|buchung|reservierung|termin|tisch|nachricht|preis|summe|zahlung|überweisung|\
    rechnung|code|straße";

const NEGATION: &str = "\
    nein|nee|ne|nö|nicht|nichts|nie|niemals|kein|keine|keinen|keinem|keiner|keines|keins|\
    keinesfalls|falsch|verkehrt|stopp|stop|halt nein|doch|bloß nicht|auf keinen fall|\
    vergessen sie es|vergiss es|vergessen sie das|lassen sie das|lass das|lassen wir das|\
    lassen sie es|lass es|lassen|abbrechen|abbruch|ablehnen|niemand|weder|ohne|weg damit|no|nope|\
    stimmt nicht|ach nein|von wegen|stornieren sie das|ungültig|quatsch|unsinn|behalten";

const HOLD: &str = "\
    moment|einen moment|moment mal|momentchen|warte|warten|warten sie|wart|sekunde|eine sekunde|\
    eine minute|minute|halt|stopp|augenblick|einen augenblick|langsam|kurz|gleich|sofort nicht|\
    noch nicht|bleiben sie dran|lassen sie mich|lass mich|ich überlege|überlegen|überleg|nachdenken|\
    ich muss|mal sehen|mal schauen|schauen wir mal|ich schaue|nachsehen|nachschauen|später";

const QUESTION: &str = "\
    wer|was|wann|wo|wohin|woher|warum|wieso|weshalb|wie|wem|wen|wessen|welche|welcher|welches|\
    welchen|welchem|wieviel|wie viel|wie bitte|bitte was|bitte wie|ist das|ist es|ist der|ist die|\
    sind sie|sind das|haben sie|hast du|haben wir|können sie|kannst du|könnten sie|kann ich|\
    können wir|könnten wir|darf ich|dürfen wir|muss ich|soll ich|sollen wir|gibt es|gibt s|\
    werden sie|wird das|würden sie|möchten sie|wollen sie|wissen sie|bin ich|habe ich|\
    entschuldigung|frage|eine frage|nochmal|noch mal|noch einmal|wiederholen|hä|oder";

const CONDITION: &str = "\
    wenn|falls|sofern|solange|vorausgesetzt|unter der bedingung|es sei denn|außer|sobald|nur wenn|\
    bevor|nachdem|je nachdem|erst wenn|im fall|ob|bis|ansonsten|sonst|angenommen|kommt drauf an|\
    kommt darauf an";

const CORRECTION: &str = "\
    aber|sondern|lieber|doch lieber|besser|stattdessen|statt|anstatt|anders|andere|anderen|anderer|\
    anderes|eigentlich|ändern|ändere|ändern sie|nur|jedoch|allerdings|fast|beinahe|nicht ganz|\
    noch ein|noch eine|noch einen|dazu|zusätzlich|außerdem|ich meine|ich meinte|korrektur|obwohl|\
    mehr|weniger|früher|halt|vielmehr|beziehungsweise|außer dass|genauer|tauschen|ersetzen|sollte|\
    eher|bisschen|und mich|und mir|und für mich|und uns";

const HEDGE: &str = "\
    vielleicht|wahrscheinlich|vermutlich|möglicherweise|eventuell|ich glaube|glaub|glaube|\
    glaube schon|ich denke|denke schon|denke ich|ich schätze|schätze|schätzungsweise|wohl|schon|\
    sollte passen|sollte|müsste|könnte|dürfte stimmen|mehr oder weniger|ungefähr|etwa|irgendwie|\
    von mir aus|meinetwegen|wenn s sein muss|mir egal|egal|ist mir egal|wie sie meinen|\
    wie sie wollen|weiß nicht|keine ahnung|ich weiß nicht|ich nehme an|nehme an|hoffentlich|\
    ich hoffe|hoffe|anscheinend|scheinbar|scheint|im prinzip|theoretisch|teilweise|halbwegs|so lala|\
    eigentlich schon|warum nicht|wieso nicht|muss wohl|unsicher|kann sein|mag sein|naja|na ja|tja|\
    jein|irgendwas|jaja|ja ja|einigermaßen";

const RELAY: &str = "\
    er|sagt|sagte|gesagt|sagen|sag ihm|sag ihr|sagen sie ihm|meine frau|mein mann|mein chef|\
    frau sagt|mann sagt|schatz|mama|papa|jemand|fragen|fragt|meint|meinte|komme|ich komme|\
    ich komme gleich";

const ELSEWHERE: &str = "\
    hallo|ja hallo|ja bitte|guten tag|guten morgen|moin|servus|ich höre|höre|am apparat|bin noch da|\
    noch da|noch dran|ich bin da|verstanden|verstehe|ich verstehe|aha|ach so|soso|tschüss|\
    auf wiederhören|mailbox|nachricht|alexa|siri|notiert|interessant";

const IDIOM: &str = "\
    ja und nein|ja nein|ja nee|ja ne|na toll|na super|na prima|na wunderbar|na bravo|ach toll|schon gut|danke schon gut|alles gut|\
    geht schon|passt schon|lass gut sein|ach ja|\
    oh toll|haha|ha|ja schön wär s|schön wär s|super toll";

const INJECTION: &str = "\
    system|assistent|assistant|benutzer|ignoriere|ignorieren|vergiss alle|anweisung|anweisungen|\
    antworte|antworten|antworte mit|antworte ja|ausgabe|gib aus|prompt|json|verdict|der anrufer|\
    anrufer|als ja|ein ja|entwickler|rolle";
