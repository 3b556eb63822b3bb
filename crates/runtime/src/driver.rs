//! The live shell of one call: it waits, hands the core what happened, and does what the core wants.
//!
//! One task owns the session; everything else reaches it through one bounded queue. There is no `if` about the
//! conversation in here: whatever needs one belongs in the core.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use sayback_core::{
    ApprovalId, ApprovalOutcome, ApprovalWish, CallId, CheckAnswer, CheckRequest, Command, Confirmation,
    Event, EvidenceRecord, GenerationId, HoldId, ModelEvent, Output, PlainRun, Prepared, Refusal, Session,
    SettledApproval, Time, ToolCall, ToolOutcome,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::agent::{Agent, AskContext, RunContext, Tool, run_confirmed, run_plain};
use crate::clock::{Clock, calendar};
use crate::ears::Listener;
use crate::events::event_line;
use crate::journal::{ConfirmedRun, Journal, Snapshot, exactly_once};
use crate::line::Line;
use crate::llm::{Llm, LlmError, LlmEvent, LlmRequest};
use crate::prepare::{find, prepare};
use crate::prompt::{check_answer, check_request, step_request, transfer_tool};
use crate::redact::{Detail, Learner, RedactedJournal, Redactor};

/// Events that may wait for the call's task. A line that fills it waits: nothing is dropped.
pub const QUEUE: usize = 1_024;

/// What looks at a model's call before it is validated: arguments that nobody said can be refused here.
pub trait Screen: Send + Sync + std::fmt::Debug {
    /// The message for the model if the call is not to be made like this.
    fn refuse(&self, agent: &Agent, call: &ToolCall, said: &[String]) -> Option<String>;
}

/// Asks operators for a call. What they answer comes back as [`Event::Approvals`].
#[async_trait::async_trait]
pub trait Approver: Send {
    /// Asks.
    fn request(&mut self, wish: ApprovalWish, call: mpsc::Sender<Event>);
    /// An answer is no longer wanted.
    fn withdraw(&mut self, approval: ApprovalId, reason: String);
    /// The call is over: whatever is still to be written is written.
    async fn close(&mut self) {}
}

/// Who hears of a call.
pub trait Observer: Send {
    /// An event, before it is handled: the journal.
    fn on_input(&mut self, _at: Time, _event: &Event) {}
    /// A wish of the core, before it is carried out: the journal too.
    fn on_output(&mut self, _output: &Output) {}
    /// A line of the event log.
    fn on_event(&mut self, _line: &Value) {}
    /// A decision's record.
    fn on_record(&mut self, _record: &EvidenceRecord) {}
}

/// Everything that one call needs.
pub struct Driver {
    session: Session,
    clock: Clock,
    agent: Arc<Agent>,
    llm: Arc<dyn Llm>,
    screen: Option<Arc<dyn Screen>>,
    line: Box<dyn Line>,
    observers: Vec<Box<dyn Observer>>,
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
    steps: BTreeMap<GenerationId, JoinHandle<()>>,
    call: String,
    journal: Option<Arc<dyn Journal>>,
    approver: Option<Box<dyn Approver>>,
    kept: Kept,
    vars: BTreeMap<String, String>,
}

/// How much of the conversation the journal has.
#[derive(Debug, Default)]
struct Kept {
    order: u64,
    /// Items, and the open question with whether it was heard, when it was last kept.
    at: Option<(usize, Option<(HoldId, bool)>)>,
    writing: Option<JoinHandle<()>>,
}

/// The parts of a call.
pub struct Parts {
    /// The agent.
    pub agent: Arc<Agent>,
    /// Its model.
    pub llm: Arc<dyn Llm>,
    /// What looks at calls first, if anything.
    pub screen: Option<Arc<dyn Screen>>,
    /// Where sound or text goes.
    pub line: Box<dyn Line>,
    /// Who hears of it.
    pub observers: Vec<Box<dyn Observer>>,
    /// The call's id; with the hold's, the idempotency key of a run.
    pub call: String,
    /// The call clock.
    pub clock: Clock,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("call", &self.call).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("call", &self.call).finish_non_exhaustive()
    }
}

