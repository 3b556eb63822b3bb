//! Session descriptions (RFC 8866), as far as a telephone call needs them.
//!
//! A reader of our own, because it must be lenient: telephones send session ids that are no numbers, leave lines out
//! and put them in another order, and a strict reader would refuse their calls. What it does not know it keeps.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

/// Longest description; more is an attack.
const LONGEST: usize = 16_384;
/// Most media in one.
const MEDIA: usize = 16;
/// Most attributes of one.
const ATTRIBUTES: usize = 256;

/// A body that is no session description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SdpError {
    /// Not text, or too long.
    #[error("the session description is no text of at most {LONGEST} bytes")]
    NoText,
    /// A line that is needed and not understood.
    #[error("the session description's line {line:?} is not understood")]
    Line {
        /// The line.
        line: String,
    },
    /// No media at all, or too many.
    #[error("the session description has {count} media; 1 to {MEDIA} are taken")]
    Media {
        /// How many.
        count: usize,
    },
}

/// Which way sound is to flow, seen from whoever wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Both.
    #[default]
    SendRecv,
    /// It only sends: we are on hold.
    SendOnly,
    /// It only listens.
    RecvOnly,
    /// Neither.
    Inactive,
}

impl Direction {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "sendrecv" => Some(Self::SendRecv),
            "sendonly" => Some(Self::SendOnly),
            "recvonly" => Some(Self::RecvOnly),
            "inactive" => Some(Self::Inactive),
            _ => None,
        }
    }

    /// Its attribute.
    pub fn name(self) -> &'static str {
        match self {
            Self::SendRecv => "sendrecv",
            Self::SendOnly => "sendonly",
            Self::RecvOnly => "recvonly",
            Self::Inactive => "inactive",
        }
    }

    /// The same seen from the other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::SendRecv => Self::SendRecv,
            Self::SendOnly => Self::RecvOnly,
            Self::RecvOnly => Self::SendOnly,
            Self::Inactive => Self::Inactive,
        }
    }

    /// Whether whoever wrote it sends.
    pub fn sends(self) -> bool {
        matches!(self, Self::SendRecv | Self::SendOnly)
    }

    /// Whether whoever wrote it listens.
    pub fn listens(self) -> bool {
        matches!(self, Self::SendRecv | Self::RecvOnly)
    }
}

/// One medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// `audio`, `video`, ….
    pub kind: String,
    /// Where it is wanted; 0: not at all.
    pub port: u16,
    /// `RTP/AVP`, `RTP/SAVP`, ….
    pub protocol: String,
    /// Payload types, the preferred first.
    pub formats: Vec<String>,
    /// Its own `c=`, if it has one.
    pub connection: Option<String>,
    /// Its attributes, name and value.
    pub attributes: Vec<(String, String)>,
}

impl Media {
    /// The values of an attribute, in order.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.attributes.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it has an attribute.
    pub fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// What an attribute says about a payload type: `a=rtpmap:96 opus/48000`.
    pub fn of_format<'a>(&'a self, name: &'a str, format: &str) -> Option<&'a str> {
        self.values(name).find_map(|value| {
            let (number, rest) = value.split_once(char::is_whitespace)?;
            (number == format).then(|| rest.trim())
        })
    }
}

/// A whole description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The session's `c=`.
    pub connection: Option<String>,
    /// The session's attributes.
    pub attributes: Vec<(String, String)>,
    /// Its media, in order.
    pub media: Vec<Media>,
}

impl Description {
    /// Reads a body.
    ///
    /// # Errors
    /// If it is none, or a line that matters is not understood.
    pub fn parse(body: &[u8]) -> Result<Self, SdpError> {
        if body.len() > LONGEST {
            return Err(SdpError::NoText);
        }
        let text = std::str::from_utf8(body).map_err(|_| SdpError::NoText)?;
        let mut session = Self::default();
        for line in text.lines().map(str::trim) {
            let Some((key, value)) = line.split_once('=') else {
                if line.is_empty() {
                    continue;
                }
                return Err(SdpError::Line { line: shown(line) });
            };
            let wrong = || SdpError::Line { line: shown(line) };
            match key.trim() {
                "m" => session.media.push(media(value).ok_or_else(wrong)?),
                "c" => {
                    let address = value.split_whitespace().nth(2).ok_or_else(wrong)?;
                    // A multicast address may have a time to live behind a slash.
                    let address = address.split('/').next().unwrap_or(address).to_owned();
                    match session.media.last_mut() {
                        Some(media) => media.connection = Some(address),
                        None => session.connection = Some(address),
                    }
                }
                "a" => session.attribute(value),
                _ => {}
            }
            if session.media.len() > MEDIA {
                return Err(SdpError::Media { count: session.media.len() });
            }
        }
        if session.media.is_empty() {
            return Err(SdpError::Media { count: 0 });
        }
        Ok(session)
    }

