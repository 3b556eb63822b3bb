//! Tools of MCP servers: a program and an address, and what goes wrong with either.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sayback_agentfile::{AgentFile, AgentFileError, canonical, lint_offers, parse};
use sayback_core::ToolOutcome;
use sayback_runtime::agent::{RunContext, Tool};
use serde_json::{Value, json};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_server.py");

/// An agent with one tool on the server; `reach` says how.
fn text(tools: &[(&str, &str)], reach: &str) -> String {
    let mut text =
        "[agent]\nname = \"Desk\"\ninstructions = \"Help.\"\n\n[[skill]]\nname = \"events\"\n".to_owned();
    for (tool, more) in tools {
        text += &format!(
            "\n[[skill.tool]]\nname = \"{tool}\"\ndescription = \"A tool.\"\nlimit = \"1500ms\"\n{more}\n\
             run = {{ mcp = {{ {reach}, tool = \"{tool}\" }} }}\n"
        );
    }
    text
}

fn program() -> String {
    format!("command = [\"python3\", \"{SERVER}\"]")
}

fn agent(tools: &[(&str, &str)], reach: &str) -> AgentFile {
    parse(&text(tools, reach), Path::new(env!("CARGO_MANIFEST_DIR")).join("desk.toml")).unwrap()
}

async fn call(agent: &AgentFile, name: &str, input: Value) -> ToolOutcome {
    let tools = agent.agent.skills.iter().flat_map(|skill| &skill.tools);
    let tool = tools.filter_map(|tool| match tool {
        Tool::Plain(tool) if tool.info.name == name => Some(tool),
        Tool::Plain(_) | Tool::Confirmed(_) => None,
    });
    let context = RunContext { idempotency_key: "h_01".to_owned(), ..RunContext::default() };
    let input = canonical(&input).unwrap();
    tool.into_iter().next().unwrap().run(&input, context).await
}

const EVENT: &str = "input = { type = \"object\", required = [\"day\", \"title\"], additionalProperties = false, \
    properties = { day = { type = \"string\" }, title = { type = \"string\" } } }";
const ASKED: &str = "confirm = \"Shall I put it in?\"\n";

/// A server at an address, killed at the end.
struct Address(Child, u16);

