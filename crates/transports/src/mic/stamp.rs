//! From a device's own instants to the call clock.

use std::sync::Arc;
use std::time::Duration;

use cpal::StreamInstant;
use sayback_core::Time;

/// The call clock: how long the call has lasted. Called on audio callbacks, so it may neither wait nor allocate.
pub type CallClock = Arc<dyn Fn() -> Time + Send + Sync>;

/// How much two monotonic clocks of one machine may drift apart: 500 parts per million, the most that a time service
/// slews.
const DRIFT_DIVISOR: i64 = 2_000;

/// The distance between a stream's clock and the call clock.
///
/// Both are monotonic clocks of one machine, so the distance is constant but for drift. Reading ours comes a little
/// after the device's, more when the thread was held up in between, so the smallest distance seen is the truest.
#[derive(Debug, Default)]
pub(crate) struct Offset {
    /// Call time minus stream time, and the call time when it was last looked at, in microseconds.
    known: Option<(i64, i64)>,
}

impl Offset {
    /// Notes that the stream's clock showed `instant` no later than the call clock showed `now`.
    pub(crate) fn observe(&mut self, now: Time, instant: StreamInstant) {
        let now = micros(now);
        let seen = now - stream_micros(instant);
        let best = match self.known {
            Some((offset, at)) => seen.min(offset + (now - at).max(0) / DRIFT_DIVISOR),
            None => seen,
        };
        // The age only advances once it has been worth a microsecond, or no drift would ever be allowed for.
        match &mut self.known {
            Some((offset, at)) if *offset == best && now - *at < DRIFT_DIVISOR => {}
            known => *known = Some((best, now)),
        }
    }

    /// The call time of an instant; what lies before the call counts as its beginning.
    pub(crate) fn time_of(&self, instant: StreamInstant) -> Time {
        let offset = self.known.map_or(0, |(offset, _)| offset);
        from_micros(stream_micros(instant) + offset)
    }
}

/// The times of a steady stream of samples, of which single buffers are stamped less steadily.
///
/// A line through the stamps: each moves it by a share of its error, a large share at first, and a jump means that
/// samples are missing.
#[derive(Debug)]
pub(crate) struct SampleClock {
    rate: u32,
    /// Sample number and call time in microseconds of a point on the line.
    point: Option<(u64, f64)>,
    seen: u32,
    /// Stamps in a row that were off by more than [`JUMP_MICROS`], all to the same side.
    astray: u32,
}

/// Stamps this far off the line are not jitter.
const JUMP_MICROS: f64 = 40_000.0;
/// This many of them in a row are a jump.
const JUMP_STAMPS: u32 = 3;

impl SampleClock {
    pub(crate) fn new(rate: u32) -> Self {
        Self { rate, point: None, seen: 0, astray: 0 }
    }

    /// Takes the stamp of sample number `sample`. True if the line had to be drawn anew: then something is missing
    /// between the samples before and this one.
    pub(crate) fn observe(&mut self, sample: u64, at: Time) -> bool {
        let stamp = micros(at) as f64;
        let Some(expected) = self.position(sample) else {
            self.point = Some((sample, stamp));
            return false;
        };
        let error = stamp - expected;
        if error.abs() > JUMP_MICROS {
            self.astray += 1;
            if self.astray >= JUMP_STAMPS {
                *self = Self { point: Some((sample, stamp)), ..Self::new(self.rate) };
                return true;
            }
            return false;
        }
        self.astray = 0;
        self.seen = self.seen.saturating_add(1);
        let share = if self.seen < 20 { 1.0 / f64::from(self.seen + 1) } else { 0.02 };
        self.point = Some((sample, expected + error * share));
        false
    }

    /// When a sample sounded.
    pub(crate) fn time_of(&self, sample: f64) -> Option<Time> {
        let (from, at) = self.point?;
        let micros = at + (sample - from as f64) * 1e6 / f64::from(self.rate);
        Some(from_micros(micros.round() as i64))
    }

    fn position(&self, sample: u64) -> Option<f64> {
        let (from, at) = self.point?;
        Some(at + (sample as f64 - from as f64) * 1e6 / f64::from(self.rate))
    }
}

/// How long some samples last.
pub(crate) fn span(samples: u64, rate: u32) -> Duration {
    Duration::from_micros(samples.saturating_mul(1_000_000) / u64::from(rate.max(1)))
}

fn stream_micros(instant: StreamInstant) -> i64 {
    i64::try_from(instant.as_nanos() / 1_000).unwrap_or(i64::MAX / 4)
}

pub(crate) fn micros(time: Time) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}

pub(crate) fn from_micros(micros: i64) -> Time {
    Time::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(micros: u64) -> StreamInstant {
        StreamInstant::from_nanos(micros * 1_000)
    }

    #[test]
    fn a_held_up_callback_does_not_move_the_clock() {
        let mut offset = Offset::default();
        offset.observe(Time::from_micros(1_000_100), instant(100));
        offset.observe(Time::from_micros(1_030_000), instant(10_100));
        assert_eq!(offset.time_of(instant(20_100)), Time::from_micros(1_020_114));
    }

    #[test]
    fn drift_is_followed_both_ways() {
        for stretch in [0.9997, 1.0003] {
            let mut offset = Offset::default();
            for n in 0..10_000u64 {
                let now = 1_000_000 + n * 10_000;
                let stream = (n as f64 * 10_000.0 * stretch) as u64;
                offset.observe(Time::from_micros(now), instant(stream));
            }
            let last = (9_999.0 * 10_000.0 * stretch) as u64;
            let error = offset.time_of(instant(last)).diff_micros(Time::from_micros(1_000_000 + 99_990_000));
            assert!(error.abs() < 10, "{stretch}: {error}");
        }
    }

    #[test]
    fn a_time_before_the_call_is_its_beginning() {
        let mut offset = Offset::default();
        offset.observe(Time::from_micros(100), instant(5_000));
        assert_eq!(offset.time_of(instant(1_000)), Time::ZERO);
    }

    #[test]
    fn jitter_is_evened_out_and_a_gap_is_found() {
        let mut clock = SampleClock::new(48_000);
        for n in 0..200u64 {
            let jitter = if n % 2 == 0 { 400 } else { 0 };
            assert!(!clock.observe(n * 480, Time::from_micros(50_000 + n * 10_000 + jitter)));
        }
        let error = clock.time_of(100_000.0).unwrap().diff_micros(Time::from_micros(50_200 + 2_083_333));
        assert!(error.abs() < 30, "{error}");
        let jumped: Vec<bool> =
            (200..204u64).map(|n| clock.observe(n * 480, Time::from_micros(150_000 + n * 10_000))).collect();
        assert_eq!(jumped, [false, false, true, false]);
    }
}
