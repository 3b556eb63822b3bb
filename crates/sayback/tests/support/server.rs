//! `sayback serve` as a process of its own, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// A server that runs. It is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    /// Host and port.
    pub(crate) address: String,
    /// Its files, where they are its own.
    folder: Option<tempfile::TempDir>,
}

impl Server {
    /// The clinic with a scripted model that books and a check that says yes, on a port of its own; `more` is the rest of
    /// the server's file.
    pub(crate) fn start(more: &str) -> Self {
        Self::of(|folder| format!("{}{more}", clinic(folder)))
    }

    /// An agent's file and its model's steps.
    pub(crate) fn answering(agent: &str, steps: &[Value], more: &str) -> Self {
        Self::of(|folder| format!("{}{more}", answers(folder, agent, steps)))
    }

    /// A server with a folder of its own, into which its file's maker may write what it names.
    pub(crate) fn of(config: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self::run(folder.path(), &config(folder.path()), Command::new(PROGRAM));
        server.folder = Some(folder);
        server
    }

    /// The server of a file, written into `folder`, by a command to which its arguments are added.
    pub(crate) fn run(folder: &Path, config: &str, mut command: Command) -> Self {
        let listen = if config.contains("listen = \"") { "" } else { "listen = \"127.0.0.1:0\"\n" };
        std::fs::write(folder.join("hosted.toml"), format!("{listen}{config}")).unwrap();
        // What the machine says of collectors and of the log is not what is tried.
        for name in std::env::vars_os().map(|(name, _)| name) {
            if name.to_str().is_some_and(|name| name.starts_with("OTEL_") || name == "SAYBACK_LOG") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .arg("serve")
            .arg(folder.join("hosted.toml"))
            .current_dir(repository())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_default().to_owned();
        assert!(!address.is_empty(), "{line}");
        Self { child, address, folder: None }
    }

    /// The folder of its files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_ref().expect("its files are its own").path()
    }

    /// An address of it for a browser.
    pub(crate) fn page(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// A call's event log so far, or to its end.
    pub(crate) fn log(&self, call: &str) -> String {
        self.get(&format!("/v1/calls/{call}/events"))
    }

    /// The log of the latest call.
    pub(crate) fn last_log(&self) -> String {
        let calls: Value = serde_json::from_str(&self.get("/v1/calls")).unwrap();
        self.log(calls["calls"].as_array().unwrap().last().unwrap()["call"].as_str().unwrap())
    }

    /// What is there.
    pub(crate) fn get(&self, path: &str) -> String {
        self.ask("GET", path, &[], "").1
    }

    /// What it answers to JSON.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) =
            self.ask("POST", path, &[("Content-Type", "application/json")], &body.to_string());
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{status}: {error}: {answer}"))
    }

    /// Asks it something; gives the status and the body.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let mut stream = std::net::TcpStream::connect(&self.address).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap();
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    /// Asks it to stop, and gives its exit status.
    pub(crate) fn stop(mut self) -> Option<i32> {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap().code()
    }
}

/// Writes the clinic, a model that books and a check that says yes into a folder; gives what names them in a server's file.
pub(crate) fn clinic(folder: &Path) -> String {
    let call = json!({ "call": { "tool": "book_appointment",
        "input": { "start": "2026-12-03T15:00", "email": "anna@example.com" } } });
    let anything = json!({ "say": "Is there anything else?" });
    // A question that was lost on the way is asked once more when the caller asks once more.
    let steps = [call.clone(), anything.clone(), call, anything, json!({ "verdict": "yes" })];
    let clinic = std::fs::read_to_string(repository().join("configs/clinic.toml")).unwrap();
    let scripted = clinic.replacen("provider = \"local\"", "provider = \"scripted\"", 1);
    assert_ne!(clinic, scripted);
    answers(folder, &scripted, &steps)
}

/// An agent's file with a scripted model and the engines that are fetched; `more` is the rest of it.
pub(crate) fn scripted(name: &str, more: &str) -> String {
    format!(
        "[agent]\nname = \"{name}\"\n[llm]\nprovider = \"scripted\"\n[stt]\nprovider = \"whisper\"\n\
         model = \"tiny.en\"\n[tts]\nprovider = \"piper\"\nvoice = \"en_US-joe-medium\"\n{more}"
    )
}

/// A server's file with a store behind it, and little time to end in.
pub(crate) fn storing(agents: &str, url: &str) -> String {
    format!("{agents}[store]\nurl = \"{url}\"\n[limits]\ndrain = \"1s\"\n")
}

/// A bank's agent file: what is more than 100 is sent once a reviewer has approved it.
pub(crate) fn bank() -> String {
    scripted("bank", BANK)
}

const BANK: &str = r#"
[[skill]]
name = "bank"
[[skill.tool]]
name = "transfer_money"
description = "Transfer money."
approval = "reviewer"
approval_when = "amount > 100"
run = { reply = { message = '{"status":"sent","amount":{{ amount }},"to":"{{ to }}"}' } }
[skill.tool.input]
type = "object"
required = ["amount", "to"]
properties = { amount = { type = "integer" }, to = { type = "string" } }
"#;

/// Writes an agent's file and its model's steps into a folder; gives what names them in a server's file.
pub(crate) fn answers(folder: &Path, agent: &str, steps: &[Value]) -> String {
    std::fs::write(folder.join("agent.toml"), agent).unwrap();
    let script: String = steps.iter().map(|step| format!("{step}\n")).collect();
    std::fs::write(folder.join("script.jsonl"), script).unwrap();
    "[agents]\n\"*\" = { file = \"agent.toml\", script = \"script.jsonl\" }\n".to_owned()
}

/// The program that is tested.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_sayback");

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
