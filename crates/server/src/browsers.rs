//! Calls from browsers over HTTP: WHIP (RFC 9725).
//!
//! | request | | answer |
//! |---|---|---|
//! | `POST /v1/webrtc?agent=NAME` | an SDP offer | 201 with our answer, `Location` and `ETag` |
//! | `PATCH` there | candidates, under `If-Match: ETAG` | 204 |
//! | `PATCH` there | a new ICE name and password, under `If-Match: *` | 200 with ours, and a new `ETag` |
//! | `DELETE` there | | 200; the caller has hung up |

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::header::{ACCEPT, IF_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sayback_runtime::switchboard::NotNow;

use crate::access::Who;
use crate::body::wants_type;
use crate::{Api, Problem};

/// How such calls are named among all.
const TRANSPORT: &str = "webrtc";
const SDP: &str = "application/sdp";
const FRAGMENT: &str = "application/trickle-ice-sdpfrag";
/// Variables that a page may give its call, and how long their names and values may be together.
const VARS: usize = 16;
const LONGEST: usize = 1_024;

/// A page's wish to talk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrowserOffer {
    /// Its session description.
    pub sdp: String,
    /// Which agent it wants, by its name in `[agents]`.
    pub agent: String,
    /// Whose token it brought.
    pub from: String,
    /// Call variables: the rest of the query.
    pub vars: BTreeMap<String, String>,
}

/// A call that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserAnswer {
    /// Its id.
    pub call: String,
    /// Our session description.
    pub sdp: String,
    /// The ICE session's name.
    pub session: String,
}

/// Takes calls from browsers: a transport that can.
#[async_trait::async_trait]
pub trait Browsers: Send + Sync + std::fmt::Debug {
    /// Answers an offer.
    ///
    /// # Errors
    /// If the call is not taken.
    async fn offer(&self, offer: BrowserOffer) -> Result<BrowserAnswer, BrowserError>;

    /// Takes candidates, or looks for the way anew: then it gives a fragment for the page and the new session's name.
    /// `session` is the one that the page speaks of; `None`: whichever is.
    ///
    /// # Errors
    /// If there is no such call or session, or the fragment is none.
    async fn patch(
        &self,
        call: &str,
        session: Option<&str>,
        fragment: &str,
    ) -> Result<Option<(String, String)>, BrowserError>;

    /// The caller hangs up. False: there is no such call any more.
    async fn end(&self, call: &str) -> bool;
}

/// Why a browser does not get what it asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrowserError {
    /// The switchboard says no.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// What was sent is no session description, or no fragment of one.
    #[error("{0}")]
    BadDescription(String),
    /// It is one, and nothing in it can be agreed on.
    #[error("{0}")]
    NothingInCommon(String),
    /// There is no such call.
    #[error("{0}")]
    NoSuchCall(String),
    /// It speaks of another ICE session.
    #[error("{0}")]
    OtherSession(String),
    /// It cannot be done now.
    #[error("{0}")]
    Busy(String),
}

impl From<BrowserError> for Problem {
    fn from(error: BrowserError) -> Self {
        let detail = error.to_string();
        match error {
            BrowserError::NotNow(error) => error.into(),
            BrowserError::BadDescription(_) => Self::bad("bad-description", detail),
            BrowserError::NothingInCommon(_) => {
                Self::new(StatusCode::NOT_ACCEPTABLE, "nothing-in-common", detail)
            }
            BrowserError::NoSuchCall(_) => Self::not_found("no-such-call", detail),
            BrowserError::OtherSession(_) => {
                Self::new(StatusCode::PRECONDITION_FAILED, "other-ice-session", detail)
            }
            BrowserError::Busy(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "webrtc-busy", detail).after(2)
            }
        }
    }
}

pub(crate) async fn offer(
    State(api): State<Api>,
    Query(mut query): Query<BTreeMap<String, String>>,
    who: Who,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let browsers = api.browsers.as_ref().ok_or_else(absent)?;
    wants_type(&headers, SDP, "wrong-type")?;
    let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("*/*");
    if !["*/*", "application/*", SDP].iter().any(|taken| accepted.contains(taken)) {
        let detail = "the answer is a session description; send Accept: application/sdp";
        return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "sdp-only", detail));
    }
    let agent = query.remove("agent").unwrap_or_default();
    who.may_call(&agent)?;
    let length: usize = query.iter().map(|(name, value)| name.len() + value.len()).sum();
    if query.len() > VARS || length > LONGEST {
        let detail = format!("a call has at most {VARS} variables and {LONGEST} bytes of them");
        return Err(Problem::bad("too-many-variables", detail));
    }
    let offer = BrowserOffer { sdp: text(&body)?, agent, from: who.name().to_owned(), vars: query };
    let BrowserAnswer { call, sdp, session } = browsers.offer(offer).await?;
    tracing::info!("{} calls from a browser: {call}", who.name());
    let told = [
        ("content-type", SDP.to_owned()),
        ("location", format!("/v1/webrtc/{call}")),
        ("etag", format!("\"{session}\"")),
        ("accept-patch", FRAGMENT.to_owned()),
    ];
    Ok((StatusCode::CREATED, told, sdp).into_response())
}

pub(crate) async fn patch(
    State(api): State<Api>,
    Path(call): Path<String>,
    who: Who,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let browsers = api.browsers.as_ref().ok_or_else(absent)?;
    is_own(&api, &who, &call)?;
    wants_type(&headers, FRAGMENT, "wrong-type")?;
    let Some(matched) = headers.get(IF_MATCH).and_then(|value| value.to_str().ok()) else {
        let detail = "send If-Match with the ETag of the last answer, or * to look for the way anew";
        return Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, "if-match-wanted", detail));
    };
    let matched = matched.trim().trim_matches('"');
    let session = (matched != "*").then_some(matched);
    match browsers.patch(&call, session, &text(&body)?).await? {
        Some((fragment, session)) => {
            let told = [("content-type", FRAGMENT.to_owned()), ("etag", format!("\"{session}\""))];
            Ok((StatusCode::OK, told, fragment).into_response())
        }
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

pub(crate) async fn end(
    State(api): State<Api>,
    Path(call): Path<String>,
    who: Who,
) -> Result<StatusCode, Problem> {
    let browsers = api.browsers.as_ref().ok_or_else(absent)?;
    is_own(&api, &who, &call)?;
    if browsers.end(&call).await {
        return Ok(StatusCode::OK);
    }
    Err(no_such_call(&call))
}

fn no_such_call(call: &str) -> Problem {
    BrowserError::NoSuchCall(format!("there is no call {call:?}, or it is over")).into()
}

/// A page reaches the calls that were started with its token; of others it does not even learn that they are there.
fn is_own(api: &Api, who: &Who, call: &str) -> Result<(), Problem> {
    let own = || {
        let view = api.board.calls().get(call).ok();
        view.is_some_and(|view| view.transport == TRANSPORT && view.from == who.name())
    };
    if who.is_page() && !own() { Err(no_such_call(call)) } else { Ok(()) }
}

fn absent() -> Problem {
    let detail = "calls from browsers are not taken here; write [webrtc] into the server's file";
    Problem::new(StatusCode::NOT_IMPLEMENTED, "no-webrtc", detail)
}

fn text(body: &Bytes) -> Result<String, Problem> {
    String::from_utf8(body.to_vec()).map_err(|_| Problem::bad("bad-description", "the body is no text"))
}
