//! Yeses as the ears hear them: recordings at several levels, in several noises, at every place of the frame grid, through
//! the real detector and the real walk back to the onset.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sayback_core::{Time, VoiceFrame};
use sayback_media::noise::{WhiteNoise, active_level_dbfs};
use sayback_media::vad::FRAME;
use sayback_media::{ReadError, VoiceDetector, pcm, read_audio, telephone};

use crate::engines::NewVad;

const RATE: u32 = 16_000;
/// Noise before the recording, so that the floor is known.
const LEAD: usize = 3 * RATE as usize;
/// What is listened to behind it.
const TAIL: usize = RATE as usize * 7 / 10;
/// Places of the recording's beginning within a frame.
const PLACES: usize = 8;
/// Active level of the speech in dB relative to full scale: near, and weak.
const LEVELS: [f32; 2] = [-22.0, -35.0];
/// Level of the line's noise: quiet, and a room.
const NOISES: [f32; 2] = [-72.0, -57.0];

/// Why there are no sounds.
#[derive(Debug, thiserror::Error)]
pub enum SoundsError {
    /// A recording cannot be read.
    #[error("{}: {source}", path.display())]
    Clip {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ReadError,
    },
    /// A recording cannot be brought to the rate of the ears.
    #[error("{}: its sample rate cannot be converted", .0.display())]
    Rate(PathBuf),
    /// A recording whose beginning nothing shows.
    #[error("{}: its own noise hides where it begins; take a cleaner one", .0.display())]
    NoBeginning(PathBuf),
    /// The detector failed.
    #[error("voice activity detection failed: {0}")]
    Vad(String),
    /// No recording was given.
    #[error("no recording was given")]
    None,
}

/// One frame of a take, by its distance from the true beginning of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TakeFrame {
    start_micros: i64,
    end_micros: i64,
    rise_micros: i64,
    speech: u8,
}

/// A recording at one level, in one noise, at one place of the frame grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Its words.
    pub words: String,
    /// The recording, its level and its noise, for messages.
    pub name: String,
    /// How long it sounds.
    pub length: Duration,
    /// Speech is weak: 35 dB below full scale.
    pub weak: bool,
    frames: Vec<TakeFrame>,
}

impl Take {
    /// How much later than the true beginning the stated onset lies, in microseconds; negative: earlier, as it should be.
    /// `None` if no segment is cut from it.
    pub fn stated_late_micros(&self) -> Option<i64> {
        let speech = |frame: &TakeFrame| frame.speech >= 50;
        let pair = self.frames.windows(2).find(|pair| pair.iter().all(speech))?;
        pair.first().map(|frame| frame.rise_micros.min(frame.start_micros))
    }

    /// Its frames, given when the word begins.
    pub fn frames(&self, onset: Time) -> impl Iterator<Item = VoiceFrame> + '_ {
        let at = move |micros: i64| {
            let by = Duration::from_micros(micros.unsigned_abs());
            if micros < 0 { onset - by } else { onset + by }
        };
        self.frames.iter().map(move |frame| VoiceFrame {
            start: at(frame.start_micros),
            end: at(frame.end_micros),
            rise: at(frame.rise_micros),
            speech: frame.speech,
        })
    }
}

/// All takes.
#[derive(Clone, Debug)]
pub struct Sounds {
    takes: Vec<Take>,
}

