//! A second engine takes over in the middle of a call: no word is lost, and nothing is asked twice.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use sayback_providers::anthropic::{Anthropic, AnthropicConfig};
use sayback_providers::failover::{FailoverLlm, FailoverStt, FailoverTts};
use sayback_providers::openai::{OpenAi, OpenAiConfig};
use sayback_runtime::llm::{Llm, LlmError, LlmEvent, LlmMessage, LlmRequest, LlmStream};
use sayback_runtime::stt::{Cancel, LiveEvent, SttError, Transcribe, Transcription};
use sayback_runtime::tts::{Synthesize, TtsError};

use super::ears::{Ears, Tongue, Trouble, spoken};
use super::http::{Act, Server, http_chunk, response, stream_head, stream_in_pieces};
use super::stt::{Call, engine};
use super::tts::{Course, VENDORS, Vendor, Voices, say, voice};
use super::{AMPLE, SHORT, hurried, service};

/// A recogniser in this process that takes whole segments and says how long they are.
#[derive(Debug)]
struct Local;

impl Transcribe for Local {
    fn name(&self) -> String {
        "local".to_owned()
    }

    fn transcribe(&self, pcm: &[f32], _: bool, _: &Cancel) -> Result<Transcription, SttError> {
        Ok(Transcription { text: format!("{} samples", pcm.len()), ..Transcription::default() })
    }
}

#[tokio::test]
async fn the_second_recogniser_hears_each_waiting_segment_from_its_beginning() {
    for trouble in
        [Trouble::Silent, Trouble::Closes, Trouble::Cut, Trouble::Half, Trouble::Error, Trouble::Refused(401)]
    {
        for (first, second) in [
            (Tongue::Deepgram, Tongue::Soniox),
            (Tongue::Soniox, Tongue::Realtime),
            (Tongue::Realtime, Tongue::Deepgram),
        ] {
            let (bad, good) = (Ears::start(first, trouble).await, Ears::start(second, Trouble::None).await);
            let both = FailoverStt::new(
                engine(first, hurried(&bad.base_url)),
                vec![engine(second, service(&good.base_url))],
            );
            let mut call = Call::begin(&both);
            let (one, two) = (spoken(&["für", "Zoë"]), spoken(&["no"]));
            call.say(1, &one);
            call.live.flush(1);
            call.say(2, &two);
            call.live.flush(2);
            let what = format!("{first:?} with {trouble:?}, then {second:?}");
            assert_eq!(call.words().await, (1, one.len(), "für Zoë".to_owned()), "{what}");
            assert_eq!(call.words().await, (2, two.len(), "no".to_owned()), "{what}");
            assert_eq!(good.seen().heard, ["für", "Zoë", "no"], "{what}: each word once");
            // The rest of the call stays with it.
            call.live.forget(1);
            call.live.forget(2);
            call.say(3, &spoken(&["yes"]));
            call.live.flush(3);
            assert_eq!(call.words().await.2, "yes", "{what}");
            assert_eq!(good.seen().heard.len(), 4, "{what}: what was answered is not said again");
        }
    }
}