impl Driver {
    /// A call that has not begun, and the queue into it.
    pub fn new(parts: Parts) -> (Self, mpsc::Sender<Event>) {
        let (sender, events) = mpsc::channel(QUEUE);
        let driver = Self {
            session: Session::new(parts.agent.policy.clone()),
            clock: parts.clock,
            agent: parts.agent,
            llm: parts.llm,
            screen: parts.screen,
            line: parts.line,
            observers: parts.observers,
            sender: sender.clone(),
            events,
            steps: BTreeMap::new(),
            call: parts.call,
            journal: None,
            approver: None,
            kept: Kept::default(),
            vars: BTreeMap::new(),
        };
        (driver, sender)
    }

    /// Gives the call a journal: each confirmed run is written before it is made, and the conversation is kept as it
    /// goes on. Without one, a run is made once within this process, and nothing survives it.
    pub fn write_to(&mut self, journal: Arc<dyn Journal>) {
        self.journal = Some(journal);
    }

    /// The same, with a journal that is told none of these details.
    pub fn write_redacted_to(&mut self, journal: Arc<dyn Journal>, kinds: &[Detail]) {
        let Some(redactor) = Redactor::new(kinds) else { return self.write_to(journal) };
        self.observe(Box::new(Learner(redactor.clone())));
        self.write_to(Arc::new(RedactedJournal::new(journal, redactor)));
    }

    /// Gives the call its variables, which questions and tools may use: headers, and what the service passed on.
    pub fn know(&mut self, vars: BTreeMap<String, String>) {
        self.vars = vars;
    }

    /// Gives the call somebody who asks operators. Without one, a tool that needs an approval is refused.
    pub fn ask_operators(&mut self, approver: Box<dyn Approver>) {
        self.approver = Some(approver);
    }

    /// Gives the line its ears; they need the queue into the call, so they are made after it.
    pub fn listen(&mut self, listener: Listener) {
        self.line.listen(listener);
    }

