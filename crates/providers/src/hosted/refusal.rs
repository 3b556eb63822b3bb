//! What a server says when it does not answer: statuses, bodies and broken connections as [`Fault`].

use std::error::Error;
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::{ApiKey, Fault};

/// Most bytes of an error's body that are read.
const MOST_BODY: usize = 64 * 1024;
/// Most characters of a server's words that are passed on.
const MOST_WORDS: usize = 400;

/// A failure before there was a response.
pub(crate) fn unsent(error: &reqwest::Error, url: &str) -> Fault {
    if error.is_connect() || error.is_builder() {
        return Fault::Unreachable { url: url.to_owned(), reason: causes(error) };
    }
    Fault::BrokeOff(causes(error))
}

/// The innermost causes say what happened; the outer ones only repeat the address.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// A response with a status that is no success.
pub(crate) async fn refused(response: Response, key: Option<&ApiKey>) -> Fault {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let body = beginning(response).await;
    from_status(status, retry_after, &body, key)
}

/// A refusal from its parts.
pub(crate) fn from_status(
    status: StatusCode,
    retry_after: Option<Duration>,
    body: &str,
    key: Option<&ApiKey>,
) -> Fault {
    let parsed = serde_json::from_str::<Value>(body).ok();
    let message = cleared(&parsed.as_ref().and_then(words).unwrap_or_else(|| body.to_owned()), key);
    let message = if message.is_empty() { status.to_string() } else { message };
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Fault::Unauthorised(message),
        // Waiting does not fill an empty account.
        StatusCode::TOO_MANY_REQUESTS if !is_out_of_quota(parsed.as_ref()) => {
            Fault::RateLimited { retry_after }
        }
        _ => Fault::Refused { status: status.as_u16(), message },
    }
}

/// A failure that came as an event in the middle of the stream.
#[cfg(any(feature = "openai", feature = "anthropic"))]
pub(crate) fn in_stream(error: &Value, key: Option<&ApiKey>) -> Fault {
    let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let message = words(&serde_json::json!({ "error": error })).unwrap_or_else(|| error.to_string());
    match status {
        Some(401 | 403) => Fault::Unauthorised(cleared(&message, key)),
        Some(429) => Fault::RateLimited { retry_after: None },
        _ => Fault::Refused { status: status.unwrap_or(500), message: cleared(&message, key) },
    }
}

/// A success whose body is not an event stream.
#[cfg(any(feature = "openai", feature = "anthropic"))]
pub(crate) async fn no_event_stream(response: Response, kind: &str, key: Option<&ApiKey>) -> Fault {
    let body = beginning(response).await;
    if let Some(error) = serde_json::from_str::<Value>(&body).ok().and_then(|body| body.get("error").cloned())
    {
        return in_stream(&error, key);
    }
    Fault::Garbage(format!("{} instead of an event stream: {}", cleared(kind, None), cleared(&body, key)))
}

/// One line without control characters, bounded, and without the key.
pub(crate) fn cleared(words: &str, key: Option<&ApiKey>) -> String {
    let words = key.map_or_else(|| words.to_owned(), |key| key.cleared_from(words));
    let line = words.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = line.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST_WORDS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The words in an error's body, wherever the server puts them.
fn words(body: &Value) -> Option<String> {
    let error = body.get("error");
    let detail = body.get("detail");
    let places = [
        error.and_then(|e| e.get("message")),
        error,
        detail.and_then(|d| d.get("message")),
        body.get("message"),
        body.get("err_msg"),
        body.get("error_message"),
        detail,
    ];
    let found = places.into_iter().flatten().find(|place| !place.is_null())?;
    Some(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
}

fn is_out_of_quota(body: Option<&Value>) -> bool {
    let error = body.and_then(|body| body.get("error"));
    let says =
        |field: &str| error.and_then(|e| e.get(field)).and_then(Value::as_str) == Some("insufficient_quota");
    says("code") || says("type")
}

/// `retry-after-ms`, or `Retry-After` in seconds; its date form would need a clock and is left out.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The beginning of a body, as far as it is worth reading.
pub(crate) async fn beginning(response: Response) -> String {
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(Ok(piece)) = body.next().await {
        bytes.extend_from_slice(&piece);
        if bytes.len() >= MOST_BODY {
            bytes.truncate(MOST_BODY);
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, body: &str) -> Fault {
        from_status(StatusCode::from_u16(status).unwrap(), None, body, Some(&ApiKey::new("sk-1234")))
    }

    fn message(status: u16, body: &str) -> String {
        let (Fault::Refused { message, .. } | Fault::Unauthorised(message)) = refusal(status, body) else {
            panic!("{status} {body} is no refusal");
        };
        message
    }

    #[test]
    fn the_words_of_every_server_are_found() {
        assert_eq!(
            message(400, r#"{"error":{"message":"bad tool","type":"invalid_request_error"}}"#),
            "bad tool"
        );
        assert_eq!(message(404, r#"{"error":"model \"x\" not found"}"#), "model \"x\" not found");
        assert_eq!(message(400, r#"{"object":"error","message":"too long","code":400}"#), "too long");
        assert_eq!(message(422, r#"{"detail":[{"msg":"field required"}]}"#), r#"[{"msg":"field required"}]"#);
        assert_eq!(message(502, "<html>\n<h1>Bad Gateway</h1>"), "<html> <h1>Bad Gateway</h1>");
        assert_eq!(message(503, ""), "503 Service Unavailable");
    }

    #[test]
    fn long_words_are_cut_and_the_key_is_not_repeated() {
        assert_eq!(
            message(401, r#"{"error":{"message":"Incorrect key: sk-1234."}}"#),
            "Incorrect key: [key]."
        );
        let long = message(500, &"ä".repeat(10_000));
        assert_eq!(long.chars().count(), MOST_WORDS + 1);
    }

    #[test]
    fn an_empty_account_is_not_a_matter_of_waiting() {
        let body = r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
        assert!(matches!(refusal(429, body), Fault::Refused { status: 429, .. }));
        assert_eq!(refusal(429, "{}"), Fault::RateLimited { retry_after: None });
    }

    #[test]
    fn retry_after_is_read_in_seconds_and_milliseconds() {
        let read = |name: &'static str, value: &str| {
            retry_after(&HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]))
        };
        assert_eq!(read("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        for nonsense in ["-1", "NaN", "inf", "1e400", "soon", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(read("retry-after", nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn errors_within_the_stream_keep_their_kind() {
        let error = |text: &str| in_stream(&serde_json::from_str(text).unwrap(), None);
        assert_eq!(error(r#"{"code":429,"message":"slow down"}"#), Fault::RateLimited { retry_after: None });
        let refused = |status, message: &str| Fault::Refused { status, message: message.into() };
        assert_eq!(error(r#"{"code":400,"message":"too long"}"#), refused(400, "too long"));
        assert_eq!(error(r#""out of memory""#), refused(500, "out of memory"));
    }
}
