//! What is to be said, what of it has left, and what that means.
//!
//! Pure: whoever drives it hands in the time, sends what [`Mouth::poll`] gives, and says with [`Mouth::sent`] when it
//! had left. Frames leave at the pace of a sample clock that begins with the first one and never runs ahead of the
//! time it is handed; a driver that comes too late moves it, so that no burst is sent.
//!
//! ```text
//! begun ── first sample sent ──> Started
//!   └─ voice done ──> Synthesised
//!        └─ last audible sample sent ──┬─ Proof::Sent ──> Finished
//!                                      └─ Proof::Marks: mark sent ── it comes back ──> Finished
//! any ── clear ──> Cleared, a new generation: marks of the old one mean nothing    any ── line lost ──> Failed
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use sayback_core::{EvidenceClass, LoopDelay, PlayoutEvent, PlayoutFailure, Time, UtteranceId};
use sayback_media::playout::Mark;
use sayback_media::resample::ResampleError;
use sayback_media::{PlayoutQueue, pcm};

use super::speech::Speech;
use super::way::Way;

/// A driver that comes later than this moves the clock: what is older is not worth a burst.
const MOST_LATE: Duration = Duration::from_millis(60);
/// Marks that may be on their way; a far end that returns none must not fill the memory.
const MARKS: usize = 64;
/// What is "all of it" where a path changed while something sounded.
const ALL: Duration = Duration::from_secs(3_600);
/// How much of what was sent is kept, to tell the agent's own voice in what comes in.
const KEPT_SECONDS: usize = 2;

/// Why an utterance cannot be lined up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The voice's rate is none that is converted.
    #[error("the voice cannot be sent: {0}")]
    Rate(#[from] ResampleError),
}

/// How it is known that the far end has played something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Handing a sample to the network is all that we see; the loop delay covers the rest.
    Sent,
    /// The far end sends marks back once it has played what came before them.
    Marks,
}

/// How a wire is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireOptions {
    /// Samples a second on the wire.
    pub rate: u32,
    /// Length of a frame.
    pub frame: Duration,
    /// How much earlier than in real time frames leave, as a cushion against a network that holds them up.
    pub lead: Duration,
    /// How it is known what was played.
    pub proof: Proof,
    /// The loop behind the point that the proof speaks of.
    pub delay: LoopDelay,
    /// What the proof is called in the event log.
    pub evidence: EvidenceClass,
    /// The far end hears a telephone's band only.
    pub telephone: bool,
    /// Frames are sent while nothing is said too.
    pub continuous: bool,
}

/// What is to be sent next, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Out {
    /// The frame in the buffer. To be followed by [`Mouth::sent`].
    Frame {
        /// Position of its first sample on the wire's own count.
        position: u64,
        /// It holds no speech; a transport may leave it out, or send comfort noise.
        silent: bool,
    },
    /// A mark behind everything sent so far; to be given back through [`Mouth::on_mark`].
    Mark {
        /// Its name.
        name: String,
    },
    /// The far end is to throw away what it has not played.
    Clear,
    /// Keys are to be pressed.
    Digits {
        /// `0`-`9`, `*`, `#`, `A`-`D`.
        digits: String,
    },
    /// The call ends from our side.
    End,
}

/// What a wire has gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that were to be sent.
    pub frames: u64,
    /// Of these, how many left more than 20 ms late.
    pub late: u64,
    /// How late the latest of them was.
    pub latest: Duration,
    /// Samples of silence that a slow voice put into utterances.
    pub underruns: u64,
    /// Marks that came back and meant nothing: of an earlier generation, unknown, or twice.
    pub stray_marks: u64,
}

/// An utterance that sounds or waits for its mark.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    id: UtteranceId,
    started: Time,
    /// Samples of it that never reached the far end.
    lost: u64,
    /// How late the latest frame of it left. A far end that had run dry by then plays all the rest later, even if we
    /// have caught up.
    late: Duration,
}

#[derive(Clone, Copy, Debug)]
struct AwaitedMark {
    leaving: Leaving,
    /// When its last audible sample was due at the far end at the earliest.
    due: Time,
    /// How far the last audible sample lies behind the place of the mark.
    behind: Duration,
}

