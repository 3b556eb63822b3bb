//! The sound of a call as a file: caller left, agent right.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use sayback_core::Time;
use sayback_media::flac::{FlacError, FlacStream};
use sayback_media::pcm;

use super::chain::Stretch;
use super::{RecordError, create};
use crate::frozen::sha256;

/// Samples per second.
pub(super) const RATE: u32 = 16_000;
/// Stamps of blocks jitter by less than this many samples: only a larger step is a gap, or sound that came twice.
const JITTER: u64 = RATE as u64 / 100;
/// Silence is written in pieces of this many samples.
const PIECE: u64 = RATE as u64;

/// Samples of each side that are kept for the hashes of decisions: three minutes. Questions and answers are shorter, and
/// decided soon.
const KEPT: usize = 180 * RATE as usize;

type Broken = (PathBuf, String);

/// Both sides, in one file.
#[derive(Debug)]
pub(super) struct Tracks {
    path: PathBuf,
    file: File,
    stream: FlacStream,
    /// Samples of each side so far.
    written: u64,
    /// The last of them.
    recent: VecDeque<[i16; 2]>,
}

/// Whose sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Caller,
    Agent,
}

impl Tracks {
    pub(super) fn create(path: PathBuf) -> Result<Self, RecordError> {
        let mut file = create(&path)?;
        let broken = |reason: String| RecordError::Broken { path: path.clone(), reason };
        let stream = FlacStream::new(RATE, 2).map_err(|error| broken(error.to_string()))?;
        let header = stream.header().map_err(|error| broken(error.to_string()))?;
        file.write_all(&header).map_err(|error| broken(error.to_string()))?;
        Ok(Self { path, file, stream, written: 0, recent: VecDeque::new() })
    }

    /// Adds what sounded from `start` on, where it belongs on the call clock; what is missing is silence.
    pub(super) fn add(&mut self, start: Time, caller: &[f32], agent: &[f32]) -> Result<(), Broken> {
        let start = number(start);
        if start > self.written + JITTER {
            self.silence(start - self.written)?;
        }
        let late = self.written.saturating_sub(start);
        let skip = if late > JITTER { usize::try_from(late).unwrap_or(usize::MAX) } else { 0 };
        let side = |samples: &[f32], n: usize| samples.get(n).map_or(0, |sample| pcm::to_i16(*sample));
        let length = caller.len().max(agent.len());
        let samples: Vec<i16> =
            (skip.min(length)..length).flat_map(|n| [side(caller, n), side(agent, n)]).collect();
        self.push(&samples)
    }

    /// The file with its true length in its header.
    pub(super) fn finish(self) -> Result<(), Broken> {
        let Self { path, mut file, stream, .. } = self;
        let work = || -> Result<(), String> {
            let (rest, header) = stream.finish().map_err(|error: FlacError| error.to_string())?;
            file.write_all(&rest).map_err(|error| error.to_string())?;
            file.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
            file.write_all(&header).map_err(|error| error.to_string())
        };
        work().map_err(|reason| (path, reason))
    }

    fn silence(&mut self, mut samples: u64) -> Result<(), Broken> {
        while samples > 0 {
            let piece = samples.min(PIECE);
            self.push(&vec![0; usize::try_from(piece * 2).unwrap_or(0)])?;
            samples -= piece;
        }
        Ok(())
    }

    fn push(&mut self, interleaved: &[i16]) -> Result<(), Broken> {
        let broken = |reason: String| (self.path.clone(), reason);
        let bytes = self.stream.push(interleaved).map_err(|error| broken(error.to_string()))?;
        self.file.write_all(&bytes).map_err(|error| broken(error.to_string()))?;
        let pairs = interleaved.as_chunks::<2>().0;
        self.written += pairs.len() as u64;
        self.recent.extend(pairs);
        let surplus = self.recent.len().saturating_sub(KEPT);
        self.recent.drain(..surplus);
        Ok(())
    }

    /// What was recorded of one side between two times; cut at what has been recorded so far.
    pub(super) fn stretch(&self, side: Side, from: Time, to: Time) -> Stretch {
        let from = number(from).min(self.written);
        let to = number(to).clamp(from, self.written);
        let first = self.written - self.recent.len() as u64;
        let hash = |from: u64, to: u64| {
            let from = usize::try_from(from.checked_sub(first)?).ok()?;
            let to = usize::try_from(to.checked_sub(first)?).ok()?;
            let sample = |pair: &[i16; 2]| match side {
                Side::Caller => pair[0],
                Side::Agent => pair[1],
            };
            let bytes: Vec<u8> =
                self.recent.range(from..to).flat_map(|pair| sample(pair).to_le_bytes()).collect();
            Some(sha256(&bytes))
        };
        Stretch { from, to, sha256: hash(from, to) }
    }
}

/// The number of the sample that sounds at a time.
fn number(at: Time) -> u64 {
    at.as_micros().saturating_mul(u64::from(RATE)) / 1_000_000
}
