//! `[sip]` of the server's file.
//!
//! As written: unknown keys are refused by the reader. [`SipSettings::resolve`] turns it into [`SipOptions`], and says of
//! every value that it does not take which one it is and what would be taken.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use sayback_media::codec::CodecKind;
use serde::Deserialize;

use super::crypto::SrtpPolicy;
use super::options::{Listen, Registrar, SipOptions, SipTransport, TlsFiles, Trunk, User};
use super::transfer::Destination;
use crate::wire::Far;

/// `[sip]` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SipSettings {
    /// `udp:0.0.0.0:5060`, `tcp:…`, `tls:…`.
    pub listen: Vec<String>,
    /// The address that far ends are told.
    pub advertise: Option<String>,
    /// `20000-29999`.
    pub media_ports: Option<String>,
    /// `opus`, `g722`, `pcmu`, `pcma`, the best first.
    pub codecs: Vec<String>,
    /// `optional`, `required` or `off`.
    pub srtp: Option<String>,
    /// Whether strangers may call.
    pub anyone: bool,
    /// `trunk` or `endpoint`: what is behind the packets of those who are neither user nor trunk.
    pub far: Option<String>,
    /// `30m`.
    pub session_timer: Option<String>,
    /// `60s`: whoever is called has this long to answer.
    pub ring: Option<String>,
    /// `60s`.
    pub media_timeout: Option<String>,
    /// Certificate and key for `tls`.
    pub tls: Option<TlsSettings>,
    /// Telephones that call with a password.
    #[serde(rename = "user")]
    pub users: Vec<UserSettings>,
    /// Carriers and telephone systems, by their addresses.
    #[serde(rename = "trunk")]
    pub trunks: Vec<TrunkSettings>,
    /// Where the model may send callers: `reception = "200"`, `sales = { to = "sip:sales@pbx.example", warm = true }`.
    pub transfers: std::collections::BTreeMap<String, TransferSettings>,
    /// Where we are registered.
    pub registrar: Option<RegistrarSettings>,
}

/// A destination in `[sip.transfers]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a number or a SIP address, or { to = \"…\", warm = true }")]
pub enum TransferSettings {
    /// Where callers are sent without a word.
    Plain(String),
    /// Where whoever answers may be told first who calls.
    Told(ToldTransfer),
}

/// A destination that is a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldTransfer {
    /// A number or a SIP address.
    pub to: String,
    /// Whether whoever answers is told first who calls and why, and may refuse.
    #[serde(default)]
    pub warm: bool,
}

impl TransferSettings {
    fn resolve(self) -> Destination {
        match self {
            Self::Plain(to) => Destination::plain(to),
            Self::Told(ToldTransfer { to, warm }) => Destination { to, warm },
        }
    }
}

/// `[sip.tls]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// A PEM file.
    pub certificate: PathBuf,
    /// A PEM file.
    pub key: PathBuf,
}

/// `[[sip.user]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSettings {
    /// Its name.
    pub name: String,
    /// The environment variable with its password.
    pub password_env: String,
    /// `endpoint` (the default) or `trunk`.
    pub far: Option<String>,
}

/// `[[sip.trunk]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrunkSettings {
    /// Its name in logs.
    pub name: String,
    /// `192.0.2.7`, `192.0.2.0/24`.
    pub addresses: Vec<String>,
    /// `trunk` (the default) or `endpoint`.
    pub far: Option<String>,
}

/// `[sip.registrar]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistrarSettings {
    /// `sip:pbx.example`.
    pub server: String,
    /// The name there.
    pub user: String,
    /// The environment variable with the password.
    pub password_env: String,
    /// `10m`.
    pub expires: Option<String>,
}

/// A value that is not taken, or a variable that is not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[sip] {key}: {problem}")]
pub struct SettingError {
    /// Which key.
    pub key: String,
    /// What is wrong with it, and what would be taken.
    pub problem: String,
    /// It is a variable of the environment that is missing, not the file.
    pub missing: bool,
}

fn wrong(key: &str, value: &str, taken: &str) -> SettingError {
    SettingError {
        key: key.to_owned(),
        problem: format!("{value:?} is not taken; write {taken}"),
        missing: false,
    }
}

