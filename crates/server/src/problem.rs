//! Errors as problem details (RFC 9457): a stable `type` for programs, a `detail` that says how to mend it for people.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sayback_runtime::calls::CallError;
use sayback_runtime::switchboard::NotNow;
use serde_json::json;

use crate::DialError;

/// An error as it goes over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    retry_after: Option<u32>,
}

impl Problem {
    /// A problem of a kind; `kind` is the end of its `type`, `urn:sayback:…`, and never changes its meaning.
    pub fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self { status, kind, detail: detail.into(), retry_after: None }
    }

    /// Something is not there.
    pub fn not_found(kind: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, kind, detail)
    }

    /// Something makes no sense.
    pub fn bad(kind: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, kind, detail)
    }

    /// The method is none that is taken there.
    pub fn method(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail)
    }

    /// The same may work after so many seconds.
    #[must_use]
    pub fn after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// After how many seconds the same may work.
    pub fn retry_after(&self) -> Option<u32> {
        self.retry_after
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": format!("urn:sayback:{}", self.kind),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let body = (self.status, [("content-type", "application/problem+json")], body.to_string());
        let mut response = body.into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert("retry-after", seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let value = axum::http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert("www-authenticate", value);
        }
        response
    }
}

/// Largest message of somebody else's that is passed on, in bytes.
const PASSED_ON: usize = 4 * 1024;

/// Tells as a problem what was refused before anybody here saw it: a path that is no text, a body that broke off.
pub(crate) async fn told(response: Response) -> Response {
    let status = response.status();
    let said = response.headers().get("content-type").map(|kind| kind.as_bytes());
    let plain = said.is_none_or(|kind| kind.starts_with(b"text/plain"));
    if !plain || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let said = axum::body::to_bytes(body, PASSED_ON).await.unwrap_or_default();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    let (kind, hint) = match status {
        StatusCode::BAD_REQUEST => ("bad-request", "the request cannot be read"),
        StatusCode::PAYLOAD_TOO_LARGE => ("too-large", "the body is larger than is taken here"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            ("wrong-type", "the body is of another type than is taken here")
        }
        _ if status.is_client_error() => ("refused", "the request is refused"),
        _ => ("failed", "something failed here; see the server's log"),
    };
    let detail = if said.is_empty() { hint.to_owned() } else { format!("{hint}: {said}") };
    let mut problem = Problem::new(status, kind, detail).into_response();
    for (name, value) in &parts.headers {
        if name != "content-type" && name != "content-length" {
            problem.headers_mut().append(name, value.clone());
        }
    }
    problem
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        let detail = error.to_string();
        match error {
            CallError::Unknown(_) => Self::not_found("no-such-call", detail),
            CallError::Over(_) => Self::new(StatusCode::CONFLICT, "call-is-over", detail),
            CallError::Busy(_) => Self::new(StatusCode::TOO_MANY_REQUESTS, "call-is-busy", detail).after(1),
            CallError::NotOnThisLine(_) => Self::new(StatusCode::CONFLICT, "not-on-this-line", detail),
        }
    }
}

impl From<NotNow> for Problem {
    fn from(error: NotNow) -> Self {
        let detail = error.to_string();
        let busy = |kind, detail| Self::new(StatusCode::SERVICE_UNAVAILABLE, kind, detail);
        match error {
            NotNow::Draining => busy("draining", detail).after(60),
            NotNow::Full { .. } => busy("full", detail).after(10),
            NotNow::Unknown { .. } => Self::not_found("no-such-agent", detail),
            NotNow::Broken { .. } => busy("agent-broken", detail).after(60),
        }
    }
}

impl From<DialError> for Problem {
    fn from(error: DialError) -> Self {
        let detail = error.to_string();
        match error {
            DialError::NotNow(error) => error.into(),
            DialError::BadTarget { .. } => Self::bad("bad-target", detail),
            DialError::NoTrunk => Self::new(StatusCode::NOT_IMPLEMENTED, "no-trunk", detail),
        }
    }
}
