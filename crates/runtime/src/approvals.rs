//! Approvals: what waits for an operator or an app, by id, and is answered once.
//!
//! ```text
//! request ─▶ open ─┬ answered: approved or rejected   (the first answer, and no other)
//!                  ├ cancelled: whoever asked is gone (a call that ended, a session that was deleted)
//!                  └ expired: nobody answered in time
//! ```
//! A caller can be asked one thing at a time, an operator many: so a list, and each with an id of its own. The
//! [`ApprovalStore`] keeps them and settles each once, by compare-and-set; the [`ApprovalQueue`] in front of it knows the
//! time, and wakes whoever waits. An answer given in another process is seen at the next look, [`LOOK`] later at most.
//!
//! An approval is not the caller's yes and never stands in for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::clock::unix_millis;
use crate::conversations::{Conversations, LostRun};

/// How often whoever waits looks at a store that another process may have written to.
pub const LOOK: Duration = Duration::from_secs(1);
/// How often a server says that it lives.
pub const BEAT: Duration = Duration::from_secs(5);
/// A server that has not been heard of for so long is dead, and what its calls asked for is void.
pub const DEAD: Duration = Duration::from_secs(20);
/// Settled approvals that the in-memory store keeps, so that a late answer is told what became of them.
const KEPT: usize = 10_000;

/// Who asks for an approval, and is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asker {
    /// A call that goes on: it ends with its process.
    Call(String),
    /// A text session, which outlives its process.
    Session {
        /// Which agent.
        app: String,
        /// Whose session.
        user: String,
        /// Its id.
        id: String,
    },
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Its id, unique among all approvals of a store.
    pub id: String,
    /// Who asks.
    pub asker: Asker,
    /// The agent's name.
    pub agent: String,
    /// The tool that is to run.
    pub tool: String,
    /// Its validated input.
    pub input: Value,
    /// What the operator is told.
    pub hint: String,
    /// What the operator may fill in, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// When it was asked, in milliseconds since 1970.
    pub asked_ms: u64,
    /// From when an answer is too late, in milliseconds since 1970; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// What an operator answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Whether it may run.
    pub confirmed: bool,
    /// What they filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// How an approval stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum ApprovalState {
    /// It waits.
    Open,
    /// It was answered.
    Answered {
        /// What.
        decision: Decision,
        /// When, in milliseconds since 1970.
        at_ms: u64,
    },
    /// Whoever asked is gone.
    Cancelled {
        /// Why.
        reason: String,
        /// When, in milliseconds since 1970.
        at_ms: u64,
    },
    /// Nobody answered in time.
    Expired {
        /// When it was over, in milliseconds since 1970.
        at_ms: u64,
    },
}

/// An approval: what is asked for, and how it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// What is asked for.
    #[serde(flatten)]
    pub request: ApprovalRequest,
    /// How it stands.
    #[serde(flatten)]
    pub state: ApprovalState,
}

/// Why an approval cannot be asked for, answered or found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// There is none of that id.
    #[error("there is no approval {id}; it may have been asked of another server")]
    Unknown {
        /// The id.
        id: String,
    },
    /// It was asked for already.
    #[error("the approval {id} was asked for already; each request needs an id of its own")]
    Exists {
        /// The id.
        id: String,
    },
    /// It was answered already; the first answer counts.
    #[error("the approval {id} was {} already; the first answer counts", if *confirmed { "given" } else { "refused" })]
    Answered {
        /// The id.
        id: String,
        /// What the first answer was.
        confirmed: bool,
    },
    /// Whoever asked is gone, or it took too long.
    #[error("the approval {id} is no longer wanted: {why}")]
    Gone {
        /// The id.
        id: String,
        /// Why.
        why: String,
    },
    /// The store failed.
    #[error("approvals cannot be kept: {0}")]
    Store(String),
}

