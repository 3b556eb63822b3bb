//! Conversations, the journal of confirmed runs, approvals and the confirmation ledger: in SQLite, with no set-up, one
//! file, safe against a crash in the middle of a write; or in a PostgreSQL that several servers share (feature
//! `postgres`). Recordings are files, in a folder or in a store that speaks S3 (feature `objects`).
//!
//! Knows nothing of what it stores: texts under ids. May not decide anything about a call.

mod approvals;
mod conversation;
mod error;
mod journal;
mod ledger;
#[cfg(feature = "objects")]
mod objects;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
mod schema;
mod sessions;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

pub use error::StoreError;
pub use journal::ConversationJournal;
pub use ledger::SqliteLedger;
#[cfg(feature = "objects")]
pub use objects::{ListedObject, ObjectBytes, Objects, ObjectsError};
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresError, PostgresJournal, PostgresLedger};
pub use sayback_runtime::conversations::{Listed, Stored, StoredRun};

/// How long a write waits for another process's before it gives up.
const PATIENCE: Duration = Duration::from_secs(5);

/// A store. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Store {
    path: Arc<PathBuf>,
    connection: Arc<Mutex<Connection>>,
    /// Whoever has opened it, among all that have.
    server: Arc<str>,
}

impl Store {
    /// Opens the store at `path`, making the file and its folder if they are not there. An older format is brought up
    /// to date.
    ///
    /// # Errors
    /// The folder or the file cannot be used, is no store, or was written by a newer version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|source| StoreError::Folder { path: folder.to_owned(), source })?;
        }
        // SQLite's name for a store that is gone with the process is no file's.
        if path != Path::new(":memory:") {
            own_file(path);
        }
        let failed = |source| StoreError::of(path, source);
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        // What was written is on the disk when the write returns: a run that is not written may not begin.
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        // What is written over is gone: personal details of a question that was open may not stay in the file.
        connection.pragma_update(None, "secure_delete", true).map_err(failed)?;
        schema::bring_up_to_date(&mut connection, path)?;
        let random = connection.query_row("SELECT hex(randomblob(16))", [], |row| row.get::<_, String>(0));
        let server = random.map_err(failed)?.into();
        Ok(Self { path: Arc::new(path.to_owned()), connection: Arc::new(Mutex::new(connection)), server })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic elsewhere leaves the connection whole: an open transaction is rolled back as it unwinds.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> StoreError {
        |source| StoreError::of(&self.path, source)
    }
}

/// Makes the file if it is not there, for its owner's eyes only: it holds what people said.
fn own_file(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // If it is there already or cannot be made, SQLite says so better.
    drop(options.open(path));
}
