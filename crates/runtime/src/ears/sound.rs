//! The last seconds of caller sound, by time.

use std::collections::VecDeque;
use std::time::Duration;

use sayback_core::Time;
use sayback_media::pcm;

use super::RATE;

/// How much is kept at most: the longest segment that is recognised whole.
const KEPT: usize = 40 * RATE as usize;
/// How much is kept while nothing of it waits to be recognised: an onset that is told late.
const IDLE: usize = 3 * RATE as usize;
/// The same where an end-of-turn model hears the last eight seconds.
const IDLE_JUDGED: usize = 9 * RATE as usize;

/// Recent sound on the input clock; gaps are silence.
#[derive(Debug)]
pub(super) struct Sound {
    /// How much is kept at least.
    idle: usize,
    /// As 16 bits, which is what recognition is made for: most of a quiet call's memory is this.
    samples: VecDeque<i16>,
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
    /// Nothing was heard yet; `judged`: an end-of-turn model hears it too.
    pub(super) fn new(judged: bool) -> Self {
        Self { idle: if judged { IDLE_JUDGED } else { IDLE }, samples: VecDeque::new(), first: 0 }
    }

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
            self.samples.extend(std::iter::repeat_n(0, usize::try_from(start - next).unwrap_or(0)));
        }
        // Later stamps know better: what is placed too late moves with them, or words would be cut off at their end.
        if start + u64::from(RATE) / 100 < next {
            self.first = self.first.saturating_sub(next - start);
        }
        if gated {
            self.samples.extend(std::iter::repeat_n(0, samples.len()));
        } else {
            self.samples.extend(samples.iter().map(|sample| pcm::to_i16(*sample)));
        }
        self.drop_first(self.samples.len().saturating_sub(KEPT));
    }

    /// Forgets what is old, except what was heard from `needed` on.
    pub(super) fn forget_before(&mut self, needed: Option<Time>) {
        let idle = self.idle;
        let old = self.samples.len().saturating_sub(idle);
        let free = needed.map_or(usize::MAX, |needed| {
            usize::try_from(number(needed).saturating_sub(self.first)).unwrap_or(usize::MAX)
        });
        self.drop_first(old.min(free));
        if self.samples.capacity() > 2 * idle && self.samples.len() <= idle {
            self.samples.shrink_to(idle + idle / 8);
        } else if self.samples.capacity() < idle / 4 {
            // Otherwise it would double its way up to twice of what it needs.
            self.samples.reserve_exact(idle + idle / 8 - self.samples.len());
        }
    }

    fn drop_first(&mut self, count: usize) {
        self.samples.drain(..count);
        self.first += count as u64;
    }

    /// The sound between two times, as far as it is kept.
    pub(super) fn slice(&self, from: Time, to: Time) -> Vec<f32> {
        let from = usize::try_from(number(from).saturating_sub(self.first)).unwrap_or(0);
        let to = usize::try_from(number(to).saturating_sub(self.first)).unwrap_or(0).min(self.samples.len());
        self.samples.range(from.min(to)..to).map(|sample| pcm::to_f32(*sample)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_is_found_by_its_time_and_gaps_are_silence() {
        let mut sound = Sound::new(true);
        sound.add(Time::from_millis(1_000), &[0.5; 160], false);
        sound.add(Time::from_millis(1_100), &[0.25; 160], false);
        let found = sound.slice(Time::from_millis(1_005), Time::from_millis(1_105));
        assert_eq!(found.len(), 1_600);
        assert!((found[0] - 0.5).abs() < 1e-4 && found[100].abs() < f32::EPSILON);
        assert!((found[1_599] - 0.25).abs() < 1e-4);
    }

    #[test]
    fn gated_sound_is_not_heard() {
        let mut sound = Sound::new(true);
        sound.add(Time::ZERO, &[1.0; 160], true);
        assert!(sound.slice(Time::ZERO, Time::from_millis(10)).iter().all(|s| s.abs() < f32::EPSILON));
    }

    #[test]
    fn what_waits_for_recognition_is_kept_and_the_rest_is_not() {
        let second = |n: u64| Time::from_millis(n * 1_000);
        for (judged, idle) in [(true, IDLE_JUDGED), (false, IDLE)] {
            let mut sound = Sound::new(judged);
            for n in 0..30 {
                sound.add(second(n), &[0.5; RATE as usize], false);
                sound.forget_before(Some(second(10)));
            }
            assert_eq!(sound.slice(second(10), second(30)).len(), 20 * RATE as usize);
            assert_eq!(sound.slice(second(0), second(10)).len(), 0);
            sound.forget_before(None);
            assert_eq!(sound.slice(second(0), second(30)).len(), idle);
            assert!(sound.samples.capacity() <= 2 * idle);
        }
    }

    #[test]
    fn sound_that_was_stamped_too_late_moves_to_where_later_stamps_put_it() {
        let mut sound = Sound::new(true);
        sound.add(Time::from_millis(1_300), &[0.5; 1_600], false);
        sound.add(Time::from_millis(1_100), &[0.25; 1_600], false);
        let found = sound.slice(Time::from_millis(1_000), Time::from_millis(1_200));
        assert_eq!(found.len(), 3_200);
        assert!((found[0] - 0.5).abs() < 1e-3 && (found[1_600] - 0.25).abs() < 1e-3);
    }
}
