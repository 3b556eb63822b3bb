//! A telephone service with a caller behind it: a mouth, an ear, and a clock of its own.
//!
//! It plays what it is sent in real time from a buffer, as services do, and knows to the frame when the caller has heard
//! the end of the question. Whether a yes was early is judged by this clock and not by the server's.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Frames of 20 ms.
pub(crate) type Frames = i64;

/// What goes wrong with the service's marks and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Marks come back this many frames late.
    LateMarks(Frames),
    /// Each mark comes back twice.
    MarksTwice,
    /// No mark comes back.
    NoMarks,
    /// Marks come back the moment they arrive, as if all had been played.
    MarksAtOnce,
    /// Marks that nobody sent come back all the time, with names that are easy to guess.
    MadeUpMarks,
    /// All that the service sends is held up for so many frames, from the question on, and comes in one burst.
    Burst(Frames),
    /// Each piece of sound changes places with its neighbour.
    Disorder,
    /// Every eighth piece of sound is lost.
    Loss,
}

/// When the caller speaks the second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// So many frames after the question began in the ear.
    AfterBegin(Frames),
    /// So many frames after its last audible sound was in the ear.
    AfterEnd(Frames),
    /// A key instead, so many frames after the end.
    KeyAfterEnd(Frames),
    /// A key instead, so many frames after the beginning.
    KeyAfterBegin(Frames),
}

/// What the caller lived through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lived {
    /// Frame in which the first sound of the question was in the ear.
    pub(crate) began: Option<Frames>,
    /// Frame after its last audible sound.
    pub(crate) ended: Option<Frames>,
    /// Frame in which the answer began.
    pub(crate) answered: Option<Frames>,
    /// Clears that came.
    pub(crate) clears: usize,
    /// Frames of sound that came before they could be played, at most: what the server sent ahead.
    pub(crate) ahead: usize,
}

enum Buffered {
    Frame(Vec<f32>),
    Mark(String),
}

pub(crate) struct Service {
    vendor: &'static str,
    fault: Fault,
    answer: Answer,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    buffer: VecDeque<Buffered>,
    /// Messages on their way to the server, and the frame in which they leave.
    leaving: VecDeque<(Frames, Message)>,
    lived: Lived,
    /// Samples of an answer's tone still to be said.
    speaking: Frames,
    held: Option<Message>,
}

/// The caller's first words begin in this frame and last so many.
const FIRST: (Frames, Frames) = (15, 25);
const ANSWER_LENGTH: Frames = 20;

