//! The caller's sound, put together from packets: in order, without holes, each sample with its time.
//!
//! ```text
//!                    ┌─ next in order ─────────────▶ decoded, given at once
//! packet ─▶ placed ──┼─ one before it is missing ──▶ waits, at most until `hold` says that it will not come
//!                    └─ too late, twice, stray ────▶ counted
//! time passes ──────▶ what should have come by now and did not: concealed, and reported as hidden
//! ```
//!
//! `hold` follows the jitter of the last seconds. A silence that the sender does not send (DTX) looks the same as
//! loss from here and is treated the same: nobody knows what was said in it.

use std::collections::BTreeMap;
use std::time::Duration;

use sayback_core::Time;

use super::digits::Digits;
use super::envelope::Envelope;
use super::loss::Loss;
use super::packet::RtpPacket;
use super::source::{Placed, Source};
use crate::codec::{Codec, CodecError, CodecKind};
use crate::resample::{ResampleError, Resampler};

/// Samples a second of what is given.
pub const RATE: u32 = 16_000;

/// What is missing is waited for at least this long, at most that long.
const HOLD: (i64, i64) = (30_000, 240_000);
/// On top of the jitter.
const HOLD_MORE: i64 = 20_000;
/// What is asked for again is waited for if it comes within so long, and for that long: until the next packet shows that it
/// is missing, and then there and back.
const RESENT: (i64, i64) = (100_000, 45_000);
/// Packets that may wait for one before them. Beyond it the hole counts as lost.
const WAITING: usize = 128;
/// A hole up to here is filled with made-up sound, a longer one is skipped.
const LONGEST_FILL: Duration = Duration::from_secs(1);
/// One packet's worth that is concealed from the packet behind it.
const LONGEST_REPAIR: u64 = 60;
/// A packet that comes so much sooner than its timestamp says belongs to a clock that has jumped.
const JUMP_AHEAD: i64 = 500_000;
/// The same for one that comes so much later.
const JUMP_BACK: i64 = 5_000_000;
/// Comfort noise says that it was quiet for this long (RFC 3389 leaves it open; a packet's usual length).
const QUIET_MS: u64 = 20;

/// Which payload type is what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadTypes {
    /// The sound's.
    pub audio: u8,
    /// Its codec.
    pub codec: CodecKind,
    /// Of key presses, if agreed.
    pub events: Option<u8>,
    /// Of comfort noise, if agreed.
    pub comfort_noise: Option<u8>,
}

/// Why what is known of the way no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// Another stream took over.
    Ssrc,
    /// The sender's clock or numbering jumped.
    Clock,
}

/// Something about the caller's sound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InboundFact<'a> {
    /// Nothing is known of what was said in between; a sound behind it may have begun in it. Comes before the sound
    /// that stands in for it.
    Hidden {
        /// Start of the stretch, on the input clock.
        from: Time,
        /// Its end.
        to: Time,
    },
    /// Sound at [`RATE`], following the one before without a hole unless a `Hidden` says otherwise.
    Sound {
        /// When its first sample was made, on the input clock.
        start: Time,
        /// The samples.
        samples: &'a [f32],
    },
    /// A key was pressed.
    Digit {
        /// Which.
        digit: char,
        /// When it went down, on the input clock.
        start: Time,
    },
    /// The stream is another, or its clock.
    Path(PathChange),
}

/// What was received, for logs and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboundCounts {
    /// Packets of sound that were used.
    pub used: u64,
    /// That came too late.
    pub late: u64,
    /// That came twice.
    pub duplicate: u64,
    /// Damaged datagrams, and payloads that the codec refused.
    pub damaged: u64,
    /// Of a payload type that was not agreed.
    pub unknown: u64,
    /// Of a stream that is not the call's.
    pub stray: u64,
    /// Samples that were made up.
    pub concealed: u64,
}

#[derive(Debug)]
enum Content {
    Audio(Vec<u8>),
    Quiet,
    /// A key press, or sound whose time was filled before it came: it only has a place in the order.
    Nothing,
}

#[derive(Debug)]
struct Waiting {
    timestamp: u64,
    ticks: u64,
    content: Content,
}

