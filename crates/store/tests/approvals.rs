//! Approvals on disk: they outlive the process, and of two processes one settles each.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

#[cfg(feature = "postgres")]
mod postgres_server;

use std::sync::Arc;
use std::time::Duration;

use sayback_runtime::approvals::{ApprovalError, ApprovalQueue, ApprovalRequest, Asker, Decision};
use sayback_store::Store;
use serde_json::json;

fn request(id: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: id.to_owned(),
        asker: Asker::Session { app: "bank".into(), user: "u".into(), id: "s".into() },
        agent: "bank".to_owned(),
        tool: "transfer_money".to_owned(),
        input: json!({ "amount": 5000, "to": "b\u{f6}b" }),
        hint: "A transfer above the limit".to_owned(),
        payload: Some(json!({ "most": 0 })),
        asked_ms: 1,
        expires_ms: None,
    }
}

fn of_a_call(id: &str) -> ApprovalRequest {
    ApprovalRequest { asker: Asker::Call("call".to_owned()), ..request(id) }
}

/// What calls of a dead server asked for is void, whichever store it is in; `open` is another server each time.
async fn void_what_the_dead_left(open: impl AsyncFn() -> ApprovalQueue) {
    let ids = async |queue: &ApprovalQueue| -> Vec<String> {
        queue.open().await.unwrap().into_iter().map(|open| open.request.id).collect()
    };
    let (one, two, three) = (open().await, open().await, open().await);
    for id in ["nobody's", "a\0b", ""] {
        assert!(matches!(one.get(id).await, Err(ApprovalError::Unknown { .. })), "{id:?}");
        assert!(matches!(one.answer(id, yes()).await, Err(ApprovalError::Unknown { .. })), "{id:?}");
    }
    let long = Duration::from_secs(3_600);
    for queue in [&one, &two] {
        queue.beat().await.unwrap();
    }
    one.request(&of_a_call("a")).await.unwrap();
    one.request(&request("session")).await.unwrap();
    two.request(&of_a_call("b")).await.unwrap();
    assert_eq!(two.void_orphans(long).await, Ok(0), "both live");
    // One that has never said that it lives.
    three.request(&of_a_call("c")).await.unwrap();
    assert_eq!(two.void_orphans(long).await, Ok(1));
    assert_eq!(ids(&two).await, ["a", "session", "b"]);
    let late = two.answer("c", yes()).await.unwrap_err();
    assert!(matches!(&late, ApprovalError::Gone { why, .. } if why.contains("server")), "{late}");
    // One that says goodbye; whoever waits there is told.
    let waiting = tokio::spawn({
        let one = one.clone();
        async move { one.wait("a", Some(Duration::from_secs(30))).await }
    });
    one.leave().await.unwrap();
    assert_eq!(two.void_orphans(long).await, Ok(1));
    assert!(matches!(waiting.await.unwrap().unwrap().closed(), Some(ApprovalError::Gone { .. })));
    assert_eq!(ids(&two).await, ["session", "b"], "a session outlives its server");
    // One that has been quiet for too long. Nobody takes itself for dead.
    one.beat().await.unwrap();
    assert_eq!(two.void_orphans(Duration::ZERO).await, Ok(0));
    assert_eq!(one.void_orphans(Duration::ZERO).await, Ok(1));
    assert_eq!(ids(&one).await, ["session"]);
    assert_eq!(one.answer("session", yes()).await.unwrap().request.id, "session");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_calls_of_a_dead_server_asked_for_is_void() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    void_what_the_dead_left(async || ApprovalQueue::new(Arc::new(Store::open(&path).unwrap()))).await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn what_calls_of_a_dead_server_asked_for_is_void_in_postgresql_too() {
    if !postgres_server::installed() {
        return;
    }
    let server = postgres_server::Server::start(&["fsync=off"]);
    let open = async || sayback_store::Postgres::open(&server.url(), None).await.unwrap();
    void_what_the_dead_left(async || ApprovalQueue::new(Arc::new(open().await))).await;
}

fn yes() -> Decision {
    Decision { confirmed: true, ..Decision::default() }
}

#[tokio::test]
async fn adk_23_an_open_approval_is_there_after_a_restart_and_answered_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/store.db");
    let queue = || ApprovalQueue::new(Arc::new(Store::open(&path).unwrap()));
    queue().request(&request("a")).await.unwrap();
    let after = queue();
    let open = after.open().await.unwrap();
    assert_eq!(open.iter().map(|a| &a.request).collect::<Vec<_>>(), [&request("a")]);
    assert_eq!(after.answer("a", yes()).await.unwrap().request, request("a"));
    let error = queue().answer("a", yes()).await.unwrap_err();
    assert_eq!(error, ApprovalError::Answered { id: "a".to_owned(), confirmed: true });
    assert!(matches!(queue().request(&request("a")).await, Err(ApprovalError::Exists { .. })));
    assert!(matches!(queue().get("b").await, Err(ApprovalError::Unknown { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn adk_17_of_answers_in_several_processes_one_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let queues: Vec<ApprovalQueue> =
        (0..4).map(|_| ApprovalQueue::new(Arc::new(Store::open(&path).unwrap()))).collect();
    for round in 0..20 {
        let id = format!("a{round}");
        queues[0].request(&request(&id)).await.unwrap();
        let answers = queues.iter().map(|queue| {
            let (queue, id) = (queue.clone(), id.clone());
            tokio::spawn(async move { queue.answer(&id, yes()).await })
        });
        let mut counted = 0;
        for answer in answers.collect::<Vec<_>>() {
            match answer.await.unwrap() {
                Ok(_) => counted += 1,
                Err(error) => assert!(matches!(error, ApprovalError::Answered { .. }), "{error}"),
            }
        }
        assert_eq!(counted, 1, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_given_in_another_process_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let (here, there) = (Store::open(&path).unwrap(), Store::open(&path).unwrap());
    let (here, there) = (ApprovalQueue::new(Arc::new(here)), ApprovalQueue::new(Arc::new(there)));
    here.request(&request("a")).await.unwrap();
    let waiting = tokio::spawn(async move { here.wait("a", Some(Duration::from_secs(30))).await });
    there.answer("a", Decision { confirmed: false, ..yes() }).await.unwrap();
    let closed = waiting.await.unwrap().unwrap().closed();
    assert_eq!(closed, Some(ApprovalError::Answered { id: "a".to_owned(), confirmed: false }));
}
