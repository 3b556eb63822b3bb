//! Text sessions with the ADK's wire outlive their server: in a file, and in a PostgreSQL of the test's own that several
//! servers share.

#![cfg(feature = "serve")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

#[path = "../../store/tests/postgres_server/mod.rs"]
mod postgres_server;
#[expect(dead_code, reason = "other tests ask for more")]
#[path = "support/server.rs"]
mod server;

use std::path::Path;
use std::process::Command;

use sayback_rig::has_models;
use serde_json::{Value, json};
use server::{PROGRAM, Server, answers, scripted, storing};

/// What sends money writes down the key that it was given, and goes on while `hold` is there.
fn bank(folder: &Path) -> String {
    let (ran, hold) = (folder.join("ran"), folder.join("hold"));
    let work = format!(
        "echo $SAYBACK_IDEMPOTENCY_KEY >> {}; while [ -e {} ]; do sleep 0.1; done; echo '{{\"status\":\"sent\"}}'",
        ran.display(),
        hold.display()
    );
    let tool = format!(
        r#"
[[skill]]
name = "bank"
[[skill.tool]]
name = "transfer_money"
description = "Transfer money."
approval = "reviewer"
run = {{ command = ["sh", "-c", {work:?}] }}
[skill.tool.input]
type = "object"
required = ["amount"]
properties = {{ amount = {{ type = "integer" }} }}
"#
    );
    scripted("bank", &tool)
}

/// One more server on the same store, whose model does what these steps say.
fn start(folder: &Path, url: &str, steps: &[Value]) -> Server {
    let own = tempfile::tempdir_in(folder).unwrap().keep();
    let config = storing(&answers(&own, &bank(folder), steps), url);
    Server::run(&own, &config, Command::new(PROGRAM))
}

fn pays() -> Value {
    json!({ "call": { "tool": "transfer_money", "input": { "amount": 500 } } })
}

fn say(text: &str) -> Value {
    json!({ "say": text })
}

const SESSIONS: &str = "/apps/bank/users/u/sessions";

fn shown(at: &Server, session: &str) -> Value {
    serde_json::from_str(&at.get(&format!("{SESSIONS}/{session}"))).unwrap()
}

fn run(at: &Server, session: &str, part: &Value) -> Value {
    let message = json!({ "role": "user", "parts": [part] });
    at.post("/run", &json!({ "appName": "bank", "userId": "u", "sessionId": session, "newMessage": message }))
}

fn yes(request: &str) -> Value {
    let response = json!({ "confirmed": true });
    json!({ "functionResponse": { "id": request, "name": "adk_request_confirmation", "response": response } })
}

/// A session that waits for an answer; gives its id, the request's and the original call's.
fn asks(at: &Server) -> (String, String, String) {
    let session =
        at.post(SESSIONS, &json!({ "state": { "kind": "kept" } }))["id"].as_str().unwrap().to_owned();
    let events = run(at, &session, &json!({ "text": "Send 500." }));
    let request =
        events[1]["longRunningToolIds"][0].as_str().unwrap_or_else(|| panic!("{events}")).to_owned();
    let call = events[0]["content"]["parts"][0]["functionCall"]["id"].as_str().unwrap().to_owned();
    (session, request, call)
}

/// The response under this call's id that is last.
fn response<'a>(events: &'a Value, call: &str) -> Option<&'a Value> {
    let mut parts =
        events.as_array()?.iter().flat_map(|event| event["content"]["parts"].as_array()).flatten();
    parts
        .rfind(|part| part["functionResponse"]["id"] == call)
        .map(|part| &part["functionResponse"]["response"])
}

fn says(events: &Value, text: &str) -> bool {
    let mut parts =
        events.as_array().unwrap().iter().flat_map(|event| event["content"]["parts"].as_array()).flatten();
    parts.any(|part| part["text"] == text)
}

fn runs(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("ran")).unwrap_or_default().lines().count()
}

