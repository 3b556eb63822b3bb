//! Who opens a stream: each service's own proof.

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sayback_runtime::clock::unix_seconds;
use sha1::Sha1;
use sha2::Sha256;

use super::router::Service;

/// What a request brings to show that it is the service's.
#[derive(Clone, Copy, Debug)]
pub struct Proofs<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The address that the service was told to open, query included, as it knows it: `wss://…`.
    pub url: &'a str,
    /// `token` of the query.
    pub token: Option<&'a str>,
}

/// Why a stream is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProof {
    /// Nothing was brought.
    #[error("no proof of where this comes from; expected {0}")]
    Missing(&'static str),
    /// What was brought is wrong.
    #[error("{0} does not fit the secret or the public address")]
    Wrong(&'static str),
    /// It was right once.
    #[error("the token has expired")]
    Expired,
}

const PLIVO: &str = "x-plivo-signature-v3";

impl Proofs<'_> {
    /// Checks them against the secret shared with a service. A token in the query, or as a bearer, is taken from any
    /// service; it is what remains for those that sign nothing.
    ///
    /// # Errors
    /// If they prove nothing.
    pub fn check(&self, service: Service, secret: &str) -> Result<(), NoProof> {
        if self.token.is_some_and(|token| same(token, secret))
            || self.bearer().is_some_and(|b| same(b, secret))
        {
            return Ok(());
        }
        match service {
            Service::Twilio => self.twilio(secret),
            Service::Telnyx => self.header_is("x-telnyx-streaming-auth-token", secret),
            Service::Vonage => self.vonage(secret),
            Service::Plivo if self.header(PLIVO).is_some() => self.plivo(secret),
            Service::Plivo | Service::Plain => Err(match (self.token, self.bearer()) {
                (None, None) => NoProof::Missing("?token=… or an Authorization header"),
                _ => NoProof::Wrong("the token"),
            }),
        }
    }

    fn header(&self, name: &'static str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// HMAC-SHA1 over the address, base64: <https://www.twilio.com/docs/usage/security>.
    fn twilio(&self, secret: &str) -> Result<(), NoProof> {
        const NAME: &str = "X-Twilio-Signature";
        let given = self.header("x-twilio-signature").ok_or(NoProof::Missing(NAME))?;
        let given = STANDARD.decode(given).map_err(|_| NoProof::Wrong(NAME))?;
        // The service signs the address that it was told, with or without the port; both spellings are its own.
        let spelled = [self.url.to_owned(), with_port(self.url)];
        let fits = |url: &String| signed::<Hmac<Sha1>>(secret, url.as_bytes(), &given);
        if spelled.iter().any(fits) { Ok(()) } else { Err(NoProof::Wrong(NAME)) }
    }

    /// HMAC-SHA256 over the address with its query in order, a dot and a number used once, base64; more than one may be
    /// given: <https://www.plivo.com/docs/voice/concepts/signature-validation>.
    fn plivo(&self, secret: &str) -> Result<(), NoProof> {
        let given = self.header(PLIVO).ok_or(NoProof::Missing(PLIVO))?;
        let nonce = self.header("x-plivo-signature-v3-nonce").ok_or(NoProof::Missing("a nonce"))?;
        let ordered = with_ordered_query(self.url);
        // The service was told an address of one kind, and may sign it as the other.
        let other = match ordered.split_once("://") {
            Some(("wss", rest)) => format!("https://{rest}"),
            Some((_, rest)) => format!("http://{rest}"),
            None => String::new(),
        };
        let fits = |url: &str| {
            let message = format!("{url}.{nonce}");
            given
                .split(',')
                .filter_map(|one| STANDARD.decode(one.trim()).ok())
                .any(|one| signed::<Hmac<Sha256>>(secret, message.as_bytes(), &one))
        };
        if fits(&ordered) || fits(&other) { Ok(()) } else { Err(NoProof::Wrong(PLIVO)) }
    }

    fn header_is(&self, name: &'static str, secret: &str) -> Result<(), NoProof> {
        let given = self.header(name).ok_or(NoProof::Missing(name))?;
        if same(given, secret) { Ok(()) } else { Err(NoProof::Wrong(name)) }
    }

    /// A token of HS256 under the signature secret, in the Authorization header.
    fn vonage(&self, secret: &str) -> Result<(), NoProof> {
        const NAME: &str = "the Authorization header";
        let token = self.bearer().ok_or(NoProof::Missing(NAME))?;
        let wrong = NoProof::Wrong(NAME);
        let (signed_part, signature) = token.rsplit_once('.').ok_or(wrong)?;
        let (head, claims) = signed_part.split_once('.').ok_or(wrong)?;
        let json = |part: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
            serde_json::from_slice::<serde_json::Value>(&bytes).ok()
        };
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| wrong)?;
        // The algorithm is ours to choose, not the token's.
        if json(head).ok_or(wrong)?["alg"] != "HS256"
            || !signed::<Hmac<Sha256>>(secret, signed_part.as_bytes(), &signature)
        {
            return Err(wrong);
        }
        let now = unix_seconds();
        let claims = json(claims).ok_or(wrong)?;
        let issued = claims["iat"].as_u64().unwrap_or(0);
        // Without an end of its own a token is good for five minutes.
        let until = claims["exp"].as_u64().unwrap_or(issued.saturating_add(300));
        if now <= until { Ok(()) } else { Err(NoProof::Expired) }
    }
}

