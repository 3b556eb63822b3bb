//! The calls of a server: which there are, what happened in them, and how they are spoken to from outside.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sayback_core::{Event, Time};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, watch};

use crate::chat::Chat;
use crate::driver::Observer;
use crate::redact::Redactor;

/// Lines of the event log that are kept of one call; of a longer one the oldest go.
const LINES: usize = 2_000;
/// Lines that a slow listener may be behind before it misses some, and is told so.
const BEHIND: usize = 1_024;

/// One call as others see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallView {
    /// Its id.
    pub call: String,
    /// The agent that answers it.
    pub agent: String,
    /// How it came: `sip`, `media-stream`, ….
    pub transport: String,
    /// Who calls, as far as known.
    pub from: String,
    /// What was called.
    pub to: String,
    /// Whether we called them.
    pub outbound: bool,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// Whether it goes on.
    pub live: bool,
    /// Why it ended, once it has.
    pub ended: Option<String>,
    /// The question that waits for a yes, if one does.
    pub question: Option<String>,
    /// How many lines its event log has.
    pub events: u64,
}

/// What can be done to a line besides speaking on it.
pub trait LineControl: Send + Sync + std::fmt::Debug {
    /// Presses keys.
    ///
    /// # Errors
    /// If this line has no keys.
    fn press(&self, digits: &str) -> Result<(), NotOnThisLine>;
    /// Lets the far end hear nothing of what is said, or lets it hear again.
    ///
    /// # Errors
    /// If this line cannot.
    fn mute(&self, muted: bool) -> Result<(), NotOnThisLine>;
    /// Hands the caller over to another number.
    ///
    /// # Errors
    /// If this line cannot.
    fn transfer(&self, to: &str) -> Result<(), NotOnThisLine>;
}

/// A line cannot do that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a call over {transport} cannot {what}")]
pub struct NotOnThisLine {
    /// How the call came.
    pub transport: &'static str,
    /// What was asked.
    pub what: &'static str,
}

/// Why a call could not be spoken to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is none of that id.
    #[error("there is no call {0}")]
    Unknown(String),
    /// It is over.
    #[error("the call {0} is over")]
    Over(String),
    /// Its queue is full: it is stuck, or somebody asks for too much.
    #[error("the call {0} takes nothing more just now; try again in a second")]
    Busy(String),
    /// Its line cannot do that.
    #[error(transparent)]
    NotOnThisLine(#[from] NotOnThisLine),
}

/// One line of a call's event log, for those who listen to all calls.
#[derive(Clone, Debug)]
pub struct News {
    /// The call.
    pub call: Arc<str>,
    /// The number of the line in the call's log, from 0.
    pub number: u64,
    /// The line, as JSON: as text it takes a fifth of the memory, and a long call has two thousand of them.
    pub line: Arc<str>,
}

impl News {
    /// The line's fields.
    pub fn fields(&self) -> Value {
        // It is what this process wrote, so it can be read.
        serde_json::from_str(&self.line).unwrap_or_default()
    }
}

/// A call's log so far, and what follows.
#[derive(Debug)]
pub struct Follow {
    /// Lines that are kept, from the one asked for on.
    pub lines: Vec<News>,
    /// The next ones; closed when the call is over. `None`: it is over already.
    pub next: Option<broadcast::Receiver<News>>,
}

struct Entry {
    view: CallView,
    lines: VecDeque<News>,
    /// For those who follow the call, made with the first of them: its ring takes as much memory as all the rest of a
    /// quiet call's entry, and most calls are followed by nobody.
    news: Option<broadcast::Sender<News>>,
    call: mpsc::Sender<Event>,
    ends: Ends,
}

/// How a call's line is reached, besides its queue.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// What can be done to it, for lines that can do something.
    pub(crate) control: Option<Arc<dyn LineControl>>,
    /// How the conversation stands, for those in text.
    pub(crate) chat: Option<Chat>,
}

/// All calls of a server, and the last ones that are over.
#[derive(Clone)]
pub struct Calls {
    shared: Arc<Shared>,
}

