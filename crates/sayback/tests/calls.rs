//! The project's own scenarios, tests/calls, through the command: each passes, and the same file gives the same event
//! log to the byte, however often and in whatever company it runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sayback_replay::scenario::unknown_parts;
use serde_json::Value;

/// Times that one file is run.
const TIMES: usize = 100;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs `sayback replay` in the repository's root, as a reader of it would.
fn replay(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
    command.arg("replay").args(arguments).current_dir(root());
    command.output().expect("the command starts")
}

/// The event log of a run, which must have passed.
fn events(arguments: &[&str]) -> String {
    let output = replay(&[arguments, &["--events", "-"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the event log is UTF-8")
}

/// The logs of single calls in the log of a run.
fn calls(log: &str) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for line in log.lines() {
        if line.contains("\"event\":\"call.started\"") {
            calls.push(String::new());
        }
        let call = calls.last_mut().expect("a call begins with call.started");
        call.push_str(line);
        call.push('\n');
    }
    calls
}

#[test]
fn every_scenario_passes() {
    let output = replay(&["tests/calls"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let files = std::fs::read_dir(root().join("tests/calls")).expect("the folder is part of the repository");
    let files = files.filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".call.toml"))
    });
    let count = files.count();
    assert!(count >= 45, "only {count} scenarios tell the product's story");
    assert!(said.contains(&format!("{count} passed, 0 failed")), "{said}");
}

#[test]
fn every_event_has_only_parts_that_an_expectation_can_name() {
    let log = events(&["tests/calls"]);
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"));
    let unknown: Vec<String> = lines.flat_map(|event| unknown_parts(&event)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

// VC-78
#[test]
fn a_hundred_runs_of_one_file_give_the_same_log_to_the_byte() {
    for file in
        ["overlap-third-asking-plays-on", "tools-breaks-after-yes", "line-on-hold-inside-the-question"]
    {
        let file = format!("tests/calls/{file}.call.toml");
        let log = events(&vec![file.as_str(); TIMES]);
        let calls = calls(&log);
        assert_eq!(calls.len(), TIMES);
        for (index, call) in calls.iter().enumerate() {
            assert_eq!(*call, calls[0], "run {index} of {file}");
        }
    }
}

// VC-78
#[test]
fn the_number_of_jobs_changes_nothing() {
    let alone = events(&["tests/calls", "--jobs", "1"]);
    assert_eq!(alone, events(&["tests/calls", "--jobs", "4"]));
    assert_eq!(alone, events(&["tests/calls"]), "in another process");
}

#[test]
fn a_call_alone_is_as_in_company() {
    let log = events(&["tests/calls"]);
    let all = calls(&log);
    let alone = events(&["tests/calls/yes-after-question.call.toml"]);
    assert!(all.contains(&alone));
}

const AGENT: &str = "[agent]\nname = \"Desk\"\ninstructions = \"Help.\"\n\n[llm]\nprovider = \"scripted\"\n";

/// Replays a scenario and an agent of these bytes; gives the exit status and all that was written.
fn replayed(agent: &str, scenario: &[u8]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("agent.toml"), agent).expect("written");
    std::fs::write(folder.path().join("a.call.toml"), scenario).expect("written");
    let output = replay(&[folder.path().join("a.call.toml").to_str().expect("UTF-8")]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// A scenario with these lines in it.
fn scenario(lines: &str) -> String {
    let expect = "[[expect]]\nnever = \"tool.started\"\n";
    format!("title = \"A\"\nagent = \"agent.toml\"\n{lines}\n{expect}")
}

#[test]
fn what_a_scenario_cannot_mean_is_refused_at_its_own_line() {
    let tool = scenario("[[tool]]\nname = \"nope\"\nresult = { ok = true, message = \"x\" }");
    let (status, said) = replayed(AGENT, tool.as_bytes());
    assert!(
        status == Some(2) && said.contains("a.call.toml:3:") && said.contains("has no such tool"),
        "{said}"
    );
    // In a `never` it would hold for ever; what the model calls is no slip.
    let expect = "[[expect]]\nnever = \"tool.started\"\ntool = \"nope\"\n";
    let (status, said) = replayed(AGENT, scenario(expect).as_bytes());
    assert!(
        status == Some(2) && said.contains("a.call.toml:3:") && said.contains("has no such tool"),
        "{said}"
    );
    let called = format!("[[model]]\ncall = {{ tool = \"nope\", input = {{}} }}\n{expect}");
    let (status, said) = replayed(AGENT, scenario(&called).as_bytes());
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = replayed(AGENT, b"title = \"A\"\nspeech = \"t\xff\"\n");
    assert!(status == Some(2) && said.contains("a.call.toml:2:12: the file is not UTF-8"), "{said}");
    let (status, said) = replayed(AGENT, scenario("limit = \"25h\"").as_bytes());
    assert!(status == Some(2) && said.contains("`25h` is longer than a day"), "{said}");
    let broken = AGENT.replace("name = ", "nmae = ");
    let (status, said) = replayed(&broken, scenario("").as_bytes());
    assert!(status == Some(2) && said.contains("agent.toml:2:"), "{said}");
    assert!(!said.contains("a.call.toml:1:"), "{said}");
}

#[test]
fn a_call_that_its_limit_cuts_says_so() {
    let agent = AGENT.replace("instructions", "greeting = \"Good morning, this is the desk.\"\ninstructions");
    let (status, said) = replayed(&agent, scenario("limit = \"1s\"").as_bytes());
    assert!(status == Some(0) && said.contains("cut at its limit of 1 s"), "{status:?} {said}");
}
