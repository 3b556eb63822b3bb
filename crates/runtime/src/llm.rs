//! The language model as the runtime needs it.

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A language model that answers with text and tool calls, streamed.
#[async_trait::async_trait]
pub trait Llm: Send + Sync + std::fmt::Debug {
    /// Provider and model, for logs and evidence: `openai/gpt-4o-mini`.
    fn name(&self) -> String;

    /// Starts one step. Dropping the stream cancels it.
    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError>;

    /// Gets ready for requests that begin like this one: loads the model, fills its prompt cache. Optional.
    async fn warm(&self, _request: LlmRequest) -> Result<(), LlmError> {
        Ok(())
    }
}

/// What the model sends, in order.
pub type LlmStream = Pin<Box<dyn Stream<Item = Result<LlmEvent, LlmError>> + Send>>;

/// One step asked of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LlmRequest {
    /// The conversation, oldest first.
    pub messages: Vec<LlmMessage>,
    /// The tools it may call.
    pub tools: Vec<ToolSpec>,
    /// If not empty: the answer is exactly one of these words.
    pub one_of: Vec<String>,
    /// Most tokens to generate.
    pub max_tokens: Option<u32>,
    /// Sampling temperature; `None`: the provider's default.
    pub temperature: Option<f32>,
    /// Longest wait for the first piece; `None`: 15 s.
    pub first_token: Option<Duration>,
    /// Longest wait between two pieces; `None`: 10 s.
    pub between_tokens: Option<Duration>,
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "role")]
pub enum LlmMessage {
    /// Instructions.
    System {
        /// The text.
        text: String,
    },
    /// The caller.
    User {
        /// The text.
        text: String,
    },
    /// The agent.
    Assistant {
        /// What it said.
        text: String,
        /// What it called.
        calls: Vec<LlmCall>,
    },
    /// A tool's answer.
    Tool {
        /// The call that it answers.
        call_id: String,
        /// The answer.
        text: String,
    },
}

/// A tool call, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmCall {
    /// The model's id of it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text, as the model wrote them.
    pub arguments: String,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does; for tools with a question, says that calling it asks the caller.
    pub description: String,
    /// JSON Schema of its input.
    pub input: Value,
}

/// One piece of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum LlmEvent {
    /// More text.
    Text(String),
    /// A whole tool call.
    Call(LlmCall),
    /// The step is complete. Nothing follows.
    Done,
}

/// What can go wrong with a step.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LlmError {
    /// Nothing answers there.
    #[error("cannot reach the language model at {url}: {reason}")]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The key is missing or refused.
    #[error("the language model refused the key: {0}")]
    Unauthorised(String),
    /// Too many requests.
    #[error("the language model is rate-limited{}", retry_after.map(|d| format!(", retry in {} s", d.as_secs())).unwrap_or_default())]
    RateLimited {
        /// When it may be tried again, if it says so.
        retry_after: Option<Duration>,
    },
    /// The request was refused.
    #[error("the language model refused the request ({status}): {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The answer makes no sense.
    #[error("the language model answered rubbish: {0}")]
    Garbage(String),
    /// It broke off.
    #[error("the language model broke off: {0}")]
    BrokeOff(String),
    /// It took too long.
    #[error("the language model was silent for {} ms", .0.as_millis())]
    TimedOut(Duration),
}
