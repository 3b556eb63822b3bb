//! The line over a network: speech out in frames at the pace of its clock, stamped sound in.
//!
//! What travels (RTP packets, WebSocket messages, bytes of a TCP stream) is the business of the transport. This is what
//! they share:
//!
//! ```text
//! voice ─▶ [Player] ─▶ Mouth ─ Out::Frame, Mark, Clear ─▶ transport ─▶ network
//!                        ▲ sent(now) / on_mark(name, place)  │
//!                        └──────────────────────────────────┘   Started, Finished, Cleared ─▶ call
//! network ─▶ transport ─▶ Inbound ─ stamped blocks, gaps ─▶ EarFeed ─▶ ears ─▶ call
//! ```
//!
//! [`Mouth`] and [`Inbound`] are pure: they are handed the time and wait for nothing, so tests run them on a virtual
//! clock. [`WireLine`] is the runtime's line over them, [`Wire`] the transport's side of it; [`Signalling`] is what a transport can do
//! beside the sound.
//!
//! A transport opens a line ([`open`]), starts the call with it, joins its end to the call ([`WireEnd::join`]), and then
//! does two things in turn: it sends what [`Wire::next`] gives, and hands what comes in to [`Wire::hear`].

mod envelope;
mod evidence;
mod feed;
mod inbound;
mod line;
mod mouth;
mod own_voice;
#[cfg(any(feature = "sip", feature = "webrtc"))]
pub(crate) mod rtp;
mod speech;
mod way;

pub use envelope::Envelope;
pub use evidence::{Far, LoopEvidence};
pub use feed::{EarFeed, OnEcho};
pub use inbound::{Inbound, InboundFact};
pub use line::{Signalling, Wire, WireEnd, WireLine, WirePlayer, open};
pub use mouth::{Counts, Mouth, Out, Proof, WireError, WireOptions};
