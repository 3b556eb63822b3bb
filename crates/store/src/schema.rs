//! The format of the file, and the way to it from each older one.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;

/// One step per format, each from the one before; never changed once released.
const STEPS: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS conversation (
         id TEXT PRIMARY KEY,
         body TEXT NOT NULL,
         changed TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
     ) STRICT;",
    // `opened`: how often it was opened; whoever opened it last may write. `saved`: the latest snapshot since then.
    "ALTER TABLE conversation ADD COLUMN opened INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE conversation ADD COLUMN saved INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE conversation ADD COLUMN agent TEXT NOT NULL DEFAULT '';
     CREATE TABLE run (
         conversation TEXT NOT NULL,
         hold INTEGER NOT NULL,
         attempt INTEGER NOT NULL,
         idempotency_key TEXT NOT NULL,
         call TEXT NOT NULL,
         skill TEXT NOT NULL,
         tool TEXT NOT NULL,
         definition TEXT NOT NULL,
         input_hash TEXT NOT NULL,
         confirmed_by TEXT NOT NULL,
         state TEXT NOT NULL CHECK (state IN ('started', 'executed', 'failed', 'outcome_unknown')),
         message TEXT NOT NULL DEFAULT '',
         started TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
         finished TEXT,
         PRIMARY KEY (conversation, hold, attempt)
     ) STRICT;",
    // `request` and `state` are JSON; `open` is what the first answer takes away.
    "CREATE TABLE approval (
         number INTEGER PRIMARY KEY,
         id TEXT NOT NULL UNIQUE,
         request TEXT NOT NULL,
         state TEXT NOT NULL,
         open INTEGER NOT NULL
     ) STRICT;
     CREATE INDEX approval_open ON approval (number) WHERE open = 1;",
    crate::ledger::tables::SQLITE,
    // `server`: whose call asked; `call`: whether it was a call at all. `beat` is in milliseconds since 1970.
    "ALTER TABLE approval ADD COLUMN server TEXT NOT NULL DEFAULT '';
     ALTER TABLE approval ADD COLUMN call INTEGER NOT NULL DEFAULT 0;
     UPDATE approval SET call = 1 WHERE open = 1 AND json_extract(request, '$.asker.call') IS NOT NULL;
     CREATE TABLE server (id TEXT PRIMARY KEY, beat INTEGER NOT NULL) STRICT;",
    // `server`: where the run began.
    "ALTER TABLE run ADD COLUMN server TEXT NOT NULL DEFAULT '';
     CREATE INDEX run_started ON run (server) WHERE state = 'started';",
    crate::sessions::TABLE,
];

/// The format that this program writes.
pub(crate) const FORMAT: i64 = STEPS.len() as i64;

/// Takes the steps that a file still lacks, all or none. Two processes that open an old file take them once.
pub(crate) fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::of(path, source);
    if format_of(connection).map_err(failed)? == FORMAT {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let found = format_of(&transaction).map_err(failed)?;
    if found > FORMAT {
        return Err(StoreError::Newer { path: path.to_owned(), found });
    }
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step).map_err(failed)?;
    }
    transaction.pragma_update(None, "user_version", FORMAT).map_err(failed)?;
    transaction.commit().map_err(failed)
}

fn format_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