/// One call's inbound sound.
#[derive(Debug)]
pub struct Inbound {
    types: PayloadTypes,
    source: Source,
    stream: Option<Stream>,
    digits: Digits,
    ear: Ear,
    loss: Loss,
    counts: InboundCounts,
    /// Up to when sound was given, over all streams.
    given_to: Time,
    spare: Vec<Vec<u8>>,
}

/// What is known of the stream that is listened to.
#[derive(Debug)]
struct Stream {
    envelope: Envelope,
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
    /// Up to which timestamp sound was given.
    filled: u64,
    newest: (u64, u64),
    /// How late packets come, in microseconds: the most, forgotten within seconds.
    late: f64,
    /// Ticks of the packet that came last.
    ticks: u64,
    /// What is missing before this number has been looked at by [`Inbound::missing`].
    looked_at: u64,
    /// How long what is asked for again takes, in microseconds, if anything is.
    resent: Option<i64>,
}

impl Stream {
    fn hold(&self) -> Duration {
        let resent = self.resent.filter(|trip| *trip <= RESENT.0).map_or(0, |trip| trip + RESENT.1);
        let hold = (self.late as i64 + HOLD_MORE).max(resent);
        Duration::from_micros(hold.clamp(HOLD.0, HOLD.1).unsigned_abs())
    }

    /// When the next packet is no longer waited for.
    fn due(&self) -> Time {
        self.envelope.stamp(self.filled + self.ticks) + self.hold()
    }
}

impl Inbound {
    /// Nothing has come yet.
    ///
    /// # Errors
    /// If the codec cannot be opened.
    pub fn new(types: PayloadTypes) -> Result<Self, CodecError> {
        Ok(Self {
            types,
            source: Source::new(),
            stream: None,
            digits: Digits::new(),
            ear: Ear::new(types.codec)?,
            loss: Loss::new(types.codec.clock_rate()),
            counts: InboundCounts::default(),
            given_to: Time::ZERO,
            spare: Vec::new(),
        })
    }

    /// What was received so far.
    pub fn counts(&self) -> InboundCounts {
        self.counts
    }

    /// What a reception report says about it.
    pub fn loss(&mut self) -> &mut Loss {
        &mut self.loss
    }

    /// The stream's SSRC, once there is one.
    pub fn ssrc(&self) -> Option<u32> {
        self.source.ssrc()
    }

    /// The numbers of packets that are missing before ones that came, and that would still be in time if they were there
    /// `trip` from now: those are worth asking the far end for. Each hole is looked at once, when it is first seen; a
    /// second question for the same packet would come too late for sound. To be called after each packet, as what is
    /// missing is then waited for a trip longer.
    pub fn missing(&mut self, now: Time, trip: Duration) -> Vec<u16> {
        let mut missing = Vec::new();
        let Some(stream) = &mut self.stream else { return missing };
        stream.resent = Some(i64::try_from(trip.as_micros()).unwrap_or(i64::MAX));
        let mut expected = stream.next.max(stream.looked_at);
        for (sequence, waiting) in stream.waiting.range(expected..) {
            for hole in expected.max(sequence.saturating_sub(WAITING as u64))..*sequence {
                let at = waiting.timestamp.saturating_sub((sequence - hole) * stream.ticks);
                let due = stream.envelope.stamp(at + stream.ticks) + stream.hold();
                if at >= stream.filled && now + trip <= due {
                    missing.push(hole as u16);
                }
            }
            expected = sequence + 1;
        }
        stream.looked_at = expected;
        missing
    }