    /// One more who hears of the call: for those who need the queue into it, which is made here.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observers.push(observer);
    }

    /// Runs the call to its end; gives the session as it was left.
    pub async fn run(mut self) -> Session {
        let tools = self.agent.tool_refs();
        self.hand(Event::Tools(tools));
        while !self.session.is_done() {
            let deadline = self.session.poll_timeout().map(|(at, _)| self.clock.instant(at));
            let event = tokio::select! {
                biased;
                event = self.events.recv() => event.unwrap_or(Event::HungUp),
                () = until(deadline) => Event::Tick,
            };
            self.hand(event);
            self.line.on_state(&self.session);
            self.keep();
        }
        for step in self.steps.into_values() {
            step.abort();
        }
        if let Some(writing) = self.kept.writing.take() {
            let _ = writing.await;
        }
        if let Some(approver) = self.approver.as_mut() {
            approver.close().await;
        }
        self.line.close();
        self.session
    }

    /// One event in, then every wish, then the next event. The journal comes before the effect.
    fn hand(&mut self, event: Event) {
        let now = self.clock.now();
        for observer in &mut self.observers {
            observer.on_input(now, &event);
        }
        self.session.handle(now, event);
        while let Some(output) = self.session.poll_output() {
            self.obey(output);
        }
    }

    fn obey(&mut self, output: Output) {
        for observer in &mut self.observers {
            observer.on_output(&output);
        }
        match output.command {
            Command::Report(report) => {
                let line = event_line(output.at, &report);
                self.line.on_event(&line);
                for observer in &mut self.observers {
                    observer.on_event(&line);
                }
            }
            Command::OpenSegment { segment, onset } => self.line.open_segment(segment, onset),
            Command::CloseSegment { segment, offset } => self.line.close_segment(segment, offset),
            Command::JudgeEnd { segment } => self.line.judge_end(segment),
            Command::Speak(speak) => self.line.speak(speak),
            Command::Pause => self.line.pause(),
            Command::Resume => self.line.resume(),
            Command::Clear => self.line.clear(),
            Command::Generate { generation } => self.generate(generation),
            Command::CancelGeneration { generation } => {
                if let Some(step) = self.steps.remove(&generation) {
                    step.abort();
                }
            }
            Command::Prepare { call, language } => self.prepare(call, language),
            Command::RunPlain(run) => self.run_plain(run),
            Command::RunConfirmed(yes) => self.run_confirmed(yes),
            Command::RequestApproval(wish) => self.request_approval(wish),
            Command::WithdrawApproval { approval, reason } => {
                if let Some(approver) = self.approver.as_mut() {
                    approver.withdraw(approval, reason);
                }
            }
            Command::Check(request) => self.check(request),
            Command::Record(record) => {
                for observer in &mut self.observers {
                    observer.on_record(&record);
                }
            }
            Command::EndCall { .. } => self.line.end(),
            Command::Transfer { call, input, dropped } => {
                if !self.line.transfer(&call, &input, dropped.as_deref()) {
                    let message = "This line cannot transfer calls.".to_owned();
                    let outcome = ToolOutcome::Failed { message };
                    self.later(async move { Event::ToolFinished { call, outcome } });
                }
            }
        }
    }

    /// Sends what a future gives to the call.
    fn later(&self, work: impl Future<Output = Event> + Send + 'static) -> JoinHandle<()> {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let event = work.await;
            // A call that is over needs no more events.
            let _ = sender.send(event).await;
        })
    }

    fn generate(&mut self, generation: GenerationId) {
        let mut request = step_request(&self.agent, &self.session, &calendar());
        request.tools.extend(transfer_tool(&self.line.transfers()));
        let (llm, sender) = (Arc::clone(&self.llm), self.sender.clone());
        self.steps.retain(|_, step| !step.is_finished());
        let step = tokio::spawn(async move {
            let last = match stream_step(llm, request, generation, &sender).await {
                Ok(()) => ModelEvent::Finished { generation },
                Err(error) => ModelEvent::Failed { generation, error: error.to_string() },
            };
            let _ = sender.send(Event::Model(last)).await;
        });
        self.steps.insert(generation, step);
    }

    fn prepare(&mut self, call: ToolCall, language: String) {
        let refused = screened(self.screen.as_deref(), &self.agent, &call, &self.session);
        let (agent, vars) = (Arc::clone(&self.agent), self.vars.clone());
        self.later(async move {
            let outcome = match refused {
                Some(refused) => refused,
                None => prepare(&agent, &call, &AskContext { language, vars }).await,
            };
            Event::Prepared { call: call.id, outcome }
        });
    }

    fn request_approval(&mut self, wish: ApprovalWish) {
        let sender = self.sender.clone();
        match self.approver.as_mut() {
            Some(approver) => approver.request(wish, sender),
            None => {
                let error = "nobody can be asked here; start the agent with: sayback serve".to_owned();
                let outcome = ApprovalOutcome::Failed { error };
                let settled = SettledApproval { approval: wish.approval, outcome };
                self.later(async move { Event::Approvals(vec![settled]) });
            }
        }
    }

    fn run_plain(&self, run: PlainRun) {
        let (agent, context) = (Arc::clone(&self.agent), self.context(&run.call.0));
        self.later(async move {
            let outcome = run_plain(&agent, &run, context).await;
            Event::ToolFinished { call: run.call, outcome }
        });
    }

    fn run_confirmed(&mut self, yes: Confirmation) {
        let (agent, context) = (Arc::clone(&self.agent), self.context(&yes.hold().to_string()));
        let call = yes.call().clone();
        let written = self.journal.clone().map(|journal| {
            let run = ConfirmedRun::of(&yes, context.idempotency_key.clone());
            (journal, run, self.snapshot())
        });
        // The core waits for as long as the limit says; a handler that takes longer is not stopped, since it may be
        // half done, and its late result is told.
        self.later(async move {
            let made = run_confirmed(&agent, yes, context);
            let outcome = match written {
                Some((journal, run, now)) => exactly_once(journal, run, now, made).await,
                None => made.await,
            };
            Event::ToolFinished { call, outcome }
        });
    }

    fn snapshot(&mut self) -> Snapshot {
        self.kept.order += 1;
        Snapshot { order: self.kept.order, conversation: self.session.to_store() }
    }

    /// Keeps the conversation whenever it has come to rest in a new place.
    fn keep(&mut self) {
        let open = self.session.open_question().map(|(hold, _, heard)| (hold, heard));
        let at = Some((self.session.items().len(), open));
        let Some(journal) = self.journal.clone().filter(|_| self.session.is_idle() && self.kept.at != at)
        else {
            return;
        };
        self.kept.at = at;
        let (now, before) = (self.snapshot(), self.kept.writing.take());
        self.kept.writing = Some(tokio::spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            if let Err(error) = journal.keep(&now).await {
                tracing::error!("the conversation could not be kept: {error}");
            }
        }));
    }

    fn context(&self, id: &str) -> RunContext {
        RunContext { vars: self.vars.clone(), ..RunContext::keyed(format!("{}/{id}", self.call)) }
    }

    fn check(&self, request: CheckRequest) {
        let llm = Arc::clone(&self.llm);
        self.later(async move {
            let asked = tokio::time::timeout(request.limit, ask_check(llm, check_request(&request))).await;
            let answer = match asked {
                Ok(Ok(text)) => check_answer(&request, &text),
                Ok(Err(error)) => CheckAnswer::Failed { error: error.to_string() },
                Err(_) => CheckAnswer::Failed { error: "timeout".to_owned() },
            };
            Event::Checked { check: request.check, answer }
        });
    }
}

