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

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) readings: Vec<Vec<Value>>,
}

impl Span {
    /// Its first reading's first value.
    pub(super) fn value(&self) -> Option<&Value> {
        self.readings.first().and_then(|reading| reading.first())
    }

    /// What kind of value it is.
    pub(super) fn kind(&self) -> Option<core::mem::Discriminant<Value>> {
        self.value().map(core::mem::discriminant)
    }

    /// Whether `said` repeats it.
    pub(super) fn covers(&self, said: &Self) -> bool {
        let values = self.readings.iter().flatten().cloned().collect();
        let found = Found { readings: said.readings.clone(), next: said.end };
        Known { values, ..Known::default() }.covers(&found)
    }

    /// As it would be typed, if it is figures or letters.
    pub(super) fn typed(&self) -> Option<String> {
        let (Value::Figures { figures: typed, .. } | Value::Letters(typed)) = self.value()? else {
            return None;
        };
        Some(typed.clone())
    }
}

/// The values of a text, in order.
pub(super) fn spans(language: Language, tokens: &[Token]) -> Vec<Span> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some(found) = find(language, tokens, at) else {
            at += 1;
            continue;
        };
        let end = found.next.max(at + 1);
        out.push(Span { start: at, end, readings: found.readings });
        at = end;
    }
    out
}

/// What the question and the input say.
#[derive(Debug, Default)]
pub(super) struct Known {
    values: Vec<Value>,
    /// Runs of figures, and where in them a group begins or ends.
    runs: Vec<(String, Vec<usize>)>,
    /// All words joined, for letters spelled from a name.
    words: Vec<String>,
    /// Values by the word before them.
    after: Vec<(String, Found)>,
}

impl Known {
    /// Reads one more text.
    pub(super) fn add(&mut self, language: Language, tokens: &[Token]) {
        for token in tokens {
            let parts = token.text.split(['@', '.', '_', '-', '+']).filter(|w| w.len() > 1);
            self.words.extend(parts.map(String::from));
        }
        for pair in tokens.windows(2) {
            self.words.push(pair.iter().map(|t| t.text.as_str()).collect());
        }
        let spans = spans(language, tokens);
        for span in &spans {
            self.values.extend(span.readings.iter().flatten().cloned());
            if let Some(Value::Figures { figures, .. }) = span.value() {
                self.runs.push((figures.clone(), joints(language, tokens, span)));
            }
            let lead = super::pairs::lead(tokens, &spans, span.start);
            if !lead.is_empty() {
                let found = Found { readings: span.readings.clone(), next: span.end };
                self.after.push((String::from(lead), found));
            }
        }
    }

    /// Whether letters were spelled that make up this word: a recogniser may write them as one.
    pub(super) fn spells(&self, word: &str) -> bool {
        self.values.iter().any(|value| matches!(value, Value::Letters(letters) if letters == word))
    }

    /// Whether a run of figures ends in these.
    pub(super) fn ends_in(&self, found: &Found) -> bool {
        let mut figures = found.readings.iter().flatten().filter_map(|value| {
            if let Value::Figures { figures, .. } = value { Some(figures) } else { None }
        });
        figures.next().is_some_and(|said| {
            said.len() > 1 && self.runs.iter().any(|(run, _)| run.ends_with(said.as_str()))
        })
    }

