//! Several `sayback serve` on one PostgreSQL of the test's own.

#![cfg(feature = "serve")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

#[path = "../../store/tests/postgres_server/mod.rs"]
mod postgres_server;
#[expect(dead_code, reason = "other tests ask for more")]
#[path = "support/server.rs"]
mod server;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use sayback_rig::has_models;
use serde_json::{Value, json};
use server::{PROGRAM, Server, answers, bank, scripted, storing};

fn config(folder: &Path, url: &str) -> String {
    let steps = [
        json!({ "call": { "tool": "transfer_money", "input": { "amount": 500, "to": "bob" } } }),
        json!({ "say": "It is with my colleagues." }),
        json!({ "say": "It is sent." }),
    ];
    storing(&answers(folder, &bank(), &steps), url)
}

fn start(url: &str) -> Server {
    Server::of(|folder| config(folder, url))
}

/// Waits until there is something.
async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut every = tokio::time::interval(Duration::from_millis(200));
    for _ in 0..450 {
        every.tick().await;
        if let Some(found) = look() {
            return found;
        }
    }
    panic!("never: {what}")
}

/// A conversation that waits for an approval; gives both ids, the approval's as another server lists it.
async fn asks(at: &Server, seen_at: &Server) -> (String, String) {
    let opened = at.post("/v1/chats", &json!({}));
    let chat = opened["chat"].as_str().unwrap().to_owned();
    let text = [("Content-Type", "application/json")];
    at.ask("POST", &format!("/v1/chats/{chat}/messages"), &text, "{\"text\": \"Send 500.\"}");
    let approval = until("it is asked for", || {
        let open: Value = serde_json::from_str(&seen_at.get("/v1/approvals")).unwrap();
        let ids = open["approvals"].as_array().unwrap().iter();
        let mut ids = ids.map(|one| one["id"].as_str().unwrap().to_owned());
        ids.find(|id| id.starts_with(&chat))
    })
    .await;
    (chat, approval)
}

