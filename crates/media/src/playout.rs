//! What the agent says, on its way to the line, sample by sample.
//!
//! A voice pushes utterances as it makes them; a device or a transport pulls frames of any size at its own pace. The
//! queue knows which utterance sounds at which pulled sample, which of its samples is the first and which the last
//! that can be heard, and what a clear threw away. It knows no time: whoever pulls knows when a pulled sample sounds,
//! and turns positions into times.
//!
//! ```text
//! begin -> push .. push -> finish           (the voice's side)
//!   Started      at the first pulled sample
//!   Finished     once the last audible sample has been pulled and the utterance is finished
//! pause: 5 ms fade, position kept;  resume: goes on where the fade began;  clear: all gone, late pushes ignored
//! ```

use std::collections::VecDeque;

use sayback_core::UtteranceId;

use crate::audible::{Audible, AudibleTracker};

/// Fade at a pause and a resume.
const FADE_MS: u32 = 5;
/// Marks that may wait to be polled before the oldest is lost; one pull makes a handful.
const MARKS: usize = 64;
/// Cleared utterances that are remembered, so that a late begin is refused.
const CLEARED: usize = 64;
/// Buffers kept for the next utterances.
const SPARE: usize = 4;

/// Something happened at a pulled sample. Positions count all samples ever pulled, the first being 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The first sample of an utterance was pulled.
    Started {
        /// Which one.
        utterance: UtteranceId,
        /// Where.
        at: u64,
    },
    /// The last audible sample of a finished utterance was pulled.
    Finished {
        /// Which one.
        utterance: UtteranceId,
        /// One past its last audible sample. May lie a little ahead of what was pulled, or behind it if the utterance
        /// was finished late.
        last_audible: u64,
        /// Samples of silence that had to be put into it because the voice was too slow. Nothing of it was lost.
        underrun: u64,
    },
    /// Pulled samples are silent from here on, as asked.
    Paused {
        /// Where.
        at: u64,
    },
    /// Playout goes on from here.
    Resumed {
        /// Where.
        at: u64,
    },
}

/// What was thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// Which utterance.
    pub utterance: UtteranceId,
    /// How many of its samples had been pulled.
    pub played: u64,
    /// Samples from its first to its first audible one, as far as known.
    pub audible_from: u64,
    /// Samples from its first to the end of its last audible one; `None` if it was not finished.
    pub audible_to: Option<u64>,
}

#[derive(Debug)]
struct Utterance {
    id: UtteranceId,
    samples: Vec<f32>,
    /// Samples pulled.
    played: usize,
    tracker: AudibleTracker,
    /// Known once it is finished.
    audible: Option<Audible>,
    underrun: u64,
    /// A pulled position and the sample that lay there; the two run on together until the next interruption.
    run: (u64, u64),
    /// Its end has been told; only trailing silence is left.
    told: bool,
}

impl Utterance {
    fn left(&self) -> usize {
        self.samples.len() - self.played
    }

    /// Where a sample of this utterance lies among the pulled ones. For a sample before the last interruption this is
    /// later than the truth, never earlier.
    fn position(&self, sample: u64) -> u64 {
        let (position, at) = self.run;
        if sample >= at { position + (sample - at) } else { position.saturating_sub(at - sample) }
    }
}

/// What the playout is doing about a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Playing,
    /// Fading in; so many samples are left of it.
    FadingIn(u32),
    /// Fading out; so many samples are left of it. They are shown, not consumed.
    FadingOut(u32),
    Paused,
}

/// The queue of utterances of one call, at one sample rate.
#[derive(Debug)]
pub struct PlayoutQueue {
    rate: u32,
    telephone: bool,
    utterances: VecDeque<Utterance>,
    flow: Flow,
    /// Samples pulled in all.
    position: u64,
    underruns: u64,
    marks: VecDeque<Mark>,
    cleared: VecDeque<UtteranceId>,
    spare: Vec<Vec<f32>>,
    /// A cut in the middle of sound is let decay from here: a step to zero would click.
    residue: f32,
    last: f32,
}

