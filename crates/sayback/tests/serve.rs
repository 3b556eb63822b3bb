//! `sayback serve` as a process: a call over a plain media stream with real recognition, voice and voice activity, and
//! the HTTP API beside it. The model is scripted and its check says yes, so only the clock stands in the way of a wrong
//! booking.

#![cfg(feature = "serve")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]
#![expect(clippy::disallowed_methods, reason = "the test's own caller has a clock")]

#[expect(dead_code, reason = "the tests with a browser ask for more")]
#[path = "support/server.rs"]
mod server;

use std::collections::VecDeque;
use std::process::Command;
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use sayback_media::clip::read_audio;
use sayback_rig::has_models;
use serde_json::{Value, json};
use server::{PROGRAM, Server, repository};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

/// The clinic, called over a plain media stream.
fn clinic(more: &str) -> Server {
    Server::start(&format!("[media.plain]\n{more}"))
}

fn clip(name: &str) -> Vec<f32> {
    let clip = read_audio(&repository().join("tests/audio").join(name)).unwrap();
    assert_eq!(clip.rate, 16_000);
    clip.mixed_down()
}

/// When the caller's second clip begins.
#[derive(Clone, Copy, Debug)]
enum Answer {
    OverTheQuestion,
    BehindTheQuestion,
}

enum Buffered {
    Frame(bool),
    Mark(String),
}

/// 20 ms of what the mouth says, silence if it says nothing, with their place.
fn sound(frame: u64, mouth: &mut VecDeque<f32>) -> Vec<u8> {
    let samples = (0..320).map(|_| mouth.pop_front().unwrap_or(0.0));
    let mut bytes = (frame * 320).to_le_bytes().to_vec();
    bytes.extend(samples.flat_map(|s| ((s * 32_767.0) as i16).to_le_bytes()));
    bytes
}

/// What the server sent, to be heard in its turn.
fn take(message: &Message, ear: &mut VecDeque<Buffered>) {
    if let Message::Binary(bytes) = message {
        let loud = bytes[8..].chunks_exact(2).any(|b| i16::from_le_bytes([b[0], b[1]]).abs() > 600);
        ear.push_back(Buffered::Frame(loud));
    } else if let Message::Text(text) = message {
        let value: Value = serde_json::from_str(text).unwrap();
        match value["event"].as_str() {
            Some("mark") => ear.push_back(Buffered::Mark(value["name"].as_str().unwrap().to_owned())),
            Some("clear") => ear.clear(),
            _ => {}
        }
    }
}

