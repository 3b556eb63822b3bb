//! Offer and answer (RFC 3264): what two ends agree on.
//!
//! We offer and answer one audio stream; every other medium is refused by a port of 0, in its place. The codec is the
//! first of ours that the other end has too, in *our* order, since it is our recogniser that must understand.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use sayback_media::codec::CodecKind;
use sayback_media::rtp::PayloadTypes;
use sayback_media::rtp::send::SendFormat;

use super::crypto::{Crypto, SrtpKeys, SrtpPolicy};
use super::sdp::{Description, Direction, Media, head};

/// Comfort noise has this payload type by RFC 3551.
const COMFORT_NOISE: u8 = 13;
/// What we offer key presses as.
const EVENTS: u8 = 101;

/// Our own side of a session.
#[derive(Clone, Debug)]
pub struct Ours {
    /// Where we can be reached, as the far end sees it.
    pub address: IpAddr,
    /// Our RTP port.
    pub port: u16,
    /// The session's id and the description's version.
    pub id: u64,
    /// Grows with each description that differs.
    pub version: u64,
    /// Codecs that we take, the best first.
    pub codecs: Vec<CodecKind>,
    /// Whether sound is encrypted.
    pub srtp: SrtpPolicy,
    /// The key that we encrypt with, if we do.
    pub key: Crypto,
}

/// Why no session came about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSession {
    /// There is no audio, or it is refused.
    #[error("no audio is offered")]
    NoAudio,
    /// No common codec.
    #[error("no codec in common; {ours} are taken")]
    NoCodec {
        /// Ours.
        ours: String,
    },
    /// Encryption that we do not have, or none where it is wanted.
    #[error("{0}")]
    Encryption(&'static str),
    /// It gives no address that can be sent to.
    #[error("the description names no address that can be sent to")]
    NoAddress,
}

/// What was agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Where our sound is wanted.
    pub remote: SocketAddr,
    /// Where reports are wanted.
    pub reports: SocketAddr,
    /// Reports share the port of the sound.
    pub shared_port: bool,
    /// The far end hears what we say. Not so while it holds us.
    pub heard: bool,
    /// The far end sends.
    pub hearing: bool,
    /// What comes in.
    pub types: PayloadTypes,
    /// What goes out.
    pub format: SendFormat,
    /// The keys, if the sound is encrypted.
    pub srtp: Option<SrtpKeys>,
}

/// One codec as the far end numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    codec: CodecKind,
    payload_type: u8,
    events: Option<u8>,
    comfort_noise: Option<u8>,
    ptime_ms: u32,
}

/// Answers an offer; gives what was agreed and the answer's text.
///
/// # Errors
/// If nothing can be agreed on: a 488.
pub fn answer(offer: &Description, ours: &Ours) -> Result<(Agreed, String), NoSession> {
    let place = offer.media.iter().position(is_audio).ok_or(NoSession::NoAudio)?;
    let audio = &offer.media[place];
    let choice = choose(audio, &ours.codecs)?;
    let srtp = ours.srtp.answer(audio, &ours.key)?;
    let direction = wanted(offer, audio);
    let agreed = agree(offer, audio, choice, srtp)?;
    let mut text = head(ours.id, ours.version, ours.address);
    for (n, media) in offer.media.iter().enumerate() {
        if n == place {
            let line = AudioLine {
                protocol: &audio.protocol,
                choices: &[choice],
                direction: direction.reversed(),
                crypto: agreed.srtp.as_ref().map(|keys| &keys.local),
                shared_port: agreed.shared_port,
            };
            line.write(ours.port, &mut text);
        } else {
            let formats = if media.formats.is_empty() { "0".to_owned() } else { media.formats.join(" ") };
            let _ = write!(text, "m={} 0 {} {formats}\r\n", media.kind, media.protocol);
        }
    }
    Ok((agreed, text))
}

