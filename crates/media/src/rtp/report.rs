//! Control reports (RTCP, RFC 3550; XR, RFC 3611): what the far end receives, and how long the way is.
//!
//! The network time in our reports is the call clock, moved by a constant: nobody but us reads it, and a round trip is
//! what our own time says about the echo of an earlier report.

use std::collections::VecDeque;
use std::time::Duration;

use rtc_rtcp::extended_report::{
    DLRRReport, DLRRReportBlock, ExtendedReport, ReceiverReferenceTimeReportBlock, VoIPMetricsReportBlock,
};
use rtc_rtcp::goodbye::Goodbye;
use rtc_rtcp::packet::Packet;
use rtc_rtcp::receiver_report::ReceiverReport;
use rtc_rtcp::reception_report::ReceptionReport;
use rtc_rtcp::sender_report::SenderReport;
use rtc_rtcp::source_description::{
    SdesType, SourceDescription, SourceDescriptionChunk, SourceDescriptionItem,
};
use sayback_core::Time;

use super::loss::LossReport;

/// Seconds of network time at the beginning of the call: anything but zero, which means "no report yet".
const EPOCH: u64 = 3_900_000_000;
/// Round trips that count, and for how long.
const ROUND_TRIPS: usize = 8;
const FRESH: Duration = Duration::from_secs(40);
/// A longer one is a mistake of somebody's.
const LONGEST: Duration = Duration::from_secs(10);
/// Reports of ours whose echo is recognised.
const SENT: usize = 16;

/// A datagram that is no RTCP, or a damaged one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("RTCP: {0}")]
pub struct ReportError(String);

/// What we have sent, for a sender report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The RTP timestamp at the time of the report.
    pub timestamp: u32,
    /// Packets sent.
    pub packets: u32,
    /// Bytes of payload sent.
    pub bytes: u32,
}

/// What the far end says about our sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// When its report came.
    pub at: Time,
    /// Highest sequence number of ours that it has, with the wraps above.
    pub highest: u32,
    /// Packets lost in all.
    pub lost: u32,
    /// Lost since its report before, in 256ths.
    pub fraction: u8,
}

/// How long a datagram takes there and back, as far as reports tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The shortest of late.
    pub least: Duration,
    /// The longest of late.
    pub most: Duration,
}

/// The control side of one call's sound.
#[derive(Debug)]
pub struct Reports {
    ssrc: u32,
    cname: String,
    sent: VecDeque<u32>,
    trips: VecDeque<(Time, Duration)>,
    /// The middle bits of the last sender report of the far end, when it came, and whose it was.
    heard: Option<(u32, Time)>,
    /// The same for a reference time, for peers that only listen.
    asked: Option<(u32, u32, Time)>,
    peer: Option<PeerView>,
    end_system: Option<Duration>,
    left: bool,
}

impl Reports {
    /// Reports about the stream `ssrc` of ours; `cname` names this end for the length of the call.
    pub fn new(ssrc: u32, cname: impl Into<String>) -> Self {
        Self {
            ssrc,
            cname: cname.into(),
            sent: VecDeque::with_capacity(SENT),
            trips: VecDeque::with_capacity(ROUND_TRIPS),
            heard: None,
            asked: None,
            peer: None,
            end_system: None,
            left: false,
        }
    }

    /// What the far end receives, by its last report.
    pub fn peer(&self) -> Option<PeerView> {
        self.peer
    }

    /// Whether the far end said goodbye to its stream.
    pub fn has_left(&self) -> bool {
        self.left
    }

    /// The far end's own delay from packet to ear and from mouth to packet, if it tells (XR).
    pub fn end_system(&self) -> Option<Duration> {
        self.end_system
    }

    /// The round trips of the last seconds.
    pub fn round_trip(&self, now: Time) -> Option<RoundTrip> {
        let fresh = || self.trips.iter().filter(|(at, _)| now.since(*at) <= FRESH).map(|(_, trip)| *trip);
        Some(RoundTrip { least: fresh().min()?, most: fresh().max()? })
    }

    /// The way is another: what was measured no longer holds.
    pub fn forget_path(&mut self) {
        self.trips.clear();
        self.sent.clear();
        self.end_system = None;
        self.peer = None;
    }

