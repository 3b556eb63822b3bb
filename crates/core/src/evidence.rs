//! What is kept of each decision, so that it can be checked and decided again later.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::Serialize;

use crate::event::{AskTerms, CheckAnswer, EvidenceClass, Frozen, ToolRef};
use crate::ids::{CallId, HoldId, SegmentId};
use crate::time::{Interval, LoopDelay, Time};

/// The facts behind one closed hold. The shell adds hashes, chains it and stores it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct EvidenceRecord {
    /// The hold.
    pub hold: HoldId,
    /// The model's call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolRef,
    /// What would run, or ran.
    pub input: Frozen,
    /// The question, word for word.
    pub question: String,
    /// Its language.
    pub language: String,
    /// What the tool asks for beyond a yes.
    pub terms: AskTerms,
    /// When its last asking began to sound; absent if it never did.
    pub began: Option<Time>,
    /// When its last asking sounded and how that is known; absent if it never did.
    pub heard: Option<HeardEvidence>,
    /// How much of that asking never reached the ear.
    pub lost: Duration,
    /// The segments since the hold began.
    pub segments: Vec<SegmentEvidence>,
    /// Agent speech that the caller heard after the question.
    pub agent_speech_after: bool,
    /// The caller's words, or the digit.
    pub answer: String,
    /// The segments that the answer is made of; none for a digit.
    pub answer_segments: Vec<SegmentId>,
    /// Onset of the answer, earliest, and its distance from the horizon in microseconds.
    pub answer_onset: Option<(Time, i64)>,
    /// When the answer turn was complete: grace is counted from here.
    pub complete_at: Option<Time>,
    /// What the check said last.
    pub check: Option<CheckAnswer>,
    /// The caller had hung up by then.
    pub hung_up: bool,
    /// Barge-in was ignored: the same question had been dropped by speech twice.
    pub braked: bool,
    /// How it ended: `executed`, `failed`, `declined`, `barge_in`, …
    pub outcome: String,
    /// When.
    pub decided_at: Time,
}

/// When a question was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct HeardEvidence {
    /// When its first sample sounded.
    pub began: Time,
    /// When its last audible sample left for the ear.
    pub ended: Time,
    /// The loop from there.
    pub delay: LoopDelay,
    /// The horizon: an answer begins at or after this.
    pub horizon: Time,
    /// How this is known.
    pub evidence: EvidenceClass,
}

/// One segment of caller sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct SegmentEvidence {
    /// The segment.
    pub segment: SegmentId,
    /// When it began.
    pub onset: Interval,
    /// When it ended.
    pub offset: Option<Time>,
    /// Whether it had words; absent while unknown.
    pub words: Option<bool>,
}
