//! `sayback conform adk FILE`: transcripts of Google's ADK, played against our text sessions.
//!
//! A transcript holds the model's steps, what the user sent, the events that came of it and what ran. The tools and their
//! rules are not in it: they are the three of the ADK's own demonstrations, with a rule that fits the transcript. Where
//! `ours` says that we differ, the transcript is changed to what must come instead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sayback_agentfile::{ToolBuilder, ToolInputError};
use sayback_core::Policy;
use sayback_providers::scripted::{Scripted, ScriptedStep};
use sayback_runtime::agent::{Agent, ApprovalRule, RunContext, Skill, Tool, ToolOutput};
use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::llm::{Llm, LlmCall};
use sayback_runtime::switchboard::{Asked, Desk, Desks, NotNow};
use sayback_server::adk::{Content, SessionKey, Sessions};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::engines::Waits;
use crate::exit::Stop;

const PENDING: &str = "This tool call requires confirmation, please approve or reject.";
const HINT: &str = "Please approve or reject the tool call transfer_money() by responding with a FunctionResponse with an \
                    expected ToolConfirmation payload.";

/// A transcript.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    case: String,
    #[serde(default)]
    note: String,
    #[expect(dead_code, reason = "the version that the transcript is of")]
    adk: String,
    model_script: Vec<Vec<Value>>,
    turns: Vec<Turn>,
    ours: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Turn {
    user: User,
    events: Vec<Map<String, Value>>,
    error: Option<Value>,
    handler_runs_so_far: Vec<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct User {
    text: Option<String>,
    function_responses: Option<Vec<Value>>,
}

/// How ours differs, on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ours {
    Same,
    StrictBoolean,
    ValidatesFirst,
    RuleAsks,
}

/// Which transfers an operator must approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    AboveAHundred,
    Always,
    GivesNothing,
    Fails,
}

impl ApprovalRule for Rule {
    fn needed(&self, input: &Value) -> Result<Value, String> {
        match self {
            Self::AboveAHundred => Ok(json!(input["amount"].as_f64().is_none_or(|amount| amount > 100.0))),
            Self::Always => Ok(json!(true)),
            Self::GivesNothing => Ok(Value::Null),
            Self::Fails => Err("policy down".to_owned()),
        }
    }
}

/// What ran, in order.
type Runs = Arc<Mutex<Vec<Value>>>;

fn note(runs: &Runs, run: Value) {
    runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
}

pub(super) fn run(file: &Path) -> Result<(usize, usize), Stop> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Stop::unusable(format!("{}: cannot be read: {error}", file.display())))?;
    let mut cases: Vec<Case> = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let case = serde_json::from_str(line).map_err(|error| {
            Stop::unusable(format!("{}:{}:{}: {error}", file.display(), at + 1, error.column()))
        })?;
        cases.push(case);
    }
    let waits = Waits::new()?;
    let mut failed = 0;
    for case in &cases {
        let played = waits
            .runtime()
            .block_on(async { tokio::time::timeout(Duration::from_secs(60), play(case)).await });
        let why = match played {
            Ok(Ok(())) => continue,
            Ok(Err(why)) => why,
            Err(_) => "it came to no end".to_owned(),
        };
        failed += 1;
        out!("{}: {why}\n  ({})", case.case, case.note);
    }
    Ok((cases.len() - failed, failed))
}

impl Case {
    fn ours(&self) -> Result<Ours, String> {
        let ours = self.ours.as_str();
        Ok(match ours {
            _ if ours.starts_with("same") => Ours::Same,
            _ if ours.contains("must be a JSON boolean") => Ours::StrictBoolean,
            _ if ours.contains("input is validated first") => Ours::ValidatesFirst,
            _ if ours.starts_with("differs: a policy") => Ours::RuleAsks,
            _ => return Err(format!("this difference is not known here: {ours}")),
        })
    }

    /// The rule that fits the transcript.
    fn rule(&self) -> Rule {
        if self.case.starts_with("policy_returns_none") {
            return Rule::GivesNothing;
        }
        if self.case.starts_with("policy_raises") {
            return Rule::Fails;
        }
        let requests = self.turns.iter().flat_map(|turn| &turn.events).flat_map(parts);
        let small = requests
            .filter_map(|part| {
                part["functionCall"]["args"]["originalFunctionCall"]["args"]["amount"].as_f64()
            })
            .any(|amount| amount <= 100.0);
        // A call without an amount is no sign of either.
        if small && self.ours() != Ok(Ours::ValidatesFirst) { Rule::Always } else { Rule::AboveAHundred }
    }

