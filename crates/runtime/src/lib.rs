//! The live shell around the core, and the traits it needs.
//!
//! The runtime drives; it may not decide anything about the conversation, since what it decided would not be in a recorded
//! call. One task per call owns its session, all else reaches it through one bounded queue. It may not know a vendor, a
//! kind of line or a database by name: those stand on it, and it could not be tried without them.

pub mod agent;
pub mod answering;
pub mod approvals;
pub mod approver;
pub mod calls;
pub mod chat;
pub mod clock;
pub mod conversations;
pub mod driver;
pub mod ears;
pub mod events;
pub mod fault;
pub mod frozen;
pub mod journal;
pub mod ledger;
pub mod line;
pub mod llm;
mod on_demand;
pub mod prepare;
pub mod prompt;
pub mod record;
pub mod redact;
pub mod sessions;
pub mod silence;
pub mod spans;
pub mod stt;
pub mod switchboard;
pub mod tts;
pub mod unheard;
pub mod voice;
