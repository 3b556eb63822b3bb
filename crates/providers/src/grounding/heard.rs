//! What the caller said, laid out so that an argument is found in it.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::calendar::{Clock, Day};
use super::numbers::{Part, longest, part};

/// Most numbers that are read together as one: a long telephone number in single digits.
const MOST_JOINED: usize = 16;
/// Texts of more content words than this are free text, of which most words suffice.
const MOST_OF_A_NAME: usize = 3;

/// Words between the parts of an address that is read aloud.
const JOINTS: &[&str] = &[
    "at",
    "dot",
    "dash",
    "hyphen",
    "minus",
    "underscore",
    "slash",
    "plus",
    "period",
    "point",
    "punkt",
    "arroba",
    "punto",
    "guion",
    "arobase",
    "tiret",
    "bindestrich",
    "unterstrich",
];
/// Words that carry nothing in free text.
const FILLERS: &[&str] = &[
    "a", "an", "the", "of", "for", "with", "and", "at", "to", "on", "in", "my", "is", "der", "die", "das",
    "ein", "eine", "und", "mit", "fur", "von", "el", "la", "de", "para", "con", "y", "le", "les", "un",
    "une", "et", "pour", "mr", "mrs", "ms", "herr", "frau",
];
/// The letters of the telephone.
const ALPHABET: &[&str] = &[
    "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "kilo",
    "lima", "mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform", "victor",
    "whiskey", "xray", "yankee", "zulu",
];
/// Monday first.
const WEEKDAYS: &[&str] = &[
    "monday mondays montag lunes lundi",
    "tuesday tuesdays dienstag martes mardi",
    "wednesday wednesdays mittwoch miercoles mercredi",
    "thursday thursdays donnerstag jueves jeudi",
    "friday fridays freitag viernes vendredi",
    "saturday saturdays samstag sonnabend sabado samedi",
    "sunday sundays sonntag domingo dimanche",
];
/// January first.
const MONTHS: &[&str] = &[
    "january januar enero janvier",
    "february februar febrero fevrier",
    "march marz maerz marzo mars",
    "april abril avril",
    "may mai mayo",
    "june juni junio juin",
    "july juli julio juillet",
    "august agosto aout",
    "september septiembre septembre",
    "october oktober octubre octobre",
    "november noviembre novembre",
    "december dezember diciembre decembre",
];
/// Words for days near today, with their distance.
const NEAR: &[(i64, &str)] = &[
    (0, "today tonight heute hoy aujourd"),
    (1, "tomorrow morgen manana demain"),
    (2, "ubermorgen uebermorgen"),
    (-1, "yesterday gestern ayer hier"),
];
/// Words that leave the day open.
const LOOSE: &str = "week weeks weekend month months days fortnight woche wochen wochenende monat monate monaten tage \
                     tagen semana semanas mes meses dias semaine semaines mois jours";

/// Everything said, indexed.
#[derive(Debug, Default)]
pub(super) struct Heard {
    words: BTreeSet<String>,
    /// All words without gaps; the same without joints; the same with letters and digits read as such.
    joined: [String; 3],
    /// Words spelled letter by letter or digit by digit.
    spelled: BTreeSet<String>,
    /// Thousandths, so that equal means equal.
    numbers: BTreeSet<i64>,
    /// All digits one after the other.
    digits: String,
    clocks: BTreeSet<(u8, u8)>,
    months: BTreeSet<u8>,
    weekdays: BTreeSet<u8>,
    near: BTreeSet<i64>,
    is_loose: bool,
}

/// A number as it was said: its digits and its value in thousandths.
#[derive(Clone, Debug)]
struct Group {
    digits: String,
    thousandths: i64,
    /// Tokens from and to.
    span: (usize, usize),
}

impl Heard {
    pub(super) fn new(said: &[String]) -> Self {
        let mut heard = Self::default();
        for utterance in said {
            heard.add(&tokens(utterance));
        }
        heard
    }

