//! Headers and answers.

use std::time::Duration;

use rsipstack::sip::headers::Header;
use rsipstack::sip::prelude::HasHeaders;
use rsipstack::sip::{Request, Response, Uri};

use super::timer::{AskedTimer, SessionExpires, SessionTimer};

/// What we take.
pub(super) const ALLOW: &str = "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, NOTIFY, PRACK";
/// Extensions that we know.
pub(super) const SUPPORTED: &str = "timer, 100rel";
/// Those that may be required of us. We answer at once and send no provisional answer that would have to be reliable.
const KNOWN: [&str; 2] = ["timer", "100rel"];

/// The value of a header, by its long name or its short one.
pub(super) fn header(message: &impl HasHeaders, name: &str) -> Option<String> {
    values(message, name).into_iter().next()
}

/// All values of a header, in order.
pub(super) fn values(message: &impl HasHeaders, name: &str) -> Vec<String> {
    let short = short(name);
    message
        .headers()
        .iter()
        .filter_map(|header| {
            let line = header.to_string();
            let (key, value) = line.split_once(':')?;
            let key = key.trim();
            let named =
                key.eq_ignore_ascii_case(name) || short.is_some_and(|short| key.eq_ignore_ascii_case(short));
            named.then(|| value.trim().to_owned())
        })
        .collect()
}

fn short(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "session-expires" => Some("x"),
        "content-type" => Some("c"),
        "supported" => Some("k"),
        "refer-to" => Some("r"),
        "event" => Some("o"),
        _ => None,
    }
}

/// Whether a list header (`Supported`, `Require`) names a token.
pub(super) fn lists(message: &impl HasHeaders, name: &str, token: &str) -> bool {
    tokens(message, name).iter().any(|known| known.eq_ignore_ascii_case(token))
}

fn tokens(message: &impl HasHeaders, name: &str) -> Vec<String> {
    let lines = values(message, name);
    lines.iter().flat_map(|line| line.split(',')).map(|token| token.trim().to_owned()).collect()
}

/// What a request requires and we do not have.
pub(super) fn unknown_extensions(request: &Request) -> Vec<String> {
    let mut required = tokens(request, "Require");
    required
        .retain(|token| !token.is_empty() && !KNOWN.iter().any(|known| known.eq_ignore_ascii_case(token)));
    required
}

/// The session timer that a message speaks of.
pub(super) fn session_expires(message: &impl HasHeaders) -> Option<SessionExpires> {
    SessionExpires::parse(&header(message, "Session-Expires")?)
}

/// What a request asks of the session's timer.
pub(super) fn asked_timer(request: &Request) -> AskedTimer {
    AskedTimer {
        expires: session_expires(request),
        least: least_interval(request),
        supported: lists(request, "Supported", "timer") || lists(request, "Require", "timer"),
    }
}

/// `Min-SE`: the shortest interval that somebody takes.
pub(super) fn least_interval(message: &impl HasHeaders) -> Option<Duration> {
    let value = header(message, "Min-SE")?;
    let seconds: u32 = value.split(';').next()?.trim().parse().ok()?;
    Some(Duration::from_secs(u64::from(seconds)))
}

/// `Min-SE` of ours.
pub(super) fn least_is(shortest: Duration) -> Header {
    other("Min-SE", shortest.as_secs().to_string())
}

/// What our answer says of the session's timer; somebody who knows timers must mind it.
pub(super) fn timer_headers(timer: &SessionTimer, supported: bool) -> Vec<Header> {
    let mut headers = vec![other("Session-Expires", timer.header())];
    if supported {
        headers.push(Header::Require("timer".into()));
    }
    headers
}

/// The number in a message's `CSeq`.
pub(super) fn sequence(message: &impl HasHeaders) -> Option<u32> {
    header(message, "CSeq")?.split_whitespace().next()?.parse().ok()
}

/// A header that the stack has no type for.
pub(super) fn other(name: &str, value: impl Into<String>) -> Header {
    Header::Other(name.to_owned(), value.into())
}

/// `Allow` and `Supported`.
pub(super) fn abilities() -> Vec<Header> {
    vec![Header::Allow(ALLOW.into()), Header::Supported(SUPPORTED.into())]
}

/// What goes with a session description.
pub(super) fn content_is_sdp() -> Header {
    Header::ContentType("application/sdp".into())
}

