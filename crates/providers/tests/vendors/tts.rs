//! The suite for voices.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use base64::Engine;
use futures::{SinkExt, StreamExt};
use sayback_providers::cartesia::Cartesia;
use sayback_providers::deepgram::DeepgramVoice;
use sayback_providers::elevenlabs::ElevenLabs;
use sayback_providers::hosted::Service;
use sayback_providers::openai_speech::OpenAiVoice;
use sayback_runtime::tts::{Synthesize, TtsError};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use super::http::{Act, Server, http_chunk, response};
use super::{AMPLE, KEY, hurried, service};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    ElevenLabs,
    Deepgram,
    OpenAi,
    Cartesia,
}

pub(crate) const VENDORS: [Vendor; 4] =
    [Vendor::ElevenLabs, Vendor::Deepgram, Vendor::OpenAi, Vendor::Cartesia];

pub(crate) fn voice(vendor: Vendor, service: Service) -> Arc<dyn Synthesize> {
    match vendor {
        Vendor::ElevenLabs => Arc::new(ElevenLabs::new(service).unwrap()),
        Vendor::Deepgram => Arc::new(DeepgramVoice::new(service).unwrap()),
        Vendor::OpenAi => Arc::new(OpenAiVoice::new(service).unwrap()),
        Vendor::Cartesia => Arc::new(Cartesia::new(service).unwrap()),
    }
}

/// How an utterance goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// All 1,000 samples, in pieces that cut samples.
    Whole,
    /// Some sound, then the vendor's error or a cut connection.
    ErrorAfterSound,
    /// Some sound, then nothing.
    StallAfterSound,
    /// Sound that ends inside a sample.
    HalfSample,
    /// It ends without any.
    NoSound,
    /// Something that is no sound.
    Rubbish,
    /// It never answers.
    Stall,
    /// A refusal with this status and the key in it.
    Refused(u16),
}

fn pcm() -> Vec<u8> {
    (0..1_000_i16).flat_map(|n| (n * 3 - 1_500).to_le_bytes()).collect()
}

/// A server of this vendor's protocol; what it was asked is kept.
pub(crate) enum Voices {
    Http(Server),
    Socket { base_url: String, asked: Arc<Mutex<Vec<Value>>>, upgrades: Arc<Mutex<u32>> },
}

impl Voices {
    pub(crate) async fn start(vendor: Vendor, course: Course) -> Self {
        match vendor {
            Vendor::Cartesia => Self::socket(course).await,
            Vendor::ElevenLabs | Vendor::Deepgram | Vendor::OpenAi => {
                Self::Http(Server::start(http_acts(course)).await)
            }
        }
    }

    pub(crate) fn base_url(&self) -> &str {
        match self {
            Self::Http(server) => &server.base_url,
            Self::Socket { base_url, .. } => base_url,
        }
    }

    /// The bodies of all requests.
    pub(crate) fn asked(&self) -> Vec<Value> {
        let body =
            |request: &String| serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        match self {
            Self::Http(server) => server.requests().iter().map(body).collect(),
            Self::Socket { asked, .. } => asked.lock().unwrap().clone(),
        }
    }

    async fn socket(course: Course) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("ws://{}", listener.local_addr().unwrap());
        let (asked, upgrades) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (seen, counted) = (Arc::clone(&asked), Arc::clone(&upgrades));
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                *counted.lock().unwrap() += 1;
                connection.set_nodelay(true).unwrap();
                tokio::spawn(speak_cartesia(connection, course, Arc::clone(&seen)));
            }
        });
        Self::Socket { base_url, asked, upgrades }
    }
}

fn http_acts(course: Course) -> Vec<Act> {
    let head = Act::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: audio/pcm\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
    );
    let pieces =
        |bytes: &[u8]| bytes.chunks(333).map(|piece| Act::Send(http_chunk(piece))).collect::<Vec<_>>();
    let end = Act::Send(b"0\r\n\r\n".to_vec());
    match course {
        Course::Whole => [vec![head], pieces(&pcm()), vec![end]].concat(),
        Course::ErrorAfterSound => [vec![head], pieces(&pcm()[..600])].concat(),
        Course::StallAfterSound => [vec![head], pieces(&pcm()[..600]), vec![Act::Stall]].concat(),
        Course::HalfSample => [vec![head], pieces(&pcm()[..601]), vec![end]].concat(),
        Course::NoSound => vec![head, end],
        Course::Rubbish => response("200 OK", "application/json", "", "{\"ok\": \"sk-secret-7\"}"),
        Course::Stall => vec![Act::Stall],
        Course::Refused(status) => {
            let body = format!(r#"{{"detail": {{"status": "x", "message": "bad key {KEY}"}}}}"#);
            response(&format!("{status} No"), "application/json", "", &body)
        }
    }
}