    fn add(&mut self, tokens: &[String]) {
        let groups = groups(tokens);
        self.add_numbers(&groups);
        self.add_clocks(tokens, &groups);
        self.add_days(tokens, &groups);
        self.add_spelling(tokens);
        for token in tokens {
            self.joined[0].push_str(token);
            if !JOINTS.contains(&token.as_str()) {
                self.joined[1].push_str(token);
            }
            self.words.insert(token.clone());
        }
    }

    fn add_numbers(&mut self, groups: &[Group]) {
        for (from, group) in groups.iter().enumerate() {
            self.digits.push_str(&group.digits);
            self.numbers.insert(group.thousandths);
            let mut digits = group.digits.clone();
            for pair in groups[from..].windows(2).take(MOST_JOINED - 1) {
                let [before, next] = pair else { break };
                if before.span.1 != next.span.0 {
                    break;
                }
                digits.push_str(&next.digits);
                self.numbers.extend(digits.parse::<i64>().ok().and_then(|value| value.checked_mul(1000)));
            }
        }
        for pair in groups.windows(2) {
            let [whole, hundredths] = pair else { continue };
            // "Twelve fifty": twelve and fifty hundredths.
            let is_price = whole.span.1 == hundredths.span.0 && hundredths.digits.len() == 2;
            if let (true, Ok(hundredths)) = (is_price, hundredths.digits.parse::<i64>()) {
                self.numbers.insert(whole.thousandths.saturating_add(hundredths * 10));
            }
        }
    }

    fn add_clocks(&mut self, tokens: &[String], groups: &[Group]) {
        let hour_at = |at: usize| {
            let group = groups.get(groups.partition_point(|group| group.span.0 < at))?;
            let hour = u8::try_from(group.thousandths / 1000).ok().filter(|hour| *hour <= 24);
            hour.filter(|_| group.span.0 == at)
        };
        for (at, token) in tokens.iter().enumerate() {
            if let Some((hour, minute)) = token.split_once(':') {
                self.clocks
                    .extend(hour.parse().ok().zip(minute.get(..2).and_then(|minute| minute.parse().ok())));
            }
            match token.as_str() {
                "noon" | "midday" | "mittag" | "mittags" | "mediodia" | "midi" => {
                    self.clocks.extend([(12, 0)])
                }
                "midnight" | "mitternacht" | "medianoche" | "minuit" => self.clocks.extend([(0, 0)]),
                "halb" => self.clocks.extend(hour_at(at + 1).map(|hour| (before(hour), 30))),
                // "Half three" is half past three in Britain.
                "half" => self.clocks.extend(hour_at(at + 1).map(|hour| (hour, 30))),
                "past" | "after" | "nach" => {
                    self.clocks.extend(hour_at(at + 1).zip(minutes_before(tokens, groups, at)));
                }
                "to" | "till" | "before" | "vor" => {
                    let minute =
                        minutes_before(tokens, groups, at).and_then(|minute| 60_u8.checked_sub(minute));
                    self.clocks.extend(hour_at(at + 1).map(before).zip(minute));
                }
                _ => {}
            }
        }
        for (at, group) in groups.iter().enumerate() {
            let Some(hour) = hour_at(group.span.0) else { continue };
            self.clocks.insert((hour, 0));
            let next =
                groups.get(at + 1).filter(|next| next.span.0 == group.span.1 && next.digits.len() == 2);
            self.clocks.extend(next.and_then(|next| Some((hour, next.digits.parse().ok()?))));
        }
    }

    fn add_days(&mut self, tokens: &[String], groups: &[Group]) {
        let is_number =
            |at: Option<usize>| at.is_some_and(|at| groups.iter().any(|g| g.span.0 <= at && at < g.span.1));
        for (at, token) in tokens.iter().enumerate() {
            self.weekdays.extend(place_of(WEEKDAYS, token));
            // "May I" names no month.
            let names_month = token != "may"
                || is_number(at.checked_sub(1))
                || is_number(Some(at + 1))
                || at.checked_sub(1).is_some_and(|at| tokens[at] == "of");
            self.months.extend(place_of(MONTHS, token).filter(|_| names_month).map(|month| month + 1));
            let follows_after = at
                .checked_sub(1)
                .is_some_and(|at| ["after", "pasado", "apres"].contains(&tokens[at].as_str()));
            let near = NEAR.iter().find(|(_, words)| words.split(' ').any(|word| word == token));
            self.near.extend(near.map(|(distance, _)| if follows_after { distance + 1 } else { *distance }));
            self.is_loose |= LOOSE.split_whitespace().any(|word| word == token);
        }
    }

