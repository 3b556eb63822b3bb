//! Calls, approvals and webhooks over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::routing::post;
use sayback_core::Event;
use sayback_runtime::approvals::{ApprovalQueue, ApprovalRequest, Asker};
use sayback_runtime::switchboard::{Asked, NotNow};
use sayback_server::webhook::{Delivered, Webhook, deliver, signature};
use sayback_server::{Role, serve};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{begin, board, start, start_with, token};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_seen_spoken_in_and_ended() {
    let board = board();
    let server = start(&board, vec![]).await;
    let (started, said) = begin(&board).await;
    let events = server.ask("GET", &format!("/v1/calls/{}/events", started.id)).send().await.unwrap();
    let list: Value = server.ask("GET", "/v1/calls").send().await.unwrap().json().await.unwrap();
    assert_eq!(list["calls"][0]["call"], json!(started.id));
    assert_eq!((&list["calls"][0]["from"], &list["calls"][0]["live"]), (&json!("anna"), &json!(true)));
    assert_eq!(server.act(&started.id, json!({ "action": "dtmf", "digits": "12#" })).await.0, 202);
    assert_eq!(server.act(&started.id, json!({ "action": "mute", "on": true })).await.0, 202);
    assert_eq!(server.act(&started.id, json!({ "action": "say", "text": "One moment." })).await.0, 202);
    for (body, status, kind) in [
        (json!({ "action": "transfer", "to": "100" }), 409, "not-on-this-line"),
        (json!({ "action": "dtmf", "digits": "1x" }), 400, "bad-digits"),
        (json!({ "action": "say", "text": " " }), 400, "bad-text"),
        (json!({ "action": "dance" }), 400, "bad-body"),
        (json!({ "action": "end", "now": true }), 400, "bad-body"),
    ] {
        let (got, text) = server.act(&started.id, body).await;
        assert!(got == status && text.contains(&format!("urn:sayback:{kind}")), "{got} {text}");
    }
    // Nobody plays what is said, so the call ends when it is hung up.
    assert_eq!(server.status("DELETE", &format!("/v1/calls/{}", started.id)).await, 202);
    started.call.send(Event::HungUp).await.unwrap();
    let log = tokio::time::timeout(Duration::from_secs(10), events.text()).await.unwrap().unwrap();
    assert!(
        log.starts_with("id: 0\nevent: call.started\ndata: {") && log.contains("event: call.ended"),
        "{log}"
    );
    assert!(said.0.lock().unwrap().starts_with(&["Hello.".to_owned(), "keys 12#".to_owned()]), "{said:?}");
    assert!(said.0.lock().unwrap().contains(&"One moment.".to_owned()));
    board.calls().none_live().await;
    assert_eq!(server.act(&started.id, json!({ "action": "end" })).await.0, 409);
    let again = server.ask("GET", &format!("/v1/calls/{}/events", started.id)).header("last-event-id", "0");
    let log = again.send().await.unwrap().text().await.unwrap();
    assert!(log.starts_with("id: 1\n") && !log.contains("call.started"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_a_problem_with_a_stable_type() {
    let board = board();
    let server = start(&board, vec![]).await;
    for (method, path, status, kind) in [
        ("GET", "/nowhere", 404, "no-such-route"),
        ("PUT", "/v1/calls", 405, "method-not-allowed"),
        ("GET", "/v1/calls/x", 404, "no-such-call"),
        ("GET", "/v1/calls/x/events", 404, "no-such-call"),
        ("DELETE", "/v1/calls/x", 404, "no-such-call"),
        ("POST", "/v1/calls/x/actions", 415, "json-wanted"),
    ] {
        let answer = server.ask(method, path).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{method} {path}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["type"], json!(format!("urn:sayback:{kind}")), "{method} {path}");
    }
    let call = json!({ "agent": "desk", "to": "+49" });
    let answer = server.ask("POST", "/v1/calls").json(&call).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 501);
    let large = server.ask("POST", "/v1/calls/x/actions").header("content-type", "application/json");
    assert_eq!(large.body("x".repeat(70_000)).send().await.unwrap().status().as_u16(), 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_tokens_only_the_pulse_is_open() {
    let board = board();
    let server = start(&board, vec![token("reader", &[Role::Read]), token("caller", &[Role::Call])]).await;
    assert_eq!(server.status("GET", "/healthz").await, 200);
    for path in ["/readyz", "/metrics", "/v1/calls", "/v1/calls/x"] {
        assert_eq!(server.status("GET", path).await, 401, "{path}");
        let with = |token: &str| server.ask("GET", path).bearer_auth(token).send();
        assert_eq!(with("caller").await.unwrap().status().as_u16(), 403, "{path}");
        assert_ne!(with("reader").await.unwrap().status().as_u16(), 401, "{path}");
    }
    let act = |token: &str| server.ask("DELETE", "/v1/calls/x").bearer_auth(token).send();
    assert_eq!(act("reader").await.unwrap().status().as_u16(), 403);
    assert_eq!(act("caller").await.unwrap().status().as_u16(), 404);
    let metrics = server.ask("GET", "/metrics").bearer_auth("reader").send().await.unwrap();
    assert!(metrics.text().await.unwrap().contains("\nsayback_calls_live 0\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_drains_says_so_and_waits_for_its_calls() {
    let board = board();
    let server = start(&board, vec![]).await;
    let (started, _) = begin(&board).await;
    assert_eq!(server.status("GET", "/readyz").await, 200);
    let draining = {
        let board = board.clone();
        tokio::spawn(async move { board.drain(Duration::from_secs(30)).await })
    };
    while board.is_open() {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.status("GET", "/readyz").await, 503);
    assert_eq!(board.admit(Asked::default()).await.unwrap_err(), NotNow::Draining);
    started.call.send(Event::HungUp).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), draining).await.unwrap().unwrap();
    assert_eq!((board.calls().live(), board.refused()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_posted_in_order_signed_and_again_when_they_are_not_taken() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (posts, mut posted) = tokio::sync::mpsc::channel(64);
    let failures = Arc::new(std::sync::atomic::AtomicU32::new(1));
    let take = move |headers: axum::http::HeaderMap, body: String| {
        let (posts, failures) = (posts.clone(), Arc::clone(&failures));
        async move {
            if failures.swap(0, std::sync::atomic::Ordering::SeqCst) > 0 {
                return axum::http::StatusCode::SERVICE_UNAVAILABLE;
            }
            let signature = headers["sayback-signature"].to_str().unwrap().to_owned();
            posts.send((signature, body)).await.unwrap();
            axum::http::StatusCode::NO_CONTENT
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(serve(listener, axum::Router::new().route("/hook", post(take)), std::future::pending()));
    let board = board();
    let events = vec!["call.started".to_owned(), "call.ended".to_owned()];
    let hook = Webhook { url, secret: "secret".to_owned(), events };
    let delivered = Arc::new(Delivered::default());
    let delivering = tokio::spawn(deliver(hook, board.calls().news(), Arc::clone(&delivered)));
    let (started, _) = begin(&board).await;
    started.call.send(Event::HungUp).await.unwrap();
    for expected in ["call.started", "call.ended"] {
        let (given, body) =
            tokio::time::timeout(Duration::from_secs(10), posted.recv()).await.unwrap().unwrap();
        let value: Value = serde_json::from_str(&body).unwrap();
        let seen = (&value["event"]["event"], &value["call"]);
        assert_eq!(seen, (&json!(expected), &json!(started.id)), "{body} {delivered:?}");
        let at = given.trim_start_matches("t=").split(',').next().unwrap().parse().unwrap();
        assert_eq!(given, signature("secret", at, &body));
        assert_ne!(given, signature("other", at, &body));
    }
    while delivered.sent() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!((delivered.sent(), delivered.lost()), (2, 0));
    delivering.abort();
}

pub(crate) fn approval(id: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: id.to_owned(),
        asker: Asker::Call("call-1".to_owned()),
        agent: "Bank".to_owned(),
        tool: "transfer_money".to_owned(),
        input: json!({ "amount": 5000, "to": "bob" }),
        hint: "A transfer above the limit".to_owned(),
        payload: Some(json!({ "most": 0 })),
        asked_ms: 1_796_000_000_000,
        expires_ms: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_listed_and_answered_once() {
    let queue = ApprovalQueue::default();
    let server = start_with(&board(), vec![], queue.clone()).await;
    queue.request(&approval("a_1")).await.unwrap();
    let list: Value = server.ask("GET", "/v1/approvals").send().await.unwrap().json().await.unwrap();
    let shown = &list["approvals"][0];
    assert_eq!((&shown["id"], &shown["state"]), (&json!("a_1"), &json!("open")));
    assert_eq!(shown["asker"], json!({ "call": "call-1" }));
    assert_eq!((&shown["input"]["amount"], &shown["payload"]["most"]), (&json!(5000), &json!(0)));
    let answer = async |id: &str, body: Value| {
        let answer = server.ask("POST", &format!("/v1/approvals/{id}")).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    // Only a boolean is an answer, and what is no answer leaves it open.
    for wrong in [json!({ "confirmed": "yes" }), json!({ "confirmed": 1 }), json!({}), json!({ "ok": true })]
    {
        let (status, body) = answer("a_1", wrong.clone()).await;
        assert_eq!((status, &body["type"]), (400, &json!("urn:sayback:bad-body")), "{wrong}");
    }
    assert_eq!(answer("a_2", json!({ "confirmed": true })).await.0, 404);
    let given = json!({ "confirmed": true, "payload": { "most": 9 }, "reason": "known", "by": "ann" });
    let (status, body) = answer("a_1", given.clone()).await;
    assert_eq!((status, &body["state"], &body["decision"]), (200, &json!("answered"), &given));
    let (status, body) = answer("a_1", json!({ "confirmed": false })).await;
    assert_eq!((status, &body["type"]), (409, &json!("urn:sayback:answered-already")));
    queue.request(&approval("a_3")).await.unwrap();
    queue.cancel("a_3", "the caller hung up").await.unwrap();
    let (status, body) = answer("a_3", json!({ "confirmed": true })).await;
    assert_eq!((status, &body["type"]), (410, &json!("urn:sayback:no-longer-wanted")));
    let list: Value = server.ask("GET", "/v1/approvals").send().await.unwrap().json().await.unwrap();
    assert_eq!(list, json!({ "approvals": [] }));
    let one: Value = server.ask("GET", "/v1/approvals/a_1").send().await.unwrap().json().await.unwrap();
    assert_eq!(one["state"], json!("answered"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_may_approve_sees_and_answers_approvals() {
    let roles = [Role::Read, Role::Call, Role::App, Role::Approve];
    let tokens = roles.map(|role| token(&format!("{role:?}"), &[role])).to_vec();
    let queue = ApprovalQueue::default();
    queue.request(&approval("a_1")).await.unwrap();
    let server = start_with(&board(), tokens, queue).await;
    let answer = json!({ "confirmed": true });
    for (who, status) in [("Read", 403), ("Call", 403), ("App", 403), ("Nobody", 401), ("Approve", 200)] {
        let list = server.ask("GET", "/v1/approvals").bearer_auth(who).send().await.unwrap();
        assert_eq!(list.status().as_u16(), status, "{who}");
        let post = server.ask("POST", "/v1/approvals/a_1").bearer_auth(who).json(&answer);
        let answered = post.send().await.unwrap();
        assert_eq!(answered.status().as_u16(), status, "{who}");
        if status == 200 {
            let body: Value = answered.json().await.unwrap();
            assert_eq!(
                body["decision"]["by"],
                json!("Approve"),
                "who said nothing goes by their token's name"
            );
        }
    }
}
