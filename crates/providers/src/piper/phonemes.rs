//! Phonemes in IPA, from `espeak-ng` run as a program.
//!
//! Text goes in on its standard input and never on its command line, so no text is an option; the markup switch is
//! off, so `<break/>` is words.

use sayback_runtime::tts::TtsError;
use std::io::Write;
use std::process::{Command, Stdio};
use unicode_normalization::UnicodeNormalization;

const PROGRAM: &str = "espeak-ng";

/// The phonemes of a clause with its punctuation, which carries the melody and which `espeak-ng` drops.
pub(super) fn of_clause(clause: &str, voice: &str) -> Result<String, TtsError> {
    let mut phonemes = String::new();
    for (words, mark) in phrases(clause) {
        let spoken = of(words, voice)?;
        if spoken.is_empty() {
            continue;
        }
        if !phonemes.is_empty() {
            phonemes.push(' ');
        }
        phonemes.push_str(&spoken);
        phonemes.extend(mark);
    }
    Ok(phonemes.nfd().collect())
}

/// The phonemes of words without punctuation between them, on one line, without marks of a switched language.
pub(super) fn of(words: &str, voice: &str) -> Result<String, TtsError> {
    let failed = |reason: String| TtsError::Failed(format!("{PROGRAM}: {reason}"));
    let mut child = Command::new(PROGRAM)
        .args(["-q", "--ipa", "-b", "1", "--stdin", "-v", voice])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                let mend = "apt-get install espeak-ng".to_owned();
                return TtsError::MissingProgram { program: PROGRAM.to_owned(), mend };
            }
            failed(error.to_string())
        })?;
    // A clause is shorter than a pipe's buffer, so writing all of it before reading cannot block for ever. A program
    // that stopped reading tells why below.
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(words.as_bytes()).and_then(|()| input.write_all(b"\n"));
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let ipa = String::from_utf8_lossy(&output.stdout);
    Ok(without_switches(&ipa).split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Words up to a mark that stands at the end of a word, and that mark.
fn phrases(clause: &str) -> Vec<(&str, Option<char>)> {
    let mut phrases = Vec::new();
    let mut from = 0;
    let mut letters = clause.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let ends = |next: char| next.is_whitespace() || mark(next).is_some() || "\"')”’»".contains(next);
        let closes = letters.peek().is_none_or(|&(_, next)| ends(next));
        if let Some(mark) = mark(letter).filter(|_| closes) {
            phrases.push((clause[from..at].trim(), Some(mark)));
            from = at + letter.len_utf8();
        }
    }
    phrases.push((clause[from..].trim(), None));
    phrases.retain(|(words, _)| !words.is_empty());
    phrases
}

/// The voice's mark for a written one.
fn mark(letter: char) -> Option<char> {
    match letter {
        '.' | '…' | '。' => Some('.'),
        ',' | '–' | '—' | '、' | '，' => Some(','),
        ';' | ':' | '!' | '?' => Some(letter),
        '！' => Some('!'),
        '？' => Some('?'),
        _ => None,
    }
}

/// Without `(en)` and the like, by which `espeak-ng` says that it changed its rules for a word.
fn without_switches(ipa: &str) -> String {
    let mut kept = String::new();
    let mut rest = ipa;
    while let Some((before, after)) = rest.split_once('(') {
        kept.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_inside_numbers_stay_in_the_words() {
        assert_eq!(
            phrases("It is 3.50, \"really\"?"),
            [("It is 3.50", Some(',')), ("\"really\"", Some('?'))]
        );
    }

    #[test]
    fn language_switches_are_not_phonemes() {
        assert_eq!(without_switches("(en)hˈaɪ(de) ja"), "hˈaɪ ja");
    }

    #[test]
    fn repeated_marks_are_one() {
        assert_eq!(phrases("wait... what?!"), [("wait", Some('.')), ("what", Some('?'))]);
    }
}