impl SipSettings {
    /// Resolves it; `env` gives variables of the environment.
    ///
    /// # Errors
    /// If a value is not taken, or a password's variable is not set.
    pub fn resolve(self, env: &dyn Fn(&str) -> Option<String>) -> Result<SipOptions, SettingError> {
        let mut options = SipOptions::default();
        if !self.listen.is_empty() {
            options.listen = self.listen.iter().map(|text| listen(text)).collect::<Result<_, _>>()?;
        }
        options.advertise = match &self.advertise {
            Some(text) => Some(text.parse().map_err(|_| wrong("advertise", text, "an IP address"))?),
            None => None,
        };
        if let Some(text) = &self.media_ports {
            options.media_ports =
                ports(text).ok_or_else(|| wrong("media_ports", text, "a range like 20000-29999"))?;
        }
        if !self.codecs.is_empty() {
            let known = |text: &String| {
                CodecKind::from_name(text).ok_or_else(|| wrong("codecs", text, "opus, g722, pcmu or pcma"))
            };
            options.codecs = self.codecs.iter().map(known).collect::<Result<_, _>>()?;
        }
        if let Some(text) = &self.srtp {
            options.srtp = match text.as_str() {
                "optional" => SrtpPolicy::Optional,
                "required" => SrtpPolicy::Required,
                "off" => SrtpPolicy::Off,
                _ => return Err(wrong("srtp", text, "optional, required or off")),
            };
        }
        options.anyone = self.anyone;
        options.far = far("far", self.far.as_deref(), Far::Trunk)?;
        if let Some(text) = &self.session_timer {
            options.session_timer = span("session_timer", text)?.max(super::timer::SHORTEST);
        }
        if let Some(text) = &self.ring {
            options.ring = span("ring", text)?;
        }
        if let Some(text) = &self.media_timeout {
            options.media_timeout = span("media_timeout", text)?;
        }
        options.tls = self.tls.map(|tls| TlsFiles { certificate: tls.certificate, key: tls.key });
        options.users = self.users.iter().map(|user| user.resolve(env)).collect::<Result<_, _>>()?;
        options.trunks = self.trunks.iter().map(TrunkSettings::resolve).collect::<Result<_, _>>()?;
        options.transfers = self.transfers.into_iter().map(|(name, to)| (name, to.resolve())).collect();
        if let Some((name, _)) = options.transfers.iter().find(|(_, to)| to.to.trim().is_empty()) {
            return Err(wrong(&format!("transfers.{name}"), "", "a number or a SIP address"));
        }
        options.registrar = self.registrar.as_ref().map(|registrar| registrar.resolve(env)).transpose()?;
        Ok(options)
    }
}

