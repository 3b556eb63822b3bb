//! Keys in the session description (SDES, RFC 4568), and what they encrypt (SRTP, RFC 3711).

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rtc_srtp::context::Context;
use rtc_srtp::option::{srtcp_replay_protection, srtp_replay_protection};
use rtc_srtp::protection_profile::ProtectionProfile;

use super::offer::NoSession;
use super::sdp::Media;

/// A key and its salt for AES-128.
const KEY: usize = 16;
const SALT: usize = 14;
/// Packets that may come out of order before they count as replayed.
const WINDOW: usize = 256;
/// Streams that a far end may have in one session; phones have one, and another after each transfer.
const STREAMS: usize = 32;

/// Whether sound is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SrtpPolicy {
    /// If the far end offers it. Our own offers are in the clear.
    #[default]
    Optional,
    /// Or there is no call.
    Required,
    /// Never.
    Off,
}

/// What protects a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// AES-128 in counter mode, an authentication tag of 80 bits.
    Tag80,
    /// The same with a tag of 32 bits.
    Tag32,
}

impl Suite {
    fn name(self) -> &'static str {
        match self {
            Self::Tag80 => "AES_CM_128_HMAC_SHA1_80",
            Self::Tag32 => "AES_CM_128_HMAC_SHA1_32",
        }
    }

    fn profile(self) -> ProtectionProfile {
        match self {
            Self::Tag80 => ProtectionProfile::Aes128CmHmacSha1_80,
            Self::Tag32 => ProtectionProfile::Aes128CmHmacSha1_32,
        }
    }
}

/// One side's key. Its text is that of an `a=crypto` line; its debug form shows no key.
#[derive(Clone, PartialEq, Eq)]
pub struct Crypto {
    /// Which of several offered it is.
    pub tag: u32,
    /// The suite.
    pub suite: Suite,
    key: [u8; KEY + SALT],
}

impl fmt::Debug for Crypto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crypto").field("tag", &self.tag).field("suite", &self.suite).finish_non_exhaustive()
    }
}

impl fmt::Display for Crypto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} inline:{}", self.tag, self.suite.name(), STANDARD.encode(self.key))
    }
}

impl Crypto {
    /// A key of ours, from random bytes.
    pub fn from_random(key: [u8; KEY + SALT]) -> Self {
        Self { tag: 1, suite: Suite::Tag80, key }
    }

    /// Reads an attribute's value; `None` for suites and parameters that we do not have.
    fn parse(value: &str) -> Option<Self> {
        let mut words = value.split_whitespace();
        let tag = words.next()?.parse().ok()?;
        let name = words.next()?;
        let suite = [Suite::Tag80, Suite::Tag32].into_iter().find(|suite| suite.name() == name)?;
        let inline = words.next()?.strip_prefix("inline:")?;
        // Lifetime and a key's number may follow; we need neither, but several keys in one line we do not have.
        if inline.contains(';')
            || words.any(|word| word.starts_with("UNENCRYPTED") || word.starts_with("UNAUTH"))
        {
            return None;
        }
        let key = STANDARD.decode(inline.split('|').next()?).ok()?;
        Some(Self { tag, suite, key: key.try_into().ok()? })
    }
}

/// The keys of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrtpKeys {
    /// What we encrypt with.
    pub local: Crypto,
    /// What the far end encrypts with.
    pub remote: Crypto,
}

impl SrtpPolicy {
    /// The keys for an offer, if it is encrypted.
    ///
    /// # Errors
    /// If it wants what we do not have, or does not offer what we want.
    pub(super) fn answer(self, audio: &Media, ours: &Crypto) -> Result<Option<SrtpKeys>, NoSession> {
        if !is_secure(audio) {
            return match self {
                Self::Required => Err(NoSession::Encryption("this server takes encrypted sound (SRTP) only")),
                Self::Optional | Self::Off => Ok(None),
            };
        }
        if self == Self::Off {
            return Err(NoSession::Encryption("this server takes no encrypted sound"));
        }
        let theirs = audio.values("crypto").find_map(Crypto::parse);
        let remote = theirs.ok_or(NoSession::Encryption(
            "encrypted sound needs a key in the offer (a=crypto, AES_CM_128_HMAC_SHA1_80 or _32)",
        ))?;
        let local = Crypto { tag: remote.tag, suite: remote.suite, ..ours.clone() };
        Ok(Some(SrtpKeys { local, remote }))
    }

