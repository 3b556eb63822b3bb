//! Cuts plain text into clauses, the unit in which a voice speaks.
//!
//! All of the text ends up in some clause. A mark ends a clause only in front of a space or at the end, so that
//! "3.50", "10:30" and "1,000" stay whole.

/// No clause is longer, in letters: memory and time to the first sound grow with it.
const LONGEST: usize = 220;
/// A comma ends a clause only once this many letters stand before it; shorter pieces sound chopped.
const SHORTEST: usize = 12;
/// The first clause may be shorter, because the caller waits for it.
const SHORTEST_FIRST: usize = 8;
const ABBREVIATIONS: [&str; 14] =
    ["dr", "mr", "mrs", "ms", "st", "prof", "no", "vs", "etc", "e.g", "i.e", "approx", "jr", "sr"];

/// A piece of text that is spoken in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clause {
    /// One line, without brackets and control characters, with its closing mark.
    pub(super) text: String,
    /// The silence behind it, before the next clause.
    pub(super) pause: Pause,
}

/// How long a voice rests between two clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// In the middle of a phrase that was too long.
    None,
    /// At a comma.
    Short,
    /// At the end of a sentence.
    Sentence,
    /// At an empty line.
    Paragraph,
}

impl Pause {
    pub(super) fn milliseconds(self) -> usize {
        match self {
            Self::None => 0,
            Self::Short => 130,
            Self::Sentence => 300,
            Self::Paragraph => 450,
        }
    }
}

/// The clauses of `text`, none of them empty.
pub(super) fn split(text: &str) -> Vec<Clause> {
    let mut clauses = Vec::new();
    let paragraphs = text.split("\n\n").map(plain).filter(|paragraph| !paragraph.is_empty());
    for paragraph in paragraphs {
        if let Some(Clause { pause, .. }) = clauses.last_mut() {
            *pause = Pause::Paragraph;
        }
        split_paragraph(&paragraph, &mut clauses);
    }
    clauses
}

/// One line of single-spaced words. Square brackets go, because a pair of them is how phoneme mnemonics are written
/// for `espeak-ng`; control characters go, because a zero or a line end would end its input early.
fn plain(text: &str) -> String {
    let spaced: String = text
        .chars()
        .map(|letter| if letter.is_control() || "[]\u{feff}".contains(letter) { ' ' } else { letter })
        .collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn split_paragraph(paragraph: &str, clauses: &mut Vec<Clause>) {
    let mut clause = String::new();
    let mut length = 0;
    for word in paragraph.split(' ').flat_map(bounded) {
        let letters = word.chars().count();
        if length > 0 && length + letters + 1 > LONGEST {
            push(clauses, &mut clause, Pause::None);
            length = 0;
        }
        if length > 0 {
            clause.push(' ');
            length += 1;
        }
        clause.push_str(word);
        length += letters;
        let shortest = if clauses.is_empty() { SHORTEST_FIRST } else { SHORTEST };
        if let Some(pause) = end_of_clause(word, length >= shortest) {
            push(clauses, &mut clause, pause);
            length = 0;
        }
    }
    push(clauses, &mut clause, Pause::Sentence);
}

fn push(clauses: &mut Vec<Clause>, clause: &mut String, pause: Pause) {
    if !clause.is_empty() {
        clauses.push(Clause { text: std::mem::take(clause), pause });
    }
}

/// A word in pieces of at most [`LONGEST`] letters.
fn bounded(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let cut = rest.char_indices().nth(LONGEST).map_or(rest.len(), |(index, _)| index);
        let (piece, tail) = rest.split_at(cut);
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The pause after `word` if it ends a clause, which a comma does only if the clause is `long` enough.
fn end_of_clause(word: &str, long: bool) -> Option<Pause> {
    let word = word.trim_end_matches(['"', '\'', ')', '”', '’', '»', '*', '_']);
    match word.chars().last()? {
        '.' if is_abbreviation(word) => None,
        '.' | '!' | '?' | '…' | '。' | '！' | '？' => Some(Pause::Sentence),
        ',' | ';' | ':' | '–' | '—' | '、' | '，' if long => Some(Pause::Short),
        _ => None,
    }
}

fn is_abbreviation(word: &str) -> bool {
    let bare = word.trim_end_matches('.').trim_start_matches(['(', '"', '\'']).to_lowercase();
    let initial = bare.chars().count() == 1 && bare.chars().all(char::is_alphabetic) && bare != "i";
    initial || ABBREVIATIONS.contains(&bare.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        split(text).into_iter().map(|clause| clause.text).collect()
    }

    #[test]
    fn marks_inside_numbers_do_not_cut() {
        assert_eq!(
            texts("The price is 3.50, at 10:30. Send 1,000 to Dr. Smith?"),
            ["The price is 3.50,", "at 10:30.", "Send 1,000 to Dr. Smith?"]
        );
    }

    #[test]
    fn what_espeak_would_take_for_phonemes_or_an_end_is_plain_words() {
        assert_eq!(texts("say [[h@l@U]]\0 now\nand\there"), ["say h@l@U now and here"]);
    }

    #[test]
    fn every_letter_is_said_however_long_the_word() {
        let long = "ä".repeat(1000);
        let clauses = texts(&format!("{long} end"));
        assert!(clauses.iter().all(|clause| clause.chars().count() <= LONGEST));
        assert_eq!(clauses.concat().chars().filter(|&letter| letter == 'ä').count(), 1000);
    }

    #[test]
    fn pauses_follow_the_marks() {
        let pauses: Vec<Pause> =
            split("Good morning, hello there.\n\nYes.").iter().map(|clause| clause.pause).collect();
        assert_eq!(pauses, [Pause::Short, Pause::Paragraph, Pause::Sentence]);
    }

    #[test]
    fn nothing_gives_no_clause() {
        assert_eq!(split(" \n\n \t [ ] "), []);
    }
}