#[tokio::test]
async fn a_connection_that_ends_after_minutes_is_opened_again() {
    for tongue in [Tongue::Deepgram, Tongue::Soniox, Tongue::Realtime] {
        // The first connection answers once and then is cut; the next one is healthy.
        let ears = Ears::start_troubled(tongue, vec![Trouble::CutLater, Trouble::None]).await;
        let alone = FailoverStt::new(engine(tongue, service(&ears.base_url)), vec![]);
        let mut call = Call::begin(&alone);
        call.say(1, &spoken(&["yes"]));
        call.live.flush(1);
        assert_eq!(call.words().await.2, "yes", "{tongue:?}");
        call.live.forget(1);
        call.say(2, &spoken(&["cancel", "Zoë"]));
        call.live.flush(2);
        assert_eq!(call.words().await.2, "cancel Zoë", "{tongue:?}");
        assert_eq!(ears.seen().upgrades.len(), 2, "{tongue:?}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_while_nobody_speaks_is_opened_when_somebody_does() {
    for tongue in [Tongue::Deepgram, Tongue::Soniox, Tongue::Realtime] {
        let ears = Ears::start_troubled(tongue, vec![Trouble::EndsAnswered, Trouble::None]).await;
        let spare = Ears::start(Tongue::Deepgram, Trouble::None).await;
        let both = FailoverStt::new(
            engine(tongue, service(&ears.base_url)),
            vec![engine(Tongue::Deepgram, service(&spare.base_url))],
        );
        let mut call = Call::begin(&both);
        call.say(1, &spoken(&["yes"]));
        call.live.flush(1);
        assert_eq!(call.words().await.2, "yes", "{tongue:?}");
        call.live.forget(1);
        let closed = async {
            while ears.seen().ended == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(AMPLE, closed).await.expect("the server ends it");
        for (stretch, word) in [(2, "cancel"), (3, "no")] {
            call.say(stretch, &spoken(&[word]));
            call.live.flush(stretch);
            assert_eq!(call.words().await.2, word, "{tongue:?}");
            call.live.forget(stretch);
        }
        assert_eq!((ears.seen().upgrades.len(), spare.seen().upgrades.len()), (2, 0), "{tongue:?}");
    }
}

/// A recogniser that is slow, until it is told that its result is not wanted any more.
#[derive(Debug)]
struct Slow;

impl Transcribe for Slow {
    fn name(&self) -> String {
        "slow".to_owned()
    }

    fn transcribe(&self, pcm: &[f32], _: bool, cancel: &Cancel) -> Result<Transcription, SttError> {
        if pcm.len() > 2_000 {
            return Ok(Transcription { text: "all of it".to_owned(), ..Transcription::default() });
        }
        while !cancel.is_cancelled() {
            std::thread::yield_now();
        }
        Err(SttError::Cancelled)
    }
}

#[tokio::test]
async fn a_newer_flush_makes_the_one_before_it_needless() {
    let bad = Ears::start(Tongue::Deepgram, Trouble::Refused(500)).await;
    let both = FailoverStt::new(engine(Tongue::Deepgram, service(&bad.base_url)), vec![Arc::new(Slow)]);
    let mut call = Call::begin(&both);
    call.say(1, &[0.1; 1_000]);
    call.live.flush(1);
    call.say(1, &[0.1; 2_000]);
    call.live.flush(1);
    assert_eq!(call.words().await, (1, 3_000, "all of it".to_owned()));
}

#[tokio::test]
async fn when_all_recognisers_fail_that_is_told_once() {
    let bad = Ears::start(Tongue::Deepgram, Trouble::Refused(500)).await;
    let other = Ears::start(Tongue::Soniox, Trouble::Closes).await;
    let both = FailoverStt::new(
        engine(Tongue::Deepgram, service(&bad.base_url)),
        vec![engine(Tongue::Soniox, service(&other.base_url))],
    );
    let mut call = Call::begin(&both);
    call.say(0, &spoken(&["yes"]));
    call.live.flush(0);
    assert!(call.error().await.contains("soniox"), "the last one's words");
    assert_eq!((bad.seen().upgrades.len(), other.seen().upgrades.len()), (1, 1), "each was asked once");
}

#[tokio::test]
async fn a_recogniser_of_whole_segments_stands_in_for_one_that_hears_along() {
    let bad = Ears::start(Tongue::Deepgram, Trouble::Cut).await;
    let both = FailoverStt::new(engine(Tongue::Deepgram, service(&bad.base_url)), vec![Arc::new(Local)]);
    let mut call = Call::begin(&both);
    let pcm = spoken(&["yes"]);
    call.say(4, &pcm);
    call.live.flush(4);
    let LiveEvent::Final { stretch, upto, found } = call.next().await else { panic!("words") };
    assert_eq!((stretch, upto, found.text), (4, pcm.len(), format!("{} samples", pcm.len())));
    assert!(FailoverStt::new(Arc::new(Local), vec![]).live(Box::new(|_| ())).is_none());
}

#[tokio::test]
async fn the_second_voice_says_all_of_it_if_nothing_sounded() {
    for vendor in VENDORS {
        for course in [Course::Stall, Course::NoSound, Course::Rubbish, Course::Refused(429)] {
            let bad = Voices::start(vendor, course).await;
            let good = Voices::start(Vendor::OpenAi, Course::Whole).await;
            let both: Arc<dyn Synthesize> = Arc::new(FailoverTts::new(
                voice(vendor, hurried(bad.base_url())),
                vec![voice(Vendor::OpenAi, service(good.base_url()))],
            ));
            for _ in 0..2 {
                let (sounded, done) = say(&both, "Shall I book it?").await;
                assert_eq!((sounded.len(), done), (1_000, Ok(())), "{vendor:?} {course:?}");
            }
            let asked = good.asked();
            assert_eq!(asked.len(), 2, "{vendor:?} {course:?}");
            assert_eq!(asked[0]["input"], "Shall I book it?");
        }
    }
}

/// VC-41: half of one voice and the whole of another is not the question.
#[tokio::test]
async fn once_it_sounded_an_utterance_fails_and_nobody_else_speaks() {
    for vendor in VENDORS {
        for course in [Course::ErrorAfterSound, Course::StallAfterSound, Course::HalfSample] {
            let bad = Voices::start(vendor, course).await;
            let good = Voices::start(Vendor::OpenAi, Course::Whole).await;
            let both: Arc<dyn Synthesize> = Arc::new(FailoverTts::new(
                voice(vendor, hurried(bad.base_url())),
                vec![voice(Vendor::OpenAi, service(good.base_url()))],
            ));
            let (sounded, done) = say(&both, "Shall I book it?").await;
            assert_eq!(sounded.len(), 300, "{vendor:?} {course:?}");
            assert!(done.is_err() && good.asked().is_empty(), "{vendor:?} {course:?}");
        }
    }
}

/// A voice of another rate.
#[derive(Debug)]
struct Slower;

impl Synthesize for Slower {
    fn name(&self) -> String {
        "slower".to_owned()
    }

    fn sample_rate(&self) -> u32 {
        8_000
    }

    fn synthesize(
        &self,
        _: &str,
        _: &str,
        sink: &mut dyn FnMut(&[i16]) -> ControlFlow<()>,
    ) -> Result<(), TtsError> {
        for _ in 0..10 {
            if sink(&[8_000; 800]).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[tokio::test]
async fn the_second_voice_sounds_at_the_first_ones_rate() {
    let bad = Voices::start(Vendor::Deepgram, Course::Refused(500)).await;
    let both: Arc<dyn Synthesize> =
        Arc::new(FailoverTts::new(voice(Vendor::Deepgram, service(bad.base_url())), vec![Arc::new(Slower)]));
    assert_eq!(both.sample_rate(), 24_000);
    let (sounded, done) = say(&both, "Hello.").await;
    assert_eq!(done, Ok(()));
    let loud = sounded.iter().filter(|s| (**s - 8_000).abs() < 400).count();
    assert!((23_800..=24_300).contains(&loud), "a second of it: {loud} samples of {}", sounded.len());
}

fn openai(base_url: &str) -> Arc<dyn Llm> {
    Arc::new(OpenAi::new(OpenAiConfig::new(base_url, "m")).unwrap())
}

fn anthropic(base_url: &str) -> Arc<dyn Llm> {
    let config = AnthropicConfig { base_url: base_url.to_owned(), ..AnthropicConfig::new("c", None) };
    Arc::new(Anthropic::new(config).unwrap())
}

fn healthy() -> Vec<Act> {
    let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    stream_in_pieces(&format!("data: {text}\n\ndata: {end}\n\n"), 4096)
}

fn chunk(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{text:?}}}}}]}}\n\n")
}

