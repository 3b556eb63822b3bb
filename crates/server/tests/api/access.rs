//! Who may do what, over the whole API: every route of the router's own list, with every role.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::{Asked, Switchboard};
use sayback_server::routes::{self, Needs, Route};
use sayback_server::{
    Api, BrowserAnswer, BrowserError, BrowserOffer, Browsers, DialError, Dialer, Outbound, Role, Token,
};
use serde_json::{Value, json};

use crate::support::{Said, Server, api, begin, board, start, start_api, token};

/// Takes calls from browsers, without any sound.
#[derive(Debug)]
struct Pages(Switchboard);

#[async_trait::async_trait]
impl Browsers for Pages {
    async fn offer(&self, offer: BrowserOffer) -> Result<BrowserAnswer, BrowserError> {
        let BrowserOffer { agent, from, .. } = offer;
        let asked = Asked { transport: "webrtc".to_owned(), to: agent, from, ..Asked::default() };
        let started = self.0.admit(asked).await?.start(Box::new(Said::default()), None, Clock::start());
        Ok(BrowserAnswer { call: started.id, sdp: "v=0\r\n".to_owned(), session: "s".to_owned() })
    }

    async fn patch(
        &self,
        call: &str,
        _session: Option<&str>,
        _fragment: &str,
    ) -> Result<Option<(String, String)>, BrowserError> {
        Err(BrowserError::NoSuchCall(call.to_owned()))
    }

    async fn end(&self, call: &str) -> bool {
        self.0.calls().tell(call, sayback_core::Event::HungUp).is_ok()
    }
}

#[derive(Debug)]
struct Nobody;

#[async_trait::async_trait]
impl Dialer for Nobody {
    async fn dial(&self, call: Outbound) -> Result<String, DialError> {
        Err(DialError::BadTarget { to: call.to, reason: "a test calls nobody".to_owned() })
    }
}

/// A server with a token for each role, named after it, and everything that a route could ask for.
async fn all_roles(board: &Switchboard) -> Server {
    let mut tokens: Vec<Token> = Role::ALL
        .into_iter()
        .filter(|role| *role != Role::Page)
        .map(|role| token(role.name(), &[role]))
        .collect();
    tokens.push(Token { agents: vec!["desk".to_owned()], ..token("page", &[Role::Page]) });
    tokens.push(Token { agents: vec!["desk".to_owned()], ..token("page of another", &[Role::Page]) });
    start_api(tokens, |access| Api {
        browsers: Some(Arc::new(Pages(board.clone()))),
        dialer: Some(Arc::new(Nobody)),
        ..api(board, access, ApprovalQueue::default())
    })
    .await
}

fn filled(path: &str) -> String {
    let named =
        [("{id}", "x"), ("{app}", "desk"), ("{user}", "u"), ("{file}", "app.js"), ("{service}", "plain")];
    named.into_iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value))
}

/// Routes that this crate answers itself.
fn own() -> impl Iterator<Item = Route> {
    routes::all().into_iter().filter(|route| route.needs != Needs::Proof)
}

/// What takes a body, and of which type.
fn takes(route: &Route) -> Option<&'static str> {
    match (route.method, route.path) {
        ("POST", "/v1/recordings/{id}/scenario") => None,
        ("POST", "/v1/webrtc") => Some("application/sdp"),
        ("PATCH", _) => Some("application/trickle-ice-sdpfrag"),
        ("POST", _) => Some("application/json"),
        _ => None,
    }
}

