//! Microphone and speaker; later SIP, WebRTC and media streams.
//!
//! A transport moves sound and says what was played and how it knows. It may not decide anything about the
//! conversation, and it may not read a clock of its own: whoever opens a line hands the call clock in.

#[cfg(feature = "mic")]
pub mod mic;
