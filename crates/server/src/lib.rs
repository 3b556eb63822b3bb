//! The HTTP side of a server: its calls, their events, what can be done to them, and how it is watched.
//!
//! Everything is a view of the runtime's [switchboard](sayback_runtime::switchboard). This crate may not decide anything
//! about a call and may not know how calls come: SIP and media streams bring routes of their own, and the binary puts
//! them together.
//!
//! | route | role | |
//! |---|---|---|
//! | `GET /healthz` | none | the process lives |
//! | `GET /readyz` | `read` | calls are taken |
//! | `GET /metrics` | `read` | Prometheus |
//! | `GET /` | none | the console: a page that shows what the rest of the API tells |
//! | `GET /v1/access` | any | whose token it is, and its roles |
//! | `GET /v1/agents` | `read` | who answers what |
//! | `GET /v1/calls`, `/v1/calls/{id}` | `read` | calls, and one call |
//! | `GET /v1/calls/{id}/events` | `read` | its event log as server-sent events |
//! | `POST /v1/calls` | `call` | calls somebody |
//! | `POST /v1/calls/{id}/actions` | `call` | says, transfers, presses keys, mutes, ends |
//! | `DELETE /v1/calls/{id}` | `call` | ends it |
//! | `GET /v1/approvals`, `/v1/approvals/{id}` | `approve` | what waits for an operator, and one of them |
//! | `POST /v1/approvals/{id}` | `approve` | answers it, once |
//! | `POST /v1/webrtc`, `PATCH` and `DELETE /v1/webrtc/{id}` | `call` | calls from browsers |
//! | `GET /sayback.js`, `/sayback.d.ts` | none | the client for pages |
//! | `POST /v1/chats`, `GET`, `DELETE /v1/chats/{id}` | `app` | a conversation in text |
//! | `POST /v1/chats/{id}/messages`, `…/rewind`, `GET …/events` | `app` | writes in it, takes it back, follows it |
//! | `GET /v1/recordings`, `/v1/recordings/{id}` | `read` | recorded calls |
//! | `GET /v1/recordings/{id}/audio`, `…/events`, `…/evidence` | `read` | what is kept of one |
//! | `POST /v1/recordings/{id}/scenario` | `read` | tells it as a scenario |
//! | `/apps/…`, `POST /run`, `/run_sse` | `app` | text sessions with the wire of Google's ADK: see [`adk`] |

pub mod access;
pub mod adk;
mod approvals;
mod browsers;
mod calls;
mod chats;
pub mod confirmations;
mod console;
mod events;
mod metrics;
pub mod problem;
pub mod recordings;
pub mod webhook;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Uri};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::switchboard::{NotNow, Switchboard};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub use access::{Access, Role, Token};
pub use browsers::{BrowserAnswer, BrowserError, BrowserOffer, Browsers};
pub use metrics::Gauge;
pub use problem::Problem;

/// Largest body that is taken, in bytes.
const LARGEST: usize = 64 * 1024;

/// A call that we are to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outbound {
    /// Which agent speaks, by its name in `[agents]`.
    pub agent: String,
    /// Who is called: a number or an address.
    pub to: String,
    /// Who calls, as it is shown.
    #[serde(default)]
    pub from: String,
    /// Headers of the call.
    #[serde(default)]
    pub headers: std::collections::BTreeMap<String, String>,
    /// Variables for the agent's templates.
    #[serde(default)]
    pub vars: std::collections::BTreeMap<String, String>,
}

/// Calls somebody: a transport that can.
#[async_trait::async_trait]
pub trait Dialer: Send + Sync + std::fmt::Debug {
    /// Begins to call, and gives the call's id before anybody has answered.
    ///
    /// # Errors
    /// If it cannot even begin.
    async fn dial(&self, call: Outbound) -> Result<String, DialError>;
}

