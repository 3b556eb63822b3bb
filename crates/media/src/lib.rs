//! Sound: pure computation on samples.
//!
//! Nothing in here waits, starts a thread of its own or reads a clock: every stateful type has `push` and `pull`, and
//! is handed the time. What runs once a frame takes no memory of its own once it is warm; the neural models are the
//! exception, and say so.

pub mod audible;
pub mod clip;
pub mod codec;
pub mod echo;
pub mod endpoint;
pub mod filter;
pub mod flac;
pub mod level;
pub mod mel;
pub mod noise;
pub mod onset;
pub mod pcm;
pub mod playout;
pub mod presence;
pub mod resample;
pub mod rtp;
pub mod silero;
pub mod telephone;
pub mod tone;
pub mod vad;
pub mod wav;

pub use clip::{Clip, ReadError, read_audio};
pub use echo::{EchoCanceller, EchoDetector};
pub use endpoint::EndOfTurn;
pub use playout::PlayoutQueue;
pub use presence::EchoPresence;
pub use resample::Resampler;
pub use silero::{Silero, SileroModel};
pub use vad::{Earshot, SpeechProbability, VoiceDetector};
