//! Conversations in text over HTTP: to try an agent without a telephone. A conversation is a call whose caller writes.

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use sayback_core::{Event, Rewind};
use sayback_runtime::chat::{Chat, ChatView, NotUndone};
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::Asked;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::calls::unreadable;
use crate::{Api, Problem, Role, events};

/// Longest message, in letters.
const LONGEST: usize = 4_000;

/// Whom somebody wants to write to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Opening {
    /// An agent by its name in `[agents]`.
    #[serde(default = "anybody")]
    agent: String,
}

fn anybody() -> String {
    "*".to_owned()
}

pub(crate) fn routes() -> Router<Api> {
    Router::new()
        .route("/v1/chats", post(open))
        .route("/v1/chats/{id}", get(show).delete(end))
        .route("/v1/chats/{id}/events", get(follow))
        .route("/v1/chats/{id}/messages", post(write))
        .route("/v1/chats/{id}/rewind", post(rewind))
}

async fn open(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Result<Json<Opening>, JsonRejection>,
) -> Result<Response, Problem> {
    let who = api.access.allow(&headers, Role::App)?;
    let Json(Opening { agent }) = body.map_err(unreadable)?;
    let asked = Asked { transport: "chat".to_owned(), to: agent, from: who.to_owned(), ..Asked::default() };
    let admitted = api.board.admit(asked).await?;
    let agent = admitted.desk().agent.name.clone();
    let id = admitted.start_chat(Clock::start());
    tracing::info!("{who} writes to {agent}: {id}");
    let location = format!("/v1/chats/{id}");
    let body = Json(json!({ "chat": id, "agent": agent }));
    Ok((StatusCode::CREATED, [("location", location)], body).into_response())
}

/// A conversation, and what ran in it.
#[derive(Debug, Serialize)]
struct Shown {
    chat: String,
    #[serde(flatten)]
    view: ChatView,
    ran: Vec<NotUndone>,
}

async fn show(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Shown>, Problem> {
    api.access.allow(&headers, Role::App)?;
    let view = reach(&api, &id)?.view();
    Ok(Json(Shown { chat: id, ran: view.not_undone(0), view }))
}

fn reach(api: &Api, id: &str) -> Result<Chat, Problem> {
    let unknown = |_| Problem::not_found("no-such-chat", format!("there is no conversation {id}"));
    api.board.calls().chat(id).map_err(unknown)
}

/// Its event log, for those who may hold conversations and may not see calls.
async fn follow(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    api.access.allow(&headers, Role::App)?;
    reach(&api, &id)?;
    events::stream_of(&api, &id, &headers)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    text: String,
}

async fn write(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Result<Json<Written>, JsonRejection>,
) -> Result<StatusCode, Problem> {
    api.access.allow(&headers, Role::App)?;
    let Json(Written { text }) = body.map_err(unreadable)?;
    let chat = reach(&api, &id)?;
    let text = text.trim().to_owned();
    if text.is_empty() || text.chars().count() > LONGEST {
        return Err(Problem::bad("bad-text", format!("a message has 1 to {LONGEST} letters")));
    }
    api.board.calls().tell(&id, chat.message(text))?;
    Ok(StatusCode::ACCEPTED)
}

/// How far a conversation is taken back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Back {
    /// So many items are kept.
    items: u32,
    /// Only says what would not be undone.
    #[serde(default)]
    dry_run: bool,
}

/// Takes a conversation back. What ran is not undone, and does not run again by itself; it is named.
async fn rewind(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Result<Json<Back>, JsonRejection>,
) -> Result<Json<serde_json::Value>, Problem> {
    api.access.allow(&headers, Role::App)?;
    let Json(Back { items, dry_run }) = body.map_err(unreadable)?;
    let view = reach(&api, &id)?.view();
    let most = view.items.len();
    if items as usize > most {
        let detail = format!("there are {most} items, so `items` is 0 to {most}; nothing was taken back");
        return Err(Problem::bad("bad-rewind", detail));
    }
    if !dry_run {
        api.board.calls().tell(&id, Event::Rewound(Rewind { items }))?;
    }
    Ok(Json(json!({ "items": items, "not_undone": view.not_undone(items) })))
}

async fn end(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    api.access.allow(&headers, Role::App)?;
    reach(&api, &id)?;
    api.board.calls().tell(&id, Event::HungUp)?;
    Ok(StatusCode::ACCEPTED)
}
