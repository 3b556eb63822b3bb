//! The packet itself (RFC 3550, section 5.1).
//!
//! Parsed in place: a call has fifty a second, and their payload is read once. The extension is skipped by its length
//! and not looked into, so nothing in it can move the payload.

/// Bytes of the fixed header.
pub const HEADER: usize = 12;

/// A datagram that is no RTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RtpError {
    /// Shorter than its own header says.
    #[error("an RTP packet of {len} bytes is cut off")]
    Short {
        /// Its length.
        len: usize,
    },
    /// Another version: STUN, DTLS or noise.
    #[error("not RTP: version {version}")]
    Version {
        /// The two bits where RTP has 2.
        version: u8,
    },
    /// The padding is longer than the payload.
    #[error("RTP padding of {padding} bytes in a payload of {payload}")]
    Padding {
        /// What the last byte says.
        padding: usize,
        /// What there is.
        payload: usize,
    },
}

/// One packet, its payload still in the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpPacket<'a> {
    /// Set on the first packet after a silence, by those who set it.
    pub marker: bool,
    /// Which format, as the two sides agreed.
    pub payload_type: u8,
    /// Counts packets, modulo 2^16.
    pub sequence: u16,
    /// When its first sample was taken, in ticks of the format's clock, modulo 2^32.
    pub timestamp: u32,
    /// Which stream.
    pub ssrc: u32,
    /// The sound, or a key press.
    pub payload: &'a [u8],
}

impl<'a> RtpPacket<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// If it is no RTP packet, or a damaged one.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RtpError> {
        let short = RtpError::Short { len: bytes.len() };
        let (header, rest) = bytes.split_at_checked(HEADER).ok_or(short)?;
        let version = header[0] >> 6;
        if version != 2 {
            return Err(RtpError::Version { version });
        }
        let sources = usize::from(header[0] & 0x0f) * 4;
        let mut payload = rest.get(sources..).ok_or(short)?;
        if header[0] & 0x10 != 0 {
            let words = payload.get(2..4).ok_or(short)?;
            let length = usize::from(u16::from_be_bytes([words[0], words[1]])) * 4;
            payload = payload.get(4 + length..).ok_or(short)?;
        }
        if header[0] & 0x20 != 0 {
            payload = without_padding(payload)?;
        }
        Ok(Self {
            marker: header[1] & 0x80 != 0,
            payload_type: header[1] & 0x7f,
            sequence: u16::from_be_bytes([header[2], header[3]]),
            timestamp: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            ssrc: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
            payload,
        })
    }

    /// Appends it to a buffer as it goes over the wire, without extension and padding.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(0x80);
        out.push((self.payload_type & 0x7f) | (u8::from(self.marker) << 7));
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.ssrc.to_be_bytes());
        out.extend_from_slice(self.payload);
    }
}

fn without_padding(payload: &[u8]) -> Result<&[u8], RtpError> {
    let padding = usize::from(payload.last().copied().unwrap_or(0));
    let wrong = RtpError::Padding { padding, payload: payload.len() };
    if padding == 0 {
        return Err(wrong);
    }
    payload.len().checked_sub(padding).and_then(|len| payload.get(..len)).ok_or(wrong)
}

/// Whether a datagram that shares its port with RTP is RTCP (RFC 5761).
pub fn is_rtcp(bytes: &[u8]) -> bool {
    bytes.len() >= 8 && bytes[0] >> 6 == 2 && (192..=223).contains(&bytes[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sources_extension_and_padding_are_stepped_over() {
        let mut bytes = vec![0xb1, 0x80, 0, 7, 0, 0, 0, 9, 0, 0, 0, 5, 1, 1, 1, 1];
        bytes.extend([0xbe, 0xde, 0, 1, 0xf0, 1, 2, 3]);
        bytes.extend([42, 43, 0, 2]);
        let packet = RtpPacket::parse(&bytes).unwrap();
        assert_eq!((packet.marker, packet.sequence, packet.timestamp, packet.ssrc), (true, 7, 9, 5));
        assert_eq!(packet.payload, [42, 43]);
    }

    #[test]
    fn a_damaged_packet_is_refused_with_the_reason() {
        assert_eq!(RtpPacket::parse(&[0x80; 11]), Err(RtpError::Short { len: 11 }));
        assert_eq!(RtpPacket::parse(&[0; 12]), Err(RtpError::Version { version: 0 }));
        assert_eq!(RtpPacket::parse(&[0x8f; 12]), Err(RtpError::Short { len: 12 }));
        let mut padded = [0; 14];
        (padded[0], padded[13]) = (0xa0, 3);
        assert_eq!(RtpPacket::parse(&padded), Err(RtpError::Padding { padding: 3, payload: 2 }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(packet) = RtpPacket::parse(&bytes) {
                prop_assert!(packet.payload.len() <= bytes.len() - HEADER);
            }
        }

        #[test]
        fn what_was_written_is_read(
            marker: bool, payload_type in 0u8..128, sequence: u16, timestamp: u32, ssrc: u32,
            payload in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let packet = RtpPacket { marker, payload_type, sequence, timestamp, ssrc, payload: &payload };
            let mut bytes = Vec::new();
            packet.write(&mut bytes);
            prop_assert_eq!(RtpPacket::parse(&bytes), Ok(packet));
        }
    }
}
