//! Audio mode: the clips on one track, real voice activity detection and recognition, and the agent's real voice.

use std::ops::ControlFlow;
use std::path::PathBuf;

use sayback_core::{Interval, Speak, Transcript, VoiceFrame};
use sayback_media::audible::AudibleTracker;
use sayback_media::resample::resample;
use sayback_media::{ReadError, VoiceDetector, pcm, read_audio};
use sayback_runtime::stt::{Cancel, SttError, Transcription};
use sayback_runtime::tts::TtsError;

use super::*;
use crate::engines::SoundEngines;
use crate::mouth::Piece;

/// Samples per second of everything here.
pub(crate) const RATE: u32 = 16_000;
/// The caller's track is judged in pieces of this many samples: one frame of the detector.
const BLOCK: usize = 512;
/// Quiet that is listened to after the last sound, so that the last segment ends.
const AFTER_SOUND: Duration = Duration::from_millis(1_600);
/// Sound before a segment that recognition hears too.
const BEFORE: Duration = Duration::from_millis(300);

/// Why a scenario cannot be run on sound.
#[derive(Debug, thiserror::Error)]
pub enum SoundError {
    /// The run was not given engines.
    #[error("audio mode needs the local models; get them with: sayback models fetch core")]
    NoEngines,
    /// A line has words but no clip.
    #[error("{}:{line}: this line has no `audio`; give it a clip, or run with --speech text", path.display())]
    NoClip {
        /// The scenario.
        path: PathBuf,
        /// Its line.
        line: usize,
    },
    /// Another process opens the conversation: only in text mode.
    #[error("{}:{line}: `reopen` works in text mode; run with --speech text", path.display())]
    Reopened {
        /// The scenario.
        path: PathBuf,
        /// Its line.
        line: usize,
    },
    /// A clip cannot be read.
    #[error("{}: {source}", path.display())]
    Clip {
        /// The line of the scenario that names it.
        line: usize,
        /// The clip.
        path: PathBuf,
        /// What is wrong.
        source: ReadError,
    },
    /// A clip's sample rate cannot be converted.
    #[error("{}: its sample rate cannot be converted", path.display())]
    Rate {
        /// The line of the scenario that names it.
        line: usize,
        /// The clip.
        path: PathBuf,
    },
    /// Voice activity detection failed.
    #[error("voice activity detection failed: {0}")]
    Vad(String),
    /// Recognition failed.
    #[error(transparent)]
    Stt(#[from] SttError),
    /// The voice failed.
    #[error(transparent)]
    Tts(#[from] TtsError),
}

impl SoundError {
    /// The line of the scenario that it is about, if it is about one.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::NoClip { line, .. }
            | Self::Reopened { line, .. }
            | Self::Clip { line, .. }
            | Self::Rate { line, .. } => Some(*line),
            Self::NoEngines | Self::Vad(..) | Self::Stt(..) | Self::Tts(..) => None,
        }
    }
}

/// The caller's sound and what listens to it.
pub(crate) struct Ears {
    engines: SoundEngines,
    detector: VoiceDetector,
    /// One clip an act, decoded.
    clips: Vec<Vec<f32>>,
    delays: Vec<Duration>,
    track: Vec<f32>,
    /// How much of the track the detector has heard.
    heard: usize,
    /// Where the clips lie on the track, by act.
    placed: Vec<(usize, Time, Time)>,
    open: Vec<Open>,
}

/// A segment that sounds.
struct Open {
    id: SegmentId,
    onset: Interval,
    last_partial: Time,
}

/// Between two partial results of a segment, as on a live line.
const PARTIAL_EVERY: Duration = Duration::from_millis(600);

impl Ears {
    pub(crate) fn new(scenario: &Scenario, engines: SoundEngines) -> Result<Self, SoundError> {
        let clips = scenario.callers.iter().map(|act| clip(scenario, act)).collect::<Result<_, _>>()?;
        let delays = scenario
            .callers
            .iter()
            .map(|act| match &act.act {
                Act::Speech(speech) => speech.transcript_delay,
                Act::Noise { .. }
                | Act::Digit(_)
                | Act::Message(_)
                | Act::HangUp
                | Act::Hold(_)
                | Act::Rewind(_)
                | Act::Reopen => Duration::ZERO,
            })
            .collect();
        let detector = VoiceDetector::new((engines.vad)());
        Ok(Self {
            engines,
            detector,
            clips,
            delays,
            track: Vec::new(),
            heard: 0,
            placed: Vec::new(),
            open: Vec::new(),
        })
    }

    /// A clip begins to sound at our input.
    pub(crate) fn play(&mut self, act: usize, at: Time) {
        let Some(clip) = self.clips.get(act) else { return };
        let from = samples(at.since(Time::ZERO));
        let needed = from + clip.len();
        if self.track.len() < needed {
            self.track.resize(needed, 0.0);
        }
        for (out, sample) in self.track.iter_mut().skip(from).zip(clip) {
            *out += sample;
        }
        self.placed.push((act, at, at + span(clip.len())));
    }

