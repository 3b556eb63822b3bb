//! The journal of a call whose details are not kept.
//!
//! A journal of redacted inputs beside the commands of the real ones would not replay. So a second session is told the
//! redacted inputs at the same times, and its commands are what is written: they replay to the letter, and no detail was
//! ever in reach of them. It must want the same things at the same times as the real one, or the recording stops.

use std::collections::{BTreeMap, VecDeque};
use std::mem::discriminant;

use sayback_core::is_abbreviation;
use sayback_core::{Command, Event, EvidenceRecord, GenerationId, ModelEvent, Output, Policy, Session, Time};

use crate::redact::Redactor;

/// A session that is told no details.
pub(super) struct Shadow {
    session: Session,
    redactor: Redactor,
    /// What the model really wrote in each step.
    written: BTreeMap<GenerationId, String>,
    pending: VecDeque<Output>,
    record: Option<EvidenceRecord>,
}

impl std::fmt::Debug for Shadow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shadow").field("redactor", &self.redactor).finish_non_exhaustive()
    }
}

impl Shadow {
    pub(super) fn new(policy: &Policy, redactor: Redactor) -> Self {
        Self {
            session: Session::new(policy.clone()),
            redactor,
            written: BTreeMap::new(),
            pending: VecDeque::new(),
            record: None,
        }
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Takes what the core was told; gives it without details.
    pub(super) fn take(&mut self, at: Time, event: &Event) -> Event {
        let told = if let Event::Model(ModelEvent::Text { generation, text }) = event {
            let text = self.mask(*generation, text);
            Event::Model(ModelEvent::Text { generation: *generation, text })
        } else {
            self.redactor.event(event)
        };
        self.session.handle(at, told.clone());
        while let Some(output) = self.session.poll_output() {
            self.pending.push_back(output);
        }
        told
    }

    /// The wish that stands for a real one; `None`: this session wanted something else.
    pub(super) fn answer(&mut self, real: &Output) -> Option<Output> {
        let own = self.pending.pop_front()?;
        let same = match (&real.command, &own.command) {
            (Command::Report(real), Command::Report(own)) => discriminant(real) == discriminant(own),
            (Command::Record(real), Command::Record(own)) => {
                self.record = Some(EvidenceRecord::clone(own));
                (real.hold, &real.outcome) == (own.hold, &own.outcome)
            }
            (real, own) => discriminant(real) == discriminant(own),
        };
        (same && own.at == real.at).then_some(own)
    }

    /// The record that stands for the real one.
    pub(super) fn record(&mut self) -> Option<EvidenceRecord> {
        self.record.take()
    }

    /// What the model writes comes in pieces, and a detail may be cut anywhere: each letter becomes an x and each digit a
    /// 0. Where sentences end stays the same.
    fn mask(&mut self, generation: GenerationId, piece: &str) -> String {
        if !self.written.contains_key(&generation) {
            // One step at a time: what was written before is not needed any more.
            self.written.clear();
        }
        let written = self.written.entry(generation).or_default();
        let mut masked = String::with_capacity(piece.len());
        for c in piece.chars() {
            masked.push(match c {
                '.' if is_abbreviation(written) => ',',
                c if c.is_numeric() => '0',
                c if c.is_alphabetic() => 'x',
                c => c,
            });
            written.push(c);
        }
        masked
    }
}
