//! A conversation as ADK events: what the core is told and wants, in the shapes that ADK clients know.
//!
//! One event for a whole step of the model, one for the results of its calls, one for the requests for confirmation. A
//! step's events are told when each of its calls has a result or waits; what an answer sets going is told together.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sayback_core::{
    ApprovalId, ApprovalOutcome, ApprovalWish, Command, Event, GenerationId, ModelEvent, Output, PastRun,
    Prepared, Report, Session, Speak, Time, ToolCall, ToolOutcome, UtteranceKind,
};
use sayback_runtime::approver::queue_id;
use sayback_runtime::clock::{Clock, unix_millis};
use sayback_runtime::driver::Observer;
use sayback_runtime::line::Line;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::kept::{Known, Told as Kept};
use super::message::REQUEST;

const PENDING: &str = "This tool call requires confirmation, please approve or reject.";
const REJECTED: &str = "This tool call is rejected.";

/// Where a run has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// Messages and answers that the call has taken.
    pub(super) taken: u64,
    /// Nothing goes on.
    pub(super) idle: bool,
    /// The call is over.
    pub(super) over: bool,
}

/// The log of one session. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Log {
    told: Arc<Mutex<Told>>,
    clock: Clock,
    reached: watch::Sender<Reached>,
    /// How many events are stored, for a log that is.
    saved: Option<watch::Sender<usize>>,
}

/// A log at rest, to be stored once its conversation is.
#[derive(Debug)]
pub(super) struct Rest {
    /// Items of the conversation.
    items: usize,
    /// Events of the log.
    pub(super) events: usize,
    pub(super) kept: Kept,
}

#[derive(Debug)]
struct Told {
    session: String,
    agent: String,
    invocation: u64,
    events: Vec<Value>,
    step: Option<Step>,
    /// Calls that an answer set going, with what came of them, in the order of the calls.
    resumed: BTreeMap<usize, (ToolCall, Option<Value>)>,
    /// Every call so far.
    calls: Vec<ToolCall>,
    /// Every request so far.
    requests: BTreeMap<ApprovalId, Known>,
    taken: u64,
    /// Not stored yet, oldest first.
    rests: VecDeque<Rest>,
}

/// A step of the model.
#[derive(Debug)]
struct Step {
    generation: GenerationId,
    text: String,
    /// What was said of it, where a question cuts the rest.
    said: Vec<String>,
    asks: bool,
    calls: Vec<ToolCall>,
    finished: bool,
    results: BTreeMap<String, Value>,
    requests: Vec<Request>,
}

#[derive(Debug)]
struct Request {
    wish: ApprovalWish,
    /// The tool asked by itself: its result stands, and the model goes on.
    inside: bool,
}

impl Log {
    /// The log of a session that begins.
    pub(super) fn new(session: &str, agent: &str, clock: Clock) -> Self {
        let told = Told {
            session: session.to_owned(),
            agent: agent.to_owned(),
            invocation: 0,
            events: Vec::new(),
            step: None,
            resumed: BTreeMap::new(),
            calls: Vec::new(),
            requests: BTreeMap::new(),
            taken: 0,
            rests: VecDeque::new(),
        };
        let reached = watch::Sender::new(Reached::default());
        Self { told: Arc::new(Mutex::new(told)), clock, reached, saved: None }
    }

    /// The same, that is stored; `kept` is what is stored of it so far.
    pub(super) fn stored(self, kept: Kept) -> Self {
        let saved = Some(watch::Sender::new(kept.events.len()));
        let mut told = self.told();
        (told.invocation, told.events, told.calls) = (kept.invocation, kept.events, kept.calls);
        told.requests = kept.requests.into_iter().collect();
        drop(told);
        Self { saved, ..self }
    }

    /// What came of runs that an earlier process had begun.
    pub(super) fn know_past(&self, runs: &[PastRun]) {
        let mut told = self.told();
        for run in runs {
            told.resume(&run.call.0, Some(told_of(&run.outcome)));
        }
    }

    /// How it was left when its conversation had so many items; those from before are let go of.
    pub(super) fn rest_at(&self, items: usize) -> Option<Rest> {
        let mut told = self.told();
        let mut found = None;
        while told.rests.front().is_some_and(|rest| rest.items <= items) {
            found = told.rests.pop_front();
        }
        found
    }

    /// So many of its events need not be waited for any more.
    pub(super) fn saved(&self, events: usize) {
        if let Some(saved) = &self.saved {
            saved.send_modify(|saved| *saved = events.max(*saved));
        }
    }

    /// Whether all of it is stored.
    pub(super) fn is_stored(&self) -> bool {
        self.saved.as_ref().is_some_and(|saved| *saved.borrow() >= self.len())
    }

