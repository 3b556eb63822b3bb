//! Takes packets out of the stack as they come from the network, with the moment of their arrival.
//!
//! The stack would queue sound for whoever polls it, act on control reports itself and pass none on. We want both, at
//! once and unchanged: a stamp that is made after a queue is a stamp of the queue.

use std::collections::VecDeque;
use std::time::Instant;

use rtc::interceptor::{Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc::sansio::Protocol;
use rtc::shared::error::Error;
use rtc::shared::marshal::Marshal;
use tokio::sync::mpsc::Sender;

/// A packet from the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    /// As it was, without its protection.
    pub(super) bytes: Vec<u8>,
    /// A control report.
    pub(super) is_report: bool,
    /// When it came.
    pub(super) at: Instant,
}

/// Stands where everything has come past that the stack is to see of what comes in.
pub(super) struct Tap {
    arrived: Sender<Arrived>,
    leaving: VecDeque<TaggedPacket>,
}

impl Tap {
    pub(super) fn new(arrived: Sender<Arrived>) -> Self {
        Self { arrived, leaving: VecDeque::new() }
    }
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap").finish_non_exhaustive()
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Tap {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        let (bytes, is_report) = match &packet.message.packet {
            Packet::Rtp(sound) => (sound.marshal().map(|bytes| bytes.to_vec()), false),
            Packet::Rtcp(reports) if reports.is_empty() => return Ok(()),
            Packet::Rtcp(reports) => (rtc::rtcp::packet::marshal(reports).map(|bytes| bytes.to_vec()), true),
            _ => return Ok(()),
        };
        let Ok(bytes) = bytes else { return Ok(()) };
        // A full queue is a call that is stuck: what finds no room is lost, as packets are.
        let _ = self.arrived.try_send(Arrived { bytes, is_report, at: packet.now });
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        None
    }

    fn handle_write(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        self.leaving.push_back(packet);
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.leaving.pop_front()
    }
}

impl Interceptor for Tap {
    fn bind_local_stream(&mut self, _info: &StreamInfo) {}
    fn unbind_local_stream(&mut self, _info: &StreamInfo) {}
    fn bind_remote_stream(&mut self, _info: &StreamInfo) {}
    fn unbind_remote_stream(&mut self, _info: &StreamInfo) {}
}
