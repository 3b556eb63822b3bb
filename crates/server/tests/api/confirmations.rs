//! The ledger over HTTP, as another app uses it.

use std::sync::Arc;

use async_trait::async_trait;
use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::ledger::{
    Bounds, Claim, Entry, EntryId, Lease, Ledger, LedgerFault, LedgerOptions, LedgerStore, Moment, Owner,
    Settled, Switch, Want, Wanted, Yes,
};
use sayback_server::{Api, Role};
use serde_json::{Value, json};

use crate::support::{Server, api, board, start_api, token};

async fn start(ledger: Ledger) -> Server {
    let tokens =
        vec![token("shop", &[Role::App]), token("bank", &[Role::App]), token("reader", &[Role::Read])];
    let board = board();
    start_api(tokens, |access| Api { ledger, ..api(&board, access, ApprovalQueue::default()) }).await
}

async fn started() -> Server {
    start(Ledger::in_memory(LedgerOptions::default()).unwrap()).await
}

impl Server {
    async fn send(&self, token: &str, path: &str, body: String) -> (u16, Value) {
        let request = self.ask("POST", path).bearer_auth(token).header("content-type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn record(&self, token: &str, body: Value) -> Value {
        let (status, answer) = self.send(token, "/v1/confirmations", body.to_string()).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    async fn check(&self, token: &str, body: Value) -> Value {
        let (status, answer) = self.send(token, "/v1/confirmations/check", body.to_string()).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    async fn reason(&self, body: Value) -> Value {
        self.check("shop", body).await["reason"].clone()
    }
}

fn call(session: &str, amount: f64) -> Value {
    json!({ "tool": "pay", "args": { "to": "bob", "amount": amount }, "session": session })
}

#[tokio::test(flavor = "multi_thread")]
async fn led_06_a_recorded_yes_lets_one_call_through() {
    let server = started().await;
    assert_eq!(server.record("shop", call("s1", 50.0)).await, json!({ "recorded": true }));
    let first = server.check("shop", call("s1", 50.0)).await;
    let expected = json!({ "allowed": true, "confirmed": true, "reason": "confirmed", "mode": "enforce" });
    assert_eq!(first, expected);
    let second = server.check("shop", call("s1", 50.0)).await;
    assert_eq!((&second["allowed"], &second["reason"]), (&json!(false), &json!("no_confirmation")));
    server.record("shop", call("s1", 50.0)).await;
    assert_eq!(server.reason(call("s1", 60.0)).await, "args_mismatch");
    assert_eq!(server.reason(call("s2", 50.0)).await, "no_confirmation");
    assert_eq!(server.reason(call("s1", 50.0)).await, "confirmed");
}

#[tokio::test(flavor = "multi_thread")]
async fn led_08_of_checks_at_the_same_time_one_is_confirmed() {
    let server = Arc::new(started().await);
    for round in 0..20 {
        let session = format!("s{round}");
        server.record("shop", call(&session, 1.0)).await;
        let checks = (0..4).map(|_| {
            let (server, call) = (Arc::clone(&server), call(&session, 1.0));
            tokio::spawn(async move { server.check("shop", call).await["confirmed"] == json!(true) })
        });
        let confirmed = futures::future::join_all(checks).await.into_iter().filter(|c| *c.as_ref().unwrap());
        assert_eq!(confirmed.count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn led_15_one_apps_yes_is_not_anothers() {
    let server = started().await;
    server.record("shop", call("s1", 50.0)).await;
    assert_eq!(server.check("bank", call("s1", 50.0)).await["reason"], "no_confirmation");
    assert_eq!(server.reason(call("s1", 50.0)).await, "confirmed");
}

#[tokio::test(flavor = "multi_thread")]
async fn led_04_led_26_arguments_that_readers_could_read_differently_are_not_hashed() {
    let server = started().await;
    for args in [
        r#"{"a":1,"a":2}"#.to_owned(),
        r#"{"a":9007199254740993}"#.to_owned(),
        format!("{}{}", "[".repeat(40), "]".repeat(40)),
        format!("\"{}\"", "x".repeat(300_000)),
    ] {
        let body = format!(r#"{{"tool":"pay","session":"s","args":{args}}}"#);
        let (status, answer) = server.send("shop", "/v1/confirmations", body.clone()).await;
        assert_eq!((status, answer), (200, json!({ "recorded": true, "reason": "unhashable_args" })));
        let strict = body.replacen('{', r#"{"rule":{"tool_only":false},"#, 1);
        let (status, answer) = server.send("shop", "/v1/confirmations/check", strict).await;
        assert_eq!((status, &answer["allowed"]), (200, &json!(false)), "a tool with a question: {answer}");
        let (status, answer) = server.send("shop", "/v1/confirmations/check", body).await;
        assert_eq!((status, &answer["confirmed"]), (200, &json!(true)), "tied to the tool: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn led_18_led_20_confirmations_of_another_process_come_with_the_call_and_work_once() {
    let server = started().await;
    let with = |reference: &str, extra: Value| {
        let mut brought = json!({ "ref": reference, "tool": "pay", "args": { "amount": 5e3, "to": "bob" } });
        brought.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let mut call = call("s1", 5_000.0);
        call["confirmations"] = json!([brought]);
        call
    };
    assert_eq!(server.reason(with("a", json!({}))).await, "confirmed");
    assert_eq!(server.reason(with("a", json!({}))).await, "already_used");
    assert_eq!(server.reason(with("b", json!({ "age_ms": 600_001 }))).await, "expired");
    assert_eq!(server.reason(with("b", json!({ "age_ms": 1_000 }))).await, "confirmed");
    assert_eq!(server.reason(with("c", json!({ "at": 5 }))).await, "expired");
    let mut unheard = with("d", json!({}));
    unheard["ledger"] = json!(false);
    assert_eq!(server.reason(unheard).await, "confirmed", "what came with the call is data");
    for wrong in [
        json!({ "age_ms": -1 }),
        json!({ "at": 9_000_000_000_000_000_i64 }),
        json!({ "age_ms": 1, "at": 1 }),
        json!({ "args_hash": "sha256:1" }),
        json!({ "ref": "" }),
    ] {
        let (status, answer) =
            server.send("shop", "/v1/confirmations/check", with("e", wrong.clone()).to_string()).await;
        assert_eq!(status, 400, "{wrong} {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_comes_with_the_check() {
    let server = started().await;
    let ask = |rule: Value| {
        let mut call = call("s1", 50.0);
        call["rule"] = rule;
        call
    };
    let observed = server.check("shop", ask(json!({ "mode": "observe" }))).await;
    let expected =
        json!({ "allowed": true, "confirmed": false, "reason": "no_confirmation", "mode": "observe" });
    assert_eq!(observed, expected);
    server
        .record("shop", json!({ "tool": "pay", "args": { "amount": 50, "to": "eve" }, "session": "s1" }))
        .await;
    assert_eq!(server.reason(ask(json!({ "bind_fields": ["to"] }))).await, "args_mismatch");
    assert_eq!(server.reason(ask(json!({ "accept": ["human_review", "reviewer"] }))).await, "not_accepted");
    assert_eq!(server.reason(ask(json!({ "bind_fields": ["amount"] }))).await, "confirmed");
    let mut unledgered = ask(json!({}));
    unledgered["ledger"] = json!(false);
    assert_eq!(server.reason(unledgered).await, "no_data");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused_and_nothing_is_recorded() {
    let server = started().await;
    for (body, kind) in [
        (json!({ "tool": "", "session": "s" }), "invalid-input"),
        (json!({ "tool": "a\u{0}b", "session": "s" }), "invalid-input"),
        (json!({ "tool": "pay", "session": "s\u{0}" }), "invalid-input"),
        (json!({ "tool": "x".repeat(300), "session": "s" }), "invalid-input"),
        (json!({ "tool": 5, "session": "s" }), "bad-body"),
        (json!({ "session": "s" }), "bad-body"),
        (json!({ "tool": "pay", "kind": "human_review" }), "bad-body"),
        (json!([]), "bad-body"),
    ] {
        for path in ["/v1/confirmations", "/v1/confirmations/check"] {
            let (status, answer) = server.send("shop", path, body.to_string()).await;
            assert_eq!((status, &answer["type"]), (400, &json!(format!("urn:sayback:{kind}"))), "{body}");
        }
    }
    // Every time: the answer must not be lost while the client still writes.
    for _ in 0..50 {
        let (status, answer) = server.send("shop", "/v1/confirmations", "x".repeat(2_000_000)).await;
        assert_eq!((status, &answer["type"]), (413, &json!("urn:sayback:too-large")));
    }
    assert_eq!(server.send("reader", "/v1/confirmations", "{}".to_owned()).await.0, 403);
    assert_eq!(server.send("nobody", "/v1/confirmations/check", "{}".to_owned()).await.0, 401);
    let url = format!("http://{}/v1/confirmations", server.address);
    assert_eq!(server.client.get(url).bearer_auth("shop").send().await.unwrap().status().as_u16(), 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn led_02_led_03_what_is_not_in_the_ledger_is_said() {
    let server = started().await;
    let recorded = server.record("shop", json!({ "tool": "pay", "args": {} })).await;
    assert_eq!(recorded, json!({ "recorded": true, "reason": "no_context" }));
    assert_eq!(server.reason(json!({ "tool": "pay", "args": {} })).await, "no_context");
    let off = LedgerOptions { switch: Switch::Off, ..LedgerOptions::default() };
    let server = start(Ledger::in_memory(off).unwrap()).await;
    assert_eq!(server.record("shop", call("s", 1.0)).await["reason"], "ledger_off");
    let checked = server.check("shop", call("s", 1.0)).await;
    assert_eq!((&checked["allowed"], &checked["reason"]), (&json!(true), &json!("no_data")));
}

/// A store whose database is away.
#[derive(Debug)]
struct Away;

impl Away {
    fn fault<T>() -> Result<T, LedgerFault> {
        Err(LedgerFault::Unreachable("postgres://sayback:secret@db/x refused".to_owned()))
    }
}

#[async_trait]
impl LedgerStore for Away {
    async fn put(&self, _: &Owner, _: &Yes, _: &Bounds) -> Result<EntryId, LedgerFault> {
        Self::fault()
    }

    async fn offers(&self, _: &Owner, _: &Wanted<'_>) -> Result<Vec<Entry>, LedgerFault> {
        Self::fault()
    }

    async fn claim(&self, _: &str, _: &Claim, _: Want, _: Moment) -> Result<Option<Lease>, LedgerFault> {
        Self::fault()
    }

    async fn settle(&self, _: &str, _: &Claim, _: Lease, _: Settled) -> Result<bool, LedgerFault> {
        Self::fault()
    }

    async fn forget(&self, _: Moment) -> Result<u64, LedgerFault> {
        Self::fault()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn led_09_a_store_that_is_away_confirms_nothing_and_says_so() {
    let server = start(Ledger::on(Arc::new(Away), LedgerOptions::default()).unwrap()).await;
    for path in ["/v1/confirmations", "/v1/confirmations/check"] {
        let (status, answer) = server.send("shop", path, call("s", 1.0).to_string()).await;
        assert_eq!((status, &answer["type"]), (503, &json!("urn:sayback:ledger-unreachable")));
        assert!(!answer.to_string().contains("secret"), "{answer}");
    }
}