    /// How many of its events are stored; `None`: they are not to be.
    pub(super) fn saving(&self) -> Option<watch::Receiver<usize>> {
        self.saved.as_ref().map(watch::Sender::subscribe)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of its conversation.
    pub(super) fn session(&self) -> String {
        self.told().session.clone()
    }

    pub(super) fn reached(&self) -> watch::Receiver<Reached> {
        self.reached.subscribe()
    }

    /// Now, as the conversation counts.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The events from one on.
    pub(super) fn since(&self, from: usize) -> Vec<Value> {
        self.told().events.get(from..).unwrap_or_default().to_vec()
    }

    pub(super) fn len(&self) -> usize {
        self.told().events.len()
    }

    /// What the user sent, and a new invocation.
    pub(super) fn user(&self, content: Value) {
        let mut told = self.told();
        told.invocation += 1;
        told.push("user", "user", &content["parts"].clone(), Map::new());
    }

    pub(super) fn asked(&self) -> Vec<ApprovalId> {
        self.told().requests.keys().copied().collect()
    }

    /// Whether there is such a call.
    pub(super) fn knows_call(&self, id: &str) -> bool {
        self.told().calls.iter().any(|call| call.id.0 == id)
    }
}

impl Told {
    fn push(&mut self, author: &str, role: &str, parts: &Value, more: Map<String, Value>) {
        let mut event = json!({
            "id": format!("{}-{}", self.session, self.events.len()),
            "invocationId": format!("{}-i{}", self.session, self.invocation),
            "author": author,
            "timestamp": unix_millis() as f64 / 1_000.0,
            "content": { "role": role, "parts": parts },
            "actions": {
                "stateDelta": {}, "artifactDelta": {}, "requestedAuthConfigs": {}, "requestedToolConfirmations": {},
            },
        });
        for (key, value) in more {
            if let Some(actions) = event["actions"].as_object_mut()
                && (key == "skipSummarization" || key == "requestedToolConfirmations")
            {
                actions.insert(key, value);
            } else {
                event[key] = value;
            }
        }
        self.events.push(event);
    }

    fn tell(&mut self, role: &str, parts: Vec<Value>, more: Map<String, Value>) {
        let author = self.agent.clone();
        self.push(&author, role, &Value::Array(parts), more);
    }

    fn on_model(&mut self, event: &ModelEvent) {
        let generation = match event {
            ModelEvent::Text { generation, .. }
            | ModelEvent::Call { generation, .. }
            | ModelEvent::Finished { generation }
            | ModelEvent::Failed { generation, .. } => *generation,
        };
        let Some(step) = self.step.as_mut().filter(|step| step.generation == generation && !step.finished)
        else {
            return;
        };
        match event {
            ModelEvent::Text { text, .. } => step.text.push_str(text),
            ModelEvent::Call { call, .. } => {
                step.calls.push(call.clone());
                self.calls.push(call.clone());
            }
            ModelEvent::Finished { .. } => step.finished = true,
            ModelEvent::Failed { error, .. } => {
                self.step = None;
                let more = [("errorCode", json!("MODEL_FAILED")), ("errorMessage", json!(error))];
                self.tell(
                    "model",
                    Vec::new(),
                    more.map(|(key, value)| (key.to_owned(), value)).into_iter().collect(),
                );
            }
        }
    }

    /// A call has a result: of the step that goes on, or one that an answer set going.
    fn on_result(&mut self, call: &str, result: Value) {
        if let Some((_, slot)) =
            self.resumed.values_mut().find(|(resumed, slot)| resumed.id.0 == call && slot.is_none())
        {
            *slot = Some(result);
        } else if let Some(step) = self.step.as_mut().filter(|step| step.calls.iter().any(|c| c.id.0 == call))
        {
            step.results.insert(call.to_owned(), result);
        }
    }

    fn resume(&mut self, call: &str, result: Option<Value>) {
        let found = self.calls.iter().enumerate().rev().find(|(_, known)| known.id.0 == call);
        if let Some((at, known)) = found {
            let in_step = self.step.as_ref().is_some_and(|step| step.calls.iter().any(|c| c.id.0 == call));
            if !in_step {
                self.resumed.entry(at).or_insert((known.clone(), result));
            }
        }
    }

    fn on_request(&mut self, wish: &ApprovalWish) {
        // One of a session that goes on: it was told before.
        if self.requests.contains_key(&wish.approval) {
            return;
        }
        let request = |inside| Request { wish: wish.clone(), inside };
        let mut inside = false;
        if let Some(step) = self.step.as_mut().filter(|step| step.calls.iter().any(|c| c.id == wish.call)) {
            inside = step.results.contains_key(&wish.call.0);
            step.requests.push(request(inside));
        } else if self.resumed.values().any(|(call, _)| call.id == wish.call) {
            // A run that an answer set going asks once more.
            inside = true;
            let session = self.session.clone();
            let (parts, ids) = request_parts(&session, &[request(true)]);
            self.tell("user", parts, Map::from_iter([("longRunningToolIds".to_owned(), ids)]));
        } else {
            // The conversation was stored with it, and the process ended before it was told.
            self.tell_left(request(false));
        }
        self.requests.insert(wish.approval, Known { call: wish.call.0.clone(), inside, settled: false });
    }

