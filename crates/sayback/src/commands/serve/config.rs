//! The server's file: who answers what, where it listens, who may do what.
//!
//! Read strictly: a key that is not known is a mistake, and is told with its line. What is known and not there yet is
//! refused as well, rather than passed over.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sayback_agentfile::parse_duration;
use sayback_runtime::fault::{slip, utf8};
use sayback_runtime::switchboard::Limits;
use sayback_server::webhook::Webhook;
use sayback_server::{Bounds, HttpLimits, TlsFiles, Token};
use sayback_transports::media_stream::{MediaSettings, Service, VendorSettings};
use sayback_transports::sip::{SipOptions, SipSettings};
#[cfg(feature = "webrtc")]
use sayback_transports::webrtc::{WebRtcOptions, WebRtcSettings};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::stores::{LedgerSettings, ObjectsAt, StoreSettings, Stored};
use crate::exit::Stop;
use crate::kinds::{Kind, other_than};
#[cfg(feature = "telemetry")]
use crate::telemetry::TelemetrySettings;

/// The server's file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default = "here")]
    listen: SocketAddr,
    agents: BTreeMap<String, Spanned<WrittenAgent>>,
    media: Option<WrittenMedia>,
    #[serde(default)]
    auth: WrittenAuth,
    #[serde(default)]
    limits: WrittenLimits,
    tls: Option<Spanned<WrittenTls>>,
    #[serde(default)]
    webhook: Vec<Spanned<WrittenWebhook>>,
    record: Option<WrittenRecord>,
    #[cfg(feature = "webrtc")]
    webrtc: Option<Spanned<WebRtcSettings>>,
    #[cfg(not(feature = "webrtc"))]
    webrtc: Option<Spanned<toml::Table>>,
    sip: Option<Spanned<SipSettings>>,
    store: Option<Spanned<StoreSettings>>,
    #[serde(default)]
    ledger: LedgerSettings,
    #[cfg(feature = "telemetry")]
    telemetry: Option<Spanned<TelemetrySettings>>,
    #[cfg(not(feature = "telemetry"))]
    telemetry: Option<Spanned<toml::Table>>,
}

