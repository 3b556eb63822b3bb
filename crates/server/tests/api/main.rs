//! The HTTP API over a real socket, with calls whose engines do nothing.

#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]

mod access;
mod adk;
mod browser;
mod calls;
mod confirmations;
mod console;
mod conversations;
mod document;
mod limits;
mod support;
mod tls;
