//! Real-time transport: from datagrams to caller sound with times, and back.
//!
//! ```text
//! datagram ─▶ packet ─▶ source (which stream, which place) ─▶ jitter buffer ─▶ codec ─▶ 16 kHz, stamped
//!                 └──▶ key presses (RFC 4733)        report ◀── what was lost, round trips (RTCP)
//! ```
//!
//! The listener is a recogniser, not an ear. So nothing that came in order waits: the buffer waits only for what is
//! missing, as long as the jitter of the last seconds says that it may still come, and then conceals it. What was
//! concealed, lost or never sent is reported, since a word may have begun in it.
//!
//! Nothing in here has a socket or a clock: datagrams come with the time of their arrival.

pub mod digits;
pub mod envelope;
pub mod inbound;
pub mod loss;
pub mod packet;
pub mod report;
pub mod send;
pub mod source;

pub use inbound::{Inbound, InboundFact, PathChange, PayloadTypes};
pub use packet::{RtpError, RtpPacket};
