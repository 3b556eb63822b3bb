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
/// Buffers kept for the next utterances, of at most so many samples: a call is held for long, and there are many.
const SPARE: usize = 1;
const LARGEST_SPARE: usize = 24_000;

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
    /// Samples of silence since the last sample there was; an underrun once another sample follows.
    waited: u64,
    /// The next sample does not follow the one before at once.
    interrupted: bool,
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
    /// Fading out; so many samples are left of it, and so many were shown. They are not consumed.
    FadingOut(u32, u32),
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
            waited: 0,
            interrupted: true,
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
        if self.spare.len() < SPARE && samples.capacity() <= LARGEST_SPARE {
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
            Flow::Playing => Flow::FadingOut(fade, 0),
            Flow::FadingIn(left) => Flow::FadingOut(fade.saturating_sub(left).max(1), 0),
            Flow::FadingOut(..) | Flow::Paused => self.flow,
        };
    }

    /// Goes on after a pause.
    pub fn resume(&mut self) {
        match self.flow {
            Flow::Playing | Flow::FadingIn(_) => return,
            Flow::FadingOut(..) | Flow::Paused => {}
        }
        self.flow = Flow::FadingIn(self.fade());
        if let Some(utterance) = self.utterances.front_mut() {
            utterance.interrupted = true;
        }
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
                Flow::FadingOut(left, shown) => self.fade_out(&mut out[filled..], left, shown),
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
        let from = utterance.played;
        if utterance.interrupted {
            utterance.run = (position, from as u64);
            utterance.interrupted = false;
        }
        utterance.underrun += utterance.waited;
        self.underruns += std::mem::take(&mut utterance.waited);
        out[..some].copy_from_slice(&utterance.samples[from..from + some]);
        utterance.played += some;
        let id = utterance.id;
        self.position += some as u64;
        if from == 0 {
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

    /// Nothing is there to play: silence, and if an utterance has begun, the voice is too slow.
    fn underrun(&mut self, out: &mut [f32]) -> usize {
        if let Some(utterance) = self.utterances.front_mut()
            && utterance.played > 0
        {
            utterance.waited += out.len() as u64;
            utterance.interrupted = true;
        }
        self.silence(out)
    }

    fn silence(&mut self, out: &mut [f32]) -> usize {
        out.fill(0.0);
        self.position += out.len() as u64;
        out.len()
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
    fn fade_out(&mut self, out: &mut [f32], left: u32, shown: u32) -> usize {
        let fade = self.fade();
        let some = (left as usize).min(out.len());
        let next = self.utterances.front().map_or(&[][..], |u| &u.samples[u.played..]);
        for (n, sample) in out[..some].iter_mut().enumerate() {
            let gain = (left - n as u32) as f32 / fade as f32;
            *sample = next.get(shown as usize + n).copied().unwrap_or(0.0) * gain;
        }
        self.position += some as u64;
        let left = left - some as u32;
        if left == 0 {
            self.flow = Flow::Paused;
            self.mark(Mark::Paused { at: self.position });
        } else {
            self.flow = Flow::FadingOut(left, shown + some as u32);
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
        let passed =
            |u: &Utterance| u.audible.is_some_and(|a| u.played as u64 >= a.to.min(u.samples.len() as u64));
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A1: UtteranceId = UtteranceId(1);
    const A2: UtteranceId = UtteranceId(2);

    fn tone(ms: usize) -> Vec<f32> {
        (0..ms * 16).map(|n| 0.1 + 0.05 * (n as f32 * 0.3).sin()).collect()
    }

    fn pull(queue: &mut PlayoutQueue, ms: usize) -> Vec<f32> {
        let mut out = vec![9.0; ms * 16];
        queue.pull(&mut out);
        out
    }

    fn marks(queue: &mut PlayoutQueue) -> Vec<Mark> {
        std::iter::from_fn(|| queue.poll_mark()).collect()
    }

    fn queue_with(pieces: &[(UtteranceId, &[f32])]) -> PlayoutQueue {
        let mut queue = PlayoutQueue::new(16_000);
        for (id, samples) in pieces {
            assert!(queue.begin(*id) && queue.push(*id, samples));
            assert!(queue.finish(*id).is_some());
        }
        queue
    }

    #[test]
    fn an_empty_queue_plays_silence_and_says_nothing() {
        let mut queue = PlayoutQueue::new(16_000);
        assert!(pull(&mut queue, 20).iter().all(|s| *s == 0.0));
        assert_eq!((queue.position(), marks(&mut queue)), (320, vec![]));
    }

    // VC-28
    #[test]
    fn the_end_is_the_last_audible_sample_and_the_silence_behind_it_still_plays() {
        let mut sound = tone(100);
        sound.extend([0.0; 300 * 16]);
        let mut queue = queue_with(&[(A1, &sound), (A2, &tone(100))]);
        pull(&mut queue, 100);
        assert_eq!(marks(&mut queue), [Mark::Started { utterance: A1, at: 0 }]);
        pull(&mut queue, 20);
        assert_eq!(
            marks(&mut queue),
            [Mark::Finished { utterance: A1, last_audible: 120 * 16, underrun: 0 }]
        );
        pull(&mut queue, 281);
        assert_eq!(marks(&mut queue), [Mark::Started { utterance: A2, at: 400 * 16 }]);
    }

    #[test]
    fn an_end_without_silence_behind_it_is_told_with_its_last_sample() {
        let mut queue = queue_with(&[(A1, &tone(100))]);
        pull(&mut queue, 100);
        let end = Mark::Finished { utterance: A1, last_audible: 120 * 16, underrun: 0 };
        assert_eq!(marks(&mut queue), [Mark::Started { utterance: A1, at: 0 }, end]);
    }

    #[test]
    fn an_utterance_that_is_not_finished_has_no_end_yet() {
        let mut queue = PlayoutQueue::new(16_000);
        queue.begin(A1);
        queue.push(A1, &tone(50));
        pull(&mut queue, 300);
        assert_eq!(marks(&mut queue), [Mark::Started { utterance: A1, at: 0 }]);
        // Finished late: the end was long ago, and waiting for nothing was no underrun.
        queue.finish(A1);
        assert_eq!(marks(&mut queue), [Mark::Finished { utterance: A1, last_audible: 70 * 16, underrun: 0 }]);
        assert_eq!(queue.underruns(), 0);
    }

    #[test]
    fn a_slow_voice_moves_the_end_and_is_counted() {
        let mut queue = PlayoutQueue::new(16_000);
        queue.begin(A1);
        pull(&mut queue, 40);
        queue.push(A1, &tone(50));
        pull(&mut queue, 80);
        queue.push(A1, &tone(50));
        queue.finish(A1);
        pull(&mut queue, 80);
        let started = Mark::Started { utterance: A1, at: 40 * 16 };
        let finished = Mark::Finished { utterance: A1, last_audible: 190 * 16, underrun: 30 * 16 };
        assert_eq!(marks(&mut queue), [started, finished]);
        assert_eq!(queue.underruns(), 30 * 16);
    }

    #[test]
    fn a_pause_fades_and_keeps_its_place() {
        let sound = tone(200);
        let mut queue = queue_with(&[(A1, &sound)]);
        assert_eq!(pull(&mut queue, 50), sound[..800]);
        queue.pause();
        let faded = pull(&mut queue, 20);
        assert!(faded[0] > 0.05 && faded[80..].iter().all(|s| *s == 0.0));
        assert!(faded.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 0.03), "no click");
        queue.resume();
        let again = pull(&mut queue, 20);
        assert!(again[0].abs() < 0.01);
        assert_eq!(again[80..], sound[880..1_120]);
        let marks = marks(&mut queue);
        assert_eq!(marks[1..], [Mark::Paused { at: 55 * 16 }, Mark::Resumed { at: 70 * 16 }]);
    }

    // VC-33
    #[test]
    fn a_pause_moves_the_end() {
        let mut queue = queue_with(&[(A1, &tone(100))]);
        pull(&mut queue, 50);
        queue.pause();
        pull(&mut queue, 100);
        queue.resume();
        pull(&mut queue, 60);
        let end = Mark::Finished { utterance: A1, last_audible: 220 * 16, underrun: 0 };
        assert_eq!(marks(&mut queue).last(), Some(&end));
    }

    #[test]
    fn nothing_of_a_cleared_utterance_is_heard_again() {
        let mut queue = PlayoutQueue::new(16_000);
        queue.begin(A1);
        queue.push(A1, &tone(100));
        queue.begin(A2);
        pull(&mut queue, 40);
        let cleared = queue.clear();
        let a1 = Cleared { utterance: A1, played: 640, audible_from: 0, audible_to: None };
        assert_eq!(cleared, [a1, Cleared { utterance: A2, played: 0, ..a1 }]);
        // A late chunk, a late end, a late beginning.
        assert!(!queue.push(A1, &tone(10)) && !queue.begin(A2) && queue.finish(A1).is_none());
        let after = pull(&mut queue, 40);
        assert!(after[0] < 0.16 && after[32..].iter().all(|s| *s == 0.0), "2 ms of decay, then silence");
        assert!(queue.begin(UtteranceId(3)));
    }

    #[test]
    fn a_clear_after_the_end_does_not_take_the_end_back() {
        let mut sound = tone(100);
        sound.extend([0.0; 300 * 16]);
        let mut queue = queue_with(&[(A1, &sound)]);
        pull(&mut queue, 150);
        assert_eq!(queue.clear(), []);
        assert!(queue.is_empty());
    }

    // VC-41
    #[test]
    fn an_utterance_without_sound_is_not_said() {
        let mut queue = PlayoutQueue::new(16_000);
        queue.begin(A1);
        assert_eq!(queue.finish(A1), None);
        queue.begin(A2);
        queue.push(A2, &[0.0; 1_000]);
        assert_eq!(queue.finish(A2), None);
        assert!(queue.is_empty());
    }

    proptest! {
        #[test]
        fn frames_of_any_size_play_the_same_and_mark_the_same_places(
            pieces in prop::collection::vec(1usize..400, 1..8), frames in prop::collection::vec(1usize..700, 1..20),
        ) {
            let sounds: Vec<Vec<f32>> = pieces.iter().map(|ms| tone(*ms % 60 + 20)).collect();
            let make = || {
                let named: Vec<_> = sounds.iter().enumerate().map(|(n, s)| (UtteranceId(n as u32), &s[..])).collect();
                queue_with(&named)
            };
            let total: usize = frames.iter().sum();
            let mut whole = vec![0.0; total];
            let mut once = make();
            once.pull(&mut whole);
            let mut cut = make();
            let mut out = Vec::new();
            for frame in frames {
                let mut piece = vec![0.0; frame];
                cut.pull(&mut piece);
                out.extend(piece);
            }
            prop_assert_eq!(out, whole);
            prop_assert_eq!(marks(&mut cut), marks(&mut once));
        }
    }
}