    fn steps(&self) -> Vec<ScriptedStep> {
        let mut calls = 0;
        let mut step = |items: &Vec<Value>| {
            let mut step = ScriptedStep::default();
            for item in items {
                match item.as_str() {
                    Some(text) => step.say = text.to_owned(),
                    None => {
                        calls += 1;
                        step.calls.push(LlmCall {
                            id: format!("model-{calls}"),
                            name: item["call"].as_str().unwrap_or_default().to_owned(),
                            arguments: item["args"].to_string(),
                        });
                    }
                }
            }
            step
        };
        self.model_script.iter().map(&mut step).collect()
    }

    /// What must come of a turn with us.
    fn expected(&self, turn: &Turn) -> Result<Turn, String> {
        let mut turn = turn.clone();
        let event = |parts: Value| {
            Map::from_iter([("author".to_owned(), json!("bank")), ("parts".to_owned(), parts)])
        };
        let call = turn.events.first().cloned();
        match self.ours()? {
            Ours::Same => {}
            Ours::StrictBoolean => {
                let answers = turn.user.function_responses.iter().flatten();
                let loose = answers
                    .filter_map(|answer| answer["response"].get("confirmed"))
                    .any(|confirmed| !confirmed.is_boolean());
                if loose {
                    turn.events.clear();
                    turn.error = Some(json!("refused"));
                    turn.handler_runs_so_far.clear();
                }
            }
            Ours::ValidatesFirst => {
                let fault = json!([{ "functionResponse": {
                    "id": "fc-1", "name": "transfer_money", "response": { "error": ANY_FAULT },
                } }]);
                turn.events =
                    call.into_iter().chain([event(fault), event(json!([{ "text": "done" }]))]).collect();
                turn.error = None;
            }
            Ours::RuleAsks => {
                let asked = json!({ "hint": HINT, "confirmed": false });
                let args = call
                    .as_ref()
                    .map(|call| parts(call).next().unwrap_or_default()["functionCall"]["args"].clone());
                let request = json!([{ "functionCall": { "id": "fc-2", "name": "adk_request_confirmation", "args": {
                    "originalFunctionCall": { "id": "fc-1", "args": args, "name": "transfer_money" },
                    "toolConfirmation": asked,
                } } }]);
                let pending = json!([{ "functionResponse": {
                    "id": "fc-1", "name": "transfer_money", "response": { "error": PENDING },
                } }]);
                let (mut request, mut pending) = (event(request), event(pending));
                request.insert("longRunningToolIds".to_owned(), json!(["fc-2"]));
                pending.insert("skipSummarization".to_owned(), json!(true));
                pending.insert("requestedToolConfirmations".to_owned(), json!({ "fc-1": asked }));
                turn.events = call.into_iter().chain([request, pending]).collect();
                (turn.error, turn.handler_runs_so_far) = (None, Vec::new());
            }
        }
        Ok(turn)
    }
}

/// Stands for the words of a validation error, which are ours.
const ANY_FAULT: &str = "(a fault)";

fn parts(event: &Map<String, Value>) -> impl Iterator<Item = Value> {
    event.get("parts").and_then(Value::as_array).cloned().unwrap_or_default().into_iter()
}

/// The ids of a session, as transcripts count them: by the first call that has them.
#[derive(Debug, Default)]
struct Ids {
    by_ours: BTreeMap<String, String>,
}

impl Ids {
    /// One of our events in the transcript's form.
    fn told(&mut self, event: &Value) -> Map<String, Value> {
        for part in event["content"]["parts"].as_array().into_iter().flatten() {
            if let Some(id) = part["functionCall"]["id"].as_str() {
                let next = format!("fc-{}", self.by_ours.len() + 1);
                self.by_ours.entry(id.to_owned()).or_insert(next);
            }
        }
        let mut told = Map::new();
        told.insert("author".to_owned(), event["author"].clone());
        told.insert("parts".to_owned(), self.named(&event["content"]["parts"]));
        if let Some(ids) = event.get("longRunningToolIds") {
            told.insert("longRunningToolIds".to_owned(), self.named(ids));
        }
        for key in ["skipSummarization", "requestedToolConfirmations"] {
            let value = &event["actions"][key];
            if value.as_object().map_or(!value.is_null(), |fields| !fields.is_empty()) {
                told.insert(key.to_owned(), self.named(value));
            }
        }
        if let Some(error) = event.get("errorMessage") {
            told.insert("errorMessage".to_owned(), error.clone());
        }
        told
    }

