//! Where in a text a personal detail is.

use super::Detail;

/// A detail in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) kind: Detail,
    /// Without the blanks and marks that it is written with: the same detail, however it is written.
    pub(super) plain: String,
}

/// Words that stand for digits.
const DIGITS: [(&str, &str); 31] = [
    ("zero", "0"),
    ("oh", "0"),
    ("one", "1"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("double", ""),
    ("triple", ""),
    ("null", "0"),
    ("eins", "1"),
    ("zwei", "2"),
    ("zwo", "2"),
    ("drei", "3"),
    ("vier", "4"),
    ("fünf", "5"),
    ("sechs", "6"),
    ("sieben", "7"),
    ("acht", "8"),
    ("neun", "9"),
    ("cero", "0"),
    ("uno", "1"),
    ("dos", "2"),
    ("tres", "3"),
    ("cuatro", "4"),
    ("cinco", "5"),
    ("plus", "+"),
];

/// Least digits of a telephone number.
const PHONE: usize = 7;
/// Digits of a card's number.
const CARD: std::ops::RangeInclusive<usize> = 13..=19;

/// A word with its place.
#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    from: usize,
    to: usize,
    /// Without marks around it.
    text: &'a str,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut from = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if c.is_whitespace() {
            if let Some(from) = from.take() {
                let whole: &str = &text[from..at];
                let mark = |c: char| !c.is_alphanumeric() && c != '+';
                let left = whole.len() - whole.trim_start_matches(mark).len();
                let trimmed = whole.trim_matches(mark);
                words.push(Word { from: from + left, to: from + left + trimmed.len(), text: trimmed });
            }
        } else {
            from.get_or_insert(at);
        }
    }
    words.retain(|word| !word.text.is_empty());
    words
}

/// The first detail of one of these kinds.
pub(super) fn find(text: &str, kinds: &[Detail]) -> Option<Found> {
    let words = words(text);
    (0..words.len()).find_map(|at| {
        let wants = |kind: Detail| kinds.contains(&kind);
        let here = &words[at..];
        (wants(Detail::Email).then(|| email(here)).flatten())
            .or_else(|| wants(Detail::Iban).then(|| iban(here)).flatten())
            .or_else(|| number(here, kinds))
    })
}

