//! One file and one feature per speech or language engine.
//!
//! Each translates between its engine and a trait of the runtime: what was said and when, in that trait's words, and what
//! failed, as that trait's error. It may not try again or ask another engine by itself: whoever holds it knows what is
//! still waited for, and `failover` is where a second one stands. And it may not decide anything about the
//! conversation, make up words or silence for what it did not get, or let a key into a message.

#[cfg(feature = "anthropic")]
pub mod anthropic;
#[cfg(feature = "cartesia")]
pub mod cartesia;
#[cfg(feature = "deepgram")]
pub mod deepgram;
#[cfg(feature = "elevenlabs")]
pub mod elevenlabs;
#[cfg(feature = "failover")]
pub mod failover;
#[cfg(feature = "grounding")]
pub mod grounding;
#[cfg(feature = "http")]
pub mod hosted;
#[cfg(any(feature = "deepgram", feature = "soniox", feature = "openai-speech"))]
mod live;
#[cfg(feature = "local-llm")]
pub mod local_llm;
#[cfg(feature = "models")]
pub mod models;
#[cfg(feature = "openai")]
pub mod openai;
#[cfg(feature = "openai-speech")]
pub mod openai_speech;
#[cfg(feature = "piper")]
pub mod piper;
#[cfg(feature = "scripted")]
pub mod scripted;
#[cfg(feature = "soniox")]
pub mod soniox;
#[cfg(any(feature = "cartesia", feature = "deepgram", feature = "elevenlabs", feature = "openai-speech"))]
mod sounded;
#[cfg(feature = "whisper")]
pub mod whisper;