impl PlayoutQueue {
    /// An empty queue whose samples are pulled at `rate` a second.
    pub fn new(rate: u32) -> Self {
        Self {
            rate,
            telephone: false,
            utterances: VecDeque::with_capacity(8),
            flow: Flow::Playing,
            position: 0,
            underruns: 0,
            marks: VecDeque::with_capacity(MARKS),
            cleared: VecDeque::with_capacity(CLEARED),
            spare: Vec::new(),
            residue: 0.0,
            last: 0.0,
        }
    }

    /// The far end hears a telephone's band only: what is audible is measured in it.
    #[must_use]
    pub fn to_telephone(mut self) -> Self {
        self.telephone = true;
        self
    }

    /// Samples a second.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Samples pulled in all: the position of the next one.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Samples of silence that had to be put into utterances in all.
    pub fn underruns(&self) -> u64 {
        self.underruns
    }

    /// Samples that wait to be pulled.
    pub fn waiting(&self) -> usize {
        self.utterances.iter().map(Utterance::left).sum()
    }

    /// Whether nothing is left to be pulled or to come.
    pub fn is_empty(&self) -> bool {
        self.utterances.is_empty()
    }

    /// Lines up an utterance behind those that are there. Says whether it did: one that was cleared before it began,
    /// or is there already, is not.
    pub fn begin(&mut self, id: UtteranceId) -> bool {
        if self.cleared.contains(&id) || self.utterances.iter().any(|u| u.id == id) {
            return false;
        }
        let mut samples = self.spare.pop().unwrap_or_default();
        samples.clear();
        self.utterances.push_back(Utterance {
            id,
            samples,
            played: 0,
            tracker: AudibleTracker::new(self.rate, self.telephone),
            audible: None,
            underrun: 0,
            run: (0, 0),
            told: false,
        });
        true
    }

    /// More samples of an utterance, full scale at 1.0. Says whether they were taken: those of one that was cleared, is
    /// finished or never began are not.
    pub fn push(&mut self, id: UtteranceId, samples: &[f32]) -> bool {
        let Some(utterance) = self.unfinished(id) else { return false };
        utterance.samples.extend(samples.iter().map(|s| if s.is_finite() { *s } else { 0.0 }));
        utterance.tracker.push(samples);
        true
    }

    /// The same with samples of 16 bits.
    pub fn push_i16(&mut self, id: UtteranceId, samples: &[i16]) -> bool {
        let Some(utterance) = self.unfinished(id) else { return false };
        let from = utterance.samples.len();
        crate::pcm::extend_f32(&mut utterance.samples, samples);
        utterance.tracker.push(&utterance.samples[from..]);
        true
    }

    fn unfinished(&mut self, id: UtteranceId) -> Option<&mut Utterance> {
        self.utterances.iter_mut().find(|u| u.id == id && u.audible.is_none())
    }

    /// The voice has pushed all of an utterance: gives what of it can be heard, counted from its first sample. `None`
    /// if nothing can (then it is gone from the queue, and was not said), or if it is not there.
    pub fn finish(&mut self, id: UtteranceId) -> Option<Audible> {
        let utterance = self.unfinished(id)?;
        utterance.audible = utterance.tracker.audible();
        if utterance.audible.is_none() {
            self.remove(id);
            return None;
        }
        let audible = utterance.audible;
        self.tell_ends();
        audible
    }

    /// The voice broke off: what waits of this utterance is thrown away. Gives how many samples had been pulled;
    /// `None` if it is not there.
    pub fn fail(&mut self, id: UtteranceId) -> Option<u64> {
        let played = self.utterances.iter().find(|u| u.id == id)?.played as u64;
        if self.utterances.front().is_some_and(|u| u.id == id) {
            self.residue = self.last;
        }
        self.remove(id);
        self.forget(id);
        Some(played)
    }

