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

/// The journal of one conversation. Each method returns only when what it wrote survives a crash of the machine.
pub trait Journal: Send + Sync + std::fmt::Debug {
    /// Writes that a run begins, with the conversation as it stands, in one step. Compare-and-set on the hold and the
    /// attempt: of any number of callers, one gets `Fresh`.
    ///
    /// # Errors
    /// Nothing was written, or that is not known: then nothing may run.
    fn begin(&self, run: &ConfirmedRun, now: &Snapshot) -> Result<Begun, JournalError>;

    /// Writes what came of a run; also of one whose outcome was called unknown before (VC-62).
    ///
    /// # Errors
    /// The outcome is not written: the run counts as one whose outcome is unknown.
    fn finish(&self, run: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError>;

    /// Keeps the conversation as it stands, in place of what was kept before.
    ///
    /// # Errors
    /// The older one stays.
    fn keep(&self, now: &Snapshot) -> Result<(), JournalError>;
}

/// Makes a run exactly once: written down first, then made, then its outcome written. Nothing runs that is not written.
pub async fn exactly_once(
    journal: Arc<dyn Journal>,
    run: ConfirmedRun,
    now: Snapshot,
    make: impl Future<Output = ToolOutcome> + Send,
) -> ToolOutcome {
    let (writer, starting) = (Arc::clone(&journal), run.clone());
    let begun = on_disk(move || writer.begin(&starting, &now)).await;
    match begun {
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
    let finished = outcome.clone();
    if let Err(error) = on_disk(move || journal.finish(&run, &finished)).await {
        tracing::error!("what came of a confirmed run could not be written down: {error}");
    }
    outcome
}

fn not_run(run: &ConfirmedRun, why: &str) -> ToolOutcome {
    ToolOutcome::NotRun { message: format!("{} was not run: {why}. Tell the caller.", run.tool.name) }
}

/// Writes away from the call's own thread: a write waits for the disk.
pub(crate) async fn on_disk<T: Send + 'static>(
    write: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    match tokio::task::spawn_blocking(write).await {
        Ok(result) => result,
        Err(error) => Err(JournalError::Failed(format!("the write broke off: {error}"))),
    }
}
