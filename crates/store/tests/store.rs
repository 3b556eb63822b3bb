//! The store as a file: what is in it after reopening, and what is said of a file that cannot be used.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

mod runs;

use std::path::{Path, PathBuf};

use runs::{confirmed, snapshot};
use rusqlite::Connection;
use sayback_core::Reopened;
use sayback_runtime::journal::{Begun, Journal, JournalError};
use sayback_store::{Store, StoreError};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/conversations.db");
    (folder, path)
}

fn body(store: &Store, id: &str) -> String {
    store.conversation(id).unwrap().unwrap().body
}

#[tokio::test]
async fn a_file_of_an_older_format_is_brought_up_to_date_with_all_that_is_in_it() {
    let (_folder, path) = folder();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE conversation (id TEXT PRIMARY KEY, body TEXT NOT NULL,
                                    changed TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT;
         INSERT INTO conversation (id, body) VALUES ('old', '{\"items\":[],\"open\":null}');
         PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(old);
    let store = Store::open(&path).unwrap();
    let (stored, journal) = store.reopen("old", "Desk").unwrap().unwrap();
    assert!(serde_json::from_str::<Reopened>(&stored.body).is_ok());
    assert_eq!(journal.begin(&confirmed(1, 1), &snapshot(1, "new")).await, Ok(Begun::Fresh));
    assert!(body(&Store::open(&path).unwrap(), "old").contains("new"));
}

#[test]
fn a_file_of_a_newer_format_is_left_alone() {
    let (_folder, path) = folder();
    drop(Store::open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refused = Store::open(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Newer { found: 99, .. }));
    assert!(refused.to_string().contains("newer"), "{refused}");
}

/// What opening a file says that is no store.
fn refusal_of(path: &Path, bytes: &[u8]) -> StoreError {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
    Store::open(path).unwrap_err()
}

#[test]
fn a_file_that_is_no_store_is_said_to_be_none_and_is_left_alone() {
    let (_folder, path) = folder();
    let refused = refusal_of(&path, b"dear diary, this is no database at all\n");
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused:?}");
    assert!(refused.to_string().contains("move it away"), "{refused}");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("dear diary"));
}

#[tokio::test]
async fn destroyed_pages_are_said_to_be_damage() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let journal = store.begin_conversation("a", "Desk");
    journal.keep(&snapshot(1, &"long ".repeat(20_000))).await.unwrap();
    drop((store, journal));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4_096..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let refused = Store::open(&path).and_then(|store| store.conversations()).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_file_that_another_process_keeps_locked_is_said_to_be_busy_and_nothing_begins() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let journal = store.begin_conversation("a", "Desk");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = journal.begin(&confirmed(1, 1), &snapshot(1, "one")).await.unwrap_err();
    assert!(matches!(&refused, JournalError::Failed(why) if why.contains("another process")), "{refused}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(journal.begin(&confirmed(1, 1), &snapshot(1, "one")).await, Ok(Begun::Fresh));
}
