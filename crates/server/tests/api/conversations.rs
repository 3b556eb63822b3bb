//! Stored conversations over HTTP: shown, and gone on with.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sayback_core::{Item, Reopened, ToolOutcome};
use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::conversations::{Conversations, Listed, LostRun, Stored, StoredRun};
use sayback_runtime::journal::{Begun, ConfirmedRun, Journal, JournalError, Snapshot};
use sayback_runtime::switchboard::Switchboard;
use sayback_server::{Api, Role};
use serde_json::{Value, json};

use crate::support::{Server, api, board, start_api, token};

/// Conversations in memory, and how often each was opened again.
#[derive(Debug, Default)]
struct Kept {
    stored: Mutex<BTreeMap<String, Stored>>,
    opened: Mutex<Vec<String>>,
    away: Mutex<bool>,
}

impl Kept {
    fn put(&self, id: &str, agent: &str, body: String) {
        let run = StoredRun {
            hold: 1,
            attempt: 1,
            idempotency_key: format!("{id}/h_01"),
            call: "c1".to_owned(),
            tool: "pay".to_owned(),
            confirmed_by: "yes".to_owned(),
            state: "outcome_unknown".to_owned(),
            message: String::new(),
        };
        let (agent, changed) = (agent.to_owned(), "2026-11-30 13:00:00".to_owned());
        self.stored.lock().unwrap().insert(id.to_owned(), Stored { agent, changed, body, runs: vec![run] });
    }

    fn opened(&self) -> Vec<String> {
        self.opened.lock().unwrap().clone()
    }

