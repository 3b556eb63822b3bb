//! What the page at `/` needs: its files, conversations in text, and recorded calls.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use sayback_core::{AskTerms, Policy, Time};
use sayback_runtime::agent::{
    Agent, AskContext, Confirm, ConfirmError, ConfirmedTool, Handler, RunContext, RunError, Skill, Tool,
    ToolInfo, ToolOutput, Validate,
};
use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::llm::{Llm, LlmCall, LlmError, LlmEvent, LlmRequest, LlmStream};
use sayback_runtime::record::{AgentSheet, CallSheet, Recorder, SoundSheet};
use sayback_runtime::switchboard::{Desk, Switchboard};
use sayback_server::recordings::{Archive, Pieces, RecordingView, Recordings, Retell, view_of};
use sayback_server::{Api, Role, Token};
use serde_json::{Value, json};

use crate::support::{Server, api, begin, board, board_of, desk, start, start_api, token};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_served_and_keeps_to_itself() {
    let secret = token("ops", &[Role::Read]);
    let server = start(&board(), vec![secret]).await;
    let page = server.ask("GET", "/").send().await.unwrap();
    assert_eq!(page.status().as_u16(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    for loose in ["unsafe", "*", "http:", "https:", "data:"] {
        assert!(!policy.contains(loose), "{policy}");
    }
    assert_eq!(page.headers()["x-content-type-options"], "nosniff");
    assert_eq!(page.headers()["cross-origin-resource-policy"], "same-origin");
    let tag = page.headers()["etag"].clone();
    let text = page.text().await.unwrap();
    assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("style="), "{text}");
    let again = server.ask("GET", "/").header("if-none-match", tag).send().await.unwrap();
    assert_eq!(again.status().as_u16(), 304);
    // Every file that the page names is there, and so is every one that those name.
    let mut wanted = vec!["/".to_owned()];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(path) = wanted.pop() {
        let answer = server.ask("GET", &path).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200, "{path}");
        assert!(answer.headers().contains_key("content-security-policy"), "{path}");
        let text = answer.text().await.unwrap();
        let links = text.split('"').filter_map(|part| {
            let own = part.strip_prefix("./").map(|name| format!("/console/{name}"));
            own.or_else(|| part.starts_with("/console/").then(|| part.to_owned()))
        });
        wanted.extend(links.filter(|link| link.contains('.') && seen.insert(link.clone())));
    }
    assert!(seen.len() > 8, "{seen:?}");
    for nowhere in
        ["/console/", "/console/x.js", "/console/..%2fCargo.toml", "/console/%2e%2e/%2e%2e/Cargo.toml"]
    {
        assert_eq!(server.status("GET", nowhere).await, 404, "{nowhere}");
    }
    assert_eq!(server.status("POST", "/").await, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_is_told_what_their_token_may_do() {
    let secret = token("ops", &[Role::Read, Role::App]);
    let server = start(&board(), vec![secret]).await;
    assert_eq!(server.status("GET", "/v1/access").await, 401);
    let own: Value =
        server.ask("GET", "/v1/access").bearer_auth("ops").send().await.unwrap().json().await.unwrap();
    assert_eq!(own, json!({ "name": "ops", "roles": ["read", "app"] }));
    let open = start(&board(), vec![]).await;
    let all: Value = open.ask("GET", "/v1/access").send().await.unwrap().json().await.unwrap();
    assert_eq!(all["roles"], json!(["read", "call", "approve", "app", "page"]));
}

/// Calls the tool, and says that it is done; again and again. Every answer means yes.
#[derive(Debug, Default)]
struct Books(std::sync::atomic::AtomicU32);

#[async_trait::async_trait]
impl Llm for Books {
    fn name(&self) -> String {
        "books".to_owned()
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        let step = if request.one_of.is_empty() {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
        } else {
            9
        };
        let event = match step {
            9 => LlmEvent::Text("yes".to_owned()),
            step if step % 2 == 0 => LlmEvent::Call(LlmCall {
                id: format!("call_{step}"),
                name: "book".to_owned(),
                arguments: r#"{"day":"Thursday"}"#.to_owned(),
            }),
            _ => LlmEvent::Text("It is booked.".to_owned()),
        };
        Ok(futures::stream::iter([Ok(event), Ok(LlmEvent::Done)]).boxed())
    }
}

#[derive(Debug)]
struct Book;

impl Validate for Book {
    fn validate(&self, input: Value) -> Result<Value, String> {
        Ok(input)
    }
}

#[async_trait::async_trait]
impl Confirm for Book {
    async fn question(&self, input: &Value, _context: &AskContext) -> Result<String, ConfirmError> {
        Ok(format!("Shall I book {}?", input["day"].as_str().unwrap_or_default()))
    }
}

#[async_trait::async_trait]
impl Handler for Book {
    async fn run(&self, _input: Value, _context: RunContext) -> Result<ToolOutput, RunError> {
        Ok(ToolOutput { ok: true, message: "Booked.".to_owned() })
    }
}

fn booking() -> Switchboard {
    board_of(booking_desk())
}

/// Asks before it books.
pub(crate) fn booking_desk() -> Desk {
    let mut desk = desk();
    let mut agent = Agent::clone(&desk.agent);
    let info = ToolInfo {
        name: "book".to_owned(),
        description: "Books.".to_owned(),
        schema: json!({ "type": "object" }),
        validate: Arc::new(Book),
        limit: Duration::from_secs(5),
        definition: "sha256:00".to_owned(),
    };
    let tool = ConfirmedTool::new(info, Arc::new(Book), AskTerms::default(), Arc::new(Book));
    agent.skills =
        vec![Skill { name: "s".to_owned(), instructions: String::new(), tools: vec![Tool::Confirmed(tool)] }];
    desk.agent = Arc::new(agent);
    desk.llm = Arc::new(|| Arc::new(Books::default()));
    desk
}

impl Server {
    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let answer = self.ask("POST", path).json(&body).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
    }

    /// How a conversation stands once that is so.
    async fn chat(&self, id: &str, so: impl Fn(&Value) -> bool) -> Value {
        let last = Mutex::new(Value::Null);
        let look = async {
            loop {
                let shown = self.ask("GET", &format!("/v1/chats/{id}")).send().await.unwrap();
                let shown: Value = shown.json().await.unwrap();
                if so(&shown) {
                    return shown;
                }
                *last.lock().unwrap() = shown;
                tokio::task::yield_now().await;
            }
        };
        let seen = tokio::time::timeout(PATIENCE, look).await;
        seen.unwrap_or_else(|_| panic!("it stays {}", last.lock().unwrap()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_in_text_asks_runs_and_is_taken_back_without_undoing() {
    let server = start(&booking(), vec![]).await;
    let (status, opened) = server.post("/v1/chats", json!({ "agent": "desk" })).await;
    assert_eq!((status, &opened["agent"]), (201, &json!("desk")));
    let id = opened["chat"].as_str().unwrap().to_owned();
    let events = server.ask("GET", &format!("/v1/chats/{id}/events")).send().await.unwrap();
    let messages = format!("/v1/chats/{id}/messages");
    server.chat(&id, |chat| chat["idle"] == true && !chat["items"].as_array().unwrap().is_empty()).await;
    assert_eq!(server.post(&messages, json!({ "text": "Book Thursday." })).await.0, 202);
    let asked = server.chat(&id, |chat| chat["question"].is_string() && chat["idle"] == true).await;
    assert_eq!(asked["question"], "Shall I book Thursday?");
    assert_eq!(asked["ran"], json!([]));
    let most = asked["items"].as_array().unwrap().len();
    // A yes that names its question answers no other, and sent again it answers nothing.
    let (status, problem) = server.post(&messages, json!({ "text": "yes", "answers": "h_99" })).await;
    assert_eq!((status, &problem["type"]), (409, &json!("urn:sayback:other-question")));
    let yes = json!({ "text": "yes", "answers": asked["hold"] });
    assert_eq!(server.post(&messages, yes.clone()).await.0, 202);
    let ran = server.chat(&id, |chat| chat["ran"] != json!([]) && chat["idle"] == true).await;
    assert_eq!((&ran["hold"], server.post(&messages, yes).await.0), (&json!(null), 409));
    let one = &ran["ran"][0];
    assert_eq!((&one["tool"], &one["confirmed_by"]), (&json!("book"), &json!("yes")));
    let rewind = format!("/v1/chats/{id}/rewind");
    let (status, told) = server.post(&rewind, json!({ "items": most, "dry_run": true })).await;
    assert_eq!((status, &told["not_undone"][0]["tool"]), (200, &json!("book")));
    assert!(server.chat(&id, |_| true).await["items"].as_array().unwrap().len() > most);
    for (body, kind) in [
        (json!({ "items": 1_000 }), "bad-rewind"),
        (json!({ "items": -1 }), "bad-body"),
        (json!({ "items": 1, "undo": true }), "bad-body"),
        (json!({}), "bad-body"),
    ] {
        let (status, problem) = server.post(&rewind, body).await;
        assert_eq!((status, &problem["type"]), (400, &json!(format!("urn:sayback:{kind}"))));
    }
    let (status, told) = server.post(&rewind, json!({ "items": most })).await;
    assert_eq!((status, &told["not_undone"][0]["confirmed_by"]), (200, &json!("yes")));
    let back = server.chat(&id, |chat| chat["items"].as_array().unwrap().len() == most + 1).await;
    assert!(back["items"][most]["text"].as_str().unwrap().contains("that is not undone"), "{back}");
    assert_eq!(back["question"], "Shall I book Thursday?", "open again: {back}");
    assert_eq!(server.status("DELETE", &format!("/v1/chats/{id}")).await, 202);
    let log = tokio::time::timeout(PATIENCE, events.text()).await.unwrap().unwrap();
    assert!(log.contains("event: conversation.rewound") && log.contains("event: call.ended"), "{log}");
    assert_eq!(log.matches("event: tool.started").count(), 1, "{log}");
    assert_eq!(server.chat(&id, |chat| chat["over"] == true).await["over"], true);
    assert_eq!(server.post(&messages, json!({ "text": "hello?" })).await.0, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_and_no_conversation_is_refused() {
    let board = booking();
    let server = start(&board, vec![]).await;
    let (started, _) = begin(&board).await;
    let (_, opened) = server.post("/v1/chats", json!({})).await;
    let chat = opened["chat"].as_str().unwrap();
    for (path, body, status, kind) in [
        (format!("/v1/chats/{chat}/messages"), json!({ "text": "  " }), 400, "bad-text"),
        (format!("/v1/chats/{chat}/messages"), json!({ "text": "x".repeat(5_000) }), 400, "bad-text"),
        (format!("/v1/chats/{chat}/messages"), json!({ "text": 1 }), 400, "bad-body"),
        ("/v1/chats/x/messages".to_owned(), json!({ "text": "hello" }), 404, "no-such-chat"),
        // A call with sound is no conversation in text.
        (format!("/v1/chats/{}/messages", started.id), json!({ "text": "yes" }), 404, "no-such-chat"),
        (format!("/v1/chats/{}/rewind", started.id), json!({ "items": 0 }), 404, "no-such-chat"),
        ("/v1/chats".to_owned(), json!({ "who": "desk" }), 400, "bad-body"),
        ("/v1/chats".to_owned(), json!({}), 503, "full"),
    ] {
        let (got, problem) = server.post(&path, body).await;
        assert_eq!((got, &problem["type"]), (status, &json!(format!("urn:sayback:{kind}"))), "{path}");
    }
    for path in ["/v1/chats/x", "/v1/chats/x/events"] {
        assert_eq!(server.status("GET", path).await, 404, "{path}");
    }
    assert_eq!(server.status("DELETE", &format!("/v1/chats/{}", started.id)).await, 404);
}

/// Tells that it was asked.
#[derive(Debug)]
pub(crate) struct Told;

impl Retell for Told {
    fn scenario(&self, folder: &Path) -> Result<String, String> {
        if folder.ends_with("cut") {
            Err("decided again, it differs".to_owned())
        } else {
            Ok("title = \"x\"\n".to_owned())
        }
    }
}

/// A folder with a recorded call, one that was cut off, and things that are none.
fn recorded(folder: &Path) {
    for (id, finished) in [("test-1", true), ("cut", false)] {
        let agent =
            AgentSheet { name: "desk".to_owned(), file: "desk.toml".to_owned(), hash: "sha256:0".to_owned() };
        let mut sheet = CallSheet::new(id, "sip", agent, Policy::default());
        sheet.sound = Some(SoundSheet::default());
        let recorder = Recorder::create(&folder.join(id), &sheet).unwrap();
        recorder.observer().on_event(&json!({ "t_ms": 0.0, "event": "call.started", "call": id }));
        recorder.observer().on_event(&json!({ "t_ms": 1234.5, "event": "call.ended", "reason": "hangup" }));
        let sound: Vec<f32> = (0_u16..16_000).map(|n| f32::from(n % 100) / 200.0).collect();
        recorder.hear(Time::from_micros(0), &sound, &sound);
        if finished {
            recorder.finish(None).unwrap();
        }
    }
    std::fs::create_dir(folder.join("empty")).unwrap();
    std::fs::create_dir(folder.join(".hidden")).unwrap();
    std::fs::copy(folder.join("test-1/call.json"), folder.join(".hidden/call.json")).unwrap();
    let outside = folder.parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    for name in ["call.json", "call.flac", "events.jsonl"] {
        std::fs::copy(folder.join("test-1").join(name), outside.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(&outside, folder.join("linked")).unwrap();
    // A recording whose log is a link to somewhere else.
    std::fs::create_dir(folder.join("half")).unwrap();
    std::fs::copy(folder.join("test-1/call.json"), folder.join("half/call.json")).unwrap();
    std::os::unix::fs::symlink(outside.join("events.jsonl"), folder.join("half/events.jsonl")).unwrap();
}

/// Recordings that were moved to another folder.
#[derive(Debug)]
struct Shelf(PathBuf);

#[async_trait::async_trait]
impl Archive for Shelf {
    async fn newest(&self, most: usize) -> Result<(Vec<RecordingView>, usize), String> {
        let ids = ["cut", "half", "test-1"];
        let views = ids.iter().filter_map(|id| view_of(&self.0.join(id), id).ok()).take(most);
        Ok((views.collect(), 0))
    }

    async fn view(&self, id: &str) -> Result<Option<RecordingView>, String> {
        Ok(view_of(&self.0.join(id), id).ok())
    }

    async fn size(&self, id: &str, file: &str) -> Result<Option<u64>, String> {
        let data = std::fs::symlink_metadata(self.0.join(id).join(file));
        Ok(data.ok().filter(|data| data.is_file()).map(|data| data.len()))
    }

    async fn read(&self, id: &str, file: &str, part: std::ops::Range<u64>) -> Result<Pieces, String> {
        let bytes = std::fs::read(self.0.join(id).join(file)).map_err(|error| error.to_string())?;
        let bytes = bytes[part.start as usize..part.end as usize].to_vec();
        Ok(Box::pin(futures::stream::iter([Ok(bytes)])))
    }

    async fn fetch(&self, id: &str, into: &Path) -> Result<bool, String> {
        Ok(std::fs::copy(self.0.join(id).join("call.json"), into.join("call.json")).is_ok())
    }
}

async fn with_moved_recordings(folder: PathBuf, shelf: PathBuf) -> Server {
    let board = board();
    start_api(vec![], move |access| {
        let archive = Some(Arc::new(Shelf(shelf)) as _);
        let recordings = Some(Recordings { folder, retell: Arc::new(Told), archive });
        Api { recordings, ..api(&board, access, ApprovalQueue::default()) }
    })
    .await
}

async fn with_recordings(folder: PathBuf, tokens: Vec<Token>) -> Server {
    let board = board();
    start_api(tokens, move |access| {
        let recordings = Some(Recordings { folder, retell: Arc::new(Told), archive: None });
        Api { recordings, ..api(&board, access, ApprovalQueue::default()) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_calls_are_listed_played_and_told() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("calls");
    std::fs::create_dir(&folder).unwrap();
    recorded(&folder);
    show_recorded(&with_recordings(folder.clone(), vec![]).await, &folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_calls_that_were_moved_are_listed_played_and_told_like_those_that_were_not() {
    let temporary = tempfile::tempdir().unwrap();
    let (folder, shelf) = (temporary.path().join("calls"), temporary.path().join("shelf"));
    for folder in [&folder, &shelf] {
        std::fs::create_dir(folder).unwrap();
    }
    recorded(&shelf);
    // One is still here as well.
    std::fs::create_dir(folder.join("cut")).unwrap();
    std::fs::copy(shelf.join("cut/call.json"), folder.join("cut/call.json")).unwrap();
    show_recorded(&with_moved_recordings(folder, shelf.clone()).await, &shelf).await;
}

async fn show_recorded(server: &Server, folder: &Path) {
    let listed: Value = server.ask("GET", "/v1/recordings").send().await.unwrap().json().await.unwrap();
    let mut ids: Vec<&str> =
        listed["recordings"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["cut", "half", "test-1"]);
    let one: Value = server.ask("GET", "/v1/recordings/test-1").send().await.unwrap().json().await.unwrap();
    let seen = (&one["agent"], &one["transport"], &one["sealed"], &one["sound"], &one["length_ms"]);
    assert_eq!(seen, (&json!("desk"), &json!("sip"), &json!(true), &json!(true), &json!(1234)));
    let cut: Value = server.ask("GET", "/v1/recordings/cut").send().await.unwrap().json().await.unwrap();
    assert_eq!(cut["sealed"], false);
    let sound = std::fs::read(folder.join("test-1/call.flac")).unwrap();
    let whole = server.ask("GET", "/v1/recordings/test-1/audio").send().await.unwrap();
    assert_eq!(
        (whole.headers()["content-type"].to_str().unwrap(), &whole.headers()["accept-ranges"]),
        ("audio/flac", &"bytes".parse().unwrap())
    );
    assert_eq!(whole.headers()["content-length"], sound.len().to_string().as_str());
    assert_eq!(whole.bytes().await.unwrap(), sound);
    for (range, from, to) in
        [("bytes=0-3", 0, 4), ("bytes=10-", 10, sound.len()), ("bytes=-7", sound.len() - 7, sound.len())]
    {
        let part =
            server.ask("GET", "/v1/recordings/test-1/audio").header("range", range).send().await.unwrap();
        assert_eq!(part.status().as_u16(), 206, "{range}");
        let said = format!("bytes {from}-{}/{}", to - 1, sound.len());
        assert_eq!(part.headers()["content-range"], said.as_str());
        assert_eq!(part.bytes().await.unwrap(), sound[from..to]);
    }
    let behind = server.ask("GET", "/v1/recordings/test-1/audio").header("range", "bytes=99999999-");
    let behind = behind.send().await.unwrap();
    assert_eq!(
        (behind.status().as_u16(), behind.headers()["content-range"].to_str().unwrap()),
        (416, format!("bytes */{}", sound.len()).as_str())
    );
    let events =
        server.ask("GET", "/v1/recordings/test-1/events").send().await.unwrap().text().await.unwrap();
    assert!(events.lines().count() == 2 && events.contains("call.ended"), "{events}");
    let evidence =
        server.ask("GET", "/v1/recordings/test-1/evidence").send().await.unwrap().text().await.unwrap();
    assert!(evidence.contains("\"kind\":\"seal\""), "{evidence}");
    let told = server.ask("POST", "/v1/recordings/test-1/scenario").send().await.unwrap();
    assert!(told.headers()["content-disposition"].to_str().unwrap().contains("test-1.call.toml"));
    assert_eq!(told.text().await.unwrap(), "title = \"x\"\n");
    let (status, problem) = server.post("/v1/recordings/cut/scenario", json!({})).await;
    assert_eq!((status, &problem["type"]), (422, &json!("urn:sayback:cannot-be-told")));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_a_recording_is_reached_and_only_with_its_role() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("calls");
    std::fs::create_dir(&folder).unwrap();
    recorded(&folder);
    let server = with_recordings(folder.clone(), vec![]).await;
    for id in [
        "..",
        "%2e%2e",
        "..%2foutside",
        "test-1%2f..%2f..%2foutside",
        "%2fetc",
        ".hidden",
        "empty",
        "linked",
        "nobody",
        "test-1%00",
        "te%20st",
        "%F0%9F%98%80",
        "C:%5C",
    ] {
        for part in ["", "/audio", "/events", "/evidence"] {
            let status = server.status("GET", &format!("/v1/recordings/{id}{part}")).await;
            assert_eq!(status, 404, "{id}{part}");
        }
        assert_eq!(server.status("POST", &format!("/v1/recordings/{id}/scenario")).await, 404, "{id}");
    }
    // A recording without that file, or with a link in its place.
    assert_eq!(server.status("GET", "/v1/recordings/half/audio").await, 404);
    assert_eq!(server.status("GET", "/v1/recordings/half/events").await, 404);
    let server =
        with_recordings(folder, vec![token("reader", &[Role::Read]), token("app", &[Role::App])]).await;
    for path in ["/v1/recordings", "/v1/recordings/test-1", "/v1/recordings/test-1/audio"] {
        assert_eq!(server.status("GET", path).await, 401, "{path}");
        let with = |token: &str| server.ask("GET", path).bearer_auth(token).send();
        assert_eq!(with("app").await.unwrap().status().as_u16(), 403, "{path}");
        assert_eq!(with("reader").await.unwrap().status().as_u16(), 200, "{path}");
    }
    let open = |token: &str| server.ask("POST", "/v1/chats").bearer_auth(token).json(&json!({})).send();
    assert_eq!(open("reader").await.unwrap().status().as_u16(), 403);
    assert_eq!(open("app").await.unwrap().status().as_u16(), 201);
    let without = start(&board(), vec![]).await;
    let answer = without.ask("GET", "/v1/recordings").send().await.unwrap();
    assert!(answer.text().await.unwrap().contains("urn:sayback:no-recordings"));
}
