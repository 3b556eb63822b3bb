//! What somebody hears who is to take over a caller.

/// A sentence of each kind, in one language.
struct Phrases {
    language: &'static str,
    /// Before the number, which follows.
    from: &'static str,
    /// Who calls is not known.
    unknown: &'static str,
    /// Before a question that the caller has not answered.
    open: &'static str,
    /// How to take the call, and how not to.
    keys: &'static str,
}

const PHRASES: [Phrases; 7] = [
    Phrases {
        language: "en",
        from: "A caller for you, from",
        unknown: "A caller for you.",
        open: "Not answered yet:",
        keys: "To take the call, press 1. To refuse it, press 2.",
    },
    Phrases {
        language: "de",
        from: "Ein Anruf für Sie, von",
        unknown: "Ein Anruf für Sie.",
        open: "Noch nicht beantwortet:",
        keys: "Um den Anruf anzunehmen, drücken Sie die 1. Um ihn abzulehnen, die 2.",
    },
    Phrases {
        language: "es",
        from: "Una llamada para usted, de",
        unknown: "Una llamada para usted.",
        open: "Sin respuesta todavía:",
        keys: "Para aceptar la llamada, pulse 1. Para rechazarla, pulse 2.",
    },
    Phrases {
        language: "fr",
        from: "Un appel pour vous, du",
        unknown: "Un appel pour vous.",
        open: "Pas encore de réponse :",
        keys: "Pour prendre l'appel, appuyez sur 1. Pour le refuser, appuyez sur 2.",
    },
    Phrases {
        language: "pt",
        from: "Uma chamada para si, de",
        unknown: "Uma chamada para si.",
        open: "Ainda sem resposta:",
        keys: "Para atender, prima 1. Para recusar, prima 2.",
    },
    Phrases {
        language: "ja",
        from: "お電話です。発信元は",
        unknown: "お電話です。",
        open: "まだ回答のない質問：",
        keys: "お受けになる場合は1を、お断りになる場合は2を押してください。",
    },
    Phrases {
        language: "hi",
        from: "आपके लिए एक कॉल है, नंबर",
        unknown: "आपके लिए एक कॉल है।",
        open: "अभी तक उत्तर नहीं मिला:",
        keys: "कॉल लेने के लिए 1 दबाएँ। मना करने के लिए 2 दबाएँ।",
    },
];

/// Who is handed over, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Brief {
    /// The language of the agent, as a tag: `de-AT`.
    pub(super) language: String,
    /// The caller's number or name.
    pub(super) from: Option<String>,
    /// What they want, in the model's words.
    pub(super) about: Option<String>,
    /// The question that was open (VC-23).
    pub(super) dropped: Option<String>,
}

impl Brief {
    /// What is said to whoever is to take over. English where the language is none that we know.
    pub(super) fn text(&self) -> String {
        let language = self.language.split('-').next().unwrap_or_default();
        let known = PHRASES.iter().find(|phrases| phrases.language.eq_ignore_ascii_case(language));
        let phrases = known.unwrap_or(&PHRASES[0]);
        let mut parts = vec![match &self.from {
            Some(from) => format!("{} {}.", phrases.from, spoken(from)),
            None => phrases.unknown.to_owned(),
        }];
        parts.extend(self.about.clone());
        parts.extend(self.dropped.as_ref().map(|question| format!("{} {question}", phrases.open)));
        parts.push(phrases.keys.to_owned());
        parts.join(" ")
    }
}

/// A number is read digit by digit.
fn spoken(from: &str) -> String {
    let number = from.strip_prefix('+').unwrap_or(from);
    if number.is_empty() || !number.chars().all(|c| c.is_ascii_digit()) {
        return from.to_owned();
    }
    let digits: Vec<String> = number.chars().map(String::from).collect();
    digits.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vc_23_whoever_takes_over_hears_who_calls_and_what_is_open() {
        let brief = Brief {
            language: "en-GB".to_owned(),
            from: Some("+4930".to_owned()),
            about: Some("Anna wants to change her booking.".to_owned()),
            dropped: Some("Shall I cancel Thursday?".to_owned()),
        };
        assert_eq!(
            brief.text(),
            "A caller for you, from 4 9 3 0. Anna wants to change her booking. Not answered yet: Shall I cancel \
             Thursday? To take the call, press 1. To refuse it, press 2."
        );
    }

    #[test]
    fn nothing_but_the_language_is_needed() {
        let text = |language: &str| Brief { language: language.to_owned(), ..Brief::default() }.text();
        assert!(text("de-AT").starts_with("Ein Anruf für Sie. Um den Anruf"));
        assert_eq!(text("xx"), text("en"));
        let named = Brief { from: Some("anna".to_owned()), ..Brief::default() };
        assert!(named.text().contains("from anna."));
    }
}
