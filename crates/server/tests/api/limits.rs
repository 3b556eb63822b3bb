//! How much one token and one address may ask for, over HTTP.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use sayback_core::Event;
use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::switchboard::Switchboard;
use sayback_server::{Api, Bounds, HttpLimits, Limiter, Role};
use serde_json::{Value, json};

use crate::support::{Server, api, begin, board, start_api, token};

const PATIENCE: Duration = Duration::from_secs(30);

/// A server with two tokens and these bounds for each.
async fn limited(board: &Switchboard, token_bounds: Bounds, behind_proxy: bool) -> Server {
    let limits = HttpLimits { token: token_bounds, address: token_bounds, behind_proxy };
    let tokens = ["ann", "bob"].map(|name| token(name, &[Role::Read, Role::App])).to_vec();
    start_api(tokens, |access| Api {
        limiter: Arc::new(Limiter::new(limits)),
        ..api(board, access, ApprovalQueue::default())
    })
    .await
}

fn bounds(requests: u32, starts: u32, streams: u32) -> Bounds {
    let at = |number| NonZeroU32::new(number).unwrap();
    Bounds { requests: at(requests), starts: at(starts), streams: at(streams) }
}

/// What is seen of them at `/metrics`.
async fn figure(server: &Server, name: &str) -> String {
    let figures =
        server.ask("GET", "/metrics").bearer_auth("bob").send().await.unwrap().text().await.unwrap();
    let line = figures.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
    line.split(' ').next_back().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_asks_too_often_is_told_when_to_come_back_and_others_go_on() {
    let server = limited(&board(), bounds(2, 9, 9), false).await;
    let mut limited = None;
    // As many as there is no time for at two in a second.
    for _ in 0..2_000 {
        let answer = server.ask("GET", "/v1/calls").bearer_auth("ann").send().await.unwrap();
        if answer.status().as_u16() == 429 {
            limited = Some(answer);
            break;
        }
    }
    let limited = limited.unwrap();
    assert_eq!(limited.headers()["retry-after"], "1");
    assert_eq!(limited.headers()["content-type"], "application/problem+json");
    let told: Value = limited.json().await.unwrap();
    assert_eq!(told["type"], json!("urn:sayback:too-many-requests"));
    let other = server.ask("GET", "/v1/calls").bearer_auth("bob").send().await.unwrap();
    assert_eq!(other.status().as_u16(), 200);
    assert_ne!(figure(&server, "sayback_http_requests_limited_total").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_begins_so_many_conversations_and_no_more() {
    let board = board();
    let server = limited(&board, bounds(1_000, 1, 9), false).await;
    let open = || server.with("ann", ("POST", "/v1/chats"), Some(json!({})));
    assert_eq!(open().await.0, 201);
    let (status, told) = open().await;
    assert_eq!((status, &told["type"]), (429, &json!("urn:sayback:too-many-starts")));
    let session = server.with("ann", ("POST", "/apps/desk/users/u/sessions"), None).await;
    assert_eq!(session.0, 429, "a session is a conversation too");
    assert_eq!(server.with("ann", ("GET", "/v1/calls"), None).await.0, 200);
    assert_eq!(board.calls().live(), 1);
    assert_eq!(figure(&server, "sayback_http_starts_limited_total").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_log_that_is_open_takes_a_place_until_its_reader_is_gone() {
    let board = board();
    let server = limited(&board, bounds(1_000, 9, 1), false).await;
    let (call, _) = begin(&board).await;
    let path = format!("/v1/calls/{}/events", call.id);
    let follow = || server.ask("GET", &path).bearer_auth("ann").send();
    let first = follow().await.unwrap();
    assert_eq!(first.status().as_u16(), 200);
    assert_eq!(figure(&server, "sayback_http_streams").await, "1");
    let second = follow().await.unwrap();
    assert_eq!(second.status().as_u16(), 429);
    assert!(second.text().await.unwrap().contains("too-many-streams"));
    // Whoever hangs up while it is open gives the place back, as does the end of the call.
    drop(first);
    let mut third = follow().await.unwrap();
    let again = async {
        while third.status().as_u16() == 429 {
            call.call.send(Event::Say { text: "So that somebody notices.".to_owned() }).await.unwrap();
            third = follow().await.unwrap();
        }
        third
    };
    let third = tokio::time::timeout(PATIENCE, again).await.unwrap();
    call.call.send(Event::HungUp).await.unwrap();
    tokio::time::timeout(PATIENCE, third.text()).await.unwrap().unwrap();
    assert_eq!(figure(&server, "sayback_http_streams").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_the_address_is_what_the_proxy_added_last() {
    let server = limited(&board(), bounds(1, 9, 9), true).await;
    let ask = |forwarded: &str| server.ask("GET", "/").header("x-forwarded-for", forwarded).send();
    let mut limited = false;
    for n in 0..2_000 {
        // Whatever somebody writes in front of it themselves does not make them another.
        let answer = ask(&format!("10.0.0.{}, 192.0.2.1", n % 250)).await.unwrap();
        limited |= answer.status().as_u16() == 429;
        if limited {
            break;
        }
    }
    assert!(limited);
    assert_eq!(ask("192.0.2.1, 192.0.2.2").await.unwrap().status().as_u16(), 200);
    // Without a proxy that is nobody's word, and this machine is not counted.
    let plain = self::limited(&board(), bounds(1, 9, 9), false).await;
    for _ in 0..20 {
        let answer = plain.ask("GET", "/").header("x-forwarded-for", "192.0.2.1").send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
    }
}