async fn speak_cartesia(connection: tokio::net::TcpStream, course: Course, asked: Arc<Mutex<Vec<Value>>>) {
    let check = |request: &Request, response: Response| {
        assert_eq!(request.uri().to_string(), "/tts/websocket");
        assert_eq!(request.headers()["x-api-key"], KEY);
        assert!(request.headers().contains_key("cartesia-version"));
        match course {
            Course::Refused(status) => {
                let mut refusal = ErrorResponse::new(Some(format!("bad key {KEY}")));
                *refusal.status_mut() = status.try_into().unwrap();
                Err(refusal)
            }
            _ => Ok(response),
        }
    };
    let accepted = tokio_tungstenite::accept_hdr_async(connection, check).await;
    let Ok(mut socket) = accepted else { return };
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let request: Value = serde_json::from_str(&text).unwrap();
        let context = request["context_id"].clone();
        asked.lock().unwrap().push(request);
        let chunk = |context: &Value, bytes: &[u8]| {
            let data = base64::engine::general_purpose::STANDARD.encode(bytes);
            json!({"type": "chunk", "data": data, "done": false, "status_code": 206, "context_id": context})
        };
        let sound = |bytes: &[u8]| bytes.chunks(333).map(|piece| chunk(&context, piece)).collect::<Vec<_>>();
        let done = json!({"type": "done", "done": true, "status_code": 206, "context_id": context});
        // What is left of an utterance that was given up comes first.
        let old = chunk(&json!("utterance-of-old"), &[1, 2, 3]);
        let answer = match course {
            Course::Whole => [vec![old], sound(&pcm()), vec![done]].concat(),
            Course::ErrorAfterSound => {
                let error = json!({"type": "error", "done": true, "status_code": 500, "title": "Oh",
                    "message": format!("boom {KEY}"), "context_id": context});
                [sound(&pcm()[..600]), vec![error]].concat()
            }
            Course::StallAfterSound => sound(&pcm()[..600]),
            Course::HalfSample => [sound(&pcm()[..601]), vec![done]].concat(),
            Course::NoSound => vec![done],
            Course::Rubbish => vec![json!("sk-secret-7")],
            Course::Stall | Course::Refused(_) => vec![],
        };
        for message in answer {
            if socket.send(Message::text(message.to_string())).await.is_err() {
                return;
            }
        }
    }
}

