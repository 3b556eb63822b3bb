//! Why something could not be stored or read.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use sayback_runtime::journal::JournalError;

use crate::schema::FORMAT;

/// Why something could not be stored or read. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder could not be made.
    #[error("{}: the folder cannot be made: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process holds the file.
    #[error("{}: another process is writing to it and did not finish; try again when it has", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file is no store, or parts of it are destroyed.
    #[error(
        "{}: this is no conversation store, or it is damaged ({source}); move it away to begin a new one",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the database said.
        source: rusqlite::Error,
    },
    /// The file may only be read.
    #[error("{}: it may not be written; change its permissions", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The database said no for another reason: no space, no rights, no such folder.
    #[error("{}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
    /// The file was written by a newer version.
    #[error(
        "{}: its format {found} is newer than this program's ({FORMAT}); use the newer program for it",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
    },
}

impl StoreError {
    /// What a database error means to whoever has to mend it.
    pub(crate) fn of(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::Damaged { path, source },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(_) | None => Self::Database { path, source },
        }
    }
}

impl From<StoreError> for JournalError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}
