//! The deterministic part of the check: what may turn a model's yes into unclear, and nothing else.
//!
//! A reply is cut into phrases, values and other words by the grammar of its language. Any phrase that denies, asks,
//! holds, conditions, corrects, hedges or passes on what somebody else says vetoes. Any value that is neither in the
//! question nor in the input vetoes, and so does any other word that is in neither: a yes is only a yes if everything
//! said with it is politeness or repeats what was asked. So the lists need not be complete to be safe: a word that
//! nobody thought of costs one more asking, never a run.
//!
//! Pure, without a clock or a model; replies are bounded by [`LONGEST_REPLY`].

mod asked;
mod clock;
mod grammar;
mod halves;
mod lexicon;
mod marks;
mod number;
mod order;
mod pairs;
mod scope;
mod text;
mod value;
mod veto;

use lexicon::{Class, Language};

use crate::event::Verdict;

pub use veto::{LEAST_CONFIDENCE, LONGEST_REPLY, Veto, VetoKind, veto};

/// An answer that a model took for a yes.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// The language in force, as a tag ("de", "de-AT"). In a language without a lexicon every yes is vetoed.
    pub language: &'a str,
    /// The question that was heard, word for word.
    pub question: &'a str,
    /// The caller's words since the question.
    pub words: &'a str,
    /// The held input as JSON text, where it is known: its values may be repeated too.
    pub input_json: Option<&'a str>,
    /// How many people were heard to speak, if that was measured.
    pub speakers: Option<u8>,
    /// The recogniser's confidence in percent, if it gives one.
    pub confidence: Option<u8>,
    /// The agent said something else after the question: a yes may answer that (VC-57).
    pub agent_speech_after: bool,
}

/// Why a yes to a question would say nothing, so that every yes to it is vetoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswerable {
    /// It asks of a denial or for an objection: a yes has two readings.
    Denial,
    /// It offers a choice.
    Choice,
}

/// Whether a yes to the question would be vetoed whatever the words: for authors, before a caller finds out.
///
/// `None` in a language without a lexicon, where every yes is vetoed.
pub fn unanswerable(language: &str, question: &str) -> Option<Unanswerable> {
    let language = Language::from_tag(language)?;
    let asked = asked::asked(language, lexicon::of(language), question);
    let denial = asked.denial.then_some(Unanswerable::Denial);
    denial.or(asked.choice.then_some(Unanswerable::Choice))
}

/// Whether a question ends with these words, however they are written.
pub fn ends_with(question: &str, words: &str) -> bool {
    let (question, words) = (text::tokens(question), text::tokens(words));
    let tail = question.len().checked_sub(words.len()).and_then(|from| question.get(from..));
    !words.is_empty() && tail.is_some_and(|tail| tail.iter().zip(&words).all(|(a, b)| a.text == b.text))
}

/// Whether the words are an affirmation and nothing else: "yes, that's right, thank you".
///
/// A value or any other word makes it false, and so does an unknown language.
pub fn is_affirmation(language: &str, words: &str) -> bool {
    let Some((tokens, items)) = read(language, words) else { return false };
    let affirms = |class: Option<Class>| matches!(class, Some(Class::Yes | Class::Grant | Class::Weak));
    let harmless =
        |class: Option<Class>| affirms(class) || matches!(class, Some(Class::Neutral | Class::And));
    let asks = words.contains(['?', '？', '¿']);
    !tokens.is_empty()
        && !asks
        && items.iter().any(|i| affirms(i.class()))
        && items.iter().all(|i| harmless(i.class()))
}

/// Whether the words are nothing but politeness: "please", "thank you".
pub fn is_politeness(language: &str, words: &str) -> bool {
    let Some(language) = Language::from_tag(language) else { return false };
    is_made_of(lexicon::of(language).polite, words)
}