    pub(crate) fn open(&mut self, segment: SegmentId, onset: Interval) {
        self.open.push(Open { id: segment, onset, last_partial: onset.latest });
    }

    /// How loud the voice in a segment is.
    fn level_db(&self, segment: SegmentId, offset: Time) -> Option<i16> {
        let open = self.open.iter().find(|open| open.id == segment)?;
        sayback_media::level::voiced_db(&self.slice(open.onset.latest, offset))
    }

    /// Words so far of a segment that has sounded for long enough since the last ones.
    pub(crate) fn partial(&mut self, now: Time) -> Result<Option<(SegmentId, String)>, SttError> {
        let due = |open: &&mut Open| now.since(open.last_partial) >= PARTIAL_EVERY;
        let Some(open) = self.open.iter_mut().find(due) else { return Ok(None) };
        open.last_partial = now;
        let (id, from) = (open.id, open.onset.earliest - BEFORE);
        let found = self.engines.stt.transcribe(&self.slice(from, now), true, &Cancel::new())?;
        Ok(found.phantom.is_none().then_some((id, found.text)))
    }

    /// When the next frame is whole. Listening goes on while anything else does.
    pub(crate) fn next_at(&self, pending: Option<Time>) -> Option<Time> {
        let next = Time::ZERO + span(self.heard + BLOCK);
        let last = self.placed.iter().map(|(_, _, end)| *end).max().unwrap_or(Time::ZERO);
        let wanted = last + AFTER_SOUND >= next || pending.is_some_and(|at| at > next);
        wanted.then_some(next)
    }

    /// Frames that are whole by now.
    pub(crate) fn frames_until(&mut self, now: Time) -> Result<Vec<VoiceFrame>, SoundError> {
        let mut frames = Vec::new();
        let end = samples(now.since(Time::ZERO));
        while self.heard + BLOCK <= end {
            let mut block = [0.0; BLOCK];
            for (out, sample) in block.iter_mut().zip(self.track.iter().skip(self.heard)) {
                *out = *sample;
            }
            let start = Time::ZERO + span(self.heard);
            let pushed = self.detector.push(&block, start, |frame| frames.push(frame));
            pushed.map_err(|error| SoundError::Vad(error.to_string()))?;
            self.heard += BLOCK;
        }
        Ok(frames)
    }

    fn slice(&self, from: Time, to: Time) -> Vec<f32> {
        let (from, to) = (samples(from.since(Time::ZERO)), samples(to.since(Time::ZERO)));
        let to = to.min(self.track.len());
        self.track.get(from.min(to)..to).unwrap_or_default().to_vec()
    }

    fn transcribe(&mut self, segment: SegmentId, offset: Time) -> Result<Transcription, SttError> {
        let onset =
            self.open.iter().find(|open| open.id == segment).map_or(offset, |open| open.onset.earliest);
        self.open.retain(|open| open.id != segment);
        let sound = self.slice(onset - BEFORE, offset + BEFORE);
        self.engines.stt.transcribe(&sound, false, &Cancel::new())
    }

    /// The delay that the file gives for the line that sounded at `offset`, or last before it.
    fn delay(&self, offset: Time) -> Duration {
        let line = self.placed.iter().filter(|(_, from, _)| *from <= offset).max_by_key(|(_, from, _)| *from);
        line.and_then(|(act, ..)| self.delays.get(*act)).copied().unwrap_or(Duration::ZERO)
    }

    pub(crate) fn recording(&self, end: Time) -> Vec<i16> {
        let mut track = self.track.clone();
        track.resize(samples(end.since(Time::ZERO)), 0.0);
        to_i16(&track)
    }
}

fn to_i16(track: &[f32]) -> Vec<i16> {
    let mut out = Vec::with_capacity(track.len());
    pcm::extend_i16(&mut out, track);
    out
}

fn samples(span: Duration) -> usize {
    usize::try_from(span.as_micros() * u128::from(RATE) / 1_000_000).unwrap_or(usize::MAX)
}

fn span(samples: usize) -> Duration {
    Duration::from_micros(samples as u64 * 1_000_000 / u64::from(RATE))
}

fn clip(scenario: &Scenario, act: &CallerAct) -> Result<Vec<f32>, SoundError> {
    let path = match &act.act {
        Act::Speech(speech) => match &speech.audio {
            Some(path) => path,
            None => return Err(SoundError::NoClip { path: scenario.path.clone(), line: act.line }),
        },
        Act::Noise { audio: Some(path), .. } => path,
        Act::Noise { length, .. } => return Ok(speech_like_noise(*length)),
        Act::Digit(_) | Act::Message(_) | Act::HangUp | Act::Hold(_) | Act::Rewind(_) | Act::Reopen => {
            return Ok(Vec::new());
        }
    };
    let line = act.line;
    let clip = read_audio(path).map_err(|source| SoundError::Clip { line, path: path.clone(), source })?;
    clip.mono_at(RATE).map_err(|_| SoundError::Rate { line, path: path.clone() })
}

