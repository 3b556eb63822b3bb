//! Deciding a recorded call again: the same inputs must give the same commands, to the letter.

use std::collections::VecDeque;
use std::fmt;

use sayback_core::{CheckAnswer, CheckRequest, Event, EvidenceRecord, Session, Time};
use sayback_runtime::record::{FORMAT, JOURNAL, journal_line};
use serde::Deserialize;
use serde_json::Value;

use super::{Bundle, BundleError, Left, left};
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
    /// What the model was asked about answers, and what came back.
    pub checks: Vec<AskedCheck>,
    /// When the last thing happened.
    pub end: Time,
    /// The recording breaks off: within a line, or before all commands of the last input are written.
    pub torn: bool,
    /// The first command that is not as recorded.
    pub divergence: Option<Divergence>,
}

/// A check of a recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedCheck {
    /// What the model was asked.
    pub request: CheckRequest,
    /// What came back, its first word on it; `None`: nothing before the call was over.
    pub answer: Option<CheckAnswer>,
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
        if let Event::Checked { check, answer } = &event
            && let Some(asked) = self.done.checks.iter_mut().find(|asked| asked.request.check == *check)
        {
            asked.answer.get_or_insert_with(|| answer.clone());
        }
        self.session.handle(at, event);
        while let Some(output) = self.session.poll_output() {
            self.pending.push_back(journal_line(&output));
            match left(&output) {
                Left::Event(line) => self.done.events.push(line),
                Left::Record(record) => self.done.records.push(record.clone()),
                Left::Check(request) => {
                    self.done.checks.push(AskedCheck { request: request.clone(), answer: None });
                }
                Left::Nothing => {}
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
