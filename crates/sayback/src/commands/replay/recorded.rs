//! Recorded calls, decided again.

use std::path::Path;
use std::time::Duration;

use sayback_core::Time;
use sayback_replay::bundle::{Bundle, BundleError, Divergence, Recomputed, recompute};
use sayback_replay::report::{Outcome, RunResult};
use sayback_replay::run::CallRun;
use sayback_replay::scenario::{Failure, Fault};
use sayback_runtime::record::JOURNAL;

use super::Done;

/// Decides a recorded call again; `sound`: its sound is wanted too.
pub(super) fn decide_again(folder: &Path, sound: bool) -> Done {
    let name = || folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let unusable = |error: &BundleError| Done {
        outcome: Outcome {
            path: folder.to_owned(),
            title: name(),
            result: RunResult::Unusable(vec![fault(folder, error)]),
            call_ms: 0.0,
            events: 0,
        },
        run: CallRun::default(),
    };
    let read = Bundle::open(folder).and_then(|bundle| {
        let again = recompute(&bundle)?;
        let tracks = if sound { bundle.sound()? } else { Default::default() };
        Ok((bundle, again, tracks))
    });
    match read {
        Err(error) => unusable(&error),
        Ok((bundle, again, (caller, agent))) => {
            let outcome = outcome(&bundle, &again);
            let length: Duration = again.end.since(Time::ZERO);
            let (events, records) = (again.events, again.records);
            Done { outcome, run: CallRun { events, records, length, caller, agent, ..CallRun::default() } }
        }
    }
}

fn outcome(bundle: &Bundle, again: &Recomputed) -> Outcome {
    let result = match &again.divergence {
        None => RunResult::Passed,
        Some(divergence) => RunResult::Failed(vec![failure(bundle, divergence)]),
    };
    let torn = if again.torn { ", breaks off" } else { "" };
    let same = format!("{} inputs, {} commands as recorded{torn}", again.inputs, again.commands);
    Outcome {
        path: bundle.folder.clone(),
        title: format!("{} ({same})", bundle.title()),
        result,
        call_ms: again.end.as_millis_f64(),
        events: again.events.len(),
    }
}

fn failure(bundle: &Bundle, divergence: &Divergence) -> Failure {
    Failure {
        path: bundle.path(JOURNAL),
        line: divergence.line,
        column: 1,
        expected: divergence.expected.clone(),
        found: divergence.to_string(),
    }
}

/// The message brings its own place and hint.
fn fault(folder: &Path, error: &BundleError) -> Fault {
    let (path, line) = match error {
        BundleError::Broken { path, line, .. } => (path.clone(), *line),
        BundleError::Newer { path, .. } | BundleError::Unreadable { path, .. } => (path.clone(), 1),
        BundleError::NotOne(_) => (folder.to_owned(), 1),
    };
    let said = error.to_string();
    let (message, hint) = said.split_once("\n  hint: ").unwrap_or((&said, "see the message"));
    let place = format!("{}:{line}: ", path.display());
    let bare =
        message.strip_prefix(&place).or_else(|| message.strip_prefix(&format!("{}: ", path.display())));
    let message = bare.unwrap_or(message).to_owned();
    Fault { path, line, column: 1, message, hint: hint.to_owned() }
}