/// A wordless sound: filtered noise in syllables, the same every time.
fn speech_like_noise(length: Duration) -> Vec<f32> {
    let mut state: u32 = 0x2545_F491;
    let mut smooth = 0.0_f32;
    (0..samples(length))
        .map(|i| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let noise = (state as f32 / u32::MAX as f32) - 0.5;
            smooth += 0.2 * (noise - smooth);
            let syllable = (i as f32 / RATE as f32 * std::f32::consts::TAU * 5.0).sin().abs();
            smooth * syllable * 0.6
        })
        .collect()
}

impl VirtualCall<'_> {
    /// Final words of a segment, after the delay that the file gives.
    pub(super) fn recognise(&mut self, segment: SegmentId, offset: Time) {
        let Some(ears) = self.ears.as_mut() else { return };
        let delay = ears.delay(offset);
        let level_db = ears.level_db(segment, offset);
        match ears.transcribe(segment, offset) {
            Ok(found) => {
                let confidence = confidence(&found);
                let transcript = Transcript {
                    segments: vec![segment],
                    span: None,
                    text: found.text,
                    confidence,
                    phantom: found.phantom,
                };
                self.later(Duration::ZERO, Event::Measured { segment, level_db, speakers: None });
                let since_end = self.now.since(offset);
                self.later(delay.saturating_sub(since_end), Event::Transcript(transcript));
            }
            Err(error) => self.error = Some(error.into()),
        }
    }

    pub(super) fn judge_end(&mut self, segment: SegmentId) {
        let Some(ears) = self.ears.as_ref() else { return };
        let Some(model) = ears.engines.end_of_turn.clone() else { return };
        let from = self.now - Duration::from_secs(8);
        let sound = ears.slice(from, self.now);
        if let Ok(probability) = model.probability(&sound) {
            let percent = (probability * 100.0).clamp(0.0, 100.0) as u8;
            self.later(Duration::ZERO, Event::EndOfTurn { segment, percent });
        }
    }

    pub(super) fn speak(&mut self, speak: &Speak) {
        if self.scenario.line.transport == Transport::Chat {
            return;
        }
        let piece = match self.ears.as_ref().map(|ears| ears.engines.clone()) {
            None => Piece::of_text(speak),
            Some(engines) => match sound_piece(speak, &engines) {
                Ok(piece) => piece,
                Err(error) => {
                    self.error = Some(error);
                    return;
                }
            },
        };
        self.mouth.speak(piece, self.now);
    }
}

/// Confidence in percent, from the mean log-probability.
fn confidence(found: &Transcription) -> Option<u8> {
    (found.avg_logprob != 0.0).then(|| (found.avg_logprob.exp() * 100.0).clamp(0.0, 100.0) as u8)
}

fn sound_piece(speak: &Speak, engines: &SoundEngines) -> Result<Piece, SoundError> {
    let mut spoken: Vec<i16> = Vec::new();
    engines.tts.synthesize(&speak.text, &speak.language, &mut |chunk| {
        spoken.extend_from_slice(chunk);
        ControlFlow::Continue(())
    })?;
    let mut sound = Vec::with_capacity(spoken.len());
    pcm::extend_f32(&mut sound, &spoken);
    let samples = resample(&sound, engines.tts.sample_rate(), RATE)
        .map_err(|_| SoundError::Tts(TtsError::Failed("its sample rate cannot be converted".to_owned())))?;
    let mut tracker = AudibleTracker::new(RATE, false);
    tracker.push(&samples);
    let (from, to) = tracker.audible().map_or((0, 0), |audible| (audible.from, audible.to));
    Ok(Piece {
        utterance: speak.utterance,
        kind: speak.kind,
        length: span(samples.len()),
        audible_from: span(from as usize),
        audible_to: span(to as usize),
        samples,
    })
}

/// The agent's track of a recording: every piece where it sounded.
pub(super) fn agent_track(mouth: &Mouth, end: Time) -> Vec<i16> {
    let mut track = vec![0.0; samples(end.since(Time::ZERO))];
    for sounded in &mouth.sounded {
        let Some(piece) = mouth.pieces.iter().find(|p| p.utterance == sounded.utterance) else { continue };
        let at = samples(sounded.from.since(Time::ZERO)).min(track.len());
        let from = samples(sounded.piece_from).min(piece.samples.len());
        let to = (from + samples(sounded.length)).min(piece.samples.len());
        for (out, sample) in track[at..].iter_mut().zip(&piece.samples[from..to]) {
            *out += sample;
        }
    }
    to_i16(&track)
}
