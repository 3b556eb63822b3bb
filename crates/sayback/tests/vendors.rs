//! Vendors as an agent file names them: keys, answers, and what is missing.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

use tempfile::TempDir;

const KEYS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "CARTESIA_API_KEY",
    "DEEPGRAM_API_KEY",
    "ELEVENLABS_API_KEY",
    "OPENAI_API_KEY",
    "SONIOX_API_KEY",
];

fn agent(settings: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("[agent]\nname = \"Desk\"\ninstructions = \"Help.\"\n{settings}");
    std::fs::write(folder.path().join("agent.toml"), text).unwrap();
    folder
}

fn sayback(folder: &Path, args: &[&str], keys: &[(&str, &str)], lines: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
    command.args(args).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for key in KEYS {
        command.env_remove(key);
    }
    command.envs(keys.iter().copied()).env("SAYBACK_LOG", "trace");
    let mut child = command.spawn().unwrap();
    // A command that stops at once does not read.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    child.wait_with_output().unwrap()
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Answers one request with this and gives what it read.
fn server(answer: String) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let serve = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(connection.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head.push_str(&line);
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        connection.write_all(answer.as_bytes()).unwrap();
        head + &String::from_utf8_lossy(&body)
    });
    (url, serve)
}

fn anthropic(url: &str) -> TempDir {
    agent(&format!(
        "[llm]\nprovider = \"anthropic\"\nmodel = \"claude-x\"\nbase_url = \"{url}\"\napi_key_env = \"ANTHROPIC_API_KEY\"\n"
    ))
}

const CHAT: [&str; 4] = ["chat", "agent.toml", "--store", "talks.db"];

#[test]
fn anthropic_answers_in_a_chat() {
    let text =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Good morning."}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let body = format!("data: {text}\n\ndata: {end}\n\n");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let (url, serve) = server(format!("{head}{body}"));
    let folder = anthropic(&url);
    let output = sayback(folder.path(), &CHAT, &[("ANTHROPIC_API_KEY", "sk-secret-7")], "Hello\n");
    let shown = shown(&output);
    assert!(shown.contains("Good morning."), "{shown}");
    assert!(!shown.contains("sk-secret-7"), "the key is not even in the most talkative log: {shown}");
    let asked = serve.join().unwrap();
    assert!(asked.contains("x-api-key: sk-secret-7") && asked.contains("claude-x"), "{asked}");
}

#[test]
fn a_refused_key_is_told_and_not_shown() {
    let body = r#"{"type":"error","error":{"type":"authentication_error","message":"bad sk-secret-7"}}"#;
    let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let (url, serve) = server(format!("{head}content-length: {}\r\n\r\n{body}", body.len()));
    let folder = anthropic(&url);
    let output = sayback(folder.path(), &CHAT, &[("ANTHROPIC_API_KEY", "sk-secret-7")], "Hello\n");
    serve.join().unwrap();
    assert!(!shown(&output).contains("sk-secret-7"), "{}", shown(&output));
}