    /// Reads letters as letters: "double n", "B as in Bravo", "Bravo".
    fn add_spelling(&mut self, tokens: &[String]) {
        let (mut run, mut at) = (String::new(), 0);
        while let Some(token) = tokens.get(at) {
            let times = match token.as_str() {
                "double" | "doppel" | "doble" => 2,
                "triple" | "dreifach" => 3,
                _ => 1,
            };
            let from = if times > 1 { at + 1 } else { at };
            match tokens.get(from).and_then(|token| letter(token)) {
                Some(letter) => {
                    run.push_str(&letter.repeat(times));
                    self.joined[2].push_str(&letter.repeat(times));
                    at = from + 1 + explanation(&letter, tokens.get(from + 1..).unwrap_or_default());
                }
                None => {
                    self.spelled.insert(std::mem::take(&mut run));
                    if !JOINTS.contains(&token.as_str()) {
                        self.joined[2].push_str(token);
                    }
                    at += 1;
                }
            }
        }
        self.spelled.insert(run);
    }

    /// Whether this number was said.
    pub(super) fn number(&self, value: f64) -> bool {
        let value = value.abs();
        if value >= 9e15 {
            return false;
        }
        #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
        let thousandths = if value >= 9e12 { None } else { Some((value * 1000.0).round() as i64) };
        let is_whole = value.fract() == 0.0;
        thousandths.is_some_and(|value| self.numbers.contains(&value))
            || (is_whole && value >= 100_000.0 && self.digits.contains(&format!("{value:.0}")))
    }

    /// Whether this text was said.
    pub(super) fn text(&self, text: &str) -> bool {
        let tokens = tokens(text);
        let squeezed: String = tokens.concat();
        if squeezed.is_empty() || self.contains(&squeezed) {
            return true;
        }
        let (figures, words): (Vec<&String>, Vec<&String>) =
            tokens.iter().partition(|token| is_figure(token));
        if !self.figures(&figures) {
            return false;
        }
        let words: Vec<_> = words.into_iter().filter(|word| !FILLERS.contains(&word.as_str())).collect();
        let known = words.iter().filter(|word| self.word(word)).count();
        let is_exact = words.len() <= MOST_OF_A_NAME || text.contains('@');
        if is_exact { known == words.len() } else { known * 5 >= words.len() * 3 }
    }

    /// Whether these letters stand one after the other in what was said; short ones only as a word of their own.
    fn contains(&self, squeezed: &str) -> bool {
        let is_short = squeezed.chars().count() < 4 && squeezed.is_ascii();
        if is_short || squeezed.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.words.contains(squeezed) || self.spelled.contains(squeezed);
        }
        self.joined.iter().any(|joined| joined.contains(squeezed))
    }

    fn figures(&self, figures: &[&String]) -> bool {
        let digits_of = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
        let all: String = figures.iter().map(|figure| digits_of(figure)).collect();
        // A country code is often added by the model, and rightly.
        let local = all.len().checked_sub(7).filter(|cut| *cut <= 3).and_then(|cut| all.get(cut..));
        let is_said = |digits: &str| digits.len() >= 3 && self.digits.contains(digits);
        is_said(&all)
            || local.is_some_and(is_said)
            || figures.iter().all(|figure| {
                is_said(&digits_of(figure)) || values(figure).iter().any(|value| self.numbers.contains(value))
            })
    }

    fn word(&self, word: &str) -> bool {
        let full = match word {
            "dr" => "doctor",
            "st" => "street",
            "prof" => "professor",
            word => word,
        };
        self.words.contains(word) || self.words.contains(full) || self.contains(full) || self.resembles(full)
    }

    /// Recogniser and model spell names differently by a letter or two, and words take endings.
    fn resembles(&self, word: &str) -> bool {
        let length = word.chars().count();
        let slack = match length {
            0..=3 => return false,
            4..=7 => 1,
            _ => 2,
        };
        // Longer ones are no words, and comparing them takes its time.
        length <= 40 && self.words.iter().any(|said| is_within(word, said, slack))
    }

    /// Whether the caller named this month or none.
    pub(super) fn allows_month(&self, month: u8) -> bool {
        self.months.is_empty() || self.months.contains(&month)
    }

    /// Whether the day's weekday was said.
    pub(super) fn weekday(&self, day: Day) -> bool {
        self.weekdays.contains(&day.weekday())
    }

    /// Whether a word like "tomorrow" may mean this day.
    pub(super) fn relative_day(&self, day: Day, today: Option<Day>) -> bool {
        let is_near = match today {
            Some(today) => self.near.contains(&(day.number() - today.number())),
            None => !self.near.is_empty(),
        };
        is_near || self.is_loose
    }

    /// Whether this time was said, before or after noon.
    pub(super) fn clock(&self, clock: Clock) -> bool {
        self.clocks.iter().any(|(hour, minute)| hour % 12 == clock.hour % 12 && *minute == clock.minute)
    }
}