    fn remove(&mut self, id: UtteranceId) {
        if let Some(index) = self.utterances.iter().position(|u| u.id == id)
            && let Some(utterance) = self.utterances.remove(index)
        {
            self.keep_buffer(utterance.samples);
        }
    }

    fn keep_buffer(&mut self, samples: Vec<f32>) {
        if self.spare.len() < SPARE {
            self.spare.push(samples);
        }
    }

    fn forget(&mut self, id: UtteranceId) {
        if self.cleared.len() == CLEARED {
            self.cleared.pop_front();
        }
        self.cleared.push_back(id);
    }

    /// Falls silent within 5 ms. No sample is used up by the fade: [`resume`](Self::resume) goes on where it began.
    pub fn pause(&mut self) {
        let fade = self.fade();
        self.flow = match self.flow {
            Flow::Playing => Flow::FadingOut(fade),
            Flow::FadingIn(left) => Flow::FadingOut(fade.saturating_sub(left).max(1)),
            Flow::FadingOut(_) | Flow::Paused => self.flow,
        };
    }

    /// Goes on after a pause.
    pub fn resume(&mut self) {
        match self.flow {
            Flow::Playing | Flow::FadingIn(_) => return,
            Flow::FadingOut(_) | Flow::Paused => {}
        }
        self.flow = Flow::FadingIn(self.fade());
        self.restart_run();
        self.mark(Mark::Resumed { at: self.position });
    }

    fn fade(&self) -> u32 {
        (self.rate * FADE_MS / 1_000).max(1)
    }

    /// Throws everything away and gives what it was, in order; an utterance whose end had been told is not among it.
    /// A pause ends with it.
    pub fn clear(&mut self) -> Vec<Cleared> {
        if self.flow != Flow::Paused {
            self.residue = self.last;
        }
        self.flow = Flow::Playing;
        let mut cleared = Vec::new();
        while let Some(utterance) = self.utterances.pop_front() {
            self.forget(utterance.id);
            if !utterance.told {
                cleared.push(Cleared {
                    utterance: utterance.id,
                    played: utterance.played as u64,
                    audible_from: utterance.tracker.first_audible(),
                    audible_to: utterance.audible.map(|audible| audible.to),
                });
            }
            self.keep_buffer(utterance.samples);
        }
        cleared
    }

    /// The next mark, oldest first.
    pub fn poll_mark(&mut self) -> Option<Mark> {
        self.marks.pop_front()
    }

    fn mark(&mut self, mark: Mark) {
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }

    /// Fills a frame with what sounds next, silence if there is nothing, and gives the position of its first sample.
    /// Takes no memory.
    pub fn pull(&mut self, out: &mut [f32]) -> u64 {
        let from = self.position;
        let mut filled = 0;
        while filled < out.len() {
            filled += match self.flow {
                Flow::Playing => self.play(&mut out[filled..]),
                Flow::FadingIn(left) => self.fade_in(&mut out[filled..], left),
                Flow::FadingOut(left) => self.fade_out(&mut out[filled..], left),
                Flow::Paused => self.silence(&mut out[filled..]),
            };
        }
        self.decay_residue(out);
        self.last = out.last().copied().unwrap_or(self.last);
        self.tell_ends();
        from
    }

    /// Plays from the first utterance up to its end, or silence to the end of the frame.
    fn play(&mut self, out: &mut [f32]) -> usize {
        self.drop_played_out();
        let position = self.position;
        let Some(utterance) = self.utterances.front_mut() else { return self.silence(out) };
        let some = utterance.left().min(out.len());
        if some == 0 {
            return self.underrun(out);
        }
        let first = utterance.played == 0;
        if first {
            utterance.run = (position, 0);
        }
        let from = utterance.played;
        out[..some].copy_from_slice(&utterance.samples[from..from + some]);
        utterance.played += some;
        let id = utterance.id;
        self.position += some as u64;
        if first {
            self.mark(Mark::Started { utterance: id, at: position });
        }
        some
    }

