//! Values in words: numbers, times, dates, spelled letters; and whether a reply's values are those of the question.

use alloc::string::String;
use alloc::vec::Vec;

use super::clock::{self, Clock};
use super::lexicon::Language;
use super::number::{Number, number};
use super::text::{Token, is_one_of, matches};

/// Half of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Am,
    Pm,
}

/// One reading of some words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A number or a run of figures. `spelled`: said figure by figure, so that a part of it may be repeated.
    Figures { figures: String, spelled: bool },
    /// A day of the month, a place in a row.
    Ordinal(u64),
    /// A time of day.
    Time(Clock),
    /// A part of the day.
    Part(Half),
    /// A sum of money: figures and currency.
    Money { figures: String, currency: u8 },
    /// A weekday from Monday (0).
    Weekday(u8),
    /// A month from January (0).
    Month(u8),
    /// A day relative to this one, as counted from today; 9 is "now".
    Relative(i8),
    /// Spelled letters and figures: "b m k".
    Letters(String),
}

/// Words that hold a value: readings of which one must be known, each of them a set that must be known as a whole.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) readings: Vec<Vec<Value>>,
    pub(super) next: usize,
}

impl Found {
    fn one(value: Value, next: usize) -> Self {
        Self { readings: Vec::from([Vec::from([value])]), next }
    }
}

/// What the question and the input say.
#[derive(Debug, Default)]
pub(super) struct Known {
    values: Vec<Value>,
    /// All words joined, for letters spelled from a name.
    words: Vec<String>,
    /// Values by the word before them.
    after: Vec<(String, Found)>,
}

impl Known {
    /// Reads one more text.
    pub(super) fn add(&mut self, language: Language, tokens: &[Token]) {
        let mut at = 0;
        while at < tokens.len() {
            let text = &tokens[at].text;
            self.words
                .extend(text.split(['@', '.', '_', '-', '+']).filter(|w| w.len() > 1).map(String::from));
            let Some(found) = find(language, tokens, at) else {
                at += 1;
                continue;
            };
            let next = found.next.max(at + 1);
            self.values.extend(found.readings.iter().flatten().cloned());
            if at > 0 && !tokens[at].starts_clause {
                self.after.push((tokens[at - 1].text.clone(), found));
            }
            at = next;
        }
    }

    /// Whether one reading of the words is known.
    pub(super) fn covers(&self, found: &Found) -> bool {
        found.readings.iter().any(|reading| reading.iter().all(|value| self.has(value)))
    }

    /// Whether the words may stand behind `word`: they may unless the question has only other values of their kind
    /// there ("cancel Friday and book Monday" against "cancel Monday").
    pub(super) fn fits_after(&self, word: &str, found: &Found) -> bool {
        let kind =
            |found: &Found| found.readings.first().and_then(|r| r.first()).map(core::mem::discriminant);
        let same = |(before, other): &&(String, Found)| before == word && kind(other) == kind(found);
        let same: Vec<&Found> = self.after.iter().filter(same).map(|(_, found)| found).collect();
        if same.is_empty() {
            return true;
        }
        let values = same.into_iter().flat_map(|f| f.readings.iter().flatten().cloned()).collect();
        Self { values, ..Self::default() }.covers(found)
    }

    fn has(&self, value: &Value) -> bool {
        let any = |test: &dyn Fn(&Value) -> bool| self.values.iter().any(test);
        match value {
            Value::Figures { figures, spelled } => self.has_figures(figures, *spelled),
            Value::Ordinal(n) => {
                any(&|v| v == value)
                    || !any(&|v| matches!(v, Value::Ordinal(_)))
                        && self.has_figures(&alloc::format!("{n}"), false)
            }
            Value::Time(clock) => {
                any(&|v| matches!(v, Value::Time(known) if known.covers(*clock)))
                    || !any(&|v| matches!(v, Value::Time(_)))
                        && clock.minute == 0
                        && self.has_figures(&alloc::format!("{}", clock.hour), false)
            }
            Value::Part(half) => self.has_half(*half),
            Value::Money { figures, currency } => {
                let said = |v: &Value| matches!(v, Value::Money { figures: known, currency: other } if same(known, figures) && other == currency);
                any(&said) || !any(&|v| matches!(v, Value::Money { .. })) && self.has_figures(figures, false)
            }
            Value::Weekday(_) | Value::Month(_) | Value::Relative(_) => any(&|v| v == value),
            Value::Letters(letters) => {
                self.words.iter().any(|word| word.contains(letters.as_str()))
                    || any(&|v| matches!(v, Value::Letters(known) if known.contains(letters.as_str())))
            }
        }
    }

    /// A part of the day is known only if the question or the input says it, or has a time that does: to a time that
    /// leaves it open, "in the evening" adds something.
    fn has_half(&self, half: Half) -> bool {
        self.values.iter().any(|known| {
            *known == Value::Part(half) || matches!(known, Value::Time(clock) if clock.half == Some(half))
        })
    }