/// Lower case, accents off, cut at everything that is no letter or digit and between letters and digits; a figure
/// keeps the points, commas and colons within it.
fn tokens(text: &str) -> Vec<String> {
    let folded: Vec<char> =
        text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect();
    let mut tokens: Vec<String> = Vec::new();
    let mut before = ' ';
    for (at, &c) in folded.iter().enumerate() {
        let next_is_digit = folded.get(at + 1).is_some_and(char::is_ascii_digit);
        let is_inner = before.is_ascii_digit() && matches!(c, '.' | ',' | ':') && next_is_digit;
        let was_inner = matches!(before, '.' | ',' | ':')
            && c.is_ascii_digit()
            && tokens.last().is_some_and(|token| token.ends_with(before));
        let continues = is_inner
            || was_inner
            || (before.is_alphanumeric() && before.is_ascii_digit() == c.is_ascii_digit());
        if c.is_alphanumeric() || is_inner {
            match tokens.last_mut() {
                Some(token) if continues => token.push(c),
                _ => tokens.push(c.to_string()),
            }
        }
        before = c;
    }
    tokens.iter_mut().filter(|token| token.contains('ß')).for_each(|token| *token = token.replace('ß', "ss"));
    tokens
}

fn is_figure(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit())
}

/// What a figure may mean, in thousandths: "1,250" is a thousand and some, or one and a quarter.
fn values(figure: &str) -> Vec<i64> {
    if figure.contains(':') {
        return Vec::new();
    }
    let digits: String = figure.chars().filter(char::is_ascii_digit).collect();
    let whole = digits.parse::<i64>().ok().and_then(|value| value.checked_mul(1000));
    let Some((before, after)) = figure.rsplit_once(['.', ',']) else { return whole.into_iter().collect() };
    let before: String = before.chars().filter(char::is_ascii_digit).collect();
    let thousandths = format!("{after:0<3}").get(..3).and_then(|after| after.parse::<i64>().ok());
    let fraction =
        before.parse::<i64>().ok().and_then(|value| value.checked_mul(1000)?.checked_add(thousandths?));
    let is_mixed = figure.contains('.') && figure.contains(',');
    let is_grouped = after.len() == 3 && !is_mixed;
    // "12.11." is a day and a month.
    let is_date = !figure.contains(',') && figure.split('.').all(|part| part.len() <= 2);
    let parts = figure.split('.').filter(|_| is_date);
    let parts = parts.filter_map(|part| part.parse::<i64>().ok()).map(|part| part * 1000);
    fraction.into_iter().chain(whole.filter(|_| is_grouped)).chain(parts).collect()
}

