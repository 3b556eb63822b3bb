//! Recorded calls through the command: a chat leaves a recording, and the recording is decided again.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sayback(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
    command.current_dir(folder).env("XDG_DATA_HOME", folder);
    command
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What the clinic's file says of personal details.
const REDACT: &str = "redact = [\"phone\", \"email\"]";

/// A folder with the clinic's agent on a scripted model, and nothing redacted.
fn clinic() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(root().join("configs/clinic.toml")).unwrap();
    let agent = text.replace("provider = \"local\"", "provider = \"scripted\"");
    assert_ne!(agent, text);
    let open = agent.replace(REDACT, "redact = []");
    assert_ne!(open, agent);
    std::fs::write(folder.path().join("agent.toml"), open).unwrap();
    let steps = [
        r#"{"say":"Let me see.","call":{"tool":"book_appointment","input":{"start":"2026-12-03T15:00","email":"anna@example.com"}}}"#,
        r#"{"verdict":"yes"}"#,
        r#"{"say":"It is booked. Anything else?"}"#,
        r#"{"say":"Goodbye.","call":{"tool":"end_call","input":{}}}"#,
    ];
    std::fs::write(folder.path().join("script.jsonl"), steps.join("\n")).unwrap();
    folder
}

const LINES: &str = "Book me Thursday at three, anna at example dot com\nyes please\nno thanks\n";

