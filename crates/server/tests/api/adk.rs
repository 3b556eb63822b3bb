//! The ADK's wire over a real socket: who may do what, what is refused, and answers that come from two sides at once.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use sayback_core::Policy;
use sayback_runtime::agent::{
    Agent, AlwaysApprove, Handler, PlainTool, RunContext, RunError, Skill, Tool, ToolInfo, ToolOutput,
    Validate,
};
use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::driver::Screen;
use sayback_runtime::llm::{Llm, LlmCall, LlmError, LlmEvent, LlmRequest, LlmStream};
use sayback_runtime::switchboard::{Asked, Desk, Desks, Limits, NotNow, Switchboard};
use sayback_server::adk::{Content, Run, SessionKey, Sessions};
use sayback_server::{Api, Role};
use serde_json::{Value, json};

use crate::console::booking_desk;
use crate::support::{Server, api, start_api, token};

/// Pays when it is told to, and says "Done." otherwise.
#[derive(Debug, Default)]
struct Model {
    steps: AtomicU32,
}

#[async_trait::async_trait]
impl Llm for Model {
    fn name(&self) -> String {
        "a test's".to_owned()
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        let n = self.steps.fetch_add(1, Ordering::Relaxed);
        let last = format!("{:?}", request.messages.last());
        let step = if last.contains("please pay") {
            LlmEvent::Call(LlmCall {
                id: format!("m{n}"),
                name: "pay".to_owned(),
                arguments: "{\"n\":1}".to_owned(),
            })
        } else {
            LlmEvent::Text("Done.".to_owned())
        };
        Ok(futures::stream::iter([Ok(step), Ok(LlmEvent::Done)]).boxed())
    }
}

#[derive(Debug)]
struct Anything;

impl Validate for Anything {
    fn validate(&self, input: Value) -> Result<Value, String> {
        Ok(input)
    }
}

/// Counts its runs.
#[derive(Debug, Default)]
struct Pay(Mutex<Vec<String>>);

#[async_trait::async_trait]
impl Handler for Pay {
    async fn run(&self, _input: Value, context: RunContext) -> Result<ToolOutput, RunError> {
        self.0.lock().unwrap().push(context.idempotency_key);
        Ok(ToolOutput { ok: true, message: "{\"status\":\"paid\"}".to_owned() })
    }
}

/// Answers a call before anything else looks at it.
#[derive(Debug)]
struct Answers;

impl Screen for Answers {
    fn refuse(&self, _agent: &Agent, _call: &sayback_core::ToolCall, _said: &[String]) -> Option<String> {
        Some("The bank is closed.".to_owned())
    }
}

#[derive(Debug)]
struct OneDesk(Arc<Desk>);

#[async_trait::async_trait]
impl Desks for OneDesk {
    async fn find(&self, asked: &Asked) -> Result<Arc<Desk>, NotNow> {
        let known = asked.to == "bank";
        known.then(|| Arc::clone(&self.0)).ok_or_else(|| NotNow::Unknown { to: asked.to.clone() })
    }
}

struct Bank {
    server: Server,
    ran: Arc<Pay>,
    queue: ApprovalQueue,
}

async fn start(screen: Option<Arc<dyn Screen>>) -> Bank {
    let ran = Arc::new(Pay::default());
    let info = ToolInfo {
        name: "pay".to_owned(),
        description: "Pays.".to_owned(),
        schema: json!({ "type": "object" }),
        validate: Arc::new(Anything),
        limit: Duration::from_secs(5),
        definition: "sha256:1".to_owned(),
    };
    let tool = Tool::Plain(PlainTool::new(info, Arc::clone(&ran) as _)).approved_by(Arc::new(AlwaysApprove));
    let agent = Agent {
        name: "teller".to_owned(),
        language: "en".to_owned(),
        greeting: Some("Not said in text sessions.".to_owned()),
        instructions: String::new(),
        policy: Policy::default(),
        skills: vec![Skill { name: "bank".to_owned(), instructions: String::new(), tools: vec![tool] }],
    };
    let desk = Desk { screen, ..Desk::silent(agent, Arc::new(|| Arc::new(Model::default()))) };
    let desks: Arc<dyn Desks> = Arc::new(OneDesk(Arc::new(desk)));
    let tokens = vec![
        token("both", &[Role::App, Role::Approve]),
        token("app", &[Role::App]),
        token("approver", &[Role::Approve]),
        token("reader", &[Role::Read, Role::Call]),
    ];
    let queue = ApprovalQueue::default();
    let board = Switchboard::new(Arc::clone(&desks), None, Limits::default());
    let sessions = Sessions::new(desks, queue.clone());
    let server = start_api(tokens, |access| Api { sessions, ..api(&board, access, queue.clone()) }).await;
    Bank { server, ran, queue }
}

impl Bank {
    async fn ask(&self, who: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        self.server.with(who, (method, path), body).await
    }

