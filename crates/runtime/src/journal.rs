//! Exactly once: a confirmed run is written down before it begins, and what came of it as soon as it is known.
//!
//! ```text
//! yes ─▶ begin(run) ─ fresh ───▶ the handler runs ─▶ finish(run, outcome) ─▶ the model is told
//!             ├ already there ─▶ nothing runs; the model is told
//!             └ cannot write ──▶ nothing runs; the model is told
//! ```
//! A process that dies between `begin` and `finish` leaves a run without an outcome. It is told when the conversation
//! is opened again, and never run again by itself (VC-79).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sayback_core::{Confirmation, HoldId, Reopened, ToolOutcome, ToolRef};

/// A confirmed run that is about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmedRun {
    /// The hold that was answered.
    pub hold: HoldId,
    /// Which run of it, from 1: more than one only after a rewind by the caller (VC-76).
    pub attempt: u32,
    /// What the handler is told to pass on; the same for each attempt.
    pub idempotency_key: String,
    /// The model's call.
    pub call: String,
    /// The tool, with the hash of its definition.
    pub tool: ToolRef,
    /// Hash of the frozen input; the input itself is not kept here.
    pub input_hash: String,
    /// The words or the digit that said yes.
    pub confirmed_by: String,
}

impl ConfirmedRun {
    /// What a yes allows, with the key that its handler gets.
    pub fn of(yes: &Confirmation, idempotency_key: String) -> Self {
        Self {
            hold: yes.hold(),
            attempt: yes.attempt(),
            idempotency_key,
            call: yes.call().0.clone(),
            tool: yes.tool().clone(),
            input_hash: yes.input().hash.clone(),
            confirmed_by: yes.confirmed_by().to_owned(),
        }
    }
}

/// A conversation as it stood at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Grows with each one of a process: an older one never takes the place of a newer one, in whichever order the
    /// writes come through.
    pub order: u64,
    /// The conversation.
    pub conversation: Reopened,
}

impl Snapshot {
    /// The one that a call leaves behind.
    pub fn last(conversation: Reopened) -> Self {
        Self { order: u64::MAX, conversation }
    }
}

/// What the journal says to a run that wants to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is written down as started, and it is this caller's to make.
    Fresh,
    /// This hold was run already, or is being run: by a retried event, another worker or another process (VC-65).
    Already,
}

/// Why the journal could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The same conversation was opened in another place since; whoever opened it last may write.
    #[error("this conversation has been opened in another place since")]
    OpenedElsewhere,
    /// The store failed.
    #[error("{0}")]
    Failed(String),
}

/// The journal of one conversation. What a method wrote survives a crash of the machine once it is done, and it holds no
/// executor's thread up meanwhile. One that is given up half way may have written or not, and does not leave half of it.
#[async_trait]
pub trait Journal: Send + Sync + std::fmt::Debug {
    /// Writes that a run begins, with the conversation as it stands, in one step. Compare-and-set on the hold and the
    /// attempt: of any number of callers, one gets `Fresh`.
    ///
    /// # Errors
    /// Nothing was written, or that is not known: then nothing may run.
    async fn begin(&self, run: &ConfirmedRun, now: &Snapshot) -> Result<Begun, JournalError>;

