//! The voice as the runtime needs it.

use std::ops::ControlFlow;

/// A local engine that speaks a piece of plain text. Blocking: the runtime calls it on threads of its own.
pub trait Synthesize: Send + Sync + std::fmt::Debug {
    /// Engine and voice, for logs and evidence: `piper/en_US-joe-medium`.
    fn name(&self) -> String;

    /// Samples per second of what it gives.
    fn sample_rate(&self) -> u32;

    /// Speaks `text`, which is plain text and never markup, handing over mono 16-bit samples as they are made.
    /// Stops early when `sink` says so. Text goes in whole: the engine may split it, but says all of it.
    fn synthesize(
        &self,
        text: &str,
        language: &str,
        sink: &mut dyn FnMut(&[i16]) -> ControlFlow<()>,
    ) -> Result<(), TtsError>;
}

/// What can go wrong with the voice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TtsError {
    /// The model file is missing.
    #[error("voice {model} is not here; get it with: sayback models fetch {model}")]
    MissingModel {
        /// Its name in `models/manifest.toml`.
        model: String,
    },
    /// The model file cannot be read.
    #[error("voice {path} cannot be loaded: {reason}")]
    BadModel {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A program that it needs is missing.
    #[error("the voice needs the program {program}; install it with: {mend}")]
    MissingProgram {
        /// The program.
        program: String,
        /// The mending command.
        mend: String,
    },
    /// The engine failed.
    #[error("the voice failed: {0}")]
    Failed(String),
}
