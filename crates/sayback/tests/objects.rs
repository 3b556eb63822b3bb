//! Recordings of a server in an S3 of the test's own: moved there when their call is over, kept here until then.

#![cfg(feature = "serve")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

#[expect(dead_code, reason = "other tests ask for more")]
#[path = "../../store/tests/s3_server/mod.rs"]
mod s3_server;
#[expect(dead_code, reason = "other tests ask for more")]
#[path = "support/server.rs"]
mod server;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use s3_server::{KEY_ID, S3, SECRET};
use sayback_rig::has_models;
use serde_json::{Value, json};
use server::{PROGRAM, Server, answers, scripted};

fn start(folder: &Path, s3: &S3) -> Server {
    let desk = scripted("desk", "[privacy]\nrecord = true\n");
    let agents = answers(folder, &desk, &[json!({ "say": "Hello." })]);
    let config = format!(
        "{agents}[record]\nfolder = \"calls\"\n\
         [store]\nobjects = \"s3://bucket/of/ours\"\nendpoint = \"{}\"\n[limits]\ndrain = \"1s\"\n",
        s3.endpoint
    );
    let mut command = Command::new(PROGRAM);
    command.env("AWS_ACCESS_KEY_ID", KEY_ID).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("AWS_REGION", "eu-test-1").env_remove("AWS_SESSION_TOKEN");
    Server::run(folder, &config, command)
}

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut every = tokio::time::interval(Duration::from_millis(100));
    for _ in 0..600 {
        every.tick().await;
        if is_so() {
            return;
        }
    }
    panic!("never: {what}")
}

/// A conversation in text from its beginning to its end; gives its id.
async fn converse(server: &Server) -> String {
    let opened = server.post("/v1/chats", &json!({}));
    let id = opened["chat"].as_str().unwrap().to_owned();
    server.ask("DELETE", &format!("/v1/chats/{id}"), &[], "");
    until("the call is over", || server.get(&format!("/v1/calls/{id}")).contains("\"live\":false")).await;
    until("the recording is sealed", || {
        let one: Value = serde_json::from_str(&server.get(&format!("/v1/recordings/{id}"))).unwrap();
        one["sealed"] == true
    })
    .await;
    id
}

fn listed(server: &Server) -> (Vec<String>, Value) {
    let list: Value = serde_json::from_str(&server.get("/v1/recordings")).unwrap();
    let ids = list["recordings"].as_array().unwrap().iter();
    (ids.map(|one| one["id"].as_str().unwrap().to_owned()).collect(), list["away"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_stay_here_while_their_store_is_away_and_are_read_from_it_afterwards() {
    if !has_models() {
        return;
    }
    let (s3, folder) = (S3::start().await, tempfile::tempdir().unwrap());
    let calls = folder.path().join("calls");
    s3.set_away(true);
    let server = start(folder.path(), &s3);
    let first = converse(&server).await;
    until("the store is missed", || server.get("/metrics").contains("\nsayback_recordings_waiting 1\n"))
        .await;
    let (ids, away) = listed(&server);
    assert_eq!(ids, [first.as_str()], "what is here is listed");
    assert!(away.as_str().is_some_and(|reason| reason.contains("s3://bucket/of/ours")), "{away}");
    let events = server.get(&format!("/v1/recordings/{first}/events"));
    assert!(events.contains("call.ended"), "{events}");
    // The process ends in the middle, and the next one begins with what is there.
    drop(server);
    assert!(calls.join(&first).join("call.json").is_file() && s3.keys().is_empty());
    let server = start(folder.path(), &s3);
    s3.set_away(false);
    let second = converse(&server).await;
    for id in [&first, &second] {
        let entry = format!("bucket/of/ours/index/{id}.json");
        until("it is moved", || s3.keys().contains(&entry) && !calls.join(id).exists()).await;
    }
    let (mut ids, away) = listed(&server);
    ids.sort_unstable();
    let mut both = [first.clone(), second];
    both.sort_unstable();
    assert_eq!((ids, away), (both.to_vec(), Value::Null));
    assert_eq!(server.get(&format!("/v1/recordings/{first}/events")), events, "byte for byte");
    assert!(server.get(&format!("/v1/recordings/{first}/evidence")).contains("\"kind\":\"seal\""));
    let (status, told) = server.ask("POST", &format!("/v1/recordings/{first}/scenario"), &[], "");
    assert!(status == 200 && told.contains("title = "), "{status} {told}");
    for unknown in ["nobody", "..", "%2e%2e%2findex"] {
        assert_eq!(server.ask("GET", &format!("/v1/recordings/{unknown}/events"), &[], "").0, 404);
    }
    s3.set_away(true);
    let (status, problem) = server.ask("GET", &format!("/v1/recordings/{first}/events"), &[], "");
    assert!(status == 502 && problem.contains("urn:sayback:recordings-away"), "{status} {problem}");
    s3.set_away(false);
    // What is in the store is the recording, whole.
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    let prefix = format!("bucket/of/ours/calls/{first}/");
    for key in s3.keys().iter().filter(|key| key.starts_with(&prefix)) {
        std::fs::write(copy.join(key.trim_start_matches(&prefix)), s3.object(key)).unwrap();
    }
    let verified = Command::new(PROGRAM).arg("verify").arg(&copy).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    assert_eq!(server.stop(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_another_server_moves_from_is_refused() {
    if !has_models() {
        return;
    }
    let (s3, folder) = (S3::start().await, tempfile::tempdir().unwrap());
    let _server = start(folder.path(), &s3);
    let mut second = Command::new(PROGRAM);
    let output = second.arg("serve").arg(folder.path().join("hosted.toml")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("a folder of its own"), "{said}");
}
