//! Text sessions: each is a conversation of its own, driven like a chat, and told as ADK events. With a store they outlive
//! their server ([`kept`](super::kept)).

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sayback_core::{ApprovalId, ApprovalWish, CallStart, Event, SettledApproval, Time};
use sayback_runtime::approvals::{ApprovalError, ApprovalQueue, Asker};
use sayback_runtime::approver::{ask, outcome, queue_id, written as request_of};
use sayback_runtime::calls::CallView;
use sayback_runtime::clock::{Clock, unix_millis, unix_seconds};
use sayback_runtime::driver::{Approver, Driver, Parts};
use sayback_runtime::journal::{Journal, JournalError};
use sayback_runtime::redact::{Learner, Redactor};
use sayback_runtime::sessions::SessionKey;
use sayback_runtime::switchboard::{Asked, Desk, Desks, NotNow, Witnesses};
use serde_json::{Value, json};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot, watch};

use super::kept::{At, Going, Here, Keeping, Told};
use super::log::{Log, Reached};
use super::message::{Answer, Content, MessageError, Said, decision};

/// Sessions that are kept at the same time.
const MOST: usize = 1_000;
/// How long a run waits for what it tells to be stored: a store that is away holds nobody up for longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest name of an app, a user or a session.
const LONGEST: usize = 128;
/// What the model is told of an answer that answers nothing: it can say so.
const NO_ANSWER: &str = "(The app sent a response to a call that waits for none.)";

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
    /// Sessions cannot be kept or found.
    #[error("the session cannot be kept or found: {0}")]
    Store(#[from] JournalError),
    /// What is stored cannot be read.
    #[error("the session {0:?} cannot be read: {1}; it was written by another version, or by hand")]
    Unreadable(String, String),
    /// The conversation broke off.
    #[error("the session {0:?} has ended; make a new one")]
    Over(String),
}

/// The text sessions of a server. Clones share them.
#[derive(Clone, Debug)]
pub struct Sessions {
    desks: Arc<dyn Desks>,
    pub(super) approvals: ApprovalQueue,
    witnesses: Option<Arc<dyn Witnesses>>,
    pub(super) keeping: Option<Keeping>,
    open: Arc<Mutex<BTreeMap<SessionKey, Arc<Open>>>>,
}

/// A session that is open.
#[derive(Debug)]
pub(super) struct Open {
    /// The beginning of its approvals' ids.
    pub(super) conversation: String,
    pub(super) call: mpsc::Sender<Event>,
    pub(super) log: Log,
    /// How often it had been opened by then, if it is stored.
    pub(super) opened: i64,
    /// From where on nobody has been told, if it went on by itself.
    untold: AtomicUsize,
    /// Who may make it go on: one at a time.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    /// Messages and answers sent; only whoever has the turn adds to it.
    sent: Arc<AtomicU64>,
    /// Requests that are in the queue: before that, nobody can answer them.
    written: watch::Sender<usize>,
    pub(super) state: Value,
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
    /// Everything is stored that is to be told.
    settled: bool,
    _turn: OwnedMutexGuard<()>,
}

impl Run {
    /// The next events; `None` when nothing more comes.
    pub async fn next(&mut self) -> Option<Vec<Value>> {
        loop {
            let reached = *self.reached.borrow_and_update();
            let mut events = self.log.since(self.at);
            events.truncate(self.tellable(&events));
            if !events.is_empty() {
                self.at += events.len();
                // What a session that goes on by itself came to stands before what the user says now.
                events.retain(|event| event["author"] != "user");
                return Some(events);
            }
            let done = reached.over || (reached.idle && reached.taken >= self.goal);
            if !done && self.reached.changed().await.is_ok() {
                continue;
            }
            if self.settled {
                return None;
            }
            self.settle().await;
        }
    }

    /// How many of these may be told: whoever is told of a request must be able to answer it whatever happens.
    fn tellable(&self, events: &[Value]) -> usize {
        let Some(saved) = self.log.saving().filter(|_| !self.settled) else { return events.len() };
        let stored = saved.borrow().saturating_sub(self.at);
        let held = events.iter().skip(stored).position(|event| !event["longRunningToolIds"].is_null());
        held.map_or(events.len(), |held| stored + held)
    }

    /// Waits until requests can be answered, and until what there is is stored.
    async fn settle(&mut self) {
        let requests = self.log.asked().len();
        let _ = self.written.wait_for(|written| *written >= requests).await;
        let events = self.log.len();
        if let Some(mut saved) = self.log.saving() {
            let stored = tokio::time::timeout(PATIENCE, saved.wait_for(|saved| *saved >= events));
            if stored.await.is_err() {
                tracing::warn!("a session's events are told that could not be stored in time");
            }
        }
        self.settled = true;
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
        Self { desks, approvals, witnesses: None, keeping: None, open: Arc::default() }
    }

    /// The same, whose confirmed runs are written down where those of calls are, before they are made.
    #[must_use]
    pub fn written_by(self, witnesses: Arc<dyn Witnesses>) -> Self {
        Self { witnesses: Some(witnesses), ..self }
    }