/// A caller with a mouth, an ear and a clock: asks for an appointment once the greeting is over, and answers.
async fn call(address: &str, answer: Answer) {
    let (mut socket, _) = connect_async(format!("ws://{address}/v1/media/plain")).await.unwrap();
    let start = json!({ "event": "start", "to": "clinic", "from": "anna", "encoding": "l16", "rate": 16000 });
    socket.send(Message::Text(start.to_string().into())).await.unwrap();
    let (mut mouth, mut ear) = (VecDeque::<f32>::new(), VecDeque::<Buffered>::new());
    // How many utterances the ear has heard to their end, when the last sound was in it, and what was said.
    let (mut heard, mut began, mut quiet, mut said) = (0, None, 0, 0);
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let limit = Instant::now() + Duration::from_secs(60);
    let mut frame: u64 = 0;
    while Instant::now() < limit && !(said == 2 && mouth.is_empty() && quiet > 250) {
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                while let Some(Buffered::Mark(_)) = ear.front() {
                    if let Some(Buffered::Mark(name)) = ear.pop_front() {
                        heard += 1;
                        let played = json!({ "event": "played", "name": name });
                        socket.send(Message::Text(played.to_string().into())).await.unwrap();
                    }
                }
                let loud = matches!(ear.pop_front(), Some(Buffered::Frame(true)));
                quiet = if loud { 0 } else { quiet + 1 };
                if loud && heard >= 1 && said == 1 {
                    began.get_or_insert(frame);
                }
                let due = match (said, answer) {
                    (0, _) => heard >= 1 && quiet > 30,
                    (1, Answer::OverTheQuestion) => began.is_some_and(|began| frame > began + 40),
                    (1, Answer::BehindTheQuestion) => heard >= 2 && quiet > 40,
                    _ => false,
                };
                if due {
                    mouth.extend(clip(if said == 0 { "book.wav" } else { "yes-please.wav" }));
                    said += 1;
                }
                let bytes = sound(frame, &mut mouth);
                if socket.send(Message::Binary(bytes.into())).await.is_err() {
                    return;
                }
                frame += 1;
            }
            message = socket.next() => match message {
                Some(Ok(message)) => take(&message, &mut ear),
                Some(Err(_)) | None => return,
            },
        }
    }
    socket.send(Message::Text(json!({ "event": "end" }).to_string().into())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_over_the_network_books_behind_the_question_and_not_over_it() {
    if !has_models() {
        return;
    }
    let began = Instant::now();
    let server = clinic("[limits]\ndrain = \"2s\"\n");
    assert!(began.elapsed() < Duration::from_secs(5), "calls are taken while the models are loaded");
    assert_eq!(server.get("/healthz"), "ok\n");
    for (answer, books) in [(Answer::BehindTheQuestion, true), (Answer::OverTheQuestion, false)] {
        call(&server.address, answer).await;
        let calls: Value = serde_json::from_str(&server.get("/v1/calls")).unwrap();
        let id = calls["calls"].as_array().unwrap().last().unwrap()["call"].as_str().unwrap().to_owned();
        let log = server.get(&format!("/v1/calls/{id}/events"));
        let booked = log.contains("\"event\":\"tool.started\"");
        assert_eq!(booked, books, "{answer:?}\n{log}");
        let expected = if books { "\"evidence\":\"mark\"" } else { "\"reason\":\"barge_in\"" };
        assert!(log.contains(expected), "{answer:?}\n{log}");
    }
    assert!(server.get("/metrics").contains("\nsayback_calls_total 2\n"));
    assert_eq!(server.stop(), Some(0));
}

/// A caller who says nothing; ends with the call, or after so long.
async fn visit(address: &str, length: Duration) -> Duration {
    let (mut socket, _) = connect_async(format!("ws://{address}/v1/media/plain")).await.unwrap();
    let start = json!({ "event": "start", "to": "clinic", "encoding": "l16", "rate": 16000 });
    socket.send(Message::Text(start.to_string().into())).await.unwrap();
    let began = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let mut frame: u64 = 0;
    while began.elapsed() < length {
        tokio::select! {
            _ = ticks.tick() => {
                let bytes = sound(frame, &mut VecDeque::new());
                if socket.send(Message::Binary(bytes.into())).await.is_err() {
                    break;
                }
                frame += 1;
            }
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    let value: Value = serde_json::from_str(&text).unwrap();
                    if value["event"] == "mark" {
                        let played = json!({ "event": "played", "name": value["name"] });
                        socket.send(Message::Text(played.to_string().into())).await.unwrap();
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
        }
    }
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ran_on_a_yes_is_in_the_servers_store() {
    if !has_models() {
        return;
    }
    let server = clinic("[store]\nurl = \"sqlite:calls.db\"\n[limits]\ndrain = \"2s\"\n");
    call(&server.address, Answer::BehindTheQuestion).await;
    assert!(server.last_log().contains("\"event\":\"tool.finished\""));
    let store = sayback_store::Store::open(&server.folder().join("calls.db")).unwrap();
    let conversations = store.conversations().unwrap();
    assert_eq!(conversations.len(), 1);
    let stored = store.conversation(&conversations[0].id).unwrap().unwrap();
    let runs: Vec<_> = stored.runs.iter().map(|run| (run.tool.as_str(), run.state.as_str())).collect();
    assert_eq!(runs, [("book_appointment", "executed")]);
    assert!(stored.runs[0].idempotency_key.starts_with(&conversations[0].id));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_recorded_with_a_notice_are_not_endless_and_use_the_agent_file_as_it_is_now() {
    if !has_models() {
        return;
    }
    let more = "[record]\nfolder = \"recordings\"\nnotice = \"This call is recorded.\"\n\
                [limits]\nlongest = \"6s\"\ndrain = \"1s\"\n";
    let server = clinic(more);
    // Not recorded, as its agent does not want it, and ended by the server after its goodbye.
    let lasted = visit(&server.address, Duration::from_secs(40)).await;
    assert!((6..30).contains(&lasted.as_secs()), "{lasted:?}");
    let log = server.last_log();
    assert!(!log.contains("This call is recorded."), "{log}");
    let clinic = server.folder().join("agent.toml");
    let before = std::fs::read_to_string(&clinic).unwrap();
    let greeting = before.lines().find(|line| line.starts_with("greeting")).unwrap();
    let after = before.replacen(greeting, "greeting = \"Good evening.\"", 1);
    let recorded = after.replacen("record = false", "record = true", 1);
    assert_ne!(recorded, after);
    std::fs::write(&clinic, recorded).unwrap();
    visit(&server.address, Duration::from_secs(4)).await;
    let log = server.last_log();
    assert!(log.contains("This call is recorded. Good evening."), "{log}");
    let recordings = server.folder().join("recordings");
    let recorded: Vec<_> = std::fs::read_dir(&recordings).unwrap().collect();
    assert_eq!(recorded.len(), 1);
    assert!(recorded[0].as_ref().unwrap().path().join("call.flac").is_file());
    // A file that is broken now leaves the last good one at work.
    std::fs::write(&clinic, "[agent]\nnmae = \"?\"\n").unwrap();
    visit(&server.address, Duration::from_secs(3)).await;
    assert!(server.last_log().contains("Good evening."));
}

#[test]
fn a_broken_server_file_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosted.toml");
    std::fs::write(&path, "listen = \"127.0.0.1:0\"\nagnets = {}\n").unwrap();
    let output = Command::new(PROGRAM).args(["serve", path.to_str().unwrap()]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("hosted.toml:2:1: unknown field `agnets`"), "{error}");
}
