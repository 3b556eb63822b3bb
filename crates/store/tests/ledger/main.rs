//! One suite of the ledger's behaviour, held against every store that can keep one.

#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
#[path = "../postgres_server/mod.rs"]
mod postgres_server;
mod suite;
#[cfg(feature = "postgres")]
mod tls;

use std::sync::Arc;

use sayback_runtime::ledger::InMemory;
use sayback_store::Store;

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_in_memory_keeps_the_suite() {
    suite::run(Arc::new(InMemory::default())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_in_a_file_keeps_the_suite() {
    let folder = tempfile::tempdir().unwrap();
    suite::run(Arc::new(Store::open(&folder.path().join("l.db")).unwrap().ledger())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn led_15_a_ledger_in_a_file_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.db");
    let open = || Arc::new(Store::open(&path).unwrap().ledger());
    suite::write(open().as_ref(), "kept").await;
    let (one, other) = (open(), open());
    assert!(suite::uses(one.as_ref(), "kept").await, "one file is one ledger, whoever has it open");
    assert!(!suite::uses(other.as_ref(), "kept").await, "and it is used once");
}
