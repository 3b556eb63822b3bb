//! A scenario as written: tables with the place of every key and value.
//!
//! Each key is fetched by name, and a table knows which names were asked for; what is left at the end is unknown and
//! refused. So the list of known keys and the code that reads them cannot drift apart.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, suggestion};
use super::numbers;

/// The text of a file, and the faults found in it so far.
pub(super) struct Source<'a> {
    path: &'a Path,
    text: &'a str,
    line_starts: Vec<usize>,
    faults: RefCell<Vec<Fault>>,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str, path: &'a Path) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(breaks).collect();
        Self { path, text, line_starts, faults: RefCell::default() }
    }

    /// Line of a byte offset, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    fn column(&self, offset: usize) -> usize {
        let start = self.line_starts[self.line(offset) - 1];
        let offset = offset.min(self.text.len());
        1 + self
            .text
            .char_indices()
            .skip_while(|(at, _)| *at < start)
            .take_while(|(at, _)| *at < offset)
            .count()
    }

    pub(super) fn fault(&self, span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        self.faults.borrow_mut().push(Fault {
            path: self.path.to_owned(),
            line: self.line(span.start),
            column: self.column(span.start),
            message: message.into(),
            hint: hint.into(),
        });
    }

    /// All faults, in the file's order.
    pub(super) fn into_faults(self) -> Vec<Fault> {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|fault| (fault.line, fault.column));
        faults.dedup();
        faults
    }
}

/// One table being read.
pub(super) struct Fields<'s, 't> {
    pub(super) source: &'s Source<'s>,
    table: &'t DeTable<'t>,
    /// Where it begins.
    pub(super) span: Range<usize>,
    title: String,
    known: RefCell<Vec<&'static str>>,
}

impl<'s, 't> Fields<'s, 't> {
    /// `title` is how messages call the table: `[[caller]]`.
    pub(super) fn new(
        source: &'s Source<'s>,
        table: &'t DeTable<'t>,
        span: Range<usize>,
        title: impl Into<String>,
    ) -> Self {
        Self { source, table, span, title: title.into(), known: RefCell::default() }
    }

    pub(super) fn line(&self) -> usize {
        self.source.line(self.span.start)
    }

    pub(super) fn column(&self) -> usize {
        self.source.column(self.span.start)
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// The value of `key`, if it is written.
    pub(super) fn value(&self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        let mut known = self.known.borrow_mut();
        if !known.contains(&key) {
            known.push(key);
        }
        self.table.get(key)
    }

    pub(super) fn has(&self, key: &'static str) -> bool {
        self.value(key).is_some()
    }

    /// A value of the type that `pick` takes out of it; else a fault that says what was `wanted`.
    fn typed<T>(
        &self,
        key: &'static str,
        wanted: &str,
        pick: impl FnOnce(&'t DeValue<'t>) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let picked = pick(value.get_ref());
        if picked.is_none() {
            let kind = value.get_ref().type_str();
            let message = format!("`{key}` is {} {kind}, expected {wanted}", article(kind));
            self.source.fault(value.span(), message, example(wanted));
        }
        picked
    }

    pub(super) fn string(&self, key: &'static str) -> Option<&'t str> {
        self.typed(key, "a string", DeValue::as_str)
    }

    pub(super) fn flag(&self, key: &'static str) -> bool {
        self.typed(key, "true or false", DeValue::as_bool).unwrap_or(false)
    }

    pub(super) fn whole(&self, key: &'static str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let number = self.typed(key, "a whole number", |value| value.as_integer().map(integer))?;
        let fits = number.as_ref().and_then(Number::as_u64).and_then(|n| u32::try_from(n).ok());
        let fits = fits.filter(|n| range.contains(n));
        if fits.is_none() {
            let span = self.value(key)?.span();
            let hint = format!("from {} to {}", range.start(), range.end());
            self.source.fault(span, format!("`{key}` is out of range"), hint);
        }
        fits
    }

    pub(super) fn duration(&self, key: &'static str) -> Option<Duration> {
        let text = self.typed(key, "a duration", DeValue::as_str)?;
        let duration = numbers::duration(text);
        if duration.is_none() {
            let what = if numbers::is_too_long(text) { "longer than a day" } else { "no duration" };
            self.bad(key, format!("`{key}` = `{text}` is {what}"), example("a duration"));
        }
        duration
    }

    /// One of a list of words.
    pub(super) fn choice<T: Copy>(&self, key: &'static str, choices: &[(&'static str, T)]) -> Option<T> {
        let word = self.string(key)?;
        let found = choices.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        if found.is_none() {
            let names = choices.iter().map(|(name, _)| *name);
            self.bad(key, format!("`{word}` is no {key}"), suggestion(word, names));
        }
        found
    }

