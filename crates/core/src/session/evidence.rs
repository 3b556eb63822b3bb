//! What a decision leaves behind.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use crate::event::CheckAnswer;
use crate::evidence::{EvidenceRecord, HeardEvidence, SegmentEvidence};
use crate::ids::SegmentId;
use crate::segment::{Segment, Words};
use crate::session::Session;
use crate::session::gate::{Check, Hold, Judged};
use crate::time::Time;

/// What a record says of the answer.
struct Answered {
    words: String,
    segments: Vec<SegmentId>,
    onset: Option<(Time, i64)>,
    complete: Option<Time>,
    check: Option<CheckAnswer>,
    after_speech: bool,
}

impl Session {
    /// Keeps what was answered, for the record of a hold that closes after its answer was taken.
    pub(crate) fn note_judged(&mut self, check: &Check, answer: &CheckAnswer) {
        let Some(hold) = self.gate.heard() else { return };
        let onset = self.answer_onset(hold);
        let judged = Judged {
            words: check.words.clone(),
            segments: hold.answer.segments.clone(),
            onset: hold.asking.horizon().map(|horizon| (onset, onset.diff_micros(horizon))),
            complete: self.answer_complete_at(),
            check: Some(answer.clone()).filter(|_| hold.answer.digit.is_none()),
            after_speech: self.answered_after_speech(hold),
        };
        if let Some(hold) = self.gate.open_mut() {
            hold.judged = Some(judged);
        }
    }

    /// The same for a key that says no.
    pub(crate) fn note_refusing_key(&mut self, start: Time, horizon: Time) {
        let judged = Judged {
            words: String::from("2"),
            segments: Vec::new(),
            onset: Some((start, start.diff_micros(horizon))),
            complete: Some(start),
            check: None,
            after_speech: false,
        };
        if let Some(hold) = self.gate.open_mut() {
            hold.judged = Some(judged);
        }
    }

    pub(crate) fn record(&self, hold: &Hold, outcome: &str) -> EvidenceRecord {
        let heard = hold.asking.began.zip(hold.asking.finish).map(|(began, (ended, delay, evidence))| {
            HeardEvidence { began, ended, delay, horizon: ended + delay.at_most, evidence }
        });
        let answered = self.answered(hold);
        EvidenceRecord {
            hold: hold.id,
            call: hold.call.clone(),
            tool: hold.tool.clone(),
            input: hold.input.clone(),
            question: hold.question.clone(),
            language: hold.language.clone(),
            terms: hold.terms,
            began: hold.asking.began,
            heard,
            lost: if hold.asking.began.is_some() { hold.asking.lost_by(self.now) } else { Duration::ZERO },
            segments: self.segments.iter().map(segment_evidence).collect(),
            agent_speech_after: answered.after_speech,
            answer: answered.words,
            answer_segments: answered.segments,
            answer_onset: answered.onset.filter(|_| heard.is_some()),
            complete_at: answered.complete,
            check: answered.check,
            hung_up: self.line.hung_up.is_some(),
            braked: hold.rounds.braked,
            outcome: outcome.to_string(),
            decided_at: self.now,
        }
    }

    /// The answer so far; once it was taken, the one that was judged last.
    fn answered(&self, hold: &Hold) -> Answered {
        let begun = !hold.answer.segments.is_empty() || hold.answer.digit.is_some();
        if let Some(judged) = hold.judged.clone().filter(|_| !begun) {
            let Judged { words, segments, onset, complete, check, after_speech } = judged;
            return Answered { words, segments, onset, complete, check, after_speech };
        }
        let onset = self.answer_onset(hold);
        let horizon = hold.asking.horizon().filter(|_| begun);
        Answered {
            words: hold.answer.digit.map_or_else(|| self.words_of(hold), |(digit, _)| digit.to_string()),
            segments: hold.answer.segments.clone(),
            onset: horizon.map(|horizon| (onset, onset.diff_micros(horizon))),
            complete: self.answer_complete_at().filter(|_| begun),
            check: hold.answer.check.as_ref().and_then(|check| check.answer.clone()),
            after_speech: self.answered_after_speech(hold) || (!begun && hold.asking.other_speech.is_some()),
        }
    }
}

fn segment_evidence(segment: &Segment) -> SegmentEvidence {
    let words = match segment.words {
        Words::Awaited | Words::Unknown => None,
        Words::None => Some(false),
        Words::Text(_) => Some(!segment.echo),
    };
    SegmentEvidence { segment: segment.id, onset: segment.onset, offset: segment.offset, words }
}
