//! The event log of a live call, as a file of JSON lines.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use sayback_core::{Event, Time};
use sayback_runtime::driver::Observer;
use sayback_runtime::redact::Redactor;
use serde_json::Value;

use crate::exit::{Stop, unwritable};

/// Writes each event as it comes, without the details that the agent wants out.
struct Log {
    file: File,
    name: String,
    redactor: Option<Redactor>,
}

impl Observer for Log {
    fn on_input(&mut self, _at: Time, event: &Event) {
        // It must know the questions before they are told.
        if let Some(redactor) = &self.redactor {
            redactor.learn(event);
        }
    }

    fn on_event(&mut self, line: &Value) {
        let told = self.redactor.as_ref().map(|redactor| redactor.line(line));
        let line = told.as_ref().unwrap_or(line);
        // In one piece: whoever reads along finds whole lines. A log that cannot be written does not end the call; the
        // command's end tells of it.
        crate::out::note(&self.name, self.file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// What listens to a call whose event log was asked for.
pub(crate) fn observers(
    path: Option<&Path>,
    redactor: Option<Redactor>,
) -> Result<Vec<Box<dyn Observer>>, Stop> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let file = File::create(path).map_err(|error| unwritable(path, &error))?;
    Ok(vec![Box::new(Log { file, name: path.display().to_string(), redactor })])
}
