//! A recorded call told as a scenario: what the caller did and when, what the model, the check and the tools answered,
//! and what was decided. Personal details are replaced by neutral ones.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sayback_core::{
    CallId, CheckAnswer, CheckId, Event, GenerationId, ModelEvent, Time, ToolOutcome, Verdict,
};
use serde_json::{Value, json};

use super::recompute::{Line, recompute};
use super::{Bundle, BundleError};
use crate::scenario::AnchorEvent;

mod acts;
mod neutral;
mod openers;
mod written;

use acts::{Act, acts};
use neutral::Neutral;

/// Waits shorter than this are left out: they decide nothing.
const SHORT: Duration = Duration::from_millis(100);

/// One step of the model.
#[derive(Debug, Default)]
struct Step {
    asked: Time,
    first: Option<Time>,
    say: String,
    calls: Vec<(String, Value)>,
    say_after: String,
    failed: bool,
}

/// What a scenario is made of.
#[derive(Debug, Default)]
struct Told {
    steps: BTreeMap<GenerationId, Step>,
    checks: BTreeMap<CheckId, (Time, Option<(Time, CheckAnswer)>)>,
    /// Runs in order: the call, the tool, when it began.
    runs: Vec<(CallId, String, Time)>,
    ends: BTreeMap<CallId, (Time, ToolOutcome)>,
    inputs: Vec<(Time, Event)>,
}

/// Events that are decisions: the scenario goes to the last of them, and expects them.
const DECISIONS: [&str; 5] =
    ["question.heard", "question.dropped", "answer.checked", "tool.started", "tool.finished"];

/// A recorded call as a scenario's text. `agent` is the agent file as the scenario names it; words of `keep`, that file's
/// text, are no personal details.
///
/// # Errors
/// If the recording cannot be read, or does not come out as recorded: then there is nothing to reproduce.
pub fn as_scenario(bundle: &Bundle, agent: &str, keep: &str) -> Result<String, BundleError> {
    let again = recompute(bundle)?;
    if let Some(divergence) = again.divergence {
        let reason = "decided again, the call takes another course; see sayback replay".to_owned();
        let path = bundle.path(sayback_runtime::record::JOURNAL);
        return Err(BundleError::Broken { path, line: divergence.line, reason });
    }
    let shown = bundle.shown_events(&again);
    let mut told = gather(bundle);
    unmask(&mut told, &again.events, &shown);
    let name = |event: &Value| event["event"].as_str().unwrap_or_default().to_owned();
    let last = again.events.iter().rposition(|event| DECISIONS.contains(&name(event).as_str()));
    let events = last.map_or(again.events.as_slice(), |last| &again.events[..=last]);
    let acts = acts(&told.inputs, &again.events, events);
    let (texts, inputs) = details(&told, &acts);
    let mut neutral = Neutral::learn(keep, &texts, &inputs);
    let mut out = written::Toml::default();
    out.line(&format!("# Made from the recording {} by sayback replay --as-scenario.", bundle.sheet.call));
    out.line("# Names, numbers, addresses and sounds are replaced. Look it over before you share it.");
    out.text("title", &title(events));
    out.text("agent", agent);
    out.line("");
    out.line("[path]");
    out.text("transport", &bundle.sheet.transport);
    let source = events.iter().find(|e| e["event"] == "question.heard").and_then(|e| e["evidence"].as_str());
    if bundle.sheet.transport != "chat" && source.is_some_and(|source| source != "device") {
        out.text("evidence", source.unwrap_or_default());
    }
    for act in &acts {
        write_act(act, &mut neutral, &mut out);
    }
    write_model(&told, events, &mut neutral, &mut out);
    write_checks(&told, &mut out);
    write_tools(&told, &mut neutral, &mut out);
    write_expectations(events, &mut out);
    Ok(out.finish())
}

fn gather(bundle: &Bundle) -> Told {
    let mut told = Told::default();
    for line in bundle.journal.lines() {
        let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
        if let Some(event) = line.r#in {
            on_input(&mut told, line.t_us, &event);
            told.inputs.push((line.t_us, event));
        }
        if let Some(out) = line.out {
            on_output(&mut told, line.t_us, &out);
        }
    }
    told
}