    fn named(&self, value: &Value) -> Value {
        let name = |text: &String| self.by_ours.get(text).unwrap_or(text).clone();
        match value {
            Value::String(text) => Value::String(name(text)),
            Value::Array(items) => items.iter().map(|item| self.named(item)).collect(),
            Value::Object(fields) => {
                let named = fields.iter().map(|(key, value)| (name(key), self.named(value)));
                Value::Object(named.collect())
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other.clone(),
        }
    }

    /// Our id for one of the transcript's.
    fn ours(&self, theirs: &str) -> String {
        let found = self.by_ours.iter().find(|(_, name)| *name == theirs);
        found.map_or_else(|| theirs.to_owned(), |(ours, _)| ours.clone())
    }
}

async fn play(case: &Case) -> Result<(), String> {
    let runs = Runs::default();
    let agent = agent(case, &runs)?;
    let steps = case.steps();
    let queue = ApprovalQueue::default();
    let sessions = Sessions::new(Arc::new(OneDesk(Arc::new(desk(agent, steps)))), queue.clone());
    let made = sessions.create(("demo", "u"), None, json!({})).await.map_err(|error| error.to_string())?;
    let id = made["id"].as_str().unwrap_or_default().to_owned();
    let key = SessionKey { app: "demo".to_owned(), user: "u".to_owned(), id };
    let mut ids = Ids::default();
    for (at, turn) in case.turns.iter().enumerate() {
        let expected = case.expected(turn)?;
        let content = content(&turn.user, &ids)?;
        let came = sessions.run(&key, &content, "u").await;
        let (events, error) = match came {
            Ok(run) => (run.all().await, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let told: Vec<_> = events.iter().map(|event| ids.told(event)).collect();
        let ran = runs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        compare(&expected, &told, error.as_deref(), &ran).map_err(|why| format!("turn {}: {why}", at + 1))?;
    }
    let open = queue.open().await.map_err(|error| error.to_string())?.len();
    if case.ours()? == Ours::StrictBoolean && open != 1 {
        return Err(format!("the request does not stay open: {open} wait"));
    }
    Ok(())
}

fn content(user: &User, ids: &Ids) -> Result<Content, String> {
    let texts = user.text.iter().map(|text| json!({ "text": text }));
    let answers = user.function_responses.iter().flatten().map(|answer| {
        let mut answer = answer.clone();
        answer["id"] = json!(ids.ours(answer["id"].as_str().unwrap_or_default()));
        json!({ "functionResponse": answer })
    });
    let parts: Vec<Value> = texts.chain(answers).collect();
    serde_json::from_value(json!({ "role": "user", "parts": parts })).map_err(|error| error.to_string())
}

fn compare(
    expected: &Turn,
    told: &[Map<String, Value>],
    error: Option<&str>,
    ran: &[Value],
) -> Result<(), String> {
    if expected.error.is_some() != error.is_some() {
        return Err(format!("expected the error {:?}, found {error:?}", expected.error));
    }
    let (wanted, found) = (expected.events.iter().map(settled), told.iter().map(settled));
    let (wanted, found): (Vec<Value>, Vec<Value>) = (wanted.collect(), found.collect());
    for (at, (wanted, found)) in wanted.iter().zip(&found).enumerate() {
        if !fits(wanted, found) {
            return Err(format!("event {}\n  expected {wanted}\n  found    {found}", at + 1));
        }
    }
    if wanted.len() != found.len() {
        return Err(format!("expected {} events, found {}: {}", wanted.len(), found.len(), json!(found)));
    }
    // Runs of one message go side by side.
    let in_order = |runs: &[Value]| runs.iter().map(Value::to_string).collect::<BTreeSet<_>>();
    if in_order(&expected.handler_runs_so_far) != in_order(ran)
        || expected.handler_runs_so_far.len() != ran.len()
    {
        return Err(format!(
            "expected the runs {}, found {}",
            json!(expected.handler_runs_so_far),
            json!(ran)
        ));
    }
    Ok(())
}

/// An event without what has no order.
fn settled(event: &Map<String, Value>) -> Value {
    let mut event = event.clone();
    if let Some(ids) = event.get_mut("longRunningToolIds") {
        let sorted: BTreeSet<String> =
            ids.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        *ids = json!(sorted);
    }
    Value::Object(event)
}

fn fits(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::String(fault), Value::String(text)) if fault == ANY_FAULT => {
            !text.is_empty() && text != PENDING
        }
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(wanted, found)| fits(wanted, found))
        }
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.len() == found.len()
                && wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| fits(value, found)))
        }
        (wanted, found) => wanted == found,
    }
}

