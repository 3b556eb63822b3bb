//! Lines for the terminal.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Outcome, RunResult};

/// Writes the lines of one scenario: one if it passed, else its failures below it.
///
/// # Errors
/// What the writer says.
pub fn write_outcome(out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
    let path = outcome.path.display();
    let title = outcome.title.replace(char::is_control, " ");
    match &outcome.result {
        RunResult::Passed => {
            let seconds = outcome.call_ms / 1_000.0;
            writeln!(out, "ok      {path}  {title}  ({seconds:.1} s, {} events)", outcome.events)
        }
        RunResult::Failed(failures) => {
            writeln!(out, "FAILED  {path}  {title}")?;
            failures.iter().try_for_each(|failure| indented(out, &failure.to_string()))
        }
        RunResult::Unusable(faults) => {
            writeln!(out, "FAILED  {path}  cannot be used")?;
            faults.iter().try_for_each(|fault| indented(out, &format!("{fault:#}")))
        }
    }
}

fn indented(out: &mut dyn Write, text: &str) -> io::Result<()> {
    text.lines().try_for_each(|line| writeln!(out, "    {line}"))?;
    writeln!(out)
}

/// How many scenarios passed and failed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those in which everything came as expected.
    pub passed: usize,
    /// Those in which something did not.
    pub failed: usize,
    /// Those of the failed that could not be used at all.
    pub unusable: usize,
}

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, outcome: &Outcome) {
        match outcome.result {
            RunResult::Passed => self.passed += 1,
            RunResult::Failed(_) => self.failed += 1,
            RunResult::Unusable(_) => {
                self.failed += 1;
                self.unusable += 1;
            }
        }
    }

    /// The exit status: 0 all passed, 1 an expectation failed, 2 an input cannot be used.
    pub fn exit_status(self) -> u8 {
        match (self.unusable, self.failed) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        }
    }
}

impl std::fmt::Display for Tally {
    /// The last line of a run.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// One scenario's outcome for other programs: one JSON object.
pub fn outcome_json(outcome: &Outcome) -> Value {
    let (result, problems): (_, Vec<Value>) = match &outcome.result {
        RunResult::Passed => ("passed", Vec::new()),
        RunResult::Failed(failures) => ("failed", failures.iter().map(failure_json).collect()),
        RunResult::Unusable(faults) => {
            let fault = |fault: &crate::scenario::Fault| json!({ "line": fault.line, "column": fault.column, "message": fault.message, "hint": fault.hint });
            ("unusable", faults.iter().map(fault).collect())
        }
    };
    json!({
        "path": outcome.path.to_string_lossy(),
        "title": outcome.title,
        "result": result,
        "call_ms": outcome.call_ms,
        "events": outcome.events,
        "problems": problems,
    })
}

fn failure_json(failure: &crate::scenario::Failure) -> Value {
    json!({
        "line": failure.line,
        "column": failure.column,
        "expected": failure.expected,
        "found": failure.found,
    })
}