/// `anna@example.com`, or "anna at example dot com", or "anna dot b at example dot co dot uk".
fn email(words: &[Word<'_>]) -> Option<Found> {
    let first = words.first()?;
    if first.text.contains('@') {
        let plain = first.text.to_lowercase();
        return Some(Found { from: first.from, to: first.to, kind: Detail::Email, plain });
    }
    let is = |word: &Word<'_>, names: &[&str]| names.contains(&word.text.to_lowercase().as_str());
    let joint = ["dot", "punkt", "punto", "point", "ponto", "underscore", "dash", "hyphen", "minus"];
    let at = ["at", "ät", "arroba", "arobase"];
    // A local part: one word, more of them behind joints, or letters one by one.
    let mut next = 1;
    while next < words.len() && !is(&words[next], &at) {
        let spelled = words[next].text.chars().count() == 1 && words[next - 1].text.chars().count() == 1;
        let joined = is(&words[next], &joint) || is(&words[next - 1], &joint);
        if !spelled && !joined || next > 40 {
            return None;
        }
        next += 1;
    }
    let domain = next + 1;
    words.get(domain)?;
    let mut end = domain;
    while end + 2 < words.len() && is(&words[end + 1], &joint[..5]) {
        end += 2;
    }
    let whole = words[domain].text.contains('.');
    let spoken = end > domain || whole;
    let plain: String = words[..=end]
        .iter()
        .map(|word| match word.text.to_lowercase().as_str() {
            "at" | "ät" | "arroba" | "arobase" => "@".to_owned(),
            "dot" | "punkt" | "punto" | "point" | "ponto" => ".".to_owned(),
            other => other.to_owned(),
        })
        .collect();
    spoken.then(|| Found { from: first.from, to: words[end].to, kind: Detail::Email, plain })
}

/// `DE89 3704 0044 0532 0130 00`.
fn iban(words: &[Word<'_>]) -> Option<Found> {
    let mut plain = String::new();
    let mut found = None;
    for word in words.iter().take(12) {
        if !word.text.chars().all(|c| c.is_ascii_alphanumeric()) {
            break;
        }
        plain.push_str(&word.text.to_uppercase());
        let bytes = plain.as_bytes();
        let starts = bytes.len() >= 4
            && bytes[..2].iter().all(u8::is_ascii_uppercase)
            && bytes[2..4].iter().all(u8::is_ascii_digit);
        let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
        if starts && (15..=34).contains(&bytes.len()) && digits >= 10 {
            found = Some((word.to, plain.clone()));
        } else if bytes.len() >= 4 && !starts || bytes.len() > 34 {
            break;
        }
        // Words behind it belong to the sentence.
        if found.is_some() && !word.text.chars().any(|c| c.is_ascii_digit()) {
            break;
        }
    }
    let (to, plain) = found?;
    Some(Found { from: words.first()?.from, to, kind: Detail::Iban, plain })
}

/// Digits in a row, over blanks and marks, written or spoken.
fn number(words: &[Word<'_>], kinds: &[Detail]) -> Option<Found> {
    let mut plain = String::new();
    let mut to = None;
    let mut longest = None;
    for word in words {
        let Some(digits) = digits_of(word.text) else { break };
        // A doubled digit is one more: how many is not what matters, only that it is long.
        plain.push_str(&digits);
        to = Some(word.to);
        let count = plain.chars().filter(char::is_ascii_digit).count();
        longest = Some(count);
        if count > *CARD.end() {
            break;
        }
    }
    let (count, to) = (longest?, to?);
    let card = CARD.contains(&count) && kinds.contains(&Detail::Card);
    let phone = count >= PHONE && kinds.contains(&Detail::Phone);
    let kind = if card {
        Detail::Card
    } else if phone {
        Detail::Phone
    } else {
        return None;
    };
    let plain: String = plain.chars().filter(|c| c.is_ascii_digit()).collect();
    Some(Found { from: words.first()?.from, to, kind, plain })
}

/// The digits of a word, if it is made of them; dates and times are none.
fn digits_of(word: &str) -> Option<String> {
    let lower = word.to_lowercase();
    if let Some((_, digits)) = DIGITS.iter().find(|(name, _)| *name == lower) {
        return Some((*digits).to_owned());
    }
    // "four-one-five"
    if lower.contains('-') && lower.split('-').all(|part| DIGITS.iter().any(|(name, _)| *name == part)) {
        return Some(lower.split('-').filter_map(digits_of).collect());
    }
    let only =
        word.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '(' | ')' | '/' | '.' | ','));
    let digits: String = word.chars().filter(char::is_ascii_digit).collect();
    (only && !digits.is_empty() && !is_date(word)).then_some(digits)
}

/// `2026-12-03`, `3.12.2026`.
fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split(['-', '.', '/']).collect();
    let sizes: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let digits = parts.iter().all(|part| part.chars().all(|c| c.is_ascii_digit()));
    digits && matches!(sizes.as_slice(), [4, 1..=2, 1..=2] | [1..=2, 1..=2, 4] | [4, 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Detail; 4] = [Detail::Phone, Detail::Email, Detail::Card, Detail::Iban];

    fn kinds(text: &str) -> Vec<&'static str> {
        let mut rest = text;
        let mut kinds = Vec::new();
        while let Some(found) = find(rest, &ALL) {
            kinds.push(found.kind.name());
            rest = &rest[found.to..];
        }
        kinds
    }

    #[test]
    fn details_are_found_written_and_spoken() {
        for (text, kind) in [
            ("mail me at anna@example.com please", "email"),
            ("it is anna at example dot com.", "email"),
            ("anna dot berg at mail dot example dot co dot uk", "email"),
            ("a n n a at example dot com", "email"),
            ("anna at example.com", "email"),
            ("call 415 555-2671 today", "phone"),
            ("call +1 (415) 555 2671.", "phone"),
            ("four one five, five five five, two six seven one", "phone"),
            ("four-one-five five-five-five two six", "phone"),
            ("vier eins fünf fünf fünf zwei sechs", "phone"),
            ("card 4111 1111 1111 1111", "card"),
            ("DE89 3704 0044 0532 0130 00 it is", "iban"),
            ("to GB29NWBK60161331926819", "iban"),
        ] {
            assert_eq!(kinds(text), [kind], "{text}");
        }
    }

    #[test]
    fn what_is_none_stays() {
        for text in [
            "Book Thursday the 3rd of December at 3 pm for two",
            "2026-12-03T15:00 or 2026-12-03 or 3.12.2026",
            "I am at home, it is 4 to 5",
            "meet me at the corner",
            "one two three",
            "order 12345, please",
            "250 euros at 9:30",
        ] {
            assert_eq!(kinds(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn no_text_breaks_it() {
        for text in
            ["", "@", "at dot", "at", "x at", "é at ü dot", "我 at 是 dot 的", "+", "DE89", "1-", "----"]
        {
            let _ = kinds(text);
        }
    }
}
