//! When did a sound begin, at the earliest?
//!
//! Voice activity detection notices speech late: tens of milliseconds after its first sound. Whether an answer began
//! before its question had been heard must not hang on that, so for every frame the sound is followed backwards in
//! steps of 5 ms down to the noise floor, and a margin is taken off that grows with the noise. What comes out is never
//! later than the true beginning; where something hides the beginning it is moved to before that
//! ([`Censor`]). Confirmations, row VC-81.

use std::collections::VecDeque;
use std::time::Duration;

use sayback_core::Time;

use crate::pcm;

/// Samples per second that onsets are found at.
pub const RATE: u32 = 16_000;
/// Samples in one step of the walk, 5 ms.
pub const STEP: usize = 80;

/// A step belongs to a sound if it is this much above the noise floor.
const ABOVE_FLOOR_DB: f32 = 4.0;
/// So much above it a single step is no chance.
const CLEARLY_ABOVE_FLOOR_DB: f32 = 8.0;
/// A sound may be interrupted this long and is still one, whatever stands out before it.
const GAP_STEPS: usize = 6;
/// It may be interrupted this long if what stands out before it is no chance: the closure of a stop lasts up to 120 ms
/// in "okay", and a detector may not have noticed the weak syllable in front of it.
const LONG_GAP_STEPS: usize = 26;
/// The walk goes this far back, no further: a detector was seen to sleep through 260 ms of a breathed beginning.
const LONGEST_WALK_STEPS: u64 = 56;
/// Steps that are remembered: the walk, a frame of voice activity detection, and some room.
const HISTORY_STEPS: usize = 80;

/// The floor is never taken to be lower than this: below it is the idle noise of a μ-law line.
const LOWEST_FLOOR_DBFS: f32 = -78.0;
/// While the line is young the floor is never taken to be higher than this: it may be a voice.
const YOUNG_FLOOR_DBFS: f32 = -55.0;
/// How long a line is young, in steps.
const YOUNG_STEPS: u64 = 300;
/// The floor is the lowest mean power of 60 ms within six seconds: a pause between two words is found, the closure of
/// a stop is not. An overestimated floor would make an onset late, an underestimated one only early.
const FLOOR_HALF_BLOCK_STEPS: usize = 6;
const FLOOR_HALF_BLOCKS: usize = 200;

/// Below a signal-to-noise ratio in dB (of the loudest 20 ms), so much is taken off in steps: what is above the noise
/// is only the louder part of the beginning. Measured on words from telephone recordings: a fricative lies 15 to 30 dB
/// below its vowel for up to 260 ms, so noise 20 dB down hid up to 200 ms of a word, and noise 12 dB down up to 265.
const MARGINS: [(f32, u64); 6] =
    [(18.0, 54), (21.0, 40), (24.0, 30), (28.0, 20), (34.0, 8), (f32::INFINITY, 4)];

/// Lowest mean power of the last seconds, as a level.
#[derive(Clone, Debug)]
struct NoiseFloor {
    halves: VecDeque<f32>,
    sum: f32,
    steps_in_half: usize,
    steps: u64,
    level_dbfs: f32,
}

impl NoiseFloor {
    fn new() -> Self {
        Self {
            halves: VecDeque::with_capacity(FLOOR_HALF_BLOCKS + 1),
            sum: 0.0,
            steps_in_half: 0,
            steps: 0,
            level_dbfs: YOUNG_FLOOR_DBFS,
        }
    }

    fn note(&mut self, power: f32) {
        self.steps += 1;
        self.sum += power;
        self.steps_in_half += 1;
        if self.steps_in_half < FLOOR_HALF_BLOCK_STEPS {
            return;
        }
        if self.halves.len() == FLOOR_HALF_BLOCKS {
            self.halves.pop_front();
        }
        self.halves.push_back(self.sum / FLOOR_HALF_BLOCK_STEPS as f32);
        (self.sum, self.steps_in_half) = (0.0, 0);
        let pairs = self.halves.iter().zip(self.halves.iter().skip(1));
        let lowest = pairs.map(|(a, b)| (a + b) / 2.0).fold(f32::INFINITY, f32::min);
        if lowest.is_finite() {
            self.level_dbfs = pcm::power_dbfs(lowest);
        }
    }

