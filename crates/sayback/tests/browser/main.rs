//! Calls from a browser, with everything real but the model: Chromium, the client for pages, `sayback serve`, its
//! recognition and its voice. The model is scripted and its check says yes, so only the clock stands in the way of a
//! wrong booking.

#![cfg(feature = "webrtc")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]
#![expect(clippy::disallowed_methods, reason = "the browser is waited for on a clock")]

mod chromium;
mod peers;
mod relay;
#[expect(dead_code, reason = "other tests ask for more")]
#[path = "../support/server.rs"]
mod server;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chromium::Chromium;
use relay::{Relay, Way};
use sayback_rig::has_models;
use serde_json::{Value, json};
use server::{Server, repository};

/// The caller, as a script of its own.
const CALLER: &str = include_str!("caller.js");

fn plan(more: Value) -> Value {
    let clip =
        |name: &str| STANDARD.encode(std::fs::read(repository().join("tests/audio").join(name)).unwrap());
    let mut plan = json!({ "clips": { "book": clip("book.wav"), "yes": clip("yes-please.wav") } });
    plan.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    plan
}

fn names(result: &Value) -> Vec<&str> {
    result["events"].as_array().unwrap().iter().filter_map(|line| line["event"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_in_a_page_books_behind_the_question_and_not_over_it() {
    let Some(program) = chromium::program().filter(|_| has_models()) else { return };
    let server = Server::start("[webrtc]\n");
    for over in [false, true] {
        let (result, log) = call_heard(program, &server, json!({ "over": over })).await;
        let booked = names(&result).contains(&"tool.finished");
        assert_eq!(booked, !over, "{result:#}\n{log}");
        if over {
            assert!(log.contains("\"reason\":\"barge_in\""), "{log}");
        } else {
            assert_eq!(result["evidence"], "page", "{log}");
            let [measured, told, latest] =
                ["measured", "told", "latest"].map(|key| result[key].as_f64().unwrap());
            println!(
                "end of the question: heard {measured:.0} ms, told {told:.0} ms: error {:+.1} ms; \
                 an answer counts from {latest:.0} ms: {:+.1} ms; {}",
                told - measured,
                latest - measured,
                result["report"],
            );
            assert!((told - measured).abs() <= 60.0, "{result:#}");
            assert!(latest >= measured, "an answer would count before the question was heard: {result:#}");
        }
        assert_eq!(result["ended"]["reason"], "hung-up");
    }
}

/// A call without a network in between, and its log. A browser that a busy machine starves tells that it has not played
/// the question as it was sent, and such a question was not asked: the caller calls again.
async fn call_heard(program: &str, server: &Server, more: Value) -> (Value, String) {
    let script = format!("{CALLER}({})", plan(more));
    let mut tries = 3;
    loop {
        let mut browser = Chromium::open(program, &server.page("/healthz"), None).await;
        let result = browser.run(&script).await;
        let log = server.log(result["id"].as_str().unwrap());
        tries -= 1;
        if tries == 0 || result["dropped"] != json!("not_played") {
            return (result, log);
        }
    }
}

/// A recording for the browser's microphone: ten seconds of quiet, in which the agent greets, the caller, and then two
/// minutes of quiet. Behind the end of its file the browser repeats the last block, which is a buzz that sounds like a
/// caller's hum.
fn recording(folder: &std::path::Path) -> std::path::PathBuf {
    let clip = std::fs::read(repository().join("tests/audio/book.wav")).unwrap();
    let (head, sound) = clip.split_at(44);
    let [before, behind] = [10, 120].map(|seconds| vec![0; seconds * 32_000]);
    let length = u32::try_from(before.len() + sound.len() + behind.len()).unwrap();
    let mut bytes = head.to_vec();
    bytes[4..8].copy_from_slice(&(length + 36).to_le_bytes());
    bytes[40..44].copy_from_slice(&length.to_le_bytes());
    bytes.extend(before);
    bytes.extend(sound);
    bytes.extend(behind);
    let path = folder.join("microphone.wav");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn the_microphone_of_a_page_is_heard() {
    let Some(program) = chromium::program().filter(|_| has_models()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("[webrtc]\n");
    let microphone = recording(folder.path());
    let mut browser = Chromium::open(program, &server.page("/healthz"), Some(&microphone)).await;
    let result = browser.run(&format!("{CALLER}({})", plan(json!({ "microphone": true })))).await;
    let log = server.log(result["id"].as_str().unwrap());
    let turn = log.lines().find(|line| line.contains("\"event\":\"caller.turn\"")).unwrap();
    assert!(turn.contains("Thursday"), "{log}");
    let dropped = result["dropped"].as_str();
    assert!(dropped.is_none_or(|reason| reason == "not_played"), "nobody has spoken over it: {log}");
    assert!(!log.contains("\"event\":\"tool.started\""), "nobody has said yes: {log}");
}

/// A call through a network of that kind, and its log.
async fn call_through(way: Way, more: Value) -> Option<(Value, String)> {
    let program = chromium::program().filter(|_| has_models())?;
    let server = Server::start("[webrtc]\n");
    let relay = Relay::start(way).await;
    let mut plan = plan(more);
    plan["relay"] = json!(relay.address.to_string());
    plan["orders"] = json!(relay.orders.to_string());
    let mut browser = Chromium::open(program, &server.page("/healthz"), None).await;
    let result = browser.run(&format!("{CALLER}({plan})")).await;
    let log = server.log(result["id"].as_str().unwrap());
    Some((result, log))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_over_a_bad_network() {
    let way = Way { jitter: Duration::from_millis(60), loss: 50, seed: 7 };
    let Some((result, log)) = call_through(way, json!({ "lossy": true })).await else { return };
    println!("{}", result["report"]);
    assert!(log.contains("\"event\":\"caller.turn\""), "{log}");
    let heard = names(&result).contains(&"question.heard");
    let booked = names(&result).contains(&"tool.started");
    assert!(heard || !booked, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_an_outage_hits_was_not_heard() {
    let way = Way { seed: 7, ..Way::default() };
    let Some((result, log)) = call_through(way, json!({ "disturb": "outage" })).await else { return };
    let told = names(&result);
    assert!(!told.contains(&"question.heard") && !told.contains(&"tool.started"), "{log}");
    assert!(log.contains("\"reason\":\"not_played\""), "{log}");
    // The caller is heard again afterwards.
    assert!(log.matches("\"event\":\"caller.turn\"").count() >= 2, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_during_which_the_way_changed_was_not_heard_and_the_call_goes_on() {
    let way = Way { seed: 7, ..Way::default() };
    let Some((result, log)) = call_through(way, json!({ "disturb": "move" })).await else { return };
    let told = names(&result);
    assert!(!told.contains(&"question.heard") && !told.contains(&"tool.started"), "{log}");
    assert!(log.matches("\"event\":\"caller.turn\"").count() >= 2, "{log}");
}
