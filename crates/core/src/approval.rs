//! Approvals: what an operator or an app is asked by id, and what they answer. Never the caller's yes.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::event::Prepared;
use crate::ids::{ApprovalId, CallId};

/// What became of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledApproval {
    /// Which one.
    pub approval: ApprovalId,
    /// What.
    pub outcome: ApprovalOutcome,
}

/// What became of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ApprovalOutcome {
    /// It was answered.
    Answered {
        /// What was answered.
        answer: Approval,
        /// Why, in the operator's words.
        reason: Option<String>,
    },
    /// Nobody answered in time.
    Expired,
    /// Nobody could be asked.
    Failed {
        /// Why.
        error: String,
    },
}

/// What an operator or an app answered. Never the caller's yes, and never in its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Approval {
    /// Whether it may run. Only a tool that asked by itself is run to hear of a no.
    pub confirmed: bool,
    /// Who answered.
    pub by: String,
    /// What they filled in, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

/// An approval that is asked for and not settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// Its id.
    pub approval: ApprovalId,
    /// The model's call.
    pub call: CallId,
    /// What the operator is told.
    pub hint: String,
    /// What they may fill in, as JSON.
    pub payload: Option<String>,
    /// What it comes to once they have approved: `Plain` or `Ask`.
    pub then: Prepared,
    /// Who asks.
    pub asker: ApprovalAsker,
}

/// Who asks for an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAsker {
    /// The agent's rules, before the tool may run.
    Rule,
    /// The tool itself, out of its first run: it is run again with the answer, be that yes or no.
    Tool,
}
