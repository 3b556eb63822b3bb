//! Conformance cases: one question and what the caller does (timing), replies and what they mean, and hashes.
//!
//! The files are JSON lines, one case each. A reader takes every key that a case can have, refuses any other with its
//! line, and reports all bad lines at once: a case that is read wrongly must not pass for one that was tried.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::scenario::Fault;

mod case;
mod corpus;
mod written;

pub use case::{
    CheckReply, HandlerSpan, Merged, PlayedSpeech, Reask, Span, Spoken, State, TimingCase, TimingConfig,
    TimingEvent, TimingExpect, TimingQuestion, Told,
};
pub use corpus::{HashCase, HashExpect, HashInput, ReplyCase, ReplyContext, Speakers};

/// Why a file of cases cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The file could not be read.
    #[error("{}: cannot be read: {source}\n  hint: check the path and its permissions", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Some lines are no cases; each is one line and a hint.
    #[error("{}", .0.iter().map(|fault| format!("{fault:#}")).collect::<Vec<_>>().join("\n"))]
    Faults(Vec<Fault>),
}

/// Reads timing cases.
///
/// # Errors
/// Every line that is no case, with its place.
pub fn parse_timing(text: &str, path: &Path) -> Result<Vec<TimingCase>, CaseError> {
    rows(text, path, |row: written::Case| row.resolve())
}

/// Reads labelled replies.
///
/// # Errors
/// Every line that is no case, with its place.
pub fn parse_replies(text: &str, path: &Path) -> Result<Vec<ReplyCase>, CaseError> {
    rows(text, path, Ok)
}

/// Reads hash cases.
///
/// # Errors
/// Every line that is no case, with its place.
pub fn parse_hashes(text: &str, path: &Path) -> Result<Vec<HashCase>, CaseError> {
    rows(text, path, |row: corpus::WrittenHash| row.resolve())
}

/// Reads a file and parses it with one of the functions above.
///
/// # Errors
/// The file cannot be read, or has bad lines.
pub fn load_cases<T>(
    path: &Path,
    parse: fn(&str, &Path) -> Result<Vec<T>, CaseError>,
) -> Result<Vec<T>, CaseError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| CaseError::Unreadable { path: path.to_owned(), source })?;
    parse(&text, path)
}

fn rows<W: DeserializeOwned, T>(
    text: &str,
    path: &Path,
    resolve: fn(W) -> Result<T, String>,
) -> Result<Vec<T>, CaseError> {
    let mut cases = Vec::new();
    let mut faults = Vec::new();
    for (index, row) in text.lines().enumerate() {
        let fault = |column, message: String| {
            let hint = hint(&message);
            Fault { path: path.to_owned(), line: index + 1, column, message, hint }
        };
        if row.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(row) {
            Ok(written) => match resolve(written) {
                Ok(case) => cases.push(case),
                Err(message) => faults.push(fault(1, message)),
            },
            Err(error) => faults.push(fault(error.column().max(1), plain(&error))),
        }
    }
    if faults.is_empty() { Ok(cases) } else { Err(CaseError::Faults(faults)) }
}

/// The message without the place, which is said in front of it.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// The key that was meant, where the message names an unknown one and those that exist.
fn hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown").then(|| quoted.next()).flatten();
    unknown
        .and_then(|unknown| sayback_runtime::fault::nearest(unknown, quoted))
        .map_or_else(|| "one case per line, as JSON".to_owned(), |name| format!("did you mean `{name}`?"))
}