    fn level_dbfs(&self) -> f32 {
        let highest = if self.steps < YOUNG_STEPS { YOUNG_FLOOR_DBFS } else { 0.0 };
        self.level_dbfs.clamp(LOWEST_FLOOR_DBFS, highest)
    }
}

/// Where the walk back ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rise {
    /// The sample, counted from the first one pushed, before which the sound did not begin; negative if the margin
    /// reaches beyond that.
    pub earliest: i64,
    /// By how much the sound stands out of the noise, in dB.
    pub snr_db: f32,
}

/// Follows the level of the sound in steps of 5 ms and walks back from any frame.
#[derive(Clone, Debug)]
pub struct OnsetTracker {
    /// Mean power of the last steps.
    steps: VecDeque<f32>,
    /// How many steps have passed in all.
    passed: u64,
    /// The step that is not whole yet.
    sum: f32,
    samples_in_step: usize,
    floor: NoiseFloor,
}

impl Default for OnsetTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl OnsetTracker {
    /// A tracker that has heard nothing yet.
    pub fn new() -> Self {
        Self {
            steps: VecDeque::with_capacity(HISTORY_STEPS + 1),
            passed: 0,
            sum: 0.0,
            samples_in_step: 0,
            floor: NoiseFloor::new(),
        }
    }

    /// Takes more sound at [`RATE`]; `known` is false for what stands in for lost sound, which says nothing about the
    /// noise.
    pub fn push(&mut self, samples: &[f32], known: bool) {
        for sample in samples {
            let sample = if sample.is_finite() { *sample } else { 0.0 };
            self.sum += sample * sample;
            self.samples_in_step += 1;
            if self.samples_in_step == STEP {
                self.step(self.sum / STEP as f32, known);
                (self.sum, self.samples_in_step) = (0.0, 0);
            }
        }
    }

    fn step(&mut self, power: f32, known: bool) {
        if self.steps.len() == HISTORY_STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(power);
        self.passed += 1;
        if known {
            self.floor.note(power);
        }
    }

    /// The noise floor in dB relative to full scale.
    pub fn floor_dbfs(&self) -> f32 {
        self.floor.level_dbfs()
    }

    /// Whether anything in the frame between two samples stands out of the noise: one step clearly, or two at all.
    pub fn stands_out(&self, from: u64, to: u64) -> bool {
        let (threshold, clearly) = (self.threshold(ABOVE_FLOOR_DB), self.threshold(CLEARLY_ABOVE_FLOOR_DB));
        let powers = || (from / STEP as u64..to.div_ceil(STEP as u64)).map(|step| self.power(step));
        powers().any(|power| power > clearly) || powers().filter(|power| *power > threshold).count() > 1
    }

    /// Walks back from a frame that lies between two samples.
    pub fn rise(&self, from: u64, to: u64) -> Rise {
        let threshold = self.threshold(ABOVE_FLOOR_DB);
        let active = |step: u64| self.power(step) > threshold;
        let clearly = self.threshold(CLEARLY_ABOVE_FLOOR_DB);
        let no_chance = |step: u64| self.power(step) > clearly || step.checked_sub(1).is_some_and(active);
        let (first, last) = (from / STEP as u64, to.div_ceil(STEP as u64).max(1) - 1);
        // The sound of this frame is what first stands out in it; if nothing does, it may have begun at its start.
        let mut start = (first..=last).find(|step| active(*step)).unwrap_or(first);
        let mut gap = 0;
        let furthest = first.saturating_sub(LONGEST_WALK_STEPS).max(self.oldest());
        for step in (furthest..start).rev() {
            if active(step) && (gap <= GAP_STEPS || no_chance(step)) {
                (start, gap) = (step, 0);
                continue;
            }
            gap += 1;
            if gap > LONG_GAP_STEPS {
                break;
            }
        }
        let snr_db = self.loudest_dbfs(start, last) - self.floor_dbfs();
        let margin = MARGINS.iter().find(|(below, _)| snr_db < *below).map_or(0, |(_, steps)| *steps);
        Rise { earliest: (start as i64 - margin as i64) * STEP as i64, snr_db }
    }

    /// The loudest 20 ms between two steps.
    fn loudest_dbfs(&self, first: u64, last: u64) -> f32 {
        let mean = |step: u64| (step..step + 4).map(|s| self.power(s)).sum::<f32>() / 4.0;
        let last = last.saturating_sub(3).max(first);
        pcm::power_dbfs((first..=last).map(mean).fold(0.0, f32::max))
    }