    pub(super) fn open(&self) -> MutexGuard<'_, BTreeMap<SessionKey, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
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
        let desk = self.desk(&key).await?;
        self.make_room(&key)?;
        let conversation = format!("text-{}", random());
        let told = Told { state, ..Told::default() };
        if let Some(keeping) = &self.keeping {
            keeping.make(&key, &conversation, &told).await?;
        }
        let mut open = self.open();
        if open.contains_key(&key) {
            return Err(SessionError::Exists(key.id));
        }
        let going = Going::new(conversation, told);
        let started = Arc::new(self.start(&key, &desk, going));
        let shown = shown(&key, &started);
        open.insert(key, started);
        Ok(shown)
    }

    /// Who answers.
    pub(super) async fn desk(&self, key: &SessionKey) -> Result<Arc<Desk>, SessionError> {
        let asked = Asked {
            transport: "text".to_owned(),
            to: key.app.clone(),
            from: key.user.clone(),
            ..Asked::default()
        };
        Ok(self.desks.find(&asked).await?)
    }

    /// Makes sure that one more may be open. One that is stored and has nothing going on goes on from there.
    pub(super) fn make_room(&self, key: &SessionKey) -> Result<(), SessionError> {
        let mut open = self.open();
        if open.contains_key(key) {
            return Err(SessionError::Exists(key.id.clone()));
        }
        if open.len() < MOST {
            return Ok(());
        }
        let rests = |open: &Open| open.turn.try_lock().is_ok() && open.log.is_stored();
        let rests = open.iter().find(|(_, open)| rests(open)).map(|(key, _)| key.clone());
        let gone = rests.and_then(|key| open.remove(&key)).ok_or(SessionError::Full)?;
        gone.put_aside();
        Ok(())
    }

    /// Starts a session, or goes on with one.
    pub(super) fn start(&self, key: &SessionKey, desk: &Desk, mut going: Going) -> Open {
        let (conversation, opened) = (going.conversation.clone(), going.opened);
        let clock = Clock::start();
        let log = Log::new(&conversation, &desk.agent.name, clock);
        let (untold, state) = (going.told.events.len(), going.told.state.clone());
        let (turn, written) = (Arc::default(), watch::Sender::new(going.asked()));
        // The beginning counts as taken; so do answers that came before it.
        let sent = Arc::new(AtomicU64::new(1 + u64::from(!going.settled.is_empty())));
        let log = match &self.keeping {
            Some(_) => log.stored(std::mem::take(&mut going.told)),
            None => log,
        };
        if let Some(reopened) = &going.reopened {
            log.know_past(&reopened.unsettled);
        }
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
        self.write(&mut driver, desk, &log, (At { key, opened, state: &state }, going.journal.take()));
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
            kept: self.keeping.clone().map(|keeping| (keeping, key.clone(), opened)),
        }));
        let start = CallStart {
            transport: "text".to_owned(),
            call: conversation.clone(),
            language: desk.agent.language.clone(),
            greeting: None,
            chat: true,
        };
        // The queue is empty, so there is room.
        for event in going.begins(start) {
            if call.try_send(event).is_err() {
                tracing::error!("the session {} has no room for its beginning", key.id);
            }
        }
        tokio::spawn(async move {
            driver.run().await;
        });
        let untold = AtomicUsize::new(untold);
        Open { conversation, call, log, opened, untold, turn, sent, written, state }
    }

    /// Gives a session its journal: a new one, or that of the conversation that goes on.
    fn write(
        &self,
        driver: &mut Driver,
        desk: &Desk,
        log: &Log,
        (at, journal): (At<'_>, Option<Arc<dyn Journal>>),
    ) {
        let view = view(log.session().as_str(), at.key, desk);
        let journal = match &self.witnesses {
            Some(witnesses) => witnesses.journal(&view, desk, journal),
            None => journal,
        };
        let Some(journal) = journal else { return };
        let journal = match &self.keeping {
            Some(keeping) => {
                let redactor = Redactor::new(&desk.redact);
                if let Some(redactor) = redactor.clone() {
                    driver.observe(Box::new(Learner(redactor)));
                }
                keeping.behind(journal, log, at, redactor)
            }
            None => journal,
        };
        driver.write_redacted_to(journal, &desk.redact);
    }

    /// A session with its events.
    ///
    /// # Errors
    /// There is none, or the store failed.
    pub async fn show(&self, key: &SessionKey) -> Result<Value, SessionError> {
        match self.here(key).await? {
            Here::Open(open) => Ok(shown(key, &open)),
            Here::Stored(stored) => super::kept::shown(&stored, true),
        }
    }

    /// The sessions of a user, without their events; of stored ones the latest 1,000.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self, app: &str, user: &str) -> Result<Vec<Value>, SessionError> {
        if let Some(keeping) = &self.keeping {
            let stored = keeping.sessions.of_user(app, user, MOST as u32).await?;
            return stored.iter().map(|stored| super::kept::shown(stored, false)).collect();
        }
        let open = self.open();
        let own = open.iter().filter(|(key, _)| key.app == app && key.user == user);
        let shown = own.map(|(key, open)| {
            let mut shown = shown(key, open);
            shown["events"] = json!([]);
            shown
        });
        Ok(shown.collect())
    }

    /// Ends a session: what it asked for is no longer wanted. What ran in it stays written down.
    ///
    /// # Errors
    /// There is none, or approvals or sessions cannot be kept.
    pub async fn delete(&self, key: &SessionKey) -> Result<(), SessionError> {
        let here = self.here(key).await?;
        let (conversation, asked) = match &here {
            Here::Open(open) => (open.conversation.clone(), open.log.asked()),
            Here::Stored(stored) => (stored.conversation.clone(), super::kept::asked(stored)?),
        };
        let _turn = match &here {
            Here::Open(open) => Some(Arc::clone(&open.turn).lock_owned().await),
            Here::Stored(_) => None,
        };
        for approval in asked {
            let id = queue_id(&conversation, approval);
            match self.approvals.cancel(&id, "the session was deleted").await {
                Ok(()) | Err(ApprovalError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(keeping) = &self.keeping {
            keeping.sessions.remove(key).await?;
        }
        self.open().remove(key);
        if let Here::Open(open) = here {
            // One that has ended already needs no end.
            let _ = open.call.send(Event::HungUp).await;
        }
        Ok(())
    }

    /// Takes a message. `by` is whose answers they are, if there are any.
    ///
    /// # Errors
    /// There is no such session, or the message cannot be taken: then nothing has happened.
    pub async fn run(&self, key: &SessionKey, content: &Content, by: &str) -> Result<Run, SessionError> {
        let said = content.said()?;
        let (open, turn, waited) = self.turn(key).await?;
        // What it came to by itself since it was opened again was told to nobody.
        let untold = open.untold.swap(usize::MAX, Ordering::AcqRel);
        let event = match said {
            Said::Text(text) => Some(open.message(text, waited)),
            Said::Answers(answers) => self.answer(&open, &answers, (by, waited)).await?,
        };
        let (reached, written) = (open.log.reached(), open.written.subscribe());
        if let Some(event) = event {
            open.log.user(serde_json::to_value(Sent(content)).unwrap_or_default());
            let at = open.log.len().min(untold);
            let goal = open.sent.fetch_add(1, Ordering::AcqRel) + 1;
            open.call.send(event).await.map_err(|_| SessionError::Over(key.id.clone()))?;
            let log = open.log.clone();
            return Ok(Run { log, reached, written, at, goal, settled: false, _turn: turn });
        }
        let (at, goal) = (open.log.len().min(untold), open.sent.load(Ordering::Acquire));
        Ok(Run { log: open.log.clone(), reached, written, at, goal, settled: false, _turn: turn })
    }

    /// The session, opened again if it is not open here, the turn in it, and whether that had to be waited for.
    async fn turn(&self, key: &SessionKey) -> Result<(Arc<Open>, OwnedMutexGuard<()>, bool), SessionError> {
        let mut waited = false;
        loop {
            let open = match self.here(key).await? {
                Here::Open(open) => open,
                Here::Stored(_) => self.go_on(key).await?,
            };
            let turn = if let Ok(turn) = Arc::clone(&open.turn).try_lock_owned() {
                turn
            } else {
                waited = true;
                Arc::clone(&open.turn).lock_owned().await
            };
            // It may have been put aside meanwhile.
            if self.open().get(key).is_some_and(|now| Arc::ptr_eq(now, &open)) {
                return Ok((open, turn, waited));
            }
        }
    }

    /// Answers requests: each is looked at before any is answered, so that a message is taken whole or not at all.
    /// `None`: all of them were answered before, and nothing comes of it (ADK-16).
    async fn answer(
        &self,
        open: &Open,
        answers: &[Answer],
        (by, waited): (&str, bool),
    ) -> Result<Option<Event>, SessionError> {
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
            (true, true) => Some(open.message(NO_ANSWER.to_owned(), waited)),
            (true, false) => None,
        })
    }
}

impl Open {
    /// Lets go of it here. What it asked for stays asked for.
    pub(super) fn put_aside(&self) {
        // One that has ended already, or is so busy, ends when nobody has its queue any more.
        let _ = self.call.try_send(Event::HungUp);
    }

    /// A message, received now as the conversation counts. One that waited for another run to end was sent by somebody
    /// who cannot have read what that run told: it is older than any question, and so no yes to one.
    fn message(&self, text: String, waited: bool) -> Event {
        let received = if waited { Time::ZERO } else { self.log.now() };
        Event::Message { text, received }
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
    /// Where it is kept, and as whose.
    kept: Option<(Keeping, SessionKey, i64)>,
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
        let kept = self.kept.clone();
        tokio::spawn(async move {
            // What this comes to is found again in the next line, which waits for the answer.
            let _ = queue.request(&request).await;
            written.send_modify(|written| *written += 1);
            if let Some(outcome) = ask(queue, request, withdrawn).await {
                let _turn = turn.lock().await;
                // Whoever has opened it since acts on the answer; the journal lets nothing run here.
                if let Some((keeping, key, opened)) = kept
                    && !keeping.is_open_as(&key, opened).await
                {
                    return;
                }
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