    /// The keys that an answer to our offer settles.
    ///
    /// # Errors
    /// If it is not encrypted and our offer was, or the other way round.
    pub(super) fn take_answer(self, audio: &Media, ours: &Crypto) -> Result<Option<SrtpKeys>, NoSession> {
        match (self, is_secure(audio)) {
            (Self::Required, true) => {
                let theirs = audio.values("crypto").find_map(Crypto::parse);
                let remote = theirs
                    .filter(|theirs| theirs.tag == ours.tag && theirs.suite == ours.suite)
                    .ok_or(NoSession::Encryption("the answer has no key for the one that was offered"))?;
                Ok(Some(SrtpKeys { local: ours.clone(), remote }))
            }
            (Self::Optional | Self::Off, false) => Ok(None),
            (Self::Required | Self::Optional | Self::Off, _) => {
                Err(NoSession::Encryption("the answer is not encrypted as the offer was"))
            }
        }
    }
}

fn is_secure(audio: &Media) -> bool {
    audio.protocol.to_ascii_uppercase().contains("SAVP")
}

/// Encrypts one side's packets and decrypts the other's.
pub(super) struct Protection {
    out: Context,
    inward: Context,
    keys: SrtpKeys,
    /// Streams of the far end that proved to be its own.
    known: BTreeSet<u32>,
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protection")
    }
}

impl Protection {
    /// From the keys of a session; `None` if the library refuses them, which lengths that were checked rule out.
    pub(super) fn new(keys: &SrtpKeys) -> Option<Self> {
        let (out, inward) = (context(&keys.local)?, context(&keys.remote)?);
        Some(Self { out, inward, keys: keys.clone(), known: BTreeSet::new() })
    }

    /// A packet as it goes over the wire.
    pub(super) fn protect(&mut self, packet: &[u8], reports: bool) -> Option<Vec<u8>> {
        let done = if reports { self.out.encrypt_rtcp(packet) } else { self.out.encrypt_rtp(packet) };
        done.ok().map(|bytes| bytes.to_vec())
    }

    /// A packet that came; `None` if it is not the far end's, was changed, or comes a second time.
    pub(super) fn open(&mut self, packet: &[u8], reports: bool) -> Option<Vec<u8>> {
        let place = if reports { 4 } else { 8 };
        let ssrc = packet.get(place..place + 4)?;
        let ssrc = u32::from_be_bytes([ssrc[0], ssrc[1], ssrc[2], ssrc[3]]);
        if !self.known.contains(&ssrc) {
            // The library keeps a state for every stream that it is asked about, before it knows whether the packet is
            // genuine. So a stream is tried on a context that is thrown away, or anybody could fill the memory.
            decrypt(&mut context(&self.keys.remote)?, packet, reports)?;
            if self.known.len() == STREAMS {
                return None;
            }
            self.known.insert(ssrc);
        }
        decrypt(&mut self.inward, packet, reports)
    }
}

/// Bytes behind a protected report: its index, whose first bit says "encrypted", and the tag.
const REPORT_TAIL: usize = 4 + 10;

fn decrypt(context: &mut Context, packet: &[u8], reports: bool) -> Option<Vec<u8>> {
    if reports {
        // The library hands out a report that says of itself that it is not encrypted, without looking at its tag.
        let first = packet.len().checked_sub(REPORT_TAIL).and_then(|place| packet.get(place))?;
        if first & 0x80 == 0 {
            return None;
        }
    }
    let done = if reports { context.decrypt_rtcp(packet) } else { context.decrypt_rtp(packet) };
    done.ok().map(|bytes| bytes.to_vec())
}