impl Approval {
    /// What an answer gets that comes now, if it is no longer open.
    pub fn closed(&self) -> Option<ApprovalError> {
        let id = self.request.id.clone();
        match &self.state {
            ApprovalState::Open => None,
            ApprovalState::Answered { decision, .. } => {
                Some(ApprovalError::Answered { id, confirmed: decision.confirmed })
            }
            ApprovalState::Cancelled { reason, .. } => Some(ApprovalError::Gone { id, why: reason.clone() }),
            ApprovalState::Expired { .. } => {
                Some(ApprovalError::Gone { id, why: "nobody answered in time".to_owned() })
            }
        }
    }

    fn is_over_at(&self, now_ms: u64) -> bool {
        self.state == ApprovalState::Open && self.request.expires_ms.is_some_and(|end| end <= now_ms)
    }
}

/// Keeps approvals. What was written survives what the store is there to survive: nothing for the one in memory, a crash
/// for those on disk.
#[async_trait]
pub trait ApprovalStore: Send + Sync + std::fmt::Debug {
    /// Writes a new one down.
    ///
    /// # Errors
    /// [`ApprovalError::Exists`], or the store failed.
    async fn put(&self, request: &ApprovalRequest) -> Result<(), ApprovalError>;

    /// Settles an open one, by compare-and-set: of any number of callers, one settles it.
    ///
    /// # Errors
    /// It is not open or not known, or the store failed.
    async fn settle(&self, id: &str, to: &ApprovalState) -> Result<Approval, ApprovalError>;

    /// One of them.
    ///
    /// # Errors
    /// It is not known, or the store failed.
    async fn get(&self, id: &str) -> Result<Approval, ApprovalError>;

    /// Those that are open, oldest first.
    ///
    /// # Errors
    /// The store failed.
    async fn open(&self) -> Result<Vec<Approval>, ApprovalError>;

    /// This server lives. The default is for stores that only one server has.
    ///
    /// # Errors
    /// The store failed.
    async fn beat(&self) -> Result<(), ApprovalError> {
        Ok(())
    }

    /// This server ends: from now on it counts as dead.
    ///
    /// # Errors
    /// The store failed.
    async fn leave(&self) -> Result<(), ApprovalError> {
        Ok(())
    }

    /// Settles the open ones of calls whose server is another one and has not said for `dead` that it lives; gives how
    /// many. Those of text sessions stay: a session outlives its server.
    ///
    /// # Errors
    /// The store failed.
    async fn void(&self, dead: Duration, to: &ApprovalState) -> Result<usize, ApprovalError> {
        let _ = (dead, to);
        Ok(0)
    }
}

/// The approvals of a server. Clones share them.
#[derive(Clone, Debug)]
pub struct ApprovalQueue {
    store: Arc<dyn ApprovalStore>,
    /// Counts what was settled here: whoever waits looks again.
    settled: watch::Sender<u64>,
}

impl Default for ApprovalQueue {
    fn default() -> Self {
        Self::new(Arc::new(MemoryApprovals::default()))
    }
}

impl ApprovalQueue {
    /// A queue whose approvals are kept there.
    pub fn new(store: Arc<dyn ApprovalStore>) -> Self {
        Self { store, settled: watch::Sender::new(0) }
    }

    /// Asks for an approval.
    ///
    /// # Errors
    /// Its id is taken, or the store failed: then nobody is asked.
    pub async fn request(&self, request: &ApprovalRequest) -> Result<(), ApprovalError> {
        self.store.put(request).await
    }

    /// Answers one, once.
    ///
    /// # Errors
    /// It is not known, was answered before, or is no longer wanted: then nothing runs because of this answer.
    pub async fn answer(&self, id: &str, decision: Decision) -> Result<Approval, ApprovalError> {
        self.get(id).await?;
        self.settle(id, ApprovalState::Answered { decision, at_ms: unix_millis() }).await
    }

    /// Whoever asked is gone. One that is settled already stays as it is.
    ///
    /// # Errors
    /// It is not known, or the store failed.
    pub async fn cancel(&self, id: &str, reason: &str) -> Result<(), ApprovalError> {
        let to = ApprovalState::Cancelled { reason: reason.to_owned(), at_ms: unix_millis() };
        match self.settle(id, to).await {
            Ok(_) | Err(ApprovalError::Answered { .. } | ApprovalError::Gone { .. }) => Ok(()),
            Err(
                error @ (ApprovalError::Unknown { .. }
                | ApprovalError::Exists { .. }
                | ApprovalError::Store(_)),
            ) => Err(error),
        }
    }

