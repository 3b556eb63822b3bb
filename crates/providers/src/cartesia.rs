//! Cartesia's voices over a socket: `{base_url}/tts/websocket`, one context for each utterance.
//!
//! A socket is kept for the next utterance, since opening one costs as long as the first sound. One that was closed
//! while nobody spoke is opened anew; that is no second try, nothing had been asked of it.
//!
//! Absent on purpose: text in pieces, time stamps, markup (`<break/>`, `<spell>`, `[laughter]` are words here).

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::StatusCode;
use reqwest::header::HeaderValue;
use sayback_runtime::tts::{Synthesize, TtsError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::hosted::socket::{Door, Received, Socket};
use crate::hosted::{Address, AddressError, Deadline, Fault, Service, cleared, from_status};
use crate::sounded::{Sound, Stop, speak, without_markup};

/// Where Cartesia itself answers.
pub const BASE_URL: &str = "https://api.cartesia.ai";

/// The version of the protocol that is spoken here.
const VERSION: &str = "2026-03-01";
/// Samples per second, as asked for.
const RATE: u32 = 24_000;
/// Sockets kept for the next utterance.
const KEPT: usize = 8;

/// A voice.
#[derive(Clone, Debug)]
pub struct Cartesia {
    door: Door,
    service: Service,
    idle: Arc<Idle>,
    /// Numbers the contexts of this process.
    contexts: Arc<AtomicU64>,
}

/// Open sockets on which nobody speaks.
#[derive(Default)]
struct Idle(Mutex<Vec<Socket>>);

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Idle")
    }
}

impl Idle {
    fn take(&self) -> Option<Socket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn keep(&self, socket: Socket) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(socket);
        }
    }
}

impl Cartesia {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        let url = Address::socket(&service.base_url)?.join("tts/websocket", &[]);
        let version = ("cartesia-version", HeaderValue::from_static(VERSION));
        let door =
            Door::new(&service, url, [version].into_iter().chain(service.key_header("x-api-key", "")?));
        Ok(Self { door, service, idle: Arc::default(), contexts: Arc::default() })
    }

    fn request(&self, text: &str, language: &str) -> (String, String) {
        let context = format!("utterance-{}", self.contexts.fetch_add(1, Ordering::Relaxed));
        let request = json!({
            "model_id": self.service.model,
            "transcript": without_markup(text, &['<', '[', ']']),
            "voice": {"mode": "id", "id": self.service.voice},
            "language": language.split('-').next().unwrap_or(language),
            "context_id": context,
            "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": RATE},
            "continue": false,
        });
        (context, request.to_string())
    }
}

impl Synthesize for Cartesia {
    fn name(&self) -> String {
        format!("cartesia/{}/{}", self.service.model, self.service.voice)
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
        let (context, request) = self.request(text, language);
        let utterance =
            Utterance { door: self.door.clone(), service: self.service.clone(), context, request };
        let idle = Arc::clone(&self.idle);
        speak("cartesia", RATE, sink, |mut sound| async move {
            let done = utterance.fetch(&idle, &mut sound).await;
            (sound, done)
        })
    }
}

/// One utterance asked for.
struct Utterance {
    door: Door,
    service: Service,
    context: String,
    request: String,
}

#[derive(Deserialize)]
struct Message {
    #[serde(rename = "type")]
    kind: String,
    context_id: Option<String>,
    data: Option<String>,
    status_code: Option<u16>,
    message: Option<String>,
    error: Option<Value>,
    title: Option<String>,
}

impl Utterance {
    async fn fetch(&self, idle: &Idle, sound: &mut Sound) -> Result<(), Stop> {
        while let Some(mut socket) = idle.take() {
            match self.ask(&mut socket, sound).await {
                // It had been closed while nobody spoke.
                Err(Stop::Fault(Fault::BrokeOff(_))) if !sound.has_begun() => {}
                done => return kept(done, idle, socket),
            }
        }
        let mut socket = self.door.open().await?;
        let done = self.ask(&mut socket, sound).await;
        kept(done, idle, socket)
    }

    async fn ask(&self, socket: &mut Socket, sound: &mut Sound) -> Result<(), Stop> {
        socket.send_text(self.request.clone()).await?;
        let mut deadline = Deadline::after(self.service.limits.first);
        loop {
            let received = tokio::select! {
                received = socket.receive() => received?,
                () = deadline.over.as_mut() => return Err(deadline.missed().into()),
            };
            let Some(received) = received else {
                return Err(Fault::BrokeOff("the connection was closed".to_owned()).into());
            };
            let Received::Text(text) = received else { continue };
            let message: Message = serde_json::from_str(&text)
                .map_err(|_| Fault::Garbage(format!("no message: {}", self.cleared(&text))))?;
            // What belongs to an utterance that was given up.
            if message.context_id.as_ref().is_some_and(|context| *context != self.context) {
                continue;
            }
            match message.kind.as_str() {
                "chunk" => {
                    let bytes = STANDARD
                        .decode(message.data.unwrap_or_default())
                        .map_err(|_| Fault::Garbage("sound that is no base64".to_owned()))?;
                    sound.push(&bytes).await?;
                    deadline = Deadline::after(self.service.limits.between);
                }
                "done" => return Ok(()),
                "error" => return Err(self.refusal(message, &text).into()),
                _ => {}
            }
        }
    }

    fn refusal(&self, message: Message, text: &str) -> Fault {
        let error = message.error.and_then(|error| error.as_str().map(str::to_owned));
        let words = message.message.or(error).or(message.title).unwrap_or_else(|| text.to_owned());
        let status = message.status_code.and_then(|code| StatusCode::from_u16(code).ok());
        from_status(status.unwrap_or(StatusCode::BAD_GATEWAY), None, &words, self.door.key.as_ref())
    }

    fn cleared(&self, text: &str) -> String {
        cleared(text, self.door.key.as_ref())
    }
}

/// Keeps a socket on which an utterance came to its end; any other may still have sound of it under way.
fn kept(done: Result<(), Stop>, idle: &Idle, socket: Socket) -> Result<(), Stop> {
    if done.is_ok() {
        idle.keep(socket);
    }
    done
}
