//! A reply as a row of phrases, values and other words.

use alloc::string::String;
use alloc::vec::Vec;

use super::lexicon::{Class, Language, Lexicon};
use super::text::{Token, is_one_of, longest};
use super::value::{self, Found, Value};

/// What a stretch of the reply is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A phrase of the lexicon.
    Phrase(Class),
    /// A number, a time, a date, spelled letters.
    Value(Found),
    /// Any other word.
    Word,
}

/// A stretch of the reply, by its tokens.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Item {
    pub(super) fn class(&self) -> Option<Class> {
        match self.kind {
            Kind::Phrase(class) => Some(class),
            Kind::Value(_) | Kind::Word => None,
        }
    }

    /// Something of its own: what a partial answer is about.
    pub(super) fn is_content(&self) -> bool {
        matches!(self.class(), None | Some(Class::Detail))
    }
}

/// Cuts a reply into items: the longest phrase wins, a value wins over a shorter phrase.
pub(super) fn items(language: Language, lexicon: &Lexicon, tokens: &[Token]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (len, class) = phrase(language, lexicon, tokens, at);
        let value = value::find(language, tokens, at).filter(|found| outweighs(tokens, at, found, len));
        let item = if let Some(found) = value {
            let end = found.next;
            Item { kind: Kind::Value(found), start: at, end }
        } else if let Some(class) = special(language, lexicon, tokens, at, items.last()) {
            Item { kind: Kind::Phrase(class), start: at, end: at + 1 }
        } else if is_stray_letter(language, &tokens[at], len) {
            Item { kind: Kind::Word, start: at, end: at + 1 }
        } else if let Some(class) = class {
            Item { kind: Kind::Phrase(class), start: at, end: at + len }
        } else {
            Item { kind: Kind::Word, start: at, end: at + 1 }
        };
        at = item.end;
        items.push(item);
    }
    items
}

/// A value wins over a shorter phrase, a time also over one of its length ("às duas" is no "both"), and "a.m." over the
/// verb.
fn outweighs(tokens: &[Token], at: usize, found: &Found, phrase: usize) -> bool {
    let len = found.next - at;
    let time = found.readings.iter().flatten().any(|value| matches!(value, Value::Time(_)));
    let half = tokens[at].text == "am" && !(at > 0 && tokens[at - 1].text == "i");
    // "Oui, un." and "हाँ, दो।": articles and verbs elsewhere, numbers where nothing follows that they could go with.
    let ends = tokens.get(found.next).is_none_or(|next| next.starts_clause);
    let number = found.readings.iter().flatten().any(|value| matches!(value, Value::Figures { .. }));
    let counts = number && (ends || tokens[at].text == "दो");
    len > phrase || len == phrase && (len > 1 && time || half || counts)
}

/// A letter that stands alone, though a lexicon has it as a part of a word: the "d" of "4 D" is not that of "I'd".
fn is_stray_letter(language: Language, token: &Token, phrase: usize) -> bool {
    let words = match language {
        Language::En => "a|i",
        Language::Es => "a|e|o|u|y",
        Language::Fr => "a|y|o|h",
        Language::Pt => "a|e|o",
        Language::De | Language::Ja | Language::Hi => "",
    };
    let letter = token.text.len() == 1 && token.text.as_bytes()[0].is_ascii_alphabetic();
    letter && phrase <= 1 && !token.elided && (token.glued || !is_one_of(&token.text, words))
}

fn phrase(language: Language, lexicon: &Lexicon, tokens: &[Token], at: usize) -> (usize, Option<Class>) {
    let mut best = (0, None);
    for (class, phrases) in lexicon.phrases {
        let len = longest(tokens, at, phrases);
        let accented = *class == Class::Condition && is_accented_yes(language, &tokens[at]);
        if len > best.0 && !accented {
            best = (len, Some(*class));
        }
    }
    // Sounds of listening change nothing beside a yes, and are none by themselves.
    let sound = longest(tokens, at, lexicon.continuers);
    if sound > 0 && (sound > best.0 || best.1 == Some(Class::Elsewhere)) {
        best = (sound, Some(Class::Neutral));
    }
    best
}

/// Spanish "sí": folded it looks like "if".
fn is_accented_yes(language: Language, token: &Token) -> bool {
    language == Language::Es && token.text == "si" && token.raw.contains(['í', 'Í'])
}

/// What no list can say: verbs told to us, and Spanish "si", which without its accent is "if" unless it stands alone.
fn special(
    language: Language,
    lexicon: &Lexicon,
    tokens: &[Token],
    at: usize,
    before: Option<&Item>,
) -> Option<Class> {
    let token = &tokens[at];
    if language == Language::Es && token.text == "si" && !is_accented_yes(language, token) {
        let next = tokens.get(at + 1);
        let alone = next.is_none_or(|t| {
            t.starts_clause || is_one_of(&t.text, "por|claro|señor|señora|gracias|correcto|exacto")
        });
        return Some(if alone { Class::Yes } else { Class::Condition });
    }
    if language == Language::En && is_known_already(tokens, at) {
        return Some(Class::Neutral);
    }
    if !is_one_of(&token.text, lexicon.verbs) {
        return None;
    }
    let before = before.and_then(Item::class);
    let led = token.starts_clause
        || matches!(before, Some(Class::Yes | Class::Weak | Class::Grant | Class::And))
        || at > 0 && is_one_of(&tokens[at - 1].text, "please|can|may|could");
    led.then_some(Class::Grant)
}

/// "I know, book it": but not "I know that's right", which may have been "no", nor "yes, I know".
fn is_known_already(tokens: &[Token], at: usize) -> bool {
    tokens[at].text == "know"
        && at > 0
        && tokens[at - 1].text == "i"
        && tokens.get(at + 1).is_some_and(|next| next.starts_clause)
}

/// The words of a stretch, as they were said.
pub(super) fn said(language: Language, tokens: &[Token]) -> String {
    let gap = if language == Language::Ja { "" } else { " " };
    let words: Vec<&str> = tokens.iter().map(|t| t.raw.as_str()).collect();
    words.join(gap)
}
