//! Callers of other makers, and what is no caller at all.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use sayback_rig::{has_models, runs, skip};

use super::server::{Server, repository};

/// Where `scripts/setup --peers` puts them.
fn peers() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("peers")
}

/// Whether a caller is installed; if not, that is said loudly, and fails in continuous integration.
fn is_installed(program: &str, folder: &str) -> bool {
    if runs(program, "--version") && peers().join(folder).is_dir() {
        return true;
    }
    skip(&format!("{program} or {folder} is missing; get it with: scripts/setup --peers"))
}

/// Runs a caller to the end of its call; gives the call's log.
fn call(server: &Server, caller: &mut Command) -> String {
    let output = caller.env("PYTHONPATH", peers().join("python")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{told}");
    let last: Value = serde_json::from_str(said.lines().last().unwrap_or_default()).unwrap();
    server.log(last["call"].as_str().unwrap())
}

#[test]
fn a_caller_of_aiortc_books_behind_the_question_and_not_over_it() {
    if !has_models() || !is_installed("python3", "python/aiortc") {
        return;
    }
    let server = Server::start("[webrtc]\n");
    let caller = repository().join("crates/sayback/tests/browser/aiortc_caller.py");
    for over in [false, true] {
        let mut command = Command::new("python3");
        command.arg(&caller).arg(server.page("")).arg(repository().join("tests/audio"));
        let log = call(&server, command.args(over.then_some("--over")));
        assert_eq!(log.contains("\"event\":\"tool.finished\""), !over, "{log}");
        let expected = if over { "\"reason\":\"barge_in\"" } else { "\"evidence\":\"rtcp\"" };
        assert!(log.contains(expected), "{log}");
    }
}

#[test]
fn a_caller_of_werift_talks_in_pcmu() {
    if !has_models() || !is_installed("node", "node_modules/werift") {
        return;
    }
    let server = Server::start("[webrtc]\n");
    let mut command = Command::new("node");
    command.arg(repository().join("crates/sayback/tests/browser/werift_caller.mjs"));
    command.arg(peers().join("node_modules")).arg(server.page("")).arg(repository().join("tests/audio"));
    let log = call(&server, &mut command);
    for expected in ["\"evidence\":\"rtcp\"", "\"event\":\"caller.speech\"", "\"reason\":\"hangup\""] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
}

#[test]
fn what_is_no_offer_is_refused_with_what_would_be_taken() {
    let server = Server::start("[webrtc]\n");
    let sdp = [("Content-Type", "application/sdp")];
    for (method, headers, body, expected) in [
        ("GET", &sdp[..], "", (405, "method-not-allowed")),
        ("POST", &[], "v=0\r\n", (415, "wrong-type")),
        ("POST", &sdp[..], "hello", (400, "bad-description")),
        ("POST", &sdp[..], "v=0\r\n", (400, "bad-description")),
        ("POST", &[sdp[0], ("Accept", "text/html")], "v=0\r\n", (406, "sdp-only")),
    ] {
        let (status, answer) = server.ask(method, "/v1/webrtc", headers, body);
        assert_eq!(status, expected.0, "{method} {body:?}: {answer}");
        assert!(answer.contains(&format!("urn:sayback:{}", expected.1)), "{answer}");
    }
    let fragment = ("Content-Type", "application/trickle-ice-sdpfrag");
    let candidate = "a=candidate:1 1 udp 1 192.0.2.1 5000 typ host\r\n";
    for (headers, body, expected) in [
        (&[fragment][..], candidate, (428, "if-match-wanted")),
        (&[fragment, ("If-Match", "\"x\"")], candidate, (404, "no-such-call")),
        (&[fragment, ("If-Match", "*")], "hello", (400, "bad-description")),
    ] {
        let (status, answer) = server.ask("PATCH", "/v1/webrtc/webrtc-1", headers, body);
        assert_eq!(status, expected.0, "{body:?}: {answer}");
        assert!(answer.contains(&format!("urn:sayback:{}", expected.1)), "{answer}");
    }
    assert_eq!(server.ask("DELETE", "/v1/webrtc/webrtc-1", &[], "").0, 404);
    assert_eq!(server.ask("GET", "/sayback.js", &[], "").0, 200);
}

#[test]
fn without_a_table_there_are_no_calls_from_browsers() {
    let server = Server::start("");
    let (status, answer) =
        server.ask("POST", "/v1/webrtc", &[("Content-Type", "application/sdp")], "v=0\r\n");
    assert_eq!(status, 501, "{answer}");
    assert!(answer.contains("urn:sayback:no-webrtc"), "{answer}");
}
