//! Conversations on disk, in SQLite: no set-up, one file, safe against a crash in the middle of a write.
//!
//! Knows nothing of what it stores: texts under ids. May not decide anything about a call.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

/// Why something could not be stored or read.
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
    /// The database said no.
    #[error("{}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
    /// The file was written by a newer version.
    #[error("{}: its format {found} is newer than this program's ({})", path.display(), FORMAT)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
    },
}

/// The format of the file; older ones are brought up to date when opened.
const FORMAT: i64 = 1;

/// A store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens the store at `path`, making the file and its folder if they are not there.
    ///
    /// # Errors
    /// The folder or the file cannot be used, or was written by a newer version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|source| StoreError::Folder { path: folder.to_owned(), source })?;
        }
        let failed = |source| StoreError::Database { path: path.to_owned(), source };
        let connection = Connection::open(path).map_err(failed)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        let found: i64 =
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
        if found > FORMAT {
            return Err(StoreError::Newer { path: path.to_owned(), found });
        }
        connection
            .execute_batch(
                "CREATE TABLE IF NOT EXISTS conversation (
                     id TEXT PRIMARY KEY,
                     body TEXT NOT NULL,
                     changed TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
                 ) STRICT;
                 PRAGMA user_version = 1;",
            )
            .map_err(failed)?;
        Ok(Self { path: path.to_owned(), connection })
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> StoreError {
        |source| StoreError::Database { path: self.path.clone(), source }
    }

    /// Stores a conversation under its id, in place of what was there.
    ///
    /// # Errors
    /// The database said no.
    pub fn save_conversation(&self, id: &str, body: &str) -> Result<(), StoreError> {
        self.connection
            .execute(
                "INSERT INTO conversation (id, body) VALUES (?1, ?2)
                 ON CONFLICT (id) DO UPDATE SET body = ?2, changed = CURRENT_TIMESTAMP",
                params![id, body],
            )
            .map(|_| ())
            .map_err(self.failed())
    }

    /// A conversation by its id.
    ///
    /// # Errors
    /// The database said no.
    pub fn conversation(&self, id: &str) -> Result<Option<String>, StoreError> {
        self.connection
            .query_row("SELECT body FROM conversation WHERE id = ?1", [id], |row| row.get(0))
            .optional()
            .map_err(self.failed())
    }

    /// The ids of all conversations, latest first.
    ///
    /// # Errors
    /// The database said no.
    pub fn conversations(&self) -> Result<Vec<String>, StoreError> {
        let mut query = self
            .connection
            .prepare("SELECT id FROM conversation ORDER BY changed DESC, id")
            .map_err(self.failed())?;
        let rows = query.query_map([], |row| row.get(0)).map_err(self.failed())?;
        rows.collect::<Result<_, _>>().map_err(self.failed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_there_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/conversations.db");
        let store = Store::open(&path).unwrap();
        store.save_conversation("a", "one").unwrap();
        store.save_conversation("a", "two").unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.conversation("a").unwrap().as_deref(), Some("two"));
        assert_eq!(store.conversation("b").unwrap(), None);
        assert_eq!(store.conversations().unwrap(), vec!["a".to_owned()]);
    }

    #[test]
    fn a_file_of_a_newer_version_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.db");
        Store::open(&path).unwrap().connection.pragma_update(None, "user_version", 99).unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Newer { found: 99, .. })));
    }
}
