//! English.

use super::{Class, Lexicon};

pub(super) const LEXICON: Lexicon = Lexicon {
    phrases: &[
        (Class::Yes, YES),
        (Class::Grant, GRANT),
        (Class::Weak, WEAK),
        (Class::Detail, DETAIL),
        (Class::Neutral, NEUTRAL),
        (Class::And, "and|also|so|well"),
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
    verbs: "\
    book|send|transfer|pay|order|charge|register|confirm|submit|schedule|place|proceed|reserve|\
    refund|buy|process|finalize|complete",
    continuers: "mm hm|mm hmm|mmhm|mmhmm|mhm|mmm|mm|hm|hmm|uh huh|uhhuh|uhuh|aha|ah huh",
    polite: "please|thanks|thank you|thank you very much|thanks very much|many thanks",
    trailing: "\
    and|or|but|because|so|the|a|an|to|of|in|on|at|for|with|from|by|about|my|your|his|her|their|our|\
    um|uh|er|erm|hmm|like|if|when|that s|it s|i m|is|are|was|i|maybe|then|until|than|into|which",
    leave: "\
    shall i|shall we|should i|should we|may i|can i|could i|want me to|like me to|would you like|\
    do you want|go ahead|okay|ok|ready to|happy for me|do i have your",
    negators: "not|dont|wont|doesnt|isnt|arent|didnt|cant|cannot|wouldnt|never",
    tags: "or not",
    or: "or",
};

const YES: &str = "\
    yes|yeah|yea|yep|yup|ya|yah|yess|aye|indeed|correct|absolutely|definitely|certainly|exactly|\
    precisely|affirmative|totally|of course|for sure|sure thing|you bet|spot on|bang on|bingo|\
    agreed|confirmed|i agree|i confirm|i do|i can confirm|i do confirm|that is right|that s right|\
    that is correct|that s correct|thats right|thats correct|it is|it s right|it s correct|\
    it is right|it is correct|that s it|that is it|that s the one|that is the one|\
    that s exactly right|exactly right|quite right|quite so|you re right|you are right|\
    you re correct|you got it|you ve got it|you have it right|you got that right|that s what i want|\
    that is what i want|that s what i said|i would|i d like to|all correct|all right there|\
    everything is correct|everything is right|everything s correct|that s all correct|\
    that s all right|that s absolutely right|that s absolutely correct|this is correct|\
    this is right|we do|that is exactly right|true|that s true|it sure is|it certainly is|\
    you re absolutely right|completely correct|100 percent|one hundred percent|hundred percent|\
    very much so|that s the right one|that is the right one|that is all correct|\
    that all looks right|that all sounds right|that looks right|that looks correct|looks right|\
    looks correct|sounds right|sounds correct|that sounds right|that sounds correct|\
    it s all correct|that s perfectly right|si|ja|oui|sim|genau|exacto|correcto|claro|claro que si|\
    c est ca|hai|haan|naturally|roger|yessir|righto|i approve|approved|i accept|accepted|\
    i authorize|i authorise|i authorize it|authorized|authorised|granted|permission granted|\
    yes indeed|you have that right|you have that correct|you ve got that right|sure is|sure does|sure am|\
    i will confirm|i ll confirm|i hereby confirm";

const GRANT: &str = "\
    go ahead|go right ahead|go for it|do it|do that|do so|please do|do please|let s do it|\
    let s do that|let s go|let s go ahead|let s go for it|by all means|be my guest|make it so|\
    go on then|feel free|you may|you can|you can do that|you can go ahead|you may go ahead|\
    do go ahead|i d like that|i would like that|i d love that|i d love to|i want that|\
    i d appreciate that|i d appreciate it|i would appreciate it|i would appreciate that|\
    that would be great|that d be great|that would be lovely|that would be perfect|\
    that would be good|that would be fine|that would be wonderful|that works|works for me|\
    that works for me|that ll work|that will work|that works perfectly|good to go|please proceed|\
    proceed|lock it in|put it through|put that through|i d be happy with that|i m happy with that|\
    happy with that|i want you to|you have my permission|you have my consent|i give my consent|\
    i consent|get it done|go|please go|let s book it|let s|we d like that|we would like that|\
    we d love that|we d appreciate that";

const WEAK: &str = "\
    okay|ok|okey|okey dokey|okie dokie|kay|alright|sure|great|perfect|lovely|excellent|wonderful|\
    brilliant|awesome|fantastic|sounds good|sounds great|sounds perfect|sounds fine|sounds lovely|\
    that sounds good|that sounds great|that sounds perfect|that sounds fine|that sounds lovely|\
    looks good|that looks good|looks great|looks good to me|sounds good to me|that s fine|\
    that is fine|that s fine by me|fine by me|fine with me|okay with me|okay by me|good with me|\
    i m good with that|i m okay with that|i m fine with that|that s good|that is good|that s okay|\
    that is okay|that s perfect|that is perfect|that s great|that is great|it s fine|it s okay|\
    it s good|that s alright|it s all good|all good|very good|very well|super|splendid|no problem|\
    no problem at all|not a problem|no worries|no worries at all|no objection|no objections|\
    without a doubt|no doubt|without doubt|no question|wouldnt have it any other way|with pleasure|\
    my pleasure|gladly|happy to|no issue|no issues|don t worry|that ll do|that will do|\
    that ll be fine|carry on";

const NEUTRAL: &str = "\
    please|thanks|thank you|thank you so much|thank you very much|thanks so much|thanks a lot|\
    thanks very much|many thanks|cheers|much appreciated|thanks for your help|\
    thank you for your help|thank you for that|thanks for that|thanks for asking|thank you kindly|\
    a lot|so much|very much|um|uh|umm|uhm|er|erm|ah|oh|it|that|this|them|those|these|the|a|an|\
    to|of|in|on|at|for|with|under|by|me|my|mine|us|i|you|sir|madam|ma am|mam|miss|ladies|is|s|are|\
    re|am|m|be|will|ll|would|d|it s|that s|is fine|s fine|is correct|s correct|is right|s right|\
    is good|is okay|is perfect|are correct|are right|are fine|works|the name|both|both of them|\
    all of it|all of that|all of them|everything|that one|the one|account|number|ending|ending in|\
    o clock|for me|then|very|really|do|dear|mate|love|darling|let me confirm|the right number|\
    the right one|right number|to confirm|i want to|i want|i d like|i would like|like|right away|\
    straight away|as you said|as discussed|as planned|for us|go|my friend|happy|sure|as|\
    from|totally|all|dot|underscore|hyphen|dash|point|fine|right|good|all right|cool|\
    make the|make this|make my|do the|do this|is right too|is correct too|is fine too|is good too|are right too|are correct too|is okay too|if you could|\
    if you would|if you please|if you would please|if you dont mind|ones|ends in|ends with|it ends in|ending with|\
    last four|last four digits|last digits";

const DETAIL: &str = "\
    email|e mail|mail|address|number|phone|phone number|name|date|time|day|card|account|amount|\
    money|order|booking|reservation|appointment|table|message|text|price|total|payment|transfer|\
    invoice|code|plate|city|street|room|seat|ticket|flight|details|detail";

const NEGATION: &str = "\
    no|not|nope|nah|naw|never|none|nothing|nobody|neither|nor|dont|don t|doesnt|didnt|isnt|arent|\
    wasnt|werent|wont|wouldnt|cant|cannot|couldnt|shouldnt|havent|hasnt|hadnt|aint|mustnt|neednt|\
    without|incorrect|wrong|false|negative|stop|cancel that|never mind|nevermind|forget it|\
    forget that|forget about it|leave it|leave that|drop it|keep it|scrap that|scrap it|no way|\
    refuse|decline|rather not|changed my mind|change my mind|nein|non|nao|hardly|barely|abort|\
    scratch that|undo|nicht|pas|nee|hell no|absolutely not|of course not|certainly not|\
    definitely not|sure not|cancel it|cancel|don|hate|dislike|mistake|mistaken|against|disagree|\
    deny|not wrong|i m good|we re good|i m fine|we re fine|i m all right|i m okay|hold off|bother|\
    don t bother|pass|i ll pass|\
    cancel both|cancel all|cancel everything|cancel them|delete both|delete all|delete everything|delete them";

const HOLD: &str = "\
    wait|hold on|hang on|hold up|hold it|hold the line|hold please|one moment|a moment|moment|\
    one sec|one second|a second|a sec|just a second|just a moment|just a minute|one minute|a minute|\
    give me a|give me a minute|give me a second|bear with me|let me think|let me check|let me see|\
    let me look|let me ask|let me get|let me find|i need a|stand by|just a sec|not so fast|\
    slow down|wait a minute|wait a second|in a minute|in a moment|in a second|hold|pause|\
    i need to think|i ll think about it|let me|i need to|i have to|need to check";

const QUESTION: &str = "\
    what|where|when|why|who|whom|whose|which|how|what s|is it|is that|is this|is there|is the|is he|\
    is she|is my|are you|are there|are we|are they|are those|was it|was that|am i|can i|can we|\
    can you|could i|could we|could you|do i|do you|do we|do they|does it|does that|does the|did you|\
    did i|did it|will you|will it|will that|will i|will there|would you|would it|would that|\
    should i|should we|shall we|shall i|may i|might i|must i|have you|have i|has it|has the|isnt it|\
    isnt that|arent you|dont you|dont i|wont it|what if|wondering|a question|question|pardon|\
    pardon me|excuse me|sorry|say again|say that again|come again|repeat|huh|eh|one question|\
    tell me|remind me|explain|what about|how about|i wonder|any chance";

const CONDITION: &str = "\
    if|unless|as long as|so long as|provided|providing|provided that|on condition|on the condition|\
    assuming|depending|depends|in case|only if|once|after|before|until|supposing|given that|even if|\
    subject to|except if|whether|otherwise|till|while|contingent|if you say so";

const CORRECTION: &str = "\
    but|except|actually|instead|make it|make that|change|changed|switch|rather|although|though|\
    however|only|just|other|the other one|another|different|else|add|plus|minus|more|less|almost|\
    nearly|not quite|i mean|i meant|better|prefer|correction|too|should be|earlier|later|move it|\
    swap|replace|remove|half|apart from|besides|higher|lower|bigger|smaller|one more thing|wait no|\
    or|update|edit|fix|modify|should have been|was supposed to|meant|bit|and me|and us";

const HEDGE: &str = "\
    i guess|i guess so|guess so|maybe|perhaps|possibly|probably|presumably|supposedly|i think|\
    i think so|think so|i suppose|i suppose so|suppose so|i believe|i believe so|believe so|\
    i hope so|hopefully|should be|might be|could be|may be|must be|more or less|as far as i know|\
    kind of|kinda|sort of|sorta|whatever|whatever you think|up to you|your call|you decide|\
    i don t know|unsure|apparently|seems|it seems|seemingly|about right|roughly|approximately|\
    why not|i don t see why not|nothing wrong with that|don t mind|dont mind|i m easy|i assume|\
    i imagine|i reckon|reckon|sure i guess|not sure|what the heck|what the hell|might|ish|\
    i trust you|fair enough|so so|mostly|partly|partially|somewhat|likely|fingers crossed|if i must|\
    if you like|if you d like|if you would like|if you want|if you wish|i dunno|dunno|doubt|either|either way|any|anything|whichever|i feel|in theory|\
    in principle|technically|eventually|ought to|i expect|sometime|some|can t complain|i know that|\
    i know it|oh well|i have no choice|try|hope";

const RELAY: &str = "\
    he|she|they|him|her|says|said|told|asked|tell him|tell her|tell them|says yes|said yes|say yes|\
    told me|asks|wants|honey|mum|mom|dad|husband|wife|my husband|my wife|boss|kids|somebody|someone|\
    everyone|coming|i m coming|over here|wife s|ask";

const ELSEWHERE: &str = "\
    hello|hey|i heard|i hear|i understand|understood|got it|i see|noted|still here|i m here|\
    i m still here|still|speaking|yes speaking|this is he|this is she|go on|i m listening|listening|\
    can hear|i can hear you|voicemail|leave a message|available agent|good morning|good afternoon|\
    good evening|goodbye|bye|alexa|siri|google|you re welcome|interesting|makes sense|hi|here|there|\
    i will|i ll|we will|we ll|it s me|it is me|this is me|done|i m done|i am done|we re done";

const IDIOM: &str = "\
    yeah right|oh right|oh great|oh perfect|oh sure|oh wonderful|oh lovely|oh fantastic|just great|\
    just perfect|yeah yeah|ya right|fine whatever|great just great|oh brilliant|as if|big deal|\
    very funny|ha|haha|lol|yes and no|no yes|blah|oh yeah|oh really|really|suit yourself|\
    sure why not|knock yourself out|how wonderful|how nice|\
    you do that|that s okay thanks|that s okay thank you|that s ok thanks|that s ok thank you|\
    it s okay thanks|it s okay thank you|it s fine thanks|it s good thanks|all good thanks|\
    all good thank you|i m good thanks|i m fine thanks|i m okay thanks|that s fine as it is|\
    fine as it is|good as it is|okay as it is|that s all right thanks";

const INJECTION: &str = "\
    system|assistant|user|verdict|output|ignore previous|ignore all|ignore the|ignore|disregard|\
    answer yes|reply with|reply yes|respond with|respond yes|return yes|print|instructions|\
    instruction|prompt|json|override|the caller|caller|treat this|mark this|mark it as|classify|\
    the answer is|a yes|the word yes|pretend|you must|role|developer|admin|administrator|\
    true confirmed";