impl Sounds {
    /// Listens to every recording, in every condition.
    ///
    /// # Errors
    /// A recording that cannot be read, or whose beginning cannot be told; a detector that fails.
    pub fn listen(clips: &[(PathBuf, &str)], vad: &NewVad) -> Result<Self, SoundsError> {
        let mut takes = Vec::new();
        for (path, words) in clips {
            let clip = on_the_line(path)?;
            let (from, to) = extent(&clip).ok_or_else(|| SoundsError::NoBeginning(path.clone()))?;
            for (level, noise) in LEVELS.into_iter().flat_map(|level| NOISES.map(|noise| (level, noise))) {
                for place in 0..PLACES {
                    let sound = Condition { clip: &clip, level, noise, place };
                    let frames = sound.hear(from, vad)?;
                    takes.push(Take {
                        words: (*words).to_owned(),
                        name: format!("{} at {level} dBFS in {noise} dBFS", path.display()),
                        length: span(to - from),
                        weak: level < -30.0,
                        frames,
                    });
                }
            }
        }
        if takes.is_empty() { Err(SoundsError::None) } else { Ok(Self { takes }) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.takes.len()
    }

    /// There is always one.
    pub fn is_empty(&self) -> bool {
        self.takes.is_empty()
    }

    /// One of them, by a number.
    pub fn pick(&self, number: u64) -> &Take {
        let index = number % self.takes.len().max(1) as u64;
        &self.takes[usize::try_from(index).unwrap_or(0)]
    }
}

fn span(samples: usize) -> Duration {
    Duration::from_micros(samples as u64 * 1_000_000 / u64::from(RATE))
}

/// The recording in a telephone's band, at the ears' rate.
fn on_the_line(path: &Path) -> Result<Vec<f32>, SoundsError> {
    let clip = read_audio(path).map_err(|source| SoundsError::Clip { path: path.to_owned(), source })?;
    let rate = |_| SoundsError::Rate(path.to_owned());
    // Quiet around it, for a recording may begin with its word.
    let quiet = vec![0.0; 1_600];
    let line = [quiet.as_slice(), &clip.mono_at(8_000).map_err(rate)?, quiet.as_slice()].concat();
    let coded = telephone::over_the_line(&line, 8_000);
    sayback_media::resample::resample(&coded, 8_000, RATE).map_err(rate)
}

/// Where the clean recording begins and ends: the first and the last 5 ms within 35 dB of its loudest. `None` if that is
/// all of it: its own noise is too near to tell.
fn extent(clip: &[f32]) -> Option<(usize, usize)> {
    const STEP: usize = 80;
    let levels: Vec<f32> = clip.chunks(STEP).map(pcm::level_dbfs).collect();
    let loudest = levels.iter().copied().fold(pcm::SILENCE_DBFS, f32::max);
    let sounds = |level: &f32| *level > loudest - 35.0;
    let (first, last) = (levels.iter().position(sounds)?, levels.iter().rposition(sounds)?);
    (first > 0 && last > first).then_some((first * STEP, ((last + 1) * STEP).min(clip.len())))
}

struct Condition<'a> {
    clip: &'a [f32],
    level: f32,
    noise: f32,
    place: usize,
}

impl Condition<'_> {
    /// The frames that the detector gives from just before the word until long behind it.
    fn hear(&self, from: usize, vad: &NewVad) -> Result<Vec<TakeFrame>, SoundsError> {
        let begins = LEAD + self.place * FRAME / PLACES;
        let mut sound =
            WhiteNoise::new(11 + self.place as u64).samples(begins + self.clip.len() + TAIL, self.noise);
        let gain = pcm::gain(self.level - active_level_dbfs(self.clip, RATE));
        for (out, sample) in sound[begins..].iter_mut().zip(self.clip) {
            *out += sample * gain;
        }
        let onset = (begins + from) as i64 * 125 / 2;
        let off = |time: Time| time.as_micros() as i64 - onset;
        let mut detector = VoiceDetector::new(vad());
        let mut frames = Vec::new();
        let pushed = detector.push(&sound, Time::ZERO, |frame| {
            // The runtime never sees more than three decimals of it either.
            if off(frame.end) > -100_000 {
                frames.push(TakeFrame {
                    start_micros: off(frame.start),
                    end_micros: off(frame.end),
                    rise_micros: off(frame.rise),
                    speech: frame.speech,
                });
            }
        });
        pushed.map_err(|error| SoundsError::Vad(error.to_string()))?;
        Ok(frames)
    }
}
