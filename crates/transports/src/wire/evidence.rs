//! How long the way to the caller's ear and back from their mouth is, and how that is known.
//!
//! A report of the far end's receiver says how long a packet takes to it and back. Whether that is the caller is
//! another question: a trunk's border answers for itself, and behind it there may be a mobile network. So reports
//! count only for lines that are declared as endpoints, and lengthen, but never shorten, the loop of a trunk.

use std::time::Duration;

use sayback_core::{EvidenceClass, LoopDelay};
use sayback_media::rtp::report::RoundTrip;

/// What a telephone holds back beside the way: its jitter buffer, its sound card, its packets.
const TELEPHONE: Duration = Duration::from_millis(120);
/// How exactly a telephone that tells its own delay knows it.
const TOLD: Duration = Duration::from_millis(30);

/// What is at the far end of the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Far {
    /// A trunk: the caller is somewhere behind it.
    #[default]
    Trunk,
    /// The caller's own telephone.
    Endpoint,
}

/// What is known of a line's loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopEvidence {
    /// What the packets end at.
    pub far: Far,
    /// The loop where nothing better is known.
    pub assumed: Duration,
    /// What our own side adds: sound that waits until its packet is full.
    pub own: Duration,
    /// Something showed that the far end receives us.
    pub proven: bool,
}

impl LoopEvidence {
    /// The loop, and its class.
    pub fn judge(&self, trip: Option<RoundTrip>, end_system: Option<Duration>) -> (LoopDelay, EvidenceClass) {
        let (least, most, class) = match (self.far, trip, end_system) {
            (Far::Endpoint, Some(trip), Some(device)) => {
                (trip.least + device.saturating_sub(TOLD), trip.most + device + TOLD, EvidenceClass::Xr)
            }
            (Far::Endpoint, Some(trip), None) => (trip.least, trip.most + TELEPHONE, EvidenceClass::Rtcp),
            (Far::Endpoint, None, _) => (Duration::ZERO, self.assumed, EvidenceClass::Assumed),
            (Far::Trunk, trip, _) => {
                // What is assumed is the way behind the border, a mobile leg for instance: the measured way comes on top.
                let border = trip.map_or(Duration::ZERO, |trip| trip.most);
                (Duration::ZERO, border + self.assumed, EvidenceClass::Assumed)
            }
        };
        let class = if self.proven { class } else { EvidenceClass::Unproven };
        (LoopDelay { at_least: least, at_most: most + self.own }, class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn evidence(far: Far) -> LoopEvidence {
        LoopEvidence { far, assumed: ms(350), own: ms(0), proven: true }
    }

    const TRIP: RoundTrip = RoundTrip { least: ms(40), most: ms(60) };

    #[test]
    fn an_endpoints_reports_say_how_long_it_is() {
        let (delay, class) = evidence(Far::Endpoint).judge(Some(TRIP), None);
        assert_eq!((delay.at_least, delay.at_most, class), (ms(40), ms(180), EvidenceClass::Rtcp));
        let (delay, class) = evidence(Far::Endpoint).judge(Some(TRIP), Some(ms(90)));
        assert_eq!((delay.at_least, delay.at_most, class), (ms(100), ms(180), EvidenceClass::Xr));
        let (delay, class) = evidence(Far::Endpoint).judge(None, Some(ms(90)));
        assert_eq!((delay.at_most, class), (ms(350), EvidenceClass::Assumed));
    }

    #[test]
    fn a_trunks_reports_never_shorten_the_loop() {
        let (delay, class) = evidence(Far::Trunk).judge(Some(TRIP), Some(ms(1)));
        assert_eq!((delay.at_most, class), (ms(410), EvidenceClass::Assumed));
        let far = RoundTrip { least: ms(500), most: ms(600) };
        assert_eq!(evidence(Far::Trunk).judge(Some(far), None).0.at_most, ms(950));
    }

    #[test]
    fn without_proof_that_we_are_received_nothing_counts_as_heard() {
        let evidence = LoopEvidence { proven: false, own: ms(40), ..evidence(Far::Endpoint) };
        let (delay, class) = evidence.judge(Some(TRIP), None);
        assert_eq!((delay.at_most, class), (ms(220), EvidenceClass::Unproven));
    }
}
