//! Servers that recognise speech. Their speech is simple: each word is a level that lasts 100 ms, so that what comes back
//! depends on the sound that was sent, and a word that is lost or heard twice shows.

use std::sync::{Arc, Mutex};

use base64::Engine;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};

/// The words that these servers know, by level.
pub(crate) const WORDS: [&str; 6] = ["yes", "no", "für", "Zoë", "明日", "cancel"];
const STEP: f32 = 0.1;

/// Sound that says these words, 100 ms each, 100 ms of silence around each.
pub(crate) fn spoken(words: &[&str]) -> Vec<f32> {
    let mut pcm = vec![0.0; 1_600];
    for word in words {
        let level = (WORDS.iter().position(|known| known == word).unwrap() + 1) as f32 * STEP;
        pcm.extend(std::iter::repeat_n(level, 1_600));
        pcm.extend(std::iter::repeat_n(0.0, 1_600));
    }
    pcm
}

/// A word as the server heard it, in seconds of its own clock.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    word: &'static str,
    from: f64,
    to: f64,
}

/// What the server heard so far.
pub(crate) struct Hearing {
    rate: u32,
    samples: Vec<i16>,
    /// Where the words begin that were not yet sent.
    told: usize,
}

impl Hearing {
    pub(crate) fn new(rate: u32) -> Self {
        Self { rate, samples: Vec::new(), told: 0 }
    }

    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        self.samples.extend(bytes.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]])));
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate)
    }

    /// The words since the last time that they were asked for.
    pub(crate) fn tell(&mut self) -> Vec<Said> {
        let from = std::mem::replace(&mut self.told, self.samples.len());
        let level = |s: i16| (f32::from(s) / 32_767.0 / STEP).round() as usize;
        let mut said = Vec::new();
        let mut at = from;
        while at < self.samples.len() {
            let now = level(self.samples[at]);
            let run = self.samples[at..].iter().take_while(|s| level(**s) == now).count();
            if (1..=WORDS.len()).contains(&now) && run * 20 > self.rate as usize {
                let seconds = |at: usize| at as f64 / f64::from(self.rate);
                said.push(Said { word: WORDS[now - 1], from: seconds(at), to: seconds(at + run) });
            }
            at += run;
        }
        said
    }
}

/// Which vendor's protocol a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tongue {
    Deepgram,
    Soniox,
    Realtime,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// Every message comes in fragments of one byte.
    Fragments,
    /// The answer to a flush comes only with the next flush.
    Late,
    /// Hears everything, says nothing.
    Silent,
    /// Closes in good order as soon as sound comes.
    Closes,
    /// Is cut off at the first flush.
    Cut,
    /// Answers the first flush, and is cut off at the second.
    CutLater,
    /// Answers the first flush, then closes in good order.
    EndsAnswered,
    /// Half a JSON message.
    Half,
    /// A text message that is no UTF-8.
    NoUtf8,
    /// The vendor's own error message, with the key in it.
    Error,
    /// The upgrade is refused with this status, with the key in the body.
    Refused(u16),
    /// Sends words of sound that it was never sent.
    Rubbish,
}

/// What a server saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) upgrades: Vec<(String, Vec<(String, String)>)>,
    pub(crate) texts: Vec<String>,
    pub(crate) heard: Vec<String>,
    /// Connections that the server has ended after an answer.
    pub(crate) ended: u32,
}

/// A running server.
pub(crate) struct Ears {
    pub(crate) base_url: String,
    seen: Arc<Mutex<Seen>>,
}

impl Ears {
    pub(crate) async fn start(tongue: Tongue, trouble: Trouble) -> Self {
        Self::start_troubled(tongue, vec![trouble]).await
    }

    /// Connections have the troubles in order, the last one for ever.
    pub(crate) async fn start_troubled(tongue: Tongue, troubles: Vec<Trouble>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            let mut troubles = troubles.into_iter().peekable();
            while let Ok((connection, _)) = listener.accept().await {
                let trouble = troubles.next_if(|_| true).unwrap();
                if troubles.peek().is_none() {
                    troubles = vec![trouble].into_iter().peekable();
                }
                connection.set_nodelay(true).unwrap();
                tokio::spawn(serve(connection, tongue, trouble, Arc::clone(&shared)));
            }
        });
        Self { base_url, seen }
    }

    pub(crate) fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }
}

