//! How long sound takes from the speaker into the microphone, and where that is kept.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sayback_core::{LoopDelay, PlayoutEvent, Time, UtteranceId};
use sayback_media::pcm;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::Receiver;

use super::error::MicError;
use super::line::{LineEvent, LineFact, MicLine, MicOptions};
use super::stamp::{CallClock, micros};
use super::{BLOCK, EchoMode, INPUT_RATE};

/// How far a measured delay may be off in either direction.
const TOLERANCE: Duration = Duration::from_millis(20);

/// How often the chirp is played. The delays are to agree.
const CHIRPS: usize = 3;

/// Length of the chirp and the silence behind it, in samples: an echo of up to 600 ms fits in.
const CHIRP: usize = INPUT_RATE as usize / 8;
const REST: usize = INPUT_RATE as usize * 6 / 10;

/// The chirp's range in Hz: what a small speaker plays and a voice microphone hears.
const SWEEP: (f64, f64) = (600.0, 5_000.0);

/// From when on the chirp is looked for, before it should sound: a forecast may be off.
const EARLIER: Duration = Duration::from_millis(50);

/// Likeness at which a chirp counts as found. Noise alone reaches 0.15.
const NEEDED: f32 = 0.35;

/// Delays that differ by more than this are not the chirp's.
const SPREAD: Duration = Duration::from_millis(10);

/// How long sound takes from one speaker to one microphone beyond what the devices say of themselves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The delay in milliseconds.
    pub delay_ms: f64,
    /// How much the best match was like the chirp, 0 to 1.
    pub confidence: f32,
}

impl Calibration {
    /// The delay with its tolerance of 20 ms either side.
    pub fn loop_delay(&self) -> LoopDelay {
        let delay = Duration::from_micros((self.delay_ms.clamp(0.0, 10_000.0) * 1_000.0) as u64);
        LoopDelay { at_least: delay.saturating_sub(TOLERANCE), at_most: delay + TOLERANCE }
    }
}

/// Plays a chirp three times, finds it in the microphone's sound, and gives the delay. Blocks for about three seconds.
///
/// # Errors
/// If a device cannot be opened or is lost, and if the chirp is not heard each time at the same delay.
pub fn calibrate(options: MicOptions, clock: CallClock) -> Result<Calibration, MicError> {
    let options = MicOptions { echo: EchoMode::None, ..options };
    let (line, mut facts) = MicLine::open(options, clock)?;
    let chirp = chirp();
    let utterance = UtteranceId(0);
    line.begin(utterance, INPUT_RATE)?;
    let quiet = vec![0.0; REST];
    // The first rest lets the devices come into step before anything is measured.
    let mut sound = Vec::new();
    pcm::extend_i16(&mut sound, &quiet);
    for _ in 0..CHIRPS {
        pcm::extend_i16(&mut sound, &chirp);
        pcm::extend_i16(&mut sound, &quiet);
    }
    let _ = line.push(utterance, &sound);
    line.finish(utterance);
    let heard =
        Heard::take(&mut facts, Duration::from_millis(sound.len() as u64 * 1_000 / u64::from(INPUT_RATE)))?;
    evaluate(&heard, &chirp)
}

/// What the microphone heard while the chirps were played.
#[derive(Debug, Default)]
struct Heard {
    started: Time,
    blocks: Vec<(Time, Vec<f32>)>,
}

impl Heard {
    fn take(facts: &mut Receiver<LineFact>, length: Duration) -> Result<Self, MicError> {
        let mut heard = Self::default();
        let mut until = None;
        while let Some(fact) = facts.blocking_recv() {
            match fact {
                LineFact::Playout(PlayoutEvent::Started { at, .. }) => {
                    heard.started = at;
                    until = Some(at + length);
                }
                LineFact::Heard(block) if until.is_some_and(|until| block.start > until) => return Ok(heard),
                LineFact::Heard(block) => heard.blocks.push((block.start, block.samples)),
                LineFact::Line(LineEvent::InputLost { message } | LineEvent::OutputLost { message }) => {
                    return Err(MicError::Lost(message));
                }
                LineFact::Line(_) | LineFact::Playout(_) => {}
            }
        }
        Err(MicError::Lost("the line ended while it was measured".to_owned()))
    }