struct Shared {
    entries: Mutex<BTreeMap<Arc<str>, Entry>>,
    /// Calls that are over, oldest first.
    over: Mutex<VecDeque<Arc<str>>>,
    /// Ids of conversations that are being opened again.
    claimed: Mutex<BTreeSet<Arc<str>>>,
    keep: usize,
    all: broadcast::Sender<News>,
    live: watch::Sender<usize>,
    taken: std::sync::atomic::AtomicU64,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("live", &self.live()).finish_non_exhaustive()
    }
}

impl Calls {
    /// No calls yet; `keep` calls are kept after their end.
    pub fn new(keep: usize) -> Self {
        let shared = Shared {
            entries: Mutex::default(),
            over: Mutex::default(),
            claimed: Mutex::default(),
            keep,
            all: broadcast::channel(BEHIND).0,
            live: watch::channel(0).0,
            taken: std::sync::atomic::AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// How many go on, those being set up among them.
    pub fn live(&self) -> usize {
        *self.shared.live.borrow()
    }

    /// How many there have been in all.
    pub fn taken(&self) -> u64 {
        self.shared.taken.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Waits until none goes on.
    pub async fn none_live(&self) {
        // The sender lives as long as this does.
        let _ = self.shared.live.subscribe().wait_for(|live| *live == 0).await;
    }

    /// All calls, oldest first; those that go on and the last ones that are over.
    pub fn list(&self) -> Vec<CallView> {
        let mut views: Vec<CallView> = self.entries().values().map(|entry| entry.view.clone()).collect();
        views.sort_by(|a, b| a.began.cmp(&b.began).then_with(|| a.call.cmp(&b.call)));
        views
    }

    /// One call.
    ///
    /// # Errors
    /// If there is none of that id.
    pub fn get(&self, id: &str) -> Result<CallView, CallError> {
        let entries = self.entries();
        entries.get(id).map(|entry| entry.view.clone()).ok_or_else(|| CallError::Unknown(id.to_owned()))
    }

    /// The log of one call from a line on, and what follows; nothing in between is missed.
    ///
    /// # Errors
    /// If there is none of that id.
    pub fn follow(&self, id: &str, from: u64) -> Result<Follow, CallError> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id).ok_or_else(|| CallError::Unknown(id.to_owned()))?;
        let lines = entry.lines.iter().filter(|news| news.number >= from).cloned().collect();
        let next = entry
            .view
            .live
            .then(|| entry.news.get_or_insert_with(|| broadcast::channel(BEHIND).0).subscribe());
        Ok(Follow { lines, next })
    }

    /// The lines of all calls from now on.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.shared.all.subscribe()
    }

