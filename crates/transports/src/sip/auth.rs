//! Who calls: digest authentication (RFC 8760's MD5 and SHA-256 as the stack computes them), trunks, the machine itself.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rsipstack::dialog::authenticate::verify_digest;
use rsipstack::sip::Request;
use rsipstack::sip::headers::Header;
use rsipstack::sip::typed::Authorization;
use sayback_core::Time;

use super::messages::header;
use super::options::SipOptions;
use crate::wire::Far;

/// What passwords are asked for in the name of.
const REALM: &str = "sayback";
/// A challenge is answered within this, and once.
const FRESH: Duration = Duration::from_secs(120);
/// Challenges that wait for their answer; the oldest go first, so a flood makes nobody's memory grow.
const WAITING: usize = 4_096;

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// The trunk's or the user's name.
    pub(super) name: Option<String>,
    /// What is behind the packets.
    pub(super) far: Far,
}

/// What to do about a request.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It may call.
    Known(Caller),
    /// It is asked for its password: 401 with this header.
    Challenge(Header),
    /// It may not call.
    Stranger,
}

/// The door.
#[derive(Debug, Default)]
pub(super) struct Door {
    waiting: Mutex<VecDeque<(String, Time)>>,
}

impl Door {
    /// Looks at a request from an address.
    pub(super) fn ask(&self, options: &SipOptions, request: &Request, from: IpAddr, now: Time) -> Verdict {
        if let Some(trunk) = options.trunks.iter().find(|trunk| trunk.has(from)) {
            return Verdict::Known(Caller { name: Some(trunk.name.clone()), far: trunk.far });
        }
        if !options.users.is_empty() {
            if let Some(caller) = self.password(options, request, now) {
                return Verdict::Known(caller);
            }
            return self.challenge(now).map_or(Verdict::Stranger, Verdict::Challenge);
        }
        if options.anyone || from.is_loopback() {
            return Verdict::Known(Caller { name: None, far: options.far });
        }
        Verdict::Stranger
    }

    fn password(&self, options: &SipOptions, request: &Request, now: Time) -> Option<Caller> {
        let raw = header(request, "Authorization")?;
        let given = Authorization::parse(&raw).ok()?;
        let user = options.users.iter().find(|user| user.name == given.username)?;
        let right = given.realm == REALM && verify_digest(&given, &user.password, request.method(), &raw);
        // A challenge is spent by its first right answer: an answer that somebody overheard opens nothing.
        let fresh = right && self.spend(&given.nonce, now);
        fresh.then(|| Caller { name: Some(user.name.clone()), far: user.far })
    }

    fn challenge(&self, now: Time) -> Option<Header> {
        let nonce = nonce()?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.len() >= WAITING || waiting.front().is_some_and(|(_, at)| now.since(*at) > FRESH) {
            waiting.pop_front();
        }
        waiting.push_back((nonce.clone(), now));
        let value = format!("Digest realm=\"{REALM}\", nonce=\"{nonce}\", algorithm=MD5, qop=\"auth\"");
        Some(Header::WwwAuthenticate(value.into()))
    }

    fn spend(&self, nonce: &str, now: Time) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let place = waiting.iter().position(|(known, at)| known == nonce && now.since(*at) <= FRESH);
        place.and_then(|place| waiting.remove(place)).is_some()
    }
}

/// A challenge that nobody can guess; `None` if the machine has no random numbers, and then nobody is let in by one.
fn nonce() -> Option<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sip::{Trunk, User};
    use rsipstack::dialog::authenticate::compute_digest;
    use rsipstack::sip::Method;
    use rsipstack::sip::headers::auth::{Algorithm, AuthQop};

    fn invite(authorization: Option<String>) -> Request {
        let line = authorization.map_or(String::new(), |value| format!("Authorization: {value}\r\n"));
        let text = format!(
            "INVITE sip:100@sayback SIP/2.0\r\nVia: SIP/2.0/UDP 1.2.3.4;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\n\
             To: <sip:100@sayback>\r\nCall-ID: 1\r\nCSeq: 1 INVITE\r\n{line}Content-Length: 0\r\n\r\n"
        );
        Request::try_from(text.as_bytes()).unwrap()
    }

    fn options() -> SipOptions {
        let user = User { name: "anna".to_owned(), password: "secret".to_owned(), far: Far::Endpoint };
        SipOptions { users: vec![user], ..SipOptions::default() }
    }

    fn answer(challenge: &Header, password: &str) -> String {
        let text = challenge.to_string();
        let nonce = text.split("nonce=\"").nth(1).unwrap().split('"').next().unwrap();
        let qop = AuthQop::Auth { cnonce: "c".to_owned(), nc: 1 };
        let uri = "sip:100@sayback";
        let digest =
            compute_digest("anna", password, REALM, nonce, &Method::Invite, uri, Algorithm::Md5, Some(&qop));
        format!(
            "Digest username=\"anna\", realm=\"{REALM}\", nonce=\"{nonce}\", uri=\"{uri}\", response=\"{digest}\", \
             algorithm=MD5, cnonce=\"c\", nc=00000001, qop=auth"
        )
    }

    fn challenge(door: &Door, options: &SipOptions) -> Header {
        match door.ask(options, &invite(None), "8.8.8.8".parse().unwrap(), Time::ZERO) {
            Verdict::Challenge(header) => header,
            other @ (Verdict::Known(_) | Verdict::Stranger) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_password_opens_once() {
        let (door, options) = (Door::default(), options());
        let request = invite(Some(answer(&challenge(&door, &options), "secret")));
        let from = "8.8.8.8".parse().unwrap();
        let first = door.ask(&options, &request, from, Time::from_millis(500));
        assert!(
            matches!(first, Verdict::Known(Caller { name: Some(name), far: Far::Endpoint }) if name == "anna")
        );
        let again = door.ask(&options, &request, from, Time::from_millis(600));
        assert!(matches!(again, Verdict::Challenge(_)), "overheard and said again: {again:?}");
    }

    #[test]
    fn a_wrong_password_and_a_late_one_are_asked_again() {
        let (door, options) = (Door::default(), options());
        let from = "8.8.8.8".parse().unwrap();
        for (password, at) in [("guess", 500), ("secret", 121_000)] {
            let request = invite(Some(answer(&challenge(&door, &options), password)));
            let verdict = door.ask(&options, &request, from, Time::from_millis(at));
            assert!(matches!(verdict, Verdict::Challenge(_)), "{password}: {verdict:?}");
        }
    }

    #[test]
    fn trunks_call_without_a_password_and_strangers_do_not_call() {
        let trunk = Trunk {
            name: "carrier".to_owned(),
            addresses: vec![("192.0.2.0".parse().unwrap(), 24)],
            far: Far::Trunk,
        };
        let options = SipOptions { trunks: vec![trunk], ..SipOptions::default() };
        let ask =
            |from: &str| Door::default().ask(&options, &invite(None), from.parse().unwrap(), Time::ZERO);
        assert!(matches!(ask("192.0.2.9"), Verdict::Known(Caller { name: Some(_), .. })));
        assert!(matches!(ask("127.0.0.1"), Verdict::Known(Caller { name: None, .. })));
        assert!(matches!(ask("8.8.8.8"), Verdict::Stranger));
    }

    #[test]
    fn a_flood_of_challenges_is_bounded() {
        let (door, options) = (Door::default(), options());
        for _ in 0..WAITING + 10 {
            challenge(&door, &options);
        }
        assert_eq!(door.waiting.lock().unwrap().len(), WAITING);
    }
}
