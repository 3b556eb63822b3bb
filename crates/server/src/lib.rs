//! The HTTP side of a server: its calls, their events, what can be done to them, and how it is watched.
//!
//! Everything is a view of the runtime's [switchboard](sayback_runtime::switchboard). This crate may not decide anything
//! about a call and may not know how calls come: SIP and media streams bring routes of their own, and the binary puts
//! them together.
//!
//! Its routes are those of [`routes::all`], which the document at `/v1/openapi.json` describes one by one.

pub mod access;
pub mod adk;
mod approvals;
mod body;
mod browsers;
mod calls;
mod chats;
mod confirmations;
mod console;
mod conversations;
mod events;
mod expiry;
mod gate;
pub mod limits;
mod metrics;
pub mod problem;
pub mod recordings;
pub mod routes;
pub mod tls;
pub mod webhook;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
pub use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::Uri;
use axum::serve::ListenerExt;
use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::conversations::Conversations;
use sayback_runtime::ledger::Ledger;
use sayback_runtime::switchboard::{NotNow, Switchboard};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub use access::{Access, Role, Token};
pub use browsers::{BrowserAnswer, BrowserError, BrowserOffer, Browsers};
pub use expiry::{Expiry, NoDay};
pub use limits::{Bounds, HttpLimits, Limiter};
pub use metrics::Gauge;
pub use problem::Problem;
pub use tls::{Tls, TlsError, TlsFiles};

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
    /// Stored conversations, if any are kept.
    pub conversations: Option<Arc<dyn Conversations>>,
    /// Text sessions with the wire of the ADK.
    pub sessions: adk::Sessions,
    /// Confirmations of other apps.
    pub ledger: Ledger,
    /// Counts what is asked for.
    pub limiter: Arc<Limiter>,
}

/// The routes of the API, and those of other crates that are served `beside` them.
pub fn router(api: Api, beside: Router) -> Router {
    let gate = gate::Gate::new(Arc::clone(&api.access), Arc::clone(&api.limiter));
    routes::router(&gate)
        .with_state(api)
        .merge(routes::beside(&gate, beside))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_like_this)
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(axum::middleware::map_response(problem::told))
        .layer(axum::middleware::map_response(console::keep_to_itself))
}

async fn ready(State(api): State<Api>) -> Result<&'static str, Problem> {
    if api.board.is_open() { Ok("ready\n") } else { Err(NotNow::Draining.into()) }
}

/// The client for pages goes with the server that it talks to.
const CLIENT: &str = include_str!("../../../clients/js/sayback.js");
const CLIENT_TYPES: &str = include_str!("../../../clients/js/sayback.d.ts");

fn script(text: &'static str, kind: &'static str) -> impl axum::response::IntoResponse {
    ([("content-type", kind), ("cache-control", "no-cache"), ("x-content-type-options", "nosniff")], text)
}

async fn own_access(who: access::Who) -> Json<Value> {
    Json(json!({ "name": who.name(), "roles": who.roles() }))
}

async fn agents(State(api): State<Api>) -> Json<Value> {
    Json(json!({ "agents": api.board.agents() }))
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
    let routes = routes.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, routes).with_graceful_shutdown(over).await
}

/// The same over TLS.
///
/// # Errors
/// If the socket breaks.
pub async fn serve_tls(
    listener: TcpListener,
    tls: Tls,
    routes: Router,
    over: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    // Whose address it is can be asked of a listener that is tapped only.
    let listener = tls::TlsListener::new(listener, tls).tap_io(|_| {});
    let routes = routes.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, routes).with_graceful_shutdown(over).await
}
