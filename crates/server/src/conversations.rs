//! Stored conversations over HTTP: what was said, and what came of the runs in them. Whichever server they were on, each on
//! the same database shows them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use sayback_core::Item;
use sayback_runtime::conversations::{Conversations, Listed, StoredRun};
use sayback_runtime::journal::JournalError;
use serde::{Deserialize, Serialize};

use crate::{Api, Problem};

/// So many are listed.
const MOST: u32 = 200;

#[derive(Debug, Serialize)]
pub(crate) struct List {
    conversations: Vec<Listed>,
}

pub(crate) async fn list(State(api): State<Api>) -> Result<Json<List>, Problem> {
    Ok(Json(List { conversations: kept(&api)?.latest(MOST).await? }))
}

/// A conversation as it was stored last, and its confirmed runs.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    id: String,
    agent: String,
    changed: String,
    items: Vec<Item>,
    runs: Vec<StoredRun>,
}

/// What is shown of a conversation's text.
#[derive(Debug, Deserialize)]
struct Said {
    items: Vec<Item>,
}

pub(crate) async fn show(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<Shown>, Problem> {
    let found = kept(&api)?.stored(&id).await?;
    let stored = found.ok_or_else(|| unknown(&id))?;
    let Said { items } = serde_json::from_str(&stored.body).map_err(|error| unreadable(&error))?;
    Ok(Json(Shown { id, agent: stored.agent, changed: stored.changed, items, runs: stored.runs }))
}

/// Where they are.
pub(crate) fn kept(api: &Api) -> Result<&Arc<dyn Conversations>, Problem> {
    let detail = "conversations are not stored here; write [store] into the server's file";
    api.conversations.as_ref().ok_or_else(|| Problem::not_found("no-store", detail))
}

/// There is none of that id.
pub(crate) fn unknown(id: &str) -> Problem {
    Problem::not_found("no-such-conversation", format!("no conversation {id} is stored here"))
}

/// It is there, and nobody can read it.
pub(crate) fn unreadable(error: &serde_json::Error) -> Problem {
    let detail = format!("it cannot be read, and was written by another version or by hand: {error}");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "conversation-unreadable", detail)
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        let detail = error.to_string();
        match error {
            JournalError::OpenedElsewhere => Self::new(StatusCode::CONFLICT, "opened-elsewhere", detail),
            JournalError::Failed(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store-failed", detail).after(5)
            }
        }
    }
}
