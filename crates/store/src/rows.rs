//! Rows of an answer, read alike whichever database gives them.

use sayback_runtime::conversations::{Listed, LostRun, Stored, StoredRun};
use sayback_runtime::sessions::{SessionKey, StoredSession};

/// A row of an answer, whichever database gives it.
pub(crate) trait Columns {
    /// Why a column is not what it should be.
    type Error;

    fn number(&self, at: usize) -> Result<i64, Self::Error>;
    fn text(&self, at: usize) -> Result<String, Self::Error>;
    fn text_or_none(&self, at: usize) -> Result<Option<String>, Self::Error>;

    /// What we wrote as a number of 32 bits without a sign.
    fn count(&self, at: usize) -> Result<u32, Self::Error> {
        self.number(at).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }
}

impl Columns for rusqlite::Row<'_> {
    type Error = rusqlite::Error;

    fn number(&self, at: usize) -> Result<i64, Self::Error> {
        self.get(at)
    }

    fn text(&self, at: usize) -> Result<String, Self::Error> {
        self.get(at)
    }

    fn text_or_none(&self, at: usize) -> Result<Option<String>, Self::Error> {
        self.get(at)
    }
}

/// Id, agent, when it was changed, its runs, and those of unknown outcome.
pub(crate) fn listed<R: Columns>(row: &R) -> Result<Listed, R::Error> {
    Ok(Listed {
        id: row.text(0)?,
        agent: row.text(1)?,
        changed: row.text(2)?,
        runs: row.count(3)?,
        unknown: row.count(4)?,
    })
}

/// Agent, when it was changed, and the text of a conversation; its runs are asked for by themselves.
pub(crate) fn kept<R: Columns>(row: &R) -> Result<Stored, R::Error> {
    Ok(Stored { agent: row.text(0)?, changed: row.text(1)?, body: row.text(2)?, runs: Vec::new() })
}

/// The columns of a run of a conversation, in the order of [`StoredRun`].
pub(crate) const RUN: &str = "hold, attempt, idempotency_key, call, tool, confirmed_by, state, message";

/// The columns of [`RUN`].
pub(crate) fn run<R: Columns>(row: &R) -> Result<StoredRun, R::Error> {
    Ok(StoredRun {
        hold: row.count(0)?,
        attempt: row.count(1)?,
        idempotency_key: row.text(2)?,
        call: row.text(3)?,
        tool: row.text(4)?,
        confirmed_by: row.text(5)?,
        state: row.text(6)?,
        message: row.text(7)?,
    })
}

/// Conversation, tool and key.
pub(crate) fn lost_run<R: Columns>(row: &R) -> Result<LostRun, R::Error> {
    Ok(LostRun { conversation: row.text(0)?, tool: row.text(1)?, idempotency_key: row.text(2)? })
}

/// The columns of a session, in the order of [`session`].
pub(crate) const SESSION: &str = "app, owner, id, conversation, opened, changed, body";

/// The columns of [`SESSION`].
pub(crate) fn session<R: Columns>(row: &R) -> Result<StoredSession, R::Error> {
    Ok(StoredSession {
        key: SessionKey { app: row.text(0)?, user: row.text(1)?, id: row.text(2)? },
        conversation: row.text(3)?,
        opened: row.number(4)?,
        changed_ms: u64::try_from(row.number(5)?).unwrap_or(0),
        body: row.text(6)?,
    })
}
