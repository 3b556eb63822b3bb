//! The way from the speaker into the microphone: what was played when, and whether the recogniser may listen.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sayback_core::{LoopDelay, PlayoutEvent, Time};
use sayback_media::resample::{ResampleError, Resampler};

use super::INPUT_RATE;

/// What is done about the agent's own sound in the microphone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EchoMode {
    /// It is computed out of the microphone's sound: both may speak at once.
    #[default]
    Cancel,
    /// The recogniser does not listen while the agent is heard; see [`Block::gated`](super::Block::gated).
    HalfDuplex,
    /// Nothing: the speaker is not heard by the microphone (headphones, or two separate virtual devices).
    None,
}

/// How much of what was played is kept: longer than any delay between speaker and microphone.
const KEPT: usize = 3 * INPUT_RATE as usize;

/// A played buffer this far off the end of the one before is put where it belongs; nearer ones just follow.
const SLIP: i64 = INPUT_RATE as i64 / 100;

/// Spans of the agent's sound that are remembered.
const SPANS: usize = 16;

/// Shared by the two directions; never touched by a callback.
#[derive(Debug, Default)]
pub(crate) struct EchoPath(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    played: Played,
    /// When the agent was heard: from, and until when unless it still is.
    spans: VecDeque<(Time, Option<Time>)>,
}

/// What the speaker played, at 16 kHz, by call time.
#[derive(Debug, Default)]
struct Played {
    samples: VecDeque<f32>,
    /// Number on the call clock of the first sample kept.
    first: i64,
}

impl EchoPath {
    /// Notes what the speaker plays from `at` on.
    pub(crate) fn played(&self, at: Time, samples: &[f32]) {
        self.lock().played.add(sample_number(at), samples);
    }

    /// What the speaker played from a sample on; silence where that is not known.
    pub(crate) fn read(&self, from: i64, out: &mut [f32]) {
        self.lock().played.read(from, out);
    }

    /// The agent's sound is on its way to the speaker, or sounds. Nothing of it can be heard before it is on its way,
    /// so the gate does not depend on how soon the device tells of it.
    pub(crate) fn sounds(&self, now: Time) {
        self.lock().open(now);
    }

    /// Follows the ends of the agent's sound.
    pub(crate) fn on_playout(&self, event: &PlayoutEvent, now: Time, delay: LoopDelay) {
        let mut state = self.lock();
        match event {
            PlayoutEvent::Paused { at } => state.close(*at + delay.at_most),
            PlayoutEvent::Finished { last_audible, delay, .. } => state.close(*last_audible + delay.at_most),
            PlayoutEvent::Cleared { .. } | PlayoutEvent::Failed { .. } => {
                // What the device still has sounds: at most two buffers.
                state.close(now + Duration::from_millis(40) + delay.at_most);
            }
            PlayoutEvent::Started { .. }
            | PlayoutEvent::Synthesised { .. }
            | PlayoutEvent::Resumed { .. } => {}
        }
    }

    /// Whether the agent was heard at any time in a stretch.
    pub(crate) fn is_heard(&self, from: Time, to: Time) -> bool {
        self.lock().spans.iter().any(|(start, end)| *start < to && end.is_none_or(|end| end > from))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open(&mut self, at: Time) {
        if self.spans.back().is_some_and(|(_, end)| end.is_none()) {
            return;
        }
        if self.spans.len() == SPANS {
            self.spans.pop_front();
        }
        self.spans.push_back((at, None));
    }

    fn close(&mut self, at: Time) {
        if let Some((_, end @ None)) = self.spans.back_mut() {
            *end = Some(at);
        }
    }
}

impl Played {
    fn add(&mut self, at: i64, samples: &[f32]) {
        let end = self.first + self.samples.len() as i64;
        if self.samples.is_empty() || at - end > KEPT as i64 || end - at > KEPT as i64 {
            self.samples.clear();
            self.first = at;
        } else if at - end > SLIP {
            self.samples.extend(std::iter::repeat_n(0.0, (at - end) as usize));
        } else if end - at > SLIP {
            self.samples.truncate(self.samples.len().saturating_sub((end - at) as usize));
        }
        self.samples.extend(samples);
        let surplus = self.samples.len().saturating_sub(KEPT);
        self.samples.drain(..surplus);
        self.first += surplus as i64;
    }

