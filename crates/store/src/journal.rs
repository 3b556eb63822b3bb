//! The journal of one conversation's confirmed runs.

use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};
use sayback_core::{Reopened, ToolOutcome};
use sayback_runtime::journal::{Begun, ConfirmedRun, Journal, JournalError, Snapshot};

use crate::{Store, StoreError};

/// The journal of one conversation, for whoever opened it last.
#[derive(Clone, Debug)]
pub struct ConversationJournal {
    store: Store,
    id: String,
    agent: String,
    /// How often the conversation had been opened when this journal was made: a fence against whoever had it before.
    opened: i64,
}

impl ConversationJournal {
    pub(crate) fn new(store: Store, (id, agent): (String, String), opened: i64) -> Self {
        Self { store, id, agent, opened }
    }

    /// One transaction that is on the disk when this returns. The first statement takes the write lock, so what is
    /// read inside stays true until the end.
    fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Option<T>>,
    ) -> Result<T, JournalError> {
        let failed = |source| JournalError::Failed(StoreError::of(self.store.path(), source).to_string());
        let mut connection = self.store.connection();
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let done = work(&transaction).map_err(failed)?.ok_or(JournalError::OpenedElsewhere)?;
        transaction.commit().map_err(failed)?;
        Ok(done)
    }

    /// Puts a snapshot in the place of an older one; `None` if somebody else has the conversation now.
    fn put(&self, on: &Transaction<'_>, order: u64, body: &str) -> rusqlite::Result<Option<()>> {
        let opened: Option<i64> = on
            .query_row("SELECT opened FROM conversation WHERE id = ?1", [&self.id], |row| row.get(0))
            .optional()?;
        if opened.is_some_and(|opened| opened != self.opened) {
            return Ok(None);
        }
        let order = i64::try_from(order).unwrap_or(i64::MAX);
        on.execute(
            "INSERT INTO conversation (id, body, agent, opened, saved) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO UPDATE
             SET body = ?2, agent = ?3, saved = ?5, changed = CURRENT_TIMESTAMP WHERE saved < ?5",
            params![self.id, body, self.agent, self.opened, order],
        )?;
        Ok(Some(()))
    }

    fn insert(&self, on: &Transaction<'_>, run: &ConfirmedRun) -> rusqlite::Result<bool> {
        let inserted = on.execute(
            "INSERT INTO run (conversation, hold, attempt, idempotency_key, call, skill, tool, definition,
                              input_hash, confirmed_by, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'started') ON CONFLICT DO NOTHING",
            params![
                self.id,
                run.hold.0,
                run.attempt,
                run.idempotency_key,
                run.call,
                run.tool.skill,
                run.tool.name,
                run.tool.definition,
                run.input_hash,
                run.confirmed_by,
            ],
        )?;
        Ok(inserted == 1)
    }
}

impl Journal for ConversationJournal {
    fn begin(&self, run: &ConfirmedRun, now: &Snapshot) -> Result<Begun, JournalError> {
        let body = text(&now.conversation)?;
        self.write(|on| {
            if !self.insert(on, run)? {
                return Ok(Some(Begun::Already));
            }
            Ok(self.put(on, now.order, &body)?.map(|()| Begun::Fresh))
        })
    }

    fn finish(&self, run: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError> {
        let (state, message) = match outcome {
            ToolOutcome::Done { message } | ToolOutcome::Asks { message, .. } => {
                ("executed", message.as_str())
            }
            ToolOutcome::Failed { message } | ToolOutcome::NotRun { message } => ("failed", message.as_str()),
            ToolOutcome::Unknown => ("outcome_unknown", ""),
        };
        self.write(|on| {
            on.execute(
                "UPDATE run SET state = ?4, message = ?5, finished = CURRENT_TIMESTAMP
                 WHERE conversation = ?1 AND hold = ?2 AND attempt = ?3
                       AND state IN ('started', 'outcome_unknown')",
                params![self.id, run.hold.0, run.attempt, state, message],
            )
            .map(Some)
        })
        .map(drop)
    }

    fn keep(&self, now: &Snapshot) -> Result<(), JournalError> {
        let body = text(&now.conversation)?;
        self.write(|on| self.put(on, now.order, &body))
    }
}

fn text(conversation: &Reopened) -> Result<String, JournalError> {
    serde_json::to_string(conversation).map_err(|error| JournalError::Failed(error.to_string()))
}