/// The bank of the demonstrations.
fn agent(case: &Case, runs: &Runs) -> Result<Agent, String> {
    let tools = [transfer(case.rule(), runs), look(runs), timeoff(runs)];
    let tools = tools.into_iter().collect::<Result<Vec<Tool>, _>>().map_err(|error| error.to_string())?;
    Ok(Agent {
        name: "bank".to_owned(),
        language: "en".to_owned(),
        greeting: None,
        instructions: String::new(),
        policy: Policy::default(),
        skills: vec![Skill { name: "bank".to_owned(), instructions: String::new(), tools }],
    })
}

fn schema(fields: &[(&str, &str)]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind }))).collect();
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn done(value: &Value) -> Result<ToolOutput, ToolInputError> {
    Ok(ToolOutput { ok: true, message: value.to_string() })
}

fn transfer(rule: Rule, runs: &Runs) -> Result<Tool, sayback_agentfile::BuildError> {
    let runs = Arc::clone(runs);
    ToolBuilder::new("transfer_money")
        .describe("Transfer money.")
        .schema(schema(&[("amount", "integer"), ("to", "string")]))
        .approval(Arc::new(rule))
        .on_submit(move |input: Value, _: RunContext| {
            note(&runs, json!(["transfer", input["amount"], input["to"]]));
            let sent = done(&json!({ "status": "sent", "amount": input["amount"], "to": input["to"] }));
            async { sent }
        })
        .build()
}

fn look(runs: &Runs) -> Result<Tool, sayback_agentfile::BuildError> {
    let runs = Arc::clone(runs);
    ToolBuilder::new("look")
        .describe("Looks something up.")
        .schema(schema(&[("x", "string")]))
        .on_submit(move |input: Value, _: RunContext| {
            note(&runs, json!(["look", input["x"]]));
            let found = done(&json!({ "x": input["x"] }));
            async { found }
        })
        .build()
}

/// Asks out of its own run, and is run again with the answer.
fn timeoff(runs: &Runs) -> Result<Tool, sayback_agentfile::BuildError> {
    let runs = Arc::clone(runs);
    ToolBuilder::new("timeoff")
        .describe("Asks for days off.")
        .schema(schema(&[("days", "integer")]))
        .on_submit(move |input: Value, context: RunContext| {
            let answer = context.confirmation.as_ref().map(
                |answer| json!({ "hint": "", "confirmed": answer.confirmed, "payload": answer.payload }),
            );
            note(&runs, json!(["timeoff", input["days"], answer]));
            let came = match context.confirmation.as_ref() {
                None => {
                    context.request_confirmation("mgr", Some(json!({ "approved_days": 0 })));
                    json!({ "status": "pending" })
                }
                Some(answer) if answer.confirmed => json!({ "ok": answer.payload }),
                Some(_) => json!({ "error": "no" }),
            };
            let came = done(&came);
            async { came }
        })
        .build()
}

fn desk(agent: Agent, steps: Vec<ScriptedStep>) -> Desk {
    let llm = move || Arc::new(Scripted::new(steps.clone(), Vec::new())) as Arc<dyn Llm>;
    Desk::silent(agent, Arc::new(llm))
}

#[derive(Debug)]
struct OneDesk(Arc<Desk>);

#[async_trait::async_trait]
impl Desks for OneDesk {
    async fn find(&self, _asked: &Asked) -> Result<Arc<Desk>, NotNow> {
        Ok(Arc::clone(&self.0))
    }
}
