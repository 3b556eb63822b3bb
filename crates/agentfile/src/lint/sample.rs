//! Inputs made up from a schema, and changes of one field at a time.

use std::collections::BTreeSet;

use sayback_runtime::agent::Validate as _;
use serde_json::{Map, Value, json};

use crate::tools::Origin;

/// Most changes of one field: enough for each part of a date, and for both ends of a text.
const MOST: usize = 8;
/// Deepest field that is made up or changed.
const DEEPEST: usize = 8;

/// An input that differs in one place.
pub(super) struct Change {
    /// The field of the input.
    pub(super) field: String,
    /// The same with what lies inside it: `guests[0].name`.
    pub(super) path: String,
    pub(super) from: Value,
    pub(super) to: Value,
    pub(super) input: Value,
}

/// An input that fits the schema, as far as one can be made up.
pub(super) fn sample(origin: &Origin) -> Value {
    let mut input = Map::new();
    for name in origin.schema.fields() {
        let field = origin.schema.field(name).map_or(Value::Null, |field| sample_of(field, 0));
        input.insert(name.to_owned(), field);
        if origin.schema.field(name).is_some_and(|field| field.get("pattern").is_some()) {
            fit(origin, &mut input, name);
        }
    }
    Value::Object(input)
}

/// Texts that patterns are likely to take: numbers of several lengths, codes, account numbers.
const CANDIDATES: [&str; 14] = [
    "something",
    "12345678",
    "1234567890",
    "123456",
    "12345",
    "1234",
    "123",
    "12",
    "DE89370400440532013000",
    "AB123456",
    "ABC123",
    "AB-123",
    "B-MK 412",
    "A1",
];

/// A text for a field with a pattern: the first candidate that the schema does not refuse for that field.
fn fit(origin: &Origin, input: &mut Map<String, Value>, name: &str) {
    let given = input.get(name).cloned().unwrap_or_default();
    let takes = |value: &Value| {
        let mut alone = Map::new();
        alone.insert(name.to_owned(), value.clone());
        origin.schema.refusals(&Value::Object(alone)).iter().all(|path| !path.contains(name))
    };
    if takes(&given) {
        return;
    }
    if let Some(text) = CANDIDATES.iter().map(|text| json!(text)).find(takes) {
        input.insert(name.to_owned(), text);
    }
}

fn sample_of(field: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    let first = |key: &str| field.get(key).and_then(|list| list.get(0)).cloned();
    let given = first("examples").or_else(|| field.get("const").cloned()).or_else(|| first("enum"));
    if let Some(value) = given.or_else(|| field.get("default").cloned()) {
        return value;
    }
    let least = field.get("minimum").and_then(Value::as_i64);
    match field.get("type").and_then(Value::as_str).unwrap_or("string") {
        "integer" | "number" => json!(least.unwrap_or(2)),
        "boolean" => Value::Bool(true),
        "array" => {
            let item = field.get("items").map_or(Value::Null, |item| sample_of(item, depth + 1));
            Value::Array(vec![item.clone(), item])
        }
        "object" => {
            let properties = field.get("properties").and_then(Value::as_object);
            let inner = |(name, inner): (&String, &Value)| (name.clone(), sample_of(inner, depth + 1));
            Value::Object(properties.into_iter().flatten().map(inner).collect())
        }
        _ => Value::String(sample_text(field.get("format").and_then(Value::as_str))),
    }
}

fn sample_text(format: Option<&str>) -> String {
    let text = match format {
        Some("date") => "2026-12-03",
        Some("local-date-time") => "2026-12-03T15:30",
        Some("date-time") => "2026-12-03T15:30:00+01:00",
        Some("time") => "15:30:00+01:00",
        Some("local-time") => "15:30",
        Some("email" | "idn-email") => "anna.smith@example.com",
        Some("phone") => "+49 30 1234567",
        _ => "something",
    };
    text.to_owned()
}

/// Every change of one field of `input` that the schema still takes.
pub(super) fn changes(origin: &Origin, input: &Value) -> Vec<Change> {
    let Some(fields) = input.as_object() else { return Vec::new() };
    if origin.schema.validate(input.clone()).is_err() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (name, value) in fields {
        let schema = origin.schema.field(name).cloned().unwrap_or_default();
        for (path, to) in variants(&schema, value, 0).into_iter().take(MOST) {
            let mut changed = fields.clone();
            changed.insert(name.clone(), to.clone());
            let input = Value::Object(changed);
            // A change that the schema refuses, or takes for the same value, can never run.
            if origin.schema.validate(input.clone()).is_ok_and(|taken| taken == input) {
                let (field, path) = (name.clone(), format!("{name}{path}"));
                found.push(Change { field, path, from: value.clone(), to, input });
            }
        }
    }
    found
}

