//! `sayback serve` as a process: a call over a plain media stream with real recognition, voice and voice activity, and
//! the HTTP API beside it. The model is scripted and its check says yes, so only the clock stands in the way of a wrong
//! booking.

#![cfg(feature = "serve")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]
#![expect(clippy::disallowed_methods, reason = "the test's own caller has a clock")]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use sayback_media::clip::read_audio;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// Whether the models are there; if not, that is said loudly, and fails in continuous integration.
fn has_models() -> bool {
    let folder =
        std::env::var_os("SAYBACK_MODELS").map_or_else(|| repository().join("models"), PathBuf::from);
    let needed = ["ggml-tiny.en.bin", "en_US-joe-medium.onnx", "silero_vad.onnx"];
    if needed.iter().all(|name| folder.join(name).is_file()) {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "models are missing; get them with: scripts/fetch-models");
    eprintln!("\n=== SKIPPED: models are missing; get them with: scripts/fetch-models ===\n");
    false
}

struct Server {
    child: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Server {
    /// The clinic with a scripted model that books, on a port of its own.
    fn start() -> Self {
        Self::start_with("[limits]\ndrain = \"2s\"\n")
    }

    /// The same with more in the server's file.
    fn start_with(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clinic = std::fs::read_to_string(repository().join("configs/clinic.toml")).unwrap();
        let scripted = clinic.replacen("provider = \"local\"", "provider = \"scripted\"", 1);
        assert_ne!(clinic, scripted);
        std::fs::write(folder.path().join("clinic.toml"), scripted).unwrap();
        let call = json!({ "call": { "tool": "book_appointment",
            "input": { "start": "2026-12-03T15:00", "email": "anna@example.com" } } });
        let steps = [call, json!({ "say": "Is there anything else?" }), json!({ "verdict": "yes" })];
        let script: String = steps.iter().map(|step| format!("{step}\n")).collect();
        std::fs::write(folder.path().join("script.jsonl"), script).unwrap();
        let config = format!(
            "listen = \"127.0.0.1:0\"\n[agents]\n\"*\" = {{ file = \"clinic.toml\", script = \"script.jsonl\" }}\n\
             [media.plain]\n{more}"
        );
        std::fs::write(folder.path().join("hosted.toml"), config).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_sayback"))
            .args(["serve", folder.path().join("hosted.toml").to_str().unwrap()])
            .current_dir(repository())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_default().to_owned();
        assert!(!address.is_empty(), "{line}");
        Self { child, address, folder }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = std::net::TcpStream::connect(&self.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// The log of the latest call.
    fn last_log(&self) -> String {
        let calls: Value = serde_json::from_str(&self.get("/v1/calls")).unwrap();
        let id = calls["calls"].as_array().unwrap().last().unwrap()["call"].as_str().unwrap().to_owned();
        self.get(&format!("/v1/calls/{id}/events"))
    }

    /// Asks it to stop, and gives its exit status.
    fn stop(mut self) -> Option<i32> {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
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
    let server = Server::start();
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
    let server = Server::start_with("[store]\nurl = \"sqlite:calls.db\"\n[limits]\ndrain = \"2s\"\n");
    call(&server.address, Answer::BehindTheQuestion).await;
    assert!(server.last_log().contains("\"event\":\"tool.finished\""));
    let store = sayback_store::Store::open(&server.folder.path().join("calls.db")).unwrap();
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
    let server = Server::start_with(more);
    // Not recorded, as its agent does not want it, and ended by the server after its goodbye.
    let lasted = visit(&server.address, Duration::from_secs(40)).await;
    assert!((6..30).contains(&lasted.as_secs()), "{lasted:?}");
    let log = server.last_log();
    assert!(!log.contains("This call is recorded."), "{log}");
    let clinic = server.folder.path().join("clinic.toml");
    let before = std::fs::read_to_string(&clinic).unwrap();
    let greeting = before.lines().find(|line| line.starts_with("greeting")).unwrap();
    let after = before.replacen(greeting, "greeting = \"Good evening.\"", 1);
    let recorded = after.replacen("record = false", "record = true", 1);
    assert_ne!(recorded, after);
    std::fs::write(&clinic, recorded).unwrap();
    visit(&server.address, Duration::from_secs(4)).await;
    let log = server.last_log();
    assert!(log.contains("This call is recorded. Good evening."), "{log}");
    let recordings = server.folder.path().join("recordings");
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
    let output =
        Command::new(env!("CARGO_BIN_EXE_sayback")).args(["serve", path.to_str().unwrap()]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("hosted.toml:2:1: unknown field `agnets`"), "{error}");
}
