//! Voice activity detection: caller sound in, one judged frame each 32 ms out.
//!
//! ```text
//! samples -> frames of 32 ms -> energy gate --closed--> speech 0
//!        \                          | open
//!         \                         v
//!          -> onset tracker      the model -> probability
//!                   \               |
//!                    +---- rise ----+--> VoiceFrame
//! ```
//!
//! The gate only saves work. When it opens, the model is first shown the sound before, so that its state is what it
//! would have been; a frame's `rise` does not pass through the gate at all.

use std::time::Duration;

use sayback_core::{Time, VoiceFrame};

use crate::onset::{Censor, OnsetTracker, RATE};

/// Samples in one frame, 32 ms.
pub const FRAME: usize = 512;

/// Frames that the model is shown before the first one it judges after a pause.
const WARM_FRAMES: usize = 10;
/// Frames that the gate stays open after the last sound.
const HOLD_FRAMES: u32 = 12;
/// The model's own suspicion keeps the gate open.
const HOLD_PROBABILITY: f32 = 0.15;

/// Sound that is missing up to here is filled with silence, so that samples keep their places.
const LONGEST_FILL: Duration = Duration::from_secs(1);
/// A stamp may be this far off the count of samples before sound is taken to be missing.
const STAMP_JITTER_MICROS: i64 = 5_000;
/// A stamp that is further off than this moves the clock; what is less is rounding.
const STAMP_ROUNDING_MICROS: i64 = 500;

/// The model failed on a frame. It is out of reach of the input: the weights are broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("voice activity model: {reason}; fetch it again with `sayback models fetch`")]
pub struct VadError {
    /// What the engine said.
    pub reason: String,
}

/// Something that judges how likely a frame is speech.
pub trait SpeechProbability: std::fmt::Debug + Send {
    /// Probability from 0 to 1 that this frame, which follows the one before, is speech. At 16,000 Hz.
    ///
    /// # Errors
    /// If the model itself is broken.
    fn probability(&mut self, frame: &[f32; FRAME]) -> Result<f32, VadError>;

    /// Forgets all frames so far.
    fn reset(&mut self);
}

/// The light model whose weights are inside the program: for machines without the Silero file.
pub struct Earshot(Box<earshot::Detector>);

impl Default for Earshot {
    fn default() -> Self {
        Self(earshot::Detector::default_boxed())
    }
}

impl std::fmt::Debug for Earshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Earshot")
    }
}

impl SpeechProbability for Earshot {
    fn probability(&mut self, frame: &[f32; FRAME]) -> Result<f32, VadError> {
        // It judges 16 ms at a time; speech in either half is speech.
        let (first, second) = frame.split_at(FRAME / 2);
        Ok(self.0.predict_f32(first).max(self.0.predict_f32(second)))
    }

    fn reset(&mut self) {
        self.0.reset();
    }
}

/// What the detector has done, for cost and for logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VadCounts {
    /// Frames given out.
    pub frames: u64,
    /// Runs of the model, those that only warm it included.
    pub runs: u64,
    /// Times that sound was missing between two pushes.
    pub gaps: u64,
}

/// Turns caller sound into judged frames.
#[derive(Debug)]
pub struct VoiceDetector {
    model: Box<dyn SpeechProbability>,
    gated: bool,
    gate_hold: u32,
    onset: OnsetTracker,
    censor: Censor,
    clock: SampleClock,
    /// The frame being filled, and how much of it is.
    frame: [f32; FRAME],
    filled: usize,
    /// The last frames that the model has not seen, oldest first.
    unseen: std::collections::VecDeque<[f32; FRAME]>,
    counts: VadCounts,
}

impl VoiceDetector {
    /// A detector over a model, with the energy gate in front of it.
    pub fn new(model: Box<dyn SpeechProbability>) -> Self {
        Self {
            model,
            gated: true,
            gate_hold: 0,
            onset: OnsetTracker::new(),
            censor: Censor::new(),
            clock: SampleClock::default(),
            frame: [0.0; FRAME],
            filled: 0,
            unseen: std::collections::VecDeque::with_capacity(WARM_FRAMES + 1),
            counts: VadCounts::default(),
        }
    }

    /// The same without the gate: the model judges every frame. For comparison.
    #[must_use]
    pub fn ungated(mut self) -> Self {
        self.gated = false;
        self
    }

    /// What it has done so far.
    pub fn counts(&self) -> VadCounts {
        self.counts
    }

    /// Where a beginning could not have been noticed. To be told before the sound behind it is pushed.
    pub fn censor(&mut self) -> &mut Censor {
        &mut self.censor
    }

    /// Takes sound at 16,000 Hz in any amount; `start` is when its first sample was made, on the input clock. Each
    /// frame that becomes whole is given to `on_frame`.
    ///
    /// Sound that is missing between two pushes is noticed from the stamps, and hides onsets as [`Censor::lost`] does.
    ///
    /// # Errors
    /// If the model is broken; the sound is taken all the same.
    pub fn push(
        &mut self,
        samples: &[f32],
        start: Time,
        mut on_frame: impl FnMut(VoiceFrame),
    ) -> Result<(), VadError> {
        self.follow_stamp(start, &mut on_frame)?;
        self.take(samples, true, &mut on_frame)
    }