    fn read(&self, at: i64, out: &mut [f32]) {
        for (number, sample) in (at - self.first..).zip(out) {
            let kept = usize::try_from(number).ok().and_then(|place| self.samples.get(place));
            *sample = kept.copied().unwrap_or(0.0);
        }
    }
}

/// Reads on sample by sample beside the microphone's blocks.
///
/// Both devices run on their own idea of 16,000 samples a second, so blocks that are looked up by their times would
/// skip or repeat a sample now and then, and a canceller that has learned the room would have to learn it again.
#[derive(Debug, Default)]
pub(crate) struct Cursor(Option<i64>);

impl Cursor {
    /// The sample at which a block that starts at `at` is to be read, and moves on by its length.
    pub(crate) fn advance(&mut self, at: Time, len: usize) -> i64 {
        let wanted = sample_number(at);
        let from = self.0.filter(|next| (wanted - next).abs() <= SLIP).unwrap_or(wanted);
        self.0 = Some(from + len as i64);
        from
    }
}

fn sample_number(at: Time) -> i64 {
    super::stamp::micros(at) * i64::from(INPUT_RATE) / 1_000_000
}

/// Turns the device's samples into the reference, in step with the buffers as they are played.
#[derive(Debug)]
pub(crate) struct Reference {
    converter: Resampler,
    rate: u32,
    scratch: Vec<f32>,
}

impl Reference {
    pub(crate) fn new(rate: u32) -> Result<Self, ResampleError> {
        Ok(Self { converter: Resampler::new(rate, INPUT_RATE)?, rate, scratch: Vec::new() })
    }

    /// A buffer of `frames` frames that begins with `speech` and sounds at `at`.
    pub(crate) fn play(
        &mut self,
        path: &EchoPath,
        at: Time,
        speech: impl Iterator<Item = f32>,
        frames: usize,
    ) {
        self.scratch.clear();
        self.scratch.extend(speech.take(frames));
        self.scratch.resize(frames.min(self.rate as usize), 0.0);
        let delay = super::stamp::span(self.converter.output_delay() as u64, INPUT_RATE);
        let out = self.converter.push(&self.scratch);
        path.played(at - delay, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayback_core::UtteranceId;

    #[test]
    fn what_was_played_is_found_by_its_time() {
        let path = EchoPath::default();
        path.played(Time::from_millis(1_000), &[0.1; 160]);
        path.played(Time::from_millis(1_010), &[0.2; 160]);
        path.played(Time::from_millis(1_100), &[0.3; 160]);
        let at = |millis| {
            let mut one = [9.0];
            path.read(sample_number(Time::from_millis(millis)), &mut one);
            one[0]
        };
        assert_eq!(
            [at(999), at(1_000), at(1_015), at(1_050), at(1_100), at(1_120)],
            [0.0, 0.1, 0.2, 0.0, 0.3, 0.0]
        );
    }

    #[test]
    fn a_cursor_follows_drift_in_one_piece_and_a_gap_at_once() {
        let mut cursor = Cursor::default();
        assert_eq!(cursor.advance(Time::from_micros(1_000_000), 160), 16_000);
        assert_eq!(cursor.advance(Time::from_micros(1_009_900), 160), 16_160);
        assert_eq!(cursor.advance(Time::from_micros(1_040_000), 160), 16_640);
    }

    #[test]
    fn the_recogniser_is_gated_until_the_question_was_heard() {
        let path = EchoPath::default();
        let delay = LoopDelay { at_least: Duration::ZERO, at_most: Duration::from_millis(120) };
        let heard = |millis| path.is_heard(Time::from_millis(millis), Time::from_millis(millis + 10));
        let utterance = UtteranceId(1);
        let note = |event| path.on_playout(&event, Time::from_millis(500), delay);
        path.sounds(Time::from_millis(1_000));
        assert_eq!([heard(980), heard(1_000), heard(60_000)], [false, true, true]);
        note(PlayoutEvent::Finished {
            utterance,
            last_audible: Time::from_millis(2_000),
            delay,
            evidence: sayback_core::EvidenceClass::Device,
            lost: Duration::ZERO,
        });
        assert_eq!([heard(2_000), heard(2_110), heard(2_120)], [true, true, false]);
    }
}
