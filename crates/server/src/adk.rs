//! The wire of Google's Agent Development Kit (`google-adk` 2.12.0) for text sessions, so that what speaks to an ADK
//! server can speak to this one.
//!
//! | route | |
//! |---|---|
//! | `POST`, `GET /apps/{app}/users/{user}/sessions` | makes a session; lists a user's |
//! | `POST`, `GET`, `DELETE /apps/{app}/users/{user}/sessions/{id}` | makes one of that id; shows it; ends it |
//! | `POST /run`, `POST /run_sse` | a message, and the events that come of it: as a list, or one by one |
//!
//! All need the role `app`; a message that answers a request for confirmation needs `approve` as well.
//!
//! The ADK coerces, runs twice and forgets in places; what is different here, on purpose, is in docs/approvals.md.

mod kept;
mod log;
mod message;
mod sessions;

use std::convert::Infallible;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse;
use axum::response::{IntoResponse, Response, Sse};
use futures::StreamExt;
use serde::Deserialize;
use serde_json::Value;

use crate::access::Who;
use crate::body::{Body, MaybeBody, Object};
use crate::{Api, Problem, Role};

pub use message::{Content, FunctionResponse, MessageError, Part};
pub use sayback_runtime::sessions::SessionKey;
pub use sessions::{Run, SessionError, Sessions};

/// What may stand in the request for a session.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct NewSession {
    #[serde(default, alias = "sessionId")]
    session_id: Option<String>,
    #[serde(default)]
    state: Option<serde_json::Map<String, Value>>,
    #[serde(default)]
    events: Option<Vec<Value>>,
}

/// What may stand in a request for a run. What else an ADK client sends is of no use here.
#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    #[serde(alias = "appName")]
    app_name: String,
    #[serde(alias = "userId")]
    user_id: String,
    #[serde(alias = "sessionId")]
    session_id: String,
    #[serde(alias = "newMessage")]
    new_message: Object<Content>,
}

pub(crate) async fn create(
    State(api): State<Api>,
    Path((app, user)): Path<(String, String)>,
    MaybeBody(body): MaybeBody<NewSession>,
) -> Result<Json<Value>, Problem> {
    let NewSession { session_id, state, events } = body;
    if events.is_some_and(|events| !events.is_empty()) {
        let detail = "a session cannot begin with events of another one; leave `events` out";
        return Err(Problem::bad("events-not-taken", detail));
    }
    let state = Value::Object(state.unwrap_or_default());
    Ok(Json(api.sessions.create((&app, &user), session_id, state).await?))
}

pub(crate) async fn create_named(
    State(api): State<Api>,
    Path((app, user, id)): Path<(String, String, String)>,
    MaybeBody(state): MaybeBody<serde_json::Map<String, Value>>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(api.sessions.create((&app, &user), Some(id), Value::Object(state)).await?))
}

pub(crate) async fn list(
    State(api): State<Api>,
    Path((app, user)): Path<(String, String)>,
) -> Result<Json<Vec<Value>>, Problem> {
    Ok(Json(api.sessions.list(&app, &user).await?))
}

pub(crate) async fn show(
    State(api): State<Api>,
    Path((app, user, id)): Path<(String, String, String)>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(api.sessions.show(&SessionKey { app, user, id }).await?))
}

pub(crate) async fn end(
    State(api): State<Api>,
    Path((app, user, id)): Path<(String, String, String)>,
) -> Result<Json<Value>, Problem> {
    api.sessions.delete(&SessionKey { app, user, id }).await?;
    Ok(Json(Value::Null))
}

pub(crate) async fn run(
    State(api): State<Api>,
    who: Who,
    Body(body): Body<Asked>,
) -> Result<Json<Vec<Value>>, Problem> {
    Ok(Json(begin(&api, &who, body).await?.all().await))
}

pub(crate) async fn stream(
    State(api): State<Api>,
    who: Who,
    Body(body): Body<Asked>,
) -> Result<Response, Problem> {
    let run = begin(&api, &who, body).await?;
    let events = futures::stream::unfold(run, |mut run| async move {
        let events: Vec<Result<sse::Event, Infallible>> =
            run.next().await?.iter().map(|event| Ok(sse::Event::default().data(event.to_string()))).collect();
        Some((futures::stream::iter(events), run))
    });
    Ok(Sse::new(events.flatten()).into_response())
}

async fn begin(api: &Api, who: &Who, body: Asked) -> Result<Run, Problem> {
    let Asked { app_name: app, user_id: user, session_id: id, new_message: Object(new_message) } = body;
    if new_message.parts.iter().any(|part| part.function_response.is_some()) {
        who.may_one_of(&[Role::Approve])?;
    }
    Ok(api.sessions.run(&SessionKey { app, user, id }, &new_message, who.name()).await?)
}

impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        let detail = error.to_string();
        match error {
            SessionError::Unknown(_) => Self::not_found("no-such-session", detail),
            SessionError::Exists(_) => Self::new(StatusCode::CONFLICT, "session-exists", detail),
            SessionError::Name(_) => Self::bad("bad-name", detail),
            SessionError::Full => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-sessions", detail).after(60)
            }
            SessionError::Agent(error) => error.into(),
            SessionError::Message(_) => Self::bad("bad-message", detail),
            SessionError::Approval(error) => error.into(),
            SessionError::Store(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store-failed", detail).after(5)
            }
            SessionError::Unreadable(..) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "session-unreadable", detail)
            }
            SessionError::Over(_) => Self::new(StatusCode::GONE, "session-over", detail),
        }
    }
}
