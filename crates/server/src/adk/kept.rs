//! Text sessions that outlive their server.
//!
//! ```text
//! at rest ─▶ conversation kept ─▶ what was told kept ─▶ whoever asked is told of requests
//! another server, or this one after a restart:
//!   claim ─▶ conversation opened again ─▶ answers that came meanwhile ─▶ the message
//! ```
//! The conversation is written first, so that nothing is told that it does not know. Whoever claimed a session last may
//! write to it; a server that finds that it was claimed elsewhere lets go of it.

use std::sync::Arc;

use async_trait::async_trait;
use sayback_core::{
    ApprovalId, CallStart, Event, PendingApproval, Prepared, Reopened, SettledApproval, ToolCall, ToolOutcome,
};
use sayback_runtime::approvals::{ApprovalError, ApprovalRequest};
use sayback_runtime::approver::{is_same, outcome, queue_id};
use sayback_runtime::conversations::Conversations;
use sayback_runtime::journal::{Begun, ConfirmedRun, Journal, JournalError, Snapshot};
use sayback_runtime::redact::Redactor;
use sayback_runtime::sessions::{SessionKey, SessionStore, StoredSession};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::log::Log;
use super::message::REQUEST;
use super::sessions::{Open, SessionError, Sessions};

/// What was told in a session, as it is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) state: Value,
    pub(super) invocation: u64,
    pub(super) events: Vec<Value>,
    /// Every call so far, without its input.
    pub(super) calls: Vec<ToolCall>,
    /// Every request so far.
    pub(super) requests: Vec<(ApprovalId, Known)>,
}

/// What is remembered of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) call: String,
    /// The tool asked by itself.
    pub(super) inside: bool,
    /// The session has heard what became of it.
    #[serde(default)]
    pub(super) settled: bool,
}

/// Where sessions are kept.
#[derive(Clone, Debug)]
pub(super) struct Keeping {
    pub(super) sessions: Arc<dyn SessionStore>,
    conversations: Arc<dyn Conversations>,
    /// One is opened at a time.
    opening: Arc<tokio::sync::Mutex<()>>,
}

/// A session to start, or to go on with.
#[derive(Debug)]
pub(super) struct Going {
    pub(super) conversation: String,
    pub(super) opened: i64,
    pub(super) told: Told,
    pub(super) reopened: Option<Reopened>,
    pub(super) journal: Option<Arc<dyn Journal>>,
    /// Answers that came while nobody had it open.
    pub(super) settled: Vec<SettledApproval>,
}

/// What a session is written as.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    pub(super) key: &'a SessionKey,
    pub(super) opened: i64,
    pub(super) state: &'a Value,
}

/// Where a session is.
#[derive(Debug)]
pub(super) enum Here {
    /// It is open here, and nowhere else since.
    Open(Arc<Open>),
    /// It is stored.
    Stored(StoredSession),
}

impl Going {
    /// One that begins.
    pub(super) fn new(conversation: String, told: Told) -> Self {
        Self { conversation, opened: 1, told, reopened: None, journal: None, settled: Vec::new() }
    }

    /// How many of the requests that were told are in the queue: those that it still waits for are asked for again, and
    /// count once they are.
    pub(super) fn asked(&self) -> usize {
        let again = |wish: &&PendingApproval| self.told.requests.iter().any(|(id, _)| *id == wish.approval);
        let pending = self.reopened.iter().flat_map(|reopened| &reopened.approvals);
        self.told.requests.len() - pending.filter(again).count()
    }

    /// What the conversation is told first.
    pub(super) fn begins(self, start: CallStart) -> impl Iterator<Item = Event> {
        let before = self.reopened.map(Event::Reopened);
        let settled = (!self.settled.is_empty()).then_some(Event::Approvals(self.settled));
        [before, Some(Event::CallStarted(start)), settled].into_iter().flatten()
    }
}

impl Keeping {
    /// Whether whoever opened it then still has it, as far as the store can tell.
    pub(super) async fn is_open_as(&self, key: &SessionKey, opened: i64) -> bool {
        match self.sessions.look(key).await {
            Ok(found) => found.is_some_and(|found| found.opened == opened),
            Err(_) => true,
        }
    }

