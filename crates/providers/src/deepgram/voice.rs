//! Aura's voices.

use std::ops::ControlFlow;

use reqwest::Client;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use sayback_runtime::tts::{Synthesize, TtsError};
use serde_json::json;

use crate::hosted::{Address, AddressError, Service, http_client};
use crate::sounded::{Request, speak, stream, without_markup};

/// Samples per second, as asked for.
const RATE: u32 = 24_000;

/// A voice. Its language is part of its name.
#[derive(Clone, Debug)]
pub struct DeepgramVoice {
    client: Client,
    address: Address,
    key: Option<HeaderValue>,
    service: Service,
}

impl DeepgramVoice {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        let address = Address::http(&service.base_url)?;
        let key = service.key.as_ref().map(|key| key.header("Token ")).transpose()?;
        Ok(Self { client: http_client(&address, service.limits.connect)?, address, key, service })
    }

    fn request(&self, text: &str) -> Request {
        let query = [
            ("model", self.service.voice.as_str()),
            ("encoding", "linear16"),
            ("container", "none"),
            ("sample_rate", "24000"),
        ];
        let url = self.address.join("speak", &query);
        // Braces say how a word is pronounced.
        let body = json!({"text": without_markup(text, &['{', '}', '\\'])});
        let mut post = self.client.post(url.clone()).json(&body);
        if let Some(key) = &self.key {
            post = post.header(AUTHORIZATION, key.clone());
        }
        let (key, limits) = (self.service.key.clone(), self.service.limits);
        Request { post, url: url.to_string(), key, limits }
    }
}

impl Synthesize for DeepgramVoice {
    fn name(&self) -> String {
        format!("deepgram/{}", self.service.voice)
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
