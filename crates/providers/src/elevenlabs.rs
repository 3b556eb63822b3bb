//! ElevenLabs' voices: `POST {base_url}/text-to-speech/{voice}/stream`, answered as raw samples.
//!
//! Absent on purpose: the socket that takes text in pieces (an utterance is whole when it is spoken), voice settings,
//! markup. What a caller said goes into questions, so `<break/>` and `[laughs]` are words here and no orders.

use std::ops::ControlFlow;

use sayback_runtime::tts::{Synthesize, TtsError};
use serde_json::json;

use crate::hosted::{AddressError, Service};
use crate::sounded::{Posts, Request, speak, stream, without_markup};

/// Where ElevenLabs itself answers.
pub const BASE_URL: &str = "https://api.elevenlabs.io/v1";
/// Samples per second, as asked for.
const RATE: u32 = 24_000;

/// A voice.
#[derive(Clone, Debug)]
pub struct ElevenLabs(Posts);

impl ElevenLabs {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        Posts::new(service, "xi-api-key", "").map(Self)
    }

    fn request(&self, text: &str, language: &str) -> Request {
        let path = ["text-to-speech", &self.0.service.voice, "stream"];
        let url = self.0.address.below(&path, &[("output_format", "pcm_24000")]);
        let mut body = json!({
            "text": without_markup(text, &['<', '[', ']']),
            "model_id": self.0.service.model,
        });
        // Older models refuse the whole request over this field.
        if self.0.service.model.contains("v2_5") || self.0.service.model.contains("v3") {
            body["language_code"] = json!(language.split('-').next().unwrap_or(language));
        }
        self.0.request(url, &body)
    }
}

impl Synthesize for ElevenLabs {
    fn name(&self) -> String {
        format!("elevenlabs/{}/{}", self.0.service.model, self.0.service.voice)
    }

    fn sample_rate(&self) -> u32 {
        RATE
    }

    fn synthesize(
        &self,
        text: &str,
        language: &str,
        sink: &mut dyn FnMut(&[i16]) -> ControlFlow<()>,
    ) -> Result<(), TtsError> {
        let request = self.request(text, language);
        speak("elevenlabs", RATE, sink, |sound| stream(request, sound))
    }
}