async fn ask(llm: &dyn Llm) -> Vec<Result<LlmEvent, LlmError>> {
    let messages = vec![LlmMessage::User { text: "Hello".into() }];
    let request = LlmRequest { messages, first_token: Some(AMPLE), ..LlmRequest::default() };
    match llm.stream(request).await {
        Ok(stream) => stream.collect().await,
        Err(error) => vec![Err(error)],
    }
}

#[tokio::test]
async fn the_second_model_answers_if_nothing_was_said() {
    let hi = [Ok(LlmEvent::Text("Hi".into())), Ok(LlmEvent::Done)];
    for acts in [
        vec![Act::Stall],
        vec![stream_head(), Act::Stall],
        response("401 Unauthorized", "application/json", "", "{}"),
        response("429 Too Many Requests", "application/json", "", "{}"),
        response("200 OK", "text/html", "", "<p>hello</p>"),
        vec![stream_head()],
        vec![],
    ] {
        let (bad, good) = (Server::start(acts).await, Server::start(healthy()).await);
        let both = FailoverLlm::new(openai(&bad.base_url), vec![anthropic(&good.base_url)], SHORT);
        assert_eq!(ask(&both).await, hi);
        assert_eq!(ask(&both).await, hi);
        assert_eq!((bad.connections(), good.requests().len()), (1, 2), "the one that works is asked first");
    }
}

