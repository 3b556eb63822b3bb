//! What comes in: stamped, in order, at the rate of the ears.
//!
//! Pure. The transport says at which of the sender's samples a piece of sound begins and when it came; out come blocks
//! with the time at which they were made, and the stretches of which nothing is known.

use std::time::Duration;

use sayback_core::Time;
use sayback_media::Resampler;
use sayback_media::resample::ResampleError;
use sayback_runtime::ears::RATE;

use super::envelope::Envelope;

/// A count that falls back or leaps further than this is a sender that has begun anew.
const LEAP: Duration = Duration::from_secs(10);
/// A count may be this far off: stamps in whole milliseconds, or of a wall clock, tremble.
const TREMBLE: Duration = Duration::from_millis(15);
/// Sound without a count that comes this much later than it should have was not sent meanwhile.
const PAUSE: Duration = Duration::from_millis(500);
/// A sender that is this far ahead of the time has sent what it cannot have recorded.
const AHEAD: Duration = Duration::from_secs(5);

/// What is known of a stretch of inbound time.
#[derive(Clone, Debug, PartialEq)]
pub enum InboundFact {
    /// It sounded like this.
    Heard {
        /// When its first sample was made, on the call clock.
        start: Time,
        /// Samples at 16,000 Hz.
        samples: Vec<f32>,
    },
    /// Nothing is known of it: an onset behind it may have been as early as `from`.
    Lost {
        /// Its beginning.
        from: Time,
        /// Its end.
        to: Time,
    },
}

/// The caller's side of a wire.
#[derive(Debug)]
pub struct Inbound {
    rate: u32,
    envelope: Envelope,
    converter: Resampler,
    /// The sender's sample that the converter began with.
    base: u64,
    /// Samples at the ears' rate that came out of it since.
    given: u64,
    /// The sample that should come next.
    expected: Option<u64>,
    /// The last sample that has come, also in a piece that waits for its turn.
    latest: u64,
    /// Since when the sender may have spoken, and the number of its first sample: what is ahead of real time is measured
    /// from here.
    since: Time,
    first: Option<u64>,
}

impl Inbound {
    /// Sound of `rate` samples a second.
    ///
    /// # Errors
    /// If the rate is none that is converted.
    pub fn new(rate: u32) -> Result<Self, ResampleError> {
        Ok(Self {
            rate,
            envelope: Envelope::default(),
            converter: Resampler::new(rate, RATE)?,
            base: 0,
            given: 0,
            expected: None,
            latest: 0,
            since: Time::ZERO,
            first: None,
        })
    }

    /// Takes sound whose sender counts nothing: it follows what came before, unless it comes so late that nothing was
    /// sent meanwhile.
    pub fn push_next(&mut self, samples: &[f32], arrival: Time, on: &mut impl FnMut(InboundFact)) {
        let expected = self.expected.unwrap_or(0);
        let end = expected + samples.len() as u64;
        let late = self.envelope.stamp(self.span(end)).map(|due| arrival.since(due)).unwrap_or_default();
        let skipped = if late > PAUSE { micros(late) * u64::from(self.rate) / 1_000_000 } else { 0 };
        self.push(expected.saturating_add(skipped), samples, arrival, on);
    }

    /// Notes that sound up to the sender's sample `end` has come, though it may have to wait for what is before it.
    pub fn note(&mut self, end: u64, arrival: Time) {
        self.envelope.observe(self.span(end), arrival);
        self.latest = self.latest.max(end);
    }

    /// The sample that should come next.
    pub fn expected(&self) -> Option<u64> {
        self.expected
    }

    /// Takes sound that begins at the sender's sample `position` and had come at `arrival`. What came before already
    /// is not taken twice.
    pub fn push(&mut self, position: u64, samples: &[f32], arrival: Time, on: &mut impl FnMut(InboundFact)) {
        let leap = self.samples(LEAP);
        let restarted = self.expected.is_some_and(|expected| {
            position.saturating_add(leap) < expected || position > expected.saturating_add(leap)
        });
        if restarted {
            self.restart(arrival, on);
        }
        let position = self.steadied(position);
        let end = position.saturating_add(samples.len() as u64);
        self.first.get_or_insert(position);
        self.note(end, arrival);
        let expected = self.expected.unwrap_or_else(|| {
            self.base = position;
            position
        });
        if position > expected {
            self.leave_gap(expected, position, on);
        }
        // Sent again, or overlapping: only what is new.
        let known = usize::try_from(expected.saturating_sub(position)).unwrap_or(usize::MAX);
        let Some(fresh) = samples.get(known.min(samples.len())..).filter(|fresh| !fresh.is_empty()) else {
            return;
        };
        self.expected = Some(end);
        let start = self.stamp_of_next();
        let ready = self.converter.push(fresh).to_vec();
        self.given += ready.len() as u64;
        // Nothing is heard before it is made.
        if let Some(start) = start.filter(|_| !ready.is_empty()).map(|start| start.min(arrival)) {
            on(InboundFact::Heard { start, samples: ready });
        }
    }

