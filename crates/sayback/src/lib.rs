//! Sayback: a voice-agent runtime that acts only on a yes it heard.
//!
//! This crate is the face: it re-exports what an agent in Rust needs, and holds the command `sayback`. It may not
//! decide anything; decisions are in `sayback-core`.

pub use sayback_agentfile as agentfile;
pub use sayback_agentfile::{BuildError, Field, IntoOutput, ToolBuilder, ToolInputError};
pub use sayback_core as core;
pub use sayback_media as media;
pub use sayback_providers as providers;
pub use sayback_replay as replay;
pub use sayback_runtime as runtime;
pub use sayback_runtime::ledger;