async fn stream_step(
    llm: Arc<dyn Llm>,
    request: LlmRequest,
    generation: GenerationId,
    sender: &mpsc::Sender<Event>,
) -> Result<(), LlmError> {
    let mut stream = llm.stream(request).await?;
    while let Some(event) = stream.next().await {
        let event = match event? {
            LlmEvent::Text(text) => ModelEvent::Text { generation, text },
            LlmEvent::Call(call) => ModelEvent::Call {
                generation,
                call: ToolCall { id: CallId(call.id), name: call.name, input: call.arguments },
            },
            LlmEvent::Done => break,
        };
        let _ = sender.send(Event::Model(event)).await;
    }
    Ok(())
}

async fn ask_check(llm: Arc<dyn Llm>, request: LlmRequest) -> Result<String, LlmError> {
    let mut stream = llm.stream(request).await?;
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        if let LlmEvent::Text(piece) = event? {
            text.push_str(&piece);
        }
    }
    Ok(text)
}

/// What a screen makes of a call; `None`: it may be validated.
pub fn screened(
    screen: Option<&dyn Screen>,
    agent: &Agent,
    call: &ToolCall,
    session: &Session,
) -> Option<Prepared> {
    let message = screen?.refuse(agent, call, &said(session))?;
    let confirms = matches!(find(agent, &call.name), Some((_, Tool::Confirmed(_))));
    Some(Prepared::Refused { reason: Refusal::InputError, message, confirms })
}

/// What the caller said so far, oldest first.
fn said(session: &Session) -> Vec<String> {
    session
        .items()
        .iter()
        .filter_map(|item| match item {
            sayback_core::Item::Caller { text } => Some(text.clone()),
            sayback_core::Item::Agent { .. }
            | sayback_core::Item::Call { .. }
            | sayback_core::Item::Result { .. }
            | sayback_core::Item::Told { .. } => None,
        })
        .collect()
}

async fn until(deadline: Option<std::time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