    async fn session(&self) -> String {
        let (status, made) = self.ask("both", "POST", "/apps/bank/users/u/sessions", None).await;
        assert_eq!(status, 200, "{made}");
        assert_eq!(made["events"], json!([]), "no greeting");
        made["id"].as_str().unwrap().to_owned()
    }

    async fn run(&self, who: &str, session: &str, parts: Value) -> (u16, Value) {
        let message = json!({ "role": "user", "parts": parts });
        let body = json!({ "appName": "bank", "userId": "u", "sessionId": session, "newMessage": message });
        self.ask(who, "POST", "/run", Some(body)).await
    }

    /// Asks to pay, and gives the id of the request for confirmation.
    async fn asked(&self, session: &str) -> String {
        let (status, events) = self.run("app", session, json!([{ "text": "please pay" }])).await;
        assert_eq!(status, 200, "{events}");
        events[1]["longRunningToolIds"][0].as_str().unwrap().to_owned()
    }

    fn runs(&self) -> usize {
        self.ran.0.lock().unwrap().len()
    }
}

fn answer(id: &str, confirmed: Value) -> Value {
    let response = json!({ "confirmed": confirmed });
    json!([{ "functionResponse": { "id": id, "name": "adk_request_confirmation", "response": response } }])
}

#[tokio::test(flavor = "multi_thread")]
async fn adk_17_of_answers_from_two_sides_at_once_one_runs_the_tool_once() {
    let server = start(None).await;
    for round in 1..=10 {
        let session = server.session().await;
        let id = server.asked(&session).await;
        let path = format!("/v1/approvals/{id}");
        let yes = || answer(&id, json!(true));
        let (a, b, c) = tokio::join!(
            server.run("both", &session, yes()),
            server.ask("approver", "POST", &path, Some(json!({ "confirmed": true }))),
            server.run("both", &session, yes()),
        );
        assert_eq!((a.0, c.0), (200, 200), "{a:?} {c:?}");
        assert!(b.0 == 200 || b.0 == 409, "{b:?}");
        // Whoever came first: it runs, in whichever turn of the session.
        let ran = async {
            while server.runs() < round {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), ran).await.unwrap();
        server.run("both", &session, json!([{ "text": "thanks" }])).await;
        server.run("both", &session, yes()).await;
        assert_eq!(server.runs(), round);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_approved_elsewhere_makes_the_session_go_on() {
    let server = start(None).await;
    let session = server.session().await;
    let id = server.asked(&session).await;
    let (_, list) = server.ask("approver", "GET", "/v1/approvals", None).await;
    assert_eq!(
        list["approvals"][0]["asker"]["session"],
        json!({ "app": "bank", "user": "u", "id": session })
    );
    let body = json!({ "confirmed": true, "by": "Ann" });
    assert_eq!(server.ask("approver", "POST", &format!("/v1/approvals/{id}"), Some(body)).await.0, 200);
    let path = format!("/apps/bank/users/u/sessions/{session}");
    let seen = async {
        loop {
            let (_, shown) = server.ask("app", "GET", &path, None).await;
            let events = shown["events"].as_array().unwrap().clone();
            if events.last().is_some_and(|event| event["content"]["parts"][0]["text"] == "Done.") {
                return events;
            }
            tokio::task::yield_now().await;
        }
    };
    let events = tokio::time::timeout(Duration::from_secs(30), seen).await.unwrap();
    let response = &events[events.len() - 2]["content"]["parts"][0]["functionResponse"];
    assert_eq!((&response["name"], &response["response"]), (&json!("pay"), &json!({ "status": "paid" })));
    assert_eq!(server.runs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_taken_is_refused_and_changes_nothing() {
    let server = start(None).await;
    let session = server.session().await;
    let id = server.asked(&session).await;
    let text_and_answer = json!([{ "text": "yes" }, answer(&id, json!(true))[0]]);
    for (parts, kind) in [
        (json!([]), "bad-message"),
        (text_and_answer, "bad-message"),
        (answer(&id, json!("yes")), "bad-message"),
        (answer(&id, json!(1)), "bad-message"),
        (answer("nobody", json!(true)), "bad-message"),
        (json!([{ "inlineData": { "data": "" } }]), "bad-message"),
    ] {
        let (status, problem) = server.run("both", &session, parts.clone()).await;
        assert_eq!(
            (status, &problem["type"]),
            (400, &json!(format!("urn:sayback:{kind}"))),
            "{parts} {problem}"
        );
    }
    assert_eq!(server.run("both", "nobody", json!([{ "text": "hello" }])).await.0, 404);
    assert_eq!(server.queue.open().await.unwrap().len(), 1, "it is still open");
    // ADK-12: the right id under another name runs nothing either.
    let named =
        json!([{ "functionResponse": { "id": id, "name": "pay", "response": { "confirmed": true } } }]);
    assert_eq!(server.run("both", &session, named).await.0, 200);
    assert_eq!((server.runs(), server.queue.open().await.unwrap().len()), (0, 1));
    let (status, events) = server.run("both", &session, answer(&id, json!(true))).await;
    assert_eq!((status, server.runs()), (200, 1), "{events}");
    // ADK-16
    assert_eq!(server.run("both", &session, answer(&id, json!(true))).await, (200, json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_belong_to_apps_and_answers_to_those_who_may_approve() {
    let server = start(None).await;
    let session = server.session().await;
    let path = format!("/apps/bank/users/u/sessions/{session}");
    for who in ["reader", "approver", "nobody"] {
        let status = if who == "nobody" { 401 } else { 403 };
        assert_eq!(server.ask(who, "GET", &path, None).await.0, status, "{who}");
        assert_eq!(server.ask(who, "DELETE", &path, None).await.0, status, "{who}");
        assert_eq!(server.ask(who, "POST", "/apps/bank/users/u/sessions", None).await.0, status, "{who}");
        assert_eq!(server.run(who, &session, json!([{ "text": "hello" }])).await.0, status, "{who}");
    }
    let id = server.asked(&session).await;
    assert_eq!(server.run("app", &session, answer(&id, json!(true))).await.0, 403);
    assert_eq!(server.runs(), 0);
    // Another user's session is none of theirs.
    assert_eq!(server.ask("app", "GET", &path.replace("/u/", "/v/"), None).await.0, 404);
    assert_eq!(server.ask("app", "POST", &path, None).await.0, 409);
    assert_eq!(server.ask("app", "POST", "/apps/nobody/users/u/sessions", None).await.0, 404);
    assert_eq!(server.ask("app", "POST", "/apps/bank/users/a%2Fb/sessions", None).await.0, 400);
    let (_, list) = server.ask("app", "GET", "/apps/bank/users/u/sessions", None).await;
    assert_eq!((list[0]["id"].as_str(), &list[0]["events"]), (Some(session.as_str()), &json!([])));
    // A session that is deleted takes its requests with it.
    assert_eq!(server.ask("app", "DELETE", &path, None).await.0, 200);
    assert_eq!(server.ask("app", "GET", &path, None).await.0, 404);
    let late = server
        .ask("approver", "POST", &format!("/v1/approvals/{id}"), Some(json!({ "confirmed": true })))
        .await;
    assert_eq!((late.0, server.runs()), (410, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_one_by_one_as_server_sent_events() {
    let server = start(None).await;
    let session = server.session().await;
    let message = json!({ "role": "user", "parts": [{ "text": "please pay" }] });
    let body = json!({ "app_name": "bank", "user_id": "u", "session_id": session, "new_message": message });
    let sent = server.server.ask("POST", "/run_sse").bearer_auth("app").json(&body).send();
    let text = sent.await.unwrap().text().await.unwrap();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let names: Vec<&Value> =
        events.iter().map(|event| &event["content"]["parts"][0]["functionCall"]["name"]).collect();
    assert_eq!(names, [&json!("pay"), &json!("adk_request_confirmation"), &Value::Null]);
    assert_eq!(events[2]["actions"]["skipSummarization"], json!(true));
    assert!(
        events
            .iter()
            .all(|event| event["author"] == "teller" && event["invocationId"] == events[0]["invocationId"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn adk_22_a_call_that_is_answered_before_it_is_looked_at_asks_nobody() {
    let server = start(Some(Arc::new(Answers))).await;
    let session = server.session().await;
    let (_, events) = server.run("app", &session, json!([{ "text": "please pay" }])).await;
    let response = &events[1]["content"]["parts"][0]["functionResponse"]["response"];
    assert_eq!(response, &json!({ "error": "The bank is closed." }));
    assert!(server.queue.open().await.unwrap().is_empty() && server.runs() == 0);
}

/// All that a run tells, as text.
async fn told(run: Run) -> String {
    Value::from(run.all().await).to_string()
}

// Whoever sent it cannot have read the question: it was told by the run that it waited for.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_while_another_run_goes_on_is_no_yes_to_what_that_asks() {
    let sessions = Sessions::new(Arc::new(OneDesk(Arc::new(booking_desk()))), ApprovalQueue::default());
    let key = SessionKey { app: "bank".to_owned(), user: "u".to_owned(), id: "s".to_owned() };
    sessions.create(("bank", "u"), Some("s".to_owned()), json!({})).await.unwrap();
    let says =
        |text: &str| -> Content { serde_json::from_value(json!({ "parts": [{ "text": text }] })).unwrap() };
    let (please, yes) = (says("please book"), says("yes"));
    let first = sessions.run(&key, &please, "ann").await.unwrap();
    let mut early = Box::pin(sessions.run(&key, &yes, "ann"));
    assert!(futures::poll!(early.as_mut()).is_pending(), "it waits for its turn");
    assert!(told(first).await.contains("Shall I book Thursday?"));
    assert!(!told(early.await.unwrap()).await.contains("Booked."));
    assert!(told(sessions.run(&key, &yes, "ann").await.unwrap()).await.contains("Booked."));
}
