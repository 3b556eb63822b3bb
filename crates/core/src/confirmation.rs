//! The proof that the caller said yes, or an operator.

use alloc::string::String;
use core::time::Duration;

use serde::Serialize;

use crate::approval::Approval;
use crate::event::{Frozen, ToolRef};
use crate::ids::{CallId, HoldId};
use crate::ledger::Used;

/// A yes that was heard, for exactly one run of exactly one input; or an operator's approval, which is another kind and
/// is told apart: a tool with a question runs on no approval alone.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
    #[serde(skip_serializing_if = "is_caller")]
    who: Who,
}

/// Whose yes it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Who {
    Caller,
    Operator,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it like this")]
fn is_caller(who: &Who) -> bool {
    *who == Who::Caller
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
        let (hold, attempt, approval, who) = (used.hold(), used.attempt(), None, Who::Caller);
        Self { hold, attempt, call, tool, input, confirmed_by, limit, approval, who }
    }

    /// The operator's approval that came before the caller's yes.
    pub(crate) fn after(self, approval: Option<Approval>) -> Self {
        Self { approval, ..self }
    }

    /// An approval without any word of the caller's.
    pub(crate) fn of_operator(self, approval: Approval) -> Self {
        Self { approval: Some(approval), who: Who::Operator, ..self }
    }

    /// Whether the caller said yes: without it, a tool that has a question for this input does not run.
    pub fn by_caller(&self) -> bool {
        self.who == Who::Caller
    }

    /// What the operator answered, if one was asked.
    pub fn approval(&self) -> Option<&Approval> {
        self.approval.as_ref()
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

    /// The words or the digit that said yes, or `approved by …`.
    pub fn confirmed_by(&self) -> &str {
        &self.confirmed_by
    }

    /// How long the run may take.
    pub fn limit(&self) -> Duration {
        self.limit
    }
}