/// A request that a killed server was asked is answered at the next one, and what it asked for runs once.
fn outlives(folder: &Path, url: &str) {
    let one = start(folder, url, &[pays()]);
    let (session, request, call) = asks(&one);
    let before = shown(&one, &session);
    // In the middle of the wait, as a crash would.
    drop(one);
    let two = start(folder, url, &[say("It is sent."), say("You are welcome.")]);
    let after = shown(&two, &session);
    assert_eq!((&after["events"], &after["state"]), (&before["events"], &json!({ "kind": "kept" })));
    let listed: Value = serde_json::from_str(&two.get(SESSIONS)).unwrap();
    assert_eq!((listed[0]["id"].as_str(), &listed[0]["events"]), (Some(&*session), &json!([])));
    let waiting: Value = serde_json::from_str(&two.get("/v1/approvals")).unwrap();
    assert_eq!(waiting["approvals"][0]["id"], *request, "{waiting}");
    let events = run(&two, &session, &yes(&request));
    assert_eq!(response(&events, &call), Some(&json!({ "status": "sent" })), "{events}");
    assert!(says(&events, "It is sent."), "{events}");
    assert_eq!(runs(folder), 1);
    assert_eq!(run(&two, &session, &yes(&request)), json!([]), "it is used up");
    let before = shown(&two, &session);
    drop(two);
    // Once more, after it has run.
    let three = start(folder, url, &[say("Anything else?")]);
    assert_eq!(shown(&three, &session)["events"], before["events"]);
    assert_eq!(run(&three, &session, &yes(&request)), json!([]), "it stays used up");
    let events = run(&three, &session, &json!({ "text": "Thanks." }));
    assert!(says(&events, "Anything else?"), "{events}");
    assert_eq!(runs(folder), 1);
    let gone = three.ask("DELETE", &format!("{SESSIONS}/{session}"), &[], "");
    assert_eq!(gone.0, 200, "{gone:?}");
    assert_eq!(three.ask("GET", &format!("{SESSIONS}/{session}"), &[], "").0, 404);
    assert_eq!(three.stop(), Some(0));
}

/// A run that a killed server had begun is told as unknown, and never made again.
fn unknown(folder: &Path, url: &str) {
    std::fs::write(folder.join("hold"), "").unwrap();
    let one = start(folder, url, &[pays()]);
    let (session, request, call) = asks(&one);
    let before = runs(folder);
    let approve = one.ask(
        "POST",
        &format!("/v1/approvals/{request}"),
        &[("Content-Type", "application/json")],
        "{\"confirmed\": true}",
    );
    assert_eq!(approve.0, 200, "{approve:?}");
    let ran = folder.join("ran").display().to_string();
    let begun = format!("for i in $(seq 300); do [ $(wc -l < {ran}) -gt {before} ] && exit; sleep 0.1; done");
    Command::new("sh").args(["-c", &begun]).status().unwrap();
    assert_eq!(runs(folder), before + 1, "it runs");
    drop(one);
    std::fs::remove_file(folder.join("hold")).unwrap();
    let two = start(folder, url, &[say("It may have been sent."), say("It may have been sent.")]);
    let events = run(&two, &session, &yes(&request));
    let told = response(&events, &call).unwrap_or_else(|| panic!("{events}"));
    assert!(told["error"].as_str().is_some_and(|error| error.contains("unknown")), "{events}");
    assert!(says(&events, "It may have been sent."), "{events}");
    assert_eq!(runs(folder), before + 1, "and not a second time");
    assert_eq!(two.stop(), Some(0));
}

/// ADK-23, in a file.
#[test]
fn adk_23_a_session_in_a_file_outlives_its_server_and_its_request_runs_once() {
    if !has_models() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("kept.db").display());
    outlives(folder.path(), &url);
    unknown(folder.path(), &url);
}

/// ADK-23, in PostgreSQL.
#[test]
fn adk_23_a_session_in_postgresql_outlives_its_server_and_its_request_runs_once() {
    if !has_models() || !postgres_server::installed() {
        return;
    }
    let database = postgres_server::Server::start(&["fsync=off"]);
    let folder = tempfile::tempdir().unwrap();
    outlives(folder.path(), &database.url());
    unknown(folder.path(), &database.url());
}

#[test]
fn a_session_goes_on_at_another_server_and_comes_back_whole() {
    if !has_models() || !postgres_server::installed() {
        return;
    }
    let database = postgres_server::Server::start(&["fsync=off"]);
    let folder = tempfile::tempdir().unwrap();
    let one = start(folder.path(), &database.url(), &[pays()]);
    let two = start(folder.path(), &database.url(), &[say("It is sent.")]);
    let (session, request, call) = asks(&one);
    assert_eq!(
        shown(&two, &session)["events"],
        shown(&one, &session)["events"],
        "looking takes nothing away"
    );
    let events = run(&two, &session, &yes(&request));
    assert_eq!(response(&events, &call), Some(&json!({ "status": "sent" })), "{events}");
    assert_eq!(shown(&one, &session)["events"], shown(&two, &session)["events"]);
    // The model of this server asks for the same once more: an approval of its own, not the one that was given.
    let events = run(&one, &session, &json!({ "text": "Send 500 again." }));
    let again = events[1]["longRunningToolIds"][0].as_str().unwrap_or_else(|| panic!("{events}")).to_owned();
    assert_ne!(again, request);
    assert_eq!(run(&one, &session, &yes(&request)), json!([]), "the first is used up");
    assert_eq!(runs(folder.path()), 1, "one server ran it, and nothing runs on an old answer");
    assert_eq!(shown(&two, &session)["events"], shown(&one, &session)["events"]);
    assert_eq!((one.stop(), two.stop()), (Some(0), Some(0)));
}