    /// The power that lies so much above the floor.
    fn threshold(&self, above_db: f32) -> f32 {
        10f32.powf((self.floor_dbfs() + above_db) / 10.0)
    }

    fn oldest(&self) -> u64 {
        self.passed - self.steps.len() as u64
    }

    /// Power of a step by its number; zero if it is forgotten or has not come yet.
    fn power(&self, step: u64) -> f32 {
        let index = step.checked_sub(self.oldest()).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.steps.get(index)).copied().unwrap_or(0.0)
    }
}

/// How many hidden stretches are remembered: older ones are out of any walk's reach.
const HIDDEN: usize = 32;
/// Two hidden stretches closer than this are one: frames of a closed gate come one by one.
const JOIN: Duration = Duration::from_millis(5);
/// Quiet that must follow the opening of a gate before a sound counts as begun behind it.
const QUIET_AFTER_GATE: Duration = Duration::from_millis(150);

/// Stretches in which a beginning could not have been noticed.
///
/// A sound whose walk back meets one of them may have begun anywhere in it, so its earliest beginning moves to the
/// stretch's own (VC-81).
#[derive(Clone, Debug, Default)]
pub struct Censor {
    hidden: VecDeque<(Time, Time)>,
}

impl Censor {
    /// Nothing is hidden.
    pub fn new() -> Self {
        Self { hidden: VecDeque::with_capacity(HIDDEN + 1) }
    }

    /// Sound between two moments was lost, concealed, suppressed or not sent.
    pub fn lost(&mut self, from: Time, to: Time) {
        self.hide(from, to, to);
    }

    /// A gate was closed between two moments. A sound that begins in the first 150 ms behind it counts as begun before
    /// it opened.
    pub fn gate_closed(&mut self, from: Time, to: Time) {
        self.hide(from, to, to + QUIET_AFTER_GATE);
    }

    fn hide(&mut self, from: Time, end: Time, to: Time) {
        if end <= from {
            return;
        }
        if let Some(last) = self.hidden.back_mut()
            && from >= last.0
            && from <= last.1 + JOIN
        {
            last.1 = last.1.max(to);
            return;
        }
        if self.hidden.len() == HIDDEN {
            self.hidden.pop_front();
        }
        self.hidden.push_back((from, to));
    }

