//! What the transports that stand on RTP share: where a stream begins, and what comes out of the inbound side.

use sayback_core::Time;
use sayback_media::rtp;
use sayback_media::rtp::send::StreamStart;

use super::InboundFact;

/// What came in, to be handed on once the inbound side is let go of.
#[derive(Debug)]
pub(crate) enum Fact {
    /// For the ears.
    Wire(InboundFact),
    /// A key was pressed.
    Digit(char, Time),
    /// The sound comes another way now.
    Path,
}

/// The same without what belongs to the inbound side.
pub(crate) fn owned(fact: rtp::InboundFact<'_>) -> Fact {
    match fact {
        rtp::InboundFact::Sound { start, samples } => {
            Fact::Wire(InboundFact::Heard { start, samples: samples.to_vec() })
        }
        rtp::InboundFact::Hidden { from, to } => Fact::Wire(InboundFact::Lost { from, to }),
        rtp::InboundFact::Digit { digit, start } => Fact::Digit(digit, start),
        rtp::InboundFact::Path(_) => Fact::Path,
    }
}

/// Where a stream of ours begins; `None` if the machine has no random numbers.
pub(crate) fn stream_start() -> Option<StreamStart> {
    let mut random = [0u8; 10];
    getrandom::fill(&mut random).ok()?;
    let [a, b, c, d, e, f, g, h, i, j] = random;
    Some(StreamStart {
        ssrc: u32::from_be_bytes([a, b, c, d]),
        timestamp: u32::from_be_bytes([e, f, g, h]),
        sequence: u16::from_be_bytes([i, j]),
    })
}
