//! One suite of what stored conversations and their journals do, held against every store that can keep them.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
#[path = "../postgres_server/mod.rs"]
mod postgres_server;
#[path = "../runs/mod.rs"]
mod runs;
mod sessions;
mod suite;

use std::sync::Arc;

use sayback_runtime::approvals::ApprovalStore;
use sayback_store::Store;
use suite::Kept;

/// VC-62, VC-65, VC-76, VC-79.
#[tokio::test(flavor = "multi_thread")]
async fn conversations_in_a_file_keep_the_suite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.db");
    suite::run(async || Arc::new(Store::open(&path).unwrap()) as Kept).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_in_a_file_keep_the_suite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.db");
    sessions::run(async || Arc::new(Store::open(&path).unwrap()) as sessions::Kept).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vc_79_what_a_dead_server_left_in_a_file_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(&folder.path().join("c.db")).unwrap();
    let (one, two) = (open(), open());
    let kept: (Kept, Kept) = (Arc::new(one.clone()), Arc::new(two.clone()));
    let beat = async |which: &str| if which == "one" { &one } else { &two }.beat().await.unwrap();
    suite::vc_79_what_a_dead_server_left_is_unknown_and_never_run_again((&kept.0, &kept.1), beat).await;
}
