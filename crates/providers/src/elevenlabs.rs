//! ElevenLabs' voices: `POST {base_url}/text-to-speech/{voice}/stream`, answered as raw samples.
//!
//! Absent on purpose: the socket that takes text in pieces (an utterance is whole when it is spoken), voice settings,
//! markup. What a caller said goes into questions, so `<break/>` and `[laughs]` are words here and no orders.

use std::ops::ControlFlow;

use reqwest::Client;
use sayback_runtime::tts::{Synthesize, TtsError};
use serde_json::json;

use crate::hosted::{Address, AddressError, Service, http_client};
use crate::sounded::{Request, speak, stream, without_markup};

/// Where ElevenLabs itself answers.
pub const BASE_URL: &str = "https://api.elevenlabs.io/v1";
/// Samples per second, as asked for.
const RATE: u32 = 24_000;

/// A voice.
#[derive(Clone, Debug)]
pub struct ElevenLabs {
    client: Client,
    address: Address,
    key: Option<reqwest::header::HeaderValue>,
    service: Service,
}

impl ElevenLabs {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        let address = Address::http(&service.base_url)?;
        let key = service.key.as_ref().map(|key| key.header("")).transpose()?;
        Ok(Self { client: http_client(&address, service.limits.connect)?, address, key, service })
    }

    fn request(&self, text: &str, language: &str) -> Request {
        let path = ["text-to-speech", &self.service.voice, "stream"];
        let url = self.address.below(&path, &[("output_format", "pcm_24000")]);
        let mut body = json!({
            "text": without_markup(text, &['<', '[', ']']),
            "model_id": self.service.model,
        });
        // Older models refuse the whole request over this field.
        if self.service.model.contains("v2_5") || self.service.model.contains("v3") {
            body["language_code"] = json!(language.split('-').next().unwrap_or(language));
        }
        let mut post = self.client.post(url.clone()).json(&body);
        if let Some(key) = &self.key {
            post = post.header("xi-api-key", key.clone());
        }
        let (key, limits) = (self.service.key.clone(), self.service.limits);
        Request { post, url: url.to_string(), key, limits }
    }
}

impl Synthesize for ElevenLabs {
    fn name(&self) -> String {
        format!("elevenlabs/{}/{}", self.service.model, self.service.voice)
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