    /// At a server's start: calls of an earlier process are over, and what they asked for is no longer wanted. Text
    /// sessions go on.
    ///
    /// # Errors
    /// The store failed.
    pub async fn cancel_left_over(&self) -> Result<usize, ApprovalError> {
        let mut cancelled = 0;
        for approval in self.store.open().await? {
            if matches!(approval.request.asker, Asker::Call(_)) {
                self.cancel(&approval.request.id, "the server was restarted and the call is over").await?;
                cancelled += 1;
            }
        }
        Ok(cancelled)
    }

    /// What calls of other servers asked for that have not said for `dead` that they live is no longer wanted.
    ///
    /// # Errors
    /// The store failed.
    pub async fn void_orphans(&self, dead: Duration) -> Result<usize, ApprovalError> {
        let reason = "the server that the call was on is gone, and the call with it".to_owned();
        self.store.void(dead, &ApprovalState::Cancelled { reason, at_ms: unix_millis() }).await
    }

    /// Says that this server lives.
    ///
    /// # Errors
    /// The store failed.
    pub async fn beat(&self) -> Result<(), ApprovalError> {
        self.store.beat().await
    }

    /// Says that this server ends: what its calls asked for is void at once.
    ///
    /// # Errors
    /// The store failed.
    pub async fn leave(&self) -> Result<(), ApprovalError> {
        self.store.leave().await
    }

