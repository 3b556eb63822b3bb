//! When was a sample made? The lower envelope of arrival minus RTP time.
//!
//! A network can only delay. So the packet that came soonest, measured against its own timestamp, tells best how the
//! sender's clock lies against ours, and all others are stamped by it: jitter does not move a stamp. The far clock
//! drifts, and a route may become longer, so only the last seconds count: with a drift of 100 ppm a stamp is at most
//! a millisecond early, or as late as it takes for a packet without jitter to come.

use std::collections::VecDeque;
use std::time::Duration;

use sayback_core::Time;

/// Arrivals are kept as one minimum for each stretch of this length.
const BLOCK: Duration = Duration::from_secs(1);
/// So many stretches count.
const BLOCKS: usize = 10;

/// The relation of one sender's clock to the call clock.
#[derive(Clone, Debug)]
pub struct Envelope {
    rate: u32,
    base: u64,
    blocks: VecDeque<(u64, i64)>,
    offset: i64,
}

impl Envelope {
    /// From a first packet: its timestamp (unwrapped), its duration and its arrival; `rate` ticks make a second.
    pub fn new(rate: u32, timestamp: u64, arrival: Time, duration: Duration) -> Self {
        let mut envelope = Self {
            rate: rate.max(1),
            base: timestamp,
            blocks: VecDeque::with_capacity(BLOCKS + 1),
            offset: 0,
        };
        envelope.note(timestamp, arrival, duration);
        envelope
    }

    /// A packet came. Its last sample was made just before it left, so its first one a packet's duration earlier.
    pub fn note(&mut self, timestamp: u64, arrival: Time, duration: Duration) {
        let offset = micros(arrival) - self.rtp_micros(timestamp) - span(duration);
        let block = arrival.as_micros() / span(BLOCK).unsigned_abs();
        match self.blocks.back_mut() {
            Some((last, least)) if *last >= block => *least = offset.min(*least),
            Some(_) | None => self.blocks.push_back((block, offset)),
        }
        while self.blocks.front().is_some_and(|(first, _)| first + (BLOCKS as u64) <= block) {
            self.blocks.pop_front();
        }
        self.offset = self.blocks.iter().map(|(_, least)| *least).min().unwrap_or(offset);
    }

    /// When the sample with this timestamp was made, on the input clock.
    pub fn stamp(&self, timestamp: u64) -> Time {
        Time::from_micros(u64::try_from(self.rtp_micros(timestamp) + self.offset).unwrap_or(0))
    }

    /// How much later than foreseen a packet came, in microseconds; negative if it came sooner than any before.
    pub fn lateness_micros(&self, timestamp: u64, arrival: Time, duration: Duration) -> i64 {
        micros(arrival) - span(duration) - self.rtp_micros(timestamp) - self.offset
    }

    /// The timestamp, rounded down, of what is made at a moment; `None` before the stream's base.
    pub fn timestamp_at(&self, at: Time) -> Option<u64> {
        let since = u64::try_from(micros(at) - self.offset).ok()?;
        Some(self.base.saturating_add(mul_div(since, u64::from(self.rate), 1_000_000)))
    }

    fn rtp_micros(&self, timestamp: u64) -> i64 {
        let (ticks, back) = match timestamp.checked_sub(self.base) {
            Some(ticks) => (ticks, false),
            None => (self.base - timestamp, true),
        };
        let micros = mul_div(ticks, 1_000_000, u64::from(self.rate)).min(1 << 60).cast_signed();
        if back { -micros } else { micros }
    }
}

fn mul_div(value: u64, times: u64, by: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(times) / u128::from(by.max(1))).unwrap_or(u64::MAX)
}

fn micros(at: Time) -> i64 {
    at.as_micros().min(1 << 61).cast_signed()
}

fn span(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACKET: Duration = Duration::from_millis(20);

    #[test]
    fn jitter_does_not_move_a_stamp() {
        let mut envelope = Envelope::new(8_000, 1_000, Time::from_millis(520), PACKET);
        for n in 1..200u64 {
            let jitter = n * 7_919 % 37;
            envelope.note(1_000 + n * 160, Time::from_millis(520 + n * 20 + jitter), PACKET);
        }
        assert_eq!(envelope.stamp(1_000 + 199 * 160), Time::from_millis(500 + 199 * 20));
    }

    #[test]
    fn a_first_packet_that_came_late_is_put_right_by_the_next() {
        let mut envelope = Envelope::new(8_000, 0, Time::from_millis(500), PACKET);
        envelope.note(160, Time::from_millis(420), PACKET);
        assert_eq!(envelope.stamp(0), Time::from_millis(380));
    }

    #[test]
    fn an_hour_of_drift_moves_no_stamp_by_more_than_a_millisecond() {
        for ppm in [-100i64, 100] {
            let mut envelope = Envelope::new(8_000, 0, Time::from_millis(1_020), PACKET);
            let mut worst = 0;
            for n in 1..180_000u64 {
                // The far clock is fast by `ppm`: its packets come that much sooner.
                let made = 1_000_000 + (n * 20_000).cast_signed() * (1_000_000 - ppm) / 1_000_000;
                let jitter = n * 7_919 % 11_000;
                let arrival = Time::from_micros(made.unsigned_abs() + 20_000 + jitter);
                envelope.note(n * 160, arrival, PACKET);
                let off = micros(envelope.stamp(n * 160)) - made;
                worst = if off.abs() > i64::abs(worst) { off } else { worst };
            }
            assert!((-1_200..=400).contains(&worst), "{ppm} ppm: {worst} µs");
        }
    }

    #[test]
    fn a_longer_route_is_learnt_within_ten_seconds_and_stamps_are_early_meanwhile() {
        let mut envelope = Envelope::new(8_000, 0, Time::from_millis(20), PACKET);
        for n in 1..1_500u64 {
            let way = if n < 500 { 0 } else { 80 };
            envelope.note(n * 160, Time::from_millis(20 + n * 20 + way), PACKET);
            let off = micros(envelope.stamp(n * 160)) - micros(Time::from_millis(n * 20 + way));
            assert!(off <= 0);
        }
        assert_eq!(envelope.stamp(1_499 * 160), Time::from_millis(1_499 * 20 + 80));
    }

    proptest! {
        #[test]
        fn no_stamp_is_later_than_the_packet_allows(
            packets in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40, 0u64..120), 1..50), rate in 1u32..100_000,
        ) {
            let mut envelope = Envelope::new(rate, packets[0].0, Time::from_micros(packets[0].1), PACKET);
            for (timestamp, arrival, length) in packets {
                let (arrival, length) = (Time::from_micros(arrival), Duration::from_millis(length));
                envelope.note(timestamp, arrival, length);
                let _ = envelope.timestamp_at(arrival);
                let _ = envelope.lateness_micros(timestamp, arrival, length);
            }
        }

        #[test]
        fn a_timestamp_and_its_stamp_belong_together(base in 0u64..1 << 40, ahead in 0u64..1 << 30) {
            let envelope = Envelope::new(8_000, base, Time::from_millis(5_000), PACKET);
            let back = envelope.timestamp_at(envelope.stamp(base + ahead)).unwrap();
            prop_assert!(back <= base + ahead && back + 1 >= base + ahead);
        }
    }
}
