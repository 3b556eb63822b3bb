//! Approvals over HTTP: what waits for an operator, and their answers.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use sayback_runtime::approvals::{Approval, ApprovalError, Decision};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::Who;
use crate::body::Body;
use crate::{Api, Problem};

/// Longest reason or name, in letters.
const LONGEST: usize = 1_000;

#[derive(Debug, Serialize)]
pub(crate) struct List {
    approvals: Vec<Approval>,
}

pub(crate) async fn list(State(api): State<Api>) -> Result<Json<List>, Problem> {
    Ok(Json(List { approvals: api.approvals.open().await? }))
}

pub(crate) async fn show(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<Approval>, Problem> {
    Ok(Json(api.approvals.get(&id).await?))
}

/// An answer as it is sent. `confirmed` is a JSON boolean and nothing else: what only looks like a yes is none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    confirmed: bool,
    #[serde(default)]
    payload: Option<Value>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    by: Option<String>,
}

pub(crate) async fn answer(
    State(api): State<Api>,
    Path(id): Path<String>,
    who: Who,
    Body(body): Body<Answer>,
) -> Result<Json<Approval>, Problem> {
    let Answer { confirmed, payload, reason, by } = body;
    for text in [&reason, &by].into_iter().flatten() {
        if text.chars().count() > LONGEST {
            let detail = format!("a reason and a name have at most {LONGEST} letters");
            return Err(Problem::bad("bad-text", detail));
        }
    }
    // Whose token it is stands in the log; who they say they are goes with the answer.
    let by = by.filter(|by| !by.trim().is_empty()).or_else(|| Some(who.name().to_owned()));
    let approval = api.approvals.answer(&id, Decision { confirmed, payload, reason, by }).await?;
    tracing::info!("{} answers the approval {id:?}: {}", who.name(), if confirmed { "yes" } else { "no" });
    Ok(Json(approval))
}

impl From<ApprovalError> for Problem {
    fn from(error: ApprovalError) -> Self {
        let detail = error.to_string();
        match error {
            ApprovalError::Unknown { .. } => Self::not_found("no-such-approval", detail),
            ApprovalError::Answered { .. } => Self::new(StatusCode::CONFLICT, "answered-already", detail),
            ApprovalError::Exists { .. } => Self::new(StatusCode::CONFLICT, "asked-already", detail),
            ApprovalError::Gone { .. } => Self::new(StatusCode::GONE, "no-longer-wanted", detail),
            ApprovalError::Store(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store-failed", detail).after(5)
            }
        }
    }
}
