//! The last half minute of caller sound, by time.

use std::collections::VecDeque;
use std::time::Duration;

use sayback_core::Time;

use super::RATE;

/// How much is kept: the longest segment that is recognised whole.
const KEPT: usize = 40 * RATE as usize;

/// Recent sound on the input clock; gaps are silence.
#[derive(Debug, Default)]
pub(super) struct Sound {
    samples: VecDeque<f32>,
    /// Number on the clock of the first sample kept.
    first: u64,
}

/// A length as samples.
pub(super) fn count(span: Duration) -> u64 {
    u64::try_from(span.as_micros() * u128::from(RATE) / 1_000_000).unwrap_or(u64::MAX)
}

fn number(at: Time) -> u64 {
    count(at.since(Time::ZERO))
}

impl Sound {
    /// Adds a block; what recognition must not hear is silence to it.
    pub(super) fn add(&mut self, start: Time, samples: &[f32], gated: bool) {
        let start = number(start);
        if self.samples.is_empty() {
            self.first = start;
        }
        let next = self.first + self.samples.len() as u64;
        if start > next + KEPT as u64 {
            self.samples.clear();
            self.first = start;
        }
        let next = self.first + self.samples.len() as u64;
        // Stamps jitter by a few samples: only a real gap is one.
        if start > next + u64::from(RATE) / 100 {
            self.samples.extend(std::iter::repeat_n(0.0, usize::try_from(start - next).unwrap_or(0)));
        }
        if gated {
            self.samples.extend(std::iter::repeat_n(0.0, samples.len()));
        } else {
            self.samples.extend(samples);
        }
        while self.samples.len() > KEPT {
            self.samples.pop_front();
            self.first += 1;
        }
    }

    /// The sound between two times, as far as it is kept.
    pub(super) fn slice(&self, from: Time, to: Time) -> Vec<f32> {
        let from = usize::try_from(number(from).saturating_sub(self.first)).unwrap_or(0);
        let to = usize::try_from(number(to).saturating_sub(self.first)).unwrap_or(0).min(self.samples.len());
        self.samples.range(from.min(to)..to).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_is_found_by_its_time_and_gaps_are_silence() {
        let mut sound = Sound::default();
        sound.add(Time::from_millis(1_000), &[1.0; 160], false);
        sound.add(Time::from_millis(1_100), &[2.0; 160], false);
        let found = sound.slice(Time::from_millis(1_005), Time::from_millis(1_105));
        assert_eq!(found.len(), 1_600);
        assert!((found[0] - 1.0).abs() < f32::EPSILON && found[100].abs() < f32::EPSILON);
        assert!((found[1_599] - 2.0).abs() < f32::EPSILON);
    }

    #[test]
    fn gated_sound_is_not_heard() {
        let mut sound = Sound::default();
        sound.add(Time::ZERO, &[1.0; 160], true);
        assert!(sound.slice(Time::ZERO, Time::from_millis(10)).iter().all(|s| s.abs() < f32::EPSILON));
    }
}
