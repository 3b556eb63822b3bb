//! Conformance cases: one question and what the caller does (timing), replies and what they mean, and hashes.
//!
//! The files are JSON lines, one case each. A reader takes every key that a case can have, refuses any other with its
//! line, and reports all bad lines at once: a case that is read wrongly must not pass for one that was tried.

use std::collections::HashMap;
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
    rows(text, path, |row: written::Case| row.resolve(), |case| &case.id)
}

/// Reads labelled replies.
///
/// # Errors
/// Every line that is no case, with its place.
pub fn parse_replies(text: &str, path: &Path) -> Result<Vec<ReplyCase>, CaseError> {
    rows(text, path, Ok, |case: &ReplyCase| &case.id)
}

/// Reads hash cases.
///
/// # Errors
/// Every line that is no case, with its place.
pub fn parse_hashes(text: &str, path: &Path) -> Result<Vec<HashCase>, CaseError> {
    rows(text, path, |row: corpus::WrittenHash| row.resolve(), |case| &case.name)
}

/// Reads a file and parses it with one of the functions above.
///
/// # Errors
/// The file cannot be read, is no text, has bad lines, names a case twice, or has no case at all: nothing tried must not
/// look like nothing failed.
pub fn load_cases<T>(
    path: &Path,
    parse: fn(&str, &Path) -> Result<Vec<T>, CaseError>,
) -> Result<Vec<T>, CaseError> {
    let bytes =
        std::fs::read(path).map_err(|source| CaseError::Unreadable { path: path.to_owned(), source })?;
    let fault = |line, column, message: &str, hint: &str| {
        let (message, hint) = (message.to_owned(), hint.to_owned());
        CaseError::Faults(vec![Fault { path: path.to_owned(), line, column, message, hint }])
    };
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        fault(line, column, "this is not UTF-8", "save the file as UTF-8, one case per line")
    })?;
    // Editors on Windows begin a file with this mark.
    let cases = parse(text.strip_prefix('\u{feff}').unwrap_or(text), path)?;
    if cases.is_empty() {
        return Err(fault(1, 1, "the file has no cases", "one case per line, as JSON"));
    }
    Ok(cases)
}

fn rows<W: DeserializeOwned, T>(
    text: &str,
    path: &Path,
    resolve: fn(W) -> Result<T, String>,
    name: fn(&T) -> &str,
) -> Result<Vec<T>, CaseError> {
    let mut cases: Vec<T> = Vec::new();
    let mut faults = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
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
                Ok(case) => match seen.insert(name(&case).to_owned(), index + 1) {
                    Some(first) => {
                        let message = format!("`{}` is already the case of line {first}", name(&case));
                        faults.push(fault(1, message));
                    }
                    None => cases.push(case),
                },
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
