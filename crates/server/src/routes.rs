//! Every route in one list, with what it takes to use it. The router is made from it and nothing else is, so no route can
//! be without a right that was thought of, and the document of the API and its tests know all of them.

use axum::Extension;
use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::body::Largest;
use crate::gate::{Gate, pass};
use crate::{
    Api, Role, adk, approvals, browsers, calls, chats, confirmations, console, conversations, events,
    metrics, recordings,
};

/// What it takes to use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it tells no secret.
    Nothing,
    /// A token, whatever it may do.
    Token,
    /// A token with one of these roles.
    OneOf(&'static [Role]),
    /// The proof of a telephone service, which the route looks at itself.
    Proof,
}

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// `GET`, `POST`, `PATCH` or `DELETE`. A route of `GET` answers `HEAD` too.
    pub method: &'static str,
    /// Its path, with names in braces where something is to be filled in.
    pub path: &'static str,
    /// What it takes.
    pub needs: Needs,
    /// Whether its answer stays open: events as they come.
    pub streams: bool,
    /// Whether it starts a call or a conversation.
    pub starts: bool,
}

/// A route and who answers it.
struct Entry {
    route: Route,
    service: MethodRouter<Api>,
}

impl Entry {
    fn new<H: Handler<T, Api>, T: 'static>(
        method: &'static str,
        path: &'static str,
        needs: Needs,
        handler: H,
    ) -> Self {
        let filter = match method {
            "POST" => MethodFilter::POST,
            "PATCH" => MethodFilter::PATCH,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        let route = Route { method, path, needs, streams: false, starts: false };
        Self { route, service: on(filter, handler) }
    }

    fn streams(mut self) -> Self {
        self.route.streams = true;
        self
    }

    fn starts(mut self) -> Self {
        self.route.starts = true;
        self
    }

    /// Takes bodies of up to so many bytes.
    fn takes(mut self, bytes: usize) -> Self {
        self.service = self.service.layer(Extension(Largest(bytes)));
        self
    }
}

const OPEN: Needs = Needs::Nothing;
const READ: Needs = Needs::OneOf(&[Role::Read]);
const CALL: Needs = Needs::OneOf(&[Role::Call]);
const APPROVE: Needs = Needs::OneOf(&[Role::Approve]);
const APP: Needs = Needs::OneOf(&[Role::App]);
/// Calls from browsers: a page's token can do this and nothing else.
const BROWSER: Needs = Needs::OneOf(&[Role::Call, Role::Page]);

/// The document of the API: every route of [`all`], and what it takes and gives.
pub const DOCUMENT: &str = include_str!("../openapi.json");

/// Routes of other crates, which the binary puts beside these.
const BESIDE: [Route; 1] =
    [Route { method: "GET", path: "/v1/media/{service}", needs: Needs::Proof, streams: false, starts: true }];

fn get<H: Handler<T, Api>, T: 'static>(path: &'static str, needs: Needs, handler: H) -> Entry {
    Entry::new("GET", path, needs, handler)
}

fn post<H: Handler<T, Api>, T: 'static>(path: &'static str, needs: Needs, handler: H) -> Entry {
    Entry::new("POST", path, needs, handler)
}

fn patch<H: Handler<T, Api>, T: 'static>(path: &'static str, needs: Needs, handler: H) -> Entry {
    Entry::new("PATCH", path, needs, handler)
}

fn delete<H: Handler<T, Api>, T: 'static>(path: &'static str, needs: Needs, handler: H) -> Entry {
    Entry::new("DELETE", path, needs, handler)
}

fn entries() -> Vec<Entry> {
    let mut all = watching();
    all.extend(calling());
    all.extend(writing());
    all.extend(recorded());
    all
}

