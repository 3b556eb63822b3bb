//! The proof that the caller said yes.

use alloc::string::String;
use core::time::Duration;

use serde::Serialize;

use crate::event::{Frozen, ToolRef};
use crate::ids::{CallId, HoldId};
use crate::ledger::Used;

/// A yes that was heard, for exactly one run of exactly one input.
///
/// Made by the gate alone: no public constructor, no `Clone`, no `Deserialize`. A tool with a confirm question takes
/// it by value, so a run without a yes does not compile.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Confirmation {
    hold: HoldId,
    attempt: u32,
    call: CallId,
    tool: ToolRef,
    input: Frozen,
    confirmed_by: String,
    limit: Duration,
}

impl Confirmation {
    /// `used` is the ledger's proof that this yes was written down and used up by this run alone.
    pub(crate) fn new(
        used: Used,
        (call, tool): (CallId, ToolRef),
        input: Frozen,
        by: (String, Duration),
    ) -> Self {
        let (confirmed_by, limit) = by;
        Self { hold: used.hold(), attempt: used.attempt(), call, tool, input, confirmed_by, limit }
    }

    /// The hold that was answered; with the session's id, the idempotency key of the run.
    pub fn hold(&self) -> HoldId {
        self.hold
    }

    /// Which run of this hold it is, from 1. More than one only after the caller's own rewind to its question, with
    /// the same idempotency key (VC-76).
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The model's call.
    pub fn call(&self) -> &CallId {
        &self.call
    }

    /// The tool, as it was when the question was asked.
    pub fn tool(&self) -> &ToolRef {
        &self.tool
    }

    /// The very value that the question was built from.
    pub fn input(&self) -> &Frozen {
        &self.input
    }

    /// The words or the digit that said yes.
    pub fn confirmed_by(&self) -> &str {
        &self.confirmed_by
    }

    /// How long the run may take.
    pub fn limit(&self) -> Duration {
        self.limit
    }
}