    /// Takes a datagram.
    ///
    /// # Errors
    /// If it is damaged; what was read of it before the damage is not used.
    pub fn handle(&mut self, bytes: &[u8], arrival: Time) -> Result<(), ReportError> {
        let mut rest = bytes;
        let packets =
            rtc_rtcp::packet::unmarshal(&mut rest).map_err(|error| ReportError(error.to_string()))?;
        for packet in packets {
            let packet = packet.as_any();
            if let Some(report) = packet.downcast_ref::<SenderReport>() {
                self.heard = Some((middle(report.ntp_time), arrival));
                self.left = false;
                self.on_receptions(&report.reports, arrival);
            } else if let Some(report) = packet.downcast_ref::<ReceiverReport>() {
                self.on_receptions(&report.reports, arrival);
            } else if let Some(report) = packet.downcast_ref::<ExtendedReport>() {
                self.on_extended(report, arrival);
            } else if packet.is::<Goodbye>() {
                self.left = true;
            }
        }
        Ok(())
    }

    fn on_receptions(&mut self, receptions: &[ReceptionReport], arrival: Time) {
        let ours = self.ssrc;
        for report in receptions.iter().filter(|report| report.ssrc == ours) {
            let (highest, lost) = (report.last_sequence_number, report.total_lost);
            self.peer = Some(PeerView { at: arrival, highest, lost, fraction: report.fraction_lost });
            self.note_trip(report.last_sender_report, report.delay, arrival);
        }
    }

    fn on_extended(&mut self, report: &ExtendedReport, arrival: Time) {
        for block in &report.reports {
            let block = block.as_any();
            if let Some(time) = block.downcast_ref::<ReceiverReferenceTimeReportBlock>() {
                self.asked = Some((report.sender_ssrc, middle(time.ntp_timestamp), arrival));
            } else if let Some(answers) = block.downcast_ref::<DLRRReportBlock>() {
                let ours = self.ssrc;
                for answer in answers.reports.iter().filter(|answer| answer.ssrc == ours) {
                    self.note_trip(answer.last_rr, answer.dlrr, arrival);
                }
            } else if let Some(voice) = block.downcast_ref::<VoIPMetricsReportBlock>()
                && voice.ssrc == self.ssrc
                // Zero and all ones mean that it does not know (RFC 3611, 4.7.3).
                && !matches!(voice.end_system_delay, 0 | u16::MAX)
            {
                self.end_system = Some(Duration::from_millis(u64::from(voice.end_system_delay)));
            }
        }
    }

    /// The far end echoes a report of ours, `delay` (in 65,536ths of a second) after it got it.
    fn note_trip(&mut self, echoed: u32, delay: u32, arrival: Time) {
        // An echo of what we never sent would make any round trip that somebody likes.
        if !self.sent.contains(&echoed) {
            return;
        }
        let trip = middle(network_time(arrival)).wrapping_sub(echoed).wrapping_sub(delay).cast_signed();
        // The units are 15 µs, and a peer may round its delay up.
        let trip = Duration::from_micros(u64::from(trip.max(0).unsigned_abs()) * 1_000_000 / 65_536);
        if trip > LONGEST {
            return;
        }
        if self.trips.len() == ROUND_TRIPS {
            self.trips.pop_front();
        }
        self.trips.push_back((arrival, trip));
    }

    /// Appends a report for the far end: a sender's, or a receiver's if nothing was sent yet.
    pub fn write(&mut self, now: Time, sent: Sent, received: Option<(u32, LossReport)>, out: &mut Vec<u8>) {
        let time = network_time(now);
        let reports = received.map(|(ssrc, loss)| self.reception(ssrc, loss, now)).into_iter().collect();
        let mut packets: Vec<Box<dyn Packet>> = vec![if sent.packets > 0 {
            Box::new(SenderReport {
                ssrc: self.ssrc,
                ntp_time: time,
                rtp_time: sent.timestamp,
                packet_count: sent.packets,
                octet_count: sent.bytes,
                reports,
                ..SenderReport::default()
            })
        } else {
            Box::new(ReceiverReport { ssrc: self.ssrc, reports, ..ReceiverReport::default() })
        }];
        packets.push(Box::new(self.description()));
        packets.push(Box::new(self.extended(time, now)));
        if let Ok(bytes) = rtc_rtcp::packet::marshal(&packets) {
            out.extend_from_slice(&bytes);
            if self.sent.len() == SENT {
                self.sent.pop_front();
            }
            self.sent.push_back(middle(time));
        }
    }

