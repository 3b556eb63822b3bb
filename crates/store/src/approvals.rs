//! Approvals in the store: they outlive the process, and are settled once whoever else has the file open.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use sayback_runtime::approvals::{
    Approval, ApprovalError, ApprovalRequest, ApprovalState, ApprovalStore, Asker,
};
use serde_json::from_str;

use crate::{Store, StoreError};

impl Store {
    /// Does something with the database away from the call's own thread: a write waits for the disk.
    async fn approvals<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<Result<T, ApprovalError>> + Send + 'static,
    ) -> Result<T, ApprovalError> {
        let store = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            work(&mut store.connection()).map_err(|source| StoreError::of(store.path(), source).to_string())
        });
        match done.await {
            Ok(Ok(result)) => result,
            Ok(Err(why)) => Err(ApprovalError::Store(why)),
            Err(error) => Err(ApprovalError::Store(format!("the write broke off: {error}"))),
        }
    }
}

#[async_trait]
impl ApprovalStore for Store {
    async fn put(&self, request: &ApprovalRequest) -> Result<(), ApprovalError> {
        let (id, call, request) = (request.id.clone(), is_call(request), text(request)?);
        let (state, server) = (text(&ApprovalState::Open)?, self.server.clone());
        self.approvals(move |on| {
            let inserted = on.execute(
                "INSERT INTO approval (id, request, state, open, server, call) VALUES (?1, ?2, ?3, 1, ?4, ?5)
                 ON CONFLICT DO NOTHING",
                params![id, request, state, &*server, call],
            )?;
            Ok(if inserted == 1 { Ok(()) } else { Err(ApprovalError::Exists { id }) })
        })
        .await
    }

    async fn settle(&self, id: &str, to: &ApprovalState) -> Result<Approval, ApprovalError> {
        let (id, to) = (id.to_owned(), text(to)?);
        self.approvals(move |on| {
            // Written before it is read: the write lock decides who comes first.
            let transaction = on.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let settled = transaction.execute(
                "UPDATE approval SET state = ?2, open = 0 WHERE id = ?1 AND open = 1",
                params![id, to],
            )?;
            let found = read(&transaction, &id)?;
            transaction.commit()?;
            Ok(found.and_then(|found| match found.closed() {
                Some(closed) if settled == 0 => Err(closed),
                Some(_) | None => Ok(found),
            }))
        })
        .await
    }

    async fn get(&self, id: &str) -> Result<Approval, ApprovalError> {
        let id = id.to_owned();
        self.approvals(move |on| read(on, &id)).await
    }

    async fn open(&self) -> Result<Vec<Approval>, ApprovalError> {
        self.approvals(|on| {
            let mut query =
                on.prepare("SELECT request, state FROM approval WHERE open = 1 ORDER BY number")?;
            let rows = query.query_map([], texts)?.collect::<rusqlite::Result<Vec<_>>>()?;
            Ok(rows.iter().map(approval).collect())
        })
        .await
    }

    async fn beat(&self) -> Result<(), ApprovalError> {
        let server = self.server.clone();
        let beat = format!(
            "INSERT INTO server (id, beat) VALUES (?1, {NOW}) ON CONFLICT (id) DO UPDATE SET beat = {NOW}"
        );
        self.approvals(move |on| on.execute(&beat, [&*server]).map(|_| Ok(()))).await
    }

    async fn leave(&self) -> Result<(), ApprovalError> {
        let server = self.server.clone();
        self.approvals(move |on| on.execute("DELETE FROM server WHERE id = ?1", [&*server]).map(|_| Ok(())))
            .await
    }

    async fn void(&self, dead: Duration, to: &ApprovalState) -> Result<usize, ApprovalError> {
        let (server, to) = (self.server.clone(), text(to)?);
        let dead = i64::try_from(dead.as_millis()).unwrap_or(i64::MAX);
        let void = format!(
            "UPDATE approval SET state = ?1, open = 0 WHERE open = 1 AND call = 1 AND server <> ?2
             AND NOT EXISTS (SELECT 1 FROM server WHERE id = approval.server AND beat > {NOW} - ?3)"
        );
        self.approvals(move |on| {
            on.execute(&format!("DELETE FROM server WHERE beat < {NOW} - 86400000"), [])?;
            on.execute(&void, params![to, &*server, dead]).map(Ok)
        })
        .await
    }
}

/// The time in milliseconds since 1970, as the database knows it: the same for all that have the file open.
pub(crate) const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// Whether it is a call that asks, which ends with its server.
pub(crate) fn is_call(request: &ApprovalRequest) -> bool {
    match request.asker {
        Asker::Call(_) => true,
        Asker::Session { .. } => false,
    }
}

fn read(on: &Connection, id: &str) -> rusqlite::Result<Result<Approval, ApprovalError>> {
    let found = on.query_row("SELECT request, state FROM approval WHERE id = ?1", [id], texts).optional()?;
    Ok(found.map_or_else(|| Err(ApprovalError::Unknown { id: id.to_owned() }), |texts| approval(&texts)))
}

fn texts(row: &Row<'_>) -> rusqlite::Result<(String, String)> {
    Ok((row.get(0)?, row.get(1)?))
}

pub(crate) fn approval((request, state): &(String, String)) -> Result<Approval, ApprovalError> {
    let damaged = |error: serde_json::Error| ApprovalError::Store(format!("one cannot be read: {error}"));
    Ok(Approval { request: from_str(request).map_err(damaged)?, state: from_str(state).map_err(damaged)? })
}

pub(crate) fn text(value: &impl serde::Serialize) -> Result<String, ApprovalError> {
    serde_json::to_string(value).map_err(|error| ApprovalError::Store(error.to_string()))
}