fn chat(folder: &Path, more: &[&str]) -> Command {
    let mut command = sayback(folder);
    command.args(["chat", "agent.toml", "--script", "script.jsonl", "--store", "store.db"]).args(more);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn typed(mut command: Command, lines: &str) -> Output {
    let mut child = command.spawn().unwrap();
    // A program that stops at once does not read what is typed.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    child.wait_with_output().unwrap()
}

/// A chat in which an appointment is booked, recorded in `recording`.
fn booked() -> tempfile::TempDir {
    let folder = clinic();
    let output = typed(chat(folder.path(), &["--record", "recording"]), LINES);
    assert!(output.status.success(), "{}", said(&output));
    folder
}

fn replay(folder: &Path, arguments: &[&str]) -> Output {
    sayback(folder).arg("replay").args(arguments).output().unwrap()
}

fn edit(path: &Path, how: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let changed = how(text.clone());
    assert_ne!(changed, text, "{}", path.display());
    std::fs::write(path, changed).unwrap();
}

#[test]
fn a_recorded_chat_is_decided_again_to_the_same_commands() {
    let folder = booked();
    let recording = folder.path().join("recording");
    for name in ["call.json", "journal.jsonl", "events.jsonl", "evidence.jsonl", "timeline.html"] {
        assert!(recording.join(name).metadata().unwrap().len() > 100, "{name}");
    }
    assert!(!recording.join("call.flac").exists(), "a chat has no sound");
    let sheet: Value = serde_json::from_slice(&std::fs::read(recording.join("call.json")).unwrap()).unwrap();
    assert_eq!(sheet["transport"], "chat");
    assert_eq!(sheet["agent"]["name"], "Clinic desk");
    let output = replay(folder.path(), &["recording", "--events", "again.jsonl", "--junit", "r.xml"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).ends_with("1 passed, 0 failed\n"), "{}", said(&output));
    let again = std::fs::read_to_string(folder.path().join("again.jsonl")).unwrap();
    assert_eq!(again, std::fs::read_to_string(recording.join("events.jsonl")).unwrap());
    assert!(std::fs::read_to_string(folder.path().join("r.xml")).unwrap().contains("failures=\"0\""));
}

#[test]
fn folders_are_searched_for_recordings_too() {
    let folder = booked();
    let output = replay(folder.path(), &["."]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("1 passed, 0 failed"), "{}", said(&output));
}

#[test]
fn an_input_that_was_changed_is_told_with_its_line_and_the_events_around_it() {
    let folder = booked();
    edit(&folder.path().join("recording/journal.jsonl"), |text| text.replacen("yes please", "no, wait", 1));
    let output = replay(folder.path(), &["recording"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("journal.jsonl:28:1: expected"), "{said}");
    assert!(said.contains("but got") && said.contains("no, wait"), "{said}");
    assert!(said.contains("question.heard"), "{said}");
    assert!(said.ends_with("0 passed, 1 failed\n"), "{said}");
}

#[test]
fn a_newer_recording_is_refused_and_says_so() {
    let folder = booked();
    edit(&folder.path().join("recording/call.json"), |text| {
        text.replacen("\"format\": ", "\"format\": 9", 1)
    });
    let output = replay(folder.path(), &["recording"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("use a newer sayback"), "{}", said(&output));
}

#[test]
fn a_line_that_is_none_is_told_with_its_number() {
    let folder = booked();
    edit(&folder.path().join("recording/journal.jsonl"), |text| text.replacen("\"in\"", "in\"", 1));
    let output = replay(folder.path(), &["recording"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("journal.jsonl:1:"), "{}", said(&output));
}

#[test]
fn no_recording_is_written_over() {
    let folder = booked();
    let output = typed(chat(folder.path(), &["--record", "recording"]), LINES);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("name another folder"), "{}", said(&output));
    assert!(replay(folder.path(), &["recording"]).status.success());
}

#[test]
fn a_folder_that_cannot_be_made_is_told_before_the_call() {
    let folder = clinic();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = typed(chat(folder.path(), &["--record", "file/recording"]), LINES);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("file/recording: cannot be made"), "{}", said(&output));
    assert!(!said(&output).contains("how can I help"), "{}", said(&output));
}

#[test]
fn calls_are_kept_where_the_agent_says_so() {
    let folder = clinic();
    edit(&folder.path().join("agent.toml"), |text| text.replacen("record = false", "record = true", 1));
    let output = typed(chat(folder.path(), &[]), LINES);
    assert!(output.status.success(), "{}", said(&output));
    let output = replay(folder.path(), &["sayback/calls"]);
    assert!(said(&output).contains("1 passed, 0 failed"), "{}", said(&output));
}

#[test]
fn a_program_that_is_killed_leaves_a_recording_that_can_be_read() {
    let folder = clinic();
    let mut child = chat(folder.path(), &["--record", "recording"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(LINES.lines().next().unwrap().as_bytes()).unwrap();
    stdin.write_all(b"\n").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("Shall I book")), "the question is asked");
    child.kill().unwrap();
    child.wait().unwrap();
    let output = replay(folder.path(), &["recording", "--events", "again.jsonl"]);
    assert!(output.status.success(), "{}", said(&output));
    let again = std::fs::read_to_string(folder.path().join("again.jsonl")).unwrap();
    assert!(again.contains("question.held"), "{again}");
}

fn verify(folder: &Path, arguments: &[&str]) -> Output {
    sayback(folder).arg("verify").args(arguments).output().unwrap()
}

#[test]
fn a_recorded_chat_is_verified_and_one_changed_blank_is_named() {
    let folder = booked();
    let output = verify(folder.path(), &["recording"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("recording: sealed sha256:"), "{}", said(&output));
    assert!(said(&output).contains("executed on \"yes please\""), "{}", said(&output));
    edit(&folder.path().join("recording/call.json"), |text| {
        text.replacen("\n  \"seed\"", "\n   \"seed\"", 1)
    });
    let output = verify(folder.path(), &["recording"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("FAULT call.json: it was changed"), "{}", said(&output));
}

#[test]
fn a_declined_action_leaves_the_words_that_declined_it() {
    let folder = clinic();
    edit(&folder.path().join("script.jsonl"), |text| text.replacen("\"yes\"", "\"no\"", 1));
    let lines = LINES.replace("yes please", "no, leave it");
    let output = typed(chat(folder.path(), &["--record", "recording"]), &lines);
    assert!(output.status.success(), "{}", said(&output));
    let output = verify(folder.path(), &["recording"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("book_appointment: declined on \"no, leave it\""), "{}", said(&output));
}

#[test]
fn a_recording_that_was_not_finished_says_unsealed() {
    let folder = booked();
    edit(&folder.path().join("recording/evidence.jsonl"), |text| {
        let kept = text.lines().filter(|line| !line.contains("\"seal\""));
        kept.map(|line| format!("{line}\n")).collect()
    });
    let output = verify(folder.path(), &["recording"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("unsealed: the recording was not finished"), "{}", said(&output));
    assert!(said(&output).ends_with("1 verified, 1 fault\n"), "{}", said(&output));
}

#[test]
fn no_personal_detail_is_kept_and_the_recording_is_still_in_order() {
    let folder = clinic();
    edit(&folder.path().join("agent.toml"), |text| text.replacen("redact = []", REDACT, 1));
    let lines = LINES.replace("three,", "three, my number is 415 555 2671,");
    let more = ["--record", "recording", "--events", "events.jsonl"];
    let output = typed(chat(folder.path(), &more), &lines);
    assert!(said(&output).contains("It is booked"), "{}", said(&output));
    let recording = folder.path().join("recording");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&recording).unwrap().map(|e| e.unwrap().path()).collect();
    files.push(folder.path().join("events.jsonl"));
    assert!(files.len() >= 6);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for detail in ["anna", "example.com", "example dot com", "555 2671", "415 555"] {
            let found = text
                .find(detail)
                .map(|at| text[at.saturating_sub(60)..].chars().take(120).collect::<String>());
            assert_eq!(found, None, "{detail} in {}", file.display());
        }
    }
    let events = std::fs::read_to_string(recording.join("events.jsonl")).unwrap();
    assert!(
        events.contains("[email:") && events.contains("[phone:") && events.contains("[question:"),
        "{events}"
    );
    assert!(events.contains("2026-12-03T15:00") && events.contains("yes please"), "{events}");
    for checked in [replay(folder.path(), &["recording"]), verify(folder.path(), &["recording"])] {
        assert!(checked.status.success(), "{}", said(&checked));
    }
    let told = replay(folder.path(), &["recording", "--as-scenario", "told.call.toml"]);
    assert!(told.status.success(), "{}", said(&told));
}

#[test]
fn a_recorded_chat_becomes_a_scenario_that_passes_and_can_fail() {
    let folder = booked();
    let told = replay(folder.path(), &["recording", "--as-scenario", "told.call.toml", "--junit", "r.xml"]);
    let path = folder.path().join("told.call.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(told.status.success(), "{}\n{text}", said(&told));
    assert!(said(&told).contains("1 passed, 0 failed"), "{}", said(&told));
    assert!(!text.contains("anna"), "{text}");
    assert!(text.contains("after = \"question.heard + 500ms\"\nmessage = \"yes please\""), "{text}");
    let again = replay(folder.path(), &["recording", "--as-scenario", "told.call.toml"]);
    assert_eq!(again.status.code(), Some(2), "nothing is written over: {}", said(&again));
    edit(&path, |text| text.replacen("outcome = \"executed\"", "outcome = \"failed\"", 1));
    let failed = replay(folder.path(), &["told.call.toml"]);
    assert_eq!(failed.status.code(), Some(1), "{}", said(&failed));
    assert!(said(&failed).contains("expected tool.finished with"), "{}", said(&failed));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_does_not_end_the_call() {
    let folder = clinic();
    // A limit on the size of files stands for a full disk; the conversation is stored in memory.
    let line = format!(
        "trap '' XFSZ; ulimit -f 6; exec {} chat agent.toml --script script.jsonl --store :memory: --record recording",
        env!("CARGO_BIN_EXE_sayback")
    );
    let mut command = Command::new("bash");
    command.current_dir(folder.path()).args(["-c", &line]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = typed(command, LINES);
    let said = said(&output);
    assert!(said.contains("It is booked"), "the call goes on: {said}");
    assert!(said.contains("journal.jsonl: the recording ends here"), "{said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(replay(folder.path(), &["recording"]).status.success(), "what is there can be read");
}

#[test]
fn recordings_of_every_older_format_are_still_decided_the_same() {
    let output = replay(&root(), &["tests/recordings"]);
    assert!(output.status.success(), "{}", said(&output));
    let folders = std::fs::read_dir(root().join("tests/recordings")).unwrap().count();
    assert!(said(&output).ends_with(&format!("{folders} passed, 0 failed\n")), "{}", said(&output));
}

/// A model on loopback that says the same to everything, for as long as the test lasts. Gives its address.
fn model_that_says(word: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                let header = line.to_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let _ = std::io::copy(&mut std::io::Read::take(&mut reader, length), &mut std::io::sink());
            let body = format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\ndata: [DONE]\n\n"
            );
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
            let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
        }
    });
    format!("http://{address}/v1")
}

#[test]
fn verify_asks_the_model_again_if_it_is_told_to() {
    let folder = booked();
    for (word, status) in [("yes", 0), ("unclear", 1)] {
        let agent = std::fs::read_to_string(folder.path().join("agent.toml")).unwrap();
        let llm = format!("provider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}\"", model_that_says(word));
        std::fs::write(folder.path().join("live.toml"), agent.replace("provider = \"scripted\"", &llm))
            .unwrap();
        let output = sayback(folder.path())
            .args(["verify", "recording", "--check-model", "live.toml"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        assert!(said(&output).contains("asked about 1 answers again"), "{}", said(&output));
        assert_eq!(
            said(&output).contains("the model says \"unclear\" now"),
            status == 1,
            "{}",
            said(&output)
        );
    }
}

#[test]
fn a_recording_and_the_scenario_of_the_same_name_have_a_page_each() {
    let folder = booked();
    let told = replay(folder.path(), &["recording", "--as-scenario", "recording.call.toml"]);
    assert!(told.status.success(), "{}", said(&told));
    let output = replay(folder.path(), &[".", "--html", "pages"]);
    assert!(output.status.success(), "{}", said(&output));
    for name in ["recording.html", "recording-2.html"] {
        assert!(folder.path().join("pages").join(name).is_file(), "{name}");
    }
}
