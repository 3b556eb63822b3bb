//! How well is the beginning of a real word known, and what does listening for it cost?
//!
//! ```text
//! cargo bench -p sayback-media --bench onset              the project's own recordings
//! cargo bench -p sayback-media --bench onset -- FOLDER    and those of a folder (or of SAYBACK_ONSET_AUDIO)
//! ```
//!
//! Each recording is put behind three seconds of line noise, in the telephone's band, clean and with 20 and 12 dB of
//! noise, and what the detector states is compared with the beginning that the clean sound itself shows: the first 5 ms
//! within 35 dB of its loudest (recordings whose own noise hides that are left out). The detector is Silero where its
//! model is (`models/`, or the folder in `SAYBACK_MODELS`), else the light one; the first line says which.
//! `SAYBACK_ONSET_LIST=1` names each recording that is stated late.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sayback_core::{Time, VoiceFrame};
use sayback_media::noise::{WhiteNoise, mix_at_snr};
use sayback_media::{
    Earshot, Silero, SileroModel, SpeechProbability, VoiceDetector, pcm, read_audio, telephone,
};

const RATE: u32 = 16_000;
const LEAD: usize = 3 * RATE as usize;
/// Percent from which a frame counts as speech.
const SPEECH: u8 = 50;

fn main() {
    let given = std::env::args().skip(1).find(|a| !a.starts_with('-')).map(PathBuf::from);
    let given = given.or_else(|| std::env::var_os("SAYBACK_ONSET_AUDIO").map(PathBuf::from));
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let models = std::env::var_os("SAYBACK_MODELS").map_or_else(|| repository.join("models"), PathBuf::from);
    let file = models.join("silero_vad.onnx");
    let silero =
        file.is_file().then(|| SileroModel::load(&file, 1).expect("the file holds the Silero model"));
    println!("model: {}", if silero.is_some() { "Silero" } else { "the light one" });
    let folders = std::iter::once(repository.join("tests/audio")).chain(given);
    let words: Vec<_> = folders.flat_map(|folder| words(&folder)).collect();
    println!("{} recordings", words.len());
    for snr_db in [None, Some(20.0), Some(12.0)] {
        let mut tally = Tally::default();
        for (name, word) in &words {
            tally.note(name, trial(word, snr_db, &silero));
        }
        let noise = snr_db.map_or("clean".to_owned(), |db| format!("{db} dB"));
        tally.print(&noise);
    }
    for gated in [true, false] {
        cost(&words, gated, &silero);
    }
}

fn model(silero: &Option<Arc<SileroModel>>) -> Box<dyn SpeechProbability> {
    match silero {
        Some(silero) => Box::new(Silero::new(silero)),
        None => Box::<Earshot>::default(),
    }
}

/// Every readable recording of a folder at 16,000 Hz, through the telephone.
fn words(folder: &Path) -> Vec<(String, Vec<f32>)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .filter_map(|e| Some(e.ok()?.path()))
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let line = read_audio(path).ok()?.mono_at(8_000).ok()?;
        let coded = telephone::over_the_line(&line, 8_000);
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((name, sayback_media::resample::resample(&coded, 8_000, RATE).ok()?))
    };
    paths.iter().filter_map(read).filter(|(_, word)| reference(word).is_some()).collect()
}

/// Where the word begins: from the first 40 ms within 12 dB of the loudest back to the last one that is within 35 dB of
/// it, silences of up to 50 ms inside the word allowed. `None` if the recording's own noise is too near to tell.
fn reference(word: &[f32]) -> Option<usize> {
    let levels: Vec<f32> = word.chunks(80).map(pcm::level_dbfs).collect();
    let loudest = levels.iter().copied().fold(pcm::SILENCE_DBFS, f32::max);
    let mut quiet: Vec<f32> = word.chunks(480).map(pcm::level_dbfs).collect();
    quiet.sort_unstable_by(f32::total_cmp);
    if *quiet.get(quiet.len() / 20)? > loudest - 45.0 {
        return None;
    }
    // A click is loud, too, but not for 40 ms.
    let mut begin = levels.windows(8).position(|w| w.iter().all(|level| *level > loudest - 12.0))?;
    let mut silence = 0;
    for step in (0..begin).rev() {
        silence = if levels[step] > loudest - 35.0 { 0 } else { silence + 1 };
        if silence > 10 {
            break;
        }
        if silence == 0 {
            begin = step;
        }
    }
    Some(begin * 80)
}

struct Trial {
    onset: Time,
    snr_db: f32,
    first: Option<VoiceFrame>,
}