    fn drop_played_out(&mut self) {
        while self.utterances.front().is_some_and(|u| u.audible.is_some() && u.left() == 0) {
            self.tell_ends();
            // The end may be stated a little behind the last sample (20 ms after the sound): told now all the same.
            self.tell_end_of_first();
            if let Some(utterance) = self.utterances.pop_front() {
                self.keep_buffer(utterance.samples);
            }
        }
    }

    /// Nothing is there to play: silence, and if an utterance has begun, it is the voice's fault.
    fn underrun(&mut self, out: &mut [f32]) -> usize {
        let len = out.len() as u64;
        if let Some(utterance) = self.utterances.front_mut()
            && utterance.played > 0
        {
            utterance.underrun += len;
            self.underruns += len;
        }
        let filled = self.silence(out);
        self.restart_run();
        filled
    }

    fn silence(&mut self, out: &mut [f32]) -> usize {
        out.fill(0.0);
        self.position += out.len() as u64;
        out.len()
    }

    /// After an interruption the first utterance goes on from here.
    fn restart_run(&mut self) {
        let position = self.position;
        if let Some(utterance) = self.utterances.front_mut() {
            utterance.run = (position, utterance.played as u64);
        }
    }

    fn fade_in(&mut self, out: &mut [f32], left: u32) -> usize {
        let fade = self.fade() as f32;
        let some = (left as usize).min(out.len());
        let played = self.play(&mut out[..some]);
        for (n, sample) in out[..played].iter_mut().enumerate() {
            *sample *= 1.0 - (left - n as u32) as f32 / fade;
        }
        let left = left - played as u32;
        self.flow = if left == 0 { Flow::Playing } else { Flow::FadingIn(left) };
        played
    }

    /// Shows the next samples fading, without consuming them: they are played again, and whole, after the pause.
    fn fade_out(&mut self, out: &mut [f32], left: u32) -> usize {
        let fade = self.fade();
        let some = (left as usize).min(out.len());
        let shown = (fade - left) as usize;
        let next = self.utterances.front().map_or(&[][..], |u| &u.samples[u.played..]);
        for (n, sample) in out[..some].iter_mut().enumerate() {
            let gain = (left - n as u32) as f32 / fade as f32;
            *sample = next.get(shown + n).copied().unwrap_or(0.0) * gain;
        }
        self.position += some as u64;
        let left = left - some as u32;
        if left == 0 {
            self.flow = Flow::Paused;
            self.mark(Mark::Paused { at: self.position });
        } else {
            self.flow = Flow::FadingOut(left);
        }
        some
    }

    fn decay_residue(&mut self, out: &mut [f32]) {
        if self.residue == 0.0 {
            return;
        }
        let step = (1.0 / (self.rate as f32 * 0.002)).min(1.0) * self.residue.signum();
        for sample in out {
            let next = self.residue - step;
            self.residue = if next * self.residue > 0.0 { next } else { 0.0 };
            *sample += self.residue;
        }
    }

    /// Tells the end of the first utterance if its last audible sample has been pulled.
    fn tell_ends(&mut self) {
        let passed = |u: &Utterance| u.audible.is_some_and(|a| u.played as u64 >= a.to.min(u.samples.len() as u64));
        if self.utterances.front().is_some_and(|u| u.played > 0 && passed(u)) {
            self.tell_end_of_first();
        }
    }

    fn tell_end_of_first(&mut self) {
        let Some(utterance) = self.utterances.front_mut() else { return };
        let Some(audible) = utterance.audible else { return };
        if utterance.told {
            return;
        }
        utterance.told = true;
        let mark = Mark::Finished {
            utterance: utterance.id,
            last_audible: utterance.position(audible.to),
            underrun: utterance.underrun,
        };
        self.mark(mark);
    }
}
