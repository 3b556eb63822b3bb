//! Which part of an utterance can be heard.

use crate::filter::Cascade;
use crate::{pcm, telephone};

/// A frame is audible if it lies within this of the utterance's active level.
const BELOW_ACTIVE_DB: f32 = 35.0;
/// So much is added behind the last audible frame, for the room.
const AFTERGLOW_MS: u64 = 20;
/// What lies this far below the loudest frame is a pause and says nothing about the level of the voice.
const PAUSE_DB: f32 = 20.0;
/// Quieter than this is silence, however quiet the rest may be.
const SILENCE_DBFS: f32 = -75.0;

/// The audible part of an utterance, in samples from its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audible {
    /// First audible sample.
    pub from: u64,
    /// One past the last audible sample, 20 ms after the last audible frame; may reach beyond the last sample.
    pub to: u64,
    /// How many samples there are.
    pub len: u64,
}

/// Follows the level of an utterance in frames of 10 ms while it is being made.
#[derive(Debug)]
pub struct AudibleTracker {
    rate: u32,
    frame: usize,
    /// The far end's band, if it is narrower than ours.
    band: Option<Cascade>,
    powers: Vec<f32>,
    sum: f32,
    in_frame: usize,
    len: u64,
}

impl AudibleTracker {
    /// A tracker at a sample rate; through a telephone's band if that is all the far end hears.
    pub fn new(rate: u32, through_telephone: bool) -> Self {
        Self {
            rate,
            frame: (rate as usize / 100).max(1),
            band: through_telephone.then(|| telephone::band(rate)),
            powers: Vec::new(),
            sum: 0.0,
            in_frame: 0,
            len: 0,
        }
    }

    /// More samples.
    pub fn push(&mut self, samples: &[f32]) {
        self.len += samples.len() as u64;
        for sample in samples {
            let sample = if sample.is_finite() { *sample } else { 0.0 };
            let heard = self.band.as_mut().map_or(sample, |band| band.step(sample));
            self.sum += heard * heard;
            self.in_frame += 1;
            if self.in_frame == self.frame {
                self.powers.push(self.sum / self.frame as f32);
                (self.sum, self.in_frame) = (0.0, 0);
            }
        }
    }

    /// What can be heard of the samples so far; `None` if nothing can.
    pub fn audible(&self) -> Option<Audible> {
        let threshold = self.threshold();
        let heard = |power: &f32| *power > threshold;
        let first = self.frames().position(|power| heard(&power))?;
        let last = self.frames().enumerate().filter(|(_, power)| heard(power)).last()?.0;
        let frame = self.frame as u64;
        Some(Audible {
            from: first as u64 * frame,
            to: (last as u64 + 1) * frame + u64::from(self.rate) * AFTERGLOW_MS / 1_000,
            len: self.len,
        })
    }

    /// First audible sample as far as can be told by now; zero if none is.
    pub fn first_audible(&self) -> u64 {
        self.audible().map_or(0, |audible| audible.from)
    }

    /// The whole frames and the one that is not whole.
    fn frames(&self) -> impl Iterator<Item = f32> + '_ {
        let rest = (self.in_frame > 0).then(|| self.sum / self.in_frame.max(1) as f32);
        self.powers.iter().copied().chain(rest)
    }

    fn threshold(&self) -> f32 {
        let loudest = self.frames().fold(0.0, f32::max);
        let voiced = || self.frames().filter(|power| *power > loudest / 10f32.powf(PAUSE_DB / 10.0));
        let active = voiced().sum::<f32>() / voiced().count().max(1) as f32;
        let level = (pcm::power_dbfs(active) - BELOW_ACTIVE_DB).max(SILENCE_DBFS);
        10f32.powf(level / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audible(pieces: &[(usize, f32)], through_telephone: bool, step: f32) -> Option<Audible> {
        let mut tracker = AudibleTracker::new(16_000, through_telephone);
        for (ms, gain) in pieces {
            let samples: Vec<f32> = (0..ms * 16).map(|n| (n as f32 * step).sin() * gain).collect();
            tracker.push(&samples);
        }
        tracker.audible()
    }

    #[test]
    fn silence_before_and_after_is_not_audible() {
        let heard = audible(&[(100, 0.0), (400, 0.1), (300, 0.0)], false, 0.3).unwrap();
        assert_eq!((heard.from, heard.to, heard.len), (1_600, 8_000 + 320, 12_800));
    }

    #[test]
    fn a_quiet_ending_counts_down_to_35_db_below_the_voice() {
        let faint = audible(&[(400, 0.1), (100, 0.1 / 40.0)], false, 0.3).unwrap();
        assert_eq!(faint.to, 8_000 + 320);
        let fainter = audible(&[(400, 0.1), (100, 0.1 / 80.0)], false, 0.3).unwrap();
        assert_eq!(fainter.to, 6_400 + 320);
    }

    #[test]
    fn what_a_telephone_does_not_carry_is_not_audible_there() {
        // 7,000 Hz.
        assert!(audible(&[(400, 0.01)], false, 2.749).is_some());
        assert!(audible(&[(400, 0.01)], true, 2.749).is_none());
    }

    #[test]
    fn nothing_and_silence_have_no_audible_part() {
        assert_eq!(audible(&[], false, 0.3), None);
        assert_eq!(audible(&[(500, 0.0)], false, 0.3), None);
    }

    #[test]
    fn a_last_frame_that_is_not_whole_counts() {
        let mut tracker = AudibleTracker::new(16_000, false);
        tracker.push(&[0.5; 40]);
        assert_eq!(tracker.audible(), Some(Audible { from: 0, to: 160 + 320, len: 40 }));
    }
}
