//! Conversations: listed, looked at, and opened again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use sayback_runtime::conversations::{Conversations, Listed, LostRun, Stored};
use sayback_runtime::journal::{Journal, JournalError};

use crate::approvals::NOW;
use crate::{ConversationJournal, Store, StoreError, rows};

impl Store {
    /// All conversations, latest first.
    ///
    /// # Errors
    /// The database said no.
    pub fn conversations(&self) -> Result<Vec<Listed>, StoreError> {
        self.listed(u32::MAX)
    }

    fn listed(&self, most: u32) -> Result<Vec<Listed>, StoreError> {
        let connection = self.connection();
        let mut query = connection
            .prepare(
                "SELECT id, agent, changed, count(run.hold),
                        count(run.hold) FILTER (WHERE run.state IN ('started', 'outcome_unknown'))
                 FROM conversation LEFT JOIN run ON run.conversation = conversation.id
                 GROUP BY id ORDER BY changed DESC, id DESC LIMIT ?1",
            )
            .map_err(self.failed())?;
        let rows = query.query_map([most], |row| rows::listed(row)).map_err(self.failed())?;
        rows.collect::<Result<_, _>>().map_err(self.failed())
    }

    /// A conversation to look at; it is left as it is.
    ///
    /// # Errors
    /// The database said no.
    pub fn conversation(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        stored(&self.connection(), id).map_err(self.failed())
    }

    /// A journal for a new conversation. Nothing is stored until something is written to it.
    pub fn begin_conversation(&self, id: &str, agent: &str) -> ConversationJournal {
        ConversationJournal::new(self.clone(), (id.to_owned(), agent.to_owned()), 1)
    }

    /// Opens a conversation to go on with it, and gives the journal to go on in. From here on only this journal may
    /// write to it, whoever else has it open. A run that has begun and has no outcome yet is from now on one whose
    /// outcome is unknown; should its handler still answer, that is written as a late result.
    ///
    /// # Errors
    /// The database said no.
    pub fn reopen(&self, id: &str, agent: &str) -> Result<Option<(Stored, ConversationJournal)>, StoreError> {
        let opened = self.claim(id).map_err(self.failed())?;
        Ok(opened.map(|(stored, opened)| {
            (stored, ConversationJournal::new(self.clone(), (id.to_owned(), agent.to_owned()), opened))
        }))
    }

    fn claim(&self, id: &str) -> rusqlite::Result<Option<(Stored, i64)>> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let opened: Option<i64> = transaction
            .query_row(
                "UPDATE conversation SET opened = max(opened, 1) + 1, saved = 0 WHERE id = ?1 RETURNING opened",
                [id],
                |row| row.get(0),
            )
            .optional()?;
        let Some(opened) = opened else { return Ok(None) };
        transaction.execute(
            "UPDATE run SET state = 'outcome_unknown' WHERE conversation = ?1 AND state = 'started'",
            [id],
        )?;
        let stored = stored(&transaction, id)?;
        transaction.commit()?;
        Ok(stored.map(|stored| (stored, opened)))
    }

    /// Does something where waiting for the disk holds nobody up.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let store = self.clone();
        match tokio::task::spawn_blocking(move || work(&store)).await {
            Ok(done) => done.map_err(JournalError::from),
            Err(error) => Err(JournalError::Failed(format!("the work broke off: {error}"))),
        }
    }

    fn lost(&self, dead: Duration) -> rusqlite::Result<Vec<LostRun>> {
        let dead = i64::try_from(dead.as_millis()).unwrap_or(i64::MAX);
        let give_up = format!(
            "UPDATE run SET state = 'outcome_unknown' WHERE state = 'started' AND server <> ?1
             AND NOT EXISTS (SELECT 1 FROM server WHERE id = run.server AND beat > {NOW} - ?2)
             RETURNING conversation, tool, idempotency_key"
        );
        let connection = self.connection();
        let mut query = connection.prepare(&give_up)?;
        let lost = query.query_map(params![&*self.server, dead], |row| rows::lost_run(row))?;
        lost.collect()
    }
}

#[async_trait]
impl Conversations for Store {
    fn begin(&self, id: &str, agent: &str) -> Arc<dyn Journal> {
        Arc::new(self.begin_conversation(id, agent))
    }

    async fn reopen(
        &self,
        id: &str,
        agent: &str,
    ) -> Result<Option<(Stored, Arc<dyn Journal>)>, JournalError> {
        let (id, agent) = (id.to_owned(), agent.to_owned());
        let opened = self.aside(move |store| store.reopen(&id, &agent)).await?;
        Ok(opened.map(|(stored, journal)| (stored, Arc::new(journal) as Arc<dyn Journal>)))
    }

    async fn stored(&self, id: &str) -> Result<Option<Stored>, JournalError> {
        let id = id.to_owned();
        self.aside(move |store| store.conversation(&id)).await
    }

    async fn latest(&self, most: u32) -> Result<Vec<Listed>, JournalError> {
        self.aside(move |store| store.listed(most)).await
    }

    async fn give_up(&self, dead: Duration) -> Result<Vec<LostRun>, JournalError> {
        self.aside(move |store| store.lost(dead).map_err(store.failed())).await
    }
}

fn stored(connection: &Connection, id: &str) -> rusqlite::Result<Option<Stored>> {
    let kept = "SELECT agent, changed, body FROM conversation WHERE id = ?1";
    let kept = connection.query_row(kept, [id], |row| rows::kept(row)).optional()?;
    let Some(kept) = kept else { return Ok(None) };
    let mut query = connection
        .prepare(&format!("SELECT {} FROM run WHERE conversation = ?1 ORDER BY rowid", rows::RUN))?;
    let runs = query.query_map([id], |row| rows::run(row))?;
    Ok(Some(Stored { runs: runs.collect::<Result<_, _>>()?, ..kept }))
}
