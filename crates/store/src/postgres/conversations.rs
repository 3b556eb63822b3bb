//! Conversations of several servers: listed and looked at by any of them, opened again by one at a time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::GenericClient;
use sayback_runtime::conversations::{Conversations, Listed, LostRun, Stored};
use sayback_runtime::journal::{Journal, JournalError};

use super::{Postgres, PostgresError, PostgresJournal};
use crate::rows;

/// The tables. A step of the format: never changed once released. `opened`: how often it was opened; whoever opened it
/// last may write. `saved`: the latest snapshot since then. `server`: where the run began.
pub(super) const TABLES: &str = "CREATE TABLE conversation (
         id TEXT PRIMARY KEY,
         agent TEXT NOT NULL,
         opened BIGINT NOT NULL,
         saved BIGINT NOT NULL,
         body TEXT NOT NULL,
         changed TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
     );
     CREATE INDEX conversation_changed ON conversation (changed, id);
     CREATE TABLE run (
         number BIGINT GENERATED ALWAYS AS IDENTITY,
         conversation TEXT NOT NULL,
         hold BIGINT NOT NULL,
         attempt BIGINT NOT NULL,
         idempotency_key TEXT NOT NULL,
         call TEXT NOT NULL,
         skill TEXT NOT NULL,
         tool TEXT NOT NULL,
         definition TEXT NOT NULL,
         input_hash TEXT NOT NULL,
         confirmed_by TEXT NOT NULL,
         server TEXT NOT NULL,
         state TEXT NOT NULL CHECK (state IN ('started', 'executed', 'failed', 'outcome_unknown')),
         message TEXT NOT NULL DEFAULT '',
         started TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
         finished TIMESTAMPTZ,
         PRIMARY KEY (conversation, hold, attempt)
     );
     CREATE INDEX run_started ON run (server) WHERE state = 'started';";

const LATEST: &str = "SELECT id, agent, to_char(changed AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
                             (SELECT count(*) FROM run WHERE conversation = id),
                             (SELECT count(*) FROM run
                              WHERE conversation = id AND state IN ('started', 'outcome_unknown'))
                      FROM conversation ORDER BY changed DESC, id DESC LIMIT $1";
const STORED: &str = "SELECT agent, to_char(changed AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), body
                      FROM conversation WHERE id = $1";
const CLAIM: &str = "UPDATE conversation SET opened = opened + 1, saved = 0 WHERE id = $1 RETURNING opened";
const UNKNOWN: &str =
    "UPDATE run SET state = 'outcome_unknown' WHERE conversation = $1 AND state = 'started'";
/// By the database's own clock: those of the servers may differ. What another server looks at right now is left to it.
const GIVE_UP: &str = "UPDATE run SET state = 'outcome_unknown' WHERE (conversation, hold, attempt) IN (
         SELECT conversation, hold, attempt FROM run WHERE state = 'started' AND server <> $1
             AND NOT EXISTS (SELECT 1 FROM server WHERE server.id = run.server
                             AND beat > clock_timestamp() - $2::float8 * INTERVAL '1 second')
         FOR UPDATE SKIP LOCKED)
     RETURNING conversation, tool, idempotency_key";

impl Postgres {
    /// Raises the fence, and calls unknown what has begun behind it.
    async fn claim(&self, id: &str) -> Result<Option<(Stored, i64)>, PostgresError> {
        let failed = self.failed();
        let mut connection = self.connection().await?;
        let on = connection.transaction().await.map_err(&failed)?;
        let Some(row) = on.query_opt(CLAIM, &[&id]).await.map_err(&failed)? else { return Ok(None) };
        let opened = row.try_get(0).map_err(&failed)?;
        on.execute(UNKNOWN, &[&id]).await.map_err(&failed)?;
        let stored = stored(&on, id).await.map_err(&failed)?;
        on.commit().await.map_err(&failed)?;
        Ok(stored.map(|stored| (stored, opened)))
    }
}

#[async_trait]
impl Conversations for Postgres {
    fn begin(&self, id: &str, agent: &str) -> Arc<dyn Journal> {
        Arc::new(PostgresJournal::new(self.clone(), id, agent, 1))
    }

    async fn reopen(
        &self,
        id: &str,
        agent: &str,
    ) -> Result<Option<(Stored, Arc<dyn Journal>)>, JournalError> {
        if !is_id(id) {
            return Ok(None);
        }
        let claimed = self.claim(id).await?;
        Ok(claimed.map(|(stored, opened)| {
            let journal = PostgresJournal::new(self.clone(), id, agent, opened);
            (stored, Arc::new(journal) as Arc<dyn Journal>)
        }))
    }

    async fn stored(&self, id: &str) -> Result<Option<Stored>, JournalError> {
        if !is_id(id) {
            return Ok(None);
        }
        let connection = self.connection().await?;
        Ok(stored(&connection, id).await.map_err(self.failed())?)
    }

    async fn latest(&self, most: u32) -> Result<Vec<Listed>, JournalError> {
        let connection = self.connection().await?;
        let latest = connection.query(LATEST, &[&i64::from(most)]).await.map_err(self.failed())?;
        Ok(latest.iter().map(rows::listed).collect::<Result<_, _>>().map_err(self.failed())?)
    }

    async fn give_up(&self, dead: Duration) -> Result<Vec<LostRun>, JournalError> {
        let connection = self.connection().await?;
        let lost = connection.query(GIVE_UP, &[&&*self.server, &dead.as_secs_f64()]).await;
        let lost = lost.map_err(self.failed())?;
        Ok(lost.iter().map(rows::lost_run).collect::<Result<_, _>>().map_err(self.failed())?)
    }
}

/// Whether there can be one of that id: PostgreSQL holds no text with this character, and takes the question amiss.
pub(super) fn is_id(id: &str) -> bool {
    !id.contains('\0')
}

async fn stored(on: &impl GenericClient, id: &str) -> Result<Option<Stored>, tokio_postgres::Error> {
    let Some(row) = on.query_opt(STORED, &[&id]).await? else { return Ok(None) };
    let runs = format!("SELECT {} FROM run WHERE conversation = $1 ORDER BY number", rows::RUN);
    let runs = on.query(&runs, &[&id]).await?;
    Ok(Some(Stored { runs: runs.iter().map(rows::run).collect::<Result<_, _>>()?, ..rows::kept(&row)? }))
}