    /// Whether a sum of money is among the values.
    pub(super) fn has_money(&self) -> bool {
        self.values.iter().any(|known| matches!(known, Value::Money { .. }))
    }

    /// A bare number may be any number of the question, an hour on the hour, a day, or part of a spelled number.
    fn has_figures(&self, figures: &str, spelled: bool) -> bool {
        self.values.iter().any(|known| match known {
            Value::Figures { figures: known, spelled: whole } => {
                same(known, figures)
                    || spelled
                        && figures.len() >= 4
                        && known.bytes().all(|digit| digit.is_ascii_digit())
                        && (*whole || known.len() >= 6)
                        && known.contains(figures)
            }
            Value::Money { figures: known, .. } => same(known, figures),
            Value::Ordinal(n) => figures.parse() == Ok(*n),
            Value::Time(clock) => {
                clock.minute == 0
                    && figures
                        .parse()
                        .is_ok_and(|n: u8| Clock::from_24(n, 0).is_some_and(|c| clock.covers(c)))
            }
            Value::Part(_) | Value::Weekday(_) | Value::Month(_) | Value::Relative(_) | Value::Letters(_) => {
                false
            }
        })
    }
}

/// "15.50" is also said "fifteen fifty".
fn same(known: &str, said: &str) -> bool {
    let bare = |text: &str| text.trim_start_matches('0').len();
    let padded = known.len().max(said.len()) == 2
        && known.ends_with(&said[said.len() - bare(said)..])
        && bare(known) == bare(said);
    known == said || padded || known.contains('.') && known.chars().filter(|c| *c != '.').eq(said.chars())
}

/// The value that begins at `at`.
pub(super) fn find(language: Language, tokens: &[Token], at: usize) -> Option<Found> {
    if let Some((clock, next)) = clock::time(language, tokens, at) {
        return Some(Found::one(Value::Time(clock), next));
    }
    if let Some((half, next)) = clock::part_of_day(language, tokens, at) {
        return Some(Found::one(Value::Part(half), next));
    }
    if let Some(found) = named_date(language, tokens, at) {
        return Some(found);
    }
    if let Some(found) = money_first(language, tokens, at) {
        return Some(found);
    }
    run(language, tokens, at).or_else(|| letters(tokens, at, language))
}

/// "€5" and "$ 15.50".
fn money_first(language: Language, tokens: &[Token], at: usize) -> Option<Found> {
    let symbol = tokens.get(at).filter(|t| t.text.chars().all(|c| !c.is_alphanumeric()))?;
    let currency = currency(&symbol.text)?;
    let number = number(language, tokens, at + 1)?;
    Some(Found::one(Value::Money { figures: number.figures, currency }, number.next))
}

/// One number, or several in a row: figures of a telephone number, a clock time without a word for it.
fn run(language: Language, tokens: &[Token], at: usize) -> Option<Found> {
    let first = figure_or_number(language, tokens, at)?;
    if first.ordinal {
        let ordinal = first.value.map(Value::Ordinal)?;
        return Some(Found::one(ordinal, first.next));
    }
    if let Some(found) = money(language, tokens, &first) {
        return Some(found);
    }
    let mut numbers = Vec::from([first]);
    while let Some(more) = numbers.last().and_then(|last| figure_or_number(language, tokens, last.next)) {
        let begins = numbers.last().map_or(at, |last| last.next);
        let time = tokens[begins].starts_clause && clock::time(language, tokens, begins).is_some();
        if time || more.ordinal || numbers.len() > 40 {
            break;
        }
        numbers.push(more);
    }
    let next = numbers.last().map_or(at + 1, |last| last.next);
    if let [only] = numbers.as_slice() {
        let spelled = only.figures.len() >= 3;
        return Some(Found::one(Value::Figures { figures: only.figures.clone(), spelled }, next));
    }
    Some(Found { readings: run_readings(&numbers), next })
}

fn run_readings(numbers: &[Number]) -> Vec<Vec<Value>> {
    let joined: String = numbers.iter().map(|n| n.figures.as_str()).collect();
    let mut readings = Vec::from([Vec::from([Value::Figures { figures: joined, spelled: true }])]);
    if let [hour, minute] = numbers
        && let Some(clock) = clock::bare(hour, minute)
    {
        readings.push(Vec::from([Value::Time(clock)]));
        return readings;
    }
    if !numbers.iter().all(Number::is_figure) {
        let each = numbers.iter().map(|n| Value::Figures { figures: n.figures.clone(), spelled: false });
        readings.push(each.collect());
    }
    readings
}

