//! The store as a file: what is in it after reopening, and what is said of a file that cannot be used.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sayback_core::{Frozen, HoldId, Item, Reopened, ToolOutcome, ToolRef};
use sayback_runtime::journal::{Begun, ConfirmedRun, Journal, JournalError, Snapshot};
use sayback_store::{Store, StoreError};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/conversations.db");
    (folder, path)
}

fn run(hold: u32, attempt: u32) -> ConfirmedRun {
    let input = Frozen { json: "{}".to_owned(), hash: "sha256:1".to_owned() };
    ConfirmedRun {
        hold: HoldId(hold),
        attempt,
        idempotency_key: format!("a/{}", HoldId(hold)),
        call: "c1".to_owned(),
        tool: ToolRef {
            skill: "desk".to_owned(),
            name: "book".to_owned(),
            definition: "sha256:2".to_owned(),
        },
        input_hash: input.hash,
        confirmed_by: "yes".to_owned(),
    }
}

fn snapshot(order: u64, text: &str) -> Snapshot {
    let items = vec![Item::Caller { text: text.to_owned() }];
    Snapshot { order, conversation: Reopened { items, ..Reopened::default() } }
}

fn done() -> ToolOutcome {
    ToolOutcome::Done { message: "Booked.".to_owned() }
}

fn body(store: &Store, id: &str) -> String {
    store.conversation(id).unwrap().unwrap().body
}

#[test]
fn what_is_kept_is_there_after_reopening_the_file() {
    let (_folder, path) = folder();
    let journal = Store::open(&path).unwrap().begin_conversation("a", "Desk");
    journal.keep(&snapshot(1, "one")).unwrap();
    journal.keep(&snapshot(2, "two")).unwrap();
    assert_eq!(journal.begin(&run(1, 1), &snapshot(3, "three")), Ok(Begun::Fresh));
    journal.finish(&run(1, 1), &done()).unwrap();
    drop(journal);
    let store = Store::open(&path).unwrap();
    let stored = store.conversation("a").unwrap().unwrap();
    assert!(stored.body.contains("three"), "{}", stored.body);
    let [run] = stored.runs.as_slice() else { panic!("{:?}", stored.runs) };
    assert_eq!((run.state.as_str(), run.message.as_str()), ("executed", "Booked."));
    assert_eq!(run.idempotency_key, "a/h_01");
    assert_eq!(store.conversation("b").unwrap(), None);
    let listed = store.conversations().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].id.as_str(), listed[0].agent.as_str()), ("a", "Desk"));
    assert_eq!((listed[0].runs, listed[0].unknown), (1, 0));
}

#[test]
fn an_older_snapshot_never_takes_the_place_of_a_newer_one() {
    let (_folder, path) = folder();
    let journal = Store::open(&path).unwrap().begin_conversation("a", "Desk");
    journal.keep(&snapshot(2, "newer")).unwrap();
    journal.keep(&snapshot(1, "older")).unwrap();
    assert!(body(&Store::open(&path).unwrap(), "a").contains("newer"));
    journal.keep(&Snapshot::last(Reopened::default())).unwrap();
    assert!(!body(&Store::open(&path).unwrap(), "a").contains("newer"));
}

#[test]
fn vc_65_a_hold_begins_once() {
    let (_folder, path) = folder();
    let journal = Store::open(&path).unwrap().begin_conversation("a", "Desk");
    assert_eq!(journal.begin(&run(1, 1), &snapshot(1, "one")), Ok(Begun::Fresh));
    assert_eq!(journal.begin(&run(1, 1), &snapshot(2, "two")), Ok(Begun::Already));
    assert!(
        body(&Store::open(&path).unwrap(), "a").contains("one"),
        "nothing is written for a run that is not made"
    );
    journal.finish(&run(1, 1), &done()).unwrap();
    assert_eq!(journal.begin(&run(1, 1), &snapshot(3, "three")), Ok(Begun::Already));
    assert_eq!(journal.begin(&run(2, 1), &snapshot(4, "four")), Ok(Begun::Fresh));
}

#[test]
fn vc_76_a_second_attempt_after_a_rewind_begins_with_the_same_key() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let journal = store.begin_conversation("a", "Desk");
    for attempt in [1, 2] {
        assert_eq!(journal.begin(&run(1, attempt), &snapshot(1, "one")), Ok(Begun::Fresh));
    }
    let runs = store.conversation("a").unwrap().unwrap().runs;
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].idempotency_key, runs[1].idempotency_key);
}

#[test]
fn vc_79_a_run_without_a_result_is_unknown_when_its_conversation_is_opened_again() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let first = store.begin_conversation("a", "Desk");
    assert_eq!(first.begin(&run(1, 1), &snapshot(1, "one")), Ok(Begun::Fresh));
    let (stored, second) = store.reopen("a", "Desk").unwrap().unwrap();
    assert_eq!(stored.runs[0].state, "outcome_unknown");
    assert_eq!(
        second.begin(&run(1, 1), &snapshot(1, "two")),
        Ok(Begun::Already),
        "never run again by itself"
    );
}

#[test]
fn vc_62_a_late_result_is_written_and_the_first_one_stays() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let journal = store.begin_conversation("a", "Desk");
    journal.begin(&run(1, 1), &snapshot(1, "one")).unwrap();
    journal.finish(&run(1, 1), &ToolOutcome::Unknown).unwrap();
    journal.finish(&run(1, 1), &done()).unwrap();
    journal.finish(&run(1, 1), &ToolOutcome::Failed { message: "No.".to_owned() }).unwrap();
    assert_eq!(store.conversation("a").unwrap().unwrap().runs[0].state, "executed");
}

#[test]
fn whoever_opened_a_conversation_last_may_write_to_it() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let first = store.begin_conversation("a", "Desk");
    first.keep(&snapshot(7, "first")).unwrap();
    let (_, second) = Store::open(&path).unwrap().reopen("a", "Desk").unwrap().unwrap();
    assert_eq!(first.keep(&snapshot(8, "late")), Err(JournalError::OpenedElsewhere));
    assert_eq!(first.begin(&run(1, 1), &snapshot(9, "late")), Err(JournalError::OpenedElsewhere));
    assert_eq!(
        second.begin(&run(1, 1), &snapshot(1, "second")),
        Ok(Begun::Fresh),
        "nothing of it was written"
    );
    assert!(body(&store, "a").contains("second"));
    assert!(store.reopen("b", "Desk").unwrap().is_none());
}

#[test]
fn a_file_of_an_older_format_is_brought_up_to_date_with_all_that_is_in_it() {
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
    assert_eq!(journal.begin(&run(1, 1), &snapshot(1, "new")), Ok(Begun::Fresh));
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

#[test]
fn destroyed_pages_are_said_to_be_damage() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let journal = store.begin_conversation("a", "Desk");
    journal.keep(&snapshot(1, &"long ".repeat(20_000))).unwrap();
    drop((store, journal));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4_096..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let refused = Store::open(&path).and_then(|store| store.conversations()).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused:?}");
}

#[test]
fn a_file_that_another_process_keeps_locked_is_said_to_be_busy_and_nothing_begins() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let journal = store.begin_conversation("a", "Desk");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = journal.begin(&run(1, 1), &snapshot(1, "one")).unwrap_err();
    assert!(matches!(&refused, JournalError::Failed(why) if why.contains("another process")), "{refused}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(journal.begin(&run(1, 1), &snapshot(1, "one")), Ok(Begun::Fresh));
}
