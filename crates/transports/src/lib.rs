//! Microphone and speaker; later SIP, WebRTC and media streams.
