//! Recognition that hears along: each segment's sound goes to the engine as it comes.
//!
//! A segment is one stretch of the engine's. In a pause the words so far are asked for; if the pause was the segment's
//! end, they are there when the core wants them. An engine that failed is begun anew with the next segment; what waits
//! when it fails is left to the core's limit, which counts it as speech that nobody understood.

use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sayback_core::{Event, SegmentId, Time, Transcript};

use super::{BEFORE, RATE, Shared, final_event};
use crate::stt::{Live, LiveEvent, Transcribe, Transcription};

/// Frames of pause after which the words so far are asked for: a flush cuts the engine's context, so a pause inside a
/// word must not bring one.
pub(super) const PAUSE_FRAMES: u8 = 5;
/// Sound between two such flushes: vendors ask not to be flushed all the time.
const EARLY_EVERY: Duration = Duration::from_secs(1);

/// Longer than any limit of the core for words.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The engine, and how it is begun.
#[derive(Debug)]
pub(super) struct Along {
    stt: Arc<dyn Transcribe>,
    shared: Weak<Shared>,
    /// Which beginning this is: what an engine sends that was given up is not taken.
    epoch: u64,
    engine: Option<Box<dyn Live>>,
    /// The segment for which it was begun: one that fails at once is not begun again for the same.
    begun_for: Option<SegmentId>,
}

impl Along {
    /// `None` if the engine takes whole segments only.
    pub(super) fn begin(stt: &Arc<dyn Transcribe>, shared: &Weak<Shared>) -> Option<Self> {
        let (stt, shared) = (Arc::clone(stt), Weak::clone(shared));
        let mut along = Self { stt, shared, epoch: 0, engine: None, begun_for: None };
        if !along.stt.hears_along() {
            return None;
        }
        along.engine = along.open();
        Some(along)
    }

    fn open(&mut self) -> Option<Box<dyn Live>> {
        self.epoch += 1;
        let (shared, epoch) = (Weak::clone(&self.shared), self.epoch);
        self.stt.live(Box::new(move |event| {
            if let Some(shared) = shared.upgrade() {
                shared.on_live(epoch, event);
            }
        }))
    }
}

/// Samples as time.
fn span(samples: usize) -> Duration {
    Duration::from_micros(samples as u64 * 1_000_000 / u64::from(RATE))
}

impl Shared {
    /// Hands the engine what it has not heard of the open segments; `flush`: this one's words are wanted now.
    pub(super) fn hear_along(&self, flush: Option<SegmentId>) {
        let Some(mut along) = self.along() else { return };
        for (id, sound) in self.unheard(flush) {
            if along.engine.is_none() && along.begun_for != Some(id) {
                along.begun_for = Some(id);
                along.engine = along.open();
            }
            let Some(engine) = along.engine.as_mut() else { continue };
            if !sound.is_empty() {
                engine.push(id.0, &sound);
            }
            if flush == Some(id) {
                engine.flush(id.0);
            }
        }
    }

    /// Whether a pause in this segment is worth a flush.
    pub(super) fn may_flush_early(&self, id: SegmentId) -> bool {
        let state = self.state();
        let Some(open) = state.open.iter().find(|open| open.id == id) else { return false };
        match (&open.early, open.heard) {
            (Some((asked, _)), Some(heard)) => heard.since(*asked) >= EARLY_EVERY,
            _ => true,
        }
    }

    /// What the engine has not heard yet, by segment; a flush is noted with how far it reaches.
    fn unheard(&self, flush: Option<SegmentId>) -> Vec<(SegmentId, Vec<f32>)> {
        let mut state = self.state();
        let state = &mut *state;
        let mut unheard = Vec::new();
        for open in &mut state.open {
            let flushed = flush == Some(open.id);
            if open.closed.is_some() && !flushed {
                continue;
            }
            let begin = open.onset.earliest - BEFORE;
            let from = open.heard.unwrap_or(begin);
            let sound = state.sound.slice(from, Time::from_micros(u64::MAX / 2));
            let upto = from + span(sound.len());
            open.heard = Some(upto);
            if flushed {
                open.early = Some((upto, None));
            }
            if flushed || !sound.is_empty() {
                unheard.push((open.id, sound));
            }
        }
        unheard
    }

    /// Segments whose words never came: the core has long stopped to wait.
    pub(super) fn forget_unanswered(&self, now: Time) {
        let old = |closed: Option<Time>| closed.is_some_and(|at| now.since(at) > LONGEST_WAIT);
        let forgotten: Vec<SegmentId> = {
            let mut state = self.state();
            let forgotten = state.open.iter().filter(|o| old(o.closed)).map(|o| o.id).collect();
            state.open.retain(|open| !old(open.closed));
            forgotten
        };
        for id in forgotten {
            self.forget(id);
        }
    }

    /// Nobody waits for this segment's words any more.
    pub(super) fn forget(&self, id: SegmentId) {
        if let Some(mut along) = self.along()
            && let Some(engine) = along.engine.as_mut()
        {
            engine.forget(id.0);
        }
    }

    fn along(&self) -> Option<MutexGuard<'_, Along>> {
        Some(self.along.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn on_live(&self, epoch: u64, event: LiveEvent) {
        if self.along().is_none_or(|along| along.epoch != epoch) {
            return;
        }
        match event {
            LiveEvent::Partial { stretch, text } => self.on_partial(SegmentId(stretch), text),
            LiveEvent::Final { stretch, upto, found } => self.on_final(SegmentId(stretch), upto, found),
            LiveEvent::Unplaced { text } => self.on_unplaced(text),
            LiveEvent::Failed { error } => {
                tracing::error!("{error}");
                if let Some(mut along) = self.along() {
                    along.engine = None;
                }
                // A new engine hears an open segment from its beginning.
                for open in &mut self.state().open {
                    open.heard = None;
                }
            }
        }
    }

    fn on_partial(&self, segment: SegmentId, text: String) {
        let wanted = self.state().open.iter().any(|open| open.id == segment && open.closed.is_none());
        if wanted {
            self.send(Event::Partial { segment, text });
        }
    }

    fn on_final(&self, segment: SegmentId, samples: usize, found: Transcription) {
        let mut state = self.state();
        let Some(open) = state.open.iter_mut().find(|open| open.id == segment) else { return };
        let upto = open.onset.earliest - BEFORE + span(samples);
        // Only the latest flush counts: an earlier one has less of the sound.
        let is_latest = open.early.as_ref().is_some_and(|(asked, _)| *asked <= upto);
        match open.closed {
            Some(offset) if is_latest || upto >= offset => {
                state.open.retain(|open| open.id != segment);
                drop(state);
                self.forget(segment);
                self.send(final_event(segment, found));
            }
            Some(_) => {}
            None if is_latest => open.early = Some((upto, Some(found))),
            None => {}
        }
    }

    /// Words that may belong to any segment that waits: the core takes them for all of these (VC-38).
    fn on_unplaced(&self, text: String) {
        let waiting: Vec<SegmentId> = {
            let mut state = self.state();
            let waiting =
                state.open.iter().filter(|open| open.closed.is_some()).map(|open| open.id).collect();
            state.open.retain(|open| open.closed.is_none());
            waiting
        };
        for segment in waiting {
            self.forget(segment);
        }
        let transcript =
            Transcript { segments: Vec::new(), span: None, text, confidence: None, phantom: None };
        self.send(Event::Transcript(transcript));
    }
}
