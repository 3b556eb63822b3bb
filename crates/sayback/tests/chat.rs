//! `sayback chat`, piped, with a scripted model and a tool that writes down how it was run.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const AGENT: &str = r#"
[agent]
name = "Desk"
instructions = "Help."

[llm]
provider = "scripted"

[[skill]]
name = "booking"

[[skill.tool]]
name = "book"
description = "Books."
confirm = "Shall I book {{ day }}?"
input = { type = "object", required = ["day"], properties = { day = { type = "string" } } }
run = { command = ["sh", "-c", "echo $SAYBACK_IDEMPOTENCY_KEY >> runs; echo Booked."] }
"#;

const BOOKING: &str = r#"{"call": {"tool": "book", "input": {"day": "Friday"}}}
{"verdict": "yes"}
{"say": "It is booked."}
{"verdict": "yes"}
{"say": "Booked once more."}
"#;

fn folder(script: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agent.toml"), AGENT).unwrap();
    std::fs::write(folder.path().join("script.jsonl"), script).unwrap();
    folder
}

fn chat(folder: &Path, more: &[&str], stdout: Stdio, lines: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
    command.args(["chat", "agent.toml", "--script", "script.jsonl", "--store", "talks.db"]).args(more);
    command.current_dir(folder).stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The idempotency keys of the tool's runs.
fn runs(folder: &Path) -> Vec<String> {
    let runs = std::fs::read_to_string(folder.join("runs")).unwrap_or_default();
    runs.lines().map(str::to_owned).collect()
}

#[test]
fn vc_76_a_second_yes_after_a_rewind_runs_with_the_same_idempotency_key() {
    let folder = folder(BOOKING);
    // The items: the message, the call, its result, the question.
    let output = chat(folder.path(), &[], Stdio::piped(), "book friday\nyes\n/rewind 4\nyes\n");
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("not taken back: book ran on \"yes\", for: Shall I book Friday?"), "{said}");
    assert!(said.contains("(open again) Shall I book Friday?"), "{said}");
    assert!(said.contains("this already ran, on \"yes\""), "{said}");
    assert!(said.contains("Booked once more."), "{said}");
    let runs = runs(folder.path());
    assert!(runs.len() == 2 && runs[0] == runs[1] && runs[0].ends_with("/h_01"), "{runs:?}");
}

#[test]
fn vc_76_holds_for_a_conversation_that_was_stored_in_between() {
    let folder = folder(BOOKING);
    let first = chat(folder.path(), &["--events", "events.jsonl"], Stdio::piped(), "book friday\nyes\n");
    assert!(first.status.success());
    let events = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let started: serde_json::Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    std::fs::write(folder.path().join("script.jsonl"), "{\"verdict\": \"yes\"}\n{\"say\": \"Again.\"}\n")
        .unwrap();
    let id = started["call"].as_str().unwrap();
    let second = chat(folder.path(), &["--resume", id], Stdio::piped(), "/rewind 4\nyes\n");
    let said = said(&second);
    assert!(said.contains("this already ran") && said.contains("Again."), "{said}");
    let runs = runs(folder.path());
    assert!(runs.len() == 2 && runs[0] == runs[1], "{runs:?}");
}

#[test]
fn a_rewind_to_nowhere_is_told_and_takes_nothing_back() {
    let folder = folder(BOOKING);
    let lines = "book friday\n/rewind 4294967296\n/rewind -1\n/rewind soon\n/rewinder 3\n/quit now\nyes\n";
    let said = said(&chat(folder.path(), &[], Stdio::piped(), lines));
    assert!(said.contains("there are 4 items, so /rewind takes 0 to 4; nothing was taken back"), "{said}");
    assert!(said.contains("\"-1\" is no number") && said.contains("\"soon\" is no number"), "{said}");
    assert_eq!(said.matches("unknown command").count(), 2, "{said}");
    assert_eq!(runs(folder.path()).len(), 1, "the question stayed open: {said}");
}

#[test]
fn a_script_with_a_misspelt_key_is_refused_with_its_line() {
    let folder = folder("{\"say\": \"Hello.\"}\n{\"sya\": \"Hello.\"}\n");
    let output = chat(folder.path(), &[], Stdio::piped(), "hello\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("script.jsonl:2: unknown field `sya`"), "{errors}");
}

/// A device that takes nothing stands for a full disk.
#[cfg(target_os = "linux")]
#[test]
fn output_and_logs_that_cannot_be_written_end_with_an_error() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let folder = folder(BOOKING);
    let output = chat(folder.path(), &[], full().into(), "book friday\nyes\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("standard output could not be written"), "{errors}");
    let output = chat(folder.path(), &["--events", "/dev/full"], Stdio::piped(), "hello\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("/dev/full could not be written"), "{errors}");
}

#[test]
fn a_model_that_no_manifest_knows_is_the_askers_mistake() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
    let output = command.args(["models", "fetch", "nope"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}
