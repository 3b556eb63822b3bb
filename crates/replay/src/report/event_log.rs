//! The event log as JSON lines.

use std::io::{self, Write};

use sayback_core::{Report, Time};
use serde_json::{Map, Value};

/// One line of the event log: `t_ms` first, then `event`, then the event's fields.
///
/// # Errors
/// A report that is no JSON object; none of ours is.
pub fn event_line(at: Time, report: &Report) -> Result<Value, serde_json::Error> {
    let mut line = Map::new();
    line.insert("t_ms".into(), Value::from(at.as_millis_f64()));
    if let Value::Object(fields) = serde_json::to_value(report)? {
        line.extend(fields);
    }
    Ok(Value::Object(line))
}

/// Writes events as JSON lines, as they come.
#[derive(Debug)]
pub struct EventLog<W> {
    out: W,
}

impl<W: Write> EventLog<W> {
    /// Onto this writer; give it a buffered one.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes one line.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(&mut self, line: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }

    /// Flushes what is buffered.
    ///
    /// # Errors
    /// What the writer says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
