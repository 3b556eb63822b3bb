//! `sayback sweep`: on every line's clock rule the decision flips exactly once, at H, and what cannot be swept is told.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sweep(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
    command.arg("sweep").args(arguments).current_dir(root());
    command.output().expect("the command starts")
}

fn objects(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// A scenario on a line of its own, in a folder of its own.
fn scenario(folder: &Path, name: &str, path: &str, answer: &str) -> String {
    let agent = root().join("configs/clinic.toml");
    let what = if path.contains("chat") { "message" } else { "text" };
    let text = format!(
        "title = \"Where a yes begins to count\"\nagent = {agent:?}\n[path]\n{path}\n\
         [[caller]]\nat = \"3s\"\n{what} = \"Book me for Thursday at three, anna at example dot com.\"\n\
         [[caller]]\n{answer}\n\
         [[caller]]\nafter = \"tool.finished + 3s\"\nhangup = true\n\
         [[caller]]\nafter = \"question.dropped + 9s\"\nhangup = true\n\
         [[model]]\ndelay = \"900ms\"\nsay = \"Let me check.\"\ncall = {{ tool = \"book_appointment\", input = \
         {{ start = \"2026-12-03T15:00\", email = \"anna@example.com\" }} }}\n\
         [[model]]\nsay = \"Well.\"\n\
         [[check]]\nverdict = \"yes\"\n\
         [[expect]]\nevent = \"question.heard\"\n"
    );
    let file = folder.join(format!("{name}.call.toml"));
    std::fs::write(&file, text).expect("the folder can be written to");
    file.to_string_lossy().into_owned()
}

const YES: &str = "after = \"question.heard + 400ms\"\ntext = \"yes, please\"";

/// Every class of evidence on a line that has it, and what the line's length does to each.
const LINES: [(&str, &str); 16] = [
    ("device", "transport = \"local\""),
    ("device-buffer", "transport = \"local\"\noutput_buffer = \"85ms\""),
    ("virtual", "transport = \"local\"\nevidence = \"virtual\"\nround_trip = \"240ms\""),
    ("page", "transport = \"webrtc\"\nround_trip = \"90ms\""),
    ("page-unmeasured", "transport = \"webrtc\""),
    ("echo", "transport = \"sip\"\nevidence = \"echo\"\nround_trip = \"410ms\""),
    ("xr", "transport = \"sip\"\nevidence = \"xr\"\nround_trip = \"130ms\"\noutput_buffer = \"60ms\""),
    ("rtcp", "transport = \"sip\"\nevidence = \"rtcp\"\nround_trip = \"180ms\""),
    ("rtcp-page", "transport = \"webrtc\"\nevidence = \"rtcp\"\nround_trip = \"180ms\""),
    ("assumed", "transport = \"sip\""),
    ("assumed-short", "transport = \"sip\"\nround_trip = \"120ms\""),
    ("assumed-long", "transport = \"sip\"\nround_trip = \"900ms\""),
    ("mark", "transport = \"media-stream\""),
    ("mark-long", "transport = \"media-stream\"\nround_trip = \"500ms\""),
    ("mark-echo", "transport = \"media-stream\"\nevidence = \"echo\"\nround_trip = \"500ms\""),
    ("chat", "transport = \"chat\""),
];

/// The one flip is at H, to the microsecond, and no run or answer lies before it.
fn assert_flips_at_h(found: &Value) {
    let name = &found["path"];
    let flips = found["flips"].as_array().expect("flips are listed");
    assert_eq!(flips.len(), 1, "{name}: {flips:?}");
    assert_eq!(flips[0]["after_ms"], 0.0, "{name}: {flips:?}");
    assert_eq!(flips[0]["before_ms"], -0.001, "{name}: {flips:?}");
    assert_eq!(flips[0]["counts"], true, "{name}");
    assert_eq!(found["passed"], true, "{name}: {}", found["faults"]);
    let steps = found["steps"].as_array().expect("steps are listed");
    for step in steps {
        let behind = step["offset_ms"].as_f64().is_some_and(|offset| offset >= 0.0);
        assert_eq!(step["counts"], behind, "{name}: {step}");
        assert!(behind || step["runs"] == false, "{name}: {step}");
    }
}

#[test]
fn on_every_clock_rule_the_decision_flips_once_at_the_horizon() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let files: Vec<String> = LINES
        .iter()
        .map(|(name, path)| {
            scenario(
                folder.path(),
                name,
                path,
                if name == &"chat" {
                    "after = \"question.heard + 400ms\"\nmessage = \"yes, please\""
                } else {
                    YES
                },
            )
        })
        .collect();
    let mut arguments: Vec<&str> = files.iter().map(String::as_str).collect();
    arguments.push("--json");
    let output = sweep(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = objects(&output);
    assert_eq!(found.len(), LINES.len());
    for (found, (name, _)) in found.iter().zip(LINES) {
        assert_flips_at_h(found);
        assert_eq!(found["steps"].as_array().map(Vec::len), Some(91), "{name}");
        assert!(found["steps"][90]["runs"] == true, "{name}: a yes behind the horizon runs");
        let end = |key: &str| found[key].as_f64().expect("a time");
        assert!(end("ear_latest_ms") <= end("horizon_ms"), "{name}: the horizon lies before the true end");
    }
}

#[test]
fn a_finer_step_finds_the_same_flip() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let file = scenario(folder.path(), "fine", "transport = \"sip\"", YES);
    let output = sweep(&[&file, "--json", "--from", "-2ms", "--to", "+1ms", "--step", "50us"]);
    let found = objects(&output);
    assert_eq!(found[0]["steps"].as_array().map(Vec::len), Some(61));
    assert_flips_at_h(&found[0]);
}

