//! The event log: one JSON object a line, the same everywhere it goes.

use sayback_core::{Report, Time};
use serde_json::{Map, Value, json};

/// One line of the event log: `{"t_ms": 1234.5, "event": "…", …}`.
pub fn event_line(at: Time, report: &Report) -> Value {
    let mut line = Map::new();
    line.insert("t_ms".to_owned(), json!(at.as_millis_f64()));
    if let Ok(Value::Object(fields)) = serde_json::to_value(report) {
        line.extend(fields);
    }
    Value::Object(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_time_and_event() {
        let line = event_line(Time::from_micros(1_234_500), &Report::Dtmf { digit: '1' });
        assert_eq!(line.to_string(), r#"{"t_ms":1234.5,"event":"dtmf","digit":"1"}"#);
    }
}