/// Other values of a field, each with the path inside it at which it differs.
fn variants(schema: &Value, value: &Value, depth: usize) -> Vec<(String, Value)> {
    if depth > DEEPEST || schema.get("const").is_some() {
        return Vec::new();
    }
    if let Some(others) = schema.get("enum").and_then(Value::as_array) {
        return others.iter().filter(|other| *other != value).map(|o| (String::new(), o.clone())).collect();
    }
    let plain = |values: Vec<Value>| values.into_iter().map(|value| (String::new(), value)).collect();
    match value {
        Value::Bool(is) => plain(vec![Value::Bool(!is)]),
        Value::Number(number) => plain(other_numbers(number)),
        Value::String(text) => plain(
            other_texts(schema.get("format").and_then(Value::as_str), text)
                .into_iter()
                .map(Value::String)
                .collect(),
        ),
        Value::Array(items) => other_lists(schema, items, depth),
        Value::Object(fields) => {
            let properties = schema.get("properties");
            let mut found = Vec::new();
            for (name, inner) in fields {
                let inner_schema = properties.and_then(|p| p.get(name)).cloned().unwrap_or_default();
                for (path, to) in variants(&inner_schema, inner, depth + 1) {
                    let mut changed = fields.clone();
                    changed.insert(name.clone(), to);
                    found.push((format!(".{name}{path}"), Value::Object(changed)));
                }
            }
            found
        }
        Value::Null => Vec::new(),
    }
}

fn other_lists(schema: &Value, items: &[Value], depth: usize) -> Vec<(String, Value)> {
    let item_schema = schema.get("items").cloned().unwrap_or_default();
    let mut found = Vec::new();
    if let Some((_, fewer)) = items.split_last() {
        found.push((String::new(), Value::Array(fewer.to_vec())));
    }
    for (at, item) in items.iter().enumerate() {
        for (path, to) in variants(&item_schema, item, depth + 1).into_iter().take(2) {
            let mut changed = items.to_vec();
            changed[at] = to;
            found.push((format!("[{at}]{path}"), Value::Array(changed)));
        }
    }
    found
}

fn other_numbers(number: &serde_json::Number) -> Vec<Value> {
    match number.as_i64() {
        Some(n) => [n.checked_add(1), n.checked_mul(10), n.checked_add(1000)]
            .into_iter()
            .flatten()
            .map(|n| json!(n))
            .chain(
                // Halves and hundredths are numbers too, where the schema takes them.
                [json!(n as f64 + 0.5), json!(n as f64 + 0.01)],
            )
            .collect(),
        None => number
            .as_f64()
            .map(|n| vec![json!(n + 1.0), json!(n * 10.0), json!(n + 0.01)])
            .unwrap_or_default(),
    }
}

/// Other texts of the same form: another day, month, year, hour and minute; another letter or figure at either end.
fn other_texts(format: Option<&str>, text: &str) -> Vec<String> {
    let dated = |from: &str, to: &str| text.contains(from).then(|| text.replacen(from, to, 1));
    match format {
        Some("date" | "local-date-time" | "date-time" | "local-time" | "time") => {
            let day = shifted(text, 8).or_else(|| dated("-03", "-04"));
            let month = shifted(text, 5);
            let year = text
                .get(..4)
                .and_then(|year| year.parse::<u32>().ok())
                .filter(|_| text.get(4..5) == Some("-"));
            let year = year.and_then(|year| Some(format!("{}{}", year + 1, text.get(4..)?)));
            let clock = text.find(':').and_then(|at| at.checked_sub(2));
            let hour = clock.and_then(|at| shifted(text, at));
            let minute = clock.and_then(|at| shifted(text, at + 3));
            let dated = text.get(4..5) == Some("-");
            let days = [day, month].into_iter().filter(|_| dated);
            days.chain([year, hour, minute]).flatten().collect()
        }
        _ => {
            let places: Vec<usize> =
                text.char_indices().filter(|(_, c)| c.is_ascii_alphanumeric()).map(|(at, _)| at).collect();
            let middle = places.get(places.len() / 2).copied();
            let places: BTreeSet<usize> =
                [places.first().copied(), middle, places.last().copied()].into_iter().flatten().collect();
            places.into_iter().map(|at| other_character(text, at)).collect()
        }
    }
}

/// The number of two figures at a place, one less (or more, if it is the least).
fn shifted(text: &str, at: usize) -> Option<String> {
    let number: u32 = text.get(at..at + 2)?.parse().ok()?;
    let other = if number > 1 { number - 1 } else { number + 1 };
    Some(format!("{}{other:02}{}", text.get(..at)?, text.get(at + 2..)?))
}

fn other_character(text: &str, at: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (place, c) in text.char_indices() {
        out.push(match c {
            _ if place != at => c,
            '0'..='8' | 'a'..='y' | 'A'..='Y' => char::from_u32(u32::from(c) + 1).unwrap_or(c),
            '9' => '8',
            'z' => 'y',
            'Z' => 'Y',
            c => c,
        });
    }
    out
}
