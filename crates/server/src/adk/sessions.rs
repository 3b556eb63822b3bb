//! Text sessions: each is a conversation of its own, driven like a chat, and told as ADK events.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sayback_core::{ApprovalId, ApprovalWish, CallStart, Event, SettledApproval};
use sayback_runtime::approvals::{ApprovalError, ApprovalQueue, Asker};
use sayback_runtime::approver::{ask, outcome, queue_id, written as request_of};
use sayback_runtime::calls::CallView;
use sayback_runtime::clock::{Clock, unix_millis, unix_seconds};
use sayback_runtime::driver::{Approver, Driver, Parts};
use sayback_runtime::switchboard::{Asked, Desk, Desks, NotNow, Witnesses};
use serde_json::{Value, json};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot, watch};

use super::log::{Log, Reached};
use super::message::{Answer, Content, MessageError, Said, decision};

/// Sessions that are kept at the same time.
const MOST: usize = 1_000;
/// Longest name of an app, a user or a session.
const LONGEST: usize = 128;
/// What the model is told of an answer that answers nothing: it can say so.
const NO_ANSWER: &str = "(The app sent a response to a call that waits for none.)";

/// Which session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    /// The agent, by its name in `[agents]`.
    pub app: String,
    /// Whose session.
    pub user: String,
    /// Its id.
    pub id: String,
}

/// Why something cannot be done with a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// There is none of that id.
    #[error("there is no session {0:?} of this user; make one with POST /apps/APP/users/USER/sessions")]
    Unknown(String),
    /// There is one already.
    #[error("there is a session {0:?} of this user already")]
    Exists(String),
    /// A name is too long or has letters that do not fit into a path.
    #[error("{0:?} cannot be a name here: 1 to 128 letters, digits, `-`, `_`, `.` or `@`")]
    Name(String),
    /// There are too many.
    #[error("there are {MOST} sessions already; delete those that are done")]
    Full,
    /// The agent cannot answer.
    #[error(transparent)]
    Agent(#[from] NotNow),
    /// What was sent cannot be taken.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// Approvals cannot be kept.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// The conversation broke off.
    #[error("the session {0:?} has ended; make a new one")]
    Over(String),
}

/// The text sessions of a server. Clones share them.
#[derive(Clone, Debug)]
pub struct Sessions {
    desks: Arc<dyn Desks>,
    approvals: ApprovalQueue,
    witnesses: Option<Arc<dyn Witnesses>>,
    open: Arc<Mutex<BTreeMap<SessionKey, Arc<Open>>>>,
}

/// A session that is open.
#[derive(Debug)]
struct Open {
    /// The beginning of its approvals' ids.
    conversation: String,
    call: mpsc::Sender<Event>,
    log: Log,
    /// Who may make it go on: one at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Messages and answers sent; only whoever has the turn adds to it.
    sent: Arc<AtomicU64>,
    /// Requests that are in the queue: before that, nobody can answer them.
    written: watch::Sender<usize>,
    state: Value,
}

/// A run of a session: what comes of one message.
#[derive(Debug)]
pub struct Run {
    log: Log,
    reached: watch::Receiver<Reached>,
    written: watch::Receiver<usize>,
    /// How many events were given out.
    at: usize,
    /// From how many on it is over, once nothing goes on.
    goal: u64,
    _turn: OwnedMutexGuard<()>,
}

impl Run {
    /// The next events; `None` when nothing more comes.
    pub async fn next(&mut self) -> Option<Vec<Value>> {
        loop {
            let reached = *self.reached.borrow_and_update();
            let events = self.log.since(self.at);
            if !events.is_empty() {
                self.at += events.len();
                return Some(events);
            }
            let done = reached.over || (reached.idle && reached.taken >= self.goal);
            if done || self.reached.changed().await.is_err() {
                // Whoever was told of a request may answer it at once.
                let requests = self.log.asked().len();
                let _ = self.written.wait_for(|written| *written >= requests).await;
                return None;
            }
        }
    }

    /// All of them.
    pub async fn all(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(events) = self.next().await {
            all.extend(events);
        }
        all
    }
}

impl Sessions {
    /// Sessions with the agents of these desks.
    pub fn new(desks: Arc<dyn Desks>, approvals: ApprovalQueue) -> Self {
        Self { desks, approvals, witnesses: None, open: Arc::default() }
    }

    /// The same, whose confirmed runs are written down where those of calls are, before they are made.
    #[must_use]
    pub fn written_by(self, witnesses: Arc<dyn Witnesses>) -> Self {
        Self { witnesses: Some(witnesses), ..self }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<SessionKey, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &SessionKey) -> Result<Arc<Open>, SessionError> {
        self.open().get(key).cloned().ok_or_else(|| SessionError::Unknown(key.id.clone()))
    }

