//! Personal details by neutral ones of the same shape: the same detail always by the same one.
//!
//! What is a detail is guessed from form and place: addresses with an `@` or spoken as "… at … dot …", digits in a row
//! or spoken one by one, names after "my name is" and capitalised words that the agent's own file does not have. A
//! person looks at the result before it is shared; the docs say so.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::openers::OPENERS;

const NAMES: [&str; 12] =
    ["Alex", "Robin", "Kim", "Sam", "Jo", "Charlie", "Dana", "Lee", "Noa", "Toni", "Mika", "Sasha"];
/// After these words comes a name.
const CUES: [&[&str]; 8] = [
    &["my", "name", "is"],
    &["name's"],
    &["this", "is"],
    &["i", "am"],
    &["i'm"],
    &["mein", "name", "ist"],
    &["ich", "heiße"],
    &["je", "m'appelle"],
];
/// Capitalised words that are no names.
const COMMON: &str = "monday tuesday wednesday thursday friday saturday sunday january february march april may june \
july august september october november december i i'm i'd i'll i've ok okay yes no a the this that not here \
montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember ja nein";
const DIGITS: [&str; 10] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
/// Ends of addresses that tell nothing of a person.
const PUBLIC: &str = "com org net de fr es pt jp in uk co io eu info example mail www";
/// This many digits in a row are a number of somebody's; fewer are an hour, a day or a count.
const LONG: usize = 4;

/// What is replaced by what.
#[derive(Debug, Default)]
pub(super) struct Neutral {
    keep: BTreeSet<String>,
    names: BTreeMap<String, String>,
    numbers: BTreeMap<String, String>,
}

fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn is_capital(word: &str) -> bool {
    let mut letters = word.trim_matches(|c: char| !c.is_alphanumeric()).chars();
    letters.next().is_some_and(char::is_uppercase)
        && letters.clone().count() > 0
        && letters.all(char::is_alphabetic)
}

impl Neutral {
    /// Learns from all texts of a call; words of `keep`, the agent's own file, stay as they are.
    pub(super) fn learn(keep: &str, texts: &[String], inputs: &[Value]) -> Self {
        let mut neutral = Self::default();
        let words = |text: &str| -> BTreeSet<String> {
            text.split(|c: char| !c.is_alphanumeric() && c != '\'').map(str::to_lowercase).collect()
        };
        neutral.keep = words(keep);
        neutral.keep.extend(words(COMMON));
        neutral.keep.extend(OPENERS.iter().flat_map(|list| words(list)));
        for text in texts {
            neutral.learn_text(text);
        }
        for input in inputs {
            neutral.learn_value(input);
        }
        neutral
    }

