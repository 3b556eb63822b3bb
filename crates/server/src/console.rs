//! The page at `/`: files that are part of the program, and headers that keep the page to itself.
//!
//! The files hold nothing that is not public, so they are served without a token; everything that the page shows comes
//! from the API, which asks for one. The page may load from this server and from nowhere else, runs no script but its
//! own files, and cannot be put into a frame.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::Problem;
use crate::access::hash;

/// What the page may do. `blob:` is for sound that was fetched with a token, which an audio element cannot send.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     media-src 'self' blob:; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'";
/// What the page may ask the browser for: the microphone, for calls.
const PERMISSIONS: &str = "microphone=(self), camera=(), geolocation=(), payment=(), usb=()";

/// One file of the page.
struct File {
    name: &'static str,
    mime: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($name:literal, $mime:expr) => {
        File { name: $name, mime: $mime, text: include_str!(concat!("../console/", $name)) }
    };
}

const FILES: &[File] = &[
    file!("index.html", HTML),
    file!("style.css", "text/css; charset=utf-8"),
    file!("icon.svg", "image/svg+xml"),
    file!("app.js", SCRIPT),
    file!("api.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("story.js", SCRIPT),
    file!("banner.js", SCRIPT),
    file!("timeline.js", SCRIPT),
    file!("log.js", SCRIPT),
    file!("calls.js", SCRIPT),
    file!("chat.js", SCRIPT),
    file!("recordings.js", SCRIPT),
    file!("approvals.js", SCRIPT),
    file!("health.js", SCRIPT),
];

/// A validator for each file: a browser asks again each time, and gets the file only if the program is another one.
static TAGS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    let tag = |file: &File| {
        let digits = hash(file.text);
        HeaderValue::from_str(&format!("\"{}\"", digits.get(..16).unwrap_or_default()))
            .unwrap_or_else(|_| HeaderValue::from_static("\"\""))
    };
    FILES.iter().map(tag).collect()
});

/// The page itself.
pub(crate) async fn page(headers: HeaderMap) -> Response {
    give(0, &headers)
}

/// A file of it.
pub(crate) async fn part(Path(name): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    match FILES.iter().position(|file| file.name == name) {
        Some(at) => give(at, &headers),
        None => {
            let detail = format!("there is nothing at {}", uri.path());
            Problem::not_found("no-such-route", detail).into_response()
        }
    }
}

fn give(at: usize, asked: &HeaderMap) -> Response {
    let (Some(file), Some(tag)) = (FILES.get(at), TAGS.get(at)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let known = asked.get(header::IF_NONE_MATCH).is_some_and(|given| given == tag);
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => file.text.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.mime));
    headers.insert(header::ETAG, tag.clone());
    for (name, value) in [
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Headers of every answer: nothing is taken for another type than it says, and no page of another place embeds it.
pub(crate) async fn keep_to_itself(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let name = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(name, HeaderValue::from_static("same-origin"));
    response
}