impl Address {
    fn start() -> Self {
        let mut child =
            Command::new("python3").args([SERVER, "--http"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(child, line.trim().parse().unwrap())
    }

    fn reach(&self, header: &str) -> String {
        format!("url = \"http://127.0.0.1:{}/mcp\", headers = {{ {header} }}", self.1)
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn done(message: &str) -> ToolOutcome {
    ToolOutcome::Done { message: message.to_owned() }
}

fn failed(message: &str) -> ToolOutcome {
    ToolOutcome::Failed { message: message.to_owned() }
}

#[tokio::test]
async fn a_program_is_started_once_and_its_tools_are_called_with_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let reach = format!("command = [\"env\", \"CALLS={}\", \"python3\", \"{SERVER}\"]", calls.display());
    let agent = agent(&[("create_event", EVENT), ("structured", ""), ("fails", "")], &reach);
    let input = json!({"day": "Friday", "title": "Lunch"});
    assert_eq!(call(&agent, "create_event", input).await, done("Lunch on Friday is in."));
    assert_eq!(call(&agent, "structured", json!({})).await, done("Room 4."));
    assert_eq!(call(&agent, "fails", json!({})).await, failed("That day is taken."));
    let calls = std::fs::read_to_string(calls).unwrap();
    assert_eq!(calls, "create_event h_01\nstructured h_01\nfails h_01\n");
}

#[tokio::test]
async fn vc_62_what_goes_wrong_says_whether_anything_may_have_happened() {
    let agent =
        agent(&["slow", "dies", "refuses", "floods", "structured"].map(|name| (name, "")), &program());
    assert_eq!(call(&agent, "refuses", json!({})).await, failed("python3 refused: not today"));
    let flood = call(&agent, "floods", json!({})).await;
    assert_eq!(flood, ToolOutcome::Unknown);
    let dead = call(&agent, "dies", json!({})).await;
    assert_eq!(dead, ToolOutcome::Unknown);
    assert_eq!(call(&agent, "structured", json!({})).await, done("Room 4."), "it is started again");
    let slow = call(&agent, "slow", json!({})).await;
    assert_eq!(slow, ToolOutcome::Unknown);
}

#[tokio::test]
async fn a_program_that_is_none_and_one_that_does_not_speak_did_nothing() {
    for (reach, why) in [
        ("command = [\"./no-such-program\"]", "./no-such-program cannot be started"),
        ("command = [\"true\"]", "true cannot be reached"),
        ("command = [\"echo\", \"hello\"]", "echo cannot be reached"),
        ("url = \"http://127.0.0.1:9/mcp\"", "127.0.0.1 cannot be reached"),
    ] {
        let outcome = call(&agent(&[("slow", "")], reach), "slow", json!({})).await;
        let ToolOutcome::Failed { message } = outcome else { panic!("{outcome:?}") };
        assert!(message.starts_with(why) && message.ends_with("nothing was done."), "{message}");
    }
}

#[tokio::test]
async fn an_address_is_called_with_its_headers_and_refuses_without() {
    let server = Address::start();
    let with = server.reach("X-Desk = \"1\", Authorization = { env = \"PATH\", prefix = \"no \" }");
    let outcome = call(&agent(&[("structured", "")], &with), "structured", json!({})).await;
    assert!(matches!(&outcome, ToolOutcome::Failed { message } if message.ends_with("nothing was done.")));
    let missing = server.reach("Authorization = { env = \"SAYBACK_NO_SUCH_VARIABLE\" }");
    let outcome = call(&agent(&[("structured", "")], &missing), "structured", json!({})).await;
    assert!(
        matches!(&outcome, ToolOutcome::Failed { message } if message.contains("SAYBACK_NO_SUCH_VARIABLE"))
    );
    // Tests share their environment, so the right word is put together from what is there.
    let home = std::env::var("CARGO_PKG_VERSION_PRE").unwrap_or_default();
    assert!(home.is_empty());
    let right =
        server.reach("Authorization = { env = \"CARGO_PKG_VERSION_PRE\", prefix = \"Bearer secret\" }");
    let agent = agent(&[("structured", ""), ("create_event", EVENT)], &right);
    assert_eq!(call(&agent, "structured", json!({})).await, done("Room 4."));
    let input = json!({"day": "Friday", "title": "Lunch"});
    assert_eq!(call(&agent, "create_event", input).await, done("Lunch on Friday is in."));
}

#[tokio::test]
async fn the_linter_asks_the_server_and_proposes_a_question_where_it_may_destroy() {
    let day =
        "input = { type = \"object\", required = [\"day\"], properties = { day = { type = \"string\" } } }";
    let faulty = [("delete_event", day), ("create_event", day), ("list_events", EVENT), ("no_such_tool", "")];
    let file = agent(&faulty, &program());
    let found: Vec<String> = lint_offers(&file).await.iter().map(ToString::to_string).collect();
    let expected = [
        "[mcp-destructive]: `delete_event` has no question, and its server says that it may change or remove things; \
         for example: confirm = \"Shall I delete event {{ day }}?\"",
        "[mcp-input-differs]: the input of `create_event` lacks what the server requires: title; add the fields to `input`",
        "[mcp-input-differs]: the input of `list_events` has what the server does not know: day, title; take the fields \
         out of `input`",
        "[mcp-no-such-tool]: `no_such_tool` calls `no_such_tool`, which python3 does not offer; it offers list_events, \
         create_event, delete_event, slow, dies, refuses, fails, floods, structured",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found}\n{expected}");
    }
    let asked = format!("{ASKED}{day}");
    let mended = agent(&[("delete_event", &asked), ("create_event", EVENT), ("list_events", "")], &program());
    assert_eq!(lint_offers(&mended).await, []);
    let gone = lint_offers(&agent(&[("slow", ""), ("dies", "")], "command = [\"true\"]")).await;
    assert_eq!(gone.iter().map(|finding| finding.code).collect::<Vec<_>>(), ["mcp-unreachable"]);
}

#[test]
fn what_is_written_wrong_is_refused_with_its_line() {
    for (reach, why) in [
        ("command = [\"a\"], url = \"http://x/\"", "`mcp` must have one of `command`, `url`"),
        ("headers = {}", "`mcp` must have one of `command`, `url`"),
        ("url = \"ftp://x/\"", "`url` is no http or https address"),
        ("command = []", "`command` must be a program and its arguments"),
        ("command = [\"a\"], headers = {}", "headers"),
        ("url = \"http://x/\", headers = { Authorization = \"Bearer abc\" }", "cannot have this value here"),
        ("url = \"http://x/\", nonsense = 1", "unknown key `nonsense`"),
    ] {
        let parsed = parse(&text(&[("slow", "")], reach), PathBuf::from("desk.toml"));
        let Err(AgentFileError::Faulty(faults)) = parsed else { panic!("{reach} is taken") };
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(
            told.iter().any(|fault| fault.contains(why) && fault.contains("desk.toml:13")),
            "{reach}: {told:?}"
        );
    }
}