/// Our own offer: all codecs, the best first; `direction` is ours.
pub fn offer(ours: &Ours, direction: Direction) -> String {
    let mut text = head(ours.id, ours.version, ours.address);
    let choices: Vec<Choice> = ours
        .codecs
        .iter()
        .map(|codec| Choice {
            codec: *codec,
            payload_type: codec.payload_type(),
            events: Some(EVENTS),
            comfort_noise: None,
            ptime_ms: 20,
        })
        .collect();
    let encrypts = ours.srtp == SrtpPolicy::Required;
    let line = AudioLine {
        protocol: if encrypts { "RTP/SAVP" } else { "RTP/AVP" },
        choices: &choices,
        direction,
        crypto: encrypts.then_some(&ours.key),
        shared_port: false,
    };
    line.write(ours.port, &mut text);
    text
}

/// What an answer to our offer agrees on.
///
/// # Errors
/// If it refuses, or answers with what was not offered.
pub fn take_answer(answer: &Description, ours: &Ours) -> Result<Agreed, NoSession> {
    let audio = answer.media.iter().find(|media| is_audio(media)).ok_or(NoSession::NoAudio)?;
    let choice = choose(audio, &ours.codecs)?;
    let srtp = ours.srtp.take_answer(audio, &ours.key)?;
    agree(answer, audio, choice, srtp)
}

fn is_audio(media: &Media) -> bool {
    media.kind.eq_ignore_ascii_case("audio") && media.port > 0
}

/// Which way the far end wants it, an address of zeros being the old way to hold.
fn wanted(session: &Description, audio: &Media) -> Direction {
    match (session.direction(audio), session.is_zero_address(audio)) {
        (Direction::SendRecv | Direction::SendOnly, true) => Direction::SendOnly,
        (Direction::RecvOnly | Direction::Inactive, true) => Direction::Inactive,
        (direction, false) => direction,
    }
}

fn agree(
    session: &Description,
    audio: &Media,
    choice: Choice,
    srtp: Option<SrtpKeys>,
) -> Result<Agreed, NoSession> {
    let direction = wanted(session, audio);
    let remote = session.address(audio).ok_or(NoSession::NoAddress)?;
    let shared_port = audio.has("rtcp-mux");
    let own_port = audio.values("rtcp").find_map(|value| value.split_whitespace().next()?.parse().ok());
    let report_port =
        if shared_port { remote.port() } else { own_port.unwrap_or(remote.port().wrapping_add(1)) };
    Ok(Agreed {
        remote,
        reports: SocketAddr::new(remote.ip(), report_port),
        shared_port,
        heard: direction.listens() && !remote.ip().is_unspecified(),
        hearing: direction.sends(),
        types: PayloadTypes {
            audio: choice.payload_type,
            codec: choice.codec,
            events: choice.events,
            comfort_noise: choice.comfort_noise,
        },
        format: SendFormat {
            codec: choice.codec,
            payload_type: choice.payload_type,
            ptime_ms: choice.ptime_ms,
            events: choice.events,
        },
        srtp,
    })
}

/// The codec of a format, by its `rtpmap` or by its number.
fn codec_of(audio: &Media, format: &str) -> Option<CodecKind> {
    match audio.of_format("rtpmap", format) {
        Some(map) => {
            let mut parts = map.split('/');
            let kind = CodecKind::from_name(parts.next()?.trim())?;
            let rate: u32 = parts.next()?.trim().parse().ok()?;
            (rate == kind.clock_rate()).then_some(kind)
        }
        None => CodecKind::from_static(format.parse().ok()?),
    }
}

