//! The first level of an agent file: TOML with places, read key by key.
//!
//! Serde stops at the first fault, and an author wants all of them: so the tables are walked by hand. A key that is
//! asked for is known; what is left over at [`Section::finish`] is refused, with the nearest known key as a hint.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sayback_runtime::fault::nearest;
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::duration::parse_duration;
use crate::error::Fault;

/// One file being read, and the faults found so far.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    path: PathBuf,
    text: &'a str,
    faults: RefCell<Vec<Fault>>,
}

/// A table being read.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    reader: &'a Reader<'a>,
    table: &'a DeTable<'a>,
    name: String,
    span: Range<usize>,
    known: RefCell<Vec<&'static str>>,
}

/// A value with its place.
pub(crate) type Node<'a> = &'a Spanned<DeValue<'a>>;

impl<'a> Reader<'a> {
    pub(crate) fn new(path: &Path, text: &'a str) -> Self {
        Self { path: path.to_owned(), text, faults: RefCell::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn root(&'a self, table: &'a DeTable<'a>) -> Section<'a> {
        self.section(table, String::new(), 0..0)
    }

    pub(crate) fn section(&'a self, table: &'a DeTable<'a>, name: String, span: Range<usize>) -> Section<'a> {
        Section { reader: self, table, name, span, known: RefCell::default() }
    }

    pub(crate) fn fault(&self, span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        let (line, column) = self.place(span.start);
        let fault =
            Fault { path: self.path.clone(), line, column, message: message.into(), hint: hint.into() };
        let mut faults = self.faults.borrow_mut();
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }

    /// A fault in another file that this one names.
    pub(crate) fn fault_in(&self, fault: Fault) {
        self.faults.borrow_mut().push(fault);
    }

    /// Line and column of a byte offset.
    pub(crate) fn place(&self, offset: usize) -> (usize, usize) {
        place(self.text, offset)
    }

    pub(crate) fn into_faults(self) -> Vec<Fault> {
        let mut faults = self.faults.into_inner();
        faults.sort_by(|a, b| (&a.path, a.line, a.column).cmp(&(&b.path, b.line, b.column)));
        faults
    }
}

/// Line and column, both from 1, of a byte offset.
pub(crate) fn place(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

impl<'a> Section<'a> {
    pub(crate) fn reader(&self) -> &'a Reader<'a> {
        self.reader
    }

    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Where a key stands, or the table itself if it is absent.
    pub(crate) fn span_of(&self, key: &str) -> Range<usize> {
        self.table.get_key_value(key).map_or(self.span(), |(key, _)| key.span())
    }

    /// A value of any type.
    pub(crate) fn node(&self, key: &'static str) -> Option<Node<'a>> {
        self.known.borrow_mut().push(key);
        self.table.get(key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<String> {
        let node = self.node(key)?;
        let text = node.get_ref().as_str().map(str::to_owned);
        text.or_else(|| self.wrong_type(key, node, "text in quotes"))
    }

    /// A text that must be there and not be blank.
    pub(crate) fn required_text(&self, key: &'static str, example: &str) -> String {
        if !self.has(key) {
            self.known.borrow_mut().push(key);
            let what = if self.name.is_empty() { "the file" } else { &self.name };
            self.fault_here(format!("{what} has no `{key}`"), format!("add `{key} = \"{example}\"`"));
            return String::new();
        }
        let text = self.text(key).unwrap_or_default();
        if text.trim().is_empty() && self.table.get(key).is_some_and(|node| node.get_ref().is_str()) {
            self.fault_at(
                key,
                format!("`{key}` is empty"),
                format!("write for example `{key} = \"{example}\"`"),
            );
        }
        text
    }

    pub(crate) fn boolean(&self, key: &'static str) -> Option<bool> {
        let node = self.node(key)?;
        node.get_ref().as_bool().or_else(|| self.wrong_type(key, node, "true or false"))
    }

    /// A whole number between two bounds, both included.
    pub(crate) fn integer(&self, key: &'static str, least: i64, most: i64) -> Option<i64> {
        let node = self.node(key)?;
        let Some(number) = node.get_ref().as_integer() else {
            return self.wrong_type(key, node, "a whole number");
        };
        let number = i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok();
        let fits = number.filter(|n| (least..=most).contains(n));
        if fits.is_none() {
            self.fault_value(node, format!("`{key}` is out of range"), format!("use {least} to {most}"));
        }
        fits
    }

    /// A number between two bounds, both included.
    pub(crate) fn number(&self, key: &'static str, least: f64, most: f64) -> Option<f64> {
        let node = self.node(key)?;
        let Some(number) = json(node).as_f64() else {
            return self.wrong_type(key, node, "a number");
        };
        if (least..=most).contains(&number) {
            return Some(number);
        }
        self.fault_value(node, format!("`{key}` is out of range"), format!("use {least} to {most}"));
        None
    }

    pub(crate) fn duration(&self, key: &'static str) -> Option<Duration> {
        let node = self.node(key)?;
        let Some(text) = node.get_ref().as_str() else {
            return self.wrong_type(key, node, "a duration in quotes, like \"350ms\" or \"8s\"");
        };
        parse_duration(text)
            .map_err(|why| {
                self.fault_value(node, format!("`{key}`: {why}"), "write it like \"350ms\" or \"8s\"")
            })
            .ok()
    }

    /// A duration, or `"none"` which is `Some(None)`.
    pub(crate) fn duration_or_none(&self, key: &'static str) -> Option<Option<Duration>> {
        if self.table.get(key).is_some_and(|node| node.get_ref().as_str() == Some("none")) {
            self.known.borrow_mut().push(key);
            return Some(None);
        }
        self.duration(key).map(Some)
    }

    /// One of a fixed set of words.
    pub(crate) fn one_of<T: Copy>(&self, key: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        let node = self.node(key)?;
        let Some(text) = node.get_ref().as_str() else {
            return self.wrong_type(key, node, "text in quotes");
        };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let list = known.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
            let hint = match nearest(text, known.iter().copied()) {
                Some(word) => format!("did you mean `{word}`? ({list})"),
                None => format!("use one of {list}"),
            };
            self.fault_value(node, format!("`{key}` does not know `{text}`"), hint);
        }
        found
    }

    /// A list of texts.
    pub(crate) fn texts(&self, key: &'static str) -> Option<Vec<(String, Range<usize>)>> {
        let node = self.node(key)?;
        let Some(items) = node.get_ref().as_array() else {
            return self.wrong_type(key, node, "a list of texts");
        };
        let mut texts = Vec::new();
        for item in items.iter() {
            match item.get_ref().as_str() {
                Some(text) => texts.push((text.to_owned(), item.span())),
                None => drop(self.wrong_type::<()>(key, item, "a list of texts")),
            }
        }
        Some(texts)
    }

    /// A table within this one.
    pub(crate) fn child(&self, key: &'static str) -> Option<Section<'a>> {
        let node = self.node(key)?;
        self.open(key, node)
    }

    /// A list of tables within this one (`[[skill]]`).
    pub(crate) fn children(&self, key: &'static str) -> Vec<Section<'a>> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let Some(items) = node.get_ref().as_array() else {
            let dotted = self.dotted(key);
            let hint = format!("write it as `[[{dotted}]]`, once for each");
            self.fault_value(node, format!("`{key}` must be a list of tables"), hint);
            return Vec::new();
        };
        items.iter().filter_map(|item| self.open(key, item)).collect()
    }

    /// Refuses every key that nobody asked for.
    pub(crate) fn finish(self) {
        let known = self.known.borrow();
        for (key, _) in self.table.iter() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let place = if self.name.is_empty() { String::new() } else { format!(" in {}", self.name) };
            let hint = special_hint(name).unwrap_or_else(|| match nearest(name, known.iter().copied()) {
                Some(word) => format!("did you mean `{word}`?"),
                None => format!("known here: {}", list_of(&known)),
            });
            self.reader.fault(key.span(), format!("unknown key `{}`{place}", shown(name)), hint);
        }
    }

    pub(crate) fn fault_here(&self, message: impl Into<String>, hint: impl Into<String>) {
        self.reader.fault(self.span(), message, hint);
    }

    pub(crate) fn fault_at(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.reader.fault(self.span_of(key), message, hint);
    }

    pub(crate) fn fault_value(&self, node: Node<'_>, message: impl Into<String>, hint: impl Into<String>) {
        self.reader.fault(node.span(), message, hint);
    }

    pub(crate) fn open(&self, key: &str, node: Node<'a>) -> Option<Section<'a>> {
        let Some(table) = node.get_ref().as_table() else {
            return self.wrong_type(key, node, "a table");
        };
        Some(self.reader.section(table, format!("[{}]", self.dotted(key)), node.span()))
    }

    pub(crate) fn wrong_type<T>(&self, key: &str, node: Node<'_>, wanted: &str) -> Option<T> {
        let found = node.get_ref().type_str();
        self.fault_value(node, format!("`{}` must be {wanted}, not {found}", shown(key)), "");
        None
    }

    fn dotted(&self, key: &str) -> String {
        let outer = self.name.trim_matches(['[', ']']);
        if outer.is_empty() { key.to_owned() } else { format!("{outer}.{key}") }
    }
}

/// The value as JSON, tables in the order of the file.
pub(crate) fn json(node: Node<'_>) -> Value {
    match node.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            i64::from_str_radix(&digits, number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => {
            let parsed = number.as_str().replace('_', "").parse().ok().and_then(Number::from_f64);
            parsed.map_or(Value::Null, Value::Number)
        }
        DeValue::Boolean(yes) => Value::Bool(*yes),
        DeValue::Datetime(when) => Value::String(when.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(json).collect()),
        DeValue::Table(table) => {
            let mut entries: Vec<_> = table.iter().collect();
            entries.sort_by_key(|(key, _)| key.span().start);
            let pairs = entries.into_iter().map(|(key, value)| (key.get_ref().to_string(), json(value)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

fn list_of(keys: &[&str]) -> String {
    let mut keys: Vec<&str> = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

/// A name from a file, short enough for one line of an error.
pub(crate) fn shown(name: &str) -> String {
    let clean: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect();
    if clean.chars().count() < name.chars().count() { format!("{clean}…") } else { clean }
}

fn special_hint(key: &str) -> Option<String> {
    matches!(key, "api_key" | "key" | "token" | "secret" | "password").then(|| {
        "keys stay out of files: name the environment variable that holds it, `api_key_env = \"…\"`"
            .to_owned()
    })
}