    /// The earliest beginning of a sound that was walked back to `earliest`.
    pub fn earliest(&self, mut earliest: Time) -> Time {
        for (from, to) in self.hidden.iter().rev() {
            if *from < earliest && earliest <= *to {
                earliest = *from;
            }
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::WhiteNoise;
    use proptest::prelude::*;

    const MS: usize = RATE as usize / 1_000;

    /// Two seconds of noise, then a tone above it, and where the tone begins.
    fn tone_in_noise(noise_dbfs: f32, tone_dbfs: f32, begins: usize) -> OnsetTracker {
        let mut sound = WhiteNoise::new(3).samples(begins + 100 * MS, noise_dbfs);
        let gain = pcm::gain(tone_dbfs + 3.01);
        for (n, sample) in sound[begins..].iter_mut().enumerate() {
            *sample += (n as f32 * 0.3).sin() * gain;
        }
        let mut tracker = OnsetTracker::new();
        tracker.push(&sound, true);
        tracker
    }

    #[test]
    fn the_floor_is_the_noises_own_level() {
        let tracker = tone_in_noise(-50.0, -20.0, 3_000 * MS);
        assert!((tracker.floor_dbfs() + 50.0).abs() < 1.0, "{}", tracker.floor_dbfs());
    }

    #[test]
    fn a_voice_that_never_pauses_from_the_first_sample_on_is_no_floor() {
        let tone: Vec<f32> = (0..1_000 * MS).map(|n| (n as f32 * 0.3).sin() * 0.1).collect();
        let mut tracker = OnsetTracker::new();
        tracker.push(&tone, true);
        assert!(tracker.rise(15_000, 15_512).earliest <= 15_000 - 200 * MS as i64);
    }

    #[test]
    fn a_walk_through_sound_goes_back_280_ms_and_no_further() {
        let begins = 3_000 * MS;
        let mut sound = WhiteNoise::new(3).samples(begins + 600 * MS, -60.0);
        let tone = sound[begins..].iter_mut().enumerate();
        tone.for_each(|(n, sample)| *sample += (n as f32 * 0.3).sin() * 0.1);
        let mut tracker = OnsetTracker::new();
        for (after, walked) in [(100, 120), (200, 220), (270, 290), (500, 300)] {
            let from = begins + after * MS;
            tracker.push(&sound[tracker.passed as usize * STEP..from + 512], true);
            let back = from as i64 - tracker.rise(from as u64, from as u64 + 512).earliest;
            assert!((back - (walked * MS) as i64).abs() <= STEP as i64, "{after} ms: {back} samples back");
        }
    }

    /// A tone of `first` samples, nothing for `gap_ms`, and the tone again; whether the walk from the second one
    /// reaches the first.
    fn walks_over(gap_ms: usize, first: usize, gain: f32) -> bool {
        let begins = 3_000 * MS;
        let mut sound = WhiteNoise::new(3).samples(begins + 260 * MS, -60.0);
        for (n, sample) in sound[begins..].iter_mut().enumerate() {
            let gain = if n < first { gain } else { 0.1 };
            if n < first || n >= first + gap_ms * MS {
                *sample += (n as f32 * 0.3).sin() * gain;
            }
        }
        let mut tracker = OnsetTracker::new();
        tracker.push(&sound, true);
        let from = (begins + first + (10 + gap_ms) * MS) as u64;
        tracker.rise(from, from + 512).earliest < begins as i64
    }

    #[test]
    fn a_gap_of_120_ms_is_bridged_and_one_of_140_is_not() {
        for (gap, bridged) in [(30, true), (50, true), (120, true), (140, false)] {
            assert_eq!(walks_over(gap, 40 * MS, 0.1), bridged, "{gap} ms");
        }
    }

    #[test]
    fn a_single_faint_step_is_reached_over_30_ms_and_over_no_more() {
        // 6 dB over the noise for 5 ms: noise itself comes near that now and then.
        for (gap, bridged) in [(20, true), (60, false)] {
            assert_eq!(walks_over(gap, STEP, 0.0025), bridged, "{gap} ms");
        }
    }

    #[test]
    fn the_margin_grows_with_the_noise() {
        for (tone, margin) in
            [(-12.0, 20), (-19.0, 40), (-24.0, 100), (-27.5, 150), (-30.5, 200), (-36.0, 270)]
        {
            let begins = 3_000 * MS;
            let tracker = tone_in_noise(-50.0, tone, begins);
            let from = (begins + 60 * MS) as u64;
            let off = (tracker.rise(from, from + 512).earliest - (begins - margin * MS) as i64).abs();
            assert!(off <= STEP as i64, "{tone} dB: {off} samples off");
        }
    }

    // VC-81
    #[test]
    fn a_sound_that_meets_a_gap_began_before_it_at_the_earliest() {
        let ms = Time::from_millis;
        let mut censor = Censor::new();
        censor.lost(ms(100), ms(120));
        censor.lost(ms(120), ms(140));
        assert_eq!(censor.earliest(ms(140)), ms(100));
        assert_eq!(censor.earliest(ms(130)), ms(100));
        assert_eq!(censor.earliest(ms(141)), ms(141));
        assert_eq!(censor.earliest(ms(99)), ms(99));
    }

    // VC-81
    #[test]
    fn a_sound_within_150_ms_of_an_opening_gate_began_before_it_closed_at_the_earliest() {
        let ms = Time::from_millis;
        let mut censor = Censor::new();
        for frame in 0..50 {
            censor.gate_closed(ms(1_000 + frame * 20), ms(1_020 + frame * 20));
        }
        assert_eq!(censor.earliest(ms(2_149)), ms(1_000));
        assert_eq!(censor.earliest(ms(2_151)), ms(2_151));
    }

    proptest! {
        // VC-32
        #[test]
        fn the_beginning_of_a_tone_is_never_missed(
            noise in -75f32..-35.0, above in 12f32..40.0, offset in 0usize..512, later in 0usize..150,
        ) {
            let begins = 3_000 * MS + offset;
            let tracker = tone_in_noise(noise, noise + above, begins);
            let from = (begins + (later * MS).min(60 * MS)) as u64;
            prop_assert!(tracker.rise(from, from + 512).earliest <= begins as i64);
        }
    }
}
