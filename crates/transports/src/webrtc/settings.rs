//! `[webrtc]` of the server's file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;

/// The stack takes 30 s to find a way broken, and a page needs some seconds more to find another one.
const PATIENCE: Duration = Duration::from_secs(45);
/// What may be written instead, in seconds.
const PATIENCES: RangeInclusive<u64> = 5..=600;

/// `[webrtc]` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebRtcSettings {
    /// Addresses that sound comes to.
    pub bind: Vec<String>,
    /// `40000-40999`.
    pub ports: Option<String>,
    /// The address that callers reach us at, where it is none of this machine's.
    pub public_address: Option<String>,
    /// `stun:stun.example.com:3478`.
    pub stun: Vec<String>,
    /// Relays.
    pub turn: Vec<TurnSettings>,
    /// Sound only goes over a relay.
    pub relay_only: bool,
    /// `45s`: a caller of whom nothing comes for so long is gone.
    pub patience: Option<String>,
}

/// `[[webrtc.turn]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnSettings {
    /// `turn:turn.example.com:3478`.
    pub url: String,
    /// The name there.
    pub user: String,
    /// The environment variable with the password.
    pub password_env: String,
}

/// A relay.
#[derive(Clone, PartialEq, Eq)]
pub struct TurnServer {
    /// `turn:…`.
    pub url: String,
    /// The name there.
    pub user: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for TurnServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnServer").field("url", &self.url).field("user", &self.user).finish_non_exhaustive()
    }
}

/// How calls from browsers are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebRtcOptions {
    /// Addresses that sound comes to. An unspecified one stands for every interface but loopback.
    pub bind: Vec<IpAddr>,
    /// Ports for it; `None`: any that is free.
    pub ports: Option<RangeInclusive<u16>>,
    /// Where callers reach us, if not at these addresses: a router in front hands everything on, port by port.
    pub public_address: Option<IpAddr>,
    /// Who is asked how we look from outside.
    pub stun: Vec<String>,
    /// Relays.
    pub turn: Vec<TurnServer>,
    /// Sound only goes over a relay.
    pub relay_only: bool,
    /// A caller from whom neither sound nor the wish for another way has come for so long is gone. Before that a page
    /// whose address has changed is waited for.
    pub patience: Duration,
}

impl Default for WebRtcOptions {
    /// Every interface, any port.
    fn default() -> Self {
        Self {
            bind: vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)],
            ports: None,
            public_address: None,
            stun: Vec::new(),
            turn: Vec::new(),
            relay_only: false,
            patience: PATIENCE,
        }
    }
}

/// A value that is not taken, or a variable that is not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[webrtc] {key}: {problem}")]
pub struct WebRtcSettingError {
    /// Which key.
    pub key: &'static str,
    /// What is wrong with it, and what would be taken.
    pub problem: String,
    /// It is a variable of the environment that is missing, not the file.
    pub missing: bool,
}

fn wrong(key: &'static str, value: &str, taken: &str) -> WebRtcSettingError {
    WebRtcSettingError { key, problem: format!("{value:?} is not taken; write {taken}"), missing: false }
}