    fn attribute(&mut self, value: &str) {
        let (name, value) = value.split_once(':').unwrap_or((value, ""));
        let list = match self.media.last_mut() {
            Some(media) => &mut media.attributes,
            None => &mut self.attributes,
        };
        if list.len() < ATTRIBUTES {
            list.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }

    /// Which way a medium is to flow: its own word, or else the session's.
    pub fn direction(&self, media: &Media) -> Direction {
        let named = |list: &[(String, String)]| list.iter().find_map(|(name, _)| Direction::from_name(name));
        named(&media.attributes).or_else(|| named(&self.attributes)).unwrap_or_default()
    }

    /// Where a medium is wanted; `None` if it gives no address, a name instead of one, or a port of 0.
    pub fn address(&self, media: &Media) -> Option<SocketAddr> {
        let connection = media.connection.as_ref().or(self.connection.as_ref())?;
        let address: IpAddr = connection.parse().ok()?;
        (media.port > 0 && !address.is_multicast()).then_some(SocketAddr::new(address, media.port))
    }

    /// Whether a medium is put on hold in the old way, by an address of zeros (RFC 3264, 8.4).
    pub fn is_zero_address(&self, media: &Media) -> bool {
        let connection = media.connection.as_ref().or(self.connection.as_ref());
        let address = connection.and_then(|address| address.parse::<IpAddr>().ok());
        address.is_some_and(|address| address.is_unspecified())
    }
}

fn media(value: &str) -> Option<Media> {
    let mut words = value.split_whitespace();
    let kind = words.next()?.to_owned();
    let port = words.next()?;
    let port = port.split('/').next()?.parse().ok()?;
    let protocol = words.next()?.to_owned();
    let formats = words.map(str::to_owned).take(64).collect();
    Some(Media { kind, port, protocol, formats, connection: None, attributes: Vec::new() })
}

fn shown(line: &str) -> String {
    line.chars().take(80).collect()
}

/// The lines before the first medium.
pub(super) fn head(id: u64, version: u64, address: IpAddr) -> String {
    let family = if matches!(address, IpAddr::V4(_)) { "IP4" } else { "IP6" };
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "v=0\r\no=- {id} {version} IN {family} {address}\r\ns=-\r\nc=IN {family} {address}\r\nt=0 0\r\n"
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PHONE: &str = "v=0\r\no=alice 2890844526x 1 IN IP4 host.example\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
        a=sendonly\r\nm=video 0 RTP/AVP 31\r\nm=audio 49170/2 RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\n\
        a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\n";

    #[test]
    fn a_telephones_offer_is_read_though_it_is_not_quite_right() {
        let session = Description::parse(PHONE.as_bytes()).unwrap();
        let audio = &session.media[1];
        assert_eq!((audio.kind.as_str(), audio.port, audio.formats.len()), ("audio", 49_170, 2));
        assert_eq!(audio.of_format("rtpmap", "101"), Some("telephone-event/8000"));
        assert_eq!(session.direction(audio), Direction::SendOnly);
        assert_eq!(session.address(audio), Some("192.0.2.1:49170".parse().unwrap()));
        assert_eq!(session.address(&session.media[0]), None);
    }

    #[test]
    fn the_old_hold_and_the_new_are_seen() {
        let old = Description::parse(b"c=IN IP4 0.0.0.0\nm=audio 9 RTP/AVP 0\n").unwrap();
        assert!(old.is_zero_address(&old.media[0]));
        let new = Description::parse(b"c=IN IP4 1.2.3.4\nm=audio 9 RTP/AVP 0\na=inactive\n").unwrap();
        assert_eq!(new.direction(&new.media[0]), Direction::Inactive);
    }

    #[test]
    fn what_is_no_description_is_refused_with_the_line() {
        assert_eq!(Description::parse(&[0xff, 0xfe]), Err(SdpError::NoText));
        assert_eq!(Description::parse(b""), Err(SdpError::Media { count: 0 }));
        let line = SdpError::Line { line: "m=audio x RTP/AVP 0".to_owned() };
        assert_eq!(Description::parse(b"v=0\r\nm=audio x RTP/AVP 0\r\n"), Err(line));
        let many = "m=audio 1 RTP/AVP 0\n".repeat(17);
        assert_eq!(Description::parse(many.as_bytes()), Err(SdpError::Media { count: 17 }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Description::parse(&bytes);
        }

        #[test]
        fn any_lines_are_read_or_refused(lines in prop::collection::vec("[acmvos]=[ -~]{0,40}", 0..30)) {
            if let Ok(session) = Description::parse(lines.join("\r\n").as_bytes()) {
                for media in &session.media {
                    let _ = (session.address(media), session.direction(media), session.is_zero_address(media));
                    let _ = (media.of_format("rtpmap", "0"), media.has("crypto"));
                }
            }
        }
    }
}