fn here() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8080))
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum WrittenAgent {
    File(PathBuf),
    Scripted { file: PathBuf, script: PathBuf },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMedia {
    public_url: Option<Spanned<String>>,
    twilio: Option<Spanned<WrittenSecret>>,
    telnyx: Option<Spanned<WrittenSecret>>,
    plivo: Option<Spanned<WrittenSecret>>,
    vonage: Option<Spanned<WrittenSecret>>,
    plain: Option<Spanned<WrittenSecret>>,
    audio_socket: Option<SocketAddr>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSecret {
    secret_env: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAuth {
    #[serde(default)]
    token: Vec<Token>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenLimits {
    calls: usize,
    longest: Span,
    kept: usize,
    drain: Span,
    token: WrittenBounds,
    address: WrittenBounds,
}

/// What one token or one address may ask for; what is left out has its default.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenBounds {
    requests: Option<NonZeroU32>,
    starts: Option<NonZeroU32>,
    streams: Option<NonZeroU32>,
}

impl WrittenBounds {
    fn or(self, default: Bounds) -> Bounds {
        Bounds {
            requests: self.requests.unwrap_or(default.requests),
            starts: self.starts.unwrap_or(default.starts),
            streams: self.streams.unwrap_or(default.streams),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTls {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    #[serde(default)]
    by_proxy: bool,
}

impl Default for WrittenLimits {
    fn default() -> Self {
        let Limits { calls, longest, kept } = Limits::default();
        Self {
            calls,
            longest: Span(longest),
            kept,
            drain: Span(Duration::from_secs(60)),
            token: WrittenBounds::default(),
            address: WrittenBounds::default(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWebhook {
    url: String,
    secret_env: String,
    #[serde(default)]
    events: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRecord {
    folder: PathBuf,
    notice: Option<String>,
}

/// A length of time as agent files write it: `"90s"`, `"1h"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(pub(super) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_duration(&text).map(Span).map_err(serde::de::Error::custom)
    }
}

/// Who answers: an agent file and, for a scripted model, its script.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AgentChoice {
    pub(crate) file: PathBuf,
    pub(crate) script: Option<PathBuf>,
}

/// The server's file, resolved.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    /// By what is called; `*` is everything else.
    pub(crate) agents: BTreeMap<String, AgentChoice>,
    pub(crate) media: MediaSettings,
    pub(crate) audio_socket: Option<SocketAddr>,
    /// Telephone calls, if they are taken.
    pub(crate) sip: Option<SipOptions>,
    /// Calls from browsers, if they are taken.
    #[cfg(feature = "webrtc")]
    pub(crate) webrtc: Option<WebRtcOptions>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) limits: Limits,
    pub(crate) drain: Duration,
    /// What one token and one address may ask for.
    pub(crate) http: HttpLimits,
    /// The certificate, unless a proxy has it or nobody else can reach the server.
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) webhooks: Vec<Webhook>,
    /// Where approvals, the ledger and conversations with their confirmed runs are kept.
    pub(crate) store: Stored,
    /// Where recordings go once their call is over.
    pub(crate) objects: Option<ObjectsAt>,
    pub(crate) ledger: LedgerSettings,
    /// How calls are recorded whose agents want it.
    pub(crate) record: Option<Recording>,
}

/// How calls are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recording {
    /// Each in a folder of its own below this one.
    pub(crate) folder: PathBuf,
    /// What callers are told of it first.
    pub(crate) notice: Option<String>,
}

/// A file being read, for messages with a place.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn stop(&self, at: usize, message: &str, hint: &str) -> Stop {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let hint = if hint.is_empty() { String::new() } else { format!("\n  hint: {hint}") };
        Stop::unusable(format!("{}:{line}:{column}: {message}{hint}", self.path.display()))
    }

    /// A secret out of the environment.
    fn secret(&self, at: usize, variable: &str) -> Result<String, Stop> {
        match std::env::var(variable) {
            Ok(secret) if !secret.is_empty() => Ok(secret),
            Ok(_) | Err(_) => {
                let stop = self.stop(at, &format!("the secret {variable} is not set"), "");
                Err(Stop::missing(format!("{stop}\n  hint: export {variable}=… before you start")))
            }
        }
    }
}

/// Reads the server's file.
pub(crate) fn load(path: &Path) -> Result<Config, Stop> {
    let unreadable = |error: std::io::Error| {
        Stop::unusable(format!(
            "{}: cannot be read: {error}\n  hint: name a server file, for example configs/hosted.toml",
            path.display()
        ))
    };
    other_than(Kind::Server, path)?;
    let text = utf8(path, std::fs::read(path).map_err(unreadable)?);
    let text = text.map_err(|fault| Stop::unusable(format!("{fault:#}")))?;
    let source = Source { path, text: &text };
    let written: Written = toml::from_str(&text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let hint = slip(&message).map(|word| format!("did you mean `{word}`?"));
        let hint = hint.as_deref().unwrap_or("see docs/server.md");
        source.stop(error.span().map_or(0, |span| span.start), &message, hint)
    })?;
    resolve(&source, written)
}

fn resolve(source: &Source<'_>, written: Written) -> Result<Config, Stop> {
    refuse_absent(source, &written)?;
    let folder = source.path.parent().unwrap_or(Path::new("")).to_owned();
    let mut agents = BTreeMap::new();
    for (called, choice) in written.agents {
        let at = choice.span().start;
        let choice = match choice.into_inner() {
            WrittenAgent::File(file) => AgentChoice { file: folder.join(file), script: None },
            WrittenAgent::Scripted { file, script } => {
                AgentChoice { file: folder.join(file), script: Some(folder.join(script)) }
            }
        };
        if !choice.file.is_file() {
            let message = format!("there is no agent file {}", choice.file.display());
            return Err(source.stop(at, &message, "paths are looked for beside the server's file"));
        }
        agents.insert(called, choice);
    }
    if agents.is_empty() {
        return Err(source.stop(0, "nobody answers", "write [agents] with \"*\" = \"clinic.toml\""));
    }
    let audio_socket = written.media.as_ref().and_then(|media| media.audio_socket);
    if audio_socket.is_some_and(|address| !address.ip().is_loopback() && !is_private(address)) {
        let hint = "AudioSocket proves nothing: listen on loopback or on a private network";
        return Err(source.stop(0, "media.audio_socket is reachable from outside", hint));
    }
    known_agents(source, &written.auth.token, &agents)?;
    let limits = &written.limits;
    let (tls, behind_proxy) = tls(source, written.tls, written.listen)?;
    let http = HttpLimits::default();
    Ok(Config {
        http: HttpLimits {
            token: limits.token.or(http.token),
            address: limits.address.or(http.address),
            behind_proxy,
        },
        tls,
        listen: written.listen,
        agents,
        media: media(source, written.media, written.listen)?,
        audio_socket,
        sip: sip(source, written.sip)?,
        #[cfg(feature = "webrtc")]
        webrtc: webrtc(source, written.webrtc, written.listen)?,
        objects: objects(source, written.store.as_ref(), written.record.is_some())?,
        store: store(source, written.store)?,
        ledger: written.ledger,
        tokens: written.auth.token,
        limits: Limits { calls: limits.calls, longest: limits.longest.0, kept: limits.kept },
        drain: limits.drain.0,
        webhooks: webhooks(source, written.webhook)?,
        record: written
            .record
            .map(|WrittenRecord { folder: below, notice }| Recording { folder: folder.join(below), notice }),
    })
}

fn webhooks(source: &Source<'_>, written: Vec<Spanned<WrittenWebhook>>) -> Result<Vec<Webhook>, Stop> {
    let mut webhooks = Vec::new();
    for hook in written {
        let at = hook.span().start;
        let WrittenWebhook { url, secret_env, events } = hook.into_inner();
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(source.stop(at, "the webhook's url is no address", "write https://…"));
        }
        webhooks.push(Webhook { url, secret: source.secret(at, &secret_env)?, events });
    }
    Ok(webhooks)
}