/// What a client wants.
enum Want {
    Sound(Vec<u8>),
    Flush,
    Nothing,
    End,
}

impl Tongue {
    fn rate(self) -> u32 {
        if self == Self::Realtime { 24_000 } else { 16_000 }
    }

    fn want(self, message: &Message) -> Want {
        let text = match message {
            Message::Binary(bytes) => return Want::Sound(bytes.to_vec()),
            Message::Text(text) => text.to_string(),
            _ => return Want::End,
        };
        if text.is_empty() {
            return Want::End;
        }
        let value: Value = serde_json::from_str(&text).unwrap();
        match value["type"].as_str() {
            Some("Finalize" | "finalize" | "input_audio_buffer.commit") => Want::Flush,
            Some("input_audio_buffer.append") => {
                let audio = value["audio"].as_str().unwrap();
                Want::Sound(base64::engine::general_purpose::STANDARD.decode(audio).unwrap())
            }
            Some("CloseStream") => Want::End,
            _ => Want::Nothing,
        }
    }

    fn answer(self, said: &[Said], hearing: &Hearing, flush: usize) -> Vec<String> {
        match self {
            Self::Deepgram => vec![deepgram(said, hearing.seconds(), true)],
            Self::Soniox => {
                let token = |s: &Said| {
                    json!({"text": format!(" {}", s.word), "start_ms": s.from * 1e3, "end_ms": s.to * 1e3,
                        "confidence": 0.9, "is_final": true})
                };
                let tokens: Vec<Value> = said.iter().map(token).collect();
                let fin = json!({"tokens": [{"text": "<fin>", "is_final": true}]});
                vec![json!({ "tokens": tokens }).to_string(), fin.to_string()]
            }
            Self::Realtime => {
                let words: Vec<&str> = said.iter().map(|s| s.word).collect();
                let item = format!("item_{flush}");
                vec![
                    json!({"type": "input_audio_buffer.committed", "item_id": item}).to_string(),
                    json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": item,
                        "transcript": words.join(" ")})
                    .to_string(),
                ]
            }
        }
    }

    fn partial(self, text: &str, hearing: &Hearing) -> String {
        match self {
            Self::Deepgram => json!({"type": "Results", "is_final": false, "start": 0.0,
                "duration": hearing.seconds(), "channel": {"alternatives": [{"transcript": text}]}}),
            Self::Soniox => {
                json!({"tokens": [{"text": text, "start_ms": 0, "end_ms": 10, "is_final": false}]})
            }
            Self::Realtime => json!({"type": "conversation.item.input_audio_transcription.delta",
                "item_id": "item_0", "delta": text}),
        }
        .to_string()
    }

    fn error(self) -> String {
        let words = format!("Rate limit reached for {}", super::KEY);
        match self {
            Self::Deepgram => json!({"type": "Error", "description": words}),
            Self::Soniox => json!({"error_code": 429, "error_message": words}),
            Self::Realtime => {
                json!({"type": "error", "error": {"code": "rate_limit_exceeded", "message": words}})
            }
        }
        .to_string()
    }
}

fn deepgram(said: &[Said], upto: f64, from_finalize: bool) -> String {
    let word = |s: &Said| json!({"word": s.word, "punctuated_word": s.word, "start": s.from, "end": s.to, "confidence": 0.9});
    let words: Vec<Value> = said.iter().map(word).collect();
    let text: Vec<&str> = said.iter().map(|s| s.word).collect();
    json!({"type": "Results", "is_final": true, "from_finalize": from_finalize, "start": 0.0, "duration": upto,
        "channel": {"alternatives": [{"transcript": text.join(" "), "words": words}]}})
    .to_string()
}