/// A number; within a run also "oh" for nought and "double four".
fn figure_or_number(language: Language, tokens: &[Token], at: usize) -> Option<Number> {
    let token = tokens.get(at)?;
    let nought = language == Language::En && matches!(token.text.as_str(), "o" | "oh");
    let near = |i: usize| number(language, tokens, i).is_some_and(|n| n.is_figure());
    if nought && at > 0 && near(at - 1) && near(at + 1) {
        return Some(Number { figures: String::from("0"), value: Some(0), next: at + 1, ordinal: false });
    }
    let times = match token.text.as_str() {
        "double" => 2,
        "triple" => 3,
        _ => return number(language, tokens, at),
    };
    let single = number(language, tokens, at + 1).filter(Number::is_figure)?;
    Some(Number { figures: single.figures.repeat(times), value: None, next: single.next, ordinal: false })
}

/// "fifteen euros", "fifteen euros fifty".
fn money(language: Language, tokens: &[Token], amount: &Number) -> Option<Found> {
    let mut word = amount.next;
    if tokens.get(word).is_some_and(|t| is_one_of(&t.text, "de")) {
        word += 1;
    }
    let currency = tokens.get(word).and_then(|t| currency_at(tokens, word, &t.text))?;
    let (currency, mut next) = currency;
    let mut figures = amount.figures.clone();
    if let Some(cents) = number(language, tokens, next)
        .filter(|n| !n.ordinal && n.value.is_some_and(|v| (10..100).contains(&v)))
        && !tokens[next].starts_clause
        && !figures.contains('.')
    {
        figures = alloc::format!("{figures}.{}", cents.figures);
        next = cents.next;
    }
    Some(Found::one(Value::Money { figures, currency }, next))
}

fn currency_at(tokens: &[Token], at: usize, word: &str) -> Option<(u8, usize)> {
    if matches(tokens, at, "रुपये") > 0 {
        return Some((4, at + 1));
    }
    currency(word).map(|code| (code, at + 1))
}

/// A code per currency; names of several languages.
pub(super) fn currency(word: &str) -> Option<u8> {
    let names = [
        "euro|euros|eur|€|ユ",
        "dollar|dollars|usd|$|bucks|buck|dolar|dolares|डॉलर",
        "pound|pounds|quid|gbp|£|pfund|libra|libras|livre|livres|पाउंड",
        "yen|jpy|¥|円|येन",
        "rupee|rupees|inr|₹|रुपये|रुपए|रुपया|रुपयों|रूपये",
        "real|reais|brl",
        "peso|pesos|mxn",
        "franc|francs|chf|franken",
        "cent|cents|centimos|centimes|centavos|pence|पैसे",
        "percent|%|prozent|por ciento|प्रतिशत",
    ];
    let found = names.iter().position(|names| is_one_of(word, names))?;
    u8::try_from(found).ok()
}

/// Single letters said one after the other, with figures among them: "B M K 4".
fn letters(tokens: &[Token], at: usize, language: Language) -> Option<Found> {
    let functional = match language {
        Language::En => "a|i|s|d|m",
        Language::Es | Language::Pt => "a|e|o|y|u",
        Language::Fr => "a|y",
        Language::De => "s",
        Language::Ja | Language::Hi => "",
    };
    let letter = |token: &Token| {
        let mut chars = token.text.chars();
        !token.elided && chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.next().is_none()
    };
    let run: Vec<&Token> = tokens[at..].iter().take_while(|t| letter(t)).collect();
    let meant = run.iter().filter(|t| !is_one_of(&t.text, functional)).count();
    if run.len() < 2 || meant < 2 {
        return None;
    }
    let joined: String = run.iter().map(|t| t.text.as_str()).collect();
    Some(Found::one(Value::Letters(joined), at + run.len()))
}

/// Weekdays, months and days counted from today.
fn named_date(language: Language, tokens: &[Token], at: usize) -> Option<Found> {
    let (weekdays, months, relative) = clock::names(language);
    let place = |list: &str| {
        let longest = |names: &str| names.split('/').map(|name| matches(tokens, at, name)).max().unwrap_or(0);
        list.split('|')
            .enumerate()
            .map(|(i, names)| (longest(names), i))
            .filter(|(len, _)| *len > 0)
            .max_by_key(|(len, _)| *len)
    };
    if let Some((len, day)) = place(weekdays) {
        return Some(Found::one(Value::Weekday(u8::try_from(day).ok()?), at + len));
    }
    if let Some((len, month)) = place(months) {
        return Some(Found::one(Value::Month(u8::try_from(month).ok()?), at + len));
    }
    if language == Language::Ja
        && let Some(month) = number(language, tokens, at)
        && tokens.get(month.next).is_some_and(|t| t.text == "月")
        && let Some(1..=12) = month.value
    {
        let place = u8::try_from(month.value?).ok()? - 1;
        return Some(Found::one(Value::Month(place), month.next + 1));
    }
    let (len, day) = place(relative)?;
    Some(Found::one(Value::Relative(i8::try_from(day).ok()?), at + len))
}