impl UserSettings {
    fn resolve(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<User, SettingError> {
        Ok(User {
            name: self.name.clone(),
            password: secret("user.password_env", &self.password_env, env)?,
            far: far("user.far", self.far.as_deref(), Far::Endpoint)?,
        })
    }
}

impl TrunkSettings {
    fn resolve(&self) -> Result<Trunk, SettingError> {
        let net = |text: &String| {
            net(text).ok_or_else(|| wrong("trunk.addresses", text, "an address, or a net like 192.0.2.0/24"))
        };
        Ok(Trunk {
            name: self.name.clone(),
            addresses: self.addresses.iter().map(net).collect::<Result<_, _>>()?,
            far: far("trunk.far", self.far.as_deref(), Far::Trunk)?,
        })
    }
}

impl RegistrarSettings {
    fn resolve(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Registrar, SettingError> {
        if !self.server.starts_with("sip:") && !self.server.starts_with("sips:") {
            return Err(wrong("registrar.server", &self.server, "an address like sip:pbx.example"));
        }
        let expires = self.expires.as_deref().map(|text| span("registrar.expires", text)).transpose()?;
        Ok(Registrar {
            server: self.server.clone(),
            user: self.user.clone(),
            password: secret("registrar.password_env", &self.password_env, env)?,
            expires: expires.unwrap_or(Duration::from_secs(600)),
        })
    }
}

fn secret(key: &str, name: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, SettingError> {
    env(name).filter(|value| !value.is_empty()).ok_or_else(|| SettingError {
        key: key.to_owned(),
        problem: format!("the environment variable {name} is not set; set it to the password"),
        missing: true,
    })
}

fn far(key: &str, text: Option<&str>, default: Far) -> Result<Far, SettingError> {
    match text {
        None => Ok(default),
        Some("trunk") => Ok(Far::Trunk),
        Some("endpoint") => Ok(Far::Endpoint),
        Some(other) => Err(wrong(key, other, "trunk or endpoint")),
    }
}

fn listen(text: &str) -> Result<Listen, SettingError> {
    let wrong =
        || wrong("listen", text, "udp:, tcp: or tls: and an address with its port, like udp:0.0.0.0:5060");
    let (transport, address) = text.split_once(':').ok_or_else(wrong)?;
    let transport = match transport {
        "udp" => SipTransport::Udp,
        "tcp" => SipTransport::Tcp,
        "tls" => SipTransport::Tls,
        _ => return Err(wrong()),
    };
    let address: SocketAddr = address.parse().map_err(|_| wrong())?;
    Ok(Listen { transport, address })
}

fn ports(text: &str) -> Option<std::ops::RangeInclusive<u16>> {
    let (from, to) = text.split_once('-')?;
    let (from, to): (u16, u16) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from >= 1_024 && to > from).then_some(from..=to)
}

fn net(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(most);
    (bits <= most).then_some((address, bits))
}

/// `90s`, `30m`, `2h`.
fn span(key: &str, text: &str) -> Result<Duration, SettingError> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let found = units.into_iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(ms).map(Duration::from_millis)
    });
    found.filter(|span| !span.is_zero()).ok_or_else(|| wrong(key, text, "a time like 90s or 30m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SipOptions, String> {
        let settings: SipSettings = toml::from_str(text).map_err(|error| error.to_string())?;
        let env = |name: &str| (name == "SECRET").then(|| "hush".to_owned());
        settings.resolve(&env).map_err(|error| error.to_string())
    }

    #[test]
    fn everything_can_be_written() {
        let options = read(
            r#"
            listen = ["udp:0.0.0.0:5060", "tls:[::]:5061"]
            advertise = "203.0.113.5"
            media_ports = "20000-20099"
            codecs = ["PCMU", "opus"]
            srtp = "required"
            anyone = true
            far = "endpoint"
            session_timer = "10m"
            media_timeout = "30s"
            ring = "45s"
            tls = { certificate = "a.pem", key = "b.pem" }
            transfers = { desk = "200", boss = { to = "sip:boss@pbx", warm = true }, away = { to = "7" } }
            user = [{ name = "anna", password_env = "SECRET" }]
            trunk = [{ name = "carrier", addresses = ["192.0.2.0/24", "2001:db8::1"] }]
            registrar = { server = "sip:pbx", user = "100", password_env = "SECRET", expires = "5m" }
            "#,
        )
        .unwrap();
        assert_eq!((options.listen.len(), options.codecs.len()), (2, 2));
        assert_eq!(
            (options.users[0].far, options.trunks[0].far, options.far),
            (Far::Endpoint, Far::Trunk, Far::Endpoint)
        );
        assert_eq!(options.trunks[0].addresses[1].1, 128);
        let to = |name: &str| options.transfers[name].clone();
        assert_eq!((to("desk"), to("away")), (Destination::plain("200"), Destination::plain("7")));
        assert_eq!(to("boss"), Destination::warm("sip:boss@pbx"));
        assert_eq!(options.registrar.unwrap().expires, Duration::from_secs(300));
        assert_eq!(read("").unwrap(), SipOptions::default());
    }

    #[test]
    fn what_is_not_taken_is_named() {
        for (text, named) in [
            ("listen = [\"sctp:1.2.3.4:5\"]", "listen"),
            ("listen = [\"udp:nowhere\"]", "udp:0.0.0.0:5060"),
            ("media_ports = \"30000-20000\"", "media_ports"),
            ("codecs = [\"g729\"]", "g729"),
            ("srtp = \"maybe\"", "optional, required or off"),
            ("far = \"away\"", "trunk or endpoint"),
            ("session_timer = \"soon\"", "session_timer"),
            ("media_timeout = \"0s\"", "media_timeout"),
            ("ring = \"long\"", "ring"),
            ("trunk = [{ name = \"x\", addresses = [\"1.2.3.0/33\"] }]", "trunk.addresses"),
            ("user = [{ name = \"x\", password_env = \"UNSET\" }]", "UNSET"),
            ("registrar = { server = \"pbx\", user = \"1\", password_env = \"SECRET\" }", "sip:pbx.example"),
            ("transfers = { boss = { to = \"1\", hot = true } }", "warm = true"),
            ("transfers = { boss = \"\" }", "transfers.boss"),
            ("lisen = []", "lisen"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