/// The agent's side of a wire.
#[derive(Debug)]
pub struct Mouth {
    options: WireOptions,
    queue: PlayoutQueue,
    /// Utterances that the voice is still giving.
    speaking: VecDeque<Speech>,
    /// When the sample at position zero was due at the far end, moved on by what was skipped.
    base: Time,
    generation: u32,
    muted: bool,
    paused: bool,
    gone: bool,
    leaving: VecDeque<Leaving>,
    awaited: VecDeque<AwaitedMark>,
    way: Way,
    out: VecDeque<Out>,
    events: VecDeque<PlayoutEvent>,
    /// The end of what was sent, at the wire's rate, as 16 bits: a server holds hundreds of these.
    kept: VecDeque<i16>,
    /// How much silence it ends with.
    quiet: usize,
    scratch: Vec<f32>,
    counts: Counts,
}

impl Mouth {
    /// A wire whose first frame may leave at `now`.
    pub fn new(options: WireOptions, now: Time) -> Self {
        let queue = PlayoutQueue::new(options.rate);
        let queue = if options.telephone { queue.to_telephone() } else { queue };
        Self {
            options,
            queue,
            speaking: VecDeque::new(),
            base: now + options.lead,
            generation: 0,
            muted: false,
            paused: false,
            gone: false,
            leaving: VecDeque::new(),
            awaited: VecDeque::new(),
            way: Way::new(options.delay, options.evidence),
            out: VecDeque::new(),
            events: VecDeque::new(),
            kept: VecDeque::with_capacity(kept_samples(options.rate)),
            quiet: 0,
            scratch: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Samples in a frame.
    pub fn frame_len(&self) -> usize {
        let len = u64::from(self.options.rate) * micros(self.options.frame) / 1_000_000;
        usize::try_from(len).unwrap_or(1).max(1)
    }

    /// What the wire has gone through so far.
    pub fn counts(&self) -> Counts {
        Counts { underruns: self.queue.underruns(), ..self.counts }
    }

    /// What is known of the way behind the wire has changed; utterances that end from now on are reported with it.
    pub fn set_loop(&mut self, delay: LoopDelay, evidence: EvidenceClass) {
        self.way.set(delay, evidence);
    }

    /// The far end does not get what is sent (hold, a muted leg): what sounds meanwhile is lost.
    pub fn set_muted(&mut self, muted: bool) {
        self.muted = muted;
    }

    /// So much of what sounds now did not reach the far end.
    pub fn lose(&mut self, length: Duration) {
        let samples = micros(length) * u64::from(self.options.rate) / 1_000_000;
        if let Some(leaving) = self.leaving.front_mut() {
            leaving.lost += samples;
        } else if let Some(awaited) = self.awaited.back_mut() {
            awaited.leaving.lost += samples;
        }
    }

    /// Nothing of what sounds now, or still waits for its mark, is known to have reached the far end, and it will not be.
    pub fn lose_all(&mut self) {
        let all = micros(ALL) * u64::from(self.options.rate) / 1_000_000;
        let awaited = self.awaited.iter_mut().map(|awaited| &mut awaited.leaving);
        for leaving in self.leaving.iter_mut().chain(awaited) {
            leaving.lost += all;
        }
    }

    /// A mark will not come back, or nobody can say any more where it was: what it stands behind was not heard.
    pub fn miss_mark(&mut self, name: &str, now: Time) {
        let Some(at) = self.awaited.iter().position(|mark| self.name(mark.leaving.id) == name) else {
            return;
        };
        if let Some(missed) = self.awaited.remove(at) {
            let played = now.since(missed.leaving.started);
            self.fail_with(missed.leaving.id, PlayoutFailure::NotPlayed, played);
        }
    }

    /// The way to the far end is another from now on: what sounds or is still on its way may not arrive (VC-42).
    pub fn change_path(&mut self, now: Time) {
        self.lose(ALL);
        for (utterance, played) in self.way.change(now) {
            self.fail_with(utterance, PlayoutFailure::NotPlayed, played);
        }
    }

    /// So long the packets to the far end and back take at least: no echo of the ear is sooner.
    pub fn set_trip(&mut self, least: Duration) {
        self.way.set_floor(least);
    }

    /// Our own voice came back so long after it was sent. Where marks tell what was played, the way is counted from
    /// those, and this is not used.
    pub fn hear_echo(&mut self, back: Duration, now: Time) {
        if self.options.proof == Proof::Sent {
            self.way.hear_echo(back, now);
        }
    }

    /// Tells of an utterance that its last audible sample has gone.
    fn finish_leaving(&mut self, leaving: Leaving, last_audible: Time) {
        let (delay, evidence) = self.way.leave(leaving.id, leaving.started, last_audible);
        let (utterance, lost) = (leaving.id, self.span(leaving.lost));
        self.events.push_back(PlayoutEvent::Finished { utterance, last_audible, delay, evidence, lost });
    }

    /// Lines up an utterance behind those that are there. Its voice gives `rate` mono samples a second.
    ///
    /// # Errors
    /// If the rate is none that is converted.
    pub fn begin(&mut self, id: UtteranceId, rate: u32) -> Result<(), WireError> {
        let speech = Speech::new(id, rate, self.options.rate)?;
        if self.gone {
            self.fail_with(id, PlayoutFailure::DeviceLost, Duration::ZERO);
        } else if self.queue.begin(id) {
            self.speaking.push_back(speech);
        }
        Ok(())
    }

    /// More of an utterance, as fast as the voice gives it. False: nobody wants it any more.
    pub fn push(&mut self, id: UtteranceId, samples: &[i16]) -> bool {
        let Some(speech) = self.speaking.iter_mut().find(|speech| speech.id == id) else { return false };
        if !speech.has_room(samples.len()) {
            self.fail(id, PlayoutFailure::NotPlayed);
            return false;
        }
        self.scratch.clear();
        speech.push(samples, &mut self.scratch);
        self.queue.push(id, &self.scratch)
    }

    /// The voice has given all of an utterance.
    pub fn finish(&mut self, id: UtteranceId) {
        let Some(at) = self.speaking.iter().position(|speech| speech.id == id) else { return };
        if let Some(mut speech) = self.speaking.remove(at) {
            self.scratch.clear();
            speech.finish(&mut self.scratch);
            self.queue.push(id, &self.scratch);
        }
        match self.queue.finish(id) {
            Some(audible) => self.events.push_back(PlayoutEvent::Synthesised {
                utterance: id,
                audible_from: self.span(audible.from),
                audible_to: self.span(audible.to),
            }),
            None => self.fail_with(id, PlayoutFailure::NoSamples, Duration::ZERO),
        }
    }

    /// The rest of an utterance will not come.
    pub fn fail(&mut self, id: UtteranceId, failure: PlayoutFailure) {
        self.speaking.retain(|speech| speech.id != id);
        self.leaving.retain(|leaving| leaving.id != id);
        if let Some(played) = self.queue.fail(id) {
            let played = self.span(played);
            self.fail_with(id, failure, played);
        }
    }

    /// Silence from the next frame on, keeping the queue.
    pub fn pause(&mut self) {
        self.paused = true;
        self.queue.pause();
    }

    /// Goes on where a pause began.
    pub fn resume(&mut self) {
        self.paused = false;
        self.queue.resume();
    }

    /// Throws away all that has not been played, and ends a pause.
    ///
    /// What waits for its mark is thrown away too: whether it was played before the far end obeyed cannot be told from
    /// a mark that comes back, because a far end returns the marks of what it throws away as well.
    pub fn clear(&mut self, now: Time) {
        self.generation = self.generation.wrapping_add(1);
        self.paused = false;
        self.speaking.clear();
        for awaited in std::mem::take(&mut self.awaited) {
            let played = now.since(awaited.leaving.started);
            self.events.push_back(PlayoutEvent::Cleared {
                utterance: awaited.leaving.id,
                played,
                audible_to: Some(awaited.due.since(awaited.leaving.started)),
                audible_from: Duration::ZERO,
            });
        }
        for cleared in self.queue.clear() {
            let played = self.span(cleared.played).saturating_sub(self.options.lead);
            self.events.push_back(PlayoutEvent::Cleared {
                utterance: cleared.utterance,
                played,
                audible_to: cleared.audible_to.map(|to| self.span(to)),
                audible_from: self.span(cleared.audible_from),
            });
        }
        self.leaving.clear();
        self.out.retain(|out| !matches!(out, Out::Mark { .. }));
        self.out.push_back(Out::Clear);
    }

    /// Presses keys at the far end.
    pub fn press(&mut self, digits: String) {
        self.out.push_back(Out::Digits { digits });
    }

    /// The call ends from our side.
    pub fn end(&mut self) {
        self.out.push_back(Out::End);
    }

    /// The wire is gone: nothing that waits for it will be heard.
    pub fn lose_line(&mut self, now: Time) {
        self.gone = true;
        self.speaking.clear();
        for awaited in std::mem::take(&mut self.awaited) {
            let played = now.since(awaited.leaving.started);
            self.fail_with(awaited.leaving.id, PlayoutFailure::DeviceLost, played);
        }
        for cleared in self.queue.clear() {
            let played = self.span(cleared.played);
            self.fail_with(cleared.utterance, PlayoutFailure::DeviceLost, played);
        }
        self.leaving.clear();
        self.out.clear();
    }

    /// When [`poll`](Self::poll) has something again; `None`: not before something is said.
    pub fn poll_timeout(&self) -> Option<Time> {
        if !self.out.is_empty() {
            return Some(Time::ZERO);
        }
        (!self.is_idle()).then(|| self.leaves_at(self.queue.position()))
    }

    /// What is to be sent next, if anything is due by `now`; a frame's samples are put into `frame`.
    pub fn poll(&mut self, now: Time, frame: &mut Vec<f32>) -> Option<Out> {
        if let Some(out) = self.out.pop_front() {
            return Some(out);
        }
        if self.is_idle() {
            return None;
        }
        let due = self.leaves_at(self.queue.position());
        if now < due {
            return None;
        }
        self.catch_up(now, due);
        let silent = self.queue.waiting() == 0;
        frame.clear();
        frame.resize(self.frame_len(), 0.0);
        let position = self.queue.pull(frame);
        let silent = silent || (self.paused && frame.iter().all(|sample| *sample == 0.0));
        self.keep(frame);
        Some(Out::Frame { position, silent })
    }

    /// The frame that was polled last had left by `now`.
    pub fn sent(&mut self, now: Time) {
        let len = self.frame_len() as u64;
        let from = self.queue.position().saturating_sub(len);
        let late = now.since(self.leaves_at(from));
        self.counts.frames += 1;
        self.counts.latest = self.counts.latest.max(late);
        if late > Duration::from_millis(20) {
            self.counts.late += 1;
        }
        if let Some(leaving) = self.leaving.front_mut() {
            leaving.late = leaving.late.max(late);
        }
        while let Some(mark) = self.queue.poll_mark() {
            self.on_queue_mark(mark, late);
        }
        if self.muted
            && let Some(leaving) = self.leaving.front_mut()
        {
            leaving.lost += len;
        }
    }

    /// A mark came back. `place` is its place in the inbound stream: the end of the sound that came before it, never
    /// its own arrival.
    pub fn on_mark(&mut self, name: &str, place: Time) {
        let Some(at) = self.awaited.iter().position(|mark| self.name(mark.leaving.id) == name) else {
            self.counts.stray_marks += 1;
            return;
        };
        // A far end plays in order: what was sent before this mark has been played too, even if its own mark is lost.
        for mark in self.awaited.drain(..=at).collect::<Vec<_>>() {
            // Nothing is played before it is sent, whatever the far end says.
            let last_audible = (place + mark.behind).max(mark.due);
            self.finish_leaving(mark.leaving, last_audible);
        }
    }

    /// Whether there is something to report.
    pub fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next thing to report.
    pub fn poll_event(&mut self) -> Option<PlayoutEvent> {
        self.events.pop_front()
    }

    /// What was sent from `start` on, as `out` samples at `rate`; silence where nothing is known. For telling the
    /// agent's own voice in what comes in, so nearness is enough: it is interpolated.
    pub fn sent_between(&self, start: Time, rate: u32, out: &mut [f32]) {
        let first = self.queue.position().saturating_sub(self.kept.len() as u64);
        let from = start.diff_micros(self.base) as f64 * f64::from(self.options.rate) / 1e6 - first as f64;
        // Most of the time the agent says nothing.
        if from >= self.kept.len().saturating_sub(self.quiet) as f64 {
            out.fill(0.0);
            return;
        }
        let step = f64::from(self.options.rate) / f64::from(rate.max(1));
        let at = |index: f64| {
            let inside = index >= 0.0 && index < self.kept.len() as f64;
            if inside { self.kept.get(index as usize).copied().map_or(0.0, pcm::to_f32) } else { 0.0 }
        };
        for (n, sample) in out.iter_mut().enumerate() {
            let place = from + n as f64 * step;
            let share = (place - place.floor()) as f32;
            *sample = at(place.floor()) * (1.0 - share) + at(place.floor() + 1.0) * share;
        }
    }

    fn is_idle(&self) -> bool {
        self.gone || (!self.options.continuous && self.queue.is_empty())
    }

    /// When the sample at a position leaves us.
    fn leaves_at(&self, position: u64) -> Time {
        self.due_at(position) - self.options.lead
    }

    /// When the sample at a position is due at the far end, if the network took no time.
    fn due_at(&self, position: u64) -> Time {
        self.base + self.span(position)
    }

    /// Moves the clock if the frame that was due at `due` comes too late, or comes after a time in which none was sent.
    fn catch_up(&mut self, now: Time, due: Time) {
        let late = now.since(due);
        let begins = !self.options.continuous && self.leaving.is_empty();
        if late > MOST_LATE || begins {
            if late > MOST_LATE && !begins {
                self.counts.late += 1;
                self.counts.latest = self.counts.latest.max(late);
            }
            self.base = self.base + late;
        }
    }

    fn on_queue_mark(&mut self, mark: Mark, late: Duration) {
        match mark {
            Mark::Started { utterance, at } => {
                let started = self.leaves_at(at) + late;
                self.leaving.push_back(Leaving { id: utterance, started, lost: 0, late });
                self.events.push_back(PlayoutEvent::Started { utterance, at: started });
            }
            Mark::Finished { utterance, last_audible, .. } => self.on_left(utterance, last_audible),
            Mark::Paused { at } => self.events.push_back(PlayoutEvent::Paused { at: self.due_at(at) + late }),
            Mark::Resumed { at } => {
                self.events.push_back(PlayoutEvent::Resumed { at: self.due_at(at) + late });
            }
        }
    }

    fn on_left(&mut self, utterance: UtteranceId, last_audible: u64) {
        let Some(at) = self.leaving.iter().position(|leaving| leaving.id == utterance) else { return };
        let Some(mut leaving) = self.leaving.remove(at) else { return };
        if self.muted {
            leaving.lost += self.frame_len() as u64;
        }
        let due = self.due_at(last_audible) + leaving.late;
        match self.options.proof {
            Proof::Sent => self.finish_leaving(leaving, due),
            Proof::Marks => {
                if self.awaited.len() == MARKS {
                    // The oldest is given up; the core counts it as not heard.
                    self.awaited.pop_front();
                }
                let behind = self.span(last_audible.saturating_sub(self.queue.position()));
                self.awaited.push_back(AwaitedMark { leaving, due, behind });
                let name = self.name(utterance);
                self.out.push_back(Out::Mark { name });
            }
        }
    }

    /// A mark's name: generation and utterance, so that none of before a clear is taken for one of after it.
    fn name(&self, utterance: UtteranceId) -> String {
        format!("{}.{utterance}", self.generation)
    }

    fn fail_with(&mut self, utterance: UtteranceId, failure: PlayoutFailure, played: Duration) {
        self.events.push_back(PlayoutEvent::Failed { utterance, failure, played });
    }

    fn keep(&mut self, frame: &[f32]) {
        // What is old goes first, or the buffer would double to take the new.
        let most = kept_samples(self.options.rate);
        let over = (self.kept.len() + frame.len()).saturating_sub(most).min(self.kept.len());
        self.kept.drain(..over);
        self.kept.extend(frame.iter().map(|sample| pcm::to_i16(*sample)));
        let is_silent = frame.iter().all(|sample| *sample == 0.0);
        self.quiet = if is_silent { (self.quiet + frame.len()).min(most) } else { 0 };
    }

    fn span(&self, samples: u64) -> Duration {
        Duration::from_micros(samples.saturating_mul(1_000_000) / u64::from(self.options.rate.max(1)))
    }
}

fn kept_samples(rate: u32) -> usize {
    KEPT_SECONDS * rate as usize
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX / 1_000_000)
}
