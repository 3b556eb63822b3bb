//! One file a command.

pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod conform;
#[cfg(feature = "serve")]
mod conform_adk;
pub(crate) mod conversations;
pub(crate) mod doctor;
mod log;
pub(crate) mod mcp;
pub(crate) mod models;
mod record;
pub(crate) mod replay;
mod rewind;
#[cfg(feature = "serve")]
pub(crate) mod serve;
mod stored;
pub(crate) mod sweep;
#[cfg(feature = "mic")]
pub(crate) mod talk;
pub(crate) mod verify;
