//! Speech recognition as the runtime needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An engine that turns a stretch of sound into words. Blocking: the runtime calls it on threads of its own.
pub trait Transcribe: Send + Sync + std::fmt::Debug {
    /// Engine and model, for logs and evidence: `whisper/tiny.en`.
    fn name(&self) -> String;

    /// Recognises `pcm`, 16 kHz mono in [-1, 1]. `partial`: speed before quality, the caller still speaks.
    fn transcribe(&self, pcm: &[f32], partial: bool, cancel: &Cancel) -> Result<Transcription, SttError>;

    /// Begins to hear along with one call, for engines that can: the words are there sooner than if the sound were
    /// handed over once it has ended. `None`: it takes whole stretches only. Does not wait for a connection.
    fn live(&self, _heard: OnHeard) -> Option<Box<dyn Live>> {
        None
    }

    /// Whether [`live`](Self::live) gives anything; asked before anything is begun.
    fn hears_along(&self) -> bool {
        false
    }
}

/// Takes what a live engine heard. Called on the engine's own thread, never from within [`Live`]'s methods.
pub type OnHeard = Box<dyn FnMut(LiveEvent) + Send>;

/// An engine that hears along with one call. Nothing in here waits; dropping it ends it.
///
/// Sound comes in stretches, one for each segment of caller speech, in their order. A stretch is what words are tied
/// to: the engine may keep any clock of its own, but it must know which stretch a word was said in.
pub trait Live: Send + std::fmt::Debug {
    /// More sound of a stretch, 16 kHz mono in [-1, 1]. A number above all others begins a new one, and the one
    /// before it gets no more.
    fn push(&mut self, stretch: u32, pcm: &[f32]);

    /// All words of this stretch's sound so far are wanted now, as one [`LiveEvent::Final`].
    fn flush(&mut self, stretch: u32);

    /// Nobody waits for this stretch's words any more.
    fn forget(&mut self, stretch: u32);
}

/// What a live engine heard.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveEvent {
    /// Words so far; they may still change.
    Partial {
        /// Where they were said.
        stretch: u32,
        /// All words of the stretch so far.
        text: String,
    },
    /// The answer to a flush.
    Final {
        /// Where the words were said.
        stretch: u32,
        /// How many of the stretch's samples they cover: as many as were pushed before the flush.
        upto: usize,
        /// All words of these samples; places in seconds from the stretch's first sample.
        found: Transcription,
    },
    /// Words of which it is not known in which stretch they were said: they may belong to any that waits.
    Unplaced {
        /// The words.
        text: String,
    },
    /// It failed. Nothing more comes.
    Failed {
        /// Why.
        error: SttError,
    },
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
    /// The engine took too long.
    #[error("speech recognition is too slow: {0}")]
    Slow(String),
    /// The engine failed.
    #[error("speech recognition failed: {0}")]
    Failed(String),
}