/// Refuses a page's token for an agent that nobody is.
fn known_agents(
    source: &Source<'_>,
    tokens: &[Token],
    agents: &BTreeMap<String, AgentChoice>,
) -> Result<(), Stop> {
    let unknown = |token: &&Token| token.agents.iter().any(|agent| !agents.contains_key(agent));
    let Some(token) = tokens.iter().find(unknown) else { return Ok(()) };
    let message = format!("the token {:?} names an agent that is not in [agents]", token.name);
    Err(source.stop(0, &message, "a page calls agents by their names there"))
}

/// What has a name and is not there yet: passing it over would be a promise.
fn refuse_absent(source: &Source<'_>, written: &Written) -> Result<(), Stop> {
    #[cfg(not(feature = "webrtc"))]
    if let Some(table) = &written.webrtc {
        let message = "[webrtc] is not in this build";
        return Err(source.stop(table.span().start, message, "build with the feature webrtc"));
    }
    #[cfg(not(feature = "telemetry"))]
    if let Some(table) = &written.telemetry {
        let message = "[telemetry] is not in this build";
        return Err(source.stop(table.span().start, message, "build with the feature telemetry"));
    }
    // It is used before this file is read whole: the log begins first.
    #[cfg(feature = "telemetry")]
    if let Some(table) = &written.telemetry
        && !["http://", "https://"].iter().any(|scheme| table.get_ref().otlp.starts_with(scheme))
    {
        let message = "[telemetry] otlp is no address";
        return Err(source.stop(table.span().start, message, "write otlp = \"http://127.0.0.1:4318\""));
    }
    Ok(())
}

