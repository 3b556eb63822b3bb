//! A desk whose engines are all made up, for the tests and benches of every line: what matters is when, not what.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use sayback_core::{AskTerms, Policy};
use sayback_media::SpeechProbability;
use sayback_media::pcm::level_dbfs;
use sayback_media::vad::{FRAME, VadError};
use sayback_runtime::agent::{
    Agent, AskContext, Confirm, ConfirmError, ConfirmedTool, Handler, RunContext, RunError, Skill, Tool,
    ToolInfo, ToolOutput, Validate,
};
use sayback_runtime::llm::{Llm, LlmCall, LlmError, LlmEvent, LlmRequest, LlmStream};
use sayback_runtime::stt::{Cancel, SttError, Transcribe, Transcription};
use sayback_runtime::switchboard::{Asked, Desk, Desks, Limits, NewVad, NotNow, Switchboard};
use sayback_runtime::tts::{Synthesize, TtsError};
use serde_json::{Value, json};

/// What was booked, in order.
pub(crate) type Booked = Arc<Mutex<Vec<Value>>>;

#[derive(Debug)]
struct Anything;

impl Validate for Anything {
    fn validate(&self, input: Value) -> Result<Value, String> {
        Ok(input)
    }
}

#[derive(Debug)]
struct Question;

#[async_trait::async_trait]
impl Confirm for Question {
    async fn question(&self, _input: &Value, _context: &AskContext) -> Result<String, ConfirmError> {
        Ok("Shall I book Thursday at three for Anna?".to_owned())
    }
}

#[derive(Debug)]
struct Book(Booked);

#[async_trait::async_trait]
impl Handler for Book {
    async fn run(&self, input: Value, _context: RunContext) -> Result<ToolOutput, RunError> {
        self.0.lock().unwrap().push(input);
        Ok(ToolOutput { ok: true, message: "Booked.".to_owned() })
    }
}

/// Says yes to every check, which is the worst that a model can do; otherwise plays its steps.
#[derive(Debug)]
struct Credulous(Mutex<VecDeque<LlmEvent>>);

#[async_trait::async_trait]
impl Llm for Credulous {
    fn name(&self) -> String {
        "credulous".to_owned()
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        let first = if request.one_of.is_empty() {
            self.0.lock().unwrap().pop_front().unwrap_or_else(|| LlmEvent::Text("Anything else?".to_owned()))
        } else {
            LlmEvent::Text("yes".to_owned())
        };
        Ok(futures::stream::iter([Ok(first), Ok(LlmEvent::Done)]).boxed())
    }
}

/// Hears the same words in everything.
#[derive(Debug)]
struct Yes;

impl Transcribe for Yes {
    fn name(&self) -> String {
        "yes".to_owned()
    }

    fn transcribe(&self, _pcm: &[f32], _partial: bool, _cancel: &Cancel) -> Result<Transcription, SttError> {
        Ok(Transcription { text: "Yes please.".to_owned(), ..Transcription::default() })
    }
}

/// Speaks a tone of 150 ms a word, much faster than in real time, with silence behind it.
#[derive(Debug)]
struct Tone;

impl Synthesize for Tone {
    fn name(&self) -> String {
        "tone".to_owned()
    }

    fn sample_rate(&self) -> u32 {
        16_000
    }

    fn synthesize(
        &self,
        text: &str,
        _language: &str,
        sink: &mut dyn FnMut(&[i16]) -> ControlFlow<()>,
    ) -> Result<(), TtsError> {
        for _ in text.split_whitespace() {
            let word: Vec<i16> = (0..2_400).map(|n| ((n as f32 * 0.4).sin() * 9_000.0) as i16).collect();
            if sink(&word).is_break() {
                return Ok(());
            }
        }
        let _ = sink(&[0; 4_000]);
        Ok(())
    }
}

/// Speech is what is loud.
#[derive(Debug)]
struct Loud;

impl SpeechProbability for Loud {
    fn probability(&mut self, frame: &[f32; FRAME]) -> Result<f32, VadError> {
        Ok(if level_dbfs(frame) > -45.0 { 0.95 } else { 0.01 })
    }

    fn reset(&mut self) {}
}

/// Whoever calls `later` waits for this, as a call does that comes before the models are there.
pub(crate) static LATER: tokio::sync::Notify = tokio::sync::Notify::const_new();

#[derive(Debug)]
struct OneDesk(Arc<Desk>);

#[async_trait::async_trait]
impl Desks for OneDesk {
    async fn find(&self, asked: &Asked) -> Result<Arc<Desk>, NotNow> {
        if asked.to == "nobody" {
            return Err(NotNow::Unknown { to: asked.to.clone() });
        }
        if asked.to == "later" {
            LATER.notified().await;
        }
        Ok(Arc::clone(&self.0))
    }
}

fn agent(booked: &Booked) -> Agent {
    let info = ToolInfo {
        name: "book".to_owned(),
        description: "Books.".to_owned(),
        schema: json!({ "type": "object" }),
        definition: "sha256:book".to_owned(),
        limit: Duration::from_secs(5),
        validate: Arc::new(Anything),
    };
    let book = Arc::new(Book(Arc::clone(booked)));
    let tool = Tool::Confirmed(ConfirmedTool::new(info, Arc::new(Question), AskTerms::default(), book));
    let mut policy = Policy::default();
    policy.turn.silence_followup = None;
    policy.confirm.keypad = true;
    Agent {
        name: "desk".to_owned(),
        language: "en".to_owned(),
        greeting: None,
        instructions: String::new(),
        policy,
        skills: vec![Skill { name: "booking".to_owned(), instructions: String::new(), tools: vec![tool] }],
    }
}

/// A call of a tool.
pub(crate) fn calls(name: &str, arguments: &str) -> LlmEvent {
    LlmEvent::Call(LlmCall {
        id: format!("call_{name}"),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

/// A switchboard with one desk: the first thing that the caller says makes it ask.
pub(crate) fn board(most: usize) -> (Switchboard, Booked) {
    board_of(most, vec![calls("book", "{}")])
}

/// The same with a model that makes these steps first.
pub(crate) fn board_of(most: usize, steps: Vec<LlmEvent>) -> (Switchboard, Booked) {
    made_up(most, steps, Arc::new(|| Box::new(Loud)))
}

/// The same with a voice activity model of one's own.
pub(crate) fn board_with(most: usize, vad: NewVad) -> (Switchboard, Booked) {
    made_up(most, vec![calls("book", "{}")], vad)
}

/// The same with a model that asks so often, if it has to.
pub(crate) fn board_asking(most: usize, times: usize) -> (Switchboard, Booked) {
    let asks = |n| {
        LlmEvent::Call(LlmCall {
            id: format!("call_{n}"),
            name: "book".to_owned(),
            arguments: "{}".to_owned(),
        })
    };
    board_of(most, (1..=times).map(asks).collect())
}

fn made_up(most: usize, steps: Vec<LlmEvent>, vad: NewVad) -> (Switchboard, Booked) {
    let booked = Booked::default();
    let steps = move || VecDeque::from(steps.clone());
    let desk = Desk {
        agent: Arc::new(agent(&booked)),
        llm: Arc::new(move || Arc::new(Credulous(Mutex::new(steps())))),
        screen: None,
        vad,
        stt: Arc::new(Yes),
        tts: Arc::new(Tone),
        end_of_turn: None,
        assumed_loop: Duration::from_millis(100),
        recorded_as: None,
        redact: Vec::new(),
    };
    let limits = Limits { calls: most, ..Limits::default() };
    (Switchboard::new(Arc::new(OneDesk(Arc::new(desk))), None, limits), booked)
}
