//! The journal of one conversation's confirmed runs, in a database that several servers share.
//!
//! ```text
//! begin:   run inserted, or already there ─▶ conversation written, or the fence says no ─▶ commit
//! reopen:  fence raised ─▶ runs without an outcome are unknown ─▶ commit
//! ```
//! Both end with the conversation's row locked, so one of two at the same time comes first: either the run is there when
//! the other opens the conversation, and is told as unknown, or it never begins.

use std::borrow::Cow;

use async_trait::async_trait;
use deadpool_postgres::GenericClient;
use sayback_core::ToolOutcome;
use sayback_runtime::journal::{Begun, ConfirmedRun, Journal, JournalError, Snapshot};

use super::Postgres;
use crate::journal::{settled, text};

/// The condition is the fence: an older opening writes nothing, and an older snapshot takes no newer one's place. The row
/// is locked either way.
const PUT: &str = "INSERT INTO conversation (id, agent, opened, saved, body) VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (id) DO UPDATE
                   SET agent = $2, saved = $4, body = $5, changed = clock_timestamp()
                   WHERE conversation.opened = $3 AND conversation.saved < $4";
const OPENED: &str = "SELECT opened FROM conversation WHERE id = $1";
/// Waits for another that writes the same run, and then finds it there.
const BEGIN: &str =
    "INSERT INTO run (conversation, hold, attempt, idempotency_key, call, skill, tool, definition,
                                      input_hash, confirmed_by, server, state)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'started') ON CONFLICT DO NOTHING";
const FINISH: &str = "UPDATE run SET state = $4, message = $5, finished = clock_timestamp()
                      WHERE conversation = $1 AND hold = $2 AND attempt = $3
                            AND state IN ('started', 'outcome_unknown')";

/// The journal of one conversation, for whoever opened it last, on whichever server.
#[derive(Clone, Debug)]
pub struct PostgresJournal {
    database: Postgres,
    id: String,
    agent: String,
    /// How often the conversation had been opened when this journal was made: a fence against whoever had it before.
    opened: i64,
}

impl PostgresJournal {
    pub(super) fn new(database: Postgres, id: &str, agent: &str, opened: i64) -> Self {
        Self { database, id: id.to_owned(), agent: storable(agent).into_owned(), opened }
    }

    /// Puts a snapshot in the place of an older one.
    async fn put(&self, on: &impl GenericClient, order: u64, body: &str) -> Result<(), JournalError> {
        let failed = self.failed();
        let order = i64::try_from(order).unwrap_or(i64::MAX);
        let put = on.prepare_cached(PUT).await.map_err(&failed)?;
        let written = on.execute(&put, &[&self.id, &self.agent, &self.opened, &order, &body]).await;
        if written.map_err(&failed)? == 1 {
            return Ok(());
        }
        let row = on.query_opt(OPENED, &[&self.id]).await.map_err(&failed)?;
        match row.map(|row| row.get::<_, i64>(0)) {
            Some(opened) if opened != self.opened => Err(JournalError::OpenedElsewhere),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the run is this one's to make.
    async fn insert(&self, on: &impl GenericClient, run: &ConfirmedRun) -> Result<bool, JournalError> {
        let failed = self.failed();
        let begin = on.prepare_cached(BEGIN).await.map_err(&failed)?;
        let (hold, attempt) = (i64::from(run.hold.0), i64::from(run.attempt));
        let (call, confirmed_by) = (storable(&run.call), storable(&run.confirmed_by));
        let inserted = on
            .execute(
                &begin,
                &[
                    &self.id,
                    &hold,
                    &attempt,
                    &run.idempotency_key,
                    &call,
                    &run.tool.skill,
                    &run.tool.name,
                    &run.tool.definition,
                    &run.input_hash,
                    &confirmed_by,
                    &&*self.database.server,
                ],
            )
            .await;
        Ok(inserted.map_err(&failed)? == 1)
    }

    fn failed(&self) -> impl Fn(tokio_postgres::Error) -> JournalError {
        let failed = self.database.failed();
        move |source| failed(source).into()
    }
}

#[async_trait]
impl Journal for PostgresJournal {
    async fn begin(&self, run: &ConfirmedRun, now: &Snapshot) -> Result<Begun, JournalError> {
        let body = text(&now.conversation)?;
        let mut connection = self.database.connection().await?;
        let on = connection.transaction().await.map_err(self.failed())?;
        // A transaction that is let go of is undone.
        if !self.insert(&on, run).await? {
            return Ok(Begun::Already);
        }
        self.put(&on, now.order, &body).await?;
        on.commit().await.map_err(self.failed())?;
        Ok(Begun::Fresh)
    }

    async fn finish(&self, run: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError> {
        let connection = self.database.connection().await?;
        let finish = connection.prepare_cached(FINISH).await.map_err(self.failed())?;
        let (state, message) = settled(outcome);
        let (hold, attempt) = (i64::from(run.hold.0), i64::from(run.attempt));
        let finish =
            connection.execute(&finish, &[&self.id, &hold, &attempt, &state, &storable(message)]).await;
        finish.map(drop).map_err(self.failed())
    }

    async fn keep(&self, now: &Snapshot) -> Result<(), JournalError> {
        let body = text(&now.conversation)?;
        let connection = self.database.connection().await?;
        self.put(&connection, now.order, &body).await
    }
}

/// A text that PostgreSQL can hold: the one character that it cannot is told as one that is not known.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}
