//! The suite for recognisers.

use std::sync::Arc;

use sayback_providers::deepgram::DeepgramListen;
use sayback_providers::hosted::Service;
use sayback_providers::openai_speech::{OpenAiRealtime, OpenAiTranscribe};
use sayback_providers::soniox::Soniox;
use sayback_runtime::stt::{Cancel, Live, LiveEvent, SttError, Transcribe, Transcription};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::ears::{Ears, Tongue, Trouble, spoken};
use super::http::{Act, Server, response};
use super::{AMPLE, KEY, hurried, service};

const TONGUES: [Tongue; 3] = [Tongue::Deepgram, Tongue::Soniox, Tongue::Realtime];

pub(crate) fn engine(tongue: Tongue, service: Service) -> Arc<dyn Transcribe> {
    match tongue {
        Tongue::Deepgram => Arc::new(DeepgramListen::new(service).unwrap()),
        Tongue::Soniox => Arc::new(Soniox::new(service).unwrap()),
        Tongue::Realtime => Arc::new(OpenAiRealtime::new(service).unwrap()),
    }
}

/// A call's line to an engine, and what it hears.
pub(crate) struct Call {
    pub(crate) live: Box<dyn Live>,
    heard: UnboundedReceiver<LiveEvent>,
}

impl Call {
    pub(crate) fn begin(engine: &dyn Transcribe) -> Self {
        let (sender, heard) = unbounded_channel();
        let live = engine.live(Box::new(move |event| {
            let _ = sender.send(event);
        }));
        Self { live: live.unwrap(), heard }
    }

    pub(crate) fn say(&mut self, stretch: u32, pcm: &[f32]) {
        for piece in pcm.chunks(320) {
            self.live.push(stretch, piece);
        }
    }

    /// The next event that is no partial.
    pub(crate) async fn next(&mut self) -> LiveEvent {
        loop {
            let event = tokio::time::timeout(AMPLE, self.heard.recv()).await.expect("something is heard");
            match event.expect("the engine is there") {
                LiveEvent::Partial { .. } => {}
                event => return event,
            }
        }
    }

