//! Deciding a recorded call again: the same inputs must give the same commands, to the letter.

use std::collections::VecDeque;
use std::fmt;

use sayback_core::{Command, Event, EvidenceRecord, Session, Time};
use sayback_runtime::events::event_line;
use sayback_runtime::record::{FORMAT, JOURNAL, journal_line};
use serde::Deserialize;
use serde_json::Value;

use super::{Bundle, BundleError};
use crate::scenario::around;

/// What came of deciding a call again.
#[derive(Clone, Debug, Default)]
pub struct Recomputed {
    /// Inputs that were handed in.
    pub inputs: usize,
    /// Commands that came out as recorded.
    pub commands: usize,
    /// The event log, as decided now.
    pub events: Vec<Value>,
    /// The records of decisions, as decided now.
    pub records: Vec<EvidenceRecord>,
    /// When the last thing happened.
    pub end: Time,
    /// The recording breaks off: within a line, or before all commands of the last input are written.
    pub torn: bool,
    /// The first command that is not as recorded.
    pub divergence: Option<Divergence>,
}

/// Where a call that is decided again takes another course.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The journal's line, from 1.
    pub line: usize,
    /// What is recorded.
    pub expected: String,
    /// What was decided now.
    pub got: String,
    /// The events around it; several lines.
    pub around: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  but got {}\n{}", self.got, self.around)
    }
}

/// A line of the journal.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    pub(super) t_us: Time,
    pub(super) r#in: Option<Event>,
    pub(super) out: Option<Value>,
}

/// Hands a recorded call's inputs to a new session, and compares each command with the recorded one.
///
/// It stops at the first that differs. Commands of an older format may lack fields that there were not then; what they
/// have must be the same.
///
/// # Errors
/// If a line before the last cannot be understood.
pub fn recompute(bundle: &Bundle) -> Result<Recomputed, BundleError> {
    let mut work = Work {
        session: Session::new(bundle.sheet.policy.clone()),
        pending: VecDeque::new(),
        done: Recomputed::default(),
        exact: bundle.sheet.format == FORMAT,
    };
    let mut lines = bundle.journal.split_inclusive('\n').enumerate().peekable();
    while let Some((index, text)) = lines.next() {
        let number = index + 1;
        let whole = text.ends_with('\n');
        let text = text.trim_end_matches('\n');
        let line: Line = match serde_json::from_str(text) {
            Ok(line) if whole => line,
            // Written in one piece, a line is whole or the last.
            Ok(_) | Err(_) if lines.peek().is_none() && !whole => {
                work.done.torn = true;
                break;
            }
            Ok(line) => line,
            Err(error) => {
                let (path, reason) = (bundle.path(JOURNAL), format!("this line is no journal line: {error}"));
                return Err(BundleError::Broken { path, line: number, reason });
            }
        };
        if let Some((expected, got)) = work.take(line, text) {
            let around = work.around(bundle);
            work.done.divergence = Some(Divergence { line: number, expected, got, around });
            return Ok(work.done);
        }
    }
    work.done.torn |= !work.pending.is_empty();
    Ok(work.done)
}

struct Work {
    session: Session,
    /// Commands decided now and not yet compared.
    pending: VecDeque<String>,
    done: Recomputed,
    exact: bool,
}

impl Work {
    /// Takes a line of the journal; gives what was recorded and what was decided now, if they differ.
    fn take(&mut self, line: Line, text: &str) -> Option<(String, String)> {
        self.done.end = self.done.end.max(line.t_us);
        if let Some(event) = line.r#in {
            if let Some(more) = self.pending.pop_front() {
                return Some(("no further command".to_owned(), more));
            }
            self.done.inputs += 1;
            self.hand(line.t_us, event);
            return None;
        }
        let got = self.pending.pop_front();
        let same = match (&got, &line.out) {
            (Some(got), _) if got == text => true,
            (Some(got), Some(out)) if !self.exact => serde_json::from_str::<Value>(got)
                .is_ok_and(|got| got["t_us"] == line.t_us.as_micros() && contains(&got["out"], out)),
            _ => false,
        };
        if same {
            self.done.commands += 1;
            return None;
        }
        Some((text.to_owned(), got.unwrap_or_else(|| "no command".to_owned())))
    }

    fn hand(&mut self, at: Time, event: Event) {
        self.session.handle(at, event);
        while let Some(output) = self.session.poll_output() {
            self.pending.push_back(journal_line(&output));
            match output.command {
                Command::Report(report) => self.done.events.push(event_line(output.at, &report)),
                Command::Record(record) => self.done.records.push(*record),
                Command::OpenSegment { .. }
                | Command::CloseSegment { .. }
                | Command::JudgeEnd { .. }
                | Command::Speak(_)
                | Command::Pause
                | Command::Resume
                | Command::Clear
                | Command::Generate { .. }
                | Command::CancelGeneration { .. }
                | Command::Prepare { .. }
                | Command::RunPlain(_)
                | Command::RunConfirmed(_)
                | Command::RequestApproval(_)
                | Command::WithdrawApproval { .. }
                | Command::Check(_)
                | Command::EndCall { .. }
                | Command::Transfer { .. } => {}
            }
        }
    }

    /// The recorded events around the place that was reached.
    fn around(&self, bundle: &Bundle) -> String {
        let reports = bundle.journal.lines().filter(|line| line.contains("\"report\"")).filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            let report = line["out"]["data"].as_object().filter(|_| line["out"]["type"] == "report")?.clone();
            let at = Time::from_micros(line["t_us"].as_u64()?);
            let mut event = serde_json::Map::from_iter([("t_ms".to_owned(), at.as_millis_f64().into())]);
            event.extend(report);
            Some(Value::Object(event))
        });
        let events: Vec<Value> = reports.collect();
        let reached = self.done.end.as_millis_f64();
        let centre = events.iter().rposition(|event| event["t_ms"].as_f64().is_some_and(|at| at <= reached));
        around(&events, centre.unwrap_or(0))
    }
}

/// Whether all that `part` has is in `whole`, and the same.
pub(super) fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, value)| whole.get(key).map_or(value.is_null(), |whole| contains(whole, value))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => whole == part,
    }
}
