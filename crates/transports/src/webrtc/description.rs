//! Session descriptions, as far as they are our business: is an offer one that we can answer, and what was agreed on?
//!
//! An offer is looked at before the stack sees it: how large it is, whether there is sound in it and in which codec.
//! Everything else is the stack's to read.

use sayback_media::codec::CodecKind;

/// Largest offer, in bytes: a browser's has about 3,000 with one audio section, and about 8,000 with everything.
const LARGEST: usize = 32 * 1024;
/// Sections (`m=`) that an offer may have.
const SECTIONS: usize = 8;
/// Longest line, in bytes.
const LINE: usize = 2_048;

/// Why an offer is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOffer {
    /// It is no session description.
    #[error("this is no session description: {0}")]
    Malformed(&'static str),
    /// It is one, and has nothing that we could agree on.
    #[error("nothing can be agreed on: {0}")]
    NothingInCommon(&'static str),
}

/// What an offer wants, as far as it decides how we answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The codec that we choose.
    pub codec: CodecKind,
    /// There is a data channel in it.
    pub messages: bool,
}

/// What was agreed on for the sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AgreedSound {
    pub(super) payload_type: u8,
    /// Of key presses.
    pub(super) events: Option<u8>,
    /// What was lost is sent again if it is asked for (NACK, RFC 4585).
    pub(super) resends: bool,
}

impl Wanted {
    /// Reads an offer.
    ///
    /// # Errors
    /// If it is none, or none that we can answer.
    pub fn read(offer: &str) -> Result<Self, NoOffer> {
        use NoOffer::{Malformed, NothingInCommon};
        if offer.len() > LARGEST {
            return Err(Malformed("it is larger than 32 KiB"));
        }
        if !offer.starts_with("v=0") {
            return Err(Malformed("it does not begin with v=0"));
        }
        if offer.lines().any(|line| line.len() > LINE) {
            return Err(Malformed("it has a line of more than 2,048 bytes"));
        }
        if offer.chars().any(|letter| letter.is_control() && !matches!(letter, '\r' | '\n' | '\t')) {
            return Err(Malformed("it has control characters"));
        }
        let sections: Vec<&str> = offer.split("\nm=").skip(1).collect();
        if sections.len() > SECTIONS {
            return Err(Malformed("it has more than 8 sections"));
        }
        for needed in ["a=ice-ufrag:", "a=ice-pwd:", "a=fingerprint:"] {
            if value(offer, needed).is_none_or(str::is_empty) {
                return Err(Malformed("it has no ICE name, password or fingerprint"));
            }
        }
        let sound: Vec<&&str> = sections.iter().filter(|section| section.starts_with("audio ")).collect();
        let [sound] = sound[..] else { return Err(NothingInCommon("one section of audio is wanted")) };
        if direction(sound) != "a=sendrecv" {
            return Err(NothingInCommon("the sound must go both ways: a=sendrecv"));
        }
        let codec = [CodecKind::Opus, CodecKind::Pcmu].into_iter().find(|codec| has(sound, *codec));
        Ok(Self {
            codec: codec.ok_or(NothingInCommon("of the codecs, Opus and PCMU are spoken here"))?,
            messages: sections.iter().any(|section| section.starts_with("application ")),
        })
    }
}

impl AgreedSound {
    /// Reads it out of our answer.
    pub(super) fn read(answer: &str, codec: CodecKind) -> Option<Self> {
        let sound = answer.split("\nm=").find(|section| section.starts_with("audio "))?;
        let events = format!("telephone-event/{}", codec.clock_rate());
        let payload_type = type_of(sound, codec)?;
        let resends = format!("a=rtcp-fb:{payload_type} nack");
        Some(Self {
            payload_type,
            resends: sound.lines().any(|line| line.trim() == resends),
            events: mapped(sound).find(|(_, name)| name.eq_ignore_ascii_case(&events)).map(|(kind, _)| kind),
        })
    }
}

/// The value of the first line that begins so.
pub(super) fn value<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(start)).map(str::trim)
}