    /// Tells a call something. Never waits.
    ///
    /// # Errors
    /// If there is no such call, or it takes nothing.
    pub fn tell(&self, id: &str, event: Event) -> Result<(), CallError> {
        let call = self.live_entry(id, |entry| entry.call.clone())?;
        call.try_send(event).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => CallError::Busy(id.to_owned()),
            mpsc::error::TrySendError::Closed(_) => CallError::Over(id.to_owned()),
        })
    }

    /// What can be done to a call's line.
    ///
    /// # Errors
    /// If there is no such call, or its line can do nothing.
    pub fn line(&self, id: &str) -> Result<Arc<dyn LineControl>, CallError> {
        let control = self.live_entry(id, |entry| entry.ends.control.clone())?;
        control.ok_or_else(|| NotOnThisLine { transport: "this line", what: "do that" }.into())
    }

    /// A conversation in text; also one that is over.
    ///
    /// # Errors
    /// If there is none of that id, or it is not in text.
    pub fn chat(&self, id: &str) -> Result<Chat, CallError> {
        let entries = self.entries();
        let chat = entries.get(id).and_then(|entry| entry.ends.chat.clone());
        chat.ok_or_else(|| CallError::Unknown(id.to_owned()))
    }

    /// Tells every call that goes on.
    pub fn tell_all(&self, event: &Event) {
        let live: Vec<String> = self.list().into_iter().filter(|v| v.live).map(|v| v.call).collect();
        for id in live {
            if let Err(error) = self.tell(&id, event.clone()) {
                tracing::warn!("{error}");
            }
        }
    }

    fn live_entry<T>(&self, id: &str, take: impl FnOnce(&Entry) -> T) -> Result<T, CallError> {
        let entries = self.entries();
        let entry = entries.get(id).ok_or_else(|| CallError::Unknown(id.to_owned()))?;
        if entry.view.live { Ok(take(entry)) } else { Err(CallError::Over(id.to_owned())) }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Entry>> {
        self.shared.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more call, if fewer than `most` go on.
    pub(crate) fn reserve(&self, most: usize) -> Option<Place> {
        let reserved = self.shared.live.send_if_modified(|live| {
            let room = *live < most;
            *live += usize::from(room);
            room
        });
        reserved.then(|| Place { calls: self.clone() })
    }

    /// Keeps an id for a stored conversation that is to go on under it; `None` while one of that id goes on here, or is
    /// being opened by somebody else.
    pub fn claim(&self, id: &str) -> Option<ClaimedId> {
        let id: Arc<str> = id.into();
        let mut claimed = self.claimed();
        if self.entries().get(&id).is_some_and(|entry| entry.view.live) || !claimed.insert(Arc::clone(&id)) {
            return None;
        }
        Some(ClaimedId { calls: self.clone(), id })
    }

    fn claimed(&self) -> MutexGuard<'_, BTreeSet<Arc<str>>> {
        self.shared.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over(&self) -> MutexGuard<'_, VecDeque<Arc<str>>> {
        self.shared.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call has begun. Gives what writes its log here.
    pub(crate) fn enter(&self, view: CallView, call: mpsc::Sender<Event>, ends: Ends) -> CallLog {
        let id: Arc<str> = view.call.as_str().into();
        let entry = Entry { view, lines: VecDeque::new(), news: None, call, ends };
        self.shared.taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if self.entries().insert(Arc::clone(&id), entry).is_some() {
            // It was over, and goes on.
            self.over().retain(|over| *over != id);
        }
        CallLog { calls: self.clone(), id, redactor: None }
    }

    fn note(&self, id: &Arc<str>, line: &Value) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(id) else { return };
        follow_question(&mut entry.view, line);
        let news = News { call: Arc::clone(id), number: entry.view.events, line: line.to_string().into() };
        entry.view.events += 1;
        if entry.lines.len() == LINES {
            entry.lines.pop_front();
        }
        entry.lines.push_back(news.clone());
        // Nobody listening is no error.
        if let Some(sender) = &entry.news {
            let _ = sender.send(news.clone());
        }
        let _ = self.shared.all.send(news);
    }

    fn leave(&self, id: &Arc<str>) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.view.live = false;
            entry.view.question = None;
            entry.view.ended.get_or_insert_with(|| "broken_off".to_owned());
            entry.news = None;
            entry.ends.control = None;
        }
        let mut over = self.over();
        over.push_back(Arc::clone(id));
        while over.len() > self.shared.keep {
            if let Some(oldest) = over.pop_front() {
                self.entries().remove(&oldest);
            }
        }
    }
}

fn follow_question(view: &mut CallView, line: &Value) {
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    match line["event"].as_str() {
        Some("question.started") => view.question = Some(text("text")),
        Some("question.dropped" | "tool.started") => view.question = None,
        Some("call.ended") => view.ended = Some(text("reason")),
        _ => {}
    }
}

/// An id that is kept for one who opens a conversation again; it is free again when this is dropped.
#[derive(Debug)]
pub struct ClaimedId {
    calls: Calls,
    id: Arc<str>,
}

impl ClaimedId {
    /// The id.
    pub fn as_str(&self) -> &str {
        &self.id
    }
}

impl Drop for ClaimedId {
    fn drop(&mut self) {
        self.calls.claimed().remove(&self.id);
    }
}

