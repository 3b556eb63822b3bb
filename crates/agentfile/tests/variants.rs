//! VC-10: a tool as a schema or as fields, inline or as a reusable definition, and in a file: the same call and the same
//! yes give the same events, to the byte. Each variant holds a live chat of its own.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use sayback_agentfile::{Field, ToolBuilder, ToolInputError, load};
use sayback_core::{CallStart, Event, Policy, Speak, Time};
use sayback_runtime::agent::{Agent, Skill, Tool};
use sayback_runtime::clock::Clock;
use sayback_runtime::driver::{Driver, Observer, Parts};
use sayback_runtime::line::Line;
use sayback_runtime::llm::{Llm, LlmCall, LlmError, LlmEvent, LlmRequest, LlmStream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// What the questions and the runs were given, in order.
type Given = Arc<Mutex<Vec<String>>>;

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Booking {
    start: String,
    #[serde(default = "one")]
    seats: u32,
}

fn one() -> u32 {
    1
}

fn asked(start: &str, seats: u64, given: &Given) -> Result<String, ToolInputError> {
    given.lock().unwrap().push(format!("question {start} {seats}"));
    if seats > 8 {
        return Err(ToolInputError("At most 8 seats.".to_owned()));
    }
    Ok(format!("Shall I book {seats} at {start}?"))
}

fn booked(start: &str, seats: u64, given: &Given) -> String {
    given.lock().unwrap().push(format!("run {start} {seats}"));
    format!("Booked {seats} at {start}.")
}

fn start_of(input: &Value) -> &str {
    input["start"].as_str().unwrap()
}

fn seats_of(input: &Value) -> u64 {
    input["seats"].as_u64().unwrap()
}

/// A typed input: its schema is derived.
fn typed(given: &Given) -> Tool {
    let (ask, run) = (Arc::clone(given), Arc::clone(given));
    ToolBuilder::new("book")
        .describe("Books.")
        .input::<Booking>()
        .confirm(move |b: &Booking, _| asked(&b.start, b.seats.into(), &ask))
        .on_submit(move |b: Booking, _| {
            let said = booked(&b.start, b.seats.into(), &run);
            async move { Ok::<_, ToolInputError>(said) }
        })
        .build()
        .unwrap()
}

/// The three that get plain values: what they have in common behind their inputs.
fn valued(builder: ToolBuilder, given: &Given) -> Tool {
    let (ask, run) = (Arc::clone(given), Arc::clone(given));
    builder
        .describe("Books.")
        .confirm(move |b: &Value, _| asked(start_of(b), seats_of(b), &ask))
        .on_submit(move |b: Value, _| {
            let said = booked(start_of(&b), seats_of(&b), &run);
            async move { Ok::<_, ToolInputError>(said) }
        })
        .build()
        .unwrap()
}

fn of_schema(given: &Given) -> Tool {
    let schema = json!({
        "type": "object",
        "required": ["start"],
        "properties": {"start": {"type": "string"}, "seats": {"type": "integer", "minimum": 0, "default": 1}},
    });
    valued(ToolBuilder::new("book").schema(schema), given)
}

fn of_fields(given: &Given) -> Tool {
    let seats = Field::integer().default(json!(1)).with("minimum", json!(0));
    valued(ToolBuilder::new("book").field("start", Field::string()).field("seats", seats), given)
}

/// Plays one call of the tool, a yes to each check, and words for every other step.
#[derive(Debug)]
struct Script(Mutex<Option<String>>);

#[async_trait::async_trait]
impl Llm for Script {
    fn name(&self) -> String {
        "script".to_owned()
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        let call = (request.one_of.is_empty()).then(|| self.0.lock().unwrap().take()).flatten();
        let event = match call {
            Some(arguments) => {
                LlmEvent::Call(LlmCall { id: "c1".to_owned(), name: "book".to_owned(), arguments })
            }
            None if request.one_of.is_empty() => LlmEvent::Text("Well then.".to_owned()),
            None => LlmEvent::Text("yes".to_owned()),
        };
        Ok(futures::stream::iter([Ok(event), Ok(LlmEvent::Done)]).boxed())
    }
}

struct Silent;

impl Line for Silent {
    fn speak(&mut self, _speak: Speak) {}
}

struct Log(tokio::sync::mpsc::UnboundedSender<Value>);

impl Observer for Log {
    fn on_event(&mut self, line: &Value) {
        let mut line = line.clone();
        line.as_object_mut().unwrap().remove("t_ms");
        for time in ["onset_ms", "offset_ms", "earliest_ms", "latest_ms", "margin_ms", "onset_earliest_ms"] {
            line.as_object_mut().unwrap().remove(time);
        }
        let _ = self.0.send(line);
    }
}

fn agent_of(tool: Tool) -> Agent {
    Agent {
        name: "Desk".to_owned(),
        language: "en".to_owned(),
        greeting: None,
        instructions: String::new(),
        policy: Policy::default(),
        skills: vec![Skill { name: "desk".to_owned(), instructions: String::new(), tools: vec![tool] }],
    }
}

/// A chat in which the model calls the tool like this and the caller says yes to whatever is asked.
async fn chat(agent: Agent, arguments: &str) -> Vec<Value> {
    let (log, mut events) = tokio::sync::mpsc::unbounded_channel();
    let parts = Parts {
        agent: Arc::new(agent),
        llm: Arc::new(Script(Mutex::new(Some(arguments.to_owned())))),
        screen: None,
        line: Box::new(Silent),
        observers: vec![Box::new(Log(log))],
        call: "call".to_owned(),
        clock: Clock::start(),
    };
    let (driver, sender) = Driver::new(parts);
    let running = tokio::spawn(driver.run());
    let start = CallStart {
        transport: "chat".to_owned(),
        call: "call".to_owned(),
        language: "en".to_owned(),
        greeting: None,
        chat: true,
    };
    sender.send(Event::CallStarted(start)).await.unwrap();
    // Received in time: the core takes no message for later than it is.
    let received = Time::from_millis(1 << 40);
    let message = |text: &str| Event::Message { text: text.to_owned(), received };
    sender.send(message("book")).await.unwrap();
    let mut all = Vec::new();
    while let Some(line) = events.recv().await {
        match line["event"].as_str().unwrap() {
            "question.heard" => sender.send(message("yes")).await.unwrap(),
            "agent.heard" if line["text"] == "Well then." => sender.send(Event::HungUp).await.unwrap(),
            _ => {}
        }
        all.push(line);
    }
    drop(running.await.unwrap());
    all
}

#[tokio::test]
async fn vc_10_each_way_to_write_a_tool_behaves_the_same() {
    for arguments in [
        "{\"start\":\"noon\",\"seats\":\"3\"}",
        "{\"start\":\"noon\"}",
        "{\"seats\":3}",
        "{\"start\":\"noon\",\"seats\":9}",
    ] {
        let mut first: Option<(Vec<Value>, Vec<String>)> = None;
        for make in [typed, of_schema, of_fields] {
            let given = Given::default();
            // Inline, and a definition that is made once and used by two agents.
            let reusable = make(&given);
            for tool in [make(&given), reusable.clone(), reusable] {
                given.lock().unwrap().clear();
                let events = chat(agent_of(tool), arguments).await;
                let seen = (events, given.lock().unwrap().clone());
                assert_eq!(*first.get_or_insert_with(|| seen.clone()), seen, "{arguments}");
            }
        }
        let (events, given) = first.unwrap();
        let runs = given.iter().filter(|line| line.starts_with("run")).count();
        let asked = events.iter().any(|line| line["event"] == "question.heard");
        assert_eq!(runs, usize::from(asked), "{arguments}: {events:?}");
        assert_eq!(asked, arguments.contains("noon") && !arguments.contains('9'), "{arguments}");
    }
}

#[tokio::test]
async fn vc_10_a_tool_of_a_file_behaves_as_one_in_rust() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        [agent]
        name = "Desk"
        [llm]
        provider = "scripted"
        [[skill]]
        name = "desk"
        [[skill.tool]]
        name = "book"
        description = "Books."
        confirm = "Shall I book {{ seats }} at {{ start }}?"
        run = { reply = { message = "Booked {{ seats }} at {{ start }}." } }
        [skill.tool.input]
        type = "object"
        required = ["start"]
        properties = { start = { type = "string" }, seats = { type = "integer", minimum = 0, default = 1 } }
    "#;
    std::fs::write(folder.path().join("agent.toml"), text).unwrap();
    for arguments in ["{\"start\":\"noon\",\"seats\":\"3\"}", "{\"start\":\"noon\"}"] {
        let mut file = load(folder.path().join("agent.toml")).unwrap().agent;
        file.policy = Policy::default();
        let of_file = chat(file, arguments).await;
        assert_eq!(of_file, chat(agent_of(of_schema(&Given::default())), arguments).await, "{arguments}");
    }
}

#[tokio::test]
async fn vc_04_question_and_run_get_the_same_value() {
    let given = Given::default();
    chat(agent_of(of_fields(&given)), "{\"start\":\"noon\",\"seats\":\"3\"}").await;
    assert_eq!(*given.lock().unwrap(), ["question noon 3", "run noon 3"]);
}