/// Speaks, and gives what sounded.
pub(crate) async fn say(voice: &Arc<dyn Synthesize>, text: &str) -> (Vec<i16>, Result<(), TtsError>) {
    let (voice, text) = (Arc::clone(voice), text.to_owned());
    tokio::task::spawn_blocking(move || {
        let mut sounded = Vec::new();
        let done = voice.synthesize(&text, "en-GB", &mut |samples| {
            sounded.extend_from_slice(samples);
            ControlFlow::Continue(())
        });
        (sounded, done)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn an_utterance_is_heard_to_the_last_sample_however_it_is_cut() {
    let expected: Vec<i16> = (0..1_000).map(|n| n * 3 - 1_500).collect();
    for vendor in VENDORS {
        let server = Voices::start(vendor, Course::Whole).await;
        let voice = voice(vendor, service(server.base_url()));
        let (sounded, done) = say(&voice, "Hello.").await;
        assert_eq!((sounded, done), (expected.clone(), Ok(())), "{vendor:?}");
        assert_eq!(voice.sample_rate(), 24_000);
    }
}

#[tokio::test]
async fn half_an_utterance_is_a_failed_one() {
    for vendor in VENDORS {
        for (course, words) in [
            (Course::ErrorAfterSound, if vendor == Vendor::Cartesia { "boom [key]" } else { "broke off" }),
            (Course::StallAfterSound, "was silent for 150 ms"),
            (Course::HalfSample, "inside a sample"),
        ] {
            let server = Voices::start(vendor, course).await;
            let (sounded, done) = say(&voice(vendor, hurried(server.base_url())), "Hello.").await;
            assert_eq!(sounded.len(), 300, "{vendor:?} {course:?}");
            let error = done.unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("secret"), "{vendor:?} {course:?}: {error}");
        }
    }
}

#[tokio::test]
async fn an_utterance_without_sound_is_a_failed_one() {
    for vendor in VENDORS {
        for (course, words) in [
            (Course::NoSound, "no sound at all"),
            (Course::Rubbish, "answered rubbish"),
            (Course::Stall, "was silent for 150 ms"),
            (Course::Refused(401), "refused the key: bad key [key]"),
            (Course::Refused(429), "is rate-limited"),
            (Course::Refused(500), "refused the request (500): bad key [key]"),
        ] {
            let server = Voices::start(vendor, course).await;
            let (sounded, done) = say(&voice(vendor, hurried(server.base_url())), "Hello.").await;
            assert!(sounded.is_empty(), "{vendor:?} {course:?}");
            let error = done.unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("secret"), "{vendor:?} {course:?}: {error}");
        }
    }
}

/// VC-05, VC-06: what is asked of the vendor is the text, and nothing in it is an order.
#[tokio::test]
async fn text_goes_out_unchanged_and_markup_is_no_order() {
    let plain = "Shall I book Thursday at 3 pm for \"Zoë\" & Söhne? 5 > 4 😀";
    let marked = "For <break time=\"9s\"/> [laughs] \\{\"word\": \"x\"\\}?";
    for vendor in VENDORS {
        let server = Voices::start(vendor, Course::Whole).await;
        let voice = voice(vendor, service(server.base_url()));
        for text in [plain, marked] {
            say(&voice, text).await.1.unwrap();
        }
        let key = match vendor {
            Vendor::ElevenLabs | Vendor::Deepgram => "text",
            Vendor::OpenAi => "input",
            Vendor::Cartesia => "transcript",
        };
        let asked = server.asked();
        assert_eq!(asked[0][key], plain, "{vendor:?}");
        let sent = asked[1][key].as_str().unwrap();
        let orders: &[&str] = match vendor {
            Vendor::ElevenLabs | Vendor::Cartesia => &["<break", "[laughs]"],
            Vendor::Deepgram => &["{\"word\"", "\\{"],
            // It reads none.
            Vendor::OpenAi => &[],
        };
        assert!(orders.iter().all(|order| !sent.contains(order)), "{vendor:?}: {sent}");
        for word in ["For", "break", "9s", "laughs", "word", "x"] {
            assert!(sent.contains(word), "{vendor:?} lost {word}: {sent}");
        }
    }
}

#[tokio::test]
async fn the_request_is_what_each_vendor_expects() {
    for (vendor, line, header) in [
        (
            Vendor::ElevenLabs,
            "POST /v1/text-to-speech/a%20voice%2F1/stream?output_format=pcm_24000 ",
            "xi-api-key: sk-secret-7",
        ),
        (
            Vendor::Deepgram,
            "POST /v1/speak?model=a+voice%2F1&encoding=linear16&container=none&sample_rate=24000 ",
            "authorization: Token sk-secret-7",
        ),
        (Vendor::OpenAi, "POST /v1/audio/speech ", "authorization: Bearer sk-secret-7"),
    ] {
        let server = Voices::start(vendor, Course::Whole).await;
        say(&voice(vendor, service(server.base_url())), "Hello.").await.1.unwrap();
        let Voices::Http(http) = &server else { panic!("{vendor:?} speaks HTTP") };
        let request = &http.requests()[0];
        assert!(request.starts_with(line), "{request}");
        assert!(request.contains(header), "{request}");
        if vendor == Vendor::OpenAi {
            let asked = &server.asked()[0];
            assert_eq!((&asked["voice"], &asked["response_format"]), (&json!("a voice/1"), &json!("pcm")));
        }
    }
    let server = Voices::start(Vendor::Cartesia, Course::Whole).await;
    say(&voice(Vendor::Cartesia, service(server.base_url())), "Hello.").await.1.unwrap();
    let asked = &server.asked()[0];
    assert_eq!(asked["voice"], json!({"mode": "id", "id": "a voice/1"}));
    assert_eq!(asked["language"], "en");
}

#[tokio::test]
async fn a_listener_who_has_heard_enough_ends_the_request() {
    for vendor in VENDORS {
        let server = Voices::start(vendor, Course::StallAfterSound).await;
        let voice = voice(vendor, service(server.base_url()));
        let stopped = tokio::task::spawn_blocking(move || {
            voice.synthesize("Hello.", "en", &mut |_| ControlFlow::Break(()))
        });
        let done = tokio::time::timeout(AMPLE, stopped).await.expect("it does not wait for the rest");
        assert_eq!(done.unwrap(), Ok(()), "{vendor:?}");
    }
}

#[tokio::test]
async fn cartesia_keeps_its_socket_and_opens_another_if_that_was_closed() {
    let server = Voices::start(Vendor::Cartesia, Course::Whole).await;
    let speaker = voice(Vendor::Cartesia, service(server.base_url()));
    for _ in 0..3 {
        say(&speaker, "Hello.").await.1.unwrap();
    }
    let Voices::Socket { upgrades, .. } = &server else { panic!("it speaks over a socket") };
    assert_eq!(*upgrades.lock().unwrap(), 1, "three utterances, one socket");

    // A server that closes each socket once it has spoken, as they do after some minutes.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("ws://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let mut socket = tokio_tungstenite::accept_async(connection).await.unwrap();
            let Some(Ok(Message::Text(text))) = socket.next().await else { return };
            let request: Value = serde_json::from_str(&text).unwrap();
            let context = &request["context_id"];
            for message in [
                json!({"type": "chunk", "data": "AQACAA==", "context_id": context}),
                json!({"type": "done", "context_id": context}),
            ] {
                socket.send(Message::text(message.to_string())).await.unwrap();
            }
            let _ = socket.close(None).await;
        }
    });
    let speaker = voice(Vendor::Cartesia, service(&base_url));
    for _ in 0..3 {
        assert_eq!(say(&speaker, "Hello.").await, (vec![1, 2], Ok(())));
    }
}

#[test]
fn no_key_is_shown_by_debug() {
    for vendor in VENDORS {
        let shown = format!("{:?}", voice(vendor, service("http://127.0.0.1:1")));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
