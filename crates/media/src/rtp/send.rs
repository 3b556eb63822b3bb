//! Our own sound as packets.

use std::collections::VecDeque;

use super::digits;
use super::packet::RtpPacket;
use super::report::Sent;
use crate::codec::{Codec, CodecError, CodecKind};

/// How long a key of ours is held, and the silence behind it.
const PRESS_MS: u64 = 120;
const PAUSE_MS: u64 = 80;
/// The end of a press is sent this often, since it is the packet that counts most.
const ENDS: u8 = 3;
/// Digits that may wait.
const DIGITS: usize = 64;

/// How packets are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendFormat {
    /// The codec.
    pub codec: CodecKind,
    /// Its payload type, as the far end wants it.
    pub payload_type: u8,
    /// Milliseconds of sound in one packet.
    pub ptime_ms: u32,
    /// The payload type of key presses, if the far end takes them.
    pub events: Option<u8>,
}

/// Where a stream starts: from a random source, so that it cannot be guessed (RFC 3550, 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStart {
    /// The stream's own number.
    pub ssrc: u32,
    /// The first sequence number.
    pub sequence: u16,
    /// The first timestamp.
    pub timestamp: u32,
}

/// A key press on its way.
#[derive(Debug)]
struct Pressing {
    event: u8,
    /// Timestamp of its beginning.
    timestamp: u32,
    ticks: u64,
    ends: u8,
}

/// Makes packets of frames.
#[derive(Debug)]
pub struct Outbound {
    format: SendFormat,
    codec: Box<dyn Codec>,
    start: StreamStart,
    sequence: u16,
    /// Ticks since the first sample.
    ticks: u64,
    pending: Vec<f32>,
    payload: Vec<u8>,
    /// The next packet begins a talk spurt.
    marker: bool,
    sent: Sent,
    digits: VecDeque<u8>,
    pressing: Option<Pressing>,
    /// Ticks until another key may be pressed.
    rest: u64,
}

impl Outbound {
    /// Nothing has been sent yet.
    ///
    /// # Errors
    /// If the codec cannot be opened.
    pub fn new(format: SendFormat, start: StreamStart) -> Result<Self, CodecError> {
        Ok(Self {
            format,
            codec: format.codec.open()?,
            start,
            sequence: start.sequence,
            ticks: 0,
            pending: Vec::new(),
            payload: Vec::new(),
            marker: true,
            sent: Sent::default(),
            digits: VecDeque::new(),
            pressing: None,
            rest: 0,
        })
    }

    /// Goes on in another format: the same stream, since the far end may know it by its number.
    ///
    /// # Errors
    /// If the codec cannot be opened.
    pub fn change(&mut self, format: SendFormat) -> Result<(), CodecError> {
        if format.codec != self.format.codec {
            self.codec = format.codec.open()?;
            self.pending.clear();
        }
        self.format = format;
        self.marker = true;
        Ok(())
    }

    /// Its stream's number.
    pub fn ssrc(&self) -> u32 {
        self.start.ssrc
    }

    /// What was sent so far.
    pub fn sent(&self) -> Sent {
        Sent { timestamp: self.timestamp(), ..self.sent }
    }

    /// How it makes packets.
    pub fn format(&self) -> SendFormat {
        self.format
    }

    /// Presses a key behind those that wait. False if the far end takes none, or it is no key.
    pub fn press(&mut self, digit: char) -> bool {
        let Some(event) = digits::event(digit) else { return false };
        let room = self.format.events.is_some() && self.digits.len() < DIGITS;
        if room {
            self.digits.push_back(event);
        }
        room
    }

    /// Takes sound at the codec's rate, in any amount; each packet that becomes whole is given to `send`.
    ///
    /// While a key is pressed its packets go out instead of the sound.
    ///
    /// # Errors
    /// If the codec fails.
    pub fn push(&mut self, samples: &[f32], mut send: impl FnMut(&[u8])) -> Result<(), CodecError> {
        let whole = (self.format.codec.sample_rate() * self.format.ptime_ms / 1_000).max(1) as usize;
        self.pending.extend_from_slice(samples);
        let mut bytes = Vec::new();
        while self.pending.len() >= whole {
            bytes.clear();
            if self.press_packet(self.format.codec.ticks(whole), &mut bytes) {
                send(&bytes);
            } else {
                self.payload.clear();
                self.codec.encode(&self.pending[..whole], &mut self.payload)?;
                let payload = std::mem::take(&mut self.payload);
                let marker = std::mem::take(&mut self.marker);
                self.write((self.format.payload_type, marker, self.timestamp()), &payload, &mut bytes);
                self.payload = payload;
                send(&bytes);
            }
            self.pending.drain(..whole);
            self.ticks += self.format.codec.ticks(whole);
        }
        Ok(())
    }

