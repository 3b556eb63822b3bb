//! The event log of a live call, as a file of JSON lines.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use sayback_runtime::driver::Observer;
use sayback_runtime::redact::{Learner, Redactor};
use serde_json::Value;

use crate::exit::{Stop, unwritable};

/// Writes each event as it comes, without the details that the agent wants out.
struct Log {
    file: File,
    name: String,
    redactor: Option<Redactor>,
}

impl Observer for Log {
    fn on_event(&mut self, line: &Value) {
        let told = self.redactor.as_ref().map(|redactor| redactor.line(line));
        let line = told.as_ref().unwrap_or(line);
        // In one piece: whoever reads along finds whole lines. A log that cannot be written does not end the call; the
        // command's end tells of it.
        crate::out::note(&self.name, self.file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// What listens to a call: its event log, if one was asked for, and what learns which questions are built from details
/// that are not kept anywhere.
pub(crate) fn observers(
    path: Option<&Path>,
    redactor: Option<Redactor>,
) -> Result<Vec<Box<dyn Observer>>, Stop> {
    let mut observers: Vec<Box<dyn Observer>> = Vec::new();
    observers.extend(redactor.clone().map(|redactor| Box::new(Learner(redactor)) as Box<dyn Observer>));
    if let Some(path) = path {
        let file = File::create(path).map_err(|error| unwritable(path, &error))?;
        observers.push(Box::new(Log { file, name: path.display().to_string(), redactor }));
    }
    Ok(observers)
}
