//! The journal of one conversation's confirmed runs.

use async_trait::async_trait;
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

    /// One transaction that is on the disk when this is done, made where waiting for the disk holds nobody up. The first
    /// statement takes the write lock, so what is read inside stays true until the end.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self, &Transaction<'_>) -> rusqlite::Result<Option<T>> + Send + 'static,
    ) -> Result<T, JournalError> {
        let journal = self.clone();
        let written = tokio::task::spawn_blocking(move || {
            let failed = |source| JournalError::from(StoreError::of(journal.store.path(), source));
            let mut connection = journal.store.connection();
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
            let done = work(&journal, &transaction).map_err(failed)?.ok_or(JournalError::OpenedElsewhere)?;
            transaction.commit().map_err(failed)?;
            Ok(done)
        });
        match written.await {
            Ok(result) => result,
            Err(error) => Err(JournalError::Failed(format!("the write broke off: {error}"))),
        }
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
                              input_hash, confirmed_by, server, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'started') ON CONFLICT DO NOTHING",
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
                &*self.store.server,
            ],
        )?;
        Ok(inserted == 1)
    }
}

#[async_trait]
impl Journal for ConversationJournal {
    async fn begin(&self, run: &ConfirmedRun, now: &Snapshot) -> Result<Begun, JournalError> {
        let (run, order, body) = (run.clone(), now.order, text(&now.conversation)?);
        self.write(move |journal, on| {
            if !journal.insert(on, &run)? {
                return Ok(Some(Begun::Already));
            }
            Ok(journal.put(on, order, &body)?.map(|()| Begun::Fresh))
        })
        .await
    }

    async fn finish(&self, run: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError> {
        let (hold, attempt) = (run.hold.0, run.attempt);
        let (state, message) = settled(outcome);
        let message = message.to_owned();
        self.write(move |journal, on| {
            on.execute(
                "UPDATE run SET state = ?4, message = ?5, finished = CURRENT_TIMESTAMP
                 WHERE conversation = ?1 AND hold = ?2 AND attempt = ?3
                       AND state IN ('started', 'outcome_unknown')",
                params![journal.id, hold, attempt, state, message],
            )
            .map(Some)
        })
        .await
        .map(drop)
    }

    async fn keep(&self, now: &Snapshot) -> Result<(), JournalError> {
        let (order, body) = (now.order, text(&now.conversation)?);
        self.write(move |journal, on| journal.put(on, order, &body)).await
    }
}

/// An outcome as it is written down: the state, and what was said.
pub(crate) fn settled(outcome: &ToolOutcome) -> (&'static str, &str) {
    match outcome {
        ToolOutcome::Done { message } | ToolOutcome::Asks { message, .. } => ("executed", message),
        ToolOutcome::Failed { message } | ToolOutcome::NotRun { message } => ("failed", message),
        ToolOutcome::Unknown => ("outcome_unknown", ""),
    }
}

/// A conversation as it is written down.
pub(crate) fn text(conversation: &Reopened) -> Result<String, JournalError> {
    serde_json::to_string(conversation).map_err(|error| JournalError::Failed(error.to_string()))
}