/// Whether a signature is right, compared in constant time.
fn signed<M: Mac + KeyInit>(secret: &str, message: &[u8], given: &[u8]) -> bool {
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(secret.as_bytes()) else { return false };
    mac.update(message);
    mac.verify_slice(given).is_ok()
}

/// Whether two secrets are the same, without telling by the time it takes where they differ.
fn same(a: &str, b: &str) -> bool {
    let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(b"compare") else { return false };
    let mut other = mac.clone();
    mac.update(a.as_bytes());
    other.update(b.as_bytes());
    !b.is_empty() && mac.verify(&other.finalize().into_bytes()).is_ok()
}

/// The same address with its query's parts in the order of their names.
fn with_ordered_query(url: &str) -> String {
    let Some((base, query)) = url.split_once('?').filter(|(_, query)| !query.is_empty()) else {
        return url.trim_end_matches('?').to_owned();
    };
    let mut parts: Vec<&str> = query.split('&').collect();
    parts.sort_unstable();
    format!("{base}?{}", parts.join("&"))
}

fn with_port(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("wss", url));
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let port = if scheme == "ws" { 80 } else { 443 };
    if host.contains(':') { url.to_owned() } else { format!("{scheme}://{host}:{port}{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "wss://calls.example.com/v1/media/twilio?to=100";

    fn check(
        service: Service,
        header: Option<(&'static str, String)>,
        token: Option<&str>,
    ) -> Result<(), NoProof> {
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = header {
            headers.insert(name, value.parse().unwrap());
        }
        Proofs { headers: &headers, url: URL, token }.check(service, "secret")
    }

    fn signature(url: &str, secret: &str) -> String {
        let mut mac = <Hmac<Sha1> as KeyInit>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(url.as_bytes());
        STANDARD.encode(mac.finalize().into_bytes())
    }

    #[test]
    fn twilio_signs_the_address() {
        let signed = |url, secret| Some(("x-twilio-signature", signature(url, secret)));
        assert_eq!(check(Service::Twilio, signed(URL, "secret"), None), Ok(()));
        let with_port = "wss://calls.example.com:443/v1/media/twilio?to=100";
        assert_eq!(check(Service::Twilio, signed(with_port, "secret"), None), Ok(()));
        let other = "wss://calls.example.com/v1/media/twilio?to=200";
        for header in
            [signed(other, "secret"), signed(URL, "other"), Some(("x-twilio-signature", "?".into()))]
        {
            assert_eq!(check(Service::Twilio, header, None), Err(NoProof::Wrong("X-Twilio-Signature")));
        }
        assert_eq!(check(Service::Twilio, None, None), Err(NoProof::Missing("X-Twilio-Signature")));
    }

    #[test]
    fn plivo_signs_the_address_in_order_and_a_nonce() {
        let check = |url: &str, signed_url: &str, nonce: &str, secret: &str| {
            let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.as_bytes()).unwrap();
            mac.update(format!("{signed_url}.12345").as_bytes());
            let signature = format!("AAAA,{}", STANDARD.encode(mac.finalize().into_bytes()));
            let mut headers = HeaderMap::new();
            headers.insert(PLIVO, signature.parse().unwrap());
            headers.insert("x-plivo-signature-v3-nonce", nonce.parse().unwrap());
            Proofs { headers: &headers, url, token: None }.check(Service::Plivo, "secret")
        };
        let (url, ordered) =
            ("wss://c.example/v1/media/plivo?to=1&a=2", "wss://c.example/v1/media/plivo?a=2&to=1");
        assert_eq!(check(url, ordered, "12345", "secret"), Ok(()));
        assert_eq!(check(url, "https://c.example/v1/media/plivo?a=2&to=1", "12345", "secret"), Ok(()));
        assert_eq!(check("wss://c.example/x", "wss://c.example/x", "12345", "secret"), Ok(()));
        assert_eq!(check(url, ordered, "99", "secret"), Err(NoProof::Wrong(PLIVO)));
        assert_eq!(check(url, ordered, "12345", "other"), Err(NoProof::Wrong(PLIVO)));
        assert_eq!(
            check(url, "wss://c.example/v1/media/plivo?a=2&to=2", "12345", "secret"),
            Err(NoProof::Wrong(PLIVO))
        );
    }

    #[test]
    fn telnyx_sends_its_token_in_a_header() {
        let header = |value: &str| Some(("x-telnyx-streaming-auth-token", value.to_owned()));
        assert_eq!(check(Service::Telnyx, header("secret"), None), Ok(()));
        assert!(check(Service::Telnyx, header("secreT"), None).is_err());
        assert!(check(Service::Telnyx, None, None).is_err());
    }

    fn jwt(head: &str, claims: &str, secret: &str) -> Option<(&'static str, String)> {
        let parts = format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(claims));
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(parts.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
        Some(("authorization", format!("Bearer {parts}.{signature}")))
    }

    #[test]
    fn vonage_signs_a_token_that_ends() {
        let head = r#"{"alg":"HS256","typ":"JWT"}"#;
        let live = format!(r#"{{"iat":{}}}"#, unix_seconds());
        assert_eq!(check(Service::Vonage, jwt(head, &live, "secret"), None), Ok(()));
        assert!(check(Service::Vonage, jwt(head, &live, "other"), None).is_err());
        assert_eq!(check(Service::Vonage, jwt(head, r#"{"exp":1}"#, "secret"), None), Err(NoProof::Expired));
        assert_eq!(check(Service::Vonage, jwt(head, "{}", "secret"), None), Err(NoProof::Expired));
        assert!(check(Service::Vonage, jwt(r#"{"alg":"none"}"#, &live, "secret"), None).is_err());
    }

    #[test]
    fn a_token_in_the_address_or_as_a_bearer_is_taken_and_an_empty_one_is_not() {
        assert_eq!(check(Service::Plain, None, Some("secret")), Ok(()));
        assert_eq!(check(Service::Plivo, Some(("authorization", "Bearer secret".into())), None), Ok(()));
        assert_eq!(check(Service::Plain, None, Some("")), Err(NoProof::Wrong("the token")));
        assert!(check(Service::Plain, None, None).is_err());
        assert!(!same("", ""));
    }
}