#[tokio::test]
async fn once_it_said_something_a_step_is_not_asked_again() {
    let half = vec![stream_head(), Act::Send(http_chunk(chunk("One ").as_bytes()))];
    let (bad, good) = (Server::start(half).await, Server::start(healthy()).await);
    let both = FailoverLlm::new(openai(&bad.base_url), vec![anthropic(&good.base_url)], AMPLE);
    let events = ask(&both).await;
    assert!(matches!(&events[..], [Ok(LlmEvent::Text(_)), Err(LlmError::BrokeOff(_))]), "{events:?}");
    assert_eq!(good.requests().len(), 0);
}

#[tokio::test]
async fn when_all_models_fail_the_last_ones_words_are_told() {
    let bad = Server::start(vec![]).await;
    let worse = Server::start(response("529 Overloaded", "application/json", "", "{}")).await;
    let both = FailoverLlm::new(openai(&bad.base_url), vec![anthropic(&worse.base_url)], AMPLE);
    let events = ask(&both).await;
    assert!(matches!(&events[..], [Err(LlmError::Refused { status: 529, .. })]), "{events:?}");
    assert_eq!(worse.requests().len(), 1);
}

/// A model that counts how often it was warmed.
#[derive(Debug, Default)]
struct Cold(std::sync::atomic::AtomicUsize);

#[async_trait::async_trait]
impl Llm for Cold {
    fn name(&self) -> String {
        "cold".to_owned()
    }

    async fn stream(&self, _: LlmRequest) -> Result<LlmStream, LlmError> {
        Err(LlmError::BrokeOff("cold".to_owned()))
    }

    async fn warm(&self, _: LlmRequest) -> Result<(), LlmError> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Err(LlmError::BrokeOff("cold".to_owned()))
    }
}

#[tokio::test]
async fn all_models_are_warmed_even_if_the_first_one_fails_to() {
    let (one, two) = (Arc::new(Cold::default()), Arc::new(Cold::default()));
    let both =
        FailoverLlm::new(Arc::clone(&one) as Arc<dyn Llm>, vec![Arc::clone(&two) as Arc<dyn Llm>], AMPLE);
    assert!(both.warm(LlmRequest::default()).await.is_err());
    let count = |cold: &Cold| cold.0.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((count(&one), count(&two)), (1, 1));
}

/// A check has little time: the second model must have some of it.
#[tokio::test]
async fn a_request_with_little_time_leaves_half_of_it_to_the_second_model() {
    let (bad, good) = (Server::start(vec![Act::Stall]).await, Server::start(healthy()).await);
    let both = FailoverLlm::new(openai(&bad.base_url), vec![anthropic(&good.base_url)], AMPLE);
    let limit = Duration::from_secs(2);
    let request = LlmRequest {
        messages: vec![LlmMessage::User { text: "yes".into() }],
        first_token: Some(limit),
        ..LlmRequest::default()
    };
    let answered = tokio::time::timeout(limit, async { both.stream(request).await.map(drop) }).await;
    assert_eq!(answered, Ok(Ok(())));
}