    fn look(&self) -> Result<(), JournalError> {
        let away = JournalError::Failed("the database cannot be reached".to_owned());
        if *self.away.lock().unwrap() { Err(away) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct Quiet;

#[async_trait::async_trait]
impl Journal for Quiet {
    async fn begin(&self, _: &ConfirmedRun, _: &Snapshot) -> Result<Begun, JournalError> {
        Ok(Begun::Already)
    }

    async fn finish(&self, _: &ConfirmedRun, _: &ToolOutcome) -> Result<(), JournalError> {
        Ok(())
    }

    async fn keep(&self, _: &Snapshot) -> Result<(), JournalError> {
        Ok(())
    }
}

#[async_trait::async_trait]
impl Conversations for Kept {
    fn begin(&self, _id: &str, _agent: &str) -> Arc<dyn Journal> {
        Arc::new(Quiet)
    }

    async fn reopen(&self, id: &str, _: &str) -> Result<Option<(Stored, Arc<dyn Journal>)>, JournalError> {
        let found = self.stored(id).await?;
        self.opened.lock().unwrap().push(id.to_owned());
        Ok(found.map(|stored| (stored, Arc::new(Quiet) as Arc<dyn Journal>)))
    }

    async fn stored(&self, id: &str) -> Result<Option<Stored>, JournalError> {
        self.look()?;
        Ok(self.stored.lock().unwrap().get(id).cloned())
    }

    async fn latest(&self, most: u32) -> Result<Vec<Listed>, JournalError> {
        self.look()?;
        let stored = self.stored.lock().unwrap();
        let listed = stored.iter().take(most as usize).map(|(id, stored)| Listed {
            id: id.clone(),
            agent: stored.agent.clone(),
            changed: stored.changed.clone(),
            runs: 1,
            unknown: 1,
        });
        Ok(listed.collect())
    }

    async fn give_up(&self, _: Duration) -> Result<Vec<LostRun>, JournalError> {
        Ok(Vec::new())
    }
}

async fn with(board: &Switchboard, kept: Option<Arc<Kept>>) -> Server {
    let tokens = vec![token("reader", &[Role::Read]), token("app", &[Role::App])];
    start_api(tokens, |access| Api {
        conversations: kept.map(|kept| kept as Arc<dyn Conversations>),
        ..api(board, access, ApprovalQueue::default())
    })
    .await
}

fn body() -> String {
    let items = vec![Item::Caller { text: "Send 500.".to_owned() }];
    serde_json::to_string(&Reopened { items, ..Reopened::default() }).unwrap()
}

async fn get(server: &Server, path: &str) -> (u16, Value) {
    let answer = server.ask("GET", path).bearer_auth("reader").send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn resume(server: &Server, id: &str) -> (u16, Value) {
    let asked = server.ask("POST", "/v1/chats").bearer_auth("app").json(&json!({ "resume": id }));
    let answer = asked.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_conversations_are_shown_with_what_came_of_their_runs() {
    let (board, kept) = (board(), Arc::new(Kept::default()));
    kept.put("chat-1", "desk", body());
    kept.put("chat-2", "desk", "no JSON".to_owned());
    let server = with(&board, Some(Arc::clone(&kept))).await;
    let (status, listed) = get(&server, "/v1/conversations").await;
    assert_eq!((status, listed["conversations"].as_array().unwrap().len()), (200, 2), "{listed}");
    assert_eq!(listed["conversations"][0]["unknown"], 1);
    let (status, shown) = get(&server, "/v1/conversations/chat-1").await;
    assert_eq!(
        (status, &shown["agent"], &shown["items"][0]["text"]),
        (200, &json!("desk"), &json!("Send 500."))
    );
    let run = &shown["runs"][0];
    assert_eq!((&run["state"], &run["idempotency_key"]), (&json!("outcome_unknown"), &json!("chat-1/h_01")));
    for (path, status, kind) in [
        ("/v1/conversations/chat-3", 404, "no-such-conversation"),
        ("/v1/conversations/chat-2", 500, "conversation-unreadable"),
    ] {
        let (found, problem) = get(&server, path).await;
        assert_eq!((found, &problem["type"]), (status, &json!(format!("urn:sayback:{kind}"))), "{problem}");
    }
    *kept.away.lock().unwrap() = true;
    for path in ["/v1/conversations", "/v1/conversations/chat-1"] {
        let (found, problem) = get(&server, path).await;
        assert_eq!((found, &problem["type"]), (503, &json!("urn:sayback:store-failed")), "{problem}");
    }
    let without = with(&board, None).await;
    let (found, problem) = get(&without, "/v1/conversations").await;
    assert!(found == 404 && problem["detail"].as_str().unwrap().contains("[store]"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_chat_goes_on_under_its_id_and_is_opened_once_at_a_time() {
    let (board, kept) = (board(), Arc::new(Kept::default()));
    kept.put("chat-1", "desk", body());
    let server = Arc::new(with(&board, Some(Arc::clone(&kept))).await);
    let all = (0..8).map(|_| {
        let server = Arc::clone(&server);
        tokio::spawn(async move { resume(&server, "chat-1").await })
    });
    let mut opened = 0;
    for one in all.collect::<Vec<_>>() {
        let (status, answer) = one.await.unwrap();
        match status {
            201 => {
                opened += 1;
                assert_eq!(answer, json!({ "chat": "chat-1", "agent": "desk" }));
            }
            _ => assert_eq!((status, &answer["type"]), (409, &json!("urn:sayback:goes-on")), "{answer}"),
        }
    }
    assert_eq!((opened, kept.opened().len()), (1, 1), "the others have left it alone");
    let shown = server.ask("GET", "/v1/chats/chat-1").bearer_auth("app").send().await.unwrap();
    let shown: Value = shown.json().await.unwrap();
    assert_eq!(shown["chat"], "chat-1");
    // It ends and goes on again.
    board.calls().tell("chat-1", sayback_core::Event::HungUp).unwrap();
    let mut news = board.calls().follow("chat-1", 0).unwrap();
    while let Some(next) = news.next.as_mut() {
        if tokio::time::timeout(Duration::from_secs(30), next.recv()).await.unwrap().is_err() {
            break;
        }
    }
    assert_eq!(resume(&server, "chat-1").await.0, 201);
    assert_eq!(board.calls().list().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_go_on_is_said_and_left_as_it_is() {
    let (board, kept) = (board(), Arc::new(Kept::default()));
    kept.put("chat-other", "another desk", body());
    kept.put("chat-broken", "desk", "no JSON".to_owned());
    kept.put("sip-1", "desk", body());
    let server = with(&board, Some(Arc::clone(&kept))).await;
    for (id, status, kind) in [
        ("chat-nobody", 404, "no-such-conversation"),
        ("", 404, "no-such-conversation"),
        ("sip-1", 404, "no-such-conversation"),
        ("chat-other", 409, "another-agent"),
        ("chat-broken", 500, "conversation-unreadable"),
    ] {
        let (found, problem) = resume(&server, id).await;
        assert_eq!(
            (found, &problem["type"]),
            (status, &json!(format!("urn:sayback:{kind}"))),
            "{id}: {problem}"
        );
    }
    *kept.away.lock().unwrap() = true;
    assert_eq!(resume(&server, "chat-other").await.0, 503);
    assert!(kept.opened().is_empty() && board.calls().list().is_empty());
    let (found, problem) = resume(&with(&board, None).await, "chat-1").await;
    assert_eq!((found, &problem["type"]), (404, &json!("urn:sayback:no-store")), "{problem}");
}