fn context(crypto: &Crypto) -> Option<Context> {
    let provider = rtc_srtp::crypto::default_provider().ok()?;
    let (key, salt) = crypto.key.split_at(KEY);
    let (rtp, rtcp) = (srtp_replay_protection(WINDOW), srtcp_replay_protection(WINDOW));
    Context::new(key, salt, crypto.suite.profile(), Some(rtp), Some(rtcp), provider.crypto()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sayback_media::rtp::RtpPacket;

    fn keys() -> (SrtpKeys, SrtpKeys) {
        let (a, b) = (Crypto::from_random([1; 30]), Crypto::from_random([2; 30]));
        let ours = SrtpKeys { local: a.clone(), remote: b.clone() };
        (ours, SrtpKeys { local: b, remote: a })
    }

    fn packet(sequence: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        let packet = RtpPacket {
            marker: false,
            payload_type: 0,
            sequence,
            timestamp: u32::from(sequence) * 160,
            ssrc: 5,
            payload: &[7; 160],
        };
        packet.write(&mut bytes);
        bytes
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let crypto = Crypto::from_random([9; 30]);
        assert_eq!(Crypto::parse(&crypto.to_string()), Some(crypto));
        let phone = "2 AES_CM_128_HMAC_SHA1_32 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR|2^20|1:32";
        assert_eq!(Crypto::parse(phone).map(|crypto| (crypto.tag, crypto.suite)), Some((2, Suite::Tag32)));
        for bad in ["", "1 AES_CM_128_HMAC_SHA1_80 inline:AAAA", "x", "1 F8_128_HMAC_SHA1_80 inline:AAAA"] {
            assert_eq!(Crypto::parse(bad), None);
        }
    }

    #[test]
    fn both_ends_understand_each_other_and_nobody_else() {
        let (ours, theirs) = keys();
        let (mut ours, mut theirs) = (Protection::new(&ours).unwrap(), Protection::new(&theirs).unwrap());
        for n in [65_534, 65_535, 0, 1] {
            let sent = ours.protect(&packet(n), false).unwrap();
            assert_ne!(sent[12..], packet(n)[12..]);
            assert_eq!(theirs.open(&sent, false), Some(packet(n)));
            assert_eq!(theirs.open(&sent, false), None, "a second time");
        }
        let mut changed = ours.protect(&packet(2), false).unwrap();
        changed[20] ^= 1;
        assert_eq!(theirs.open(&changed, false), None);
        assert_eq!(theirs.open(&packet(3), false), None, "in the clear");
    }

    #[test]
    fn reports_are_opened_only_if_they_are_encrypted_and_genuine() {
        let (ours, theirs) = keys();
        let (mut ours, mut theirs) = (Protection::new(&ours).unwrap(), Protection::new(&theirs).unwrap());
        let report = [0x81u8, 201, 0, 1, 0, 0, 0, 5];
        let sent = ours.protect(&report, true).unwrap();
        assert_eq!(theirs.open(&sent, true), Some(report.to_vec()));
        // In the clear by its own word, and with no tag that fits.
        let mut clear = report.to_vec();
        clear.extend([0; REPORT_TAIL]);
        assert_eq!(theirs.open(&clear, true), None);
    }

    #[test]
    fn a_key_is_not_shown_in_logs() {
        let shown = format!("{:?}", Crypto::from_random([b'A'; 30]));
        assert!(!shown.contains("65") && !shown.contains("QUFB"), "{shown}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_opened_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), reports: bool) {
            let (ours, _) = keys();
            prop_assert_eq!(Protection::new(&ours).unwrap().open(&bytes, reports), None);
        }

        #[test]
        fn any_crypto_line_is_read_or_refused(value in "[ -~]{0,120}") {
            let _ = Crypto::parse(&value);
        }
    }
}