/// Why a call is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// The switchboard says no.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// That is nobody who can be called.
    #[error("{to:?} cannot be called: {reason}")]
    BadTarget {
        /// Who was to be called.
        to: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing that can call is set up.
    #[error("no trunk is set up to call through; name one in [sip]")]
    NoTrunk,
}

/// What the routes need.
#[derive(Clone, Debug)]
pub struct Api {
    /// The calls.
    pub board: Switchboard,
    /// Who may do what.
    pub access: Arc<Access>,
    /// Who calls out, if anybody can.
    pub dialer: Option<Arc<dyn Dialer>>,
    /// Who takes calls from browsers, if anybody does.
    pub browsers: Option<Arc<dyn Browsers>>,
    /// Where recorded calls are, if any are kept.
    pub recordings: Option<recordings::Recordings>,
    /// Figures of other parts, for `/metrics`.
    pub gauges: Vec<Gauge>,
    /// What waits for an operator.
    pub approvals: ApprovalQueue,
    /// Text sessions with the wire of the ADK.
    pub sessions: adk::Sessions,
}

/// The routes of the API.
pub fn router(api: Api) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics::show))
        .route("/v1/access", get(own_access))
        .route("/v1/agents", get(agents))
        .route("/v1/calls", get(calls::list).post(calls::dial))
        .route("/v1/calls/{id}", get(calls::show).delete(calls::end))
        .route("/v1/calls/{id}/events", get(events::follow))
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/{id}", get(approvals::show).post(approvals::answer))
        .route("/v1/webrtc", post(browsers::offer))
        .route("/v1/webrtc/{id}", axum::routing::patch(browsers::patch).delete(browsers::end))
        .route("/sayback.js", get(|| async { script(CLIENT, "text/javascript; charset=utf-8") }))
        .route("/sayback.d.ts", get(|| async { script(CLIENT_TYPES, "text/plain; charset=utf-8") }))
        .route("/v1/calls/{id}/actions", post(calls::act))
        .merge(chats::routes())
        .merge(recordings::routes())
        .merge(console::routes())
        .merge(adk::routes())
        .fallback(nowhere)
        .method_not_allowed_fallback(not_like_this)
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(axum::middleware::map_response(console::keep_to_itself))
        .with_state(api)
}

async fn ready(State(api): State<Api>, headers: HeaderMap) -> Result<&'static str, Problem> {
    api.access.allow(&headers, Role::Read)?;
    if api.board.is_open() { Ok("ready\n") } else { Err(NotNow::Draining.into()) }
}

/// The client for pages goes with the server that it talks to.
const CLIENT: &str = include_str!("../../../clients/js/sayback.js");
const CLIENT_TYPES: &str = include_str!("../../../clients/js/sayback.d.ts");

fn script(text: &'static str, kind: &'static str) -> impl axum::response::IntoResponse {
    ([("content-type", kind), ("cache-control", "no-cache"), ("x-content-type-options", "nosniff")], text)
}

async fn own_access(State(api): State<Api>, headers: HeaderMap) -> Result<Json<Value>, Problem> {
    let (name, roles) = api.access.who(&headers)?;
    Ok(Json(json!({ "name": name, "roles": roles })))
}

async fn agents(State(api): State<Api>, headers: HeaderMap) -> Result<Json<Value>, Problem> {
    api.access.allow(&headers, Role::Read)?;
    Ok(Json(json!({ "agents": api.board.agents() })))
}

async fn nowhere(uri: Uri) -> Problem {
    Problem::not_found("no-such-route", format!("there is nothing at {}", uri.path()))
}

async fn not_like_this(method: axum::http::Method, uri: Uri) -> Problem {
    Problem::method(format!("{} does not take {method}", uri.path()))
}

/// Answers requests until `over` is done, and then finishes those that have begun.
///
/// # Errors
/// If the socket breaks.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    over: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    // A mark or an event that waits for more to send with it is late.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("a connection keeps Nagle's delay: {error}");
        }
    });
    axum::serve(listener, routes).with_graceful_shutdown(over).await
}