    /// A part of a longer run: whole groups of it, or its last four figures.
    fn has_part(&self, part: &str) -> bool {
        part.len() >= 4
            && self.runs.iter().filter(|(run, _)| run.bytes().all(|b| b.is_ascii_digit())).any(
                |(run, joints)| {
                    // The beginning of a number and more than its first group is a number that was cut off.
                    let begun = |at: usize| at == 0 && part.len() > 4;
                    let groups = |at: &usize| {
                        joints.contains(at) && joints.contains(&(at + part.len())) && !begun(*at)
                    };
                    let starts = (0..run.len()).filter(|at| run[*at..].starts_with(part));
                    part.len() == 4 && run.ends_with(part) || starts.into_iter().any(|at| groups(&at))
                },
            )
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
                        && any(&|v| matches!(v, Value::Figures { figures, .. } if figures.parse() == Ok(*n)))
            }
            Value::Time(clock) => {
                let parted = |half| any(&|v| *v == Value::Part(half));
                any(
                    &|v| matches!(v, Value::Time(known) if known.covers(*clock) || known.half.is_none() && clock.half.is_some_and(parted) && known.covers(Clock { half: None, ..*clock })),
                ) || !any(&|v| matches!(v, Value::Time(_)))
                    && clock.minute == 0
                    && self.has_figures(&alloc::format!("{}", clock.hour), false)
            }
            Value::Part(half) => self.has_half(*half),
            Value::Money { figures, currency } => {
                let said = |v: &Value| matches!(v, Value::Money { figures: known, currency: other } if same(known, figures) && other == currency);
                any(&said) || !any(&|v| matches!(v, Value::Money { .. })) && self.has_figures(figures, false)
            }
            Value::Weekday(_) | Value::Month(_) | Value::Relative(_) => any(&|v| v == value),
            Value::Letters(letters) => self.words.iter().any(|word| word == letters) || any(&|v| v == value),
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
                same(known, figures) || spelled && (*whole || known.len() >= 6) && self.has_part(figures)
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

/// Where in a run of figures a group begins or ends: at each number of several figures and at each pause.
fn joints(language: Language, tokens: &[Token], span: &Span) -> Vec<usize> {
    let mut out = Vec::from([0]);
    let (mut at, mut place, mut single) = (span.start, 0, true);
    while at < span.end {
        let Some(number) = figure_or_number(language, tokens, at) else { break };
        let alone = number.figures.len() == 1;
        if place > 0 && (tokens[at].starts_clause || !alone || !single) {
            out.push(place);
        }
        (at, place, single) = (number.next.max(at + 1), place + number.figures.len(), alone);
    }
    out.push(place);
    out
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
        let mut found = Found::one(Value::Time(clock), next);
        // "Seis con cincuenta" is a time or a price.
        let price = number(language, tokens, at)
            .filter(|_| language == Language::Es)
            .and_then(|whole| decimal(language, tokens, &whole))
            .filter(|price| price.next == next);
        if let Some(price) = price {
            found.readings.push(Vec::from([Value::Figures { figures: price.figures, spelled: false }]));
        }
        return Some(found);
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
    let first = decimal(language, tokens, &first).unwrap_or(first);
    if let Some(found) = money(language, tokens, &first) {
        return Some(found);
    }
    if let Some(day) = first.value.filter(|day| *day < 32 && is_day(language, tokens, at, &first)) {
        let next = first.next + usize::from(language == Language::Ja);
        return Some(Found::one(Value::Ordinal(day), next));
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

/// "Six point five", "seis con cincuenta": the mark between a whole number and its decimals as it is said.
fn decimal(language: Language, tokens: &[Token], whole: &Number) -> Option<Number> {
    let marks = match language {
        Language::En => "point",
        Language::De => "komma",
        Language::Es => "con|coma|punto",
        Language::Fr => "virgule",
        Language::Pt => "vírgula",
        Language::Ja => "点",
        Language::Hi => "दशमलव|पॉइंट",
    };
    let marked = tokens.get(whole.next).is_some_and(|t| !t.starts_clause && is_one_of(&t.text, marks));
    let mut decimals =
        number(language, tokens, whole.next + 1).filter(|n| marked && !n.ordinal && n.value.is_some())?;
    if decimals.is_figure()
        && let Some(second) = number(language, tokens, decimals.next).filter(Number::is_figure)
    {
        decimals.figures.push_str(&second.figures);
        decimals.next = second.next;
    }
    let fits = decimals.figures.len() <= 2 && !whole.figures.contains('.') && whole.value.is_some();
    let figures = alloc::format!("{}.{}", whole.figures, decimals.figures);
    fits.then_some(Number { figures, value: None, next: decimals.next, ordinal: false })
}

/// "Le quinze", "el quince", "15日": a day of the month, though no ordinal.
fn is_day(language: Language, tokens: &[Token], at: usize, number: &Number) -> bool {
    let after = tokens.get(number.next).filter(|t| !t.starts_clause).map_or("", |t| t.text.as_str());
    let before = if at > 0 && !tokens[at].starts_clause { tokens[at - 1].text.as_str() } else { "" };
    let (_, months, _) = clock::names(language);
    match language {
        Language::Fr => before == "le" && (after.is_empty() || is_one_of(after, &months.replace('/', "|"))),
        Language::Es => before == "el" && (after.is_empty() || after == "de"),
        Language::Ja => after == "日" && tokens.get(number.next + 1).is_none_or(|t| t.text != "間"),
        Language::En | Language::De | Language::Pt | Language::Hi => false,
    }
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
        // "On Thursdays" is every Thursday.
        let every = language == Language::En && tokens[at].text.ends_with('s');
        return Some(Found::one(
            Value::Weekday(u8::try_from(day).ok()? + if every { 7 } else { 0 }),
            at + len,
        ));
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