    /// Makes a session; without an id of its own it gets one.
    ///
    /// # Errors
    /// Nobody answers to that app, a name cannot be used, or there are too many.
    pub async fn create(
        &self,
        (app, user): (&str, &str),
        id: Option<String>,
        state: Value,
    ) -> Result<Value, SessionError> {
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(random);
        let key = SessionKey { app: app.to_owned(), user: user.to_owned(), id };
        for name in [&key.app, &key.user, &key.id] {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
            if name.is_empty() || name.len() > LONGEST || !name.chars().all(fits) {
                return Err(SessionError::Name(name.clone()));
            }
        }
        let asked = Asked {
            transport: "text".to_owned(),
            to: app.to_owned(),
            from: user.to_owned(),
            ..Asked::default()
        };
        let desk = self.desks.find(&asked).await?;
        let mut open = self.open();
        if open.contains_key(&key) {
            return Err(SessionError::Exists(key.id));
        }
        if open.len() >= MOST {
            return Err(SessionError::Full);
        }
        let started = Arc::new(self.start(&key, &desk, state));
        let shown = shown(&key, &started);
        open.insert(key, started);
        Ok(shown)
    }

    fn start(&self, key: &SessionKey, desk: &Desk, state: Value) -> Open {
        let conversation = format!("text-{}", random());
        let clock = Clock::start();
        let log = Log::new(&conversation, &desk.agent.name, clock);
        let parts = Parts {
            agent: Arc::clone(&desk.agent),
            llm: (desk.llm)(),
            screen: desk.screen.clone(),
            line: Box::new(log.clone()),
            observers: vec![Box::new(log.clone())],
            call: conversation.clone(),
            clock,
        };
        let (mut driver, call) = Driver::new(parts);
        let view = view(&conversation, key, desk);
        if let Some(journal) = self.witnesses.as_ref().and_then(|all| all.journal(&view, desk, None)) {
            driver.write_redacted_to(journal, &desk.redact);
        }
        let (turn, sent, written) = (Arc::default(), Arc::default(), watch::Sender::new(0));
        let SessionKey { app, user, id } = key.clone();
        driver.ask_operators(Box::new(SessionApprover {
            queue: self.approvals.clone(),
            asker: Asker::Session { app, user, id },
            conversation: conversation.clone(),
            agent: desk.agent.name.clone(),
            turn: Arc::clone(&turn),
            sent: Arc::clone(&sent),
            written: written.clone(),
            withdraw: BTreeMap::new(),
        }));
        let start = CallStart {
            transport: "text".to_owned(),
            call: conversation.clone(),
            language: desk.agent.language.clone(),
            greeting: None,
            chat: true,
        };
        // The queue is empty, so there is room.
        if call.try_send(Event::CallStarted(start)).is_err() {
            tracing::error!("the session {} has no room for its beginning", key.id);
        }
        tokio::spawn(async move {
            driver.run().await;
        });
        Open { conversation, call, log, turn, sent, written, state }
    }

    /// A session with its events.
    ///
    /// # Errors
    /// There is none.
    pub fn show(&self, key: &SessionKey) -> Result<Value, SessionError> {
        let open = self.get(key)?;
        Ok(shown(key, &open))
    }

    /// The sessions of a user, without their events.
    pub fn list(&self, app: &str, user: &str) -> Vec<Value> {
        let open = self.open();
        let own = open.iter().filter(|(key, _)| key.app == app && key.user == user);
        own.map(|(key, open)| {
            let mut shown = shown(key, open);
            shown["events"] = json!([]);
            shown
        })
        .collect()
    }