    /// Sound from a time on, as far as it was heard without a gap.
    fn from(&self, at: Time, len: usize) -> (Time, Vec<f32>) {
        let first = self.blocks.partition_point(|(start, _)| *start < at).min(self.blocks.len());
        let start = self.blocks.get(first).map_or(at, |(start, _)| *start);
        let wanted = self.blocks[first..].iter().take(len.div_ceil(BLOCK));
        (start, wanted.flat_map(|(_, samples)| samples.iter().copied()).collect())
    }
}

fn evaluate(heard: &Heard, chirp: &[f32]) -> Result<Calibration, MicError> {
    let mut found: Vec<(i64, f32)> = Vec::with_capacity(CHIRPS);
    for number in 0..CHIRPS {
        let before = REST + number * (CHIRP + REST);
        let sounds = heard.started + Duration::from_micros(before as u64 * 1_000_000 / u64::from(INPUT_RATE));
        let (start, sound) = heard.from(sounds - EARLIER, REST + CHIRP / 2);
        let (place, likeness) = best_match(&sound, chirp);
        let at = micros(start) + place as i64 * 1_000_000 / i64::from(INPUT_RATE);
        found.push((at - micros(sounds), likeness));
    }
    found.sort_by_key(|(delay, _)| *delay);
    let confidence = found.iter().map(|(_, likeness)| *likeness).fold(1.0, f32::min);
    let spread = found[CHIRPS - 1].0 - found[0].0;
    if confidence < NEEDED || spread > SPREAD.as_micros() as i64 {
        // Three matches at three delays are three matches with something else.
        let confidence = if confidence < NEEDED { confidence } else { 0.0 };
        return Err(MicError::NoChirp { confidence, needed: NEEDED });
    }
    let delay_ms = found[CHIRPS / 2].0.max(0) as f64 / 1_000.0;
    Ok(Calibration { delay_ms, confidence })
}

/// A sweep that begins and ends softly, so that it is heard as one sound and not as two clicks.
fn chirp() -> Vec<f32> {
    let length = CHIRP as f64 / f64::from(INPUT_RATE);
    let (low, high) = SWEEP;
    let sample = |n: usize| {
        let t = n as f64 / f64::from(INPUT_RATE);
        let phase = std::f64::consts::TAU * (low * t + (high - low) * t * t / (2.0 * length));
        let window = (std::f64::consts::PI * n as f64 / CHIRP as f64).sin();
        (0.5 * window * phase.sin()) as f32
    };
    (0..CHIRP).map(sample).collect()
}

/// Where in `sound` it is most like `pattern`, and how like: the normalised correlation, 0 to 1.
fn best_match(sound: &[f32], pattern: &[f32]) -> (usize, f32) {
    let pattern_energy: f32 = pattern.iter().map(|s| s * s).sum();
    let mut best = (0, 0.0f32);
    for (place, window) in sound.windows(pattern.len().max(1)).enumerate() {
        let product: f32 = window.iter().zip(pattern).map(|(a, b)| a * b).sum();
        let energy: f32 = window.iter().map(|s| s * s).sum();
        let likeness = product.abs() / (energy * pattern_energy).sqrt().max(1e-9);
        if likeness > best.1 {
            best = (place, likeness);
        }
    }
    best
}

/// Calibrations by pair of devices, in a TOML file such as `$XDG_CONFIG_HOME/sayback/devices.toml`.
///
/// ```toml
/// ["hw:CARD=USB,DEV=0 | plughw:CARD=PCH,DEV=0"]    # microphone | speaker
/// delay_ms = 31.5
/// confidence = 0.92
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CalibrationFile {
    path: PathBuf,
    pairs: BTreeMap<String, Calibration>,
}