fn trial(word: &[f32], snr_db: Option<f32>, silero: &Option<Arc<SileroModel>>) -> Trial {
    let mut sound = vec![0.0; LEAD];
    sound.extend_from_slice(word);
    sound.extend(std::iter::repeat_n(0.0, RATE as usize));
    match snr_db {
        None => {
            let idle = WhiteNoise::new(1).samples(sound.len(), -72.0);
            sound.iter_mut().zip(idle).for_each(|(s, n)| *s += n);
        }
        Some(db) => {
            let mut noise = WhiteNoise::new(2).samples(sound.len(), -20.0);
            telephone::band(RATE).process(&mut noise);
            mix_at_snr(&mut sound, &noise, RATE, db);
        }
    }
    let onset = at(LEAD + reference(word).unwrap_or(0));
    let mut detector = VoiceDetector::new(model(silero));
    let mut first = None;
    for (n, piece) in sound.chunks(320).enumerate() {
        let keep = |frame: VoiceFrame| {
            if frame.speech >= SPEECH && frame.end > onset && first.is_none() {
                first = Some(frame);
            }
        };
        detector.push(piece, at(n * 320), keep).expect("the model works");
    }
    let mut tracker = sayback_media::onset::OnsetTracker::new();
    let end = first.map_or(0, |frame: VoiceFrame| (frame.end.as_micros() * 2 / 125) as usize);
    tracker.push(&sound[..end.min(sound.len())], true);
    let snr_db = tracker.rise(end.saturating_sub(512) as u64, end as u64).snr_db;
    Trial { onset, snr_db, first }
}

fn at(sample: usize) -> Time {
    Time::from_micros(sample as u64 * 125 / 2)
}

#[derive(Default)]
struct Tally {
    contained: usize,
    missed: usize,
    /// `earliest` minus the true beginning, in µs: negative is safe.
    late: Vec<i64>,
    /// Start of the first frame of speech minus the true beginning, in µs.
    frame_late: Vec<i64>,
    worst: String,
}

impl Tally {
    fn note(&mut self, name: &str, trial: Trial) {
        let Some(first) = trial.first else {
            self.missed += 1;
            return;
        };
        let late = first.rise.diff_micros(trial.onset);
        self.contained += usize::from(late <= 0 && first.end >= trial.onset);
        if std::env::var_os("SAYBACK_ONSET_LIST").is_some() && late > 0 {
            println!(
                "  {name}: {} ms late at {:.0} dB, first frame {} ms",
                late / 1_000,
                trial.snr_db,
                first.start.diff_micros(trial.onset) / 1_000
            );
        }
        if self.late.iter().all(|other| *other < late) {
            name.clone_into(&mut self.worst);
        }
        self.late.push(late);
        self.frame_late.push(first.start.diff_micros(trial.onset));
    }

    fn print(mut self, noise: &str) {
        self.late.sort_unstable();
        self.frame_late.sort_unstable();
        let ms = |values: &[i64], share: usize| values[(values.len() - 1) * share / 100] as f64 / 1_000.0;
        if self.late.is_empty() {
            println!("{noise:>6}: no word was found");
            return;
        }
        println!(
            "{noise:>6}: interval holds the beginning {} of {}, not found {}; earliest minus beginning: \
             least {} median {} most {} ms ({}), late {}; first frame minus beginning: least {} median {} most {} ms",
            self.contained,
            self.late.len(),
            self.missed,
            ms(&self.late, 0),
            ms(&self.late, 50),
            ms(&self.late, 100),
            self.worst,
            self.late.iter().filter(|late| **late > 0).count(),
            ms(&self.frame_late, 0),
            ms(&self.frame_late, 50),
            ms(&self.frame_late, 100),
        );
    }
}

fn cost(words: &[(String, Vec<f32>)], gated: bool, silero: &Option<Arc<SileroModel>>) {
    // A caller who speaks a third of the time.
    let mut sound = Vec::new();
    for (_, word) in words.iter().take(40) {
        sound.extend_from_slice(word);
        sound.extend(std::iter::repeat_n(0.0, word.len() * 2));
    }
    let idle = WhiteNoise::new(3).samples(sound.len(), -60.0);
    sound.iter_mut().zip(idle).for_each(|(s, n)| *s += n);
    let mut detector = VoiceDetector::new(model(silero));
    if !gated {
        detector = detector.ungated();
    }
    let start = cpu_seconds();
    for (n, piece) in sound.chunks(320).enumerate() {
        detector.push(piece, at(n * 320), |_| ()).expect("the model works");
    }
    let seconds = sound.len() as f64 / f64::from(RATE);
    let counts = detector.counts();
    println!(
        "{}: {:.3} ms of CPU a second of sound ({:.0} s, a third of it speech; {} of {} frames and {} runs)",
        if gated { "with the gate" } else { "without" },
        (cpu_seconds() - start) * 1_000.0 / seconds,
        seconds,
        counts.frames.min(counts.runs),
        counts.frames,
        counts.runs,
    );
}

/// CPU time of this process so far in seconds, all its threads: on a shared machine the clock on the wall says little.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold blanks; user and system time are the 12th and 13th field after it, in 1/100 s.
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}
