//! The event log as JSON lines.

use std::io::{self, Write};

use serde_json::Value;

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