/// The numbers in an utterance, in order.
fn groups(tokens: &[String]) -> Vec<Group> {
    let parts: Vec<Option<Part>> = tokens.iter().map(|token| part(token)).collect();
    let is_digitlike = |at: Option<usize>| {
        at.and_then(|at| tokens.get(at)).is_some_and(|token| is_figure(token) || part(token).is_some())
    };
    let (mut groups, mut at) = (Vec::new(), 0);
    while let Some(token) = tokens.get(at) {
        let times = match token.as_str() {
            "double" | "doppel" | "doble" => 2,
            "triple" | "dreifach" => 3,
            _ => 1,
        };
        let is_oh = matches!(token.as_str(), "oh" | "o")
            && (is_digitlike(at.checked_sub(1)) || is_digitlike(Some(at + 1)));
        let taken = if times > 1 && is_digitlike(Some(at + 1)) {
            repeated(tokens, at, times, &mut groups)
        } else if is_oh {
            groups.push(Group { digits: "0".to_owned(), thousandths: 0, span: (at, at + 1) });
            1
        } else if is_figure(token) {
            figure(tokens, at, parts.get(at + 1).copied().flatten(), &mut groups)
        } else {
            words(tokens, &parts, at, &mut groups)
        };
        at += taken.max(1);
    }
    groups
}

/// "Double nine".
fn repeated(tokens: &[String], at: usize, times: usize, groups: &mut Vec<Group>) -> usize {
    let mut one = Vec::new();
    let next = tokens.get(at + 1..at + 2).unwrap_or_default();
    one.extend(self::groups(next));
    for group in one {
        let digits = group.digits.repeat(times);
        let thousandths = digits.parse::<i64>().ok().and_then(|value| value.checked_mul(1000)).unwrap_or(0);
        groups.push(Group { digits, thousandths, span: (at, at + 2) });
    }
    2
}

/// "12", "1,250.75", "5 thousand".
fn figure(tokens: &[String], at: usize, next: Option<Part>, groups: &mut Vec<Group>) -> usize {
    let Some(figure) = tokens.get(at) else { return 1 };
    let digits: String = figure.chars().filter(char::is_ascii_digit).collect();
    let values = values(figure);
    let factor = match next {
        Some(Part::Times(factor)) => i64::try_from(factor).ok(),
        _ => None,
    };
    if let Some(factor) = factor {
        let thousandths = values.first().and_then(|value| value.checked_mul(factor)).unwrap_or(0);
        groups.push(Group { digits: (thousandths / 1000).to_string(), thousandths, span: (at, at + 2) });
        return 2;
    }
    for (n, thousandths) in values.iter().enumerate() {
        // Its digits count once.
        let digits = if n == 0 { digits.clone() } else { String::new() };
        groups.push(Group { digits, thousandths: *thousandths, span: (at, at + 1) });
    }
    1
}

/// "Two hundred and fifty", "three point five", "half a dozen".
fn words(tokens: &[String], parts: &[Option<Part>], at: usize, groups: &mut Vec<Group>) -> usize {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token == word);
    if is(at, "half") && is(at + 1, "a") && is(at + 2, "dozen") {
        groups.push(Group { digits: "6".to_owned(), thousandths: 6000, span: (at, at + 3) });
        return 3;
    }
    // An "and" within a number follows a hundred or a thousand.
    let (mut run, mut places) = (Vec::new(), Vec::new());
    for place in at..tokens.len().min(at + MOST_JOINED) {
        let is_and = (is(place, "and") || is(place, "und")) && matches!(run.last(), Some(Part::Times(_)));
        match parts.get(place).copied().flatten() {
            Some(part) => {
                run.push(part);
                places.push(place + 1);
            }
            None if is_and => {}
            None => break,
        }
    }
    let Some((value, taken)) = longest(&run) else { return 1 };
    let end = places.get(taken - 1).copied().unwrap_or(at + 1);
    let whole = i64::try_from(value).ok().and_then(|value| value.checked_mul(1000)).unwrap_or(i64::MAX);
    if ["point", "komma", "coma", "virgule", "punto"].iter().any(|word| is(end, word)) {
        let after = longest(
            &parts.get(end + 1..).unwrap_or_default().iter().map_while(|part| *part).collect::<Vec<_>>(),
        );
        if let Some((after, more)) = after.filter(|(after, _)| *after < 1000) {
            let thousandths = format!("{:0<3}", after.to_string()).parse::<i64>().unwrap_or(0);
            let thousandths = whole.saturating_add(thousandths);
            groups.push(Group { digits: format!("{value}{after}"), thousandths, span: (at, end + 1 + more) });
            return end + 1 + more - at;
        }
    }
    groups.push(Group { digits: value.to_string(), thousandths: whole, span: (at, end) });
    end - at
}

