//! Microphone and speaker, and the line over a network on which SIP, media streams and WebRTC stand.
//!
//! A transport moves sound and says what was played and how it knows. It may not decide anything about the
//! conversation, and it may not read a clock of its own: whoever opens a line hands the call clock in.

#[cfg(feature = "media-stream")]
pub mod media_stream;
#[cfg(feature = "mic")]
pub mod mic;
#[cfg(feature = "sip")]
pub mod sip;
#[cfg(feature = "webrtc")]
pub mod webrtc;
#[cfg(feature = "wire")]
pub mod wire;