#[test]
fn the_projects_own_scenarios_flip_once_wherever_a_line_answers() {
    let calls = root().join("tests/calls");
    let mut files: Vec<String> = std::fs::read_dir(calls)
        .expect("the folder is part of the repository")
        .map(|entry| entry.expect("an entry can be read").path().to_string_lossy().into_owned())
        .filter(|path| path.ends_with(".call.toml"))
        .collect();
    files.sort();
    let mut arguments: Vec<&str> = files.iter().map(String::as_str).collect();
    arguments.extend(["--json", "--step", "150ms", "--from", "-2100ms", "--to", "450ms"]);
    let found = objects(&sweep(&arguments));
    assert!(found.len() >= 60, "only {} of {} scenarios can be swept", found.len(), files.len());
    let mut flipped = 0;
    for found in &found {
        let early = found["faults"].as_array().expect("faults are listed").iter();
        let early: Vec<&Value> =
            early.filter(|fault| fault.as_str().is_some_and(|f| f.contains("before"))).collect();
        assert!(early.is_empty(), "{}: {early:?}", found["path"]);
        let flips = found["flips"].as_array().expect("flips are listed");
        assert!(flips.len() <= 1, "{}: {flips:?}", found["path"]);
        if flips.len() == 1 {
            assert_flips_at_h(found);
            flipped += 1;
        }
    }
    assert!(flipped >= 55, "only {flipped} of {} flip", found.len());
}

#[test]
fn a_range_on_one_side_of_the_horizon_has_no_flip_and_no_fault() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let file = scenario(folder.path(), "late", "transport = \"local\"", YES);
    let output = sweep(&[&file, "--from", "10ms", "--to", "60ms"]);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("+10 ms .. +60 ms") && !text.contains("flips"), "{text}");
}

#[test]
fn words_that_never_answer_are_a_fault() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    // The caller has hung up before any of the onsets.
    let file = scenario(folder.path(), "gone", "transport = \"local\"", YES);
    let text = std::fs::read_to_string(&file).expect("it was written just now");
    let gone = "[[caller]]\nafter = \"question.heard - 10ms\"\nhangup = true\n[[model]]\ndelay";
    std::fs::write(&file, text.replace("[[model]]\ndelay", gone)).expect("it can be written again");
    let output = sweep(&[&file]);
    assert_eq!(output.status.code(), Some(2), "the question is never heard");
    assert!(String::from_utf8_lossy(&output.stderr).contains("not heard to its end"), "{output:?}");
}

#[test]
fn what_cannot_be_swept_is_said_with_a_hint_and_status_2() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let yes = scenario(folder.path(), "yes", "transport = \"local\"", YES);
    let no_answer = scenario(
        folder.path(),
        "no-answer",
        "transport = \"local\"",
        "after = \"question.heard + 400ms\"\nnoise = \"300ms\"",
    );
    let echo = scenario(
        folder.path(),
        "echo",
        "transport = \"local\"",
        "after = \"question.heard + 400ms\"\ntext = \"yes\"\necho = true",
    );
    let no_question = scenario(
        folder.path(),
        "no-question",
        "transport = \"local\"\nevidence = \"unproven\"",
        "after = \"question.started + 9s\"\ntext = \"yes\"",
    );
    let cases: [(&[&str], &str); 9] = [
        (&["no/such.call.toml"], "no/such.call.toml: cannot be read"),
        (&[&no_answer], "no [[caller]] entry answers a question"),
        (&[&echo], "no [[caller]] entry answers a question"),
        (&[&no_question], "question 1 is not heard to its end"),
        (&[&yes, "--answer", "2"], "line 2 is no [[caller]] entry that can answer"),
        (&[&yes, "--from", "300ms"], "the range has no length"),
        (&[&yes, "--step", "0"], "no step"),
        (&[&yes, "--step", "1us", "--to", "20s"], "are the most"),
        (&[&yes, "--from", "soon"], "no time; write it like"),
    ];
    for (arguments, message) in cases {
        let output = sweep(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
        assert!(
            said.contains("hint:") || said.contains("--help") || said.contains("cannot be read"),
            "{said}"
        );
    }
}

#[test]
fn one_bad_file_does_not_keep_the_others_from_being_swept() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let yes = scenario(folder.path(), "yes", "transport = \"local\"", YES);
    let output = sweep(&["no/such.call.toml", &yes, "--json"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(objects(&output).len(), 1);
}
