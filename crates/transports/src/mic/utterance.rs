//! One utterance on its way to the device.

use std::collections::VecDeque;
use std::time::Duration;

use sayback_core::UtteranceId;
use sayback_media::audible::AudibleTracker;
use sayback_media::pcm;
use sayback_media::resample::Resampler;

use super::error::MicError;
use super::stamp::span;

/// Longest utterance in seconds. A voice that does not stop must not fill the memory.
const LONGEST: u64 = 600;

/// Samples that are converted at a time.
const PIECE: usize = 256;

/// One utterance: from the voice's samples to the device's.
#[derive(Debug)]
pub(crate) struct Utterance {
    pub(crate) id: UtteranceId,
    /// Position of its first sample, once it is written.
    pub(crate) start: Option<u64>,
    /// Whether its start has been reported.
    pub(crate) started: bool,
    /// Whether its fate is settled; what is left of it is silence to be played.
    pub(crate) concluded: bool,
    /// How many of its samples never sounded.
    pub(crate) lost: u64,
    voice_rate: u32,
    device_rate: u32,
    converter: Resampler,
    /// Samples of the converter's delay still to be dropped.
    skip: usize,
    source: VecDeque<f32>,
    pushed: u64,
    open: bool,
    ready: VecDeque<f32>,
    converted: u64,
    written: u64,
    tracker: AudibleTracker,
    /// What of it can be heard, once the voice is done.
    bounds: Option<Bounds>,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// One past its last audible sample at the device's rate; the sound fades, so this may lie behind its last sample.
    end: u64,
    /// Once so many of its samples are with the device, nothing can keep it from being heard.
    enough: u64,
    audible_from: Duration,
    audible_to: Duration,
}

impl Utterance {
    pub(crate) fn new(id: UtteranceId, voice_rate: u32, device_rate: u32) -> Result<Self, MicError> {
        let converter = Resampler::new(voice_rate, device_rate)?;
        Ok(Self {
            id,
            start: None,
            started: false,
            concluded: false,
            lost: 0,
            voice_rate,
            device_rate,
            skip: converter.output_delay(),
            converter,
            source: VecDeque::new(),
            pushed: 0,
            open: true,
            ready: VecDeque::new(),
            converted: 0,
            written: 0,
            tracker: AudibleTracker::new(voice_rate, false),
            bounds: None,
        })
    }

    /// False if it has become too long.
    pub(crate) fn push(&mut self, samples: &[i16]) -> bool {
        self.pushed += samples.len() as u64;
        if self.pushed > LONGEST * u64::from(self.voice_rate) {
            return false;
        }
        for piece in samples.chunks(PIECE) {
            let mut sound = [0.0; PIECE];
            for (to, from) in sound.iter_mut().zip(piece) {
                *to = pcm::to_f32(*from);
            }
            self.tracker.push(&sound[..piece.len()]);
            self.source.extend(&sound[..piece.len()]);
        }
        true
    }

    /// The voice is done. Gives where sound begins and ends, or `None` if there is none.
    pub(crate) fn close(&mut self) -> Option<(Duration, Duration)> {
        self.open = false;
        let heard = self.tracker.audible()?;
        let (audible_from, audible_to) = (span(heard.from, self.voice_rate), span(heard.to, self.voice_rate));
        let end = self.at_device_rate(heard.to);
        let enough = self.at_device_rate(heard.to.min(heard.len));
        self.bounds = Some(Bounds { end, enough, audible_from, audible_to });
        Some((audible_from, audible_to))
    }

    /// Nothing more of it is written, and nothing more is reported.
    pub(crate) fn abandon(&mut self) {
        self.concluded = true;
        self.cut();
    }

    /// Nothing more of it is written.
    pub(crate) fn cut(&mut self) {
        self.open = false;
        self.source.clear();
        self.ready.clear();
        self.converted = self.written;
        self.pushed = 0;
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether the ring has had all of it.
    pub(crate) fn is_written(&self) -> bool {
        !self.open && self.written >= self.at_device_rate(self.pushed)
    }

    /// Where its sound ends, if that is known and the device has all that is needed up to a position.
    pub(crate) fn end_within(&self, position: u64) -> Option<u64> {
        let (start, bounds) = (self.start?, self.bounds?);
        let enough = bounds.enough <= self.written && start + bounds.enough <= position;
        enough.then_some(start + bounds.end)
    }

    /// From its first sample to the first audible one, and to the end of the last if that is known.
    pub(crate) fn audible(&self) -> (Duration, Option<Duration>) {
        self.bounds.map_or((Duration::ZERO, None), |b| (b.audible_from, Some(b.audible_to)))
    }

    /// How much of it lies before a position.
    pub(crate) fn played_until(&self, position: u64, rate: u32) -> Duration {
        let Some(start) = self.start else { return Duration::ZERO };
        span(position.min(start + self.written).saturating_sub(start), rate)
    }

    /// Counts what of it lies between two positions as lost.
    pub(crate) fn lose(&mut self, from: u64, to: u64) {
        let Some(start) = self.start else { return };
        self.lost += to.min(start + self.written).saturating_sub(from.max(start));
    }

    /// Appends up to `room` samples at the device's rate; the first of them is at `position`.
    pub(crate) fn take(&mut self, position: u64, room: usize, out: &mut Vec<f32>) {
        self.convert(room);
        let count = self.ready.len().min(room);
        if count > 0 {
            self.start.get_or_insert(position);
        }
        out.extend(self.ready.drain(..count));
        self.written += count as u64;
    }

    fn convert(&mut self, room: usize) {
        let step = (self.voice_rate / 50).max(1) as usize;
        let mut chunk = Vec::with_capacity(step);
        while self.ready.len() < room {
            chunk.clear();
            chunk.extend(self.source.drain(..self.source.len().min(step)));
            if chunk.is_empty() {
                if self.open || self.converted >= self.at_device_rate(self.pushed) {
                    return;
                }
                // Pushes the rest out of the converter.
                chunk.resize(step, 0.0);
            }
            self.convert_chunk(&chunk);
        }
    }

    fn convert_chunk(&mut self, chunk: &[f32]) {
        let limit = if self.open { u64::MAX } else { self.at_device_rate(self.pushed) };
        for sample in self.converter.push(chunk) {
            if self.skip > 0 {
                self.skip -= 1;
            } else if self.converted < limit {
                self.ready.push_back(*sample);
                self.converted += 1;
            }
        }
    }

    fn at_device_rate(&self, samples: u64) -> u64 {
        (samples * u64::from(self.device_rate)).div_ceil(u64::from(self.voice_rate))
    }
}