#[test]
fn a_missing_key_ends_with_status_3_and_the_name_of_its_variable() {
    for (settings, variable) in [
        ("[llm]\nprovider = \"anthropic\"\nmodel = \"m\"\n", "ANTHROPIC_API_KEY"),
        ("[llm]\nprovider = \"openai\"\nmodel = \"m\"\n", "OPENAI_API_KEY"),
        ("[llm]\nprovider = \"openai\"\nmodel = \"m\"\napi_key_env = \"MY_KEY\"\n", "MY_KEY"),
        (
            "[llm]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
             fallback = { provider = \"anthropic\", model = \"m\" }\n",
            "ANTHROPIC_API_KEY",
        ),
    ] {
        for keys in [vec![], vec![(variable, " ")]] {
            let folder = agent(settings);
            let output = sayback(folder.path(), &CHAT, &keys, "");
            assert_eq!(output.status.code(), Some(3), "{}", shown(&output));
            assert!(shown(&output).contains(&format!("export {variable}=…")), "{}", shown(&output));
        }
    }
}

#[test]
fn doctor_names_what_an_agent_needs_its_fallbacks_included() {
    let folder = agent(
        "[llm]\nprovider = \"anthropic\"\nmodel = \"m\"\n\
         [stt]\nprovider = \"deepgram\"\nfallback = { provider = \"soniox\" }\n\
         [tts]\nprovider = \"elevenlabs\"\nvoice = \"v\"\nfallback = { provider = \"cartesia\", voice = \"v\" }\n",
    );
    let keys: Vec<(&str, &str)> = KEYS.iter().map(|key| (*key, "sk-secret-7")).collect();
    let output = sayback(folder.path(), &["doctor", "agent.toml", "--offline"], &keys, "");
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    assert!(!shown(&output).contains("sk-secret"), "{}", shown(&output));
    for model in ["model silero-vad", "model smart-turn"] {
        assert!(shown(&output).contains(model), "{}", shown(&output));
    }
    for missing in ["ANTHROPIC", "DEEPGRAM", "SONIOX", "ELEVENLABS", "CARTESIA"] {
        let variable = format!("{missing}_API_KEY");
        let some: Vec<(&str, &str)> = keys.iter().copied().filter(|(key, _)| *key != variable).collect();
        let output = sayback(folder.path(), &["doctor", "agent.toml", "--offline"], &some, "");
        assert_eq!(output.status.code(), Some(3), "{}", shown(&output));
        assert!(shown(&output).contains(&format!("mend: export {variable}=…")), "{}", shown(&output));
        assert!(shown(&output).contains("1 missing"), "{}", shown(&output));
    }
}

fn open_ai(url: &str) -> TempDir {
    agent(&format!("[llm]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{url}\"\n"))
}

/// An address at which nothing listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}

const REPLY: &str = r#"{"id": "a", "lang": "en", "question": "Shall I?", "reply": "Yes.", "label": "yes", "also_ok": [], "note": "", "tags": ["plain-yes"], "hard": false}
"#;

const CALL: &str = r#"title = "A caller says something."
agent = "agent.toml"

[[caller]]
at = "1s"
text = "Hello?"

[[expect]]
event = "agent.said"
"#;

#[test]
fn whatever_needs_a_model_that_is_not_there_ends_with_status_3_and_its_address() {
    let url = nowhere();
    let folder = open_ai(&url);
    std::fs::write(folder.path().join("replies.jsonl"), REPLY).unwrap();
    std::fs::write(folder.path().join("one.call.toml"), CALL).unwrap();
    for command in [
        CHAT.as_slice(),
        &["doctor", "agent.toml"],
        &["conform", "replies", "replies.jsonl", "--agent", "agent.toml"],
        &["replay", "one.call.toml", "--live-model"],
    ] {
        let output = sayback(folder.path(), command, &[], "Hello\n");
        let shown = shown(&output);
        assert_eq!(output.status.code(), Some(3), "{command:?}: {shown}");
        assert!(shown.contains(&url) && shown.contains("start that server"), "{command:?}: {shown}");
    }
    // Nothing was asked of it.
    let output = sayback(folder.path(), &CHAT, &[], "");
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
}

#[test]
fn doctor_says_what_a_wrong_address_answered_and_what_a_right_one_did() {
    let head = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 7\r\n\r\nno page";
    let (url, serve) = server(head.to_owned());
    let output = sayback(open_ai(&url).path(), &["doctor", "agent.toml"], &[], "");
    serve.join().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", shown(&output));
    for part in [url.as_str(), "404", "mend: look at `base_url` and `model` in [llm]"] {
        assert!(shown(&output).contains(part), "{part}: {}", shown(&output));
    }
    let piece = r#"{"choices":[{"index":0,"delta":{"content":"Yes."},"finish_reason":"stop"}]}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let (url, serve) = server(format!("{head}data: {piece}\n\ndata: [DONE]\n\n"));
    let output = sayback(open_ai(&url).path(), &["doctor", "agent.toml"], &[], "");
    serve.join().unwrap();
    let said = format!("ok      an answer from the language model m at {url}");
    assert!(shown(&output).contains(&said), "{}", shown(&output));
}

#[test]
fn a_vendor_that_does_not_exist_is_refused_with_its_place() {
    let folder = agent("[stt]\nprovider = \"deepgrm\"\n");
    let output = sayback(folder.path(), &["check", "agent.toml"], &[], "");
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    assert!(
        shown(&output).contains("agent.toml:5:12: `provider` does not know `deepgrm`"),
        "{}",
        shown(&output)
    );
}