fn on_output(told: &mut Told, at: Time, out: &Value) {
    let data = &out["data"];
    let id = |value: &Value| value.as_str().map(|id| CallId(id.to_owned()));
    match out["type"].as_str() {
        Some("generate") => {
            if let Ok(generation) = serde_json::from_value(data["generation"].clone()) {
                told.steps.insert(generation, Step { asked: at, ..Step::default() });
            }
        }
        Some("check") => {
            if let Ok(check) = serde_json::from_value(data["check"].clone()) {
                told.checks.insert(check, (at, None));
            }
        }
        Some("run_plain" | "run_confirmed") => {
            if let (Some(call), Some(tool)) = (id(&data["call"]), data["tool"]["name"].as_str()) {
                told.runs.push((call, tool.to_owned(), at));
            }
        }
        _ => {}
    }
}

fn on_input(told: &mut Told, at: Time, event: &Event) {
    if let Event::Checked { check, answer } = event
        && let Some((_, slot)) = told.checks.get_mut(check)
    {
        slot.get_or_insert((at, answer.clone()));
    } else if let Event::ToolFinished { call, outcome } = event {
        told.ends.entry(call.clone()).or_insert((at, outcome.clone()));
    } else if let Event::Model(model) = event {
        let generation = match model {
            ModelEvent::Text { generation, .. }
            | ModelEvent::Call { generation, .. }
            | ModelEvent::Finished { generation }
            | ModelEvent::Failed { generation, .. } => generation,
        };
        let Some(step) = told.steps.get_mut(generation) else { return };
        step.first.get_or_insert(at);
        match model {
            ModelEvent::Text { text, .. } if step.calls.is_empty() => step.say.push_str(text),
            ModelEvent::Text { text, .. } => step.say_after.push_str(text),
            ModelEvent::Call { call, .. } => {
                let input = serde_json::from_str(&call.input).unwrap_or_else(|_| json!(call.input));
                step.calls.push((call.name.clone(), input));
            }
            ModelEvent::Finished { .. } => {}
            ModelEvent::Failed { .. } => step.failed = true,
        }
    }
}

/// Sentences of the model's that were said, as the event log shows them: a journal without details has their shape only.
fn unmask(told: &mut Told, masked: &[Value], shown: &[Value]) {
    let said =
        |event: &Value| event["text"].as_str().filter(|_| event["event"] == "agent.said").map(str::to_owned);
    for (masked, shown) in masked.iter().filter_map(said).zip(shown.iter().filter_map(said)) {
        if masked != shown {
            for step in told.steps.values_mut() {
                step.say = step.say.replace(&masked, &shown);
                step.say_after = step.say_after.replace(&masked, &shown);
            }
        }
    }
}

/// All texts and inputs that may have personal details.
fn details(told: &Told, acts: &[Act]) -> (Vec<String>, Vec<Value>) {
    let mut texts: Vec<String> = acts.iter().filter_map(|act| act.words().map(str::to_owned)).collect();
    texts.extend(told.steps.values().flat_map(|step| [step.say.clone(), step.say_after.clone()]));
    let inputs = told.steps.values().flat_map(|step| step.calls.iter().map(|(_, input)| input.clone()));
    (texts, inputs.collect())
}

fn title(events: &[Value]) -> String {
    let last = events
        .iter()
        .rev()
        .find(|e| matches!(e["event"].as_str(), Some("tool.finished" | "question.dropped")));
    match last {
        Some(event) if event["event"] == "tool.finished" => {
            format!("From a recorded call: {} runs", event["tool"].as_str().unwrap_or_default())
        }
        Some(event) => {
            format!(
                "From a recorded call: the question is dropped, {}",
                event["reason"].as_str().unwrap_or_default()
            )
        }
        None => "From a recorded call".to_owned(),
    }
}

fn write_act(act: &Act, neutral: &mut Neutral, out: &mut written::Toml) {
    out.table("caller");
    out.text("after", &act.after);
    match &act.what {
        acts::What::Speech { text, length, transcript } => {
            out.text("text", &neutral.text(text));
            out.duration("length", *length);
            if *transcript >= Duration::from_millis(500) {
                out.duration("transcript_delay", *transcript);
            }
        }
        acts::What::Noise(length) => out.duration("noise", *length),
        acts::What::Message(text) => out.text("message", &neutral.text(text)),
        acts::What::Digit(digit) => out.text("dtmf", &digit.to_string()),
        acts::What::Hold(length) => out.duration("hold", *length),
        acts::What::HangUp => out.line("hangup = true"),
    }
}

