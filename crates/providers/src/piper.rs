//! A neural voice on this machine: a Piper model over a pure-Rust runtime, phonemes from `espeak-ng`.
//!
//! `espeak-ng` is a program of its own that text goes into and phonemes come out of; it is GPL and never linked.
//! Text is cut into clauses, and each clause's samples are handed over as soon as they exist, so the first sound does
//! not wait for the last word. The same text gives the same samples, which is what lets a replay compare bytes.

mod cache;
mod clauses;
mod noise;
mod phonemes;
mod voice;

use cache::Cache;
use clauses::{Clause, Pause};
use sayback_runtime::tts::{Synthesize, TtsError};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use voice::Voice;

/// The handed-over pieces are this long, so that whoever stops a sentence does so within a tenth of a second.
const PIECES_PER_SECOND: usize = 10;

/// How a voice is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PiperOptions {
    /// Threads of one synthesis; `None` takes all cores.
    pub threads: Option<usize>,
    /// Length of the sounds against the voice's own: 1.2 is a fifth slower. Between 0.5 and 2.
    pub length: f32,
    /// Bytes of samples kept for texts that are said again, such as greetings and fillers.
    pub cache_bytes: usize,
}

impl Default for PiperOptions {
    fn default() -> Self {
        Self { threads: None, length: 1.0, cache_bytes: 16 << 20 }
    }
}

/// A Piper voice. One serves all calls.
#[derive(Debug)]
pub struct Piper {
    voice: Voice,
    name: String,
    cache: Mutex<Cache>,
}

impl Piper {
    /// Loads the voice at `path`, an `.onnx` file with its `.onnx.json` beside it, and sees that `espeak-ng` runs.
    pub fn load(path: &Path, options: PiperOptions) -> Result<Self, TtsError> {
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        if !path.is_file() {
            return Err(TtsError::MissingModel { model: format!("piper-{stem}") });
        }
        let voice = Voice::load(path, options)?;
        phonemes::of("a", voice.espeak_voice())?;
        let cache = Mutex::new(Cache::new(options.cache_bytes / size_of::<i16>()));
        Ok(Self { voice, name: format!("piper/{stem}"), cache })
    }

    /// The samples of one clause without the pause after it.
    fn clause(&self, clause: &Clause) -> Result<Arc<[i16]>, TtsError> {
        let kept = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(samples) = kept().get(&clause.text) {
            return Ok(samples);
        }
        let phonemes = phonemes::of_clause(&clause.text, self.voice.espeak_voice())?;
        let samples: Arc<[i16]> = self.voice.speak(&phonemes)?.into();
        kept().put(&clause.text, &samples);
        Ok(samples)
    }

    fn silence(&self, pause: Pause) -> usize {
        self.voice.sample_rate() as usize * pause.milliseconds() / 1000
    }
}

impl Synthesize for Piper {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn sample_rate(&self) -> u32 {
        self.voice.sample_rate()
    }

    /// Speaks in the voice's own language whatever `language` says: an accent is better than silence.
    fn synthesize(
        &self,
        text: &str,
        _language: &str,
        sink: &mut dyn FnMut(&[i16]) -> ControlFlow<()>,
    ) -> Result<(), TtsError> {
        let piece = self.voice.sample_rate() as usize / PIECES_PER_SECOND;
        let mut owed = 0;
        for clause in clauses::split(text) {
            let samples = self.clause(&clause)?;
            if samples.is_empty() {
                continue;
            }
            let pause = vec![0; owed];
            for part in pause.chunks(piece).chain(samples.chunks(piece)) {
                if sink(part).is_break() {
                    return Ok(());
                }
            }
            owed = self.silence(clause.pause);
        }
        Ok(())
    }
}