    /// Writes what came of a run; also of one whose outcome was called unknown before (VC-62).
    ///
    /// # Errors
    /// The outcome is not written: the run counts as one whose outcome is unknown.
    async fn finish(&self, run: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError>;

    /// Keeps the conversation as it stands, in place of what was kept before.
    ///
    /// # Errors
    /// The older one stays.
    async fn keep(&self, now: &Snapshot) -> Result<(), JournalError>;
}

/// An outcome that could not be written is tried again so often, at such intervals: for five minutes.
const TRIES: u32 = 60;
const AGAIN: Duration = Duration::from_secs(5);

/// Makes a run exactly once: written down first, then made, then its outcome written. Nothing runs that is not written.
pub async fn exactly_once(
    journal: Arc<dyn Journal>,
    run: ConfirmedRun,
    now: Snapshot,
    make: impl Future<Output = ToolOutcome> + Send,
) -> ToolOutcome {
    match journal.begin(&run, &now).await {
        Ok(Begun::Fresh) => {}
        Ok(Begun::Already) => {
            return not_run(
                &run,
                "this very yes was used for a run already, and it was not run a second time",
            );
        }
        Err(error @ JournalError::OpenedElsewhere) => {
            return not_run(&run, &format!("{error}, so nothing ran here"));
        }
        Err(JournalError::Failed(why)) => {
            tracing::error!("a confirmed run could not be written down, so it was not made: {why}");
            return not_run(&run, "it could not be written down, so nothing ran");
        }
    }
    let outcome = make.await;
    if let Err(error) = journal.finish(&run, &outcome).await {
        tracing::error!(
            "what came of a confirmed run could not be written down, and is tried again: {error}"
        );
        tokio::spawn(finish_later(journal, run, outcome.clone()));
    }
    outcome
}

/// Writes an outcome once its store is back. Until then the run counts as one whose outcome is unknown, and the call does
/// not wait for it: what it was told is true.
async fn finish_later(journal: Arc<dyn Journal>, run: ConfirmedRun, outcome: ToolOutcome) {
    let mut again = tokio::time::interval(AGAIN);
    again.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for _ in 0..TRIES {
        again.tick().await;
        if journal.finish(&run, &outcome).await.is_ok() {
            return;
        }
    }
    tracing::error!(
        "what came of {} was not written down (idempotency key {})",
        run.tool.name,
        run.idempotency_key
    );
}

fn not_run(run: &ConfirmedRun, why: &str) -> ToolOutcome {
    ToolOutcome::NotRun { message: format!("{} was not run: {why}. Tell the caller.", run.tool.name) }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;

    use tokio::sync::Notify;

    use super::*;

    /// A journal whose store is away for so many outcomes.
    #[derive(Debug)]
    struct Away {
        left: Mutex<u32>,
        written: Mutex<Vec<ToolOutcome>>,
        done: Notify,
    }

    #[async_trait]
    impl Journal for Away {
        async fn begin(&self, _: &ConfirmedRun, _: &Snapshot) -> Result<Begun, JournalError> {
            Ok(Begun::Fresh)
        }

        async fn finish(&self, _: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError> {
            let mut left = self.left.lock().unwrap();
            if *left > 0 {
                *left -= 1;
                return Err(JournalError::Failed("nobody answers".to_owned()));
            }
            self.written.lock().unwrap().push(outcome.clone());
            self.done.notify_one();
            Ok(())
        }

        async fn keep(&self, _: &Snapshot) -> Result<(), JournalError> {
            Ok(())
        }
    }

    /// A run on a yes.
    pub(crate) fn run() -> ConfirmedRun {
        ConfirmedRun {
            hold: HoldId(1),
            attempt: 1,
            idempotency_key: "c/h_01".to_owned(),
            call: "call".to_owned(),
            tool: ToolRef {
                skill: "s".to_owned(),
                name: "pay".to_owned(),
                definition: "sha256:1".to_owned(),
            },
            input_hash: "sha256:2".to_owned(),
            confirmed_by: "yes".to_owned(),
        }
    }

    #[tokio::test]
    async fn an_outcome_that_could_not_be_written_is_told_at_once_and_written_when_the_store_is_back() {
        let away = Away { left: Mutex::new(1), written: Mutex::default(), done: Notify::new() };
        let journal = Arc::new(away);
        let run = run();
        let now = Snapshot { order: 1, conversation: Reopened::default() };
        let paid = ToolOutcome::Done { message: "paid".to_owned() };
        let made = paid.clone();
        let told = exactly_once(Arc::clone(&journal) as Arc<dyn Journal>, run, now, async { made }).await;
        assert_eq!(told, paid);
        assert!(journal.written.lock().unwrap().is_empty());
        journal.done.notified().await;
        assert_eq!(*journal.written.lock().unwrap(), [paid]);
    }
}
