//! `GET /v1/media/{service}`: the WebSocket is answered, after its proof.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{OriginalUri, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sayback_runtime::switchboard::Switchboard;
use serde_json::json;

use super::dialect::{Dialect, Plain, Plivo, Telnyx, Twilio, Vonage};
use super::proof::Proofs;
use super::session::{Request, run};
use super::{LARGEST, READ};

/// A telephone service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Twilio Media Streams.
    Twilio,
    /// Telnyx media streaming.
    Telnyx,
    /// Plivo audio streaming.
    Plivo,
    /// Vonage Voice over WebSocket.
    Vonage,
    /// Our own format.
    Plain,
}

impl Service {
    /// By the word in its path.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "twilio" => Some(Self::Twilio),
            "telnyx" => Some(Self::Telnyx),
            "plivo" => Some(Self::Plivo),
            "vonage" => Some(Self::Vonage),
            "plain" => Some(Self::Plain),
            _ => None,
        }
    }

    fn dialect(self) -> Box<dyn Dialect> {
        match self {
            Self::Twilio => Box::new(Twilio::default()),
            Self::Telnyx => Box::new(Telnyx::default()),
            Self::Plivo => Box::new(Plivo::default()),
            Self::Vonage => Box::new(Vonage::default()),
            Self::Plain => Box::new(Plain::default()),
        }
    }
}

/// What is agreed with one service.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct VendorSettings {
    /// The secret shared with it; `None`: anybody may open a stream. For loopback only.
    pub secret: Option<String>,
}

impl std::fmt::Debug for VendorSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VendorSettings").field("secret", &self.secret.is_some()).finish()
    }
}

/// Which services may open streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaSettings {
    /// Our address as the services know it, `wss://calls.example.com`; signatures are made over it. `None`: as the
    /// request itself says, which is right where nothing stands in between.
    pub public_url: Option<String>,
    /// Those that may.
    pub services: BTreeMap<Service, VendorSettings>,
}

#[derive(Clone)]
struct Shared {
    board: Switchboard,
    settings: Arc<MediaSettings>,
}

/// Answers `GET /v1/media/{service}`. A service that is not in the settings is not there.
pub fn router(board: Switchboard, settings: MediaSettings) -> Router {
    let shared = Shared { board, settings: Arc::new(settings) };
    Router::new().route("/v1/media/{service}", get(open)).with_state(shared)
}

async fn open(
    State(shared): State<Shared>,
    Path(name): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let found = Service::named(&name).and_then(|s| Some((s, shared.settings.services.get(&s)?)));
    let Some((service, settings)) = found else {
        let detail = format!("no media stream is taken from {name:?}; name it in [media]");
        return problem(StatusCode::NOT_FOUND, "no-such-media", &detail);
    };
    let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
    let base = shared.settings.public_url.clone().unwrap_or_else(|| format!("wss://{host}"));
    let url = format!("{}{uri}", base.trim_end_matches('/'));
    if let Some(secret) = &settings.secret {
        let token = query.get("token").map(String::as_str);
        let proofs = Proofs { headers: &headers, url: &url, token };
        if let Err(error) = proofs.check(service, secret) {
            tracing::warn!("a media stream for {name} is refused: {error}");
            return problem(StatusCode::FORBIDDEN, "no-proof", &error.to_string());
        }
    }
    let Ok(upgrade) = upgrade else {
        return problem(
            StatusCode::UPGRADE_REQUIRED,
            "websocket-wanted",
            "this address speaks WebSocket only",
        );
    };
    if !shared.board.is_open() {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "draining", "the server is shutting down");
    }
    let request = Request { query, vars: sip_headers(&headers) };
    // Each message is written at once: a mark that waits in a buffer is a mark that is late.
    let upgrade = upgrade.write_buffer_size(0).max_write_buffer_size(4 * LARGEST);
    let upgrade = upgrade.max_message_size(LARGEST).max_frame_size(LARGEST).read_buffer_size(READ);
    upgrade.on_upgrade(move |socket| run(shared.board, service.dialect(), request, socket))
}

/// Headers that a service passes on from the call's SIP leg.
fn sip_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let passed = headers.iter().filter(|(name, _)| name.as_str().starts_with("x-sip-"));
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    passed.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// Problem details as the rest of the server writes them.
fn problem(status: StatusCode, kind: &str, detail: &str) -> Response {
    let body = json!({
        "type": format!("urn:sayback:{kind}"),
        "title": status.canonical_reason().unwrap_or_default(),
        "status": status.as_u16(),
        "detail": detail,
    });
    (status, [("content-type", "application/problem+json")], body.to_string()).into_response()
}
