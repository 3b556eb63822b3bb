//! Conversations and evidence.