/// Steps up to the last decision, and the one after it.
fn write_model(told: &Told, events: &[Value], neutral: &mut Neutral, out: &mut written::Toml) {
    let end = events.last().and_then(|event| event["t_ms"].as_f64()).unwrap_or(f64::MAX);
    let mut after = 0;
    for step in told.steps.values() {
        after += usize::from(step.asked.as_millis_f64() >= end);
        if after > 1 {
            break;
        }
        out.table("model");
        let said = step.say.trim();
        if !said.is_empty() || (step.calls.is_empty() && !step.failed) {
            out.text("say", &neutral.text(if said.is_empty() { "All right." } else { said }));
        }
        let calls: Vec<(String, Value)> =
            step.calls.iter().map(|(tool, input)| (tool.clone(), neutral.value(input))).collect();
        out.calls(&calls);
        if !step.say_after.trim().is_empty() && !calls.is_empty() {
            out.text("say_after", &neutral.text(step.say_after.trim()));
        }
        let delay = step.first.map_or(Duration::ZERO, |first| first.since(step.asked));
        if delay >= SHORT {
            out.duration("delay", delay);
        }
        if step.failed {
            out.text("error", "the model failed");
        }
    }
}

fn write_checks(told: &Told, out: &mut written::Toml) {
    for (asked, answered) in told.checks.values() {
        out.table("check");
        let Some((at, answer)) = answered else {
            out.text("error", "timeout");
            continue;
        };
        match answer {
            CheckAnswer::Verdict { verdict } => out.text("verdict", word(*verdict)),
            CheckAnswer::Vetoed { .. } => out.text("verdict", "yes"),
            CheckAnswer::Failed { .. } => out.text("error", "the check failed"),
        }
        if at.since(*asked) >= SHORT {
            out.duration("delay", at.since(*asked));
        }
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::Unclear => "unclear",
    }
}

fn write_tools(told: &Told, neutral: &mut Neutral, out: &mut written::Toml) {
    for (call, tool, began) in &told.runs {
        out.table("tool");
        out.text("name", tool);
        let Some((at, outcome)) = told.ends.get(call) else {
            out.text("error", "timeout");
            continue;
        };
        let (ok, message) = match outcome {
            ToolOutcome::Done { message } | ToolOutcome::Asks { message, .. } => (true, message.as_str()),
            ToolOutcome::Failed { message } | ToolOutcome::NotRun { message } => (false, message.as_str()),
            ToolOutcome::Unknown => {
                out.text("error", "timeout");
                continue;
            }
        };
        out.value("result", &json!({"ok": ok, "message": neutral.text(message)}));
        if at.since(*began) >= SHORT {
            out.duration("delay", at.since(*began));
        }
    }
}

/// The decisions, in order, and that nothing else ran.
fn write_expectations(events: &[Value], out: &mut written::Toml) {
    let mut asked = BTreeSet::new();
    let mut ran: BTreeMap<&str, u32> = BTreeMap::new();
    for event in events {
        let text = |key: &str| event[key].as_str();
        let fields: &[&str] = match text("event") {
            Some("question.held") => {
                asked.extend(text("tool"));
                continue;
            }
            Some("question.heard") => &["question"],
            Some("question.dropped") => &["question", "reason"],
            Some("answer.checked") => &["question", "verdict"],
            Some("tool.started") => {
                *ran.entry(text("tool").unwrap_or_default()).or_default() += 1;
                &["tool"]
            }
            Some("tool.finished") => &["tool", "outcome"],
            _ => continue,
        };
        out.table("expect");
        out.text("event", text("event").unwrap_or_default());
        for field in fields {
            out.text(field, text(field).unwrap_or_default());
        }
    }
    for (tool, count) in &ran {
        out.table("expect");
        out.text("event", "tool.started");
        out.text("tool", tool);
        out.line(&format!("count = {count}"));
    }
    for tool in asked.iter().filter(|tool| !ran.contains_key(*tool)) {
        out.table("expect");
        out.text("never", "tool.started");
        out.text("tool", tool);
    }
}

/// Whether an event can be waited for.
fn anchor(event: &Value) -> Option<AnchorEvent> {
    AnchorEvent::ALL.into_iter().find(|anchor| event["event"] == anchor.name())
}