fn direction(section: &str) -> &str {
    let is = |line: &&str| matches!(line.trim(), "a=sendrecv" | "a=sendonly" | "a=recvonly" | "a=inactive");
    section.lines().find(is).map_or("a=sendrecv", str::trim)
}

fn has(section: &str, codec: CodecKind) -> bool {
    type_of(section, codec).is_some()
}

/// The payload type of a codec in a section.
fn type_of(section: &str, codec: CodecKind) -> Option<u8> {
    let offered = formats(section);
    let named = mapped(section).find(|(kind, name)| {
        let (name, rate) = name.split_once('/').unwrap_or((name, ""));
        let rate = rate.split('/').next().unwrap_or_default();
        offered.contains(kind)
            && name.eq_ignore_ascii_case(codec.name())
            && rate == codec.clock_rate().to_string()
    });
    let fixed = || offered.iter().copied().find(|kind| CodecKind::from_static(*kind) == Some(codec));
    named.map(|(kind, _)| kind).or_else(fixed)
}

/// The payload types in the first line of a section.
fn formats(section: &str) -> Vec<u8> {
    let first = section.lines().next().unwrap_or_default();
    first.split_whitespace().skip(3).filter_map(|word| word.parse().ok()).collect()
}

/// Payload types with what they stand for.
fn mapped(section: &str) -> impl Iterator<Item = (u8, &str)> {
    section.lines().filter_map(|line| {
        let (kind, name) = line.strip_prefix("a=rtpmap:")?.trim().split_once(' ')?;
        Some((kind.parse().ok()?, name.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
        m=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\n\
        a=ice-pwd:abcdefghijklmnopqrstuvwx\r\na=fingerprint:sha-256 AA:BB\r\na=setup:actpass\r\na=mid:0\r\n\
        a=sendrecv\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\na=rtpmap:63 red/48000/2\r\n\
        a=rtpmap:110 telephone-event/48000\r\na=rtpmap:126 telephone-event/8000\r\n\
        m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:1\r\n";

    #[test]
    fn a_browsers_offer_is_read() {
        assert_eq!(Wanted::read(OFFER), Ok(Wanted { codec: CodecKind::Opus, messages: true }));
        let plain = OFFER.replace("111 63 9 0", "0").replace("opus", "x");
        assert_eq!(Wanted::read(&plain).map(|wanted| wanted.codec), Ok(CodecKind::Pcmu));
        let agreed = AgreedSound::read(OFFER, CodecKind::Opus);
        assert_eq!(agreed, Some(AgreedSound { payload_type: 111, events: Some(110), resends: false }));
        let more = OFFER.replace("a=rtcp-mux", "a=rtcp-mux\r\na=rtcp-fb:111 nack\r\na=rtcp-fb:0 nack pli");
        let resends = |codec| AgreedSound::read(&more, codec).unwrap().resends;
        assert!(resends(CodecKind::Opus) && !resends(CodecKind::Pcmu));
        let agreed = AgreedSound::read(OFFER, CodecKind::Pcmu);
        assert_eq!(agreed, Some(AgreedSound { payload_type: 0, events: Some(126), resends: false }));
    }

    #[test]
    fn what_cannot_be_answered_is_told_why() {
        let long = format!("{OFFER}a={}\r\n", "x".repeat(3_000));
        let many = format!("{OFFER}{}", "m=video 9 X 1\r\n".repeat(9));
        for (offer, expected) in [
            (String::new(), "does not begin with v=0"),
            ("v=0\r\n".to_owned(), "no ICE name"),
            (OFFER.repeat(100), "larger than 32 KiB"),
            (long, "2,048 bytes"),
            (many, "more than 8 sections"),
            (OFFER.replace("s=-", "s=\u{0}"), "control characters"),
            (OFFER.replace("m=audio", "m=video"), "one section of audio"),
            (OFFER.replace("sendrecv", "recvonly"), "both ways"),
            (OFFER.replace("111 63 9 0 8 13", "63 9 8"), "Opus and PCMU"),
        ] {
            let error = Wanted::read(&offer).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
