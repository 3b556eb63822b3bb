//! Deepgram: recognition over a socket that hears along, and Aura's voices over HTTP.
//!
//! Recognition: `{base_url}/listen`, raw samples out, results with the times of their words back. `Finalize` asks for the
//! words of what was sent; `KeepAlive` keeps the socket open between two stretches; `CloseStream` ends it.
//! Voice: `POST {base_url}/speak`, answered as raw samples.
//!
//! Absent on purpose: Deepgram's own end of turn (ours decides), formatting of numbers, several channels, keyterms (a
//! recogniser that expects a word hears it).

mod listen;
mod voice;

pub use listen::DeepgramListen;
pub use voice::DeepgramVoice;

/// Where Deepgram itself answers.
pub const BASE_URL: &str = "https://api.deepgram.com/v1";