    /// Lets what is told in a session be stored behind its conversation.
    pub(super) fn behind(
        &self,
        journal: Arc<dyn Journal>,
        log: &Log,
        at: At<'_>,
        redactor: Option<Redactor>,
    ) -> Arc<dyn Journal> {
        let (inner, log, sessions) = (journal, log.clone(), Arc::clone(&self.sessions));
        let At { key, opened, state } = at;
        let (key, state) = (key.clone(), state.clone());
        Arc::new(SessionJournal { inner, log, sessions, key, opened, state, redactor })
    }

    pub(super) async fn make(
        &self,
        key: &SessionKey,
        conversation: &str,
        told: &Told,
    ) -> Result<(), SessionError> {
        let made = self.sessions.make(key, conversation, &text(told)?).await?;
        if made { Ok(()) } else { Err(SessionError::Exists(key.id.clone())) }
    }
}

impl Sessions {
    /// The same, which outlive this server: they are kept there, and their conversations too.
    #[must_use]
    pub fn kept_in(mut self, sessions: Arc<dyn SessionStore>, conversations: Arc<dyn Conversations>) -> Self {
        let keeping = Keeping { sessions, conversations, opening: Arc::default() };
        self.keeping = Some(keeping);
        self
    }

    /// Where a session is. One that was opened elsewhere since is let go of.
    pub(super) async fn here(&self, key: &SessionKey) -> Result<Here, SessionError> {
        let unknown = || SessionError::Unknown(key.id.clone());
        let open = self.open().get(key).cloned();
        let Some(keeping) = &self.keeping else { return open.map(Here::Open).ok_or_else(unknown) };
        let stored = keeping.sessions.look(key).await?;
        match (open, stored) {
            (Some(open), Some(stored)) if open.opened == stored.opened => Ok(Here::Open(open)),
            (open, stored) => {
                if let Some(open) = open {
                    self.let_go(key, &open);
                }
                stored.map(Here::Stored).ok_or_else(unknown)
            }
        }
    }

    fn let_go(&self, key: &SessionKey, gone: &Arc<Open>) {
        let mut open = self.open();
        if open.get(key).is_some_and(|open| Arc::ptr_eq(open, gone)) {
            open.remove(key);
        }
        gone.put_aside();
    }

    /// Opens a stored session to go on with it.
    pub(super) async fn go_on(&self, key: &SessionKey) -> Result<Arc<Open>, SessionError> {
        let unknown = || SessionError::Unknown(key.id.clone());
        let keeping = self.keeping.as_ref().ok_or_else(unknown)?;
        let _opening = keeping.opening.lock().await;
        // Somebody may have opened it while this waited.
        let looked = match self.here(key).await? {
            Here::Open(open) => return Ok(open),
            Here::Stored(stored) => stored,
        };
        let desk = self.desk(key).await?;
        self.make_room(key)?;
        // Before anything is changed: one that cannot be read is left as it is.
        read(&looked)?;
        let unreadable =
            |error: serde_json::Error| SessionError::Unreadable(key.id.clone(), error.to_string());
        if let Some(stored) = keeping.conversations.stored(&looked.conversation).await? {
            stored.reopening().map_err(unreadable)?;
        }
        let claimed = keeping.sessions.claim(key).await?.ok_or_else(unknown)?;
        let reopened = keeping.conversations.reopen(&claimed.conversation, &desk.agent.name).await?;
        let (reopened, journal) = match reopened {
            Some((stored, journal)) => {
                (Some(stored.reopening().map_err(unreadable)?.conversation), Some(journal))
            }
            None => (None, None),
        };
        let settled = self.settled(&claimed.conversation, reopened.as_ref()).await?;
        let (told, opened) = (read(&claimed)?, claimed.opened);
        let going = Going { conversation: claimed.conversation, opened, told, reopened, journal, settled };
        let started = Arc::new(self.start(key, &desk, going));
        self.open().insert(key.clone(), Arc::clone(&started));
        Ok(started)
    }