    fn follow_stamp(&mut self, start: Time, on_frame: &mut impl FnMut(VoiceFrame)) -> Result<(), VadError> {
        let Some(expected) = self.clock.next() else {
            // What was before the first sample is unknown: the call may have begun with a word.
            self.censor.lost(Time::ZERO, start);
            self.clock.set(start);
            return Ok(());
        };
        let off = start.diff_micros(expected);
        if off > STAMP_JITTER_MICROS {
            self.counts.gaps += 1;
            self.censor.lost(expected, start);
            let missing = start.since(expected);
            if missing <= LONGEST_FILL {
                self.fill(missing, on_frame)?;
            }
        }
        if off.abs() > STAMP_ROUNDING_MICROS {
            self.clock.set(start);
        }
        Ok(())
    }

    fn fill(&mut self, missing: Duration, on_frame: &mut impl FnMut(VoiceFrame)) -> Result<(), VadError> {
        let mut samples = (missing.as_micros() as u64 * u64::from(RATE) / 1_000_000) as usize;
        while samples > 0 {
            let some = samples.min(FRAME);
            self.take(&[0.0; FRAME][..some], false, on_frame)?;
            samples -= some;
        }
        Ok(())
    }

    fn take(
        &mut self,
        mut samples: &[f32],
        known: bool,
        on_frame: &mut impl FnMut(VoiceFrame),
    ) -> Result<(), VadError> {
        let mut result = Ok(());
        while !samples.is_empty() {
            let (head, rest) = samples.split_at(samples.len().min(FRAME - self.filled));
            for (to, from) in self.frame[self.filled..].iter_mut().zip(head) {
                // Models are made for sound within full scale; not-a-number becomes silence.
                *to = if from.is_finite() { from.clamp(-1.0, 1.0) } else { 0.0 };
            }
            self.onset.push(head, known);
            self.clock.count(head.len());
            self.filled += head.len();
            samples = rest;
            if self.filled == FRAME {
                self.filled = 0;
                match self.judge() {
                    Ok(frame) => on_frame(frame),
                    Err(error) => result = Err(error),
                }
            }
        }
        result
    }

    fn judge(&mut self) -> Result<VoiceFrame, VadError> {
        let to = self.clock.counted;
        let from = to - FRAME as u64;
        self.counts.frames += 1;
        if self.onset.stands_out(from, to) {
            self.gate_hold = HOLD_FRAMES;
        }
        let open = !self.gated || self.gate_hold > 0;
        self.gate_hold = self.gate_hold.saturating_sub(1);
        let probability = if open { self.ask_model()? } else { self.keep_for_later() };
        if probability >= HOLD_PROBABILITY {
            self.gate_hold = self.gate_hold.max(HOLD_FRAMES);
        }
        let rise = self.clock.at(self.onset.rise(from, to).earliest);
        Ok(VoiceFrame {
            start: self.clock.at(from as i64),
            end: self.clock.at(to as i64),
            speech: (probability.clamp(0.0, 1.0) * 100.0).round() as u8,
            rise: self.censor.earliest(rise),
        })
    }

    fn ask_model(&mut self) -> Result<f32, VadError> {
        if !self.unseen.is_empty() {
            // The gate was closed: what the model remembers is too old.
            self.model.reset();
        }
        while let Some(frame) = self.unseen.pop_front() {
            self.counts.runs += 1;
            self.model.probability(&frame)?;
        }
        self.counts.runs += 1;
        self.model.probability(&self.frame)
    }

    fn keep_for_later(&mut self) -> f32 {
        if self.unseen.len() == WARM_FRAMES {
            self.unseen.pop_front();
        }
        self.unseen.push_back(self.frame);
        0.0
    }
}

/// Which sample was made when: a stamp, and the samples counted since.
#[derive(Clone, Copy, Debug, Default)]
struct SampleClock {
    stamp: Option<Time>,
    stamped: u64,
    counted: u64,
}

impl SampleClock {
    fn next(&self) -> Option<Time> {
        self.stamp.map(|_| self.at(self.counted as i64))
    }

    fn set(&mut self, stamp: Time) {
        self.stamp = Some(stamp);
        self.stamped = self.counted;
    }

    fn count(&mut self, samples: usize) {
        self.counted += samples as u64;
    }