impl CalibrationFile {
    /// Reads a file; one that does not exist holds nothing.
    ///
    /// # Errors
    /// If it exists and cannot be read or is no such file.
    pub fn read(path: &Path) -> Result<Self, MicError> {
        let fault = |reason: String| MicError::File { path: path.to_path_buf(), reason };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(fault(error.to_string())),
        };
        let pairs = toml::from_str(&text).map_err(|error| {
            fault(format!("{}; delete it and calibrate again", error.to_string().trim_end()))
        })?;
        Ok(Self { path: path.to_path_buf(), pairs })
    }

    /// What was measured for a microphone and a speaker, by the names of [`devices`](super::devices).
    pub fn get(&self, input: &str, output: &str) -> Option<Calibration> {
        self.pairs.get(&pair(input, output)).copied()
    }

    /// Keeps a measurement, on disk too: the file is replaced whole or not at all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&mut self, input: &str, output: &str, calibration: Calibration) -> Result<(), MicError> {
        self.pairs.insert(pair(input, output), calibration);
        let fault = |reason: String| MicError::File { path: self.path.clone(), reason };
        let text = toml::to_string(&self.pairs).map_err(|error| fault(error.to_string()))?;
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| fault(error.to_string()))?;
        }
        let new = self.path.with_extension("toml.new");
        std::fs::write(&new, text).map_err(|error| fault(error.to_string()))?;
        std::fs::rename(&new, &self.path).map_err(|error| fault(error.to_string()))
    }
}

fn pair(input: &str, output: &str) -> String {
    format!("{input} | {output}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayback_media::noise::WhiteNoise;

    /// What a microphone hears of the chirps `delay` samples after they are played, with noise.
    fn heard(delay: usize, chirp_gain: f32, noise_dbfs: f32) -> Heard {
        let len = REST + CHIRPS * (CHIRP + REST) + INPUT_RATE as usize;
        let mut sound = WhiteNoise::new(7).samples(len, noise_dbfs);
        for number in 0..CHIRPS {
            let at = delay + REST + number * (CHIRP + REST);
            for (sample, chirp) in sound[at..].iter_mut().zip(chirp()) {
                *sample += chirp * chirp_gain;
            }
        }
        let blocks = sound
            .chunks(BLOCK)
            .enumerate()
            .map(|(n, block)| (Time::from_millis(2_000 + n as u64 * 10), block.to_vec()))
            .collect();
        Heard { started: Time::from_millis(2_000), blocks }
    }

    #[test]
    fn a_quiet_chirp_in_noise_is_found_to_the_millisecond() {
        let calibration = evaluate(&heard(16 * 83, 0.05, -45.0), &chirp()).unwrap();
        assert!((calibration.delay_ms - 83.0).abs() < 1.0, "{calibration:?}");
        let delay = calibration.loop_delay();
        assert!(delay.at_least < Duration::from_millis(64) && delay.at_most > Duration::from_millis(102));
    }

    #[test]
    fn noise_without_a_chirp_is_refused() {
        let error = evaluate(&heard(16 * 83, 0.0, -30.0), &chirp()).unwrap_err();
        assert!(matches!(error, MicError::NoChirp { .. }), "{error}");
    }

    #[test]
    fn what_is_stored_is_read_again_and_nonsense_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sayback/devices.toml");
        let mut file = CalibrationFile::read(&path).unwrap();
        let calibration = Calibration { delay_ms: 31.5, confidence: 0.5 };
        file.store("mic \"one\"", "speaker", calibration).unwrap();
        let again = CalibrationFile::read(&path).unwrap();
        assert_eq!(again.get("mic \"one\"", "speaker"), Some(calibration));
        assert_eq!(again.get("mic", "speaker"), None);
        std::fs::write(&path, "[a]\ndelay_ms = \"long\"\n").unwrap();
        let error = CalibrationFile::read(&path).unwrap_err().to_string();
        assert!(error.contains("devices.toml") && error.contains("line 2"), "{error}");
    }
}
