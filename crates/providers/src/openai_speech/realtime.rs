//! Recognition that hears along.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sayback_media::Resampler;
use sayback_runtime::stt::{Live, OnHeard};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::hosted::socket::{Door, Received};
use crate::hosted::{Address, AddressError, ApiKey, Fault, Service, cleared};
use crate::live::{Dialect, Heard, Line, RATE, Sent, pcm16, transcribe_along};

const VENDOR: &str = "openai";
/// Samples per second that the service takes.
const WANTED: u32 = 24_000;
/// A commit of less sound than this is refused.
const LEAST_COMMIT: usize = WANTED as usize / 10;

/// A recogniser.
#[derive(Clone, Debug)]
pub struct OpenAiRealtime {
    door: Door,
    service: Service,
}

impl OpenAiRealtime {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        let url = Address::socket(&service.base_url)?.join("realtime", &[("intent", "transcription")]);
        let door = Door::new(&service, url, service.key_header("authorization", "Bearer ")?);
        Ok(Self { door, service })
    }

    fn line(&self, heard: OnHeard) -> Box<dyn Live> {
        let hello = json!({
            "type": "session.update",
            "session": {
                "type": "transcription",
                "audio": {"input": {
                    "format": {"type": "audio/pcm", "rate": WANTED},
                    "transcription": {"model": self.service.model, "language": self.service.base_language()},
                    // Ours decides what a segment is.
                    "turn_detection": null,
                }},
            },
        });
        let dialect = Commits {
            hello: hello.to_string(),
            key: self.service.key.clone(),
            rate: Resampler::new(RATE, WANTED).ok(),
            uncommitted: 0,
            committed: 0,
            items: BTreeMap::new(),
            so_far: BTreeMap::new(),
        };
        Box::new(Line::open(VENDOR, self.door.clone(), self.service.limits.first, dialect, heard))
    }
}

transcribe_along!(OpenAiRealtime);

/// Commits and their items. Commits are confirmed in order, items are transcribed in any.
struct Commits {
    hello: String,
    key: Option<ApiKey>,
    rate: Option<Resampler>,
    /// Samples sent since the last commit.
    uncommitted: usize,
    /// Commits that were confirmed.
    committed: u64,
    /// Which commit an item is, as long as it is not transcribed.
    items: BTreeMap<String, u64>,
    /// Words so far of items under way.
    so_far: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    item_id: String,
    #[serde(default)]
    delta: String,
    #[serde(default)]
    transcript: String,
    #[serde(default)]
    error: Value,
}

fn append(bytes: &[u8]) -> Sent {
    Sent::Text(json!({"type": "input_audio_buffer.append", "audio": STANDARD.encode(bytes)}).to_string())
}

impl Commits {
    fn fault(&self, error: &Value) -> Fault {
        let message = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
        let message = cleared(&message, self.key.as_ref());
        match error["code"].as_str().or_else(|| error["type"].as_str()) {
            Some("invalid_api_key" | "authentication_error") => Fault::Unauthorised(message),
            Some("rate_limit_exceeded" | "rate_limit_error") => Fault::RateLimited { retry_after: None },
            Some("session_expired") => Fault::BrokeOff(message),
            _ => Fault::Refused { status: 400, message },
        }
    }

    fn on_delta(&mut self, message: Message) -> Vec<Heard> {
        // Deltas may come before the commit: then they are of the sound that the next one will name.
        let flush = self.items.get(&message.item_id).copied().unwrap_or(self.committed);
        let so_far = self.so_far.entry(message.item_id).or_default();
        so_far.push_str(&message.delta);
        vec![Heard::PartSoFar { flush, text: so_far.clone() }]
    }

    fn on_completed(&mut self, message: Message) -> Result<Vec<Heard>, Fault> {
        self.so_far.remove(&message.item_id);
        let Some(flush) = self.items.remove(&message.item_id) else {
            return Err(Fault::Garbage("a transcript of sound that was never committed".to_owned()));
        };
        Ok(vec![Heard::Part { flush, text: message.transcript }])
    }
}

impl Dialect for Commits {
    fn hello(&mut self) -> Option<String> {
        Some(self.hello.clone())
    }

    fn sound(&mut self, pcm: &[f32]) -> Vec<Sent> {
        let Some(rate) = self.rate.as_mut() else { return Vec::new() };
        let converted = rate.push(pcm);
        if converted.is_empty() {
            return Vec::new();
        }
        self.uncommitted += converted.len();
        vec![append(&pcm16(converted))]
    }

    fn flush(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        if self.uncommitted < LEAST_COMMIT {
            sent.push(append(&vec![0; (LEAST_COMMIT - self.uncommitted) * 2]));
        }
        self.uncommitted = 0;
        sent.push(Sent::Text(json!({"type": "input_audio_buffer.commit"}).to_string()));
        sent
    }

    fn keep_alive(&self) -> Option<(Duration, String)> {
        None
    }

    fn goodbye(&self) -> Option<String> {
        None
    }

    fn read(&mut self, message: &Received) -> Result<Vec<Heard>, Fault> {
        let Received::Text(text) = message else { return Ok(Vec::new()) };
        let message: Message = serde_json::from_str(text)
            .map_err(|_| Fault::Garbage(format!("no message: {}", cleared(text, self.key.as_ref()))))?;
        match message.kind.as_str() {
            "input_audio_buffer.committed" => {
                self.items.insert(message.item_id, self.committed);
                self.committed += 1;
                Ok(Vec::new())
            }
            "conversation.item.input_audio_transcription.delta" => Ok(self.on_delta(message)),
            "conversation.item.input_audio_transcription.completed" => self.on_completed(message),
            "conversation.item.input_audio_transcription.failed" | "error" => Err(self.fault(&message.error)),
            _ => Ok(Vec::new()),
        }
    }
}