    /// Says again and again that this server lives, voids what dead ones asked for and gives up the runs that they left in
    /// `conversations`, for as long as it is polled.
    ///
    /// A store that was away was away for all: whoever comes back first would take the others for dead. So only a server
    /// that has itself been heard for all of [`DEAD`] says so of another.
    pub async fn keep_alive(self, conversations: Option<Arc<dyn Conversations>>) {
        let (mut beats, mut every) = (0, tokio::time::interval(BEAT));
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let enough = DEAD.as_secs() / BEAT.as_secs() + 1;
        loop {
            every.tick().await;
            let done = match self.beat().await {
                Ok(()) => {
                    beats += 1;
                    if beats > enough { self.clear_up(conversations.as_deref()).await } else { Ok(()) }
                }
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = done {
                beats = 0;
                tracing::warn!("other servers may take this one for dead: {error}");
            }
        }
    }

    /// What dead servers left.
    async fn clear_up(&self, conversations: Option<&dyn Conversations>) -> Result<(), String> {
        let void = self.void_orphans(DEAD).await.map_err(|error| error.to_string())?;
        if void > 0 {
            tracing::warn!("{void} approvals are void: their server is gone");
        }
        let Some(conversations) = conversations else { return Ok(()) };
        for lost in conversations.give_up(DEAD).await.map_err(|error| error.to_string())? {
            let LostRun { conversation, tool, idempotency_key } = lost;
            tracing::warn!(
                "the outcome of {tool} in {conversation} is unknown: it had begun on a server that is gone, and is not \
                 run again (idempotency key {idempotency_key})"
            );
        }
        Ok(())
    }

    /// One of them, as it stands.
    ///
    /// # Errors
    /// It is not known, or the store failed.
    pub async fn get(&self, id: &str) -> Result<Approval, ApprovalError> {
        let found = self.store.get(id).await?;
        if !found.is_over_at(unix_millis()) {
            return Ok(found);
        }
        self.expire(&found).await?;
        self.store.get(id).await
    }

    /// Those that wait, oldest first.
    ///
    /// # Errors
    /// The store failed.
    pub async fn open(&self) -> Result<Vec<Approval>, ApprovalError> {
        let (now, mut open) = (unix_millis(), self.store.open().await?);
        for over in open.extract_if(.., |approval| approval.is_over_at(now)) {
            self.expire(&over).await?;
        }
        Ok(open)
    }

    /// Waits until it is settled, and gives how it stands then. After `patience` without an answer it expires; without a
    /// patience it waits for as long as the request allows.
    ///
    /// Dropping the wait asks nobody any more and settles nothing: whoever drops it for good cancels the approval.
    ///
    /// # Errors
    /// It is not known, or the store failed.
    pub async fn wait(&self, id: &str, patience: Option<Duration>) -> Result<Approval, ApprovalError> {
        let mut settled = self.settled.subscribe();
        let until_settled = async {
            loop {
                settled.mark_unchanged();
                let approval = self.get(id).await?;
                if approval.state != ApprovalState::Open {
                    return Ok(approval);
                }
                let left = approval.request.expires_ms.map_or(u64::MAX, |end| end - unix_millis().min(end));
                let look = LOOK.min(Duration::from_millis(left.max(1)));
                // Either way it is looked at again; the sender lives as long as this queue does.
                let _ = tokio::time::timeout(look, settled.changed()).await;
            }
        };
        let Some(patience) = patience else { return until_settled.await };
        match tokio::time::timeout(patience, until_settled).await {
            Ok(found) => found,
            Err(_) => {
                let over = ApprovalState::Expired { at_ms: unix_millis() };
                // An answer that came at the last moment has settled it: then that counts.
                match self.settle(id, over).await {
                    Ok(approval) => Ok(approval),
                    Err(ApprovalError::Answered { .. } | ApprovalError::Gone { .. }) => self.get(id).await,
                    Err(error) => Err(error),
                }
            }
        }
    }

    async fn expire(&self, approval: &Approval) -> Result<(), ApprovalError> {
        let at_ms = approval.request.expires_ms.unwrap_or_else(unix_millis);
        match self.settle(&approval.request.id, ApprovalState::Expired { at_ms }).await {
            Ok(_) | Err(ApprovalError::Answered { .. } | ApprovalError::Gone { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn settle(&self, id: &str, to: ApprovalState) -> Result<Approval, ApprovalError> {
        let approval = self.store.settle(id, &to).await?;
        self.settled.send_modify(|count| *count = count.wrapping_add(1));
        Ok(approval)
    }
}

/// Approvals in memory: gone with the process.
#[derive(Debug, Default)]
pub struct MemoryApprovals {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the order in which they were asked for.
    approvals: BTreeMap<u64, Approval>,
    numbers: BTreeMap<String, u64>,
    next: u64,
}

impl Kept {
    fn get(&mut self, id: &str) -> Result<&mut Approval, ApprovalError> {
        let unknown = || ApprovalError::Unknown { id: id.to_owned() };
        let number = self.numbers.get(id).ok_or_else(unknown)?;
        self.approvals.get_mut(number).ok_or_else(unknown)
    }

    /// The oldest settled one goes when there are too many.
    fn forget(&mut self) {
        if self.approvals.len() <= KEPT {
            return;
        }
        let settled = self.approvals.iter().find(|(_, kept)| kept.state != ApprovalState::Open);
        if let Some(number) = settled.map(|(number, _)| *number)
            && let Some(old) = self.approvals.remove(&number)
        {
            self.numbers.remove(&old.request.id);
        }
    }
}

impl MemoryApprovals {
    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ApprovalStore for MemoryApprovals {
    async fn put(&self, request: &ApprovalRequest) -> Result<(), ApprovalError> {
        let mut kept = self.kept();
        if kept.numbers.contains_key(&request.id) {
            return Err(ApprovalError::Exists { id: request.id.clone() });
        }
        let number = kept.next;
        kept.next += 1;
        kept.numbers.insert(request.id.clone(), number);
        let approval = Approval { request: request.clone(), state: ApprovalState::Open };
        kept.approvals.insert(number, approval);
        kept.forget();
        Ok(())
    }

    async fn settle(&self, id: &str, to: &ApprovalState) -> Result<Approval, ApprovalError> {
        let mut kept = self.kept();
        let approval = kept.get(id)?;
        if let Some(closed) = approval.closed() {
            return Err(closed);
        }
        approval.state = to.clone();
        Ok(approval.clone())
    }

    async fn get(&self, id: &str) -> Result<Approval, ApprovalError> {
        self.kept().get(id).cloned()
    }

    async fn open(&self) -> Result<Vec<Approval>, ApprovalError> {
        let kept = self.kept();
        let open = kept.approvals.values().filter(|approval| approval.state == ApprovalState::Open);
        Ok(open.cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(id: &str) -> ApprovalRequest {
        ApprovalRequest {
            id: id.to_owned(),
            asker: Asker::Call("call-1".to_owned()),
            agent: "bank".to_owned(),
            tool: "transfer_money".to_owned(),
            input: json!({ "amount": 5000, "to": "bob" }),
            hint: "A transfer above the limit".to_owned(),
            payload: None,
            asked_ms: unix_millis(),
            expires_ms: None,
        }
    }

    fn yes(by: &str) -> Decision {
        Decision { confirmed: true, by: Some(by.to_owned()), ..Decision::default() }
    }

    #[tokio::test]
    async fn adk_17_of_many_answers_at_the_same_instant_one_counts() {
        let queue = ApprovalQueue::default();
        queue.request(&request("a")).await.unwrap();
        let answers = (0..50).map(|n| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.answer("a", yes(&n.to_string())).await })
        });
        let mut counted = 0;
        for answer in futures::future::join_all(answers).await {
            match answer.unwrap() {
                Ok(_) => counted += 1,
                Err(error) => assert!(matches!(error, ApprovalError::Answered { confirmed: true, .. })),
            }
        }
        assert_eq!(counted, 1);
    }

    #[tokio::test]
    async fn an_approval_of_nobody_or_of_a_call_that_is_over_is_refused() {
        let queue = ApprovalQueue::default();
        assert_eq!(queue.answer("a", yes("x")).await, Err(ApprovalError::Unknown { id: "a".to_owned() }));
        queue.request(&request("a")).await.unwrap();
        assert!(matches!(queue.request(&request("a")).await, Err(ApprovalError::Exists { .. })));
        queue.cancel("a", "the caller hung up").await.unwrap();
        assert!(matches!(queue.answer("a", yes("x")).await, Err(ApprovalError::Gone { .. })));
        // Cancelling again changes nothing.
        queue.cancel("a", "the caller hung up").await.unwrap();
        assert!(queue.open().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn who_waits_is_told_the_answer_and_its_payload() {
        let queue = ApprovalQueue::default();
        queue.request(&request("a")).await.unwrap();
        let waiting = queue.clone();
        let waits = tokio::spawn(async move { waiting.wait("a", Some(Duration::from_secs(30))).await });
        let decision = Decision { payload: Some(json!({ "days": 3 })), ..yes("ann") };
        queue.answer("a", decision.clone()).await.unwrap();
        let approval = waits.await.unwrap().unwrap();
        assert!(matches!(approval.state, ApprovalState::Answered { decision: d, .. } if d == decision));
    }

    #[tokio::test]
    async fn after_its_time_it_takes_no_answer() {
        let queue = ApprovalQueue::default();
        queue.request(&request("a")).await.unwrap();
        let approval = queue.wait("a", Some(Duration::from_millis(1))).await.unwrap();
        assert!(matches!(approval.state, ApprovalState::Expired { .. }));
        assert!(matches!(queue.answer("a", yes("late")).await, Err(ApprovalError::Gone { .. })));
        queue.request(&ApprovalRequest { expires_ms: Some(1), ..request("b") }).await.unwrap();
        assert!(queue.open().await.unwrap().is_empty());
        assert!(matches!(queue.answer("b", yes("late")).await, Err(ApprovalError::Gone { .. })));
        let found = queue.wait("b", None).await.unwrap();
        assert_eq!(found.state, ApprovalState::Expired { at_ms: 1 });
    }

    #[tokio::test]
    async fn a_restart_ends_what_calls_asked_for_and_leaves_what_sessions_asked_for() {
        let queue = ApprovalQueue::default();
        queue.request(&request("a")).await.unwrap();
        let asker = Asker::Session { app: "bank".into(), user: "u".into(), id: "s".into() };
        queue.request(&ApprovalRequest { asker, ..request("b") }).await.unwrap();
        assert_eq!(queue.cancel_left_over().await, Ok(1));
        let open: Vec<String> = queue.open().await.unwrap().into_iter().map(|a| a.request.id).collect();
        assert_eq!(open, ["b"]);
    }
}