    /// Tells what is complete.
    fn flush(&mut self) {
        if !self.resumed.is_empty() && self.resumed.values().all(|(_, result)| result.is_some()) {
            let resumed = std::mem::take(&mut self.resumed).into_values();
            let parts = resumed.map(|(call, result)| response(&call, &result.unwrap_or_default())).collect();
            self.tell("user", parts, Map::new());
        }
        let settled = |step: &Step, call: &ToolCall| {
            step.results.contains_key(&call.id.0) || step.requests.iter().any(|r| r.wish.call == call.id)
        };
        let complete = |step: &mut Step| step.finished && step.calls.iter().all(|call| settled(step, call));
        if let Some(mut step) = self.step.take_if(complete) {
            // Calls are looked at side by side; what is told of them stands in their order.
            let place = |request: &Request| step.calls.iter().position(|call| call.id == request.wish.call);
            step.requests.sort_by_key(place);
            self.tell_step(step);
        }
    }

    fn tell_left(&mut self, request: Request) {
        let ApprovalWish { call, tool, input, .. } = &request.wish;
        let call = ToolCall { id: call.clone(), name: tool.name.clone(), input: input.json.clone() };
        self.calls.push(call.clone());
        let step = Step {
            generation: GenerationId::default(),
            text: String::new(),
            said: Vec::new(),
            asks: false,
            calls: vec![call],
            finished: true,
            results: BTreeMap::new(),
            requests: vec![request],
        };
        self.tell_step(step);
    }

    /// Notes how it stands, if that is something new.
    fn rest(&mut self, items: usize) {
        let events = self.events.len();
        if self.rests.back().is_some_and(|rest| rest.events == events && rest.items == items) {
            return;
        }
        let kept = Kept {
            state: Value::Null,
            invocation: self.invocation,
            events: self.events.clone(),
            // What they were called with stands in the events.
            calls: self.calls.iter().map(|call| ToolCall { input: String::new(), ..call.clone() }).collect(),
            requests: self.requests.iter().map(|(id, known)| (*id, known.clone())).collect(),
        };
        self.rests.push_back(Rest { items, events, kept });
    }

    fn tell_step(&mut self, step: Step) {
        let text = if step.asks { step.said.join(" ") } else { step.text.trim().to_owned() };
        let mut parts = Vec::new();
        if !text.is_empty() {
            parts.push(json!({ "text": text }));
        }
        parts.extend(step.calls.iter().map(|call| {
            json!({ "functionCall": { "id": call.id, "name": call.name, "args": arguments(&call.input) } })
        }));
        if !parts.is_empty() {
            self.tell("model", parts, Map::new());
        }
        if step.calls.is_empty() {
            return;
        }
        let confirmations: Map<String, Value> = step
            .requests
            .iter()
            .map(|request| (request.wish.call.0.clone(), confirmation(&request.wish)))
            .collect();
        let gated = step.requests.len() == step.calls.len();
        let waits = step.requests.iter().all(|request| !request.inside);
        let mut more = Map::new();
        if !confirmations.is_empty() {
            more.insert("requestedToolConfirmations".to_owned(), Value::Object(confirmations));
            if gated && waits {
                more.insert("skipSummarization".to_owned(), json!(true));
            }
        }
        let pending = json!({ "error": PENDING });
        let results = step
            .calls
            .iter()
            .map(|call| response(call, step.results.get(&call.id.0).unwrap_or(&pending)))
            .collect();
        let (requests, ids) = request_parts(&self.session, &step.requests);
        let ids = Map::from_iter([("longRunningToolIds".to_owned(), ids)]);
        // Where every call waits, the request comes first; beside others their results do (ADK-07).
        match (requests.is_empty(), gated) {
            (true, _) => self.tell("user", results, more),
            (false, true) => {
                self.tell("user", requests, ids);
                self.tell("user", results, more);
            }
            (false, false) => {
                self.tell("user", results, more);
                self.tell("user", requests, ids);
            }
        }
    }
}

fn request_parts(session: &str, requests: &[Request]) -> (Vec<Value>, Value) {
    let id = |request: &Request| queue_id(session, request.wish.approval);
    let part = |request: &Request| {
        let ApprovalWish { call, tool, input, .. } = &request.wish;
        json!({ "functionCall": {
            "id": id(request),
            "name": REQUEST,
            "args": {
                "originalFunctionCall": { "id": call, "args": arguments(&input.json), "name": tool.name },
                "toolConfirmation": confirmation(&request.wish),
            },
        } })
    };
    (requests.iter().map(part).collect(), requests.iter().map(id).collect())
}

fn confirmation(wish: &ApprovalWish) -> Value {
    let mut confirmation = json!({ "hint": wish.hint, "confirmed": false });
    if let Some(payload) = &wish.payload {
        confirmation["payload"] = arguments(payload);
    }
    confirmation
}

fn response(call: &ToolCall, result: &Value) -> Value {
    json!({ "functionResponse": { "id": call.id, "name": call.name, "response": result } })
}

fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!({ "text": text }))
}

