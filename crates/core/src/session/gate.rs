//! The gate: the one held call, whether its question was heard, and what answers it.
//!
//! ```text
//! Idle -> Waiting (held, the step or a lead-in is still being said)
//!      -> Asking  (the question was handed to the voice; sounds; blocked while an earlier segment is unresolved)
//!      -> Heard   (open; which of Open, Hearing, Checking, Grace follows from the answer's segments and its check)
//!      -> Committing (the tool runs)
//! ```
//! Every exit goes through `Session::close_hold` or the commit, and is reported with a reason.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::approval::Approval;
use crate::event::{AskTerms, AskedQuestion, CheckAnswer, EvidenceClass, Frozen, ToolRef};
use crate::evidence::EvidenceRecord;
use crate::ids::{CallId, CheckId, GenerationId, HoldId, SegmentId, UtteranceId};
use crate::ledger::Ledger;
use crate::time::{LoopDelay, Time};

/// How far a hold has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// Held; the question waits for the step (or the lead-in of a re-ask) to be complete.
    Waiting,
    /// Handed to the voice, not yet heard to its end.
    Asking,
    /// Heard: open for an answer.
    Heard,
    /// The answer was yes and the tool runs.
    Committing,
}

/// One asking of the question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Asking {
    pub(crate) utterance: Option<UtteranceId>,
    /// When its first sample sounded: q0.
    pub(crate) began: Option<Time>,
    /// When its last audible sample left, the loop from there, and how this is known.
    pub(crate) finish: Option<(Time, LoopDelay, EvidenceClass)>,
    /// How much of it was lost, to a held line or on the way, and since when the line is held.
    pub(crate) held: (Duration, Option<Time>),
    /// When the first other agent speech after it began.
    pub(crate) other_speech: Option<Time>,
    /// From when to when it had sounded before a long pause made it start again. Speech over that part whose words
    /// were not known yet was over the question.
    pub(crate) cut: Option<(Time, Time)>,
}

impl Asking {
    /// How much of it never reached the ear, up to `until`.
    pub(crate) fn lost_by(&self, until: Time) -> Duration {
        self.held.0 + self.held.1.map_or(Duration::ZERO, |since| until.since(since))
    }

    /// The horizon: an answer begins at or after this.
    pub(crate) fn horizon(&self) -> Option<Time> {
        self.finish.map(|(end, delay, _)| end + delay.at_most)
    }
}

/// A check under way or answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Check {
    pub(crate) id: CheckId,
    pub(crate) words: String,
    pub(crate) started: Time,
    pub(crate) answer: Option<CheckAnswer>,
}

/// What the caller answered so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Answer {
    /// Segments that began behind the horizon.
    pub(crate) segments: Vec<SegmentId>,
    /// The one check that counts.
    pub(crate) check: Option<Check>,
    /// A key that said yes, and when it went down.
    pub(crate) digit: Option<(char, Time)>,
    /// The row of keys that is being pressed: when its last one went down, and whether it is more than ones.
    pub(crate) row: Option<(Time, bool)>,
    /// The verdict was reported.
    pub(crate) reported: bool,
}

/// Two keys closer than this are dialled in a row: a number, not an answer.
pub(crate) const KEYS_IN_A_ROW: Duration = Duration::from_millis(600);

impl Answer {
    /// A key that went down behind the horizon: 1 says yes, if it stands alone. Pressed twice it is still one yes.
    pub(crate) fn press(&mut self, digit: char, start: Time) {
        let dialled = self.row.is_some_and(|(last, dialled)| dialled && start.since(last) < KEYS_IN_A_ROW);
        let dialled = dialled || digit != '1';
        self.row = Some((start, dialled));
        if dialled {
            (self.digit, self.reported) = (None, false);
        } else {
            self.digit = Some((digit, start));
        }
    }
}

/// An answer as it was judged last, since the question was last said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Judged {
    pub(crate) words: String,
    pub(crate) segments: Vec<SegmentId>,
    /// Onset, earliest, and its distance from the horizon in microseconds.
    pub(crate) onset: Option<(Time, i64)>,
    pub(crate) complete: Option<Time>,
    /// What the check said; a key needs none.
    pub(crate) check: Option<CheckAnswer>,
    pub(crate) after_speech: bool,
}

/// A held call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hold {
    pub(crate) id: HoldId,
    pub(crate) call: CallId,
    pub(crate) generation: Option<GenerationId>,
    pub(crate) tool: ToolRef,
    pub(crate) input: Frozen,
    pub(crate) question: String,
    pub(crate) language: String,
    pub(crate) terms: AskTerms,
    pub(crate) stage: Stage,
    pub(crate) asking: Asking,
    pub(crate) answer: Answer,
    pub(crate) judged: Option<Judged>,
    pub(crate) rounds: Rounds,
    /// The definition changed; it is being built anew before the run.
    pub(crate) reverifying: bool,
    /// The operator's approval that came before the question.
    pub(crate) approval: Option<Approval>,
}

/// How often a hold was asked, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rounds {
    /// Unclear answers so far.
    pub(crate) unclear: u8,
    /// Times the question was said again because of silence.
    pub(crate) silent: u8,
    /// The question was said at least once.
    pub(crate) asked: bool,
    /// Barge-in is ignored: it was dropped by speech twice before (VC-83).
    pub(crate) braked: bool,
    /// The runtime has asked again by itself (VC-82).
    pub(crate) again: bool,
    /// The caller asked to wait, at this time; the re-ask waits for speech (decision 14).
    pub(crate) wait_since: Option<Time>,
}

/// How often an action's question was dropped by speech or not played.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Misses {
    pub(crate) tool: String,
    pub(crate) input_hash: String,
    pub(crate) by_speech: u8,
    pub(crate) not_played: u8,
}

/// The one slot, what waits for it, and what is remembered of closed holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Gate {
    pub(crate) hold: Option<Hold>,
    /// A call that came while the tool was running (row 4 of the table).
    pub(crate) next: Option<Hold>,
    pub(crate) misses: Vec<Misses>,
    /// The questions that were heard, and what ran on a yes to them: the conversation may be taken back to one.
    pub(crate) asked: Vec<AskedQuestion>,
    /// The yeses of this call.
    pub(crate) ledger: Ledger,
    /// The record of the run under way; its outcome is still to come.
    pub(crate) committed: Option<EvidenceRecord>,
}

impl Gate {
    /// The hold, unless its tool is already running.
    pub(crate) fn open(&self) -> Option<&Hold> {
        self.hold.as_ref().filter(|hold| hold.stage != Stage::Committing)
    }

    pub(crate) fn open_mut(&mut self) -> Option<&mut Hold> {
        self.hold.as_mut().filter(|hold| hold.stage != Stage::Committing)
    }

    /// The hold, if its question was heard and the tool does not run yet.
    pub(crate) fn heard(&self) -> Option<&Hold> {
        self.hold.as_ref().filter(|hold| hold.stage == Stage::Heard)
    }

    pub(crate) fn committing(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.stage == Stage::Committing)
    }

    pub(crate) fn misses_mut(&mut self, tool: &str, input_hash: &str) -> Option<&mut Misses> {
        self.misses.iter_mut().find(|m| m.tool == tool && m.input_hash == input_hash)
    }
}
