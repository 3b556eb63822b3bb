//! `call.json`: which call it is, and how it was run.

use sayback_core::Policy;
use serde::{Deserialize, Serialize};

use crate::clock::stamp;

/// The format of recordings that this program writes. It rises when a reader of the older one could misread a newer
/// one, and when commands get fields that older recordings lack. All older ones are read.
pub const FORMAT: u32 = 2;

/// A recording's first page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSheet {
    /// The format, see [`FORMAT`].
    pub format: u32,
    /// Which program wrote it: `sayback 0.1.0`.
    pub written_by: String,
    /// The call's id.
    pub call: String,
    /// The transport, as the event log has it.
    pub transport: String,
    /// The beginning of the call, in UTC: `2026-11-30T13:00:00Z`.
    pub start: String,
    /// What random numbers would be drawn from. None are, so it is 0.
    pub seed: u64,
    /// The agent.
    pub agent: AgentSheet,
    /// What answered, heard and spoke.
    #[serde(default)]
    pub engines: EngineSheet,
    /// The kinds of personal details that are not in this recording; see [`crate::redact`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
    /// The settings in force; with the journal, all that decisions depend on.
    pub policy: Policy,
    /// The sound, where it is kept: a chat has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<SoundSheet>,
}

/// Which agent it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSheet {
    /// Its name.
    pub name: String,
    /// Its file as it was named.
    pub file: String,
    /// SHA-256 of the file and all that it names.
    pub hash: String,
}

/// Which engines a call had; empty where it had none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSheet {
    /// The language model.
    pub model: String,
    /// The recogniser.
    pub stt: String,
    /// The voice.
    pub tts: String,
}

/// How the sound is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoundSheet {
    /// Samples per second; sample `n` sounded `n / rate` seconds after the call began.
    pub rate: u32,
    /// Who is on the left.
    pub left: String,
    /// Who is on the right.
    pub right: String,
}

impl Default for SoundSheet {
    fn default() -> Self {
        Self { rate: super::tracks::RATE, left: "caller".to_owned(), right: "agent".to_owned() }
    }
}

impl CallSheet {
    /// A call that begins now.
    pub fn new(call: &str, transport: &str, agent: AgentSheet, policy: Policy) -> Self {
        Self {
            format: FORMAT,
            written_by: concat!("sayback ", env!("CARGO_PKG_VERSION")).to_owned(),
            call: call.to_owned(),
            transport: transport.to_owned(),
            start: stamp(),
            seed: 0,
            agent,
            engines: EngineSheet::default(),
            redacted: Vec::new(),
            policy,
            sound: None,
        }
    }
}
