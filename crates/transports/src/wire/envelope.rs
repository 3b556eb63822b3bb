//! When sound was made, from when it came and what its sender counted.

use std::time::Duration;

use sayback_core::Time;

/// How much faster the sender's clock may run than ours: 200 parts per million, more than any sound card is off.
const DRIFT_DIVISOR: i64 = 5_000;

/// The lower envelope of arrival minus media time.
///
/// A network only ever makes a packet later, so the least distance that was seen between the arrival of a packet and
/// the media time that it carries is the truest; everything is stamped by it, and a burst that was held up for a second
/// is stamped as if it had not been. The envelope may rise slowly, so that a sender whose clock is slow is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Call time minus media time, and the call time when that was last looked at, in microseconds.
    known: Option<(i64, i64)>,
}

impl Envelope {
    /// Sound up to `media` on the sender's clock had arrived at `arrival`.
    pub fn observe(&mut self, media: Duration, arrival: Time) {
        let now = micros(arrival.since(Time::ZERO));
        let seen = now.saturating_sub(micros(media));
        let best = match self.known {
            Some((offset, at)) => seen.min(offset.saturating_add((now - at).max(0) / DRIFT_DIVISOR)),
            None => seen,
        };
        match &mut self.known {
            // The age only advances once it has been worth a microsecond, or no drift would ever be allowed for.
            Some((offset, at)) if *offset == best && now - *at < DRIFT_DIVISOR => {}
            known => *known = Some((best, now)),
        }
    }

    /// A moment of the sender's clock on the call clock; `None` before anything has arrived. Never before the call.
    pub fn stamp(&self, media: Duration) -> Option<Time> {
        self.stamp_before(media, Duration::ZERO)
    }

    /// The same for a moment that lies `back` before one of the sender's clock, which may be before its beginning.
    pub fn stamp_before(&self, media: Duration, back: Duration) -> Option<Time> {
        let (offset, _) = self.known?;
        let at = offset.saturating_add(micros(media)).saturating_sub(micros(back)).max(0);
        Some(Time::from_micros(at.unsigned_abs()))
    }

    /// The sender has begun to count anew.
    pub fn reset(&mut self) {
        self.known = None;
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_burst_is_stamped_as_if_it_had_not_been_held_up() {
        let mut envelope = Envelope::default();
        envelope.observe(ms(20), Time::from_millis(70));
        for n in 2..52 {
            // A second of sound that came at once.
            envelope.observe(ms(20 * n), Time::from_millis(1_070));
        }
        assert_eq!(envelope.stamp(ms(0)), Some(Time::from_millis(50)));
        assert_eq!(envelope.stamp(ms(1_000)).unwrap().since(Time::from_millis(1_050)), Duration::ZERO);
    }

    #[test]
    fn the_least_delay_wins_and_stamps_only_move_back() {
        let mut envelope = Envelope::default();
        envelope.observe(ms(20), Time::from_millis(220));
        envelope.observe(ms(40), Time::from_millis(90));
        assert_eq!(envelope.stamp(ms(40)), Some(Time::from_millis(90)));
        envelope.observe(ms(60), Time::from_millis(400));
        assert_eq!(envelope.stamp(ms(60)).unwrap().as_micros() / 1_000, 110);
    }

    #[test]
    fn a_slow_sender_is_followed_for_an_hour() {
        let mut envelope = Envelope::default();
        for n in 0..180_000_u64 {
            // 100 ppm slow: each 20 ms take 20.002 ms.
            envelope.observe(ms(20 * n), Time::from_micros(50_000 + n * 20_002));
        }
        let stamped = envelope.stamp(ms(20 * 179_999)).unwrap();
        let truth = Time::from_micros(50_000 + 179_999 * 20_002);
        assert!(stamped.diff_micros(truth).abs() < 5_000, "{stamped}");
    }

    #[test]
    fn counts_that_no_clock_shows_do_no_harm() {
        let mut envelope = Envelope::default();
        assert_eq!(envelope.stamp(ms(1)), None);
        envelope.observe(Duration::MAX, Time::from_millis(5));
        envelope.observe(Duration::ZERO, Time::from_micros(u64::MAX));
        assert!(envelope.stamp(Duration::MAX).is_some());
        assert_eq!(envelope.stamp(Duration::ZERO), Some(Time::ZERO));
    }
}
