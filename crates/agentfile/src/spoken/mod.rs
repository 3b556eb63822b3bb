//! Spoken forms: values the way people say them, per language.
//!
//! Each function takes a value's text and a language and gives what is said, or an error: a question with half a value
//! in it must not be asked. A language that is not known here gets a neutral form that can at least be read out.

mod currency;
mod number;
mod text;
mod when;

pub(crate) use number::{money, number};
pub(crate) use text::{digits, email, list, phone};
pub(crate) use when::{date, date_time, time};

/// A language with spoken forms of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    German,
    Spanish,
    French,
    Portuguese,
    Japanese,
    Hindi,
    Neutral,
}

impl Language {
    /// From a BCP 47 tag: `en`, `de-AT`.
    pub(crate) fn of(tag: &str) -> Self {
        let base = tag.split(['-', '_']).next().unwrap_or_default();
        match base.to_ascii_lowercase().as_str() {
            "en" => Self::English,
            "de" => Self::German,
            "es" => Self::Spanish,
            "fr" => Self::French,
            "pt" => Self::Portuguese,
            "ja" => Self::Japanese,
            "hi" => Self::Hindi,
            _ => Self::Neutral,
        }
    }
}

/// `2026-12-03T15:00`, with or without seconds and zone.
pub(crate) fn is_local_date_time(text: &str) -> bool {
    date_time(text, Language::Neutral, false).is_ok()
}

/// `15:00`, with or without seconds and zone.
pub(crate) fn is_local_time(text: &str) -> bool {
    time(text, Language::Neutral).is_ok()
}

/// A telephone number: at least three digits, an optional plus and the usual separators.
pub(crate) fn is_phone(text: &str) -> bool {
    phone(text, Language::Neutral).is_ok()
}

#[cfg(test)]
mod tests;