    fn timestamp(&self) -> u32 {
        self.start.timestamp.wrapping_add(self.ticks as u32)
    }

    fn write(
        &mut self,
        (payload_type, marker, timestamp): (u8, bool, u32),
        payload: &[u8],
        out: &mut Vec<u8>,
    ) {
        let packet = RtpPacket {
            marker,
            payload_type,
            sequence: self.sequence,
            timestamp,
            ssrc: self.start.ssrc,
            payload,
        };
        packet.write(out);
        self.sequence = self.sequence.wrapping_add(1);
        self.sent.packets = self.sent.packets.wrapping_add(1);
        self.sent.bytes = self.sent.bytes.wrapping_add(payload.len() as u32);
    }

    /// The next packet of a key press, if one is on its way or begins.
    fn press_packet(&mut self, ticks: u64, out: &mut Vec<u8>) -> bool {
        let Some(payload_type) = self.format.events else { return false };
        self.rest = self.rest.saturating_sub(ticks);
        let begins = self.pressing.is_none();
        if begins && (self.rest > 0 || self.digits.is_empty()) {
            return false;
        }
        let timestamp = self.timestamp();
        let mut pressing = match self.pressing.take() {
            Some(pressing) => pressing,
            None => {
                let Some(event) = self.digits.pop_front() else { return false };
                Pressing { event, timestamp, ticks: 0, ends: 0 }
            }
        };
        let clock = u64::from(self.format.codec.clock_rate());
        pressing.ticks += if pressing.ends == 0 { ticks } else { 0 };
        let over = pressing.ticks >= clock * PRESS_MS / 1_000;
        let [high, low] = u16::try_from(pressing.ticks).unwrap_or(u16::MAX).to_be_bytes();
        let payload = [pressing.event, if over { 0x8a } else { 0x0a }, high, low];
        self.write((payload_type, begins, pressing.timestamp), &payload, out);
        pressing.ends += u8::from(over);
        if pressing.ends >= ENDS {
            self.rest = clock * PAUSE_MS / 1_000;
            self.marker = true;
        } else {
            self.pressing = Some(pressing);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::digits::{Digits, Press};
    use super::*;

    const START: StreamStart = StreamStart { ssrc: 9, sequence: 65_535, timestamp: u32::MAX - 100 };

    fn packets(format: SendFormat, ms: usize, press: &str) -> Vec<Vec<u8>> {
        let mut outbound = Outbound::new(format, START).unwrap();
        for digit in press.chars() {
            assert!(outbound.press(digit));
        }
        let mut all = Vec::new();
        let frame = format.codec.sample_rate() as usize / 50;
        for _ in 0..ms / 20 {
            outbound.push(&vec![0.1; frame], |bytes| all.push(bytes.to_vec())).unwrap();
        }
        all
    }

    #[test]
    fn packets_follow_each_other_over_every_wrap() {
        for (codec, ptime_ms) in
            [(CodecKind::Pcmu, 10), (CodecKind::Pcma, 30), (CodecKind::G722, 20), (CodecKind::Opus, 60)]
        {
            let format = SendFormat { codec, payload_type: codec.payload_type(), ptime_ms, events: None };
            let all = packets(format, 600, "");
            assert_eq!(all.len(), 600 / ptime_ms as usize);
            let ticks = codec.clock_rate() * ptime_ms / 1_000;
            for (n, bytes) in all.iter().enumerate() {
                let packet = RtpPacket::parse(bytes).unwrap();
                assert_eq!(packet.sequence, START.sequence.wrapping_add(n as u16));
                assert_eq!(packet.timestamp, START.timestamp.wrapping_add(n as u32 * ticks));
                assert_eq!((packet.marker, packet.ssrc), (n == 0, 9));
            }
        }
    }

    #[test]
    fn keys_are_understood_by_our_own_ear() {
        let codec = CodecKind::Pcmu;
        let format = SendFormat { codec, payload_type: 0, ptime_ms: 20, events: Some(101) };
        let all = packets(format, 1_000, "1#1");
        let mut ear = Digits::new();
        let heard = all.iter().filter_map(|bytes| {
            let packet = RtpPacket::parse(bytes).unwrap();
            // Unwrapped by hand: the first timestamps lie before the wrap.
            let timestamp = u64::from(packet.timestamp.wrapping_sub(START.timestamp));
            (packet.payload_type == 101).then(|| ear.handle(timestamp, packet.payload)).flatten()
        });
        let heard: Vec<Press> = heard.collect();
        assert_eq!(heard.iter().map(|press| press.digit).collect::<String>(), "1#1");
    }

    #[test]
    fn a_far_end_without_keys_gets_none() {
        let format = SendFormat { codec: CodecKind::Pcmu, payload_type: 0, ptime_ms: 20, events: None };
        assert!(!Outbound::new(format, START).unwrap().press('1'));
    }
}
