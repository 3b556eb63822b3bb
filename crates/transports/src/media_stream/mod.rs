//! Calls over WebSocket, as telephone services bring them, and Asterisk's AudioSocket.
//!
//! ```text
//! service ─ WebSocket ─▶ dialect ─▶ session ─▶ wire ─▶ call
//! ```
//!
//! [`dialect`] is pure: what each service writes. [`router`] answers the WebSocket and checks who asks. The session
//! moves sound and marks between a dialect and the [line](crate::wire).
//!
//! **When was it heard?** A mark is sent behind the last audible sample of an utterance, and comes back when the service
//! has played it. The moment that counts is the mark's place in the inbound stream: the end of the sound that came
//! before it. Both are held up by the same network, so a caller's yes and the mark are placed on the same scale, and a
//! burst moves neither. What lies behind the service, the carrier's leg to the caller's ear and back, no mark shows; the
//! assumed loop covers it.

mod audio_socket;
pub mod dialect;
mod proof;
mod reorder;
mod router;
mod session;

use std::time::Duration;

pub use audio_socket::serve as serve_audio_socket;
pub use proof::{NoProof, Proofs};
pub use router::{MediaSettings, Service, VendorSettings, router};

/// A connection on which no call is announced for this long is closed.
const FIRST_WORD: Duration = Duration::from_secs(10);
/// A connection on which nothing comes for this long is a lost one.
const SILENT: Duration = Duration::from_secs(60);
/// A far end that does not take what it is sent for this long is closed.
const STUCK: Duration = Duration::from_secs(5);
/// Largest message that is taken, in bytes.
const LARGEST: usize = 64 * 1024;
/// Bytes that are read at a time: some messages of 20 ms of sound. The whole of it is taken for each call.
const READ: usize = 8 * 1024;
/// Length of a frame.
const FRAME: Duration = Duration::from_millis(20);
/// How much earlier than in real time sound is sent: the service plays from its own buffer, and must not run dry.
const LEAD: Duration = Duration::from_millis(40);
