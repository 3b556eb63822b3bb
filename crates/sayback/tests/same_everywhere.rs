//! VC-77: the same script comes to the same decisions in chat, on a local line, on a telephone line and on a media
//! stream; and in a live chat. Only when a question counts as heard differs.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const AGENT: &str = r#"
[agent]
name = "Desk"
[llm]
provider = "scripted"
[[skill]]
name = "desk"
[[skill.tool]]
name = "book"
description = "Books."
confirm = "Shall I book number {{ n }}?"
input = { type = "object", required = ["n"], properties = { n = { type = "integer" } } }
run = { reply = { message = "Booked number {{ n }}." } }
"#;

/// What the caller says to the first and to the second question, and what the check makes of it.
const ANSWERS: [(&str, &str); 2] = [("no, not that one", "no"), ("yes please", "yes")];

/// What was decided, without times and without how it was heard.
fn decisions(log: &str) -> Vec<String> {
    let kept = [
        "tool.called",
        "question.held",
        "question.heard",
        "question.dropped",
        "answer.checked",
        "tool.started",
        "tool.finished",
        "model.told",
    ];
    let fields = [
        "event",
        "question",
        "reason",
        "tool",
        "text",
        "words",
        "verdict",
        "veto",
        "input",
        "confirmed_by",
        "ok",
        "message",
        "outcome",
    ];
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| kept.contains(&line["event"].as_str().unwrap()))
        .map(|line| fields.map(|field| line[field].to_string()).join(" "))
        .collect()
}

fn scenario(transport: &str) -> String {
    let speak = if transport == "chat" { "message" } else { "text" };
    let (no, yes) = (ANSWERS[0].0, ANSWERS[1].0);
    format!(
        r#"
title = "The same on every line"
agent = "agent.toml"

[path]
transport = "{transport}"

[[caller]]
at = "1s"
{speak} = "book number one"

[[caller]]
after = "question.heard + 500ms"
{speak} = "{no}"

[[caller]]
after = "question.heard#2 + 500ms"
{speak} = "{yes}"

[[caller]]
after = "tool.finished + 3s"
hangup = true

[[model]]
call = {{ tool = "book", input = {{ n = 1 }} }}

[[model]]
call = {{ tool = "book", input = {{ n = 2 }} }}

[[model]]
say = "Done."

[[check]]
verdict = "no"

[[check]]
verdict = "yes"

[[expect]]
event = "tool.finished"
"#
    )
}

fn on_a_virtual_line(folder: &Path, transport: &str) -> Vec<String> {
    let file = format!("{transport}.call.toml");
    std::fs::write(folder.join(&file), scenario(transport)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
    let output = command.args(["replay", &file, "--events", "-"]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{transport}: {}", String::from_utf8_lossy(&output.stderr));
    decisions(&String::from_utf8(output.stdout).unwrap())
}

fn in_a_live_chat(folder: &Path) -> Vec<String> {
    let call = |n| format!("{{\"call\":{{\"tool\":\"book\",\"input\":{{\"n\":{n}}}}}}}\n");
    let verdicts: String =
        ANSWERS.iter().map(|(_, verdict)| format!("{{\"verdict\":\"{verdict}\"}}\n")).collect();
    let script = format!("{}{}{verdicts}{{\"say\":\"Done.\"}}\n", call(1), call(2));
    std::fs::write(folder.join("script.jsonl"), script).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
    command.args([
        "chat",
        "agent.toml",
        "--script",
        "script.jsonl",
        "--store",
        "c.db",
        "--events",
        "live.jsonl",
    ]);
    let mut child = command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let lines = format!("book number one\n{}\n{}\n", ANSWERS[0].0, ANSWERS[1].0);
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    decisions(&std::fs::read_to_string(folder.join("live.jsonl")).unwrap())
}

#[test]
fn vc_77_the_same_script_is_decided_alike_on_every_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agent.toml"), AGENT).unwrap();
    let live = in_a_live_chat(folder.path());
    let runs = live.iter().filter(|line| line.contains("tool.started")).count();
    assert_eq!(runs, 1, "{live:#?}");
    for transport in ["chat", "local", "sip", "webrtc", "media-stream"] {
        assert_eq!(on_a_virtual_line(folder.path(), transport), live, "{transport}");
    }
}
