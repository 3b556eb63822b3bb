//! OpenAI's speech: recognition of whole segments over HTTP, recognition that hears along over a socket, and voices.
//!
//! [`OpenAiTranscribe`]: `POST {base_url}/audio/transcriptions`, the sound as a WAV file. [`OpenAiRealtime`]:
//! `{base_url}/realtime?intent=transcription`; each flush commits what was sent, and the answer names the commit, so
//! words come without times and their stretch is known all the same. [`OpenAiVoice`]: `POST {base_url}/audio/speech`.
//! Servers that speak these protocols are reached by their `base_url`.
//!
//! Absent on purpose: prompts (a recogniser that expects a word hears it), voice instructions, their own end of turn.

mod realtime;
mod transcribe;
mod voice;

pub use realtime::OpenAiRealtime;
pub use transcribe::OpenAiTranscribe;
pub use voice::OpenAiVoice;

/// Where OpenAI itself answers.
pub const BASE_URL: &str = "https://api.openai.com/v1";