/// What is told of a run.
fn told_of(outcome: &ToolOutcome) -> Value {
    match outcome {
        ToolOutcome::Done { message } | ToolOutcome::Asks { message, .. } => result_of(message),
        ToolOutcome::Failed { message } | ToolOutcome::NotRun { message } => json!({ "error": message }),
        ToolOutcome::Unknown => json!({ "error": "No answer came: it is unknown whether this happened." }),
    }
}

/// A tool's answer: a JSON object as it is, else under `result`.
fn result_of(message: &str) -> Value {
    match serde_json::from_str(message) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        Ok(_) | Err(_) => json!({ "result": message }),
    }
}

impl Observer for Log {
    fn on_input(&mut self, _at: Time, event: &Event) {
        let mut told = self.told();
        if let Event::Model(event) = event {
            told.on_model(event);
        } else if let Event::Prepared { call, outcome: Prepared::Refused { message, .. } } = event {
            told.on_result(&call.0, json!({ "error": message }));
        } else if let Event::ToolFinished { call, outcome } = event {
            told.on_result(&call.0, told_of(outcome));
        } else if let Event::Approvals(settled) = event {
            told.taken += 1;
            for settled in settled {
                let Some(known) = told.requests.get_mut(&settled.approval).filter(|known| !known.settled)
                else {
                    continue;
                };
                known.settled = true;
                let call = known.call.clone();
                let refused = match &settled.outcome {
                    ApprovalOutcome::Answered { .. } => continue,
                    ApprovalOutcome::Expired => "Nobody answered in time.",
                    ApprovalOutcome::Failed { .. } => "No operator could be asked.",
                };
                told.resume(&call, Some(json!({ "error": refused })));
            }
        } else if let Event::Message { .. } | Event::CallStarted(_) = event {
            told.taken += 1;
        }
    }

    fn on_output(&mut self, output: &Output) {
        let mut told = self.told();
        if let Command::Generate { generation } = &output.command {
            // What the step before it came to is known by now.
            told.flush();
            told.step = Some(Step {
                generation: *generation,
                text: String::new(),
                said: Vec::new(),
                asks: false,
                calls: Vec::new(),
                finished: false,
                results: BTreeMap::new(),
                requests: Vec::new(),
            });
        } else if let Command::CancelGeneration { generation } = &output.command {
            told.step.take_if(|step| step.generation == *generation);
        } else if let Command::RequestApproval(wish) = &output.command {
            told.on_request(wish);
        } else if let Command::RunConfirmed(yes) = &output.command {
            told.resume(&yes.call().0, None);
        } else if let Command::Report(Report::ConfirmationAnswered { id, call_id, outcome, .. }) =
            &output.command
            && outcome == "rejected"
            && !told.requests.get(id).is_some_and(|known| known.inside)
        {
            told.resume(&call_id.0, Some(json!({ "error": REJECTED })));
        } else if let Command::Report(Report::QuestionHeld { .. }) = &output.command
            && let Some(step) = told.step.as_mut()
        {
            step.asks = true;
            let waits =
                json!({ "status": "The caller is being asked to confirm; nothing has happened yet." });
            let open: Vec<String> = step
                .calls
                .iter()
                .map(|c| c.id.0.clone())
                .filter(|id| !step.results.contains_key(id))
                .collect();
            if let Some(call) = open.first() {
                step.results.insert(call.clone(), waits);
            }
        }
    }
}

impl Line for Log {
    fn speak(&mut self, speak: Speak) {
        let mut told = self.told();
        if speak.kind == UtteranceKind::Question {
            told.flush();
            told.tell("model", vec![json!({ "text": speak.text })], Map::new());
        } else if let Some(step) = told.step.as_mut() {
            step.said.push(speak.text);
        }
    }

    fn on_state(&mut self, session: &Session) {
        let taken = {
            let mut told = self.told();
            told.flush();
            if self.saved.is_some() && session.is_idle() {
                told.rest(session.items().len());
            }
            told.taken
        };
        self.reached.send_replace(Reached { taken, idle: session.is_idle(), over: false });
    }

    fn close(&mut self) {
        self.reached.send_modify(|reached| reached.over = true);
    }
}
