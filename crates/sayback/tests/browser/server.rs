//! `sayback serve` as a process, with a scripted model that books.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// Whether the models are there; if not, that is said loudly, and fails in continuous integration.
pub(crate) fn has_models() -> bool {
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

pub(crate) struct Server {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Server {
    /// The clinic, on a port of its own; `more` is the rest of the server's file.
    pub(crate) fn start(more: &str) -> Self {
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
             [limits]\ndrain = \"2s\"\n{more}"
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
        Self { child, address, _folder: folder }
    }

    /// An address of it for a browser.
    pub(crate) fn page(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A call's event log so far, or to its end.
    pub(crate) fn log(&self, call: &str) -> String {
        self.ask("GET", &format!("/v1/calls/{call}/events"), &[], "").1
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
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