impl Service {
    pub(crate) async fn call(
        address: SocketAddr,
        vendor: &'static str,
        fault: Fault,
        answer: Answer,
    ) -> Self {
        let url = format!("ws://{address}/v1/media/{vendor}?token=secret");
        let (socket, _) = connect_async(url).await.unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_nodelay(true).unwrap();
        }
        let lived = Lived::default();
        let mut service = Self {
            vendor,
            fault,
            answer,
            socket,
            buffer: VecDeque::new(),
            leaving: VecDeque::new(),
            lived,
            speaking: 0,
            held: None,
        };
        for message in service.first_words() {
            service.socket.send(message).await.unwrap();
        }
        service
    }

    /// Lives for so many frames, or until the server closes.
    pub(crate) async fn live(mut self, frames: Frames) -> Lived {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let mut now: Frames = 0;
        while now < frames {
            tokio::select! {
                biased;
                _ = ticks.tick() => {
                    self.frame(now).await;
                    now += 1;
                }
                message = self.socket.next() => match message {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                    Some(Ok(message)) => self.take(&message, now),
                },
            }
        }
        let _ = self.socket.close(None).await;
        self.lived
    }

    /// One frame of life: the ear hears what is next, the mouth says what is due, and messages leave.
    async fn frame(&mut self, now: Frames) {
        self.hear(now);
        self.answer(now);
        let first = (FIRST.0..FIRST.0 + FIRST.1).contains(&now);
        let speaks = first || self.speaking > 0;
        self.speaking = (self.speaking - 1).max(0);
        if self.fault == Fault::MadeUpMarks {
            for generation in 0..3 {
                self.leave(now, self.mark(&format!("{generation}.u_0{}", now % 8)));
            }
        }
        let lost = self.fault == Fault::Loss && now % 8 == 3;
        if !lost {
            let message = self.sound(now, speaks);
            if self.fault == Fault::Disorder {
                match self.held.take() {
                    None => self.held = Some(message),
                    Some(before) => {
                        self.leave(now, message);
                        self.leave(now, before);
                    }
                }
            } else {
                self.leave(now, message);
            }
        }
        let bursts = match (self.fault, self.lived.began) {
            (Fault::Burst(length), Some(began)) => now >= began && now < began + length,
            _ => false,
        };
        while !bursts && self.leaving.front().is_some_and(|(at, _)| *at <= now) {
            let (_, message) = self.leaving.pop_front().unwrap();
            // The server may have closed; the loop sees that.
            let _ = self.socket.send(message).await;
        }
    }

    fn leave(&mut self, at: Frames, message: Message) {
        self.leaving.push_back((at, message));
    }

    fn hear(&mut self, now: Frames) {
        while let Some(Buffered::Mark(_)) = self.buffer.front() {
            if let Some(Buffered::Mark(name)) = self.buffer.pop_front() {
                self.return_mark(&name, now);
            }
        }
        if let Some(Buffered::Frame(frame)) = self.buffer.pop_front() {
            let loud = frame.iter().any(|sample| sample.abs() > 0.01);
            if loud {
                self.lived.began.get_or_insert(now);
                if self.lived.answered.is_none() {
                    self.lived.ended = Some(now + 1);
                }
            }
        }
    }

    fn return_mark(&mut self, name: &str, now: Frames) {
        let mark = self.mark(name);
        match self.fault {
            Fault::NoMarks | Fault::MarksAtOnce => {}
            Fault::LateMarks(late) => {
                // Behind everything that leaves until then.
                self.leaving.push_back((now + late, mark));
                self.leaving.make_contiguous().sort_by_key(|(at, _)| *at);
            }
            Fault::MarksTwice => {
                self.leave(now, mark.clone());
                self.leave(now, mark);
            }
            Fault::None | Fault::MadeUpMarks | Fault::Burst(_) | Fault::Disorder | Fault::Loss => {
                self.leave(now, mark);
            }
        }
    }

    fn answer(&mut self, now: Frames) {
        if self.lived.answered.is_some() {
            return;
        }
        let ended = self.lived.ended.filter(|ended| now > *ended && self.buffer.is_empty());
        let (due, key) = match self.answer {
            Answer::AfterBegin(after) => (self.lived.began.map(|began| began + after), false),
            Answer::KeyAfterBegin(after) => (self.lived.began.map(|began| began + after), true),
            Answer::AfterEnd(after) => (ended.map(|ended| ended + after), false),
            Answer::KeyAfterEnd(after) => (ended.map(|ended| ended + after), true),
        };
        if due.is_some_and(|due| now >= due) {
            self.lived.answered = Some(now);
            if key {
                let digit = self.digit("1");
                self.leave(now, digit);
            } else {
                self.speaking = ANSWER_LENGTH;
            }
        }
    }

    fn take(&mut self, message: &Message, now: Frames) {
        match self.read(message) {
            Some(Came::Sound(samples)) => {
                self.buffer.push_back(Buffered::Frame(samples));
                let waiting = self.buffer.iter().filter(|b| matches!(b, Buffered::Frame(_))).count();
                self.lived.ahead = self.lived.ahead.max(waiting);
            }
            Some(Came::Mark(name)) if self.fault == Fault::MarksAtOnce => {
                let mark = self.mark(&name);
                self.leave(now, mark);
            }
            Some(Came::Mark(name)) => self.buffer.push_back(Buffered::Mark(name)),
            Some(Came::Clear) => {
                self.lived.clears += 1;
                // What is thrown away comes back as if it had been played: that is what the services do.
                for buffered in std::mem::take(&mut self.buffer) {
                    if let Buffered::Mark(name) = buffered {
                        self.return_mark(&name, now);
                    }
                }
            }
            None => {}
        }
    }
}

enum Came {
    Sound(Vec<f32>),
    Mark(String),
    Clear,
}

fn text(value: &Value) -> Message {
    Message::Text(value.to_string().into())
}

fn mulaw(samples: &[f32]) -> Vec<u8> {
    samples.iter().map(|s| sayback_media::telephone::mulaw_encode((s * 32_767.0) as i16)).collect()
}

fn unmulaw(bytes: &[u8]) -> Vec<f32> {
    bytes.iter().map(|b| f32::from(sayback_media::telephone::mulaw_decode(*b)) / 32_768.0).collect()
}

fn linear(samples: &[f32]) -> Vec<u8> {
    samples.iter().flat_map(|s| ((s * 32_767.0) as i16).to_le_bytes()).collect()
}

fn unlinear(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(2).map(|b| f32::from(i16::from_le_bytes([b[0], b[1]])) / 32_768.0).collect()
}

/// Each service's own words, from its side.
impl Service {
    fn rate(&self) -> usize {
        if matches!(self.vendor, "vonage" | "plain") { 16_000 } else { 8_000 }
    }

