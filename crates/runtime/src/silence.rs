//! Engines that hear and say nothing, for conversations in text: they have no sound, and their desks have no models.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::Agent;
use crate::stt::{Cancel, SttError, Transcribe, Transcription};
use crate::switchboard::{Desk, NewLlm};
use crate::tts::{Synthesize, TtsError};

/// Hears nothing and says nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silence;

impl Transcribe for Silence {
    fn name(&self) -> String {
        "none".to_owned()
    }

    fn transcribe(&self, _pcm: &[f32], _partial: bool, _cancel: &Cancel) -> Result<Transcription, SttError> {
        Ok(Transcription::default())
    }
}

impl Synthesize for Silence {
    fn name(&self) -> String {
        "none".to_owned()
    }

    fn sample_rate(&self) -> u32 {
        8_000
    }

    fn synthesize(
        &self,
        _text: &str,
        _language: &str,
        _sink: &mut dyn FnMut(&[i16]) -> ControlFlow<()>,
    ) -> Result<(), TtsError> {
        Ok(())
    }
}

impl Desk {
    /// A desk for conversations in text only.
    pub fn silent(agent: Agent, llm: NewLlm) -> Self {
        Self {
            agent: Arc::new(agent),
            llm,
            screen: None,
            vad: Arc::new(|| Box::new(sayback_media::Earshot::default())),
            stt: Arc::new(Silence),
            tts: Arc::new(Silence),
            end_of_turn: None,
            assumed_loop: Duration::ZERO,
            recorded_as: None,
            redact: Vec::new(),
        }
    }
}
