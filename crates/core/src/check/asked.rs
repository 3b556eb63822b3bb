//! What a question asks: for leave or for the truth, of a denial, or for a choice.

use alloc::string::String;
use alloc::vec::Vec;

use super::lexicon::{Language, Lexicon};
use super::text::{Token, is_one_of, longest, matches, tokens};

/// What a yes to the question would mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// It asks for leave ("shall I?"): "okay" answers it. To "is that right?" it only takes note.
    pub(super) leave: bool,
    /// It asks of a denial ("you don't want it, right?") or for an objection: a yes has two readings.
    pub(super) denial: bool,
    /// It asks for a choice: a yes is no answer.
    pub(super) choice: bool,
}

/// Reads a question.
pub(super) fn asked(language: Language, lexicon: &Lexicon, question: &str) -> Asked {
    let sentences = sentences(&unquoted(question));
    let Some((last, before)) = sentences.split_last() else { return Asked::default() };
    let mut proposition = Vec::new();
    if last.len() <= 4 && !matches!(language, Language::Ja) {
        proposition.extend(before.last().cloned().unwrap_or_default());
    }
    proposition.extend(last.iter().cloned());
    Asked {
        leave: contains(&proposition, lexicon.leave),
        denial: denies(language, lexicon, last)
            || denies(language, lexicon, &proposition)
            || contains(&proposition, objections(language)),
        choice: chooses(lexicon, last),
    }
}

/// Questions for an objection: "do you mind if I …?" A yes minds, or agrees.
fn objections(language: Language) -> &'static str {
    match language {
        Language::En => "do you mind|would you mind|you mind if|any objection|any objections|do you object",
        Language::De => "macht es ihnen etwas aus|stört es sie|stört sie|etwas dagegen|einwände",
        Language::Es => "le importa|te importa|le importaría|le molesta|te molesta|inconveniente",
        Language::Fr => "vous dérange|te dérange|vous dérangerait|un inconvénient|une objection",
        Language::Pt => "se importa|se importaria|incomoda se|incomodaria",
        Language::Ja => "差し支え|不都合",
        Language::Hi => "आपत्ति|ऐतराज़|एतराज़",
    }
}

/// Quoted text is content, not question.
fn unquoted(text: &str) -> String {
    let mut close = None;
    let mut out = String::new();
    for c in text.chars() {
        match (close, c) {
            (Some(end), c) if c == end => close = None,
            (Some(_), _) => {}
            (None, '"') => close = Some('"'),
            (None, '“' | '„') => close = Some('”'),
            (None, '«') => close = Some('»'),
            (None, '「') => close = Some('」'),
            (None, c) => out.push(c),
        }
    }
    out
}

fn sentences(text: &str) -> Vec<Vec<Token>> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let gap = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        let wide = matches!(c, '。' | '？' | '！' | '।');
        if wide || matches!(c, '.' | '?' | '!') && gap {
            out.push(tokens(&text[start..at]));
            start = at + c.len_utf8();
        }
    }
    out.push(tokens(&text[start..]));
    out.retain(|sentence| !sentence.is_empty());
    out
}

fn contains(tokens: &[Token], phrases: &str) -> bool {
    (0..tokens.len()).any(|at| longest(tokens, at, phrases) > 0)
}

/// A denial of what somebody does, in English and German; in the other languages any negated verb.
fn denies(language: Language, lexicon: &Lexicon, tokens: &[Token]) -> bool {
    let people = match language {
        Language::En => "i|you|we",
        Language::De => "ich|du|sie|wir",
        Language::Es | Language::Fr | Language::Pt | Language::Ja | Language::Hi => "",
    };
    if !people.is_empty() && !contains(tokens, people) {
        return false;
    }
    let mut at = 0;
    while at < tokens.len() {
        let tag = lexicon.tags.split('|').map(|tag| matches(tokens, at, tag)).max().unwrap_or(0);
        let last = at + tag == tokens.len() && tokens[at].starts_clause;
        if tag > 1 || tag == 1 && last {
            at += tag;
            continue;
        }
        if longest(tokens, at, lexicon.negators) > 0 && !english_tag(language, tokens, at) {
            return true;
        }
        at += 1;
    }
    false
}

/// "…, don't you?"
fn english_tag(language: Language, tokens: &[Token], at: usize) -> bool {
    language == Language::En && at > 0 && tokens[at].starts_clause && tokens.len() - at <= 2
}

fn chooses(lexicon: &Lexicon, tokens: &[Token]) -> bool {
    (0..tokens.len()).any(|at| {
        let len = longest(tokens, at, lexicon.or);
        let inside = at > 0 && at + len < tokens.len();
        len > 0
            && inside
            && !tokens.get(at + len).is_some_and(|t| is_one_of(&t.text, "not|nicht|no|non|não|नहीं"))
    })
}