    fn learn_value(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.learn_text(text);
                for word in text.split_whitespace().filter(|word| is_capital(word)) {
                    self.name(word);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn_value(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.learn_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn learn_text(&mut self, text: &str) {
        let words: Vec<&str> = text.split_whitespace().collect();
        for (index, word) in words.iter().enumerate() {
            let begins = index == 0 || words[index - 1].ends_with(['.', '!', '?']);
            let before_name = words.get(index + 1).is_some_and(|next| is_capital(next) && !self.keeps(next));
            if is_capital(word) && (!begins || before_name) {
                self.name(word);
            }
            if word.contains('@') {
                word.split(|c: char| !c.is_alphanumeric()).for_each(|part| self.part(part));
            }
            // "anna at example dot com"
            if bare(word) == "dot" && index >= 3 && bare(words[index - 2]) == "at" {
                self.part(words[index - 3]);
                self.part(words[index - 1]);
            }
            let lower: Vec<String> = words[..=index].iter().map(|word| bare(word)).collect();
            if CUES
                .iter()
                .any(|cue| lower.ends_with(&cue.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()))
            {
                self.after_cue(&words[index + 1..], text.chars().any(char::is_uppercase));
            }
        }
    }

    /// The first word after a cue, and the next one if both look like a name. Where a text has capitals, its names have
    /// them too: "I am looking for …" names nobody.
    fn after_cue(&mut self, words: &[&str], capitals: bool) {
        for word in words.iter().take(2) {
            if capitals && !word.chars().any(char::is_uppercase) {
                return;
            }
            let word = bare(word);
            if word.chars().count() < 2 || !word.chars().all(char::is_alphabetic) || self.keeps(&word) {
                return;
            }
            self.name(&word);
        }
    }

    fn keeps(&self, word: &str) -> bool {
        self.keep.contains(&bare(word))
    }

    /// A part of an address.
    fn part(&mut self, part: &str) {
        let word = bare(part);
        if word.chars().any(char::is_alphabetic) && !PUBLIC.split(' ').any(|public| public == word) {
            self.keep.remove(&word);
            self.name(&word);
        }
    }

    fn name(&mut self, word: &str) {
        let word = bare(word);
        if word.chars().count() < 2 || self.keep.contains(&word) || DIGITS.contains(&word.as_str()) {
            return;
        }
        let next = self.names.len();
        let name = match NAMES.get(next) {
            Some(name) => (*name).to_owned(),
            None => format!("Name{next}"),
        };
        self.names.entry(word).or_insert(name);
    }

    /// A text with its details replaced.
    pub(super) fn text(&mut self, text: &str) -> String {
        let text = self.tokens(text);
        let text = self.spoken_digits(&text);
        let text = self.digits(&text);
        let mut out = String::new();
        for piece in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let end = piece.trim_end_matches(|c: char| !c.is_alphanumeric()).len();
            let (word, rest) = piece.split_at(end);
            match self.names.get(&word.to_lowercase()) {
                Some(name) if word.chars().any(char::is_uppercase) => out.push_str(name),
                Some(name) => out.push_str(&name.to_lowercase()),
                None => out.push_str(word),
            }
            out.push_str(rest);
        }
        out
    }

    /// The same for every text in a value; numbers stay, for they decide whether a tool asks.
    pub(super) fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(key, field)| (key.clone(), self.value(field))).collect())
            }
            Value::Number(number) => self.number_value(number),
            Value::Null | Value::Bool(_) => value.clone(),
        }
    }

    /// Whole numbers that are long enough to be somebody's.
    fn number_value(&mut self, number: &serde_json::Number) -> Value {
        match number.as_u64().map(|n| n.to_string()).filter(|digits| digits.len() > 2 * LONG) {
            Some(digits) => self.digits(&digits).parse::<u64>().map_or(Value::Null, Value::from),
            None => Value::Number(number.clone()),
        }
    }

    /// What redaction left: `[email:1a2b3c4d]` is an address again, so that it fits its field.
    fn tokens(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((start, kind, end)) = token(rest) {
            out.push_str(&rest[..start]);
            let next = self.numbers.len();
            let of_kind = match kind {
                "email" => format!("person{next}@example.com"),
                "phone" => digits_of(10, next),
                "card" => digits_of(16, next),
                _ => format!("XX{}", digits_of(18, next)),
            };
            let made = self.numbers.entry(rest[start..end].to_owned()).or_insert(of_kind);
            out.push_str(made);
            rest = &rest[end..];
        }
        out.push_str(rest);
        out
    }

    /// Digits in a row, with the blanks and hyphens that a number is written with; dates and times stay.
    fn digits(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            out.push_str(&rest[..start]);
            rest = &rest[start..];
            let glue = |c: char| c.is_ascii_digit() || matches!(c, ' ' | '-' | '(' | ')' | '/' | '.');
            let end = rest.find(|c: char| !glue(c)).unwrap_or(rest.len());
            let run = rest[..end].trim_end_matches(|c: char| !c.is_ascii_digit());
            let digits: String = run.chars().filter(char::is_ascii_digit).collect();
            let address = out.ends_with("person");
            if digits.len() < LONG || is_date(run) || address {
                out.push_str(run);
            } else {
                let mut made = self.number(&digits).chars().collect::<Vec<_>>().into_iter();
                out.extend(
                    run.chars().map(|c| if c.is_ascii_digit() { made.next().unwrap_or('0') } else { c }),
                );
            }
            rest = &rest[run.len()..];
        }
        out.push_str(rest);
        out
    }

    /// Digits that are spoken one by one.
    fn spoken_digits(&mut self, text: &str) -> String {
        let words: Vec<&str> = text.split(' ').collect();
        let digit = |word: &str| {
            DIGITS.iter().position(|name| *name == bare(word) || (bare(word) == "oh" && *name == "zero"))
        };
        let mut out: Vec<String> = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let run: Vec<usize> = words[at..].iter().map_while(|word| digit(word)).collect();
            if run.len() < LONG {
                out.push(words[at].to_owned());
                at += 1;
                continue;
            }
            let digits: String = run.iter().map(usize::to_string).collect();
            let made = self.number(&digits);
            for (word, digit) in words[at..].iter().zip(made.chars()) {
                let tail = &word[word.trim_end_matches(|c: char| !c.is_alphanumeric()).len()..];
                let name = digit.to_digit(10).and_then(|d| DIGITS.get(d as usize)).unwrap_or(&"zero");
                out.push(format!("{name}{tail}"));
            }
            at += run.len();
        }
        out.join(" ")
    }

    fn number(&mut self, digits: &str) -> String {
        let next = self.numbers.len();
        self.numbers.entry(digits.to_owned()).or_insert_with(|| digits_of(digits.len(), next)).clone()
    }
}

/// The first token of redaction in a text: where it begins, its kind, and where it ends.
fn token(text: &str) -> Option<(usize, &str, usize)> {
    let mut from = 0;
    while let Some(start) = text[from..].find('[').map(|at| from + at) {
        let rest = &text[start + 1..];
        if let Some((kind, hash)) = rest.find(']').and_then(|end| rest[..end].split_once(':'))
            && hash.len() == 8
            && hash.chars().all(|c| c.is_ascii_hexdigit())
            && kind.chars().all(|c| c.is_ascii_lowercase())
        {
            return Some((start, kind, start + kind.len() + hash.len() + 3));
        }
        from = start + 1;
    }
    None
}