async fn serve(connection: TcpStream, tongue: Tongue, trouble: Trouble, seen: Arc<Mutex<Seen>>) {
    let note = |request: &Request, response: Response| {
        let headers = request.headers().iter();
        let headers = headers.map(|(n, v)| (n.to_string(), v.to_str().unwrap_or_default().to_owned()));
        seen.lock().unwrap().upgrades.push((request.uri().to_string(), headers.collect()));
        match trouble {
            Trouble::Refused(status) => {
                let body = format!("{{\"err_msg\": \"bad key {}\"}}", super::KEY);
                let mut refusal = ErrorResponse::new(Some(body));
                *refusal.status_mut() = status.try_into().unwrap();
                Err(refusal)
            }
            _ => Ok(response),
        }
    };
    let accepted = tokio_tungstenite::accept_hdr_async(connection, note).await;
    let Ok(mut socket) = accepted else { return };
    let mut hearing = Hearing::new(tongue.rate());
    let mut kept: Vec<String> = Vec::new();
    let mut flushes = 0;
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Text(text) = &message {
            seen.lock().unwrap().texts.push(text.to_string());
        }
        match tongue.want(&message) {
            Want::Sound(bytes) => hearing.hear(&bytes),
            Want::Flush => {
                let said = hearing.tell();
                seen.lock().unwrap().heard.extend(said.iter().map(|s| s.word.to_owned()));
                let answer = tongue.answer(&said, &hearing, flushes);
                flushes += 1;
                if !reply(&mut socket, (tongue, trouble), answer, &mut kept).await {
                    return;
                }
                if trouble == Trouble::EndsAnswered {
                    let _ = socket.close(None).await;
                    seen.lock().unwrap().ended += 1;
                }
                continue;
            }
            Want::Nothing => continue,
            Want::End => return,
        }
        match trouble {
            Trouble::Closes => {
                let frame = CloseFrame { code: 1000.into(), reason: "session over".into() };
                let _ = socket.close(Some(frame)).await;
                return;
            }
            Trouble::None => {
                let partial = tongue.partial("ye", &hearing);
                if socket.send(Message::text(partial)).await.is_err() {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// Answers a flush, or does what the trouble demands; `false`: it is over.
async fn reply(
    socket: &mut WebSocketStream<TcpStream>,
    (tongue, trouble): (Tongue, Trouble),
    answer: Vec<String>,
    kept: &mut Vec<String>,
) -> bool {
    match trouble {
        Trouble::Silent | Trouble::Closes => return true,
        Trouble::Cut => return false,
        Trouble::CutLater if !kept.is_empty() => return false,
        Trouble::CutLater => *kept = vec!["answered".to_owned()],
        Trouble::Late => {
            let now = std::mem::replace(kept, answer);
            return send_all(socket, now).await;
        }
        Trouble::Half => return send_all(socket, vec!["{\"type\": \"Results\", \"tok".to_owned()]).await,
        Trouble::Error => return send_all(socket, vec![tongue.error()]).await,
        Trouble::NoUtf8 => {
            let frame = Frame::message(b"\xff\xfe".to_vec(), OpCode::Data(Data::Text), true);
            return socket.send(Message::Frame(frame)).await.is_ok();
        }
        Trouble::Fragments => {
            for text in answer {
                if !send_in_fragments(socket, text.as_bytes()).await {
                    return false;
                }
            }
            return true;
        }
        Trouble::Rubbish => {
            let nowhere = Said { word: "yes", from: 900.0, to: 900.1 };
            let strange = match tongue {
                Tongue::Deepgram => deepgram(&[nowhere], 0.0, false),
                Tongue::Soniox => {
                    json!({"tokens": [{"text": "yes", "start_ms": 9e5, "end_ms": 9.1e5, "is_final": true}]})
                        .to_string()
                }
                Tongue::Realtime => json!({
                    "type": "conversation.item.input_audio_transcription.completed",
                    "item_id": "of nobody", "transcript": "yes"})
                .to_string(),
            };
            return send_all(socket, vec![strange]).await;
        }
        Trouble::None | Trouble::EndsAnswered | Trouble::Refused(_) => {}
    }
    send_all(socket, answer).await
}

async fn send_all(socket: &mut WebSocketStream<TcpStream>, texts: Vec<String>) -> bool {
    for text in texts {
        if socket.send(Message::text(text)).await.is_err() {
            return false;
        }
    }
    true
}

async fn send_in_fragments(socket: &mut WebSocketStream<TcpStream>, bytes: &[u8]) -> bool {
    for (at, byte) in bytes.iter().enumerate() {
        let code = if at == 0 { OpCode::Data(Data::Text) } else { OpCode::Data(Data::Continue) };
        let frame = Frame::message(vec![*byte], code, at + 1 == bytes.len());
        if socket.send(Message::Frame(frame)).await.is_err() {
            return false;
        }
    }
    true
}
