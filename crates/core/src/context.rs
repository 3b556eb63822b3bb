//! What the model is shown of the conversation: what was heard, not what was generated.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use crate::event::ToolCall;
use crate::ids::CallId;

/// One item of the conversation, in the order in which it happened at the caller's ear.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Item {
    /// What the caller said.
    Caller {
        /// The words.
        text: String,
    },
    /// What the caller heard the agent say.
    Agent {
        /// The heard prefix.
        text: String,
        /// Whether it was heard to its end.
        complete: bool,
    },
    /// A tool call of the model's.
    Call {
        /// The call.
        call: ToolCall,
    },
    /// What the model was answered.
    Result {
        /// The call.
        call: CallId,
        /// The text.
        text: String,
        /// The words, the digit or the approver that confirmed it, if something ran on a yes (VC-49).
        confirmed_by: Option<String>,
    },
    /// What the model is told outside the caller's words.
    Told {
        /// The text.
        text: String,
    },
}
