//! What a scenario expects of its event log.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::fault::suggestion;
use super::vocabulary::{EVENTS, fields_of, words_of};
use super::written::{Fields, Source, json};

/// One `[[expect]]`, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The event's name.
    pub event: String,
    /// Fields that must match; all others are free.
    pub fields: Vec<(String, Matcher)>,
    /// Text that one of its string fields must contain, in whichever case.
    pub contains: Option<String>,
    /// How it is expected.
    pub how: Expected,
}

/// How an event is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It comes after the event that the expectation before this one matched.
    Next {
        /// At most this long after it; for the first expectation, after the call's start.
        within: Option<Duration>,
    },
    /// Exactly this many of it are in the whole log, wherever they are.
    Count(u32),
    /// None of it is in the whole log.
    Never,
}

/// What a field must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Matcher {
    /// This value. Numbers are compared as numbers: `3` is `3.0`.
    Exact(Value),
    /// A number between these two, both included.
    Range {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
    },
    /// A string that contains this, in whichever case.
    Contains(String),
    /// A table with at least these fields.
    Subset(Vec<(String, Matcher)>),
}

impl Matcher {
    /// Whether `value` is it; an absent field is `None` and matches nothing.
    pub fn matches(&self, value: Option<&Value>) -> bool {
        let Some(value) = value else { return false };
        match self {
            Self::Exact(expected) => same(expected, value),
            Self::Range { min, max } => value.as_f64().is_some_and(|number| *min <= number && number <= *max),
            Self::Contains(part) => value.as_str().is_some_and(|text| contains(text, part)),
            Self::Subset(fields) => fields.iter().all(|(key, matcher)| matcher.matches(value.get(key))),
        }
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(value) => write!(f, "{value}"),
            Self::Range { min, max } if *max == f64::INFINITY => write!(f, "at least {min}"),
            Self::Range { min, max } if *min == f64::NEG_INFINITY => write!(f, "at most {max}"),
            Self::Range { min, max } => write!(f, "between {min} and {max}"),
            Self::Contains(part) => write!(f, "something with {part:?}"),
            Self::Subset(fields) => {
                let fields: Vec<_> =
                    fields.iter().map(|(key, matcher)| format!("{key} = {matcher}")).collect();
                write!(f, "{{ {} }}", fields.join(", "))
            }
        }
    }
}

pub(super) fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}

/// Reads one `[[expect]]`.
pub(super) fn expect(fields: &Fields<'_, '_>) -> Option<Expect> {
    let event = fields.string("event");
    let never = fields.string("never");
    let within = fields.duration("within");
    let count = fields.whole("count", 0..=1_000_000);
    let contains = fields.string("contains").map(str::to_owned);
    let name = match (event, never) {
        (Some(_), Some(_)) => {
            fields.bad("never", "both `event` and `never`", "make two [[expect]] of them");
            return None;
        }
        (Some(name), None) | (None, Some(name)) => name,
        (None, None) => {
            if !fields.has("event") && !fields.has("never") {
                let hint = "add `event = \"tool.started\"` or `never = \"tool.started\"`";
                fields.bad("event", "expects no event", hint);
            }
            return None;
        }
    };
    let how = how(fields, never.is_some(), within, count)?;
    let key = if never.is_some() { "never" } else { "event" };
    let Some(known) = fields_of(name) else {
        let names = EVENTS.iter().map(|(name, _)| *name);
        fields.bad(key, format!("`{name}` is no event"), suggestion(name, names));
        return None;
    };
    let matchers = matchers(fields, name, known);
    Some(Expect {
        line: fields.line(),
        column: fields.column(),
        event: name.to_owned(),
        fields: matchers,
        contains,
        how,
    })
}

fn how(
    fields: &Fields<'_, '_>,
    never: bool,
    within: Option<Duration>,
    count: Option<u32>,
) -> Option<Expected> {
    match (never, within, count) {
        (true, None, None) => Some(Expected::Never),
        (false, None, Some(count)) => Some(Expected::Count(count)),
        (false, within, None) => Some(Expected::Next { within }),
        (true, _, _) => {
            let key = if within.is_some() { "within" } else { "count" };
            fields.bad(key, format!("`{key}` does not go with `never`"), "remove it: never is never");
            None
        }
        (false, Some(_), Some(_)) => {
            fields.bad("within", "`within` does not go with `count`", "make two [[expect]] of them");
            None
        }
    }
}

fn matchers(fields: &Fields<'_, '_>, event: &str, known: &[&'static str]) -> Vec<(String, Matcher)> {
    let mut matchers = Vec::new();
    for (key, value) in fields.rest() {
        let name = key.get_ref().as_ref();
        if name != "t_ms" && !known.contains(&name) {
            let names = known.iter().copied().chain(["t_ms", "contains", "within", "count"]);
            let names: Vec<_> = names.collect();
            let hint = suggestion(name, names.iter().copied());
            fields.source.fault(key.span(), format!("`{event}` has no field `{name}`"), hint);
            continue;
        }
        let value_json = json(fields.source, value);
        if let (Some(words), Value::String(word)) = (words_of(event, name), &value_json)
            && !words.contains(&word.as_str())
        {
            let hint = suggestion(word, words.iter().copied());
            fields.source.fault(value.span(), format!("`{name}` of `{event}` is never {word:?}"), hint);
            continue;
        }
        matchers.push((name.to_owned(), matcher(fields.source, value.span(), value_json)));
    }
    matchers
}

/// A table of `min` and `max`, or of `contains`, is a condition; any other table is a subset.
fn matcher(source: &Source<'_>, span: std::ops::Range<usize>, value: Value) -> Matcher {
    let Value::Object(table) = value else { return Matcher::Exact(value) };
    let only = |names: &[&str]| !table.is_empty() && table.keys().all(|key| names.contains(&key.as_str()));
    if only(&["min", "max"]) {
        let bound = |key: &str, open: f64| table.get(key).map_or(Some(open), Value::as_f64);
        return match (bound("min", f64::NEG_INFINITY), bound("max", f64::INFINITY)) {
            (Some(min), Some(max)) if min <= max => Matcher::Range { min, max },
            _ => {
                source.fault(span, "no range of numbers", "write it like { min = 100, max = 200 }");
                Matcher::Exact(Value::Null)
            }
        };
    }
    if only(&["contains"])
        && let Some(Value::String(part)) = table.get("contains")
    {
        return Matcher::Contains(part.clone());
    }
    let fields = table.into_iter().map(|(key, value)| (key, matcher(source, span.clone(), value)));
    Matcher::Subset(fields.collect())
}
