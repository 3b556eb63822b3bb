//! A call's ears with a recogniser that hears along: segments in, transcripts out.

use std::sync::Arc;

use sayback_core::{Event, Interval, SegmentId, Time, Transcript};
use sayback_media::SpeechProbability;
use sayback_media::vad::VadError;
use sayback_providers::failover::FailoverStt;
use sayback_runtime::ears::{EarEngines, Ears as CallEars, Heard, Listener, ears};
use sayback_runtime::stt::Transcribe;
use tokio::sync::mpsc::{Receiver, channel};

use super::ears::{Ears, Tongue, Trouble, spoken};
use super::stt::engine;
use super::{AMPLE, hurried, service};

/// Loud is speech.
#[derive(Debug)]
struct Loud;

impl SpeechProbability for Loud {
    fn probability(&mut self, frame: &[f32; 512]) -> Result<f32, VadError> {
        Ok(if frame.iter().any(|s| s.abs() > 0.05) { 0.9 } else { 0.0 })
    }

    fn reset(&mut self) {}
}

/// A call: its line's side, its driver's side, and what the core would be told.
struct Call {
    ears: Option<CallEars>,
    listener: Listener,
    told: Receiver<Event>,
    at: Time,
}

impl Call {
    fn begin(stt: Arc<dyn Transcribe>) -> Self {
        let (sender, told) = channel(10_000);
        let engines = EarEngines { vad: Box::new(Loud), stt, end_of_turn: None };
        let (ears, listener) = ears(engines, sender);
        Self { ears: Some(ears), listener, told, at: Time::ZERO }
    }

    /// The line's thread hears this.
    async fn hear(&mut self, pcm: Vec<f32>) {
        let (mut ears, mut at) = (self.ears.take().unwrap(), self.at);
        let (ears, at) = tokio::task::spawn_blocking(move || {
            for piece in pcm.chunks(320) {
                ears.hear(Heard { start: at, samples: piece, raw: piece, played: &[], gated: false });
                at = Time::from_micros(at.as_micros() + piece.len() as u64 * 125 / 2);
            }
            (ears, at)
        })
        .await
        .unwrap();
        (self.ears, self.at) = (Some(ears), at);
    }

    /// Says these words as one segment, and has it closed as the core would.
    async fn segment(&mut self, id: u32, words: &[&str]) {
        let onset = self.at + std::time::Duration::from_millis(100);
        self.listener.open(SegmentId(id), Interval::exact(onset));
        self.hear(spoken(words)).await;
        let offset = self.at;
        self.hear(vec![0.0; 8_000]).await;
        self.listener.close(SegmentId(id), offset);
    }

    async fn transcript(&mut self) -> Transcript {
        loop {
            let event = tokio::time::timeout(AMPLE, self.told.recv()).await.expect("a transcript comes");
            if let Event::Transcript(transcript) = event.expect("the call is there") {
                return transcript;
            }
        }
    }
}

#[tokio::test]
async fn each_segment_gets_its_own_words() {
    for tongue in [Tongue::Deepgram, Tongue::Soniox, Tongue::Realtime] {
        let server = Ears::start(tongue, Trouble::None).await;
        let mut call = Call::begin(engine(tongue, service(&server.base_url)));
        call.hear(vec![0.0; 16_000]).await;
        for (id, words) in [(0, vec!["yes"]), (1, vec!["no", "cancel", "Zoë"]), (2, vec!["für"])] {
            call.segment(id, &words).await;
            let transcript = call.transcript().await;
            assert_eq!(transcript.segments, [SegmentId(id)], "{tongue:?}");
            assert_eq!((transcript.text, transcript.phantom), (words.join(" "), None), "{tongue:?}");
        }
    }
}

#[tokio::test]
async fn a_segment_that_nobody_understood_gets_no_words_and_the_next_one_does() {
    // Words that are not known are not "no words": the core's own limit decides then.
    let server = Ears::start_troubled(Tongue::Deepgram, vec![Trouble::Cut, Trouble::None]).await;
    let mut call = Call::begin(engine(Tongue::Deepgram, service(&server.base_url)));
    call.segment(0, &["yes"]).await;
    let failed = async {
        while server.seen().heard.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(AMPLE, failed).await.expect("the first connection heard it");
    loop {
        // The failure has been told when a new segment opens another connection.
        call.segment(1, &["no"]).await;
        if server.seen().upgrades.len() > 1 {
            break;
        }
    }
    let transcript = call.transcript().await;
    assert_eq!((transcript.segments, transcript.text.as_str()), (vec![SegmentId(1)], "no"));
}

#[tokio::test]
async fn with_a_second_recogniser_no_segment_is_lost() {
    let bad = Ears::start(Tongue::Soniox, Trouble::Silent).await;
    let good = Ears::start(Tongue::Deepgram, Trouble::None).await;
    let both = FailoverStt::new(
        engine(Tongue::Soniox, hurried(&bad.base_url)),
        vec![engine(Tongue::Deepgram, service(&good.base_url))],
    );
    let mut call = Call::begin(Arc::new(both));
    for (id, words) in [(0, "cancel"), (1, "明日")] {
        call.segment(id, &[words]).await;
        let transcript = call.transcript().await;
        assert_eq!((transcript.segments, transcript.text.as_str()), (vec![SegmentId(id)], words));
    }
}