/// Whether the caller asks for time ("hold on"), so that the question waits and no round is lost.
///
/// False if the words also ask, deny, correct or bring a value: then there is something to answer.
pub fn is_hold_word(language: &str, words: &str) -> bool {
    let Some((_, items)) = read(language, words) else { return false };
    let holds = items.iter().any(|i| i.class() == Some(Class::Hold));
    let more = |class: Option<Class>| {
        matches!(class, Some(Class::Question | Class::Negation | Class::Correction | Class::Injection))
    };
    let value = |kind: &grammar::Kind| matches!(kind, grammar::Kind::Value(_));
    holds && !items.iter().any(|i| more(i.class()) || value(&i.kind)) && !words.contains(['?', '？'])
}

/// Whether the words are only a sound of listening ("mm-hm"); never "yes", "okay" or "right".
pub fn is_continuer(language: &str, words: &str) -> bool {
    let Some(language) = Language::from_tag(language) else { return false };
    is_made_of(lexicon::of(language).continuers, words)
}

/// Whether there are words, all of them of a list, and they ask nothing.
fn is_made_of(list: &str, words: &str) -> bool {
    let tokens = text::tokens(bounded(words));
    let mut at = 0;
    while at < tokens.len() {
        match text::longest(&tokens, at, list) {
            0 => return false,
            len => at += len,
        }
    }
    !tokens.is_empty() && !words.contains(['?', '？'])
}

/// Whether the turn trails off: it ends in a word after which more must come ("and", "the", "um"), or in dots.
pub fn is_trailing(language: &str, words: &str) -> bool {
    let Some(language) = Language::from_tag(language) else { return false };
    let words = words.trim();
    if words.ends_with("...") || words.ends_with(['…', ',', '、', '-', '—', '–']) {
        return true;
    }
    if words.ends_with(['?', '？', '!', '！']) {
        return false;
    }
    let words = tail(words);
    let tokens = text::tokens(words);
    if language == Language::Ja {
        return ja_trails(words.trim_end_matches(['。', '.']));
    }
    let list = lexicon::of(language).trailing;
    let reaches_end = |at: &usize| text::longest(&tokens, *at, list) == tokens.len() - at;
    !tokens.is_empty() && (tokens.len().saturating_sub(3)..tokens.len()).any(|at| reaches_end(&at))
}

/// Japanese trails off in a particle or a filler at the end of its last word.
fn ja_trails(words: &str) -> bool {
    let whole = ["こんにちは", "こんばんは", "あなた", "ました", "でした", "ありがと", "ひと", "ので"];
    let list = lexicon::of(Language::Ja).trailing;
    let ends = list.split('|').any(|entry| words.ends_with(entry));
    words.ends_with("ので") || ends && !whole.iter().any(|word| words.ends_with(word))
}

/// The model's answer to the check: exactly one of yes, no and unclear.
///
/// Case, blanks around it, quotes around it and one final period do not matter; anything else is no verdict.
pub fn parse_verdict(text: &str) -> Option<Verdict> {
    let quotes = ['"', '\'', '“', '”', '‘', '’', '`'];
    let bare = text.trim().trim_matches(quotes).trim();
    let bare = bare.strip_suffix('.').unwrap_or(bare).trim_matches(quotes);
    let known = [("yes", Verdict::Yes), ("no", Verdict::No), ("unclear", Verdict::Unclear)];
    known.into_iter().find(|(word, _)| bare.eq_ignore_ascii_case(word)).map(|(_, verdict)| verdict)
}

fn read(
    language: &str,
    words: &str,
) -> Option<(alloc::vec::Vec<text::Token>, alloc::vec::Vec<grammar::Item>)> {
    let language = Language::from_tag(language)?;
    if words.chars().count() > LONGEST_REPLY {
        return None;
    }
    let tokens = text::spoken(language, words);
    let items = grammar::items(language, lexicon::of(language), &tokens);
    Some((tokens, items))
}

fn bounded(words: &str) -> &str {
    let end = words.char_indices().nth(LONGEST_REPLY).map_or(words.len(), |(at, _)| at);
    &words[..end]
}

/// The last characters of a long text: enough to see how it ends.
fn tail(words: &str) -> &str {
    let start = words.char_indices().rev().nth(200).map_or(0, |(at, _)| at);
    &words[start..]
}