/// Who ends TLS. Tokens in the clear are for this machine alone.
fn tls(
    source: &Source<'_>,
    written: Option<Spanned<WrittenTls>>,
    listen: SocketAddr,
) -> Result<(Option<TlsFiles>, bool), Stop> {
    let hint =
        "write [tls] with certificate and key, or with by_proxy = true where a proxy in front ends TLS";
    let Some(written) = written else {
        if listen.ip().is_loopback() {
            return Ok((None, false));
        }
        let message =
            format!("tokens would cross the network in the clear: {listen} is reachable from outside");
        return Err(source.stop(0, &message, hint));
    };
    let at = written.span().start;
    let folder = source.path.parent().unwrap_or(Path::new(""));
    match written.into_inner() {
        WrittenTls { certificate: Some(certificate), key: Some(key), by_proxy: false } => {
            Ok((Some(TlsFiles { certificate: folder.join(certificate), key: folder.join(key) }), false))
        }
        WrittenTls { certificate: None, key: None, by_proxy: true } => Ok((None, true)),
        WrittenTls { .. } => {
            Err(source.stop(at, "[tls] has both of certificate and key, or by_proxy = true alone", hint))
        }
    }
}

fn is_private(address: SocketAddr) -> bool {
    match address.ip() {
        std::net::IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        std::net::IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// Where things are kept. An address with a password in it comes out of the environment.
fn store(source: &Source<'_>, written: Option<Spanned<StoreSettings>>) -> Result<Stored, Stop> {
    let Some(written) = written else { return Ok(Stored::InMemory) };
    let at = written.span().start;
    let settings = written.into_inner();
    let url = match (&settings.url, &settings.url_env) {
        (Some(url), None) => url.clone(),
        (None, Some(variable)) => source.secret(at, variable)?,
        (None, None) if settings.objects.is_some() => return Ok(Stored::InMemory),
        (None, None) | (Some(_), Some(_)) => {
            let hint = "write url = \"sqlite:sayback.db\", or url_env = \"DATABASE_URL\"";
            return Err(source.stop(at, "[store] has one of url and url_env", hint));
        }
    };
    let folder = source.path.parent().unwrap_or(Path::new(""));
    Stored::at(&url, folder, &settings).map_err(|message| {
        source.stop(at, &message, "write url = \"sqlite:sayback.db\" or \"postgres://USER@HOST/NAME\"")
    })
}

/// Where recordings go.
fn objects(
    source: &Source<'_>,
    written: Option<&Spanned<StoreSettings>>,
    recorded: bool,
) -> Result<Option<ObjectsAt>, Stop> {
    let Some(written) = written else { return Ok(None) };
    let at = written.span().start;
    let StoreSettings { objects, endpoint, .. } = written.get_ref();
    let Some(objects) = objects else {
        if endpoint.is_some() {
            let hint = "write objects = \"s3://BUCKET/PREFIX\" beside it";
            return Err(source.stop(at, "[store] has an endpoint and no objects", hint));
        }
        return Ok(None);
    };
    if !recorded {
        let hint = "they are made in its folder first: [record] folder = \"recordings\"";
        return Err(source.stop(at, "[store] objects is for recordings, and there is no [record]", hint));
    }
    let folder = source.path.parent().unwrap_or(Path::new(""));
    let place = ObjectsAt::new(objects, endpoint.as_deref(), folder);
    place.map(Some).map_err(|message| source.stop(at, &message, "see docs/recordings.md"))
}

/// How telephone calls are taken.
fn sip(source: &Source<'_>, written: Option<Spanned<SipSettings>>) -> Result<Option<SipOptions>, Stop> {
    let Some(written) = written else { return Ok(None) };
    let at = written.span().start;
    let resolved = written.into_inner().resolve(&|name| std::env::var(name).ok());
    resolved.map(Some).map_err(|error| {
        let stop = source.stop(at, &error.to_string(), "see docs/telephone.md");
        if error.missing { Stop::missing(stop) } else { stop }
    })
}

/// How calls from browsers are taken.
#[cfg(feature = "webrtc")]
fn webrtc(
    source: &Source<'_>,
    written: Option<Spanned<WebRtcSettings>>,
    listen: SocketAddr,
) -> Result<Option<WebRtcOptions>, Stop> {
    let Some(written) = written else { return Ok(None) };
    let at = written.span().start;
    let resolved = written.into_inner().resolve(listen, &|name| std::env::var(name).ok());
    resolved.map(Some).map_err(|error| {
        let stop = source.stop(at, &error.to_string(), "see docs/webrtc.md");
        if error.missing { Stop::missing(stop) } else { stop }
    })
}

/// Which services may open streams. One without a secret is only served where nobody else can reach it.
fn media(
    source: &Source<'_>,
    written: Option<WrittenMedia>,
    listen: SocketAddr,
) -> Result<MediaSettings, Stop> {
    let Some(written) = written else { return Ok(MediaSettings::default()) };
    let WrittenMedia { public_url, twilio, telnyx, plivo, vonage, plain, audio_socket: _ } = written;
    let named = [
        (Service::Twilio, twilio),
        (Service::Telnyx, telnyx),
        (Service::Plivo, plivo),
        (Service::Vonage, vonage),
        (Service::Plain, plain),
    ];
    let mut services = BTreeMap::new();
    for (service, written) in named {
        let Some(written) = written else { continue };
        let at = written.span().start;
        let secret = match written.into_inner().secret_env {
            Some(variable) => Some(source.secret(at, &variable)?),
            None if listen.ip().is_loopback() => None,
            None => {
                let hint = "name the variable that holds the secret: secret_env = \"…\"";
                return Err(source.stop(at, "without a secret anybody could open a stream", hint));
            }
        };
        services.insert(service, VendorSettings { secret });
    }
    let public_url = match public_url {
        Some(url) if !url.get_ref().starts_with("wss://") && !url.get_ref().starts_with("ws://") => {
            let hint = "write it as the service is told to open it: wss://calls.example.com";
            return Err(source.stop(url.span().start, "public_url is no WebSocket address", hint));
        }
        url => url.map(Spanned::into_inner),
    };
    Ok(MediaSettings { public_url, services })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("clinic.toml"), "").unwrap();
        let path = folder.path().join("hosted.toml");
        std::fs::write(&path, text).unwrap();
        let shown = |stop: Stop| stop.to_string().replace(&format!("{}/", folder.path().display()), "");
        load(&path).map_err(shown)
    }

    #[test]
    fn a_short_file_is_enough() {
        let config = read("[agents]\n\"*\" = \"clinic.toml\"\n").unwrap();
        assert_eq!(config.listen, here());
        assert_eq!(config.limits, Limits::default());
        assert!(config.agents.contains_key("*") && config.media.services.is_empty());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let agents = "[agents]\n\"*\" = \"clinic.toml\"\n";
        for (text, expected) in [
            (
                format!("{agents}[store]\nurl = \"mysql://x\"\n"),
                "hosted.toml:3:1: the address of the store begins",
            ),
            (format!("{agents}[store]\n"), "[store] has one of url and url_env"),
            (format!("{agents}[store]\nurl_env = \"SAYBACK_NOT_SET\"\n"), "SAYBACK_NOT_SET is not set"),
            (format!("{agents}[ledger]\nunnoted = \"maybe\"\n"), "unknown variant `maybe`"),
            #[cfg(feature = "telemetry")]
            (format!("{agents}[telemetry]\notlp = \"x\"\n"), "is no address"),
            (format!("{agents}[limits]\ncals = 3\n"), "hosted.toml:4:1: unknown field `cals`"),
            (format!("{agents}[limits]\nlongest = \"soon\"\n"), "hosted.toml:4:11: "),
            (
                "[agents]\n\"*\" = \"other.toml\"\n".to_owned(),
                "hosted.toml:2:7: there is no agent file other.toml",
            ),
            ("listen = \"here\"\n".to_owned(), "hosted.toml:1:10: "),
            (
                format!("{agents}[webrtc]\nbind = [\"x\"]\n"),
                "hosted.toml:3:1: [webrtc] bind: \"x\" is not taken",
            ),
            (format!("{agents}[webrtc]\nbnd = []\n"), "hosted.toml:4:1: unknown field `bnd`"),
            (
                format!("{agents}[sip]\ncodecs = [\"g729\"]\n"),
                "hosted.toml:3:1: [sip] codecs: \"g729\" is not taken",
            ),
            (format!("{agents}[sip]\nlisen = []\n"), "hosted.toml:4:1: unknown field `lisen`"),
            (
                format!("{agents}[media]\npublic_url = \"https://a\"\n"),
                "hosted.toml:4:14: public_url is no WebSocket",
            ),
            (
                format!("{agents}[media.plain]\nsecret_env = \"SAYBACK_NOT_SET\"\n"),
                "the secret SAYBACK_NOT_SET is not set",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }

    #[test]
    fn what_would_be_open_to_anybody_is_told() {
        let agents = "[agents]\n\"*\" = \"clinic.toml\"\n";
        for (text, expected) in [
            (
                format!("listen = \"0.0.0.0:1\"\n{agents}[tls]\nby_proxy = true\n[media.plain]\n"),
                "without a secret anybody",
            ),
            (format!("listen = \"0.0.0.0:1\"\n{agents}"), "tokens would cross the network in the clear"),
            (format!("{agents}[tls]\n"), "hosted.toml:3:1: [tls] has both of"),
            (format!("{agents}[tls]\ncertificate = \"c\"\n"), "[tls] has both of"),
            (format!("{agents}[tls]\ncertificate = \"c\"\nkey = \"k\"\nby_proxy = true\n"), "[tls] has both"),
            (format!("{agents}[limits.token]\nrequests = 0\n"), "hosted.toml:4:12: "),
            (format!("{agents}[limits.address]\nstart = 1\n"), "unknown field `start`"),
            (
                format!(
                    "{agents}[[auth.token]]\nname = \"a\"\nsha256 = \"b\"\nroles = []\nagents = [\"x\"]\n"
                ),
                "names an agent that is not in [agents]",
            ),
            (format!("{agents}[media]\naudio_socket = \"0.0.0.0:9092\"\n"), "reachable from outside"),
            (format!("{agents}[[webhook]]\nurl = \"x\"\nsecret_env = \"PATH\"\n"), "is no address"),
            (
                format!("{agents}[[auth.token]]\nname = \"a\"\nsha256 = \"b\"\nroles = [\"rd\"]\n"),
                "unknown variant `rd`",
            ),
            ("[agents]\n".to_owned(), "nobody answers"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }

    #[test]
    fn a_place_for_recordings_is_told_of_if_it_can_be_none() {
        let agents = "[agents]\n\"*\" = \"clinic.toml\"\n";
        for (text, expected) in [
            (
                format!("{agents}[store]\nobjects = \"s3://b\"\n"),
                "hosted.toml:3:1: [store] objects is for recordings",
            ),
            (
                format!("{agents}[record]\nfolder = \"r\"\n[store]\nobjects = \"s3://\"\n"),
                "hosted.toml:5:1: \"s3://\" is no place for objects",
            ),
            (
                format!(
                    "{agents}[record]\nfolder = \"r\"\n[store]\nobjects = \"s3://b\"\nendpoint = \"x\"\n"
                ),
                "\"x\" is no endpoint",
            ),
            (format!("{agents}[store]\nendpoint = \"http://x\"\n"), "an endpoint and no objects"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(expected), "{text}\n{error}");
        }
        let text = format!("{agents}[record]\nfolder = \"r\"\n[store]\nobjects = \"there\"\n");
        let config = read(&text).unwrap();
        assert!(config.objects.is_some() && config.store == Stored::InMemory);
    }
}