    /// The end of the sound that came last: the place in the stream of whatever comes now.
    pub fn place(&self) -> Option<Time> {
        self.envelope.stamp(self.span(self.expected?.max(self.latest)))
    }

    /// Whether the sender is further ahead of the time than any network explains: nobody can have spoken that yet.
    pub fn is_ahead(&self, now: Time) -> bool {
        let (Some(from), Some(expected)) = (self.first, self.expected) else { return false };
        self.span(expected.saturating_sub(from)) > now.since(self.since) + AHEAD
    }

    fn restart(&mut self, arrival: Time, on: &mut impl FnMut(InboundFact)) {
        if let Some(from) = self.place() {
            on(InboundFact::Lost { from, to: arrival.max(from) });
        }
        self.envelope.reset();
        self.converter.reset();
        self.given = 0;
        self.expected = None;
        self.latest = 0;
        self.since = arrival;
        self.first = None;
    }

    /// A count that is off by less than one trembles is what it should have been.
    fn steadied(&self, position: u64) -> u64 {
        let tremble = u64::from(self.rate) * micros(TREMBLE) / 1_000_000;
        self.expected.filter(|expected| expected.abs_diff(position) <= tremble).unwrap_or(position)
    }

    fn leave_gap(&mut self, expected: u64, position: u64, on: &mut impl FnMut(InboundFact)) {
        let (from, to) = (self.envelope.stamp(self.span(expected)), self.envelope.stamp(self.span(position)));
        if let (Some(from), Some(to)) = (from, to) {
            on(InboundFact::Lost { from, to });
        }
        self.converter.reset();
        self.base = position;
        self.given = 0;
    }

    /// When the next sample out of the converter was made. Reckoned on the sender's clock to the end: what lies before
    /// the call on ours must not be cut off on the way.
    fn stamp_of_next(&self) -> Option<Time> {
        let late = Duration::from_micros(self.converter.output_delay() as u64 * 1_000_000 / u64::from(RATE));
        let since = Duration::from_micros(self.given * 1_000_000 / u64::from(RATE));
        self.envelope.stamp_before(self.span(self.base) + since, late)
    }

    fn span(&self, samples: u64) -> Duration {
        let (whole, rest) = (samples / u64::from(self.rate), samples % u64::from(self.rate));
        Duration::from_secs(whole.min(u64::from(u32::MAX)))
            + Duration::from_micros(rest * 1_000_000 / u64::from(self.rate))
    }