    /// A fault at the value of `key`, or at the table if the key is absent.
    pub(super) fn bad(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) {
        let span = self.table.get(key).map_or(self.span.clone(), Spanned::span);
        self.source.fault(span, message, hint);
    }

    /// Line and column of the value of `key`, or of the table if the key is absent.
    pub(super) fn place(&self, key: &str) -> (usize, usize) {
        let span = self.table.get(key).map_or(self.span.clone(), Spanned::span);
        (self.source.line(span.start), self.source.column(span.start))
    }

    /// A required string; its absence is a fault.
    pub(super) fn required(&self, key: &'static str, hint: &str) -> Option<&'t str> {
        if !self.has(key) {
            self.bad(key, format!("{} has no `{key}`", self.title), hint);
        }
        self.string(key)
    }

    /// A table below this one.
    pub(super) fn table(&self, key: &'static str) -> Option<Fields<'s, 't>> {
        let table = self.typed(key, "a table", DeValue::as_table)?;
        let span = self.value(key)?.span();
        Some(Fields::new(self.source, table, span, format!("[{key}]")))
    }

    /// A list of tables: `[[key]]`.
    pub(super) fn tables(&self, key: &'static str) -> Vec<Fields<'s, 't>> {
        let Some(array) = self.typed(key, "a list of tables", DeValue::as_array) else { return Vec::new() };
        let mut tables = Vec::new();
        for item in array.iter() {
            match item.get_ref().as_table() {
                Some(table) => {
                    tables.push(Fields::new(self.source, table, item.span(), format!("[[{key}]]")));
                }
                None => {
                    self.source.fault(
                        item.span(),
                        format!("[[{key}]] is no table"),
                        example("a list of tables"),
                    );
                }
            }
        }
        tables
    }

    /// The keys that nobody asked for, in the file's order.
    pub(super) fn rest(&self) -> Vec<(&'t Spanned<std::borrow::Cow<'t, str>>, &'t Spanned<DeValue<'t>>)> {
        let known = self.known.borrow();
        let mut rest: Vec<_> = self
            .table
            .iter()
            .filter(|(key, _)| !known.iter().any(|k| *k == key.get_ref().as_ref()))
            .collect();
        rest.sort_by_key(|(key, _)| key.span().start);
        rest
    }

    /// Refuses every key that nobody asked for.
    pub(super) fn finish(&self) {
        let known = self.known.borrow().clone();
        for (key, _) in self.rest() {
            let name = key.get_ref().as_ref();
            let hint = suggestion(name, known.iter().copied());
            self.source.fault(key.span(), format!("{} has no key `{name}`", self.title), hint);
        }
    }
}

/// The same value as JSON, keys in the file's order. Faults: numbers that JSON cannot hold.
pub(super) fn json(source: &Source<'_>, value: &Spanned<DeValue<'_>>) -> Value {
    let number = |number: Option<Number>| {
        number.map_or_else(
            || {
                source.fault(value.span(), "a number that JSON cannot hold", "write it as a string");
                Value::Null
            },
            Value::Number,
        )
    };
    match value.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(digits) => number(integer(digits)),
        DeValue::Float(digits) => number(digits.as_str().parse().ok().and_then(Number::from_f64)),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(datetime) => Value::String(datetime.to_string()),
        DeValue::Array(items) => items.iter().map(|item| json(source, item)).collect(),
        DeValue::Table(table) => {
            let mut entries: Vec<_> = table.iter().collect();
            entries.sort_by_key(|(key, _)| key.span().start);
            let entries =
                entries.into_iter().map(|(key, item)| (key.get_ref().to_string(), json(source, item)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}

fn integer(digits: &toml::de::DeInteger<'_>) -> Option<Number> {
    let (text, radix) = (digits.as_str(), digits.radix());
    let signed = i64::from_str_radix(text, radix).ok().map(Number::from);
    signed.or_else(|| u64::from_str_radix(text, radix).ok().map(Number::from))
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

fn example(wanted: &str) -> &'static str {
    match wanted {
        "a duration" => "write a number with its unit, in quotes: \"400ms\", \"1.2s\", \"1m30s\"",
        "a string" => "put it in quotes",
        "true or false" => "without quotes",
        "a list of tables" => "begin each entry with its name in double brackets",
        _ => "",
    }
}
