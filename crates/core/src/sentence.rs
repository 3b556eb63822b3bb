//! Cutting a stream of model text into sentences, one behind: a sentence is released when the next one begins.
//!
//! That is what lets a step that turns out to ask drop its last sentence (VC-17, VC-18), and one that turns out to
//! hang up keep its goodbye to itself (VC-21).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A sentence cutter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sentences {
    buffer: String,
}

/// Words that end in a full stop without ending a sentence. Lower case, without the stop.
const ABBREVIATIONS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "no", "nr", "vs", "e.g", "i.e", "etc", "approx", "ca", "z.b",
    "bzw", "sr", "sra", "mme", "hr", "fr", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept",
    "oct", "nov", "dec",
];

impl Sentences {
    /// Takes more text; gives the sentences whose successor has begun.
    pub(crate) fn push(&mut self, text: &str) -> Vec<String> {
        self.buffer.push_str(text);
        let mut released = Vec::new();
        while let Some((end, next)) = boundary(&self.buffer) {
            let rest = self.buffer.split_off(next);
            self.buffer.truncate(end);
            let sentence = self.buffer.trim().to_string();
            if !sentence.is_empty() {
                released.push(sentence);
            }
            self.buffer = rest;
        }
        released
    }

    /// What is left at the end of the step: its last sentence, if any.
    pub(crate) fn take_rest(&mut self) -> Option<String> {
        let rest = core::mem::take(&mut self.buffer);
        let rest = rest.trim();
        if rest.is_empty() { None } else { Some(rest.to_string()) }
    }
}

/// The first place where a sentence ends and another one has begun: (end of the first, start of the next).
fn boundary(text: &str) -> Option<(usize, usize)> {
    for (at, mark) in text.char_indices() {
        let end = at + mark.len_utf8();
        let wide = matches!(mark, '。' | '！' | '？' | '।');
        let ends = match mark {
            '.' => !is_abbreviation(&text[..at]),
            '!' | '?' | '…' | '\n' => true,
            _ => wide,
        };
        if !ends {
            continue;
        }
        let after = &text[end..];
        let closed =
            after.trim_start_matches(['"', '\'', ')', '”', '’', '»', '.', '!', '?', '。', '！', '？']);
        let end = end + (after.len() - closed.len());
        let next = closed.trim_start();
        let spaced = next.len() < closed.len() || wide || mark == '\n';
        if spaced && !next.is_empty() {
            return Some((end, text.len() - next.len()));
        }
    }
    None
}

/// Whether a full stop behind this text belongs to an abbreviation, and ends no sentence.
pub fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit([' ', '\n', '(', '"']).next().unwrap_or("");
    let lower = word.to_lowercase();
    let single = word.chars().count() == 1 && word.chars().all(char::is_alphabetic);
    single || ABBREVIATIONS.contains(&lower.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn all(pieces: &[&str]) -> (Vec<String>, Option<String>) {
        let mut cutter = Sentences::default();
        let released = pieces.iter().flat_map(|piece| cutter.push(piece)).collect();
        (released, cutter.take_rest())
    }

    // VC-17, VC-21
    #[test]
    fn a_sentence_is_released_when_the_next_begins() {
        let mut cutter = Sentences::default();
        assert!(cutter.push("Let me check. ").is_empty());
        assert_eq!(cutter.push("I"), vec!["Let me check.".to_string()]);
        assert_eq!(cutter.take_rest(), Some("I".to_string()));
    }

    #[test]
    fn abbreviations_numbers_and_addresses_do_not_end_a_sentence() {
        let (released, rest) = all(&["Dr. Smith has 3.5 hours at a.b@c.de today. Is that fine?"]);
        assert_eq!(released, vec!["Dr. Smith has 3.5 hours at a.b@c.de today.".to_string()]);
        assert_eq!(rest, Some("Is that fine?".to_string()));
    }

    #[test]
    fn wide_full_stops_need_no_space() {
        let (released, rest) = all(&["はい。", "予約します。"]);
        assert_eq!(released, vec!["はい。".to_string()]);
        assert_eq!(rest, Some("予約します。".to_string()));
    }

    #[test]
    fn cutting_does_not_depend_on_the_pieces() {
        let text = "One. Two! \"Three?\" Four… Five\nSix";
        let whole = all(&[text]);
        let letters: Vec<String> = text.chars().map(|c| c.to_string()).collect();
        let pieces: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(all(&pieces), whole);
        assert_eq!(whole.0.len(), 5);
    }
}
