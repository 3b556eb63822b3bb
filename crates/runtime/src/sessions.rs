//! Text sessions as they are stored, so that they outlive their server: which conversation each is, and what its users
//! were told.
//!
//! The conversation itself, with the journal of its runs, is kept by [`Conversations`](crate::conversations). A session
//! is told what its conversation has come to only after that is written, so what was told is never ahead of it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::journal::JournalError;

/// Which session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionKey {
    /// The agent, by its name in `[agents]`.
    pub app: String,
    /// Whose session.
    pub user: String,
    /// Its id.
    pub id: String,
}

/// A session as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Which one.
    pub key: SessionKey,
    /// The id of its conversation.
    pub conversation: String,
    /// How often it was opened: whoever opened it last may write to it.
    pub opened: i64,
    /// When it was last written, in milliseconds since 1970, as the store counts.
    pub changed_ms: u64,
    /// What was told in it, as whoever tells it writes that down.
    pub body: String,
}

/// Keeps text sessions.
#[async_trait]
pub trait SessionStore: Send + Sync + std::fmt::Debug {
    /// Writes a new one down, opened once; `false`: there is one of that key already, and it stays as it is.
    ///
    /// # Errors
    /// The store failed.
    async fn make(&self, key: &SessionKey, conversation: &str, body: &str) -> Result<bool, JournalError>;

    /// One of them, to look at.
    ///
    /// # Errors
    /// The store failed.
    async fn look(&self, key: &SessionKey) -> Result<Option<StoredSession>, JournalError>;

    /// Opens one to go on with it: whoever had it open before may not write to it any more.
    ///
    /// # Errors
    /// The store failed.
    async fn claim(&self, key: &SessionKey) -> Result<Option<StoredSession>, JournalError>;

    /// Writes what was told by now, for whoever has it open as the `opened`th.
    ///
    /// # Errors
    /// [`JournalError::OpenedElsewhere`] if it was opened since or is gone; or the store failed.
    async fn save(&self, key: &SessionKey, opened: i64, body: &str) -> Result<(), JournalError>;

    /// A user's sessions that were written last, latest first, `most` at the most.
    ///
    /// # Errors
    /// The store failed.
    async fn of_user(&self, app: &str, user: &str, most: u32) -> Result<Vec<StoredSession>, JournalError>;

    /// Forgets one. Its conversation stays.
    ///
    /// # Errors
    /// The store failed.
    async fn remove(&self, key: &SessionKey) -> Result<(), JournalError>;
}
