//! What the tests of the API share: desks without sound, a server on a port of its own, and a client.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use sayback_core::{Policy, Speak};
use sayback_runtime::agent::Agent;
use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::calls::{LineControl, NotOnThisLine};
use sayback_runtime::clock::Clock;
use sayback_runtime::ledger::{Ledger, LedgerOptions};
use sayback_runtime::line::Line;
use sayback_runtime::llm::{Llm, LlmError, LlmEvent, LlmRequest, LlmStream};
use sayback_runtime::switchboard::{Asked, Desk, Desks, Limits, ListedAgent, NotNow, Started, Switchboard};
use sayback_server::adk::Sessions;
use sayback_server::{Access, Api, HttpLimits, Limiter, Role, Token, router, serve};
use serde_json::Value;
use tokio::net::TcpListener;

#[derive(Debug)]
struct Nothing;

#[async_trait::async_trait]
impl Llm for Nothing {
    fn name(&self) -> String {
        "nothing".to_owned()
    }

    async fn stream(&self, _request: LlmRequest) -> Result<LlmStream, LlmError> {
        Ok(futures::stream::iter([Ok(LlmEvent::Done)]).boxed())
    }
}

/// A line that keeps what is said to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(pub(crate) Arc<Mutex<Vec<String>>>);

impl Line for Said {
    fn speak(&mut self, speak: Speak) {
        self.0.lock().unwrap().push(speak.text);
    }
}

impl LineControl for Said {
    fn press(&self, digits: &str) -> Result<(), NotOnThisLine> {
        self.0.lock().unwrap().push(format!("keys {digits}"));
        Ok(())
    }

    fn mute(&self, muted: bool) -> Result<(), NotOnThisLine> {
        self.0.lock().unwrap().push(format!("muted {muted}"));
        Ok(())
    }

    fn transfer(&self, _to: &str) -> Result<(), NotOnThisLine> {
        Err(NotOnThisLine { transport: "a test", what: "be transferred" })
    }
}

#[derive(Debug)]
pub(crate) struct OneDesk(pub(crate) Arc<Desk>);

#[async_trait::async_trait]
impl Desks for OneDesk {
    async fn find(&self, _asked: &Asked) -> Result<Arc<Desk>, NotNow> {
        Ok(Arc::clone(&self.0))
    }

    fn listed(&self) -> Vec<ListedAgent> {
        vec![ListedAgent { called: "*".to_owned(), agent: self.0.agent.name.clone() }]
    }
}

pub(crate) fn desk() -> Desk {
    let mut policy = Policy::default();
    policy.turn.silence_followup = None;
    let agent = Agent {
        name: "desk".to_owned(),
        language: "en".to_owned(),
        greeting: Some("Hello.".to_owned()),
        instructions: String::new(),
        policy,
        skills: Vec::new(),
    };
    Desk { assumed_loop: Duration::from_millis(350), ..Desk::silent(agent, Arc::new(|| Arc::new(Nothing))) }
}

pub(crate) fn board() -> Switchboard {
    board_of(desk())
}

pub(crate) fn board_of(desk: Desk) -> Switchboard {
    Switchboard::new(Arc::new(OneDesk(Arc::new(desk))), None, Limits { calls: 2, ..Limits::default() })
}

pub(crate) async fn begin(board: &Switchboard) -> (Started, Said) {
    let asked = Asked { transport: "test".to_owned(), from: "anna".to_owned(), ..Asked::default() };
    let admitted = board.admit(asked).await.unwrap();
    let said = Said::default();
    let control: Arc<dyn LineControl> = Arc::new(said.clone());
    (admitted.start(Box::new(said.clone()), Some(control), Clock::start()), said)
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) client: reqwest::Client,
}

pub(crate) async fn start(board: &Switchboard, tokens: Vec<Token>) -> Server {
    start_with(board, tokens, ApprovalQueue::default()).await
}

pub(crate) async fn start_with(board: &Switchboard, tokens: Vec<Token>, approvals: ApprovalQueue) -> Server {
    start_api(tokens, |access| api(board, access, approvals)).await
}

pub(crate) fn api(board: &Switchboard, access: Arc<Access>, approvals: ApprovalQueue) -> Api {
    Api {
        board: board.clone(),
        access,
        dialer: None,
        browsers: None,
        recordings: None,
        gauges: Vec::new(),
        sessions: Sessions::new(Arc::new(OneDesk(Arc::new(desk()))), approvals.clone()),
        approvals,
        ledger: Ledger::in_memory(LedgerOptions::default()).unwrap(),
        conversations: None,
        limiter: Arc::new(Limiter::new(HttpLimits::default())),
    }
}

pub(crate) async fn start_api(tokens: Vec<Token>, api: impl FnOnce(Arc<Access>) -> Api) -> Server {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let access = Arc::new(Access::new(tokens, address).unwrap());
    tokio::spawn(serve(listener, router(api(access), axum::Router::new()), std::future::pending()));
    Server { address, client: reqwest::Client::new() }
}

impl Server {
    pub(crate) fn ask(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        self.client.request(method.parse().unwrap(), url)
    }

    pub(crate) async fn status(&self, method: &str, path: &str) -> u16 {
        self.ask(method, path).send().await.unwrap().status().as_u16()
    }

    /// What a token gets for what it sends.
    pub(crate) async fn with(
        &self,
        token: &str,
        (method, path): (&str, &str),
        body: Option<Value>,
    ) -> (u16, Value) {
        let mut request = self.ask(method, path).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = tokio::time::timeout(Duration::from_secs(30), request.send()).await.unwrap().unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    pub(crate) async fn act(&self, call: &str, body: Value) -> (u16, String) {
        let path = format!("/v1/calls/{call}/actions");
        let answer = self.ask("POST", &path).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

/// A token that is its own name.
pub(crate) fn token(name: &str, roles: &[Role]) -> Token {
    Token::new(name, name, roles)
}
