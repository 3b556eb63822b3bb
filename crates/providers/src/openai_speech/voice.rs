//! Voices.

use std::ops::ControlFlow;

use reqwest::Client;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use sayback_runtime::tts::{Synthesize, TtsError};
use serde_json::json;

use crate::hosted::{Address, AddressError, Service, http_client};
use crate::sounded::{Request, speak, stream};

/// Samples per second of the format `pcm`.
const RATE: u32 = 24_000;

/// A voice. It reads no markup, so text goes out as it is.
#[derive(Clone, Debug)]
pub struct OpenAiVoice {
    client: Client,
    address: Address,
    key: Option<HeaderValue>,
    service: Service,
}

impl OpenAiVoice {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        let address = Address::http(&service.base_url)?;
        let key = service.key.as_ref().map(|key| key.header("Bearer ")).transpose()?;
        Ok(Self { client: http_client(&address, service.limits.connect)?, address, key, service })
    }

    fn request(&self, text: &str) -> Request {
        let url = self.address.join("audio/speech", &[]);
        let body = json!({
            "model": self.service.model,
            "voice": self.service.voice,
            "input": text,
            "response_format": "pcm",
        });
        let mut post = self.client.post(url.clone()).json(&body);
        if let Some(key) = &self.key {
            post = post.header(AUTHORIZATION, key.clone());
        }
        let (key, limits) = (self.service.key.clone(), self.service.limits);
        Request { post, url: url.to_string(), key, limits }
    }
}

impl Synthesize for OpenAiVoice {
    fn name(&self) -> String {
        format!("openai/{}/{}", self.service.model, self.service.voice)
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
