//! Recorded calls, decided again.

use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use sayback_core::Time;
use sayback_replay::bundle::{Bundle, BundleError, Divergence, Recomputed, as_scenario, recompute};
use sayback_replay::report::{Outcome, RunResult};
use sayback_replay::run::CallRun;
use sayback_replay::scenario::{Failure, Fault};
use sayback_runtime::record::JOURNAL;

use super::Done;
use crate::exit::{Stop, unwritable};

/// Writes a recorded call as a scenario; gives the scenario's path, for it is run next.
pub(super) fn tell(paths: &[PathBuf], file: &Path, agent: Option<&Path>) -> Result<PathBuf, Stop> {
    let [folder] = paths else {
        return Err(Stop::unusable(
            "--as-scenario takes one recorded call\n  hint: name one folder with a call.json",
        ));
    };
    if !file.to_string_lossy().ends_with(".call.toml") {
        let hint = "name it *.call.toml, so that sayback replay finds it in its folder";
        return Err(Stop::unusable(format!("{}: no name for a scenario\n  hint: {hint}", file.display())));
    }
    let bundle = Bundle::open(folder).map_err(Stop::unusable)?;
    let agent = agent.map_or_else(|| PathBuf::from(&bundle.sheet.agent.file), Path::to_owned);
    let text = std::fs::read_to_string(&agent).map_err(|error| {
        let hint = "name the agent's file with --agent FILE";
        Stop::unusable(format!(
            "{}: the agent of this call cannot be read: {error}\n  hint: {hint}",
            agent.display()
        ))
    })?;
    let named = beside(file, &agent);
    let told = as_scenario(&bundle, &named, &text).map_err(Stop::unusable)?;
    // Somebody may have worked on it: a file that is there is not written over.
    let mut out = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(file)
        .map_err(|error| unwritable(file, &error))?;
    out.write_all(told.as_bytes()).map_err(|error| unwritable(file, &error))?;
    Ok(file.to_owned())
}

/// The agent's file as a scenario in that place names it.
fn beside(scenario: &Path, agent: &Path) -> String {
    let parent = scenario.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Ok(from), Ok(to)) = (parent.canonicalize(), agent.canonicalize()) else {
        return agent.to_string_lossy().into_owned();
    };
    let from: Vec<Component<'_>> = from.components().collect();
    let to: Vec<Component<'_>> = to.components().collect();
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[shared..].iter().map(|_| "..".to_owned());
    let down = to[shared..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<String>>().join("/")
}

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
            let (events, records) = (bundle.shown_events(&again), again.records);
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
        BundleError::NotOne(_) | BundleError::NoChain(_) => (folder.to_owned(), 1),
    };
    let said = error.to_string();
    let (message, hint) = said.split_once("\n  hint: ").unwrap_or((&said, "see the message"));
    let place = format!("{}:{line}: ", path.display());
    let bare =
        message.strip_prefix(&place).or_else(|| message.strip_prefix(&format!("{}: ", path.display())));
    let message = bare.unwrap_or(message).to_owned();
    Fault { path, line, column: 1, message, hint: hint.to_owned() }
}