/// How the server is, and the page.
fn watching() -> Vec<Entry> {
    vec![
        get("/healthz", OPEN, async || "ok\n"),
        get("/readyz", READ, crate::ready),
        get("/metrics", READ, metrics::show),
        get("/", OPEN, console::page),
        get("/console/{file}", OPEN, console::part),
        get("/sayback.js", OPEN, async || crate::script(crate::CLIENT, "text/javascript; charset=utf-8")),
        get("/sayback.d.ts", OPEN, async || crate::script(crate::CLIENT_TYPES, "text/plain; charset=utf-8")),
        get("/v1/openapi.json", OPEN, async || crate::script(DOCUMENT, "application/json")),
        get("/v1/access", Needs::Token, crate::own_access),
        get("/v1/agents", READ, crate::agents),
    ]
}

fn calling() -> Vec<Entry> {
    vec![
        get("/v1/calls", READ, calls::list),
        post("/v1/calls", CALL, calls::dial).starts(),
        get("/v1/calls/{id}", READ, calls::show),
        delete("/v1/calls/{id}", CALL, calls::end),
        get("/v1/calls/{id}/events", READ, events::follow).streams(),
        post("/v1/calls/{id}/actions", CALL, calls::act),
        post("/v1/webrtc", BROWSER, browsers::offer).starts(),
        patch("/v1/webrtc/{id}", BROWSER, browsers::patch),
        delete("/v1/webrtc/{id}", BROWSER, browsers::end),
        get("/v1/approvals", APPROVE, approvals::list),
        get("/v1/approvals/{id}", APPROVE, approvals::show),
        post("/v1/approvals/{id}", APPROVE, approvals::answer),
        post("/v1/confirmations", APP, confirmations::record).takes(confirmations::LARGEST),
        post("/v1/confirmations/check", APP, confirmations::check).takes(confirmations::LARGEST),
    ]
}

/// Conversations in text: ours, and those with the wire of the ADK.
fn writing() -> Vec<Entry> {
    vec![
        post("/v1/chats", APP, chats::open).starts(),
        get("/v1/chats/{id}", APP, chats::show),
        delete("/v1/chats/{id}", APP, chats::end),
        get("/v1/chats/{id}/events", APP, chats::follow).streams(),
        post("/v1/chats/{id}/messages", APP, chats::write),
        post("/v1/chats/{id}/rewind", APP, chats::rewind),
        get("/apps/{app}/users/{user}/sessions", APP, adk::list),
        post("/apps/{app}/users/{user}/sessions", APP, adk::create).starts(),
        get("/apps/{app}/users/{user}/sessions/{id}", APP, adk::show),
        post("/apps/{app}/users/{user}/sessions/{id}", APP, adk::create_named).starts(),
        delete("/apps/{app}/users/{user}/sessions/{id}", APP, adk::end),
        post("/run", APP, adk::run),
        post("/run_sse", APP, adk::stream).streams(),
    ]
}

fn recorded() -> Vec<Entry> {
    vec![
        get("/v1/conversations", READ, conversations::list),
        get("/v1/conversations/{id}", READ, conversations::show),
        get("/v1/recordings", READ, recordings::list),
        get("/v1/recordings/{id}", READ, recordings::show),
        get("/v1/recordings/{id}/audio", READ, recordings::audio),
        get("/v1/recordings/{id}/events", READ, recordings::events),
        get("/v1/recordings/{id}/evidence", READ, recordings::evidence),
        post("/v1/recordings/{id}/scenario", READ, recordings::scenario),
    ]
}

/// All routes of a server, those that the binary adds included.
pub fn all() -> Vec<Route> {
    entries().into_iter().map(|entry| entry.route).chain(BESIDE).collect()
}

/// Routes of other crates, behind the gate of those that look at a proof themselves.
pub(crate) fn beside(gate: &Gate, routes: Router) -> Router {
    let [media] = BESIDE;
    routes.layer(from_fn_with_state(gate.of(media), pass))
}

/// The routes of this crate, each behind its gate.
pub(crate) fn router(gate: &Gate) -> Router<Api> {
    entries().into_iter().fold(Router::new(), |router, Entry { route, service }| {
        let guarded = service.route_layer(from_fn_with_state(gate.of(route), pass));
        router.route(route.path, guarded)
    })
}