impl WebRtcSettings {
    /// Resolves it. `listen` is where the HTTP side listens: a server that only this machine reaches takes sound from
    /// this machine only, unless it is told where. `env` gives variables of the environment.
    ///
    /// # Errors
    /// If a value is none that is taken, or a password is not set.
    pub fn resolve(
        self,
        listen: SocketAddr,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<WebRtcOptions, WebRtcSettingError> {
        let mut bind = Vec::new();
        for written in &self.bind {
            bind.push(address("bind", written)?);
        }
        if bind.is_empty() {
            bind.push(if listen.ip().is_loopback() { listen.ip() } else { unspecified(listen.ip()) });
        }
        for url in &self.stun {
            if !url.starts_with("stun:") {
                return Err(wrong("stun", url, "stun:HOST:PORT"));
            }
        }
        let mut turn = Vec::new();
        for TurnSettings { url, user, password_env } in self.turn {
            if !url.starts_with("turn:") {
                return Err(wrong("turn.url", &url, "turn:HOST:PORT"));
            }
            let problem = format!("{password_env} is not set; export {password_env}=… before you start");
            let missing = WebRtcSettingError { key: "turn.password_env", problem, missing: true };
            let password = env(&password_env).filter(|password| !password.is_empty()).ok_or(missing)?;
            turn.push(TurnServer { url, user, password });
        }
        if self.relay_only && turn.is_empty() {
            let problem = "there is no relay; name one in [[webrtc.turn]]".to_owned();
            return Err(WebRtcSettingError { key: "relay_only", problem, missing: false });
        }
        Ok(WebRtcOptions {
            bind,
            ports: self.ports.as_deref().map(ports).transpose()?,
            public_address: self
                .public_address
                .as_deref()
                .map(|a| address("public_address", a))
                .transpose()?,
            stun: self.stun,
            turn,
            relay_only: self.relay_only,
            patience: self.patience.as_deref().map_or(Ok(PATIENCE), patience)?,
        })
    }
}

fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

fn address(key: &'static str, written: &str) -> Result<IpAddr, WebRtcSettingError> {
    written.parse().map_err(|_| wrong(key, written, "an address: 192.0.2.7"))
}

fn patience(written: &str) -> Result<Duration, WebRtcSettingError> {
    let seconds = written.strip_suffix('s').and_then(|number| number.trim().parse().ok());
    let taken = seconds.filter(|seconds| PATIENCES.contains(seconds)).map(Duration::from_secs);
    taken.ok_or_else(|| wrong("patience", written, "5s to 600s: 45s"))
}

fn ports(written: &str) -> Result<RangeInclusive<u16>, WebRtcSettingError> {
    let parsed = written.split_once('-').and_then(|(from, to)| {
        let (from, to) = (from.trim().parse::<u16>().ok()?, to.trim().parse::<u16>().ok()?);
        (from >= 1024 && from <= to).then_some(from..=to)
    });
    parsed.ok_or_else(|| wrong("ports", written, "a range from 1024 up: 40000-40999"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str, listen: &str) -> Result<WebRtcOptions, String> {
        let written: WebRtcSettings = toml::from_str(text).unwrap();
        let env = |name: &str| (name == "SET").then(|| "secret".to_owned());
        written.resolve(listen.parse().unwrap(), &env).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_of_this_machine_takes_sound_from_this_machine() {
        let local = resolve("", "127.0.0.1:8080").unwrap();
        assert_eq!(local.bind, ["127.0.0.1".parse::<IpAddr>().unwrap()]);
        assert!(resolve("", "0.0.0.0:8080").unwrap().bind[0].is_unspecified());
        let told = resolve("bind = [\"192.0.2.7\"]\nports = \"40000-40999\"", "127.0.0.1:1").unwrap();
        let waits = |text| resolve(text, "127.0.0.1:1").unwrap().patience.as_secs();
        assert_eq!([waits(""), waits("patience = \"90s\"")], [45, 90]);
        assert_eq!((told.bind[0].to_string(), told.ports), ("192.0.2.7".to_owned(), Some(40_000..=40_999)));
    }

    #[test]
    fn what_is_not_taken_is_told_with_what_would_be() {
        let turn = "[[turn]]\nurl = \"turn:h\"\nuser = \"u\"\npassword_env = ";
        for (text, expected) in [
            ("bind = [\"here\"]".to_owned(), "[webrtc] bind: \"here\" is not taken; write an address"),
            ("ports = \"9-1\"".to_owned(), "ports: \"9-1\" is not taken"),
            ("stun = [\"example.com\"]".to_owned(), "stun:HOST:PORT"),
            ("relay_only = true".to_owned(), "there is no relay"),
            ("patience = \"1m\"".to_owned(), "patience: \"1m\" is not taken; write 5s to 600s"),
            ("patience = \"4s\"".to_owned(), "patience: \"4s\" is not taken"),
            (format!("{turn}\"UNSET\""), "UNSET is not set"),
            ("[[turn]]\nurl = \"h\"\nuser = \"u\"\npassword_env = \"SET\"".to_owned(), "turn:HOST:PORT"),
        ] {
            let error = resolve(&text, "127.0.0.1:1").unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert_eq!(resolve(&format!("{turn}\"SET\""), "127.0.0.1:1").unwrap().turn[0].password, "secret");
    }
}