/// `2026-12-03` and what goes on from it; hours have fewer digits.
fn is_date(run: &str) -> bool {
    let parts: Vec<&str> = run.split(['-', '.', '/']).collect();
    let numbers = |least: usize, part: &&str| part.len() >= least && part.chars().all(|c| c.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(|part| numbers(1, part)) && parts.iter().any(|part| part.len() == 4)
        || matches!(parts.as_slice(), [year] if year.len() == 4 && (year.starts_with("19") || year.starts_with("20")))
}

/// Digits that are nobody's: 5550100, and so on.
fn digits_of(length: usize, number: usize) -> String {
    let tail = format!("{:02}", number % 100);
    let head = "55501005550100555010055501005550100555010055501005550100";
    let keep = length.saturating_sub(tail.len());
    head.chars().cycle().take(keep).chain(tail.chars()).take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn details_go_and_the_rest_stays() {
        let said = [
            "My name is Maria Lopez, maria at lopezmail dot com.".to_owned(),
            "Book Thursday at three, my number is four one five five five two six seven.".to_owned(),
            "please send it to maria@lopezmail.com or call 415 555-2671".to_owned(),
        ];
        let input = json!({"email": "maria@lopezmail.com", "phone": "41555267", "start": "2026-12-03T15:00", "people": 4});
        let mut neutral = Neutral::learn("Book a table", &said, std::slice::from_ref(&input));
        let told: Vec<String> = said.iter().map(|text| neutral.text(text)).collect();
        let all = format!("{told:?} {}", neutral.value(&input));
        for detail in ["maria", "Maria", "lopez", "Lopez", "41555267", "415 555", "four one five"] {
            assert!(!all.contains(detail), "{detail}: {all}");
        }
        for kept in ["Book", "Thursday", "three", "2026-12-03T15:00", "\"people\":4", " at ", " dot com"] {
            assert!(all.contains(kept), "{kept}: {all}");
        }
        let spoken = told[1].clone();
        let typed = neutral.value(&input)["phone"].as_str().unwrap().to_owned();
        let first = DIGITS[typed[..1].parse::<usize>().unwrap()];
        assert!(
            spoken.contains(&format!("is {first}")),
            "said and typed, it is the same number: {spoken} {typed}"
        );
    }

    #[test]
    fn what_sentences_begin_with_is_no_name() {
        for opener in [
            "Thank you",
            "Good morning",
            "Could you",
            "Well then",
            "Guten Morgen",
            "Vielen Dank",
            "Könnte ich",
            "Buenos días",
            "Muchas gracias",
            "Quisiera reservar",
            "Bonjour",
            "Merci beaucoup",
            "D'accord",
            "Bom dia",
            "Muito obrigado",
            "Gostaria de",
            "Namaste ji",
            "Dhanyavaad",
            "Arigatou gozaimasu",
            "Moshi moshi",
            "ありがとうございます",
            "धन्यवाद",
            "I am looking for something",
            "This is fine",
        ] {
            // At the beginning, in the middle, and as a field by itself.
            let said = [format!("{opener} Maria Lopez."), format!("book it {opener}, Maria")];
            let input = json!({"note": opener, "name": "Maria Lopez"});
            let mut neutral = Neutral::learn("", &said, std::slice::from_ref(&input));
            assert_eq!(neutral.text(opener), opener);
            assert_eq!(neutral.value(&input)["note"], opener);
            let told = said.iter().map(|text| neutral.text(text)).collect::<String>();
            assert!(!told.contains("Maria") && !told.contains("Lopez"), "{told}");
        }
    }

    #[test]
    fn names_after_a_cue_go_with_capitals_and_without() {
        for said in ["My name is Maria Lopez", "my name is maria lopez", "hello this is maria", "I'm Maria"] {
            let mut neutral = Neutral::learn("", &[said.to_owned()], &[]);
            let told = neutral.text(said).to_lowercase();
            assert!(!told.contains("maria") && !told.contains("lopez"), "{told}");
        }
    }

    #[test]
    fn what_redaction_left_fits_its_field_again() {
        let mut neutral = Neutral::default();
        let told = neutral.text("to [email:1a2b3c4d] and [phone:99887766], [email:1a2b3c4d]");
        assert_eq!(told.matches("person0@example.com").count(), 2, "{told}");
        assert!(!told.contains('['), "{told}");
    }

    #[test]
    fn no_text_breaks_it() {
        for text in ["", "[", "[a:", "[é:12345678]", "@", "at dot", "1234 5", "我是 Maria", "ß 12.34.5678 İ"]
        {
            let mut neutral = Neutral::learn("", &[text.to_owned()], &[json!(text)]);
            let _ = neutral.text(text);
        }
    }
}
