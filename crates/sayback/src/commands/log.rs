//! The event log of a live call, as a file of JSON lines.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use sayback_runtime::driver::Observer;
use serde_json::Value;

use crate::exit::{Stop, unwritable};

/// Writes each event as it comes.
struct Log {
    file: File,
    name: String,
}

impl Observer for Log {
    fn on_event(&mut self, line: &Value) {
        // In one piece: whoever reads along finds whole lines. A log that cannot be written does not end the call; the
        // command's end tells of it.
        crate::out::note(&self.name, self.file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// What listens to a call whose event log was asked for.
pub(crate) fn observers(path: Option<&Path>) -> Result<Vec<Box<dyn Observer>>, Stop> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let file = File::create(path).map_err(|error| unwritable(path, &error))?;
    Ok(vec![Box::new(Log { file, name: path.display().to_string() })])
}
