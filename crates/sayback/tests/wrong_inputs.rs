//! What a stranger gets wrong: each is told with its place, and with the step that mends it.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const AGENT: &str = "[agent]\nname = \"Desk\"\ninstructions = \"Help.\"\n";
const CALL: &str = "title = \"A call.\"\nagent = \"agent.toml\"\nmodel = []\n\n[[caller]]\nat = \"1s\"\ntext = \"Hi.\"\n\
                    audio = \"hi.wav\"\n\n[[expect]]\nevent = \"call.started\"\n";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn sayback(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sayback")).args(args).current_dir(folder).output().unwrap()
}

#[track_caller]
fn refused(folder: &Path, args: &[&str], code: i32, parts: &[&str]) -> String {
    let output = sayback(folder, args);
    let shown = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {shown}");
    for part in parts {
        assert!(shown.contains(part), "{args:?}: {part:?} is not in {shown}");
    }
    shown.into_owned()
}

#[test]
fn a_file_of_another_kind_is_named_with_the_commands_that_take_it() {
    let server = "[agents]\n\"*\" = \"agent.toml\"\n";
    let folder = folder(&[("agent.toml", AGENT), ("one.call.toml", CALL), ("server.toml", server)]);
    for (args, parts) in [
        (["replay", "agent.toml"], ["this is an agent file", "`sayback check`"]),
        (["sweep", "agent.toml"], ["this is an agent file", "`sayback check`"]),
        (["verify", "agent.toml"], ["this is an agent file", "a recorded call is wanted"]),
        (["verify", "one.call.toml"], ["this is a scenario", "`sayback replay`"]),
        (["check", "one.call.toml"], ["this is a scenario", "`sayback replay`"]),
        (["chat", "server.toml"], ["this is a server's file", "`sayback serve`"]),
    ] {
        refused(folder.path(), &args, 2, &parts);
    }
    #[cfg(feature = "serve")]
    refused(folder.path(), &["serve", "agent.toml"], 2, &["this is an agent file"]);
}

#[test]
fn what_a_scenario_names_and_is_not_usable_is_told_at_its_own_line() {
    let folder = folder(&[("one.call.toml", CALL)]);
    refused(folder.path(), &["replay", "one.call.toml"], 2, &["one.call.toml:2:9: ", "agent.toml"]);
    std::fs::write(folder.path().join("agent.toml"), b"[agent]\nname = \"Caf\xe9\"\n").unwrap();
    refused(folder.path(), &["replay", "one.call.toml"], 2, &["agent.toml:2:12: the file is not UTF-8"]);
    refused(
        folder.path(),
        &["check", "agent.toml"],
        2,
        &["agent.toml:2:12: the file is not UTF-8", "save it"],
    );
}

#[test]
fn places_that_cannot_be_written_are_told_before_any_call_runs() {
    let folder = folder(&[("agent.toml", AGENT), ("one.call.toml", CALL), ("file", "kept")]);
    for place in
        [["--events", "no/where"], ["--junit", "no/where"], ["--html", "file/pages"], ["--record", "file"]]
    {
        let shown = refused(
            folder.path(),
            &["replay", "one.call.toml", place[0], place[1]],
            2,
            &["cannot be written"],
        );
        assert!(!shown.contains("A call."), "no call ran: {shown}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "kept");
    let all = ["replay", "one.call.toml", "--events", "e.jsonl", "--junit", "j.xml", "--html", "pages"];
    let output = sayback(folder.path(), &all);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    let pages: Vec<_> = std::fs::read_dir(folder.path().join("pages")).unwrap().flatten().collect();
    assert_eq!(pages.len(), 1, "{pages:?}");
}

#[test]
fn a_broken_question_is_one_fault_with_its_place_in_the_template() {
    let tool = "[[skill]]\nname = \"s\"\n[[skill.tool]]\nname = \"t\"\ndescription = \"d\"\n\
                input = { type = \"object\", properties = { day = { type = \"string\" } } }\n\
                run = { reply = { ok = true, message = \"Done.\" } }\n";
    let folder = folder(&[("agent.toml", &format!("{AGENT}{tool}confirm = \"Book {{{{ day }}?\"\n"))]);
    let shown = refused(folder.path(), &["check", "agent.toml"], 2, &["`{{` is not closed at character 6"]);
    assert_eq!(shown.matches("agent.toml:").count(), 1, "{shown}");
    assert!(!shown.contains("syntax error") && !shown.contains("usable"), "{shown}");
}

#[cfg(feature = "serve")]
#[test]
fn a_check_of_a_server_names_the_models_that_are_missing() {
    let folder = folder(&[("agent.toml", AGENT), ("server.toml", "[agents]\n\"*\" = \"agent.toml\"\n")]);
    std::fs::create_dir(folder.path().join("none")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
    command.args(["serve", "server.toml", "--check"]).current_dir(folder.path());
    let output = command.env("SAYBACK_MODELS", folder.path().join("none")).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{shown}");
    assert!(
        shown.contains("sayback models fetch whisper-") && shown.contains("sayback models fetch piper-"),
        "{shown}"
    );
}

#[cfg(feature = "serve")]
#[test]
fn a_misspelt_key_of_a_servers_file_finds_its_word() {
    let folder = folder(&[
        ("agent.toml", AGENT),
        ("server.toml", "lisen = \"127.0.0.1:1\"\n[agents]\n\"*\" = \"agent.toml\"\n"),
    ]);
    refused(
        folder.path(),
        &["serve", "server.toml", "--check"],
        2,
        &["server.toml:1:1:", "did you mean `listen`?"],
    );
}
