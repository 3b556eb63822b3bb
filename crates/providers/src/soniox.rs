//! Soniox: recognition over a socket that hears along.
//!
//! `{base_url}/transcribe-websocket`: a configuration, raw samples out, tokens with their times back. `finalize` asks
//! for the words of what was sent, and its answer ends with the token `<fin>`; `keepalive` keeps the socket open between
//! two stretches; an empty message ends it.
//!
//! Absent on purpose: Soniox's own end of turn (ours decides), translation, speakers, context (a recogniser that expects
//! a word hears it).

use std::time::Duration;

use reqwest::StatusCode;
use sayback_runtime::stt::{Live, OnHeard};
use serde::Deserialize;
use serde_json::json;

use crate::hosted::socket::{Door, Received};
use crate::hosted::{Address, AddressError, ApiKey, Fault, Service, cleared, from_status};
use crate::live::{Dialect, Heard, Line, Sent, Timed, pcm16, transcribe_along};

/// Where Soniox itself answers.
pub const BASE_URL: &str = "wss://stt-rt.soniox.com";

const VENDOR: &str = "soniox";
/// The socket closes after twenty seconds without sound.
const KEEP_ALIVE: Duration = Duration::from_secs(8);
/// Ends the answer to a flush.
const FINALIZED: &str = "<fin>";
/// Their own end of turn, in case a server sends it unasked.
const END: &str = "<end>";

/// A recogniser.
#[derive(Clone, Debug)]
pub struct Soniox {
    door: Door,
    service: Service,
}

impl Soniox {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        let url = Address::socket(&service.base_url)?.join("transcribe-websocket", &[]);
        let door = Door::new(&service, url, service.key_header("authorization", "Bearer ")?);
        Ok(Self { door, service })
    }

    fn line(&self, heard: OnHeard) -> Box<dyn Live> {
        let hello = json!({
            "model": self.service.model,
            "audio_format": "pcm_s16le",
            "sample_rate": 16_000,
            "num_channels": 1,
            "language_hints": [self.service.base_language()],
        });
        let dialect = Tokens { hello: hello.to_string(), key: self.service.key.clone() };
        Box::new(Line::open(VENDOR, self.door.clone(), self.service.limits.first, dialect, heard))
    }
}

transcribe_along!(Soniox);

struct Tokens {
    hello: String,
    key: Option<ApiKey>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    tokens: Vec<Token>,
    error_code: Option<u16>,
    #[serde(default)]
    error_message: String,
}

#[derive(Deserialize)]
struct Token {
    text: String,
    start_ms: Option<f64>,
    end_ms: Option<f64>,
    #[serde(default)]
    confidence: f32,
    #[serde(default)]
    is_final: bool,
}

impl Token {
    fn at(&self) -> Option<(f64, f64)> {
        let from = self.start_ms? / 1_000.0;
        Some((from, self.end_ms.map_or(from, |end| end / 1_000.0)))
    }

    fn said(self) -> Heard {
        match self.at() {
            Some((from, to)) => {
                Heard::Words(vec![Timed { text: self.text, from, to, confidence: self.confidence }])
            }
            None => Heard::Text { text: self.text, at: None },
        }
    }
}

impl Dialect for Tokens {
    fn hello(&mut self) -> Option<String> {
        Some(self.hello.clone())
    }

    fn sound(&mut self, pcm: &[f32]) -> Vec<Sent> {
        vec![Sent::Bytes(pcm16(pcm))]
    }

    fn flush(&mut self) -> Vec<Sent> {
        vec![Sent::Text(json!({"type": "finalize"}).to_string())]
    }

    fn keep_alive(&self) -> Option<(Duration, String)> {
        Some((KEEP_ALIVE, json!({"type": "keepalive"}).to_string()))
    }

    fn goodbye(&self) -> Option<String> {
        Some(String::new())
    }

    fn read(&mut self, message: &Received) -> Result<Vec<Heard>, Fault> {
        let Received::Text(text) = message else { return Ok(Vec::new()) };
        let message: Message = serde_json::from_str(text)
            .map_err(|_| Fault::Garbage(format!("no message: {}", cleared(text, self.key.as_ref()))))?;
        if let Some(code) = message.error_code {
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
            return Err(from_status(status, None, &message.error_message, self.key.as_ref()));
        }
        let mut heard = Vec::new();
        let (mut so_far, mut first) = (String::new(), None);
        for token in message.tokens {
            match (token.text.as_str(), token.is_final) {
                (FINALIZED, _) => heard.push(Heard::Flushed),
                (END, _) => {}
                (_, true) => heard.push(token.said()),
                (_, false) => {
                    so_far.push_str(&token.text);
                    first = first.or(token.at());
                }
            }
        }
        if !so_far.is_empty() {
            heard.push(Heard::Partial { text: so_far, at: first });
        }
        Ok(heard)
    }
}