    /// Ends a session: what it asked for is no longer wanted.
    ///
    /// # Errors
    /// There is none, or approvals cannot be kept.
    pub async fn delete(&self, key: &SessionKey) -> Result<(), SessionError> {
        let open = self.get(key)?;
        let _turn = Arc::clone(&open.turn).lock_owned().await;
        for approval in open.log.asked() {
            match self
                .approvals
                .cancel(&queue_id(&open.conversation, approval), "the session was deleted")
                .await
            {
                Ok(()) | Err(ApprovalError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.open().remove(key);
        // One that has ended already needs no end.
        let _ = open.call.send(Event::HungUp).await;
        Ok(())
    }

    /// Takes a message. `by` is whose answers they are, if there are any.
    ///
    /// # Errors
    /// There is no such session, or the message cannot be taken: then nothing has happened.
    pub async fn run(&self, key: &SessionKey, content: &Content, by: &str) -> Result<Run, SessionError> {
        let said = content.said()?;
        let open = self.get(key)?;
        let turn = Arc::clone(&open.turn).lock_owned().await;
        let event = match said {
            Said::Text(text) => Some(open.message(text)),
            Said::Answers(answers) => self.answer(&open, &answers, by).await?,
        };
        let (reached, written) = (open.log.reached(), open.written.subscribe());
        if let Some(event) = event {
            open.log.user(serde_json::to_value(Sent(content)).unwrap_or_default());
            let at = open.log.len();
            let goal = open.sent.fetch_add(1, Ordering::AcqRel) + 1;
            open.call.send(event).await.map_err(|_| SessionError::Over(key.id.clone()))?;
            return Ok(Run { log: open.log.clone(), reached, written, at, goal, _turn: turn });
        }
        let (at, goal) = (open.log.len(), open.sent.load(Ordering::Acquire));
        Ok(Run { log: open.log.clone(), reached, written, at, goal, _turn: turn })
    }

    /// Answers requests: each is looked at before any is answered, so that a message is taken whole or not at all.
    /// `None`: all of them were answered before, and nothing comes of it (ADK-16).
    async fn answer(&self, open: &Open, answers: &[Answer], by: &str) -> Result<Option<Event>, SessionError> {
        let asked = open.log.asked();
        // One that came up outside a run may not be there yet.
        let _ = open.written.subscribe().wait_for(|written| *written >= asked.len()).await;
        let (mut wanted, mut stray) = (Vec::new(), false);
        for Answer { id, body } in answers {
            let approval = asked.iter().copied().find(|known| queue_id(&open.conversation, *known) == *id);
            match (approval, body) {
                (Some(approval), Some(body)) => wanted.push((approval, id, decision(id, body, by)?)),
                // The right id under another name, or a call that waits for nothing: the model hears of it (ADK-12).
                (Some(_), None) => stray = true,
                (None, _) if open.log.knows_call(id) => stray = true,
                (None, _) => return Err(MessageError::UnknownId(id.clone()).into()),
            }
        }
        let mut settled = Vec::new();
        for (approval, id, decision) in wanted {
            match self.approvals.answer(id, decision).await {
                Ok(answered) => {
                    settled.extend(outcome(&answered).map(|outcome| SettledApproval { approval, outcome }));
                }
                Err(ApprovalError::Answered { .. } | ApprovalError::Gone { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(match (settled.is_empty(), stray) {
            (false, _) => Some(Event::Approvals(settled)),
            (true, true) => Some(open.message(NO_ANSWER.to_owned())),
            (true, false) => None,
        })
    }
}

impl Open {
    /// A message, received now as the conversation sees it.
    fn message(&self, text: String) -> Event {
        Event::Message { text, received: self.log.now() }
    }
}

/// What was sent, as it is shown among the events.
struct Sent<'a>(&'a Content);

impl serde::Serialize for Sent<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts: Vec<Value> = self.0.parts.iter().map(super::message::Part::shown).collect();
        json!({ "role": "user", "parts": parts }).serialize(serializer)
    }
}

fn shown(key: &SessionKey, open: &Open) -> Value {
    let events = open.log.since(0);
    let changed = events.last().and_then(|event| event["timestamp"].as_f64());
    json!({
        "id": key.id,
        "appName": key.app,
        "userId": key.user,
        "state": open.state,
        "events": events,
        "lastUpdateTime": changed.unwrap_or_else(|| unix_millis() as f64 / 1_000.0),
    })
}

/// A session as those see it who keep calls.
fn view(conversation: &str, key: &SessionKey, desk: &Desk) -> CallView {
    CallView {
        call: conversation.to_owned(),
        agent: desk.agent.name.clone(),
        transport: "text".to_owned(),
        from: key.user.clone(),
        to: key.app.clone(),
        outbound: false,
        began: unix_seconds(),
        live: true,
        ended: None,
        question: None,
        events: 0,
    }
}

/// Sixteen hexadecimal digits that nobody can guess: the keys of the standard library's hashes come from the system.
fn random() -> String {
    format!("{:016x}", std::collections::hash_map::RandomState::new().build_hasher().finish())
}

/// Asks operators for a session. What is answered elsewhere, over `/v1/approvals`, goes on when nobody else makes the
/// session go on: of an answer that came with a message, the message's run tells what came of it.
struct SessionApprover {
    queue: ApprovalQueue,
    asker: Asker,
    conversation: String,
    agent: String,
    turn: Arc<tokio::sync::Mutex<()>>,
    sent: Arc<AtomicU64>,
    written: watch::Sender<usize>,
    withdraw: BTreeMap<ApprovalId, oneshot::Sender<String>>,
}

#[async_trait::async_trait]
impl Approver for SessionApprover {
    fn request(&mut self, wish: ApprovalWish, call: mpsc::Sender<Event>) {
        let approval = wish.approval;
        let (withdraw, withdrawn) = oneshot::channel();
        self.withdraw.insert(approval, withdraw);
        let request = request_of((&self.conversation, &self.agent), self.asker.clone(), wish);
        let (queue, written) = (self.queue.clone(), self.written.clone());
        let (turn, sent) = (Arc::clone(&self.turn), Arc::clone(&self.sent));
        tokio::spawn(async move {
            // What this comes to is found again in the next line, which waits for the answer.
            let _ = queue.request(&request).await;
            written.send_modify(|written| *written += 1);
            if let Some(outcome) = ask(queue, request, withdrawn).await {
                let _turn = turn.lock().await;
                sent.fetch_add(1, Ordering::AcqRel);
                // A session that is over needs no answer.
                let _ = call.send(Event::Approvals(vec![SettledApproval { approval, outcome }])).await;
            }
        });
    }

    fn withdraw(&mut self, approval: ApprovalId, reason: String) {
        if let Some(withdraw) = self.withdraw.remove(&approval) {
            // One that is settled is not there to hear it.
            let _ = withdraw.send(reason);
        }
    }
}