    pub(crate) async fn words(&mut self) -> (u32, usize, String) {
        match self.next().await {
            LiveEvent::Final { stretch, upto, found } => (stretch, upto, found.text),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn error(&mut self) -> String {
        match self.next().await {
            LiveEvent::Failed { error } => error.to_string(),
            other => panic!("{other:?}"),
        }
    }
}

async fn whole(engine: Arc<dyn Transcribe>, pcm: Vec<f32>) -> Result<Transcription, SttError> {
    tokio::task::spawn_blocking(move || engine.transcribe(&pcm, false, &Cancel::new())).await.unwrap()
}

#[tokio::test]
async fn each_stretch_has_its_own_words_and_their_places() {
    for tongue in TONGUES {
        let ears = Ears::start(tongue, Trouble::None).await;
        let mut call = Call::begin(engine(tongue, service(&ears.base_url)).as_ref());
        let (first, second) = (spoken(&["für", "Zoë"]), spoken(&["yes"]));
        call.say(3, &first);
        call.live.flush(3);
        call.say(7, &second);
        call.live.flush(7);
        let LiveEvent::Final { stretch, upto, found } = call.next().await else { panic!("{tongue:?}") };
        assert_eq!((stretch, upto, found.text.as_str()), (3, first.len(), "für Zoë"), "{tongue:?}");
        let LiveEvent::Final { stretch, upto, found } = call.next().await else { panic!("{tongue:?}") };
        assert_eq!((stretch, upto, found.text.as_str()), (7, second.len(), "yes"), "{tongue:?}");
        if tongue != Tongue::Realtime {
            // In seconds of its own stretch, not of the vendor's clock.
            let word = &found.words[0];
            assert!((word.from - 0.1).abs() < 0.01 && (word.to - 0.2).abs() < 0.01, "{tongue:?}: {word:?}");
            assert!((found.avg_logprob.exp() - 0.9).abs() < 0.01, "{tongue:?}: {found:?}");
        }
    }
}

#[tokio::test]
async fn a_flush_in_a_pause_is_followed_by_the_rest() {
    for tongue in TONGUES {
        let ears = Ears::start(tongue, Trouble::None).await;
        let mut call = Call::begin(engine(tongue, service(&ears.base_url)).as_ref());
        let (begin, rest) = (spoken(&["no"]), spoken(&["cancel", "明日"]));
        call.say(0, &begin);
        call.live.flush(0);
        assert_eq!(call.words().await, (0, begin.len(), "no".to_owned()), "{tongue:?}");
        call.say(0, &rest);
        call.live.flush(0);
        let all = begin.len() + rest.len();
        assert_eq!(call.words().await, (0, all, "no cancel 明日".to_owned()), "{tongue:?}");
    }
}

#[tokio::test]
async fn silence_is_answered_with_no_words() {
    for tongue in TONGUES {
        let ears = Ears::start(tongue, Trouble::None).await;
        let mut call = Call::begin(engine(tongue, service(&ears.base_url)).as_ref());
        call.say(0, &[0.0; 800]);
        call.live.flush(0);
        assert_eq!(call.words().await, (0, 800, String::new()), "{tongue:?}");
    }
}

#[tokio::test]
async fn a_late_final_stays_with_the_stretch_in_which_it_was_said() {
    for tongue in TONGUES {
        let ears = Ears::start(tongue, Trouble::Late).await;
        let mut call = Call::begin(engine(tongue, service(&ears.base_url)).as_ref());
        call.say(1, &spoken(&["yes"]));
        call.live.flush(1);
        // Nobody waits any more: what comes of it late must not become another stretch's words.
        call.live.forget(1);
        call.say(2, &spoken(&["cancel"]));
        call.live.flush(2);
        call.say(3, &spoken(&["no"]));
        call.live.flush(3);
        let (stretch, _, text) = call.words().await;
        assert_eq!((stretch, text.as_str()), (2, "cancel"), "{tongue:?}");
    }
}

#[tokio::test]
async fn words_of_no_stretch_are_nobodys_answer() {
    for tongue in TONGUES {
        let ears = Ears::start(tongue, Trouble::Rubbish).await;
        let mut call = Call::begin(engine(tongue, hurried(&ears.base_url)).as_ref());
        call.say(0, &spoken(&["no"]));
        call.live.flush(0);
        match call.next().await {
            LiveEvent::Unplaced { text } => assert_eq!(text, "yes", "{tongue:?}"),
            LiveEvent::Failed { .. } if tongue == Tongue::Realtime => {}
            other => panic!("{tongue:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn messages_in_fragments_that_cut_letters_are_read_whole() {
    for tongue in TONGUES {
        let ears = Ears::start(tongue, Trouble::Fragments).await;
        let mut call = Call::begin(engine(tongue, service(&ears.base_url)).as_ref());
        call.say(0, &spoken(&["für", "明日", "Zoë"]));
        call.live.flush(0);
        assert_eq!(call.words().await.2, "für 明日 Zoë", "{tongue:?}");
    }
}

#[tokio::test]
async fn partial_words_come_while_the_caller_speaks() {
    for tongue in TONGUES {
        let ears = Ears::start(tongue, Trouble::None).await;
        let mut call = Call::begin(engine(tongue, service(&ears.base_url)).as_ref());
        call.say(5, &spoken(&["yes"]));
        let event = tokio::time::timeout(AMPLE, call.heard.recv()).await.unwrap().unwrap();
        let LiveEvent::Partial { stretch, text } = event else { panic!("{tongue:?}: {event:?}") };
        assert_eq!((stretch, text.trim_start_matches("ye")), (5, ""), "{tongue:?}");
    }
}

#[tokio::test]
async fn each_fault_is_told_once_and_in_words() {
    for tongue in TONGUES {
        for (trouble, words) in [
            (Trouble::Silent, "was silent for"),
            (Trouble::Closes, "broke off"),
            (Trouble::Cut, "broke off"),
            (Trouble::Half, "answered rubbish"),
            (Trouble::NoUtf8, "answered rubbish"),
            (Trouble::Refused(401), "refused the key"),
            (Trouble::Refused(429), "is rate-limited"),
            (Trouble::Refused(500), "refused the request (500)"),
        ] {
            let ears = Ears::start(tongue, trouble).await;
            let mut call = Call::begin(engine(tongue, hurried(&ears.base_url)).as_ref());
            call.say(0, &spoken(&["yes"]));
            call.live.flush(0);
            let error = call.error().await;
            assert!(error.contains(words), "{tongue:?} {trouble:?}: {error}");
            assert!(!error.contains("secret"), "{error}");
            assert!(call.heard.recv().await.is_none(), "{tongue:?} {trouble:?}: nothing follows a failure");
        }
    }
}

#[tokio::test]
async fn the_vendors_own_error_ends_it_without_showing_the_key() {
    for (tongue, words) in [
        (Tongue::Deepgram, "Rate limit reached for [key]"),
        (Tongue::Soniox, "is rate-limited"),
        (Tongue::Realtime, "is rate-limited"),
    ] {
        let ears = Ears::start(tongue, Trouble::Error).await;
        let mut call = Call::begin(engine(tongue, service(&ears.base_url)).as_ref());
        call.say(0, &spoken(&["yes"]));
        call.live.flush(0);
        let error = call.error().await;
        assert!(error.contains(words) && !error.contains("secret"), "{tongue:?}: {error}");
    }
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for tongue in TONGUES {
        let mut call = Call::begin(engine(tongue, service(&format!("http://{address}/v1"))).as_ref());
        call.live.flush(0);
        let error = call.error().await;
        assert!(error.contains("cannot be reached") && error.contains(&address.to_string()), "{error}");
    }
}

#[tokio::test]
async fn the_upgrade_is_what_each_vendor_expects() {
    for (tongue, uri, header, value) in [
        (
            Tongue::Deepgram,
            "/v1/listen?model=a-model&language=en&encoding=linear16&sample_rate=16000",
            "authorization",
            "Token sk-secret-7",
        ),
        (Tongue::Soniox, "/v1/transcribe-websocket", "authorization", "Bearer sk-secret-7"),
        (Tongue::Realtime, "/v1/realtime?intent=transcription", "authorization", "Bearer sk-secret-7"),
    ] {
        let ears = Ears::start(tongue, Trouble::None).await;
        let mut call = Call::begin(engine(tongue, service(&ears.base_url)).as_ref());
        call.say(0, &spoken(&["yes"]));
        call.live.flush(0);
        call.words().await;
        let seen = ears.seen();
        let (found, headers) = &seen.upgrades[0];
        assert!(found.starts_with(uri) && !found.contains(KEY), "{found}");
        assert!(headers.contains(&(header.to_owned(), value.to_owned())), "{headers:?}");
        if tongue != Tongue::Deepgram {
            assert!(seen.texts[0].contains("a-model"), "{:?}", seen.texts);
        }
        assert!(!seen.texts.iter().any(|text| text.contains(KEY)), "the key is a header and nothing else");
    }
}

#[tokio::test]
async fn dropping_the_line_ends_the_session_in_good_order() {
    for (tongue, goodbye) in [(Tongue::Deepgram, "{\"type\":\"CloseStream\"}"), (Tongue::Soniox, "")] {
        let ears = Ears::start(tongue, Trouble::None).await;
        let mut call = Call::begin(engine(tongue, service(&ears.base_url)).as_ref());
        call.say(0, &spoken(&["yes"]));
        call.live.flush(0);
        call.words().await;
        drop(call.live);
        assert!(call.heard.recv().await.is_none(), "the task ends with its owner");
        let said = || ears.seen().texts.last().cloned();
        let heard = async {
            while said().as_deref() != Some(goodbye) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(AMPLE, heard).await.expect("the vendor hears the goodbye");
    }
}

#[tokio::test]
async fn a_whole_segment_is_recognised_over_a_connection_of_its_own() {
    for tongue in TONGUES {
        let ears = Ears::start(tongue, Trouble::None).await;
        let found = whole(engine(tongue, service(&ears.base_url)), spoken(&["für", "Zoë"])).await.unwrap();
        assert_eq!(found.text, "für Zoë", "{tongue:?}");
        let ears = Ears::start(tongue, Trouble::Refused(401)).await;
        let error = whole(engine(tongue, service(&ears.base_url)), spoken(&["yes"])).await.unwrap_err();
        assert!(error.to_string().contains("refused the key"), "{error}");
    }
}

#[tokio::test]
async fn a_wav_file_is_sent_to_the_transcription_service_and_words_come_back() {
    let answer = r#"{"text": " für Zoë ", "words": [{"word": "für", "start": 0.1, "end": 0.2}],
        "segments": [{"avg_logprob": -0.25, "no_speech_prob": 0.5}]}"#;
    let server = Server::start(response("200 OK", "application/json", "", answer)).await;
    let mut service = service(&server.base_url);
    service.model = "whisper-1".to_owned();
    let found = whole(Arc::new(OpenAiTranscribe::new(service).unwrap()), spoken(&["für"])).await.unwrap();
    assert_eq!((found.text.as_str(), found.words.len()), ("für Zoë", 1));
    assert!((found.avg_logprob + 0.25).abs() < 1e-6 && (found.no_speech - 0.5).abs() < 1e-6);
    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/audio/transcriptions HTTP/1.1\r\n"), "{head}");
    for part in ["name=\"model\"\r\n\r\nwhisper-1", "name=\"language\"\r\n\r\nen", "RIFF", "verbose_json"] {
        assert!(body.contains(part), "{part} is missing");
    }
}

#[tokio::test]
async fn the_transcription_service_fails_in_words() {
    for (acts, words) in [
        (
            response(
                "401 Unauthorized",
                "application/json",
                "",
                r#"{"error":{"message":"bad sk-secret-7"}}"#,
            ),
            "refused the key: bad [key]",
        ),
        (
            response("429 Too Many Requests", "application/json", "retry-after: 7\r\n", "{}"),
            "is rate-limited, retry in 7 s",
        ),
        (response("200 OK", "text/html", "", "<p>sk-secret-7</p>"), "answered rubbish"),
        (response("200 OK", "application/json", "", "{\"text\": \"ye"), "answered rubbish"),
        (
            vec![Act::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"text\": \"yes\"}".to_vec())],
            "broke off",
        ),
        (vec![Act::Stall], "was silent for 150 ms"),
    ] {
        let server = Server::start(acts).await;
        let engine = Arc::new(OpenAiTranscribe::new(hurried(&server.base_url)).unwrap());
        let error = whole(engine, spoken(&["yes"])).await.unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn no_key_is_shown_by_debug() {
    for tongue in TONGUES {
        let shown = format!("{:?}", engine(tongue, service("http://127.0.0.1:1")));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
