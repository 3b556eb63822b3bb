//! The ledger of `sayback serve` as a process: over HTTP, in a file that outlives it, and as spans at a collector of the
//! test's own.

#![cfg(all(feature = "serve", feature = "telemetry"))]
#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]

#[expect(dead_code, reason = "other tests ask for more")]
#[path = "support/server.rs"]
mod server;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use sayback_rig::has_models;
use serde_json::{Value, json};
use server::{PROGRAM, Server, clinic};

/// A server in a folder, with the ledger's environment variable.
fn start(folder: &Path, more: &str, ledger: &str) -> Server {
    let mut command = Command::new(PROGRAM);
    command.env("SAYBACK_CONFIRMATION_LEDGER", ledger);
    // With a scripted model: a server whose agent's model is missing ends once that is found out.
    Server::run(folder, &format!("{}{more}", clinic(folder)), command)
}

fn record(server: &Server, call: &Value) -> Value {
    server.post("/v1/confirmations", call)
}

fn reason(server: &Server, call: &Value) -> Value {
    server.post("/v1/confirmations/check", call)["reason"].clone()
}

fn call(session: &str) -> Value {
    json!({ "tool": "transfer", "args": { "to": "bob-the-payee", "amount": 5000 }, "session": session })
}

#[test]
fn led_15_in_a_file_a_yes_outlives_the_server_and_is_used_once() {
    if !has_models() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = "[store]\nurl = \"sqlite:kept/l.db\"\n";
    let server = start(folder.path(), store, "");
    assert_eq!(record(&server, &call("a")), json!({ "recorded": true }));
    drop(server);
    let server = start(folder.path(), store, "");
    assert_eq!(reason(&server, &call("a")), "confirmed");
    drop(server);
    let server = start(folder.path(), store, "");
    assert_eq!(reason(&server, &call("a")), "no_confirmation");
    drop(server);
    let server = start(folder.path(), "", "");
    record(&server, &call("a"));
    drop(server);
    let server = start(folder.path(), "", "");
    assert_eq!(reason(&server, &call("a")), "no_confirmation", "without a file it is gone with the process");
}

#[test]
fn led_03_the_environment_switches_it_off() {
    if !has_models() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "", "off");
    assert_eq!(record(&server, &call("a")), json!({ "recorded": true, "reason": "ledger_off" }));
    assert_eq!(reason(&server, &call("a")), "no_data");
}

/// A collector that takes whatever comes, and hands on its bodies.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                while let Some((head, body)) = request(&mut stream) {
                    let _ = sender.send((head, body));
                    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
                    if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, bodies)
}

fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.to_ascii_lowercase().split_once("content-length:")?.1.lines().next()?.trim().parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}

#[test]
fn led_01_confirmations_and_checks_reach_a_collector_without_arguments() {
    if !has_models() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (url, bodies) = collector();
    let server = start(folder.path(), &format!("[telemetry]\notlp = \"{url}\"\n"), "");
    record(&server, &call("a"));
    assert_eq!(reason(&server, &call("a")), "confirmed");
    assert_eq!(reason(&server, &call("a")), "no_confirmation");
    let mut all = String::new();
    let wanted =
        ["human_in_loop approval", "ledger check", "args_hash", "sha256:", "confirmed", "no_confirmation"];
    while !wanted.iter().all(|word| all.contains(word)) {
        let (head, body) = bodies.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|error| {
            panic!("{error}: of {wanted:?} came {all:?}");
        });
        assert!(head.starts_with("POST /v1/traces "), "{head}");
        all.push_str(&String::from_utf8_lossy(&body));
    }
    assert!(all.contains("sayback") && !all.contains("bob-the-payee"), "{all}");
}
