//! French.

use super::{Class, Lexicon};

pub(super) const LEXICON: Lexicon = Lexicon {
    phrases: &[
        (Class::Yes, YES),
        (Class::Grant, GRANT),
        (Class::Weak, WEAK),
        (Class::Detail, DETAIL),
        (Class::Neutral, NEUTRAL),
        (Class::And, "et"),
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
    continuers: "mm|mhm|hum|hm|hmm|mm hm|hum hum|mmm|ah",
    polite: "s il vous plaît|s il te plaît|merci|merci beaucoup|merci bien",
    trailing: "\
    et|ou|mais|parce que|parce|car|que|le|la|les|un|une|des|du|de|à|au|aux|en|dans|pour|avec|sur|\
    sans|mon|ma|mes|euh|heu|si|quand|donc|alors|c est|est|je|chez|par|qui|puis|l|d",
    leave: "\
    je valide|dois je|puis je|voulez vous|est ce que je|je peux|souhaitez vous|on y va|je le fais|\
    je confirme|je réserve|j envoie|je l envoie|je lance|je procède|d accord|ça vous va|\
    vous convient|je commande",
    negators: "ne|n|pas|jamais|aucun|aucune",
    tags: "n est ce pas|pas vrai|non",
    or: "ou",
};

const YES: &str = "\
    oui|ouais|ouaip|mouais oui|yes|yeah|exact|exactement|c est ça|c est bien ça|c est exact|\
    c est correct|c est juste|c est bien cela|c est cela|correct|tout à fait|absolument|\
    parfaitement|effectivement|en effet|précisément|certainement|bien entendu|évidemment|affirmatif|\
    je confirme|confirmé|je le confirme|je vous le confirme|je suis d accord|tout est correct|\
    tout est bon|tout est exact|c est tout bon|sans aucun doute|sans aucun doute possible|\
    sans hésiter|c est vrai|vous avez raison|ben oui|mais oui|bah oui|eh oui|oui oui|ah oui|\
    c est bien le bon|c est le bon|c est la bonne|je le veux|je veux bien|je le souhaite|\
    c est ce que je veux|totalement|voilà c est ça|c est bien cela même|sí|ja|sim|bien exact|\
    c est bien exact|c est bien correct|très exact";

const GRANT: &str = "\
    allez y|vas y|faites|faites le|faites la|fais le|faites donc|faites ça|faites cela|confirmez|\
    confirme le|validez|valide|envoyez|envoyez le|envoyez la|réservez|réservez le|réservez la|\
    vous pouvez|vous pouvez y aller|tu peux|vous pouvez le faire|procédez|continuez|poursuivez|\
    on y va|on fait ça|on fait comme ça|faisons ça|faisons comme ça|c est parti|je valide|je prends|\
    ça me va|ça me convient|cela me convient|ça me convient parfaitement|ce serait parfait|\
    ce serait bien|ce serait super|commandez|virez|volontiers oui|avec plaisir oui|bien sûr que oui|\
    bien volontiers";

const WEAK: &str = "\
    d accord|ok|okay|bien|très bien|c est bon|c est bien|c est parfait|parfait|super|génial|\
    nickel|impeccable|excellent|bien sûr|volontiers|avec plaisir|entendu|ça marche|ça roule|ça va|\
    voilà|pas de problème|pas de soucis|pas de souci|aucun problème|aucun souci|sans problème|\
    sans souci|y a pas de souci|il n y a pas de problème|il n y a pas de souci|pas d objection|\
    aucune objection|sans doute aucun|ça sonne bien|c est d accord|tant mieux|formidable|chouette|\
    ne vous inquiétez pas|je n y vois pas d inconvénient|aucun doute";

const NEUTRAL: &str = "\
    s il vous plaît|s il te plaît|s il vous plait|svp|merci|merci beaucoup|merci bien|\
    merci infiniment|je vous remercie|c est gentil|euh|heu|ah|oh|ben|bah|bon|eh bien|alors|donc|\
    monsieur|madame|mademoiselle|le|la|les|l|un|une|de|du|des|d|à|au|aux|en|pour|avec|sur|c|c est|\
    est|sont|ce|cela|ça|cette|cet|je|j|vous|moi|me|m|mon|ma|mes|nous|on|y|il|tout|tous|les deux|\
    toutes les deux|bien|heures|heure|h|nom|au nom|numéro|se terminant par|qui finit par|\
    finissant par|bonne|votre aide|je sais|qui|beaucoup|très|votre|vos|pouvez|le compte|ce compte|\
    vous le|\
    point|arobase|tiret";

const DETAIL: &str = "\
    email|mail|e mail|adresse|numéro|téléphone|nom|date|heure|jour|carte|compte|montant|argent|\
    commande|réservation|rendez vous|table|message|prix|total|paiement|virement|facture|code|rue";

const NEGATION: &str = "\
    non|nan|pas|ne|n|jamais|rien|aucun|aucune|personne|nullement|ni|faux|incorrect|erreur|\
    c est faux|arrêtez|arrête|stop|laissez tomber|laisse tomber|laissez|oubliez|oublie|annulez ça|\
    surtout pas|pas question|hors de question|mauvais|mauvaise|inexact|négatif|sans|no|nein|si|\
    pas du tout|plus maintenant|refuse|gardez|bien sûr que non";

const HOLD: &str = "\
    attendez|attends|attendre|un instant|un moment|une seconde|une minute|minute|instant|seconde|\
    deux secondes|deux minutes|patientez|patience|ne quittez pas|laissez moi|laisse moi|\
    je réfléchis|réfléchir|réfléchisse|réfléchi|il faut que|je dois|voyons|voyons voir|pas encore|\
    plus tard|doucement|je vérifie|vérifier|tout à l heure";

const QUESTION: &str = "\
    qui est|quoi|quand|où|comment|pourquoi|combien|quel|quelle|quels|quelles|lequel|laquelle|est ce|\
    est ce que|qu est ce|pardon|hein|excusez moi|désolé|désolée|vous dites|plaît il|c est combien|\
    c est quoi|c est qui|c est où|c est à quelle|pouvez vous|peux tu|pourriez vous|pourrait on|\
    peut on|puis je|avez vous|as tu|êtes vous|es tu|y a t il|y a il|y aura t il|dois je|\
    une question|question|répétez|répéter|vous pouvez répéter|redites|vous m entendez|tu m entends|\
    faut il|allez vous|voulez vous|serait il";

const CONDITION: &str = "\
    si c|si vous|s il|s ils|s il y|si on|si tu|si je|si le|si la|si ça|à condition|à condition que|\
    sous réserve|sauf|sauf si|sauf que|tant que|du moment|du moment que|pourvu|pourvu que|au cas|\
    au cas où|en cas|à moins|à moins que|seulement si|uniquement si|quand|lorsque|dès que|ça dépend|\
    cela dépend|selon|avant|jusqu|après";

const CORRECTION: &str = "\
    mais|plutôt|en fait|au lieu|à la place|changez|change|changer|modifiez|modifier|presque|\
    seulement|uniquement|autre|autres|cependant|toutefois|par contre|en revanche|je veux dire|\
    je voulais dire|plus|moins|mieux|pas tout à fait|ajoutez|ajoute|aussi|également|en plus|\
    rectification|correction|préfère|préférerais|sinon|ou|ou plutôt|que le|trop|sauf le|finalement|\
    en réalité|à part|encore un|encore une|et moi|et pour moi";

const HEDGE: &str = "\
    peut être|probablement|sans doute|sûrement|je pense|je pense que oui|je crois|je crois que oui|\
    j imagine|je suppose|je suppose que oui|j espère|normalement|en principe|en théorie|possible|\
    c est possible|possiblement|plus ou moins|à peu près|environ|on va dire|si vous voulez|\
    si tu veux|si vous le dites|comme vous voulez|comme tu veux|comme vous le sentez|peu importe|\
    ça m est égal|m est égal|bof|mouais|pourquoi pas|je ne sais pas|je sais pas|aucune idée|\
    il paraît|il semble|apparemment|on dirait|faut voir|à voir|admettons|tant pis|soit|ma foi|\
    devrait|ça devrait|disons|vaguement|en partie|qu importe|éventuellement";

const RELAY: &str = "\
    elle|dit|a dit|dites lui|dis lui|dit que|ma femme|mon mari|mon chef|mon patron|maman|papa|chéri|\
    chérie|quelqu un|demande|demander|m a dit|j arrive|il dit";

const ELSEWHERE: &str = "\
    allô|bonjour|bonsoir|salut|coucou|je vous écoute|je t écoute|j écoute|j entends|je vous entends|\
    je suis là|toujours là|je comprends|compris|je vois|j ai compris|noté|c est noté|au revoir|\
    répondeur|message|messagerie|hum|intéressant";

const IDIOM: &str = "\
    oui et non|oui non|ah bravo|ah super|bravo|ha|haha|ah parfait|ah génial|ben voyons|c est ça oui|\
    mais bien sûr|tu parles|ouais ouais|c est malin|ça va merci|c est bon ça va|c est bon merci|\
    ça ira|ça ira merci|ça va comme ça";

const INJECTION: &str = "\
    système|system|assistant|utilisateur|ignore|ignorez|instructions|instruction|réponds|répondez|\
    répondre|prompt|json|verdict|sortie|affiche|l appelant|rôle|comme un oui|un oui|développeur";
