//! Recognition.

use std::time::Duration;

use sayback_runtime::stt::{Live, OnHeard};
use serde::Deserialize;
use serde_json::json;

use crate::hosted::socket::{Door, Received};
use crate::hosted::{Address, AddressError, ApiKey, Fault, Service, cleared};
use crate::live::{Dialect, Heard, Line, Sent, Timed, pcm16, transcribe_along};

const VENDOR: &str = "deepgram";
/// The socket closes after ten seconds without sound.
const KEEP_ALIVE: Duration = Duration::from_secs(4);
/// The answer to `Finalize` may round its end off by so much.
const FINAL_ROUNDING: f64 = 0.1;

/// A recogniser.
#[derive(Clone, Debug)]
pub struct DeepgramListen {
    door: Door,
    service: Service,
}

impl DeepgramListen {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        let query = [
            ("model", service.model.as_str()),
            ("language", service.language.as_str()),
            ("encoding", "linear16"),
            ("sample_rate", "16000"),
            ("channels", "1"),
            ("interim_results", "true"),
            ("punctuate", "true"),
            ("endpointing", "false"),
        ];
        let url = Address::socket(&service.base_url)?.join("listen", &query);
        let door = Door::new(&service, url, service.key_header("authorization", "Token ")?);
        Ok(Self { door, service })
    }

    fn line(&self, heard: OnHeard) -> Box<dyn Live> {
        let dialect = Listen { key: self.service.key.clone() };
        Box::new(Line::open(VENDOR, self.door.clone(), self.service.limits.first, dialect, heard))
    }
}

transcribe_along!(DeepgramListen);

struct Listen {
    key: Option<ApiKey>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    is_final: bool,
    #[serde(default)]
    from_finalize: bool,
    #[serde(default)]
    start: f64,
    #[serde(default)]
    duration: f64,
    #[serde(default)]
    channel: serde_json::Value,
    description: Option<String>,
}

#[derive(Default, Deserialize)]
struct Alternative {
    #[serde(default)]
    transcript: String,
    #[serde(default)]
    words: Vec<ListenWord>,
}

#[derive(Deserialize)]
struct ListenWord {
    word: String,
    punctuated_word: Option<String>,
    start: f64,
    end: f64,
    #[serde(default)]
    confidence: f32,
}

impl From<ListenWord> for Timed {
    fn from(word: ListenWord) -> Self {
        let text = format!(" {}", word.punctuated_word.unwrap_or(word.word));
        Self { text, from: word.start, to: word.end, confidence: word.confidence }
    }
}

impl Listen {
    fn results(&self, message: &Message) -> Result<Vec<Heard>, Fault> {
        let first = message.channel["alternatives"].get(0).cloned().unwrap_or_default();
        let best: Alternative = if first.is_null() {
            Alternative::default()
        } else {
            let shown = || cleared(&first.to_string(), self.key.as_ref());
            serde_json::from_value(first.clone())
                .map_err(|_| Fault::Garbage(format!("no words: {}", shown())))?
        };
        let end = message.start + message.duration;
        let at = Some((message.start, end));
        if !message.is_final {
            return Ok(vec![Heard::Partial { text: best.transcript, at }]);
        }
        let words = match best.words.is_empty() {
            true => Heard::Text { text: best.transcript, at },
            false => Heard::Words(best.words.into_iter().map(Timed::from).collect()),
        };
        let upto = if message.from_finalize { end + FINAL_ROUNDING } else { end };
        Ok(vec![words, Heard::Upto(upto)])
    }
}

impl Dialect for Listen {
    fn sound(&mut self, pcm: &[f32]) -> Vec<Sent> {
        vec![Sent::Bytes(pcm16(pcm))]
    }

    fn flush(&mut self) -> Vec<Sent> {
        vec![Sent::Text(json!({"type": "Finalize"}).to_string())]
    }

    /// An answer to `Finalize` is not promised where little sound is waiting.
    fn answers_every_flush(&self) -> bool {
        false
    }

    fn keep_alive(&self) -> Option<(Duration, String)> {
        Some((KEEP_ALIVE, json!({"type": "KeepAlive"}).to_string()))
    }

    fn goodbye(&self) -> Option<String> {
        Some(json!({"type": "CloseStream"}).to_string())
    }

    fn read(&mut self, message: &Received) -> Result<Vec<Heard>, Fault> {
        let Received::Text(text) = message else { return Ok(Vec::new()) };
        let message: Message = serde_json::from_str(text)
            .map_err(|_| Fault::Garbage(format!("no message: {}", cleared(text, self.key.as_ref()))))?;
        match message.kind.as_str() {
            "Results" => self.results(&message),
            "Error" => {
                let words = message.description.unwrap_or_else(|| text.clone());
                Err(Fault::BrokeOff(cleared(&words, self.key.as_ref())))
            }
            _ => Ok(Vec::new()),
        }
    }
}