    /// Appends the farewell at the end of the call.
    pub fn write_goodbye(&self, out: &mut Vec<u8>) {
        let packets: Vec<Box<dyn Packet>> = vec![
            Box::new(ReceiverReport { ssrc: self.ssrc, ..ReceiverReport::default() }),
            Box::new(self.description()),
            Box::new(Goodbye { sources: vec![self.ssrc], ..Goodbye::default() }),
        ];
        if let Ok(bytes) = rtc_rtcp::packet::marshal(&packets) {
            out.extend_from_slice(&bytes);
        }
    }

    fn reception(&self, ssrc: u32, loss: LossReport, now: Time) -> ReceptionReport {
        let (last_sender_report, delay) =
            self.heard.map_or((0, 0), |(middle, at)| (middle, units(now.since(at))));
        ReceptionReport {
            ssrc,
            fraction_lost: loss.fraction,
            total_lost: loss.lost,
            last_sequence_number: loss.highest,
            jitter: loss.jitter,
            last_sender_report,
            delay,
        }
    }

    /// The crate fills a chunk up with anything but the zeros that RFC 3550 (6.5) wants, and aiortc throws the whole
    /// report away then. So the name is made as long as leaves nothing to fill.
    fn description(&self) -> SourceDescription {
        let mut name = self.cname.clone();
        while name.len() % 4 != 1 {
            name.push('.');
        }
        let text = name.into_bytes().into();
        let items = vec![SourceDescriptionItem { sdes_type: SdesType::SdesCname, text }];
        SourceDescription { chunks: vec![SourceDescriptionChunk { source: self.ssrc, items }] }
    }

    /// A reference time, so that a peer that only listens can answer, and our answer to its own.
    fn extended(&self, time: u64, now: Time) -> ExtendedReport {
        let mut reports: Vec<Box<dyn Packet>> =
            vec![Box::new(ReceiverReferenceTimeReportBlock { ntp_timestamp: time })];
        if let Some((ssrc, last_rr, at)) = self.asked {
            let reports_of = vec![DLRRReport { ssrc, last_rr, dlrr: units(now.since(at)) }];
            reports.push(Box::new(DLRRReportBlock { reports: reports_of }));
        }
        ExtendedReport { sender_ssrc: self.ssrc, reports }
    }
}

/// The call clock as network time: seconds above, fractions below.
fn network_time(at: Time) -> u64 {
    let micros = at.as_micros();
    let seconds = EPOCH.wrapping_add(micros / 1_000_000) & 0xffff_ffff;
    (seconds << 32) | (((micros % 1_000_000) << 32) / 1_000_000)
}

fn middle(time: u64) -> u32 {
    (time >> 16) as u32
}