/// The session description in a message, if it has one: its body, or the part of several that is one.
///
/// # Errors
/// If the body is something else: a 415.
pub(super) fn description(content_type: Option<&str>, body: &[u8]) -> Result<Option<Vec<u8>>, NotSdp> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let kind = content_type.unwrap_or("application/sdp").to_ascii_lowercase();
    if kind.starts_with("application/sdp") {
        return Ok(Some(body.to_vec()));
    }
    if kind.starts_with("multipart/") {
        return part(content_type.unwrap_or_default(), body).map(Some).ok_or(NotSdp);
    }
    Err(NotSdp)
}

/// A body that is no session description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotSdp;

fn part(content_type: &str, body: &[u8]) -> Option<Vec<u8>> {
    let boundary = content_type.split(';').find_map(|piece| {
        let (key, value) = piece.split_once('=')?;
        key.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"').to_owned())
    })?;
    if boundary.is_empty() {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    text.split(&format!("--{boundary}")).find_map(|part| {
        let part = part.trim_start_matches("\r\n").trim_start_matches('\n');
        let (head, content) = part.split_once("\r\n\r\n").or_else(|| part.split_once("\n\n"))?;
        head.to_ascii_lowercase().contains("application/sdp").then(|| content.as_bytes().to_vec())
    })
}

/// The session description of a request.
///
/// # Errors
/// If its body is something else.
pub(super) fn request_description(request: &Request) -> Result<Option<Vec<u8>>, NotSdp> {
    description(header(request, "Content-Type").as_deref(), request.body())
}

/// The session description of an answer.
pub(super) fn response_description(response: &Response) -> Option<Vec<u8>> {
    description(header(response, "Content-Type").as_deref(), response.body()).ok().flatten()
}

/// How far a transfer has come, by a NOTIFY about it (RFC 3515, 2.4.5).
pub(super) fn refer_status(request: &Request) -> Option<u16> {
    let event = header(request, "Event")?;
    if !event.split(';').next()?.trim().eq_ignore_ascii_case("refer") {
        return None;
    }
    let body = std::str::from_utf8(request.body()).ok()?;
    body.lines().next()?.strip_prefix("SIP/2.0 ")?.split(' ').next()?.parse().ok()
}

/// The user part of a URI, or its host if it has none.
pub(super) fn called(uri: &Uri) -> String {
    uri.user().map_or_else(|| uri.host().to_string(), str::to_owned)
}

/// The address in a `From` or `To`: what stands between the angle brackets, without its tag.
pub(super) fn address(value: &str) -> String {
    let inside = value.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(inside, _)| inside);
    inside.unwrap_or_else(|| value.split(';').next().unwrap_or(value)).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_description_is_found_in_a_body_of_several_parts() {
        let body = "--x\r\nContent-Type: application/isup\r\n\r\nabc\r\n--x\r\nContent-Type: application/sdp\r\n\r\n\
                    v=0\r\nm=audio 1 RTP/AVP 0\r\n--x--\r\n";
        let found = description(Some("multipart/mixed;boundary=\"x\""), body.as_bytes()).unwrap().unwrap();
        assert!(found.starts_with(b"v=0"));
        assert_eq!(description(Some("text/plain"), b"hello"), Err(NotSdp));
        assert_eq!(description(Some("application/sdp"), b"\r\n"), Ok(None));
        assert_eq!(description(None, b"v=0"), Ok(Some(b"v=0".to_vec())));
    }

    #[test]
    fn the_progress_of_a_transfer_is_read() {
        let notify = |event: &str, body: &str| {
            let text = format!(
                "NOTIFY sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>;tag=2\r\n\
                 Call-ID: 1\r\nCSeq: 1 NOTIFY\r\n{event}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            refer_status(&Request::try_from(text.as_bytes()).unwrap())
        };
        assert_eq!(notify("Event: refer;id=2", "SIP/2.0 200 OK\r\n"), Some(200));
        assert_eq!(notify("o: refer", "SIP/2.0 486 Busy Here"), Some(486));
        assert_eq!(notify("Event: presence", "SIP/2.0 200 OK"), None);
        assert_eq!(notify("Event: refer", "nonsense"), None);
    }

    #[test]
    fn addresses_lose_names_and_tags() {
        assert_eq!(
            address("\"Anna\" <sip:anna@example.com;user=phone>;tag=1"),
            "sip:anna@example.com;user=phone"
        );
        assert_eq!(address("sip:anna@example.com;tag=1"), "sip:anna@example.com");
    }

    proptest! {
        #[test]
        fn any_body_is_taken_or_refused(kind in "[ -~]{0,60}", body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = description(Some(&kind), &body);
            let _ = description(Some(&format!("multipart/mixed;boundary={kind}")), &body);
        }

        #[test]
        fn any_address_is_taken(value in ".{0,80}") {
            let _ = address(&value);
        }
    }
}
