//! Stored conversations, whichever store they are in: listed, looked at, opened again, and what a dead server left in
//! them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use crate::journal::{Journal, JournalError};

mod reopening;

pub use reopening::Reopening;

/// A conversation in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// The agent's name; empty if it was stored before names were.
    pub agent: String,
    /// When it was last changed, in UTC.
    pub changed: String,
    /// Confirmed runs in it.
    pub runs: u32,
    /// How many of them have no known outcome.
    pub unknown: u32,
}

/// A stored conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The agent's name; empty if it was stored before names were.
    pub agent: String,
    /// When it was last changed, in UTC.
    pub changed: String,
    /// Its text.
    pub body: String,
    /// Its confirmed runs, in the order in which they began.
    pub runs: Vec<StoredRun>,
}

/// A confirmed run as it was written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredRun {
    /// The hold's number.
    pub hold: u32,
    /// Which run of it, from 1.
    pub attempt: u32,
    /// The key that the handler was given.
    pub idempotency_key: String,
    /// The model's call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The words or the digit that said yes.
    pub confirmed_by: String,
    /// `started`, `executed`, `failed` or `outcome_unknown`.
    pub state: String,
    /// What the handler answered; empty while that is not known.
    pub message: String,
}

/// A run that had begun on a server that is gone: whether it was made is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRun {
    /// The conversation's id.
    pub conversation: String,
    /// The tool.
    pub tool: String,
    /// The key that the handler was given, to look for what it did.
    pub idempotency_key: String,
}

/// Keeps conversations with the journals of their confirmed runs.
#[async_trait]
pub trait Conversations: Send + Sync + std::fmt::Debug {
    /// A journal for a new conversation. Nothing is stored until something is written to it.
    fn begin(&self, id: &str, agent: &str) -> Arc<dyn Journal>;

    /// Opens a conversation to go on with it, and gives the journal to go on in. From here on only this journal may
    /// write to it, whoever else has it open. A run that has begun and has no outcome yet is from now on one whose
    /// outcome is unknown; should its handler still answer, that is written as a late result. `None`: there is none.
    ///
    /// # Errors
    /// The store failed; the conversation is left as it was.
    async fn reopen(&self, id: &str, agent: &str)
    -> Result<Option<(Stored, Arc<dyn Journal>)>, JournalError>;

    /// A conversation to look at; it is left as it is.
    ///
    /// # Errors
    /// The store failed.
    async fn stored(&self, id: &str) -> Result<Option<Stored>, JournalError>;

    /// The conversations that changed last, latest first, `most` at the most.
    ///
    /// # Errors
    /// The store failed.
    async fn latest(&self, most: u32) -> Result<Vec<Listed>, JournalError>;

    /// The outcome of a run is unknown if its server is another one and has not said for `dead` that it lives; gives
    /// those that became so. Nothing makes such a run again by itself.
    ///
    /// # Errors
    /// The store failed.
    async fn give_up(&self, dead: Duration) -> Result<Vec<LostRun>, JournalError>;
}
