//! Secrets stay where they are: marked ones stand in every place that takes one, everything that can be asked of a server
//! is asked, and nothing that comes out has the mark.

#![cfg(feature = "serve")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

#[expect(dead_code, reason = "other tests ask for more")]
#[path = "support/server.rs"]
mod server;

use sayback_rig::has_models;
use server::{PROGRAM, Server, repository};

/// In every secret.
const MARK: &str = "Zq7marked";
const TOKEN: &str = "Zq7marked-token-0123456789";

/// Another program that refuses whatever it is sent: a model's server, a webhook, a collector. Gives what it was sent.
fn refusing() -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 16 * 1024];
            let read = stream.read(&mut bytes).unwrap_or(0);
            let answer = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let _ = stream.write_all(answer.as_bytes());
            if told.send(String::from_utf8_lossy(&bytes[..read]).into_owned()).is_err() {
                return;
            }
        }
    });
    (port, heard)
}

const AGENT: &str = r#"
[agent]
name = "desk"
[llm]
provider = "openai"
base_url = "http://127.0.0.1:PORT/v1"
model = "m"
api_key_env = "MARKED_KEY"
[stt]
provider = "whisper"
model = "tiny.en"
[tts]
provider = "piper"
voice = "en_US-joe-medium"
[privacy]
record = true
"#;

const SERVER: &str = r#"
listen = "127.0.0.1:0"
[agents]
"*" = "desk.toml"
[media]
public_url = "wss://example.com"
[media.plain]
secret_env = "MARKED_MEDIA"
[media.twilio]
secret_env = "MARKED_MEDIA"
[sip]
listen = ["udp:127.0.0.1:0"]
registrar = { server = "sip:127.0.0.1:9", user = "100", password_env = "MARKED_SIP" }
user = [{ name = "anna", password_env = "MARKED_SIP" }]
[store]
url = "sqlite:calls.db"
[record]
folder = "calls"
[telemetry]
otlp = "http://127.0.0.1:PORT"
[[webhook]]
url = "http://who:Zq7marked-url@127.0.0.1:PORT/hook?key=Zq7marked-query"
secret_env = "MARKED_HOOK"
[[auth.token]]
name = "ops"
sha256 = "SHA256"
roles = ["read", "call", "approve", "app"]
"#;

const SECRETS: [&str; 5] = ["MARKED_KEY", "MARKED_MEDIA", "MARKED_SIP", "MARKED_HOOK", "MARKED_URL"];

/// The program, with a marked secret in each variable that a file names, and a log of everything.
fn sayback() -> Command {
    let mut command = Command::new(PROGRAM);
    for name in SECRETS {
        command.env(name, format!("{MARK}-{name}"));
    }
    command.env("SAYBACK_LOG", "trace").env("RUST_BACKTRACE", "1");
    command
}

/// What it answers to somebody with a token.
fn ask(server: &Server, method: &str, path: &str, body: &str) -> String {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let (status, body) = server.ask(method, path, &headers, body);
    format!("{method} {path} {status} {body}\n")
}

/// Everything below a folder that has the mark, but for what the test wrote itself.
fn marked(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            marked(&path, found);
        } else if path.extension().is_none_or(|extension| extension != "toml") {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            let lines = text.lines().filter(|line| line.contains(MARK));
            found.extend(lines.map(|line| format!("{}: {line}", path.display())));
        }
    }
}

#[test]
fn nothing_that_comes_out_of_a_server_has_a_secret_in_it() {
    if !has_models() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (port, heard) = refusing();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("desk.toml", &AGENT.replace("PORT", &port.to_string()));
    let sha256 = sayback_server::access::hash(TOKEN);
    let config = SERVER.replace("PORT", &port.to_string()).replace("SHA256", &sha256);
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let mut command = sayback();
    command.stderr(log);
    let server = Server::run(folder.path(), &config, command);
    let opened = ask(&server, "POST", "/v1/chats", "{}");
    let chat = opened.split("\"chat\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let chat = chat.unwrap_or_else(|| panic!("{opened}")).to_owned();
    let mut answers = opened;
    answers += &ask(&server, "POST", &format!("/v1/chats/{chat}/messages"), "{\"text\":\"Hello.\"}");
    // Its model, its webhook or its collector has been asked, with what it must be asked with.
    let asked = |what: &str| {
        let limit = Duration::from_secs(60);
        while !heard.recv_timeout(limit).unwrap_or_else(|_| panic!("{what} was not sent")).contains(what) {}
    };
    asked("Zq7marked-MARKED_KEY");
    answers += &ask(&server, "DELETE", &format!("/v1/chats/{chat}"), "");
    answers += &ask(&server, "GET", &format!("/v1/chats/{chat}/events"), "");
    for head in [
        "GET /metrics",
        "GET /v1/access",
        "GET /v1/agents",
        "GET /v1/calls",
        "GET /v1/approvals",
        "GET /v1/recordings",
        "GET /v1/openapi.json",
        "POST /v1/calls",
        "POST /v1/confirmations",
        "POST /run",
        "GET /nowhere",
        "PUT /v1/calls",
        "GET /v1/media/plain?token=wrong",
        "GET /v1/media/twilio",
    ] {
        let (method, path) = head.split_once(' ').unwrap();
        answers += &ask(&server, method, path, "{\"agent\":\"desk\",\"to\":\"sip:x@127.0.0.1:9\"}");
    }
    assert!(answers.contains("sayback_calls_total") && answers.contains("call.ended"), "{answers}");
    drop(server);
    let mut found = Vec::new();
    marked(folder.path(), &mut found);
    found.extend(answers.lines().filter(|line| line.contains(MARK)).map(str::to_owned));
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("TRACE") && log.contains("webhook"), "the log is one of everything");
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_server_that_does_not_start_says_why_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("desk.toml", &AGENT.replace("PORT", "9"));
    let agents = "listen = \"127.0.0.1:0\"\n[agents]\n\"*\" = \"desk.toml\"\n";
    for (more, code) in [
        ("[store]\nurl_env = \"MARKED_URL\"\n", 2),
        ("[store]\nurl = \"postgres://who:Zq7marked@db.example/x\"\n", 2),
        ("[[webhook]]\nurl = \"ftp://who:Zq7marked@x\"\nsecret_env = \"MARKED_HOOK\"\n", 2),
        ("[telemetry]\notlp = \"who:Zq7marked@x\"\n", 2),
        ("[[auth.token]]\nname = \"a\"\nsha256 = \"Zq7marked-token\"\nroles = []\n", 2),
        ("[sip]\nregistrar = { server = \"pbx\", user = \"1\", password_env = \"MARKED_SIP\" }\n", 2),
    ] {
        write("hosted.toml", &format!("{agents}{more}"));
        let mut command = sayback();
        let output =
            command.arg("serve").arg(folder.path().join("hosted.toml")).current_dir(repository()).output();
        let output = output.unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{more}{told}");
        assert!(!told.contains(MARK), "{more}{told}");
    }
}
