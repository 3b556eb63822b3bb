//! Approvals on disk: they outlive the process, and of two processes one settles each.

use std::sync::Arc;

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
    let waiting = tokio::spawn(async move { here.wait("a", Some(std::time::Duration::from_secs(30))).await });
    there.answer("a", Decision { confirmed: false, ..yes() }).await.unwrap();
    let closed = waiting.await.unwrap().unwrap().closed();
    assert_eq!(closed, Some(ApprovalError::Answered { id: "a".to_owned(), confirmed: false }));
}