    /// What became of approvals that a stored conversation waits for.
    async fn settled(
        &self,
        conversation: &str,
        reopened: Option<&Reopened>,
    ) -> Result<Vec<SettledApproval>, SessionError> {
        let mut settled = Vec::new();
        for pending in reopened.iter().flat_map(|reopened| &reopened.approvals) {
            let approval = pending.approval;
            match self.approvals.get(&queue_id(conversation, approval)).await {
                Ok(found) if is_asked(&found.request, &pending.then) => {
                    settled.extend(outcome(&found).map(|outcome| SettledApproval { approval, outcome }));
                }
                // It was never asked for, or something else was: whoever asks now says so.
                Ok(_) | Err(ApprovalError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(settled)
    }
}

/// Whether this approval was asked for what is to run.
fn is_asked(request: &ApprovalRequest, then: &Prepared) -> bool {
    match then {
        Prepared::Plain { tool, input } | Prepared::Ask { tool, input, .. } => {
            serde_json::from_str(&input.json).is_ok_and(|input| is_same(request, &tool.name, &input))
        }
        Prepared::Approve { .. } | Prepared::Refused { .. } => false,
    }
}

/// A session as the store has it.
pub(super) fn shown(stored: &StoredSession, with_events: bool) -> Result<Value, SessionError> {
    let Told { state, events, .. } = read(stored)?;
    let SessionKey { app, user, id } = &stored.key;
    Ok(json!({
        "id": id,
        "appName": app,
        "userId": user,
        "state": state,
        "events": if with_events { events } else { Vec::new() },
        "lastUpdateTime": stored.changed_ms as f64 / 1_000.0,
    }))
}

/// Every approval that a stored session has asked for.
pub(super) fn asked(stored: &StoredSession) -> Result<Vec<ApprovalId>, SessionError> {
    Ok(read(stored)?.requests.into_iter().map(|(id, _)| id).collect())
}

fn read(stored: &StoredSession) -> Result<Told, SessionError> {
    let unreadable =
        |error: serde_json::Error| SessionError::Unreadable(stored.key.id.clone(), error.to_string());
    serde_json::from_str(&stored.body).map_err(unreadable)
}

fn text(told: &Told) -> Result<String, JournalError> {
    serde_json::to_string(told).map_err(|error| JournalError::Failed(error.to_string()))
}

/// The journal of a session's conversation, which stores what was told behind it.
#[derive(Debug)]
struct SessionJournal {
    inner: Arc<dyn Journal>,
    log: Log,
    sessions: Arc<dyn SessionStore>,
    key: SessionKey,
    opened: i64,
    state: Value,
    redactor: Option<Redactor>,
}

impl SessionJournal {
    async fn save(&self, told: Told) -> Result<(), JournalError> {
        let mut told = Told { state: self.state.clone(), ..told };
        if let Some(redactor) = &self.redactor {
            told.events.iter_mut().for_each(|event| bare(event, redactor));
        }
        self.sessions.save(&self.key, self.opened, &text(&told)?).await
    }
}

#[async_trait]
impl Journal for SessionJournal {
    async fn begin(&self, run: &ConfirmedRun, now: &Snapshot) -> Result<Begun, JournalError> {
        self.inner.begin(run, now).await
    }

    async fn finish(&self, run: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError> {
        self.inner.finish(run, outcome).await
    }

    async fn keep(&self, now: &Snapshot) -> Result<(), JournalError> {
        let kept = self.inner.keep(now).await;
        let Some(rest) = self.log.rest_at(now.conversation.items.len()) else { return kept };
        let saved = match kept {
            Ok(()) => self.save(rest.kept).await,
            failed => failed,
        };
        // What cannot be stored is told all the same, and the driver says that it could not.
        self.log.saved(rest.events);
        saved
    }
}

/// Takes details out of an event. What names calls stays: answers are found by it.
fn bare(event: &mut Value, redactor: &Redactor) {
    let told = |value: &mut Value| *value = redactor.value(value);
    for part in event["content"]["parts"].as_array_mut().into_iter().flatten() {
        for (field, inner) in [("functionCall", "args"), ("functionResponse", "response")] {
            let named = part[field]["name"] == REQUEST;
            let Some(inner) = part.get_mut(field).and_then(|call| call.get_mut(inner)) else { continue };
            match inner.get_mut("originalFunctionCall").and_then(|call| call.get_mut("args")) {
                Some(args) if named => {
                    told(args);
                    inner.get_mut("toolConfirmation").map(told);
                }
                Some(_) | None => told(inner),
            }
        }
        part.get_mut("text").map(told);
    }
    event.get_mut("errorMessage").map(told);
    event["actions"].get_mut("requestedToolConfirmations").map(told);
}
