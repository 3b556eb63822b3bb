//! The ledger of `sayback serve` as a process: over HTTP, in a file that outlives it, and as spans at a collector of the
//! test's own.

#![cfg(all(feature = "serve", feature = "telemetry"))]
#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path, more: &str, ledger: &str) -> Self {
        let agent = repository().join("configs/clinic.toml");
        let config =
            format!("listen = \"127.0.0.1:0\"\n[agents]\n\"*\" = {:?}\n{more}", agent.display().to_string());
        std::fs::write(folder.join("hosted.toml"), config).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
        // What the machine says of collectors and of the log is not what is tried here.
        for name in std::env::vars_os().map(|(name, _)| name) {
            if name.to_str().is_some_and(|name| name.starts_with("OTEL_") || name == "SAYBACK_LOG") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(["serve", folder.join("hosted.toml").to_str().unwrap()])
            .env("SAYBACK_CONFIRMATION_LEDGER", ledger)
            .current_dir(repository())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_default().to_owned();
        assert!(!address.is_empty(), "{line}");
        Self { child, address }
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn record(&self, call: &Value) -> Value {
        self.post("/v1/confirmations", call)
    }

    fn reason(&self, call: &Value) -> Value {
        self.post("/v1/confirmations/check", call)["reason"].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(session: &str) -> Value {
    json!({ "tool": "transfer", "args": { "to": "bob-the-payee", "amount": 5000 }, "session": session })
}

#[test]
fn led_15_in_a_file_a_yes_outlives_the_server_and_is_used_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = "[store]\nurl = \"sqlite:kept/l.db\"\n";
    let server = Server::start(folder.path(), store, "");
    assert_eq!(server.record(&call("a")), json!({ "recorded": true }));
    drop(server);
    let server = Server::start(folder.path(), store, "");
    assert_eq!(server.reason(&call("a")), "confirmed");
    drop(server);
    let server = Server::start(folder.path(), store, "");
    assert_eq!(server.reason(&call("a")), "no_confirmation");
    drop(server);
    let server = Server::start(folder.path(), "", "");
    server.record(&call("a"));
    drop(server);
    let server = Server::start(folder.path(), "", "");
    assert_eq!(server.reason(&call("a")), "no_confirmation", "without a file it is gone with the process");
}

#[test]
fn led_03_the_environment_switches_it_off() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "", "off");
    assert_eq!(server.record(&call("a")), json!({ "recorded": true, "reason": "ledger_off" }));
    assert_eq!(server.reason(&call("a")), "no_data");
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
    let folder = tempfile::tempdir().unwrap();
    let (url, bodies) = collector();
    let server = Server::start(folder.path(), &format!("[telemetry]\notlp = \"{url}\"\n"), "");
    server.record(&call("a"));
    assert_eq!(server.reason(&call("a")), "confirmed");
    assert_eq!(server.reason(&call("a")), "no_confirmation");
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