fn choose(audio: &Media, ours: &[CodecKind]) -> Result<Choice, NoSession> {
    let found = ours.iter().find_map(|kind| {
        let format = audio.formats.iter().find(|format| codec_of(audio, format) == Some(*kind))?;
        Some((*kind, format.parse::<u8>().ok().filter(|number| *number < 128)?))
    });
    let Some((codec, payload_type)) = found else {
        let ours: Vec<&str> = ours.iter().map(|kind| kind.name()).collect();
        return Err(NoSession::NoCodec { ours: ours.join(", ") });
    };
    let numbered = |wanted: &str| -> Option<u8> {
        audio.formats.iter().find_map(|format| {
            let map = audio.of_format("rtpmap", format)?;
            map.to_ascii_lowercase().starts_with(wanted).then(|| format.parse().ok()).flatten()
        })
    };
    let clock = codec.clock_rate();
    let events = numbered(&format!("telephone-event/{clock}")).or_else(|| numbered("telephone-event/"));
    let noise = audio.formats.iter().any(|format| format == "13") && clock == 8_000;
    Ok(Choice {
        codec,
        payload_type,
        events,
        comfort_noise: noise.then_some(COMFORT_NOISE),
        ptime_ms: ptime(audio, codec),
    })
}

/// How much sound the far end wants in a packet: whole frames of 10 ms that its codec has, at most 60 ms.
fn ptime(audio: &Media, codec: CodecKind) -> u32 {
    let number = |name: &str| audio.values(name).find_map(|value| value.trim().parse::<u32>().ok());
    let most = number("maxptime").unwrap_or(60).clamp(10, 60);
    let wanted = number("ptime").unwrap_or(20).clamp(10, most) / 10 * 10;
    match (codec, wanted) {
        (CodecKind::Opus, 30) => 20,
        (CodecKind::Opus, 50) => 40,
        (CodecKind::Pcmu | CodecKind::Pcma | CodecKind::G722 | CodecKind::Opus, wanted) => wanted,
    }
}

/// One `m=audio` and what belongs to it.
struct AudioLine<'a> {
    protocol: &'a str,
    choices: &'a [Choice],
    direction: Direction,
    crypto: Option<&'a Crypto>,
    shared_port: bool,
}

impl AudioLine<'_> {
    fn write(&self, port: u16, out: &mut String) {
        let mut formats: Vec<u8> = self.choices.iter().map(|choice| choice.payload_type).collect();
        let events = self.choices.iter().find_map(|choice| choice.events);
        let noise = self.choices.iter().find_map(|choice| choice.comfort_noise);
        formats.extend(noise);
        formats.extend(events);
        let numbers: Vec<String> = formats.iter().map(u8::to_string).collect();
        let _ = write!(out, "m=audio {port} {} {}\r\n", self.protocol, numbers.join(" "));
        for choice in self.choices {
            let (number, codec) = (choice.payload_type, choice.codec);
            let channels = if codec == CodecKind::Opus { "/2" } else { "" };
            let _ = write!(out, "a=rtpmap:{number} {}/{}{channels}\r\n", codec.name(), codec.clock_rate());
            if codec == CodecKind::Opus {
                // Mono both ways, with copies of lost packets; no silence is left out, since a gap hides an answer.
                let _ = write!(out, "a=fmtp:{number} useinbandfec=1;usedtx=0;stereo=0\r\n");
            }
        }
        if let Some(number) = noise {
            let _ = write!(out, "a=rtpmap:{number} CN/8000\r\n");
        }
        if let Some(number) = events {
            let clock = self.choices.first().map_or(8_000, |choice| choice.codec.clock_rate());
            let clock = if self.choices.len() > 1 { 8_000 } else { clock };
            let _ = write!(out, "a=rtpmap:{number} telephone-event/{clock}\r\na=fmtp:{number} 0-15\r\n");
        }
        let ptime = self.choices.first().map_or(20, |choice| choice.ptime_ms);
        let _ = write!(out, "a=ptime:{ptime}\r\na=maxptime:60\r\n");
        if self.shared_port {
            out.push_str("a=rtcp-mux\r\n");
        }
        if let Some(crypto) = self.crypto {
            let _ = write!(out, "a=crypto:{crypto}\r\n");
        }
        let _ = write!(out, "a={}\r\n", self.direction.name());
    }
}

#[cfg(test)]
mod tests;
