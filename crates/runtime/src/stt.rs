//! Speech recognition as the runtime needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A local engine that turns a stretch of sound into words. Blocking: the runtime calls it on threads of its own.
pub trait Transcribe: Send + Sync + std::fmt::Debug {
    /// Engine and model, for logs and evidence: `whisper/tiny.en`.
    fn name(&self) -> String;

    /// Recognises `pcm`, 16 kHz mono in [-1, 1]. `partial`: speed before quality, the caller still speaks.
    fn transcribe(&self, pcm: &[f32], partial: bool, cancel: &Cancel) -> Result<Transcription, SttError>;
}

/// Words with what is known about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcription {
    /// The words; empty if there were none.
    pub text: String,
    /// Each word with its place in the sound, in seconds, where the engine knows.
    pub words: Vec<Word>,
    /// Mean log-probability per token, natural logarithm; 0 if unknown.
    pub avg_logprob: f32,
    /// Probability that there was no speech; 0 if unknown.
    pub no_speech: f32,
    /// Why these are not taken for the caller's words, if they are not: `loop`, `no_speech`, `foreign`, ….
    pub phantom: Option<String>,
}

/// One word.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The word.
    pub text: String,
    /// Start in seconds from the first sample.
    pub from: f32,
    /// End in seconds from the first sample.
    pub to: f32,
}

/// Asks a blocking call to stop early. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Not cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the holder of the other clones to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What can go wrong with recognition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SttError {
    /// The model file is missing.
    #[error("speech recognition model {model} is not here; get it with: sayback models fetch {model}")]
    MissingModel {
        /// Its name in `models/manifest.toml`.
        model: String,
    },
    /// The model file cannot be read.
    #[error("speech recognition model {path} cannot be loaded: {reason}")]
    BadModel {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The engine failed.
    #[error("speech recognition failed: {0}")]
    Failed(String),
}