/// The minutes named just before the word at `at`.
fn minutes_before(tokens: &[String], groups: &[Group], at: usize) -> Option<u8> {
    let word = tokens.get(at.checked_sub(1)?)?;
    match word.as_str() {
        "half" => return Some(30),
        "quarter" | "viertel" => return Some(15),
        "minutes" | "minuten" => return minutes_before(tokens, groups, at - 1),
        _ => {}
    }
    let group = groups.get(groups.partition_point(|group| group.span.1 < at))?;
    u8::try_from(group.thousandths / 1000).ok().filter(|minute| *minute < 60 && group.span.1 == at)
}

/// The hour before this one, on a twelve-hour clock as on the other.
fn before(hour: u8) -> u8 {
    (hour + 23) % 24
}

fn place_of(names: &[&str], token: &str) -> Option<u8> {
    let place = names.iter().position(|names| names.split(' ').any(|name| name == token))?;
    u8::try_from(place).ok()
}

/// The letter or the digits that a token stands for when somebody spells.
fn letter(token: &str) -> Option<String> {
    if token.chars().count() == 1 || is_figure(token) {
        return Some(token.chars().filter(|c| c.is_alphanumeric()).collect());
    }
    if ALPHABET.contains(&token) {
        return token.chars().next().map(String::from);
    }
    match part(token)? {
        Part::Unit(value) | Part::Teen(value) | Part::Ten(value) | Part::Whole(value) => {
            Some(value.to_string())
        }
        Part::Times(_) => None,
    }
}

/// How many tokens explain the letter before them: "as in Bravo", "for Bravo", "wie Berta", "-ray".
fn explanation(letter: &str, rest: &[String]) -> usize {
    let rest: Vec<&str> = rest.iter().take(3).map(String::as_str).collect();
    match rest[..] {
        ["as", "in", word] if word.starts_with(letter) => 3,
        ["for" | "like" | "wie" | "comme" | "de", word, ..] if word.starts_with(letter) => 2,
        ["ray", ..] if letter == "x" => 1,
        _ => 0,
    }
}

/// Whether two words differ by at most `slack` letters, or one is the other with an ending.
fn is_within(word: &str, said: &str, slack: usize) -> bool {
    let (word, said): (Vec<char>, Vec<char>) = (word.chars().collect(), said.chars().take(48).collect());
    if word.first() != said.first() {
        return false;
    }
    let shorter = word.len().min(said.len());
    let is_stem = shorter >= 5 && word.len().abs_diff(said.len()) <= 3 && word[..shorter] == said[..shorter];
    is_stem || (word.len().abs_diff(said.len()) <= slack && distance(&word, &said) <= slack)
}

/// Letters to insert, remove or replace.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_folded_and_cut_where_letters_meet_digits() {
        let cut = |text: &str| tokens(text).join(" ");
        assert_eq!(cut("It's Zoë's 12th, at 3:30 pm."), "it s zoe s 12 th at 3:30 pm");
        assert_eq!(cut("1,250.75€, B74X; Straße"), "1,250.75 b 74 x strasse");
        assert_eq!(cut("12, 13."), "12 13");
    }

    #[test]
    fn figures_mean_what_they_may() {
        assert_eq!(values("1,250.75"), [1_250_750]);
        assert_eq!(values("1.250"), [1250, 1_250_000]);
        assert_eq!(values("3,5"), [3500]);
        assert_eq!(values("12.11"), [12_110, 12_000, 11_000]);
        assert_eq!(values("99999999999999999999"), [0_i64; 0]);
    }

    #[test]
    fn distances_are_those_of_the_textbook() {
        let letters = |word: &str| word.chars().collect::<Vec<_>>();
        for (a, b, expected) in
            [("kitten", "sitting", 3), ("schmidt", "schmid", 1), ("", "abc", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(&letters(a), &letters(b)), expected, "{a} {b}");
        }
    }
}
