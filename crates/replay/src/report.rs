//! What a run leaves behind for people and for other programs: console lines, JUnit, the event log, and a page per
//! call.
//!
//! Nothing here reads a clock or writes a file of its own accord: everything is handed a writer or returns a text.

use std::path::PathBuf;

use crate::scenario::{Failure, Fault};

mod console;
mod conversation;
mod decision;
mod drawing;
mod escape;
mod event_log;
mod junit;
mod page;
mod timeline;

pub use console::{Tally, outcome_json, write_outcome};
pub use event_log::EventLog;
pub use junit::junit_xml;
pub use page::{CallPage, Recording, call_page};

/// What came of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Its file.
    pub path: PathBuf,
    /// What it shows; the file's name if it could not be read.
    pub title: String,
    /// How it went.
    pub result: RunResult,
    /// How long the call was on its own clock, in ms.
    pub call_ms: f64,
    /// How many events it left.
    pub events: usize,
}

/// How a scenario went.
#[derive(Clone, Debug, PartialEq)]
pub enum RunResult {
    /// Everything came as expected.
    Passed,
    /// Some expectations were not met.
    Failed(Vec<Failure>),
    /// The file, or something that it names, cannot be used.
    Unusable(Vec<Fault>),
}