    fn samples(&self, span: Duration) -> u64 {
        span.as_secs() * u64::from(self.rate)
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(facts: &[InboundFact]) -> Vec<(Time, usize)> {
        let of = |fact: &InboundFact| match fact {
            InboundFact::Heard { start, samples } => Some((*start, samples.len())),
            InboundFact::Lost { .. } => None,
        };
        facts.iter().filter_map(of).collect()
    }

    fn lost(facts: &[InboundFact]) -> Vec<(Time, Time)> {
        let of = |fact: &InboundFact| match fact {
            InboundFact::Lost { from, to } => Some((*from, *to)),
            InboundFact::Heard { .. } => None,
        };
        facts.iter().filter_map(of).collect()
    }

    fn push(inbound: &mut Inbound, n: u64, at_ms: u64) -> Vec<InboundFact> {
        let mut facts = Vec::new();
        inbound.push(n * 160, &[0.1; 160], Time::from_millis(at_ms), &mut |fact| facts.push(fact));
        facts
    }

    #[test]
    fn sound_is_stamped_by_when_it_was_made() {
        let mut inbound = Inbound::new(8_000).unwrap();
        let mut all = push(&mut inbound, 0, 120);
        for n in 1..50 {
            all.extend(push(&mut inbound, n, 120 + 20 * n));
        }
        let blocks = heard(&all);
        assert!(blocks[0].0 <= Time::from_millis(100) && blocks[0].0 >= Time::from_millis(94));
        for pair in blocks.windows(2) {
            let length = Duration::from_micros(pair[0].1 as u64 * 1_000 / 16);
            assert!(pair[1].0.diff_micros(pair[0].0 + length).abs() < 300, "{pair:?}");
        }
        assert_eq!(inbound.place(), Some(Time::from_millis(1_100)));
    }

    #[test]
    fn what_waited_before_the_call_began_is_not_stamped_ahead_of_time() {
        let mut inbound = Inbound::new(8_000).unwrap();
        let mut blocks = Vec::new();
        // Four seconds of sound that had waited, and then a second at its pace.
        for n in 0..200 {
            push(&mut inbound, n, 10);
        }
        for n in 200..250_u64 {
            let at = 10 + 20 * (n - 199);
            blocks.extend(heard(&push(&mut inbound, n, at)).into_iter().map(|block| (block.0, at)));
        }
        for (start, at) in blocks {
            let age = Time::from_millis(at).since(start);
            assert!(start <= Time::from_millis(at), "{start} is ahead of {at}");
            assert!(age <= Duration::from_millis(50), "{age:?} at {at}");
        }
    }

    #[test]
    fn a_burst_and_a_repeat_change_no_stamp() {
        let mut inbound = Inbound::new(8_000).unwrap();
        push(&mut inbound, 0, 120);
        for n in 1..20 {
            push(&mut inbound, n, 900);
        }
        assert!(heard(&push(&mut inbound, 19, 905)).is_empty());
        let place = inbound.place().unwrap();
        assert!(place.since(Time::from_millis(500)) < Duration::from_millis(1), "{place}");
    }

    #[test]
    fn missing_sound_is_told() {
        let mut inbound = Inbound::new(8_000).unwrap();
        push(&mut inbound, 0, 120);
        let facts = push(&mut inbound, 5, 220);
        assert_eq!(lost(&facts), [(Time::from_millis(120), Time::from_millis(200))]);
        let start = heard(&facts)[0].0;
        assert!(start <= Time::from_millis(200) && start >= Time::from_millis(194));
    }

    #[test]
    fn stamps_that_tremble_are_no_gaps() {
        let mut inbound = Inbound::new(8_000).unwrap();
        let mut facts = Vec::new();
        for n in 0..500_u64 {
            let tremble = [0, 7, 13, 4][n as usize % 4] * 8;
            let arrival = Time::from_millis(120 + 20 * n);
            inbound.push(n * 160 + tremble, &[0.1; 160], arrival, &mut |fact| facts.push(fact));
        }
        assert_eq!((lost(&facts), heard(&facts).len()), (vec![], 500));
    }

    #[test]
    fn sound_without_a_count_follows_and_a_pause_is_a_gap() {
        let mut inbound = Inbound::new(8_000).unwrap();
        let mut facts = Vec::new();
        for arrival in [100, 120, 140, 160, 3_160, 3_180] {
            inbound.push_next(&[0.1; 160], Time::from_millis(arrival), &mut |fact| facts.push(fact));
        }
        let lost = lost(&facts);
        assert_eq!(lost.len(), 1);
        assert!(lost[0].0 <= Time::from_millis(161) && lost[0].1 >= Time::from_millis(3_139), "{lost:?}");
        assert!(inbound.place().unwrap() >= Time::from_millis(3_179));
    }

    #[test]
    fn a_sender_that_begins_anew_is_stamped_anew() {
        let mut inbound = Inbound::new(8_000).unwrap();
        for n in 0..3_000 {
            push(&mut inbound, n, 120 + 20 * n);
        }
        let facts = push(&mut inbound, 0, 60_500);
        assert_eq!(lost(&facts), [(Time::from_millis(60_100), Time::from_millis(60_500))]);
        assert_eq!(inbound.place(), Some(Time::from_millis(60_500)));
    }

    #[test]
    fn nobody_speaks_faster_than_time() {
        let mut inbound = Inbound::new(8_000).unwrap();
        for n in 0..200 {
            push(&mut inbound, n, 100);
        }
        assert!(!inbound.is_ahead(Time::from_millis(100)));
        for n in 200..400 {
            push(&mut inbound, n, 110);
        }
        assert!(inbound.is_ahead(Time::from_millis(110)));
        assert!(!inbound.is_ahead(Time::from_millis(5_000)));
    }

    #[test]
    fn counts_from_nowhere_do_no_harm() {
        let mut inbound = Inbound::new(8_000).unwrap();
        for position in [u64::MAX / 2, 0, 1 << 40, 7, u64::MAX / 2 + 1] {
            inbound.push(position, &[f32::NAN; 160], Time::from_millis(5), &mut |_| {});
            inbound.push(position, &[], Time::ZERO, &mut |_| {});
        }
    }
}
