//! One file and one feature per speech or language engine.

#[cfg(feature = "grounding")]
pub mod grounding;
#[cfg(feature = "local-llm")]
pub mod local_llm;
#[cfg(feature = "models")]
pub mod models;
#[cfg(feature = "openai")]
pub mod openai;
#[cfg(feature = "piper")]
pub mod piper;
#[cfg(feature = "scripted")]
pub mod scripted;
#[cfg(feature = "whisper")]
pub mod whisper;