/// Asserts that an answer is a problem with everything that one has.
async fn problem(answer: reqwest::Response, status: u16, kind: &str, of: &str) -> Value {
    assert_eq!(answer.status().as_u16(), status, "{of}");
    assert_eq!(answer.headers()["content-type"], "application/problem+json", "{of}");
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["type"], json!(format!("urn:sayback:{kind}")), "{of}");
    assert_eq!(body["status"], json!(status), "{of}");
    assert!(body["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{of}: {body}");
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_open_to_its_roles_and_to_nobody_else() {
    let board = board();
    let server = all_roles(&board).await;
    let mut seen = 0;
    for route in own() {
        let Route { method, path, needs, .. } = route;
        let of = format!("{method} {path}");
        let ask = |token: Option<&str>| {
            let mut asked = server.ask(method, &filled(path));
            if let Some(kind) = takes(&route) {
                // No body that could be taken: who may not is told so before it is looked at.
                asked = asked.header("content-type", kind).body("{");
            }
            token.into_iter().fold(asked, |asked, token| asked.bearer_auth(token)).send()
        };
        let without = ask(None).await.unwrap();
        if needs == Needs::Nothing {
            assert_eq!(without.status().as_u16(), 200, "{of}");
            continue;
        }
        assert_eq!(without.headers()["www-authenticate"], "Bearer", "{of}");
        problem(without, 401, "no-token", &of).await;
        problem(ask(Some("unknown")).await.unwrap(), 401, "unknown-token", &of).await;
        for role in Role::ALL {
            let may = match needs {
                Needs::OneOf(roles) => roles.contains(&role),
                Needs::Token => true,
                Needs::Nothing | Needs::Proof => unreachable!("looked at above"),
            };
            let answer = ask(Some(role.name())).await.unwrap();
            if may {
                let status = answer.status().as_u16();
                let kind = answer.text().await.unwrap();
                // A page has named no agent here.
                let refused = status == 401 || (status == 403 && !kind.contains("agent-not-yours"));
                assert!(!refused && status < 500, "{role:?} {of}: {status} {kind}");
            } else {
                problem(answer, 403, "role-missing", &format!("{role:?} {of}")).await;
            }
            seen += 1;
        }
    }
    assert!(seen > 150, "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_that_are_not_taken_are_named_and_paths_that_are_not_there_are_not() {
    let server = all_roles(&board()).await;
    let mut by_path: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for route in own() {
        let methods = by_path.entry(route.path).or_default();
        methods.insert(route.method);
        if route.method == "GET" {
            methods.insert("HEAD");
        }
    }
    for (path, methods) in &by_path {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"] {
            if methods.contains(method) {
                continue;
            }
            let answer = server.ask(method, &filled(path)).bearer_auth("read").send().await.unwrap();
            let allow = answer.headers()["allow"].to_str().unwrap().to_owned();
            let allowed: BTreeSet<&str> = allow.split(',').map(str::trim).collect();
            assert_eq!(&allowed, methods, "{method} {path}");
            problem(answer, 405, "method-not-allowed", &format!("{method} {path}")).await;
        }
        for nowhere in [format!("{}/", filled(path)), format!("{}/nowhere/at/all", filled(path))] {
            if nowhere == "//" {
                continue;
            }
            let answer = server.ask("GET", &nowhere).bearer_auth("read").send().await.unwrap();
            problem(answer, 404, "no-such-route", &nowhere).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_another_type_and_those_that_are_too_large_are_refused_by_every_route() {
    let server = start(&board(), vec![]).await;
    let with_browsers = all_roles(&board()).await;
    for route in own() {
        let Some(kind) = takes(&route) else { continue };
        let of = format!("{} {}", route.method, route.path);
        let of_browsers = route.path.starts_with("/v1/webrtc");
        let ask = |kind: &str, body: String| {
            let server = if of_browsers { &with_browsers } else { &server };
            let asked = server.ask(route.method, &filled(route.path)).bearer_auth("call");
            asked.header("content-type", kind).header("if-match", "*").body(body).send()
        };
        let expected = if of_browsers { "wrong-type" } else { "json-wanted" };
        for wrong in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            problem(ask(wrong, "{}".to_owned()).await.unwrap(), 415, expected, &of).await;
        }
        let large = if route.path.starts_with("/v1/confirmations") { 1_100_000 } else { 70_000 };
        let body = format!("\"{}\"", "x".repeat(large));
        problem(ask(kind, body).await.unwrap(), 413, "too-large", &of).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_values_is_no_object_and_approves_nothing() {
    let queue = ApprovalQueue::default();
    queue.request(&crate::calls::approval("a_1")).await.unwrap();
    let board = board();
    let server = start_api(vec![], |access| api(&board, access, queue.clone())).await;
    for body in [json!([true]), json!([true, null, null, null]), json!(true), json!("x"), json!(null)] {
        let answer = server.ask("POST", "/v1/approvals/a_1").json(&body).send().await.unwrap();
        problem(answer, 400, "bad-body", &body.to_string()).await;
    }
    assert_eq!(queue.open().await.unwrap().len(), 1, "it is still open");
    for route in own().filter(|route| takes(route) == Some("application/json")) {
        for body in [json!([]), json!(["desk", "desk", "desk", {}]), json!(["say", "x"])] {
            let answer = server.ask(route.method, &filled(route.path)).json(&body).send().await.unwrap();
            problem(answer, 400, "bad-body", &format!("{} {body}", route.path)).await;
        }
    }
    for nested in [
        json!({ "tool": "pay", "session": "s", "rule": ["observe"] }),
        json!({ "tool": "pay", "session": "s", "confirmations": [["r", "pay"]] }),
    ] {
        let answer = server.ask("POST", "/v1/confirmations/check").json(&nested).send().await.unwrap();
        problem(answer, 400, "bad-body", &nested.to_string()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_or_a_query_that_is_no_text_is_a_problem_like_any_other() {
    let server = start(&board(), vec![]).await;
    for (method, path) in [
        ("GET", "/v1/calls/%FF"),
        ("GET", "/v1/chats/%FF/events"),
        ("DELETE", "/apps/a/users/%FF/sessions/x"),
        ("GET", "/v1/recordings/%C3%28/audio"),
        ("GET", "/console/%FF"),
    ] {
        let answer = server.ask(method, path).send().await.unwrap();
        let status = answer.status().as_u16();
        assert!((400..500).contains(&status), "{path}: {status}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pages_token_calls_its_agents_and_reaches_its_own_calls_only() {
    let board = board();
    let server = all_roles(&board).await;
    let offer = |token: &str, query: &str| {
        let asked = server.ask("POST", &format!("/v1/webrtc{query}")).bearer_auth(token);
        asked.header("content-type", "application/sdp").body("v=0\r\n").send()
    };
    for query in ["", "?agent=", "?agent=*", "?agent=bank", "?agent=desk&agent=bank"] {
        problem(offer("page", query).await.unwrap(), 403, "agent-not-yours", query).await;
    }
    let taken = offer("page", "?agent=desk").await.unwrap();
    assert_eq!(taken.status().as_u16(), 201);
    let own = taken.headers()["location"].to_str().unwrap().to_owned();
    let (other, _) = begin(&board).await;
    let others = format!("/v1/webrtc/{}", other.id);
    for (token, path) in [("page", others.as_str()), ("page of another", own.as_str())] {
        let answer = server.ask("DELETE", path).bearer_auth(token).send().await.unwrap();
        problem(answer, 404, "no-such-call", path).await;
    }
    assert_eq!(board.calls().live(), 2);
    let ended = server.ask("DELETE", &own).bearer_auth("page").send().await.unwrap();
    assert_eq!(ended.status().as_u16(), 200);
    let ended = server.ask("DELETE", &others).bearer_auth("call").send().await.unwrap();
    assert_eq!(ended.status().as_u16(), 200, "whoever may act on all calls may end any");
}