/// A place among the calls that go on; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    calls: Calls,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.calls.shared.live.send_modify(|live| *live = live.saturating_sub(1));
    }
}

/// Writes a call's log where all can read it; the call is over when this is dropped.
#[derive(Debug)]
pub(crate) struct CallLog {
    calls: Calls,
    id: Arc<str>,
    redactor: Option<Redactor>,
}

impl CallLog {
    /// Personal details stay in the call.
    pub(crate) fn redacted(mut self, redactor: Option<Redactor>) -> Self {
        self.redactor = redactor;
        self
    }
}

impl Observer for CallLog {
    fn on_input(&mut self, _at: Time, event: &Event) {
        if let Some(redactor) = &self.redactor {
            redactor.learn(event);
        }
    }

    fn on_event(&mut self, line: &Value) {
        match &self.redactor {
            Some(redactor) => self.calls.note(&self.id, &redactor.line(line)),
            None => self.calls.note(&self.id, line),
        }
    }
}

impl Drop for CallLog {
    fn drop(&mut self) {
        self.calls.leave(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(id: &str) -> CallView {
        CallView {
            call: id.to_owned(),
            agent: "desk".to_owned(),
            transport: "sip".to_owned(),
            from: "anna".to_owned(),
            to: "100".to_owned(),
            outbound: false,
            began: 1,
            live: true,
            ended: None,
            question: None,
            events: 0,
        }
    }

    #[test]
    fn places_are_counted_and_given_back() {
        let calls = Calls::new(2);
        let first = calls.reserve(2);
        let second = calls.reserve(2);
        assert!(first.is_some() && second.is_some() && calls.reserve(2).is_none());
        drop(first);
        assert_eq!(calls.live(), 1);
        assert!(calls.reserve(2).is_some());
    }

    #[test]
    fn a_log_is_followed_without_a_gap_and_kept_after_the_end() {
        let calls = Calls::new(1);
        let (sender, _events) = mpsc::channel(1);
        let mut log = calls.enter(view("a"), sender, Ends::default());
        log.on_event(&json!({"event": "call.started"}));
        let mut follow = calls.follow("a", 0).unwrap();
        log.on_event(&json!({"event": "question.started", "text": "Shall I?"}));
        assert_eq!(calls.get("a").unwrap().question.as_deref(), Some("Shall I?"));
        log.on_event(&json!({"event": "call.ended", "reason": "hangup"}));
        drop(log);
        let next = follow.next.as_mut().unwrap();
        let numbers =
            [follow.lines[0].number, next.try_recv().unwrap().number, next.try_recv().unwrap().number];
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(follow.lines[0].fields(), json!({"event": "call.started"}));
        assert!(matches!(next.try_recv(), Err(broadcast::error::TryRecvError::Closed)));
        let after = calls.get("a").unwrap();
        assert_eq!((after.live, after.ended.as_deref(), after.question), (false, Some("hangup"), None));
        assert_eq!(calls.follow("a", 2).unwrap().lines.len(), 1);
        assert_eq!(calls.tell("a", Event::Tick), Err(CallError::Over("a".to_owned())));
    }

    #[test]
    fn only_so_many_are_kept() {
        let calls = Calls::new(1);
        for id in ["a", "b"] {
            let (sender, _events) = mpsc::channel(1);
            drop(calls.enter(view(id), sender, Ends::default()));
        }
        assert_eq!(calls.get("a"), Err(CallError::Unknown("a".to_owned())));
        assert!(calls.get("b").is_ok());
    }

    #[test]
    fn a_call_that_takes_nothing_is_said_to_be_busy() {
        let calls = Calls::new(1);
        let (sender, _events) = mpsc::channel(1);
        let _log = calls.enter(view("a"), sender, Ends::default());
        assert_eq!(calls.tell("a", Event::Tick), Ok(()));
        assert_eq!(calls.tell("a", Event::Tick), Err(CallError::Busy("a".to_owned())));
        assert_eq!(calls.tell("b", Event::Tick), Err(CallError::Unknown("b".to_owned())));
    }
}
