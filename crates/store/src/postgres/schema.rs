//! The tables, and the way to them from each older format.

use super::{Postgres, PostgresError};

/// One step per format, each from the one before; never changed once released.
const STEPS: &[&str] = &[
    crate::ledger::tables::POSTGRES,
    super::approvals::TABLE,
    super::approvals::SERVERS,
    super::conversations::TABLES,
    super::sessions::TABLE,
];

/// Servers that start at the same time take the steps one after the other. The number is this lock's name.
const LOCK: i64 = 0x5361_7962_6163_6b00;

/// Takes the steps that a database still lacks, all or none.
pub(super) async fn bring_up_to_date(database: &Postgres) -> Result<(), PostgresError> {
    let failed = database.failed();
    let mut connection = database.connection().await?;
    let on = connection.transaction().await.map_err(&failed)?;
    on.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(&failed)?;
    on.batch_execute("CREATE TABLE IF NOT EXISTS sayback_format (format INTEGER NOT NULL)")
        .await
        .map_err(&failed)?;
    let row = on.query_opt("SELECT format FROM sayback_format", &[]).await.map_err(&failed)?;
    let found: i32 = row.map_or(0, |row| row.get(0));
    let known = i32::try_from(STEPS.len()).unwrap_or(i32::MAX);
    if found > known {
        return Err(PostgresError::Newer { database: database.shown.clone(), found, known });
    }
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        on.batch_execute(step).await.map_err(&failed)?;
    }
    on.execute("DELETE FROM sayback_format", &[]).await.map_err(&failed)?;
    on.execute("INSERT INTO sayback_format (format) VALUES ($1)", &[&known]).await.map_err(&failed)?;
    on.commit().await.map_err(&failed)
}
