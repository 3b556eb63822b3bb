//! Calls over HTTP: seen, made, spoken in, ended.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sayback_core::Event;
use sayback_runtime::calls::CallView;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::access::Who;
use crate::body::Body;
use crate::{Api, DialError, Outbound, Problem};

/// Longest text that can be said at once, in letters.
const LONGEST: usize = 2_000;
/// Keys that can be pressed at once.
const KEYS: usize = 64;

#[derive(Debug, Serialize)]
pub(crate) struct List {
    calls: Vec<CallView>,
}

pub(crate) async fn list(State(api): State<Api>) -> Result<Json<List>, Problem> {
    Ok(Json(List { calls: api.board.calls().list() }))
}

pub(crate) async fn show(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<CallView>, Problem> {
    Ok(Json(api.board.calls().get(&id)?))
}

pub(crate) async fn end(
    State(api): State<Api>,
    Path(id): Path<String>,
    who: Who,
) -> Result<StatusCode, Problem> {
    api.board.calls().tell(&id, Event::EndRequested)?;
    tracing::info!("{} ends the call {id:?}", who.name());
    Ok(StatusCode::ACCEPTED)
}

/// What can be done to a call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action", deny_unknown_fields)]
pub(crate) enum Action {
    /// The agent says this.
    Say { text: String },
    /// The caller is handed over.
    Transfer { to: String },
    /// Keys are pressed on the line.
    Dtmf { digits: String },
    /// The caller hears nothing of the agent, or hears it again.
    Mute { on: bool },
    /// The call ends.
    End {},
}

impl Action {
    /// For the log: what is said and which keys are pressed is nobody's business there.
    fn name(&self) -> &'static str {
        match self {
            Self::Say { .. } => "say",
            Self::Transfer { .. } => "transfer",
            Self::Dtmf { .. } => "dtmf",
            Self::Mute { .. } => "mute",
            Self::End {} => "end",
        }
    }
}

pub(crate) async fn act(
    State(api): State<Api>,
    Path(id): Path<String>,
    who: Who,
    Body(body): Body<Action>,
) -> Result<StatusCode, Problem> {
    let action = body;
    tracing::info!("{} acts on the call {id:?}: {}", who.name(), action.name());
    let calls = api.board.calls();
    match action {
        Action::Say { text } => {
            if text.trim().is_empty() || text.chars().count() > LONGEST {
                let detail = format!("a text has 1 to {LONGEST} letters");
                return Err(Problem::bad("bad-text", detail));
            }
            calls.tell(&id, Event::Say { text })?;
        }
        Action::Transfer { to } => calls.line(&id)?.transfer(&to).map_err(not_here)?,
        Action::Dtmf { digits } => {
            let is_key = |key: char| matches!(key, '0'..='9' | '*' | '#' | 'A'..='D');
            if digits.is_empty() || digits.len() > KEYS || !digits.chars().all(is_key) {
                let detail = format!("digits are 1 to {KEYS} of 0-9, *, # and A-D");
                return Err(Problem::bad("bad-digits", detail));
            }
            calls.line(&id)?.press(&digits).map_err(not_here)?;
        }
        Action::Mute { on } => calls.line(&id)?.mute(on).map_err(not_here)?,
        Action::End {} => calls.tell(&id, Event::EndRequested)?,
    }
    Ok(StatusCode::ACCEPTED)
}

fn not_here(error: sayback_runtime::calls::NotOnThisLine) -> Problem {
    sayback_runtime::calls::CallError::from(error).into()
}

pub(crate) async fn dial(
    State(api): State<Api>,
    who: Who,
    Body(body): Body<Outbound>,
) -> Result<Response, Problem> {
    let call = body;
    let dialer = api.dialer.as_ref().ok_or(DialError::NoTrunk)?;
    tracing::info!("{} calls {:?}", who.name(), call.to);
    let id = dialer.dial(call).await?;
    let location = format!("/v1/calls/{id}");
    Ok((StatusCode::CREATED, [("location", location)], Json(json!({ "call": id }))).into_response())
}