fn units(span: Duration) -> u32 {
    u32::try_from(span.as_micros() * 65_536 / 1_000_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOSS: LossReport = LossReport { fraction: 3, lost: 7, highest: 1_234, jitter: 9 };

    fn report(from: &mut Reports, now: u64, about: Option<u32>) -> Vec<u8> {
        let mut out = Vec::new();
        let sent = Sent { timestamp: 5, packets: 10, bytes: 1_600 };
        from.write(Time::from_millis(now), sent, about.map(|ssrc| (ssrc, LOSS)), &mut out);
        out
    }

    #[test]
    fn a_source_is_described_with_zeros_at_its_end_only() {
        for cname in ["a", "ab", "abc", "abcd", "12345678@sayback"] {
            let mut out = Vec::new();
            Reports::new(7, cname).write_goodbye(&mut out);
            let at = out.windows(2).position(|two| two == [0x81, 202]).unwrap();
            let end = at + 4 + 4 * usize::from(u16::from_be_bytes([out[at + 2], out[at + 3]]));
            let named = at + 10 + usize::from(out[at + 9]);
            assert!(named < end && out[named..end].iter().all(|byte| *byte == 0), "{cname}: {out:?}");
        }
    }

    /// Two ends with clocks of their own, `ours` ahead of `theirs` by nine seconds, and a way of 40 and 60 ms.
    #[test]
    fn a_round_trip_is_what_is_left_without_the_far_ends_delay() {
        let (mut ours, mut theirs) = (Reports::new(1, "a"), Reports::new(2, "b"));
        let out = report(&mut ours, 10_000, None);
        theirs.handle(&out, Time::from_millis(1_040)).unwrap();
        let back = report(&mut theirs, 3_000, Some(1));
        ours.handle(&back, Time::from_millis(12_060)).unwrap();
        let trip = ours.round_trip(Time::from_millis(12_060)).unwrap();
        assert!(trip.least.abs_diff(Duration::from_millis(100)) < Duration::from_micros(60), "{trip:?}");
        let view = ours.peer().unwrap();
        assert_eq!((view.highest, view.lost, view.fraction), (1_234, 7, 3));
        assert_eq!(ours.round_trip(Time::from_millis(60_000)), None, "too old");
    }

    #[test]
    fn a_peer_that_only_listens_is_measured_by_its_answer_to_our_reference_time() {
        let (mut ours, mut theirs) = (Reports::new(1, "a"), Reports::new(2, "b"));
        theirs.handle(&report(&mut ours, 5_000, None), Time::from_millis(5_030)).unwrap();
        // It knows nothing of our sound: no reception report.
        let mut back = Vec::new();
        theirs.write(Time::from_millis(6_000), Sent::default(), None, &mut back);
        ours.handle(&back, Time::from_millis(6_030)).unwrap();
        assert_eq!(ours.peer(), None);
        let trip = ours.round_trip(Time::from_millis(6_030)).unwrap().most;
        assert!(trip.abs_diff(Duration::from_millis(60)) < Duration::from_micros(60), "{trip:?}");
    }

    #[test]
    fn an_echo_of_what_was_never_sent_makes_no_round_trip() {
        let (mut ours, mut theirs) = (Reports::new(1, "a"), Reports::new(2, "b"));
        theirs.heard = Some((77, Time::ZERO));
        let back = report(&mut theirs, 10, Some(1));
        ours.handle(&back, Time::from_millis(10)).unwrap();
        assert_eq!(ours.round_trip(Time::from_millis(10)), None);
        assert!(ours.peer().is_some());
    }

    #[test]
    fn voice_metrics_tell_the_far_ends_own_delay() {
        let mut ours = Reports::new(1, "a");
        let block = |delay| VoIPMetricsReportBlock { ssrc: 1, end_system_delay: delay, ..Default::default() };
        let bytes = |delay| {
            let reports: Vec<Box<dyn Packet>> = vec![Box::new(block(delay))];
            let report: Vec<Box<dyn Packet>> = vec![Box::new(ExtendedReport { sender_ssrc: 2, reports })];
            rtc_rtcp::packet::marshal(&report).unwrap()
        };
        ours.handle(&bytes(90), Time::ZERO).unwrap();
        assert_eq!(ours.end_system(), Some(Duration::from_millis(90)));
        ours.handle(&bytes(0), Time::ZERO).unwrap();
        assert_eq!(ours.end_system(), Some(Duration::from_millis(90)));
    }

    #[test]
    fn a_goodbye_is_heard() {
        let (mut ours, theirs) = (Reports::new(1, "a"), Reports::new(2, "b"));
        let mut bytes = Vec::new();
        theirs.write_goodbye(&mut bytes);
        ours.handle(&bytes, Time::ZERO).unwrap();
        assert!(ours.has_left());
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Reports::new(1, "a").handle(&bytes, Time::ZERO);
        }

        #[test]
        fn a_damaged_report_is_taken(at in 0usize..200, byte: u8, cut in 0usize..200) {
            let (mut ours, mut theirs) = (Reports::new(1, "a"), Reports::new(2, "b"));
            theirs.handle(&report(&mut ours, 10, None), Time::from_millis(10)).unwrap();
            let mut bytes = report(&mut theirs, 10, Some(1));
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(bytes.len().min(cut));
            let _ = ours.handle(&bytes, Time::from_millis(20));
        }
    }
}
