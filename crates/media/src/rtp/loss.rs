//! What was lost on the way here, as a reception report tells it (RFC 3550, A.3 and A.8).

use sayback_core::Time;

/// One stream's losses and jitter.
#[derive(Clone, Debug)]
pub struct Loss {
    rate: u32,
    first: Option<u64>,
    highest: u64,
    received: u64,
    /// Expected and received at the last report.
    reported: (u64, u64),
    jitter: f64,
    /// Arrival minus timestamp of the packet before, in ticks.
    transit: Option<i64>,
}

/// The figures of one report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossReport {
    /// Lost since the last report, in 256ths.
    pub fraction: u8,
    /// Lost in all; packets that came twice count against it, and it is not negative here.
    pub lost: u32,
    /// Highest sequence number, with the count of its wraps above it.
    pub highest: u32,
    /// Jitter in ticks.
    pub jitter: u32,
}

impl Loss {
    /// Nothing received; `rate` ticks make a second.
    pub fn new(rate: u32) -> Self {
        Self { rate, first: None, highest: 0, received: 0, reported: (0, 0), jitter: 0.0, transit: None }
    }

    /// Another stream begins.
    pub fn restart(&mut self, sequence: u64) {
        *self = Self { first: Some(sequence), highest: sequence, ..Self::new(self.rate) };
    }

    /// A packet came.
    pub fn note(&mut self, sequence: u64, timestamp: u64, arrival: Time) {
        self.first.get_or_insert(sequence);
        self.highest = self.highest.max(sequence);
        self.received += 1;
        let ticks = u128::from(arrival.as_micros()) * u128::from(self.rate) / 1_000_000;
        let transit = i64::try_from(ticks).unwrap_or(i64::MAX / 2) - timestamp.min(1 << 61).cast_signed();
        if let Some(before) = self.transit.replace(transit) {
            let off = (transit - before).unsigned_abs() as f64;
            // A jump of the sender's clock is no jitter.
            if off < f64::from(self.rate) * 10.0 {
                self.jitter += (off - self.jitter) / 16.0;
            }
        }
    }

    /// The figures now; the fraction counts from the last time that this was asked.
    pub fn report(&mut self) -> Option<LossReport> {
        let expected = self.highest - self.first? + 1;
        let (since, got) = (expected - self.reported.0.min(expected), self.received - self.reported.1);
        let lost = since.saturating_sub(got);
        self.reported = (expected, self.received);
        Some(LossReport {
            fraction: u8::try_from(lost * 256 / since.max(1)).unwrap_or(u8::MAX),
            lost: u32::try_from(expected.saturating_sub(self.received)).unwrap_or(u32::MAX).min(0x7f_ffff),
            highest: self.highest as u32,
            jitter: self.jitter as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_and_the_fraction_is_of_the_last_interval() {
        let mut loss = Loss::new(8_000);
        for n in (0..100u64).filter(|n| n % 4 != 3) {
            loss.note(1_000 + n, n * 160, Time::from_millis(n * 20));
        }
        let first = loss.report().unwrap();
        assert_eq!((first.lost, first.highest), (24, 1_098));
        assert_eq!(first.fraction, (24 * 256 / 99) as u8);
        for n in 99..200u64 {
            loss.note(1_000 + n, n * 160, Time::from_millis(n * 20));
        }
        let second = loss.report().unwrap();
        assert_eq!((second.fraction, second.lost), (0, 24));
    }

    #[test]
    fn jitter_is_that_of_the_standard() {
        let mut loss = Loss::new(8_000);
        for n in 0..500u64 {
            loss.note(n, n * 160, Time::from_millis(n * 20 + (n % 2) * 10));
        }
        // Every packet is 10 ms (80 ticks) off the one before.
        let jitter = loss.report().unwrap().jitter;
        assert!((79..=80).contains(&jitter), "{jitter}");
    }

    #[test]
    fn packets_that_come_twice_do_not_make_it_negative() {
        let mut loss = Loss::new(8_000);
        for n in [0, 1, 1, 1, 2] {
            loss.note(n, n * 160, Time::from_millis(n * 20));
        }
        let report = loss.report().unwrap();
        assert_eq!((report.fraction, report.lost), (0, 0));
    }
}