fn approve(at: &Server, approval: &str) -> (u16, String) {
    let json = [("Content-Type", "application/json")];
    at.ask("POST", &format!("/v1/approvals/{approval}"), &json, "{\"confirmed\": true}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_given_at_one_server_resumes_a_call_on_another_and_a_dead_servers_are_void() {
    if !has_models() || !postgres_server::installed() {
        return;
    }
    let database = postgres_server::Server::start(&["fsync=off"]);
    let one = start(&database.url());
    let two = start(&database.url());
    let (chat, approval) = asks(&one, &two).await;
    let (status, answer) = approve(&two, &approval);
    assert_eq!(status, 200, "{answer}");
    until("the call goes on", || {
        let shown = one.get(&format!("/v1/chats/{chat}"));
        shown.contains(r#"{\"status\":\"sent\",\"amount\":500,\"to\":\"bob\"}"#).then_some(shown)
    })
    .await;
    let (status, again) = approve(&one, &approval);
    assert!(status == 409, "once, wherever: {status} {again}");
    // The other one dies in the middle of a call that waits.
    let (_, left) = asks(&one, &two).await;
    drop(one);
    until("it is noticed", || (!two.get("/v1/approvals").contains(&left)).then_some(())).await;
    let (status, gone) = approve(&two, &left);
    assert!(status == 410 || status == 409, "{status} {gone}");
    assert!(gone.contains("server that the call was on is gone"), "{gone}");
    assert_eq!(two.stop(), Some(0));
}

/// A desk whose tool writes down the key that it was given, and then waits until the test's folder is gone.
fn desk(folder: &Path, url: &str, steps: &[Value]) -> Server {
    let ran = folder.join("ran").display().to_string();
    let work = format!("echo $SAYBACK_IDEMPOTENCY_KEY >> {ran}; while [ -e {ran} ]; do sleep 0.1; done");
    let tool = format!(
        r#"
[[skill]]
name = "bank"
[[skill.tool]]
name = "transfer_money"
description = "Transfer money."
confirm = "Shall I send {{{{ amount }}}}?"
run = {{ command = ["sh", "-c", {work:?}] }}
[skill.tool.input]
type = "object"
required = ["amount"]
properties = {{ amount = {{ type = "integer" }} }}
"#
    );
    let own = tempfile::tempdir_in(folder).unwrap().keep();
    let config = storing(&answers(&own, &scripted("bank", &tool), steps), url);
    Server::run(&own, &config, Command::new(PROGRAM))
}

/// The question once it is said: a yes before that is none.
const SAID: &str = "\"type\":\"agent\",\"text\":\"Shall I send 500?\"";

fn write(at: &Server, chat: &str, text: &str) {
    let json = [("Content-Type", "application/json")];
    let body = json!({ "text": text }).to_string();
    let (status, answer) = at.ask("POST", &format!("/v1/chats/{chat}/messages"), &json, &body);
    assert_eq!(status, 202, "{answer}");
}

fn shows(at: &Server, chat: &str, what: &str) -> Option<Value> {
    let shown = at.get(&format!("/v1/chats/{chat}"));
    shown.contains(what).then(|| serde_json::from_str(&shown).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn vc_79_a_run_that_a_killed_server_had_begun_is_told_as_unknown_by_another_and_never_run_again() {
    if !has_models() || !postgres_server::installed() {
        return;
    }
    let database = postgres_server::Server::start(&["fsync=off"]);
    let folder = tempfile::tempdir().unwrap();
    let call = json!({ "call": { "tool": "transfer_money", "input": { "amount": 500 } } });
    let one = desk(folder.path(), &database.url(), &[call, json!({ "verdict": "yes" })]);
    let two = desk(
        folder.path(),
        &database.url(),
        &[json!({ "say": "It may have been sent." }), json!({ "say": "Anything else?" })],
    );
    let chat = one.post("/v1/chats", &json!({}))["chat"].as_str().unwrap().to_owned();
    write(&one, &chat, "Send 500.");
    until("it is asked", || shows(&one, &chat, SAID)).await;
    write(&one, &chat, "yes");
    let ran = || std::fs::read_to_string(folder.path().join("ran")).unwrap_or_default();
    until("the run has begun", || (!ran().is_empty()).then_some(())).await;
    let stored =
        || -> Value { serde_json::from_str(&two.get(&format!("/v1/conversations/{chat}"))).unwrap() };
    assert_eq!(stored()["runs"][0]["state"], "started", "it was written down before it began: {}", stored());
    // In the middle of the run, as a crash would.
    drop(one);
    until("it is noticed", || (stored()["runs"][0]["state"] == "outcome_unknown").then_some(())).await;
    let listed: Value = serde_json::from_str(&two.get("/v1/conversations")).unwrap();
    let found = &listed["conversations"][0];
    assert_eq!(
        (found["id"].as_str(), &found["runs"], &found["unknown"]),
        (Some(&*chat), &json!(1), &json!(1))
    );
    assert_eq!(stored()["runs"][0]["idempotency_key"], ran().trim(), "what to look for");
    // The caller goes on at the other server: the model is told, and nothing runs a second time.
    let on = two.post("/v1/chats", &json!({ "resume": chat }));
    assert_eq!(on, json!({ "chat": chat, "agent": "bank" }));
    let shown = until("it is told", || shows(&two, &chat, "It may have been sent.")).await;
    let told = |item: &Value| {
        item["text"].as_str().is_some_and(|text| text.contains("not known whether it happened"))
    };
    assert!(shown["items"].as_array().unwrap().iter().any(told), "{shown}");
    assert_eq!(shown["question"], Value::Null, "it is not asked again: {shown}");
    write(&two, &chat, "yes");
    until("it is answered", || shows(&two, &chat, "Anything else?")).await;
    assert_eq!(ran().lines().count(), 1, "{}", ran());
    assert_eq!(stored()["runs"].as_array().unwrap().len(), 1);
    let again = two.ask(
        "POST",
        "/v1/chats",
        &[("Content-Type", "application/json")],
        &json!({ "resume": chat }).to_string(),
    );
    assert_eq!(again.0, 409, "it goes on here: {}", again.1);
    assert_eq!(two.stop(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_waits_for_a_database_that_is_not_there_yet_and_not_for_one_that_says_no() {
    if !has_models() || !postgres_server::installed() {
        return;
    }
    let mut database = postgres_server::Server::start(&["fsync=off"]);
    database.kill();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hosted.toml");
    let written = |url: &str| {
        std::fs::write(&file, format!("listen = \"127.0.0.1:0\"\n{}", config(folder.path(), url))).unwrap();
    };
    written(&database.url());
    let mut serve = Command::new(PROGRAM);
    serve.arg("serve").arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = serve.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("waiting for the database")), "it says that it waits");
    database.run();
    assert!(said.any(|line| line.contains("the database is there")));
    let mut listening = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(listening.any(|line| line.starts_with("listening on")));
    child.kill().unwrap();
    child.wait().unwrap();
    // A database of that name is not there, and will not be.
    written(&database.url().replace("/postgres", "/nowhere"));
    let output = Command::new(PROGRAM).arg("serve").arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("nowhere"), "{said}");
    assert!(!said.contains("waiting"), "{said}");
    // One that never comes: the limit, and what is missing.
    database.kill();
    let short = format!(
        "{}wait = \"1s\"\n",
        config(folder.path(), &database.url()).replace("[limits]\ndrain = \"1s\"\n", "")
    );
    std::fs::write(&file, short).unwrap();
    let output = Command::new(PROGRAM).arg("serve").arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("hint: start the database"), "{said}");
}
