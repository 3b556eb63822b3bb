//! What words do in an answer, per language. Phrases, longest first wins; accents and case do not matter, and an
//! apostrophe is a space ("that s right"). A list is one string, its entries separated by bars.

mod de;
mod en;
mod es;
mod fr;
mod hi;
mod ja;
mod pt;

/// What a phrase does in an answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Says yes to any question.
    Yes,
    /// Tells us to do it.
    Grant,
    /// Takes note; says yes only to "shall I?".
    Weak,
    /// Names a detail without its value ("the email"): more than politeness, less than a value.
    Detail,
    /// Changes nothing: politeness, fillers, function words.
    Neutral,
    /// Joins; changes nothing unless it comes last.
    And,
    /// Denies.
    Negation,
    /// Asks for time.
    Hold,
    /// Asks.
    Question,
    /// Makes the yes depend on something.
    Condition,
    /// Changes something.
    Correction,
    /// Is not sure, or does not care.
    Hedge,
    /// Passes on what somebody else says, or speaks to somebody else.
    Relay,
    /// Answers something else: a greeting, that one is still there, that one has understood.
    Elsewhere,
    /// Means the opposite of what it says, often enough.
    Idiom,
    /// Talks to the checker.
    Injection,
}

/// A language's words.
#[derive(Debug)]
pub(super) struct Lexicon {
    /// Phrases by what they do.
    pub(super) phrases: &'static [(Class, &'static str)],
    /// Verbs that, told to us, are a grant ("book it").
    pub(super) verbs: &'static str,
    /// Sounds of listening.
    pub(super) continuers: &'static str,
    /// Politeness that says nothing by itself.
    pub(super) polite: &'static str,
    /// Words after which more must come.
    pub(super) trailing: &'static str,
    /// What makes a question ask for leave ("shall I") and not for the truth ("is that right").
    pub(super) leave: &'static str,
    /// Words that negate what is asked.
    pub(super) negators: &'static str,
    /// Tags that hold a negator and negate nothing ("nicht wahr").
    pub(super) tags: &'static str,
    /// Joins alternatives.
    pub(super) or: &'static str,
}

/// The words of a language, by its tag ("de", "de-AT"). An unknown language has none, so nothing is a yes in it.
pub(super) fn of(language: Language) -> &'static Lexicon {
    match language {
        Language::En => &en::LEXICON,
        Language::De => &de::LEXICON,
        Language::Es => &es::LEXICON,
        Language::Fr => &fr::LEXICON,
        Language::Pt => &pt::LEXICON,
        Language::Ja => &ja::LEXICON,
        Language::Hi => &hi::LEXICON,
    }
}

/// The languages whose grammar is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    En,
    De,
    Es,
    Fr,
    Pt,
    Ja,
    Hi,
}

impl Language {
    /// From a tag; `None` if nothing is known of the language.
    pub(super) fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        let known = [
            ("en", Self::En),
            ("de", Self::De),
            ("es", Self::Es),
            ("fr", Self::Fr),
            ("pt", Self::Pt),
            ("ja", Self::Ja),
            ("hi", Self::Hi),
        ];
        known.into_iter().find(|(name, _)| primary.eq_ignore_ascii_case(name)).map(|(_, language)| language)
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::{matches, tokens};
    use super::*;

    #[test]
    fn every_phrase_can_be_met_in_a_reply() {
        for tag in ["en", "de", "es", "fr", "pt", "ja", "hi"] {
            let lexicon = of(Language::from_tag(tag).unwrap());
            let others = [
                lexicon.continuers,
                lexicon.polite,
                lexicon.trailing,
                lexicon.leave,
                lexicon.negators,
                lexicon.or,
            ];
            let lists = lexicon.phrases.iter().map(|(_, phrases)| *phrases).chain(others);
            for phrase in lists.flat_map(|list| list.split('|')) {
                let said = tokens(phrase);
                assert!(!said.is_empty() && matches(&said, 0, phrase) == said.len(), "{tag}: {phrase:?}");
            }
        }
    }
}