    /// When [`poll`](Self::poll) has something to do at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.stream.as_ref().map(Stream::due)
    }

    /// Takes a datagram.
    pub fn handle(&mut self, bytes: &[u8], arrival: Time, sink: &mut dyn FnMut(InboundFact<'_>)) {
        let Ok(packet) = RtpPacket::parse(bytes) else {
            self.counts.damaged += 1;
            return;
        };
        if Some(packet.payload_type) == self.types.events {
            self.on_event(&packet, arrival, sink);
        } else if packet.payload_type == self.types.audio {
            let ticks = self.types.codec.ticks(self.ear.codec.samples_in(packet.payload));
            let mut content = self.spare.pop().unwrap_or_default();
            content.clear();
            content.extend_from_slice(packet.payload);
            self.on_sound(&packet, arrival, (ticks, Content::Audio(content)), sink);
        } else if Some(packet.payload_type) == self.types.comfort_noise {
            let ticks = u64::from(self.types.codec.clock_rate()) * QUIET_MS / 1_000;
            self.on_sound(&packet, arrival, (ticks, Content::Quiet), sink);
        } else {
            self.counts.unknown += 1;
        }
    }

    /// Time passes: what was waited for long enough is made up.
    pub fn poll(&mut self, now: Time, sink: &mut dyn FnMut(InboundFact<'_>)) {
        let Some(stream) = &self.stream else { return };
        if now.since(stream.due()) > LONGEST_FILL {
            self.skip_to(now, sink);
        }
        while let Some(stream) = &self.stream
            && now >= stream.due()
        {
            let step = u64::from(self.types.codec.clock_rate()) / 100;
            let repair = u64::from(self.types.codec.clock_rate()) * LONGEST_REPAIR / 1_000;
            match stream.waiting.first_key_value().map(|(_, waiting)| waiting.timestamp) {
                Some(at) if at <= stream.filled => {}
                Some(at) if at - stream.filled <= repair => self.make_up(at - stream.filled, sink),
                Some(at) => self.make_up(step.min(at - stream.filled), sink),
                None => self.make_up(step, sink),
            }
            self.release(sink);
        }
    }

    fn on_event(&mut self, packet: &RtpPacket<'_>, arrival: Time, sink: &mut dyn FnMut(InboundFact<'_>)) {
        let ours = self.source.ssrc() == Some(packet.ssrc);
        let placed = if ours {
            self.source.place(packet.ssrc, packet.sequence, packet.timestamp)
        } else {
            Placed::Unsure
        };
        let duration = packet.payload.get(2..4).map_or(0, |d| u64::from(u16::from_be_bytes([d[0], d[1]])));
        let duration = duration * 1_000_000 / u64::from(self.types.codec.clock_rate().max(1));
        // Without a clock to read it by, a press began its own duration before it came.
        let told = arrival - Duration::from_micros(duration);
        let (timestamp, start) = match (placed, &mut self.stream) {
            (Placed::Here { sequence, timestamp }, Some(stream)) => {
                self.loss.note(sequence, timestamp, arrival);
                if sequence >= stream.next && stream.waiting.len() < WAITING {
                    let waiting = Waiting { timestamp: stream.newest.1, ticks: 0, content: Content::Nothing };
                    stream.waiting.entry(sequence).or_insert(waiting);
                }
                (timestamp, stream.envelope.stamp(timestamp).min(told))
            }
            (Placed::Here { .. } | Placed::Anew { .. } | Placed::Unsure, _) => {
                (u64::from(packet.timestamp), told)
            }
        };
        if let Some(press) = self.digits.handle(timestamp, packet.payload) {
            sink(InboundFact::Digit { digit: press.digit, start });
        }
        self.release(sink);
    }

    fn on_sound(
        &mut self,
        packet: &RtpPacket<'_>,
        arrival: Time,
        (ticks, content): (u64, Content),
        sink: &mut dyn FnMut(InboundFact<'_>),
    ) {
        let length = self.length(ticks);
        let mut placed = self.source.place(packet.ssrc, packet.sequence, packet.timestamp);
        let known = self.stream.is_some();
        let mut change = PathChange::Ssrc;
        if let (Placed::Here { sequence, timestamp }, Some(stream)) = (placed, &self.stream) {
            let late = stream.envelope.lateness_micros(timestamp, arrival, length);
            let backwards = sequence > stream.newest.0 && timestamp + stream.ticks * 50 < stream.newest.1;
            if backwards || !(-JUMP_AHEAD..=JUMP_BACK).contains(&late) {
                placed = self.source.restart(packet.ssrc, packet.sequence, packet.timestamp);
                change = PathChange::Clock;
            }
        }
        let (sequence, timestamp) = match placed {
            Placed::Unsure => {
                self.counts.stray += 1;
                return;
            }
            Placed::Anew { sequence, timestamp } => {
                self.begin(sequence, timestamp, (arrival, length), sink);
                if known {
                    sink(InboundFact::Path(change));
                }
                (sequence, timestamp)
            }
            Placed::Here { sequence, timestamp } => (sequence, timestamp),
        };
        self.loss.note(sequence, timestamp, arrival);
        self.queue(sequence, Waiting { timestamp, ticks, content }, arrival);
        self.release(sink);
    }

    /// A stream begins. Sound of it that was made before what the last one gave is not given again.
    fn begin(
        &mut self,
        sequence: u64,
        timestamp: u64,
        (arrival, length): (Time, Duration),
        sink: &mut dyn FnMut(InboundFact<'_>),
    ) {
        let envelope = Envelope::new(self.types.codec.clock_rate(), timestamp, arrival, length);
        let from = self.given_to;
        let start = envelope.stamp(timestamp);
        let filled = envelope.timestamp_at(from).map_or(timestamp, |at| at.max(timestamp));
        if self.stream.is_some() && start > from {
            sink(InboundFact::Hidden { from, to: start });
        }
        self.ear.restart(filled);
        self.digits.restart();
        self.loss.restart(sequence);
        self.stream = Some(Stream {
            envelope,
            waiting: BTreeMap::new(),
            next: sequence,
            filled,
            newest: (sequence, timestamp),
            late: 0.0,
            ticks: 0,
            looked_at: sequence,
            resent: None,
        });
    }

    fn length(&self, ticks: u64) -> Duration {
        Duration::from_micros(ticks * 1_000_000 / u64::from(self.types.codec.clock_rate().max(1)))
    }

    /// Puts a packet where it belongs, or counts why not.
    fn queue(&mut self, sequence: u64, mut waiting: Waiting, arrival: Time) {
        let length = self.length(waiting.ticks);
        let Some(stream) = &mut self.stream else { return };
        let late = stream.envelope.lateness_micros(waiting.timestamp, arrival, length).max(0) as f64;
        stream.envelope.note(waiting.timestamp, arrival, length);
        // Half of it is forgotten in about three seconds.
        stream.late = (stream.late * 0.995).max(late);
        if waiting.ticks > 0 {
            stream.ticks = waiting.ticks;
        }
        if sequence > stream.newest.0 {
            stream.newest = (sequence, waiting.timestamp);
        }
        if stream.waiting.contains_key(&sequence) {
            self.counts.duplicate += 1;
            return;
        }
        if waiting.timestamp + waiting.ticks <= stream.filled {
            self.counts.late += 1;
            waiting.content = Content::Nothing;
        }
        if sequence < stream.next {
            return;
        }
        stream.waiting.insert(sequence, waiting);
        if stream.waiting.len() > WAITING
            && let Some((first, _)) = stream.waiting.first_key_value()
        {
            stream.next = *first;
        }
    }

    /// Gives all that is in order.
    fn release(&mut self, sink: &mut dyn FnMut(InboundFact<'_>)) {
        while let Some(stream) = &mut self.stream {
            let Some(first) = stream.waiting.first_entry() else { return };
            // Behind a hole in the numbers that is none in time nothing is missing but a key press.
            if *first.key() != stream.next && first.get().timestamp > stream.filled {
                return;
            }
            stream.next = first.key() + 1;
            let waiting = first.remove();
            self.give(waiting, sink);
        }
    }

    fn give(&mut self, waiting: Waiting, sink: &mut dyn FnMut(InboundFact<'_>)) {
        let Waiting { timestamp, ticks, content } = waiting;
        if !matches!(content, Content::Nothing) {
            self.bridge(timestamp, sink);
        }
        let Some(stream) = &mut self.stream else { return };
        let known = stream.filled.saturating_sub(timestamp);
        let from = self.ear.raw.len();
        let taken = match &content {
            Content::Nothing => return,
            Content::Quiet => {
                self.ear.raw.resize(from + self.types.codec.samples(ticks) as usize, 0.0);
                Ok(())
            }
            Content::Audio(payload) => self.ear.codec.decode(payload, &mut self.ear.raw),
        };
        if let Content::Audio(payload) = content
            && self.spare.len() < WAITING
        {
            self.spare.push(payload);
        }
        if taken.is_err() {
            self.counts.damaged += 1;
            return;
        }
        self.counts.used += 1;
        // What was made up for its beginning is not said twice.
        let known = (self.types.codec.samples(known) as usize).min(self.ear.raw.len() - from);
        self.ear.raw.drain(from..from + known);
        stream.filled = stream.filled.max(timestamp + ticks);
        self.flush(sink);
    }

    /// Fills up to where a packet begins: a silence that was not sent.
    fn bridge(&mut self, timestamp: u64, sink: &mut dyn FnMut(InboundFact<'_>)) {
        let Some(stream) = &self.stream else { return };
        let missing = timestamp.saturating_sub(stream.filled);
        if self.length(missing) > LONGEST_FILL {
            let at = stream.envelope.stamp(timestamp);
            self.hide_and_skip(timestamp, at, sink);
        } else if missing > 0 {
            self.make_up(missing, sink);
        }
    }

    /// Too much is missing to make it up.
    fn skip_to(&mut self, now: Time, sink: &mut dyn FnMut(InboundFact<'_>)) {
        let Some(stream) = &self.stream else { return };
        let now = now - stream.hold() - self.length(stream.ticks);
        let Some(mut to) = stream.envelope.timestamp_at(now) else { return };
        if let Some((_, first)) = stream.waiting.first_key_value() {
            to = to.min(first.timestamp);
        }
        if to > stream.filled {
            let at = stream.envelope.stamp(to);
            self.hide_and_skip(to, at, sink);
        }
    }

    fn hide_and_skip(&mut self, to: u64, at: Time, sink: &mut dyn FnMut(InboundFact<'_>)) {
        sink(InboundFact::Hidden { from: self.given_to, to: at });
        self.ear.restart(to);
        if let Some(stream) = &mut self.stream {
            stream.filled = to;
        }
    }

    fn make_up(&mut self, ticks: u64, sink: &mut dyn FnMut(InboundFact<'_>)) {
        let Some(stream) = &mut self.stream else { return };
        let (from, to) = (stream.filled, stream.filled + ticks);
        let next = stream.waiting.first_key_value().filter(|(_, first)| first.timestamp == to);
        let next = next.and_then(|(_, first)| match &first.content {
            Content::Audio(payload) => Some(payload.as_slice()),
            Content::Quiet | Content::Nothing => None,
        });
        let samples = (self.types.codec.samples(to) - self.types.codec.samples(from)) as usize;
        self.ear.codec.conceal(samples, next, &mut self.ear.raw);
        self.counts.concealed += samples as u64;
        stream.filled = to;
        sink(InboundFact::Hidden { from: stream.envelope.stamp(from), to: stream.envelope.stamp(to) });
        self.flush(sink);
    }

    fn flush(&mut self, sink: &mut dyn FnMut(InboundFact<'_>)) {
        let Some(stream) = &self.stream else { return };
        let clock = self.types.codec.clock_rate();
        if let Some((start, samples)) = self.ear.flush(&stream.envelope, clock) {
            sink(InboundFact::Sound { start, samples });
        }
        self.given_to = self.given_to.max(stream.envelope.stamp(stream.filled));
    }
}

/// The decoder and the way to [`RATE`].
#[derive(Debug)]
struct Ear {
    codec: Box<dyn Codec>,
    resampler: Resampler,
    raw: Vec<f32>,
    /// The timestamp of the first sample since the last restart.
    origin: u64,
    /// Samples at [`RATE`] given since then.
    given: u64,
}

impl Ear {
    fn new(kind: CodecKind) -> Result<Self, CodecError> {
        let told = |error: ResampleError| CodecError { codec: kind.name(), reason: error.to_string() };
        let resampler = Resampler::new(kind.sample_rate(), RATE).map_err(told)?;
        Ok(Self { codec: kind.open()?, resampler, raw: Vec::new(), origin: 0, given: 0 })
    }

    /// What follows does not follow on what was before.
    fn restart(&mut self, timestamp: u64) {
        self.resampler.reset();
        self.raw.clear();
        (self.origin, self.given) = (timestamp, 0);
    }

    /// Converts what was decoded; gives it with the time of its first sample.
    fn flush(&mut self, envelope: &Envelope, clock: u32) -> Option<(Time, &[f32])> {
        // The converter gives every sample a little late: its first ones belong before the origin.
        let delay = self.resampler.output_delay() as u64;
        let ahead = self.given.saturating_sub(delay) * u64::from(clock) / u64::from(RATE);
        let behind = delay.saturating_sub(self.given) * u64::from(clock) / u64::from(RATE);
        let start = envelope.stamp(self.origin.saturating_add(ahead).saturating_sub(behind));
        let samples = self.resampler.push(&self.raw);
        self.raw.clear();
        self.given += samples.len() as u64;
        (!samples.is_empty()).then_some((start, samples))
    }
}

#[cfg(test)]
mod tests;
