//! Aura's voices.

use std::ops::ControlFlow;

use sayback_runtime::tts::{Synthesize, TtsError};
use serde_json::json;

use crate::hosted::{AddressError, Service};
use crate::sounded::{Posts, Request, speak, stream, without_markup};

/// Samples per second, as asked for.
const RATE: u32 = 24_000;

/// A voice. Its language is part of its name.
#[derive(Clone, Debug)]
pub struct DeepgramVoice(Posts);

impl DeepgramVoice {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        Posts::new(service, "authorization", "Token ").map(Self)
    }

    fn request(&self, text: &str) -> Request {
        let query = [
            ("model", self.0.service.voice.as_str()),
            ("encoding", "linear16"),
            ("container", "none"),
            ("sample_rate", "24000"),
        ];
        let url = self.0.address.join("speak", &query);
        // Braces say how a word is pronounced.
        let body = json!({"text": without_markup(text, &['{', '}', '\\'])});
        self.0.request(url, &body)
    }
}

impl Synthesize for DeepgramVoice {
    fn name(&self) -> String {
        format!("deepgram/{}", self.0.service.voice)
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
        speak("deepgram", RATE, sink, |sound| stream(request, sound))
    }
}
