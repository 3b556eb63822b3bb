//! Conversations in text over HTTP: to try an agent without a telephone. A conversation is a call whose caller writes.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sayback_core::{Event, Rewind};
use sayback_runtime::chat::{Chat, ChatView, NotUndone};
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::{Asked, Resumed};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::access::Who;
use crate::body::Body;
use crate::{Api, Problem, conversations, events};

/// Longest message, in letters.
const LONGEST: usize = 4_000;

/// Whom somebody wants to write to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Opening {
    /// An agent by its name in `[agents]`.
    #[serde(default = "anybody")]
    agent: String,
    /// A stored conversation that is to go on, begun at whichever server.
    #[serde(default)]
    resume: Option<String>,
}

fn anybody() -> String {
    "*".to_owned()
}

pub(crate) async fn open(
    State(api): State<Api>,
    who: Who,
    Body(body): Body<Opening>,
) -> Result<Response, Problem> {
    let Opening { agent, resume } = body;
    let asked =
        Asked { transport: "chat".to_owned(), to: agent, from: who.name().to_owned(), ..Asked::default() };
    let (id, agent) = match resume {
        Some(id) => go_on(&api, asked, &id).await?,
        None => {
            let admitted = api.board.admit(asked).await?;
            let agent = admitted.desk().agent.name.clone();
            (admitted.start_chat(Clock::start()), agent)
        }
    };
    tracing::info!("{} writes to {agent}: {id}", who.name());
    let location = format!("/v1/chats/{id}");
    let body = Json(json!({ "chat": id, "agent": agent }));
    Ok((StatusCode::CREATED, [("location", location)], body).into_response())
}

/// Opens a stored conversation again; gives its id and its agent's name. Whoever else has it open writes and runs nothing
/// in it any more.
async fn go_on(api: &Api, asked: Asked, id: &str) -> Result<(String, String), Problem> {
    let kept = conversations::kept(api)?;
    let unknown = || conversations::unknown(id);
    // A call is gone with its caller: who writes is somebody else.
    let looked = kept.stored(id).await?.filter(|_| id.starts_with("chat-")).ok_or_else(unknown)?;
    let conflict = |kind, detail| Problem::new(StatusCode::CONFLICT, kind, detail);
    let claimed = api.board.calls().claim(id);
    let claimed =
        claimed.ok_or_else(|| conflict("goes-on", format!("the conversation {id} goes on here")))?;
    let admitted = api.board.admit(asked).await?;
    let agent = admitted.desk().agent.name.clone();
    if agent != looked.agent {
        let detail = format!("the conversation {id} is with {:?}, not with {agent:?}", looked.agent);
        return Err(conflict("another-agent", detail));
    }
    // Before anything is changed: one that cannot be read is left as it is.
    looked.reopening().map_err(|error| conversations::unreadable(&error))?;
    let (stored, journal) = kept.reopen(id, &agent).await?.ok_or_else(unknown)?;
    let conversation = stored.reopening().map_err(|error| conversations::unreadable(&error))?.conversation;
    Ok((admitted.resume_chat(Clock::start(), Resumed { id: claimed, conversation, journal }), agent))
}

/// A conversation, and what ran in it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    chat: String,
    #[serde(flatten)]
    view: ChatView,
    ran: Vec<NotUndone>,
}

pub(crate) async fn show(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<Shown>, Problem> {
    let view = reach(&api, &id)?.view();
    Ok(Json(Shown { chat: id, ran: view.not_undone(0), view }))
}

fn reach(api: &Api, id: &str) -> Result<Chat, Problem> {
    let unknown = |_| Problem::not_found("no-such-chat", format!("there is no conversation {id}"));
    api.board.calls().chat(id).map_err(unknown)
}

/// Its event log, for those who may hold conversations and may not see calls.
pub(crate) async fn follow(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    reach(&api, &id)?;
    events::stream_of(&api, &id, &headers)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    text: String,
    /// The id of the question that it answers.
    answers: Option<String>,
}

pub(crate) async fn write(
    State(api): State<Api>,
    Path(id): Path<String>,
    Body(body): Body<Written>,
) -> Result<StatusCode, Problem> {
    let Written { text, answers } = body;
    let chat = reach(&api, &id)?;
    let text = text.trim().to_owned();
    if text.is_empty() || text.chars().count() > LONGEST {
        return Err(Problem::bad("bad-text", format!("a message has 1 to {LONGEST} letters")));
    }
    // Stamped before the look at what is open: a question that opens between the two began behind it, and whatever closes
    // the one that is meant makes it no answer.
    let message = chat.message(text);
    let open = chat.view().hold.map(|hold| hold.to_string());
    if answers.as_ref().is_some_and(|answers| open.as_ref() != Some(answers)) {
        let is = open.map_or("no question is open".to_owned(), |open| format!("{open} is open"));
        let detail = format!("{is}; nothing was written. GET /v1/chats/{id} tells `question` and `hold`");
        return Err(Problem::new(StatusCode::CONFLICT, "other-question", detail));
    }
    api.board.calls().tell(&id, message)?;
    Ok(StatusCode::ACCEPTED)
}

/// How far a conversation is taken back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Back {
    /// So many items are kept.
    items: u32,
    /// Only says what would not be undone.
    #[serde(default)]
    dry_run: bool,
}

/// Takes a conversation back. What ran is not undone, and does not run again by itself; it is named.
pub(crate) async fn rewind(
    State(api): State<Api>,
    Path(id): Path<String>,
    Body(body): Body<Back>,
) -> Result<Json<serde_json::Value>, Problem> {
    let Back { items, dry_run } = body;
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

pub(crate) async fn end(State(api): State<Api>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    reach(&api, &id)?;
    api.board.calls().tell(&id, Event::HungUp)?;
    Ok(StatusCode::ACCEPTED)
}
