//! Voices.

use std::ops::ControlFlow;

use sayback_runtime::tts::{Synthesize, TtsError};
use serde_json::json;

use crate::hosted::{AddressError, Service};
use crate::sounded::{Posts, Request, speak, stream};

/// Samples per second of the format `pcm`.
const RATE: u32 = 24_000;

/// A voice. It reads no markup, so text goes out as it is.
#[derive(Clone, Debug)]
pub struct OpenAiVoice(Posts);

impl OpenAiVoice {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        Posts::new(service, "authorization", "Bearer ").map(Self)
    }

    fn request(&self, text: &str) -> Request {
        let url = self.0.address.join("audio/speech", &[]);
        let body = json!({
            "model": self.0.service.model,
            "voice": self.0.service.voice,
            "input": text,
            "response_format": "pcm",
        });
        self.0.request(url, &body)
    }
}

impl Synthesize for OpenAiVoice {
    fn name(&self) -> String {
        format!("openai/{}/{}", self.0.service.model, self.0.service.voice)
    }

    fn sample_rate(&self) -> u32 {
        RATE
    }

    fn synthesize(
        &self,
        text: &str,
        _language: &str,
        sink: &mut dyn FnMut(&[i16]) -> ControlFlow<()>,
    ) -> Result<(), TtsError> {
        let request = self.request(text);
        speak("openai", RATE, sink, |sound| stream(request, sound))
    }
}