    /// When a sample was made. Samples before the stamp are counted back from it.
    fn at(&self, sample: i64) -> Time {
        let stamp = self.stamp.unwrap_or_default();
        let off = sample - self.stamped as i64;
        let micros = off.unsigned_abs() * 1_000_000 / u64::from(RATE);
        if off < 0 { stamp - Duration::from_micros(micros) } else { stamp + Duration::from_micros(micros) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::WhiteNoise;

    /// Speech is what is loud; counts how often it was asked.
    #[derive(Debug, Default)]
    struct Loud {
        resets: u32,
    }

    impl SpeechProbability for Loud {
        fn probability(&mut self, frame: &[f32; FRAME]) -> Result<f32, VadError> {
            Ok(if crate::pcm::level_dbfs(frame) > -40.0 { 0.9 } else { 0.01 })
        }

        fn reset(&mut self) {
            self.resets += 1;
        }
    }

    fn word_in_noise() -> Vec<f32> {
        let mut sound = WhiteNoise::new(5).samples(16_000 * 5, -65.0);
        for (n, sample) in sound[48_000..56_000].iter_mut().enumerate() {
            *sample += (n as f32 * 0.3).sin() * 0.1;
        }
        sound
    }

    fn frames(detector: &mut VoiceDetector, sound: &[f32], chunk: usize, start: Time) -> Vec<VoiceFrame> {
        let mut frames = Vec::new();
        for (n, piece) in sound.chunks(chunk).enumerate() {
            let at = start + Duration::from_micros((n * chunk) as u64 * 125 / 2);
            detector.push(piece, at, |frame| frames.push(frame)).unwrap();
        }
        frames
    }

    #[test]
    fn frames_do_not_depend_on_how_the_sound_was_cut() {
        let sound = word_in_noise();
        let start = Time::from_millis(40);
        let whole = frames(&mut VoiceDetector::new(Box::<Loud>::default()), &sound, sound.len(), start);
        for chunk in [1, 160, 511, 513, 3_000] {
            let cut = frames(&mut VoiceDetector::new(Box::<Loud>::default()), &sound, chunk, start);
            assert_eq!(cut, whole, "chunks of {chunk}");
        }
    }

    #[test]
    fn the_gate_saves_most_runs_and_changes_no_frame_of_speech() {
        let sound = word_in_noise();
        let mut gated = VoiceDetector::new(Box::<Loud>::default());
        let mut open = VoiceDetector::new(Box::<Loud>::default()).ungated();
        let with = frames(&mut gated, &sound, 320, Time::ZERO);
        let without = frames(&mut open, &sound, 320, Time::ZERO);
        let speech = |frames: &[VoiceFrame]| -> Vec<VoiceFrame> {
            frames.iter().copied().filter(|frame| frame.speech >= 50).collect()
        };
        assert!(!speech(&with).is_empty());
        assert_eq!(speech(&with), speech(&without));
        assert!(gated.counts().runs * 2 < open.counts().runs, "{:?} {:?}", gated.counts(), open.counts());
    }

    #[test]
    fn the_rise_of_the_first_frame_of_speech_is_just_before_the_word() {
        let frames =
            frames(&mut VoiceDetector::new(Box::<Loud>::default()), &word_in_noise(), 320, Time::ZERO);
        let first = frames.iter().find(|frame| frame.speech >= 50).unwrap();
        let early = Time::from_millis(3_000).diff_micros(first.rise);
        assert!((0..=30_000).contains(&early), "{early} µs early");
    }

    #[test]
    fn a_word_whose_start_was_lost_may_have_begun_in_the_gap() {
        let sound = word_in_noise();
        let mut detector = VoiceDetector::new(Box::<Loud>::default());
        let mut all = frames(&mut detector, &sound[..46_400], 320, Time::ZERO);
        // 2,900 to 3,020 ms never came.
        all.extend(frames(&mut detector, &sound[48_320..], 320, Time::from_millis(3_020)));
        let first = all.iter().find(|frame| frame.speech >= 50).unwrap();
        assert_eq!(first.rise, Time::from_millis(2_900));
        assert_eq!(detector.counts().gaps, 1);
        assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn a_gap_of_minutes_is_not_filled() {
        let mut detector = VoiceDetector::new(Box::<Loud>::default());
        frames(&mut detector, &[0.0; 512], 512, Time::ZERO);
        let late = frames(&mut detector, &[0.0; 512], 512, Time::from_millis(600_000));
        assert_eq!((late.len(), late[0].start), (1, Time::from_millis(600_000)));
    }

    #[test]
    fn a_word_at_the_very_start_may_have_begun_before_the_first_sample() {
        let tone: Vec<f32> = (0..8_000).map(|n| (n as f32 * 0.3).sin() * 0.1).collect();
        let frames =
            frames(&mut VoiceDetector::new(Box::<Loud>::default()), &tone, 160, Time::from_millis(300));
        assert_eq!(frames[0].rise, Time::ZERO);
    }

    #[test]
    fn a_clock_that_runs_slower_than_the_samples_is_followed() {
        let mut detector = VoiceDetector::new(Box::<Loud>::default());
        let mut last = None;
        // Each 20 ms of samples is stamped 19.9 ms after the one before.
        for n in 0..1_000u64 {
            detector.push(&[0.0; 320], Time::from_micros(n * 19_900), |frame| last = Some(frame)).unwrap();
        }
        let off = last.unwrap().end.diff_micros(Time::from_micros(1_000 * 19_900));
        assert!(off.abs() < 33_000, "{off} µs off");
    }

    #[test]
    fn the_light_model_tells_a_tone_burst_from_nothing_and_never_fails() {
        let mut model = Earshot::default();
        for level in [0.0, 1.0, -1.0] {
            let probability = model.probability(&[level; FRAME]).unwrap();
            assert!((0.0..=1.0).contains(&probability));
        }
    }
}
