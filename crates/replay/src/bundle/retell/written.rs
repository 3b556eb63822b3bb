//! Writing TOML by hand, so that a scenario looks as if a person had written it.

use std::time::Duration;

use serde_json::Value;

/// A TOML text that grows.
#[derive(Debug, Default)]
pub(super) struct Toml(String);

impl Toml {
    pub(super) fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    pub(super) fn table(&mut self, name: &str) {
        self.line(&format!("\n[[{name}]]"));
    }

    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.line(&format!("{key} = {}", quoted(text)));
    }

    pub(super) fn duration(&mut self, key: &str, duration: Duration) {
        // Whole milliseconds are what a person would write.
        self.line(&format!("{key} = \"{}ms\"", duration.as_millis().max(1)));
    }

    pub(super) fn value(&mut self, key: &str, value: &Value) {
        self.line(&format!("{key} = {}", inline(value)));
    }

    /// One call, or a list of calls.
    pub(super) fn calls(&mut self, calls: &[(String, Value)]) {
        let call = |(tool, input): &(String, Value)| {
            // What TOML cannot say is given as JSON text.
            let input = match input.as_str() {
                None if input.is_object() && !has_null(input) => inline(input),
                None => quoted(&input.to_string()),
                Some(text) => quoted(text),
            };
            format!("{{ tool = {}, input = {input} }}", quoted(tool))
        };
        match calls {
            [] => {}
            [one] => self.line(&format!("call = {}", call(one))),
            more => {
                let list: Vec<String> = more.iter().map(call).collect();
                self.line(&format!("calls = [{}]", list.join(", ")));
            }
        }
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A basic string. JSON's escapes are TOML's, but for control characters, which no scenario needs.
fn quoted(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Value::from(plain).to_string()
}

fn inline(value: &Value) -> String {
    match value {
        Value::Null => "\"\"".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{} = {}", written_key(key), inline(value));
            format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
    }
}

fn written_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { quoted(key) }
}
