//! Approvals of several servers: asked for at one, answered at another.

use std::time::Duration;

use async_trait::async_trait;
use sayback_runtime::approvals::{Approval, ApprovalError, ApprovalRequest, ApprovalState, ApprovalStore};
use tokio_postgres::Row;

use super::Postgres;
use super::conversations::is_id;
use crate::approvals::{approval, is_call, text};

/// The table. A step of the format: never changed once released.
pub(super) const TABLE: &str = "CREATE TABLE approval (
         number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
         id TEXT NOT NULL UNIQUE,
         request TEXT NOT NULL,
         state TEXT NOT NULL,
         open BOOLEAN NOT NULL
     );
     CREATE INDEX approval_open ON approval (number) WHERE open;";

/// Whose call asked, and whether it was a call at all; and which servers live. A step of the format.
pub(super) const SERVERS: &str = "ALTER TABLE approval ADD COLUMN server TEXT NOT NULL DEFAULT '';
     ALTER TABLE approval ADD COLUMN call BOOLEAN NOT NULL DEFAULT FALSE;
     UPDATE approval SET call = TRUE WHERE open AND request::jsonb -> 'asker' -> 'call' IS NOT NULL;
     CREATE TABLE server (id TEXT PRIMARY KEY, beat TIMESTAMPTZ NOT NULL);";

impl Postgres {
    async fn ask(
        &self,
        statement: &str,
        with: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<Vec<Row>, ApprovalError> {
        let failed = |error: super::PostgresError| ApprovalError::Store(error.to_string());
        let connection = self.connection().await.map_err(failed)?;
        let rows = connection.query(statement, with).await;
        rows.map_err(self.failed()).map_err(failed)
    }
}

#[async_trait]
impl ApprovalStore for Postgres {
    async fn put(&self, request: &ApprovalRequest) -> Result<(), ApprovalError> {
        let (written, state) = (text(request)?, text(&ApprovalState::Open)?);
        let put =
            "INSERT INTO approval (id, request, state, open, server, call) VALUES ($1, $2, $3, TRUE, $4, $5)
                   ON CONFLICT DO NOTHING RETURNING number";
        let (server, call) = (&*self.server, is_call(request));
        let put = self.ask(put, &[&request.id, &written, &state, &server, &call]).await?;
        if put.is_empty() { Err(ApprovalError::Exists { id: request.id.clone() }) } else { Ok(()) }
    }

    async fn settle(&self, id: &str, to: &ApprovalState) -> Result<Approval, ApprovalError> {
        known(id)?;
        let settle = "UPDATE approval SET state = $2, open = FALSE WHERE id = $1 AND open
                      RETURNING request, state";
        let settled = self.ask(settle, &[&id, &text(to)?]).await?;
        if let Some(row) = settled.first() {
            return read(row);
        }
        let found = self.get(id).await?;
        // Nothing opens an approval again, so one that was not open is closed.
        Err(found.closed().unwrap_or_else(|| ApprovalError::Store(format!("{id} could not be settled"))))
    }

    async fn get(&self, id: &str) -> Result<Approval, ApprovalError> {
        known(id)?;
        let found = self.ask("SELECT request, state FROM approval WHERE id = $1", &[&id]).await?;
        found.first().map_or_else(|| Err(ApprovalError::Unknown { id: id.to_owned() }), read)
    }

    async fn open(&self) -> Result<Vec<Approval>, ApprovalError> {
        let open = "SELECT request, state FROM approval WHERE open ORDER BY number";
        self.ask(open, &[]).await?.iter().map(read).collect()
    }

    async fn beat(&self) -> Result<(), ApprovalError> {
        let beat = "INSERT INTO server (id, beat) VALUES ($1, clock_timestamp())
                    ON CONFLICT (id) DO UPDATE SET beat = clock_timestamp()";
        self.ask(beat, &[&&*self.server]).await.map(drop)
    }

    async fn leave(&self) -> Result<(), ApprovalError> {
        self.ask("DELETE FROM server WHERE id = $1", &[&&*self.server]).await.map(drop)
    }

    async fn void(&self, dead: Duration, to: &ApprovalState) -> Result<usize, ApprovalError> {
        // By the database's own clock: those of the servers may differ.
        let forget = "DELETE FROM server WHERE beat < clock_timestamp() - INTERVAL '1 day'";
        self.ask(forget, &[]).await?;
        let void = "UPDATE approval SET state = $1, open = FALSE WHERE open AND call AND server <> $2
                    AND NOT EXISTS (SELECT 1 FROM server WHERE server.id = approval.server
                                    AND beat > clock_timestamp() - $3::float8 * INTERVAL '1 second')
                    RETURNING id";
        let void = self.ask(void, &[&text(to)?, &&*self.server, &dead.as_secs_f64()]).await?;
        Ok(void.len())
    }
}

/// Refuses an id that no approval can have.
fn known(id: &str) -> Result<(), ApprovalError> {
    if is_id(id) { Ok(()) } else { Err(ApprovalError::Unknown { id: id.to_owned() }) }
}

fn read(row: &Row) -> Result<Approval, ApprovalError> {
    let column = |at| row.try_get(at).map_err(|error| ApprovalError::Store(error.to_string()));
    approval(&(column(0)?, column(1)?))
}
