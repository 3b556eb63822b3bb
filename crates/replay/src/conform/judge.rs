//! What a timing case expects, against what was seen.

#![expect(clippy::wildcard_enum_match_arm, reason = "a case looks at a few of many reports and events")]

use std::fmt;

use sayback_core::{Command, DropReason, EvidenceRecord, Item, Output, Report, Session, Time};

use super::{BASE, OPENING, unshifted};
use crate::timing::{Reask, State, TimingCase, Told};

/// One thing that did not come as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The key of `expect`.
    pub key: &'static str,
    /// What the case says.
    pub expected: String,
    /// What came.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.key, self.expected, self.found)
    }
}

/// What a run left behind.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Names of the holds after the first.
    pub(super) names: Vec<String>,
    /// Sentences before the question that were handed over.
    pub(super) preambles: usize,
    holds: u32,
    dropped: Option<DropReason>,
    checks: Vec<String>,
    runs: u32,
    confirmed_by: Option<String>,
    told: Vec<String>,
    records: Vec<EvidenceRecord>,
    askings: u32,
    answered_asking: Option<u32>,
    repeats: u32,
    turns: Vec<String>,
    horizon: Option<Time>,
    onset_ms: Option<f64>,
    /// The latest onset of any speech, for cases in which nothing was an answer.
    heard_ms: Option<f64>,
}

impl Seen {
    pub(super) fn note(&mut self, output: &Output) {
        match &output.command {
            Command::Report(report) => self.note_report(report),
            Command::Check(request) => self.checks.push(request.words.clone()),
            Command::RunConfirmed(yes) => {
                self.runs += 1;
                self.confirmed_by = Some(yes.confirmed_by().to_owned());
                self.answered_asking = Some(self.askings);
            }
            Command::Record(record) => {
                self.horizon = record.heard.map(|heard| heard.horizon).or(self.horizon);
                if let Some((onset, _)) = record.answer_onset {
                    self.onset_ms = Some(unshifted(onset).as_millis_f64());
                }
                self.records.push(EvidenceRecord::clone(record));
            }
            _ => {}
        }
    }

    fn note_report(&mut self, report: &Report) {
        match report {
            Report::QuestionHeld { .. } => {
                self.holds += 1;
                self.dropped = None;
            }
            Report::QuestionDropped { reason, .. } => self.dropped = Some(*reason),
            Report::QuestionStarted { .. } => self.askings += 1,
            Report::QuestionRepeated { .. } => self.repeats += 1,
            Report::ModelTold { text } => self.told.push(text.clone()),
            Report::CallerTurn { text, .. } if text != OPENING => self.turns.push(text.clone()),
            Report::CallerSpeech { onset_ms, .. } => {
                self.heard_ms = Some(onset_ms - BASE.as_secs_f64() * 1_000.0);
            }
            _ => {}
        }
    }

    fn state(&self, session: &Session) -> State {
        match (self.runs, self.dropped) {
            (1.., _) => State::Executed,
            (_, Some(DropReason::Declined)) => State::Declined,
            (_, Some(DropReason::Cancelled)) => State::Idle,
            (_, Some(_)) if session.open_question().is_none() => State::Dropped,
            _ if session.open_question().is_some() => State::Open,
            _ => State::Idle,
        }
    }

    /// The words of the last turn that did not confirm anything.
    fn next_turn(&self) -> Option<String> {
        let confirmed = self.turns.iter().position(|text| Some(text) == self.confirmed_by.as_ref());
        let mut others = self.turns.iter().enumerate().filter(|(at, _)| Some(*at) != confirmed);
        others.next_back().map(|(_, text)| text.clone())
    }
}

struct Judge {
    out: Vec<Mismatch>,
}

impl Judge {
    fn same<T: PartialEq + fmt::Debug>(&mut self, key: &'static str, expected: Option<&T>, found: &T) {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            self.out.push(Mismatch { key, expected: format!("{expected:?}"), found: format!("{found:?}") });
        }
    }
}

pub(super) fn judge(case: &TimingCase, seen: &Seen, session: &Session) -> Vec<Mismatch> {
    let expect = &case.expect;
    let mut judge = Judge { out: Vec::new() };
    judge.same("state", expect.state.as_ref(), &seen.state(session));
    let reason =
        seen.dropped.and_then(|r| serde_json::to_value(r).ok()).and_then(|v| v.as_str().map(str::to_owned));
    judge.same("reason", expect.reason.as_ref(), &reason);
    judge.same("check_calls", expect.check_calls.as_ref(), &(seen.checks.len() as u32));
    judge.same("check_words", expect.check_words.as_ref(), &seen.checks.last().cloned());
    judge.same("tool_runs", expect.tool_runs.as_ref(), &seen.runs);
    judge.same("evidence_words", expect.evidence_words.as_ref(), &seen.confirmed_by);
    // A run after a hang-up leaves two records: that the caller had answered, and how the run ended.
    let outcomes: Vec<&str> = seen.records.iter().map(|record| record.outcome.as_str()).collect();
    let wanted = expect.evidence.as_ref().and_then(Option::as_deref);
    let outcome = wanted.filter(|wanted| outcomes.contains(wanted)).or(outcomes.last().copied());
    judge.same("evidence", expect.evidence.as_ref(), &outcome.map(str::to_owned));
    let horizon = seen.horizon.or(session.horizon()).map(unshifted);
    judge.same("horizon", expect.horizon.as_ref(), &horizon);
    let onset = seen.onset_ms.or(seen.heard_ms).map(|ms| Time::from_micros((ms * 1_000.0).round() as u64));
    judge.same("mapped_onset", expect.mapped_onset.as_ref(), &onset);
    judge.same("asked_playout", expect.asked_playout.as_ref(), &seen.answered_asking.unwrap_or(seen.askings));
    judge.same("next_turn_words", expect.next_turn_words.as_ref(), &seen.next_turn());
    let name = seen
        .holds
        .checked_sub(2)
        .map_or(&case.question.hold, |index| seen.names.get(index as usize).unwrap_or(&case.question.hold));
    judge.same("hold", expect.hold.as_ref(), &Some(name.clone()));
    judge_told(&mut judge, case, seen);
    judge_context(&mut judge, case, seen, session);
    judge.out
}

fn judge_told(judge: &mut Judge, case: &TimingCase, seen: &Seen) {
    match &case.expect.model_told {
        None => {}
        Some(Told::Whether(expected)) => judge.same("model_told", Some(expected), &!seen.told.is_empty()),
        Some(Told::Contains(part)) if seen.told.iter().any(|text| text.contains(part)) => {}
        Some(Told::Contains(part)) => judge.same("model_told", Some(&vec![part.clone()]), &seen.told),
    }
    match &case.expect.reask {
        None => {}
        Some(Reask::Whether(expected)) => judge.same("reask", Some(expected), &(seen.repeats > 0)),
        Some(Reask::Times(expected)) => judge.same("reask", Some(expected), &seen.repeats),
    }
}

fn judge_context(judge: &mut Judge, case: &TimingCase, seen: &Seen, session: &Session) {
    let Some(expected) = &case.expect.context_words else { return };
    let mut words: Vec<&str> = session
        .items()
        .iter()
        .filter_map(|item| match item {
            Item::Caller { text } if text != OPENING => Some(text.as_str()),
            _ => None,
        })
        .collect();
    // The words that confirmed the run are the answer, not context.
    if let Some(at) = words.iter().rposition(|text| Some(*text) == seen.confirmed_by.as_deref()) {
        words.remove(at);
    }
    let found = (!words.is_empty()).then(|| words.join(" "));
    judge.same("context_words", Some(expected), &found);
}
