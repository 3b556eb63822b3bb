//! Words that sentences of callers and agents begin with. They are no names, wherever they stand.
//!
//! Recognisers write a capital where a sentence begins, and hear sentences begin where none does; models write "Thank you"
//! into a field. A word is listed only where hardly anybody is called it: what is no name and is replaced makes a scenario
//! harder to read, what is a name and is kept tells of a person.

/// By language: English, German, Spanish, French, Portuguese, and Hindi and Japanese in Latin letters. Other scripts have
/// no capitals, so that nothing is taken for a name in them.
pub(super) const OPENERS: [&str; 7] = [
    "hello hi hey good morning afternoon evening night welcome thank thanks please sorry sure great \
     perfect fine right well now then so and but or if when what which who where why how can could would \
     should shall do does did is are was were have has had let let's we we'd we'll you your my our it \
     it's its there these those one two at on in for from to with about just also maybe perhaps actually \
     certainly absolutely of course alright bye goodbye take see let book call cancel change check \
     confirm give make move need send want wait yeah yep nope correct done next today tomorrow tonight \
     someone anyone everything nothing calling looking afraid happy glad interested going trying",
    "hallo guten guter gute tag morgen abend danke dank dankeschön vielen herzlichen bitte gern gerne genau \
     richtig gut schön super klar natürlich also dann und oder aber wenn was wer wie wo wann warum welche \
     welcher kann könnte können möchte würde soll darf ist sind war hat haben habe ich du er sie es wir \
     ihr mein meine ihre ihren ihnen ihrem der die das den dem ein eine einen einem auf um am im in für \
     von mit bis nach noch heute tschüss wiederhören entschuldigung verzeihung moment alles doch \
     vielleicht termin uhr",
    "hola buenos buenas días dias tardes noches gracias muchas por favor perdón perdona disculpe claro \
     vale bien bueno perfecto exacto sí si no y o pero qué que quién cuál cuándo dónde cómo cuánto puedo \
     puede podría quiero quisiera me te se le lo la los las el un una mi mis su sus es está son estoy soy \
     tengo hay para con de del en a al hoy mañana adiós hasta luego entonces también ahora reservo \
     reservar quiere confirmo confirma espere momento lunes martes miércoles jueves viernes sábado \
     domingo enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "bonjour bonsoir salut merci beaucoup bien s'il vous plaît pardon excusez désolé désolée oui non \
     d'accord parfait très alors donc et ou mais si que quoi qui quel quelle quand où comment pourquoi \
     combien puis-je pouvez-vous voulez-vous je j'ai j'aimerais tu il elle on nous ils mon ma mes votre \
     vos notre le la les un une des de du est c'est sont pour avec dans en à au aux sur aujourd'hui \
     demain revoir voilà bien-sûr certainement peut-être attendez moment lundi mardi mercredi jeudi \
     vendredi samedi dimanche janvier février mars avril juin juillet août septembre octobre novembre \
     décembre",
    "olá oi bom boa dia tarde noite obrigado obrigada muito por favor desculpe desculpa claro certo \
     perfeito sim não e ou mas se que quem qual quando onde como quanto posso pode poderia quero queria \
     gostaria eu você o a os as um uma meu minha seu sua é está são tenho há para com de do da em no na \
     hoje amanhã tchau até logo então também agora espere momento segunda terça quarta quinta sexta \
     sábado domingo janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro \
     dezembro",
    "namaste namaskar dhanyavaad dhanyavad shukriya haan ji nahin nahi kripya theek achha accha main mera \
     meri aap kya kab kahan kaise",
    "hai iie arigatou arigatō gozaimasu sumimasen onegaishimasu konnichiwa ohayou moshi moshi-moshi \
     watashi",
];
