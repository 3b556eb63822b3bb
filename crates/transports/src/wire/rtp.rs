//! What comes out of the inbound side of RTP, for the transports that stand on it.

use sayback_core::Time;
use sayback_media::rtp;

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