    fn first_words(&self) -> Vec<Message> {
        match self.vendor {
            "twilio" => vec![
                text(&json!({ "event": "connected", "protocol": "Call", "version": "1.0.0" })),
                text(&json!({ "event": "start", "sequenceNumber": "1", "streamSid": "MZ1", "start": {
                    "accountSid": "AC1", "streamSid": "MZ1", "callSid": "CA1", "tracks": ["inbound"],
                    "mediaFormat": { "encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1 },
                    "customParameters": { "to": "100", "from": "anna" } } })),
            ],
            "telnyx" => vec![
                text(&json!({ "event": "connected", "version": "1.0.0" })),
                text(&json!({ "event": "start", "sequence_number": "1", "stream_id": "32DE", "start": {
                    "call_control_id": "v2:T", "from": "+13122010094", "to": "100", "custom_parameters": {},
                    "media_format": { "encoding": "PCMU", "sample_rate": 8000, "channels": 1 } } })),
            ],
            "plivo" => vec![text(&json!({ "event": "start", "sequenceNumber": 1, "start": {
                "callId": "c", "streamId": "s", "accountId": "a", "tracks": ["inbound"],
                "mediaFormat": { "encoding": "audio/x-mulaw", "sampleRate": 8000 } },
                "extra_headers": "to=100;from=anna" }))],
            "vonage" => vec![text(&json!({ "event": "websocket:connected",
                "content-type": "audio/l16;rate=16000", "to": "100" }))],
            _ => vec![text(&json!({ "event": "start", "call": "c", "from": "anna", "to": "100",
                "encoding": "l16", "rate": 16000 }))],
        }
    }

    fn sound(&self, now: Frames, speaks: bool) -> Message {
        let len = self.rate() / 50;
        let level = if speaks { 0.3 } else { 0.0 };
        let tone = |n: usize| ((now as usize * len + n) as f32 * 0.3).sin() * level;
        let samples: Vec<f32> = (0..len).map(tone).collect();
        let ms = (now * 20).to_string();
        let chunk = (now + 1).to_string();
        match self.vendor {
            "twilio" => text(&json!({ "event": "media", "sequenceNumber": chunk, "streamSid": "MZ1",
                "media": { "track": "inbound", "chunk": chunk, "timestamp": ms,
                           "payload": STANDARD.encode(mulaw(&samples)) } })),
            "telnyx" => text(&json!({ "event": "media", "sequence_number": chunk, "stream_id": "32DE",
                "media": { "track": "inbound", "chunk": chunk, "timestamp": ms,
                           "payload": STANDARD.encode(mulaw(&samples)) } })),
            "plivo" => text(&json!({ "event": "media", "sequenceNumber": now + 2, "streamId": "s",
                "media": { "track": "inbound", "chunk": now + 1,
                           "timestamp": (1_796_000_000_000_i64 + now * 20).to_string(),
                           "payload": STANDARD.encode(mulaw(&samples)) } })),
            "vonage" => Message::Binary(linear(&samples).into()),
            _ => {
                let mut bytes = (now as u64 * len as u64).to_le_bytes().to_vec();
                bytes.extend(linear(&samples));
                Message::Binary(bytes.into())
            }
        }
    }

    fn mark(&self, name: &str) -> Message {
        text(&match self.vendor {
            "twilio" => json!({ "event": "mark", "streamSid": "MZ1", "mark": { "name": name } }),
            "telnyx" => json!({ "event": "mark", "stream_id": "32DE", "mark": { "name": name } }),
            "plivo" => json!({ "event": "playedStream", "streamId": "s", "name": name }),
            "vonage" => json!({ "event": "websocket:notify", "payload": { "name": name } }),
            _ => json!({ "event": "played", "name": name }),
        })
    }

    fn digit(&self, digit: &str) -> Message {
        text(&match self.vendor {
            "twilio" => json!({ "event": "dtmf", "streamSid": "MZ1",
                "dtmf": { "track": "inbound_track", "digit": digit } }),
            "telnyx" | "plivo" => json!({ "event": "dtmf", "dtmf": { "digit": digit } }),
            "vonage" => json!({ "event": "websocket:dtmf", "digit": digit, "duration": 260 }),
            _ => json!({ "event": "digit", "digit": digit }),
        })
    }

    fn read(&self, message: &Message) -> Option<Came> {
        if let Message::Binary(bytes) = message {
            let sound = if self.vendor == "plain" { &bytes[8..] } else { &bytes[..] };
            return Some(Came::Sound(unlinear(sound)));
        }
        let value: Value = serde_json::from_str(message.to_text().ok()?).ok()?;
        let name = |value: &Value| value.as_str().map(|name| Came::Mark(name.to_owned()));
        match value["event"].as_str().or(value["action"].as_str())? {
            "media" | "playAudio" => {
                let payload = value["media"]["payload"].as_str()?;
                Some(Came::Sound(unmulaw(&STANDARD.decode(payload).ok()?)))
            }
            "mark" if self.vendor == "plain" => name(&value["name"]),
            "mark" => name(&value["mark"]["name"]),
            "checkpoint" => name(&value["name"]),
            "notify" => name(&value["payload"]["name"]),
            "clear" | "clearAudio" => Some(Came::Clear),
            _ => None,
        }
    }
}
