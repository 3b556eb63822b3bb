//! Calls from browsers: WebRTC, begun over HTTP as WHIP says (RFC 9725).
//!
//! ```text
//! POST offer ─▶ checked (description) ─▶ room? who answers? (switchboard) ─▶ Peer answers ─▶ 201
//!                                                                             │ connected: the call begins
//! PATCH candidates, restart ─▶ orders ─▶ BrowserCall ◀─ packets, reports, messages ─▶ Peer ─▶ network
//! DELETE ─▶ stop                            │
//!                                           └◀─ wire ─▶ the call's session
//! ```
//!
//! ICE, DTLS, SRTP and SCTP are the stack's (crate `webrtc`), in `peer` and `tap`, and no type of it leaves this folder.
//! Packets are ours from there on: the same jitter buffer, stamps, codecs and reports as on telephone calls.
//!
//! **When was it heard?** Our own page tells which of our samples went to the loudspeaker when, on its clock; what it
//! says and what the caller says come the same way, so both are placed on one scale (`page`). A far end without that is
//! measured by its reports, as a telephone is. A page that announced reports and sends none is one of which nothing is
//! known, and what is not known to be heard was not heard.

mod call;
mod description;
mod fragment;
mod line;
mod page;
mod peer;
mod server;
mod settings;
mod tap;

pub use description::{NoOffer, Wanted};
pub use server::{NotAnswered, NotPatched, Opened, Patched, WebRtcOffer, WebRtcServer};
pub use settings::{TurnServer, TurnSettings, WebRtcOptions, WebRtcSettingError, WebRtcSettings};
