//! The parts of the OpenAI chat API that are understood here.

use serde::Deserialize;
use serde_json::{Value, json};

/// A request for one answer. Unknown fields are left aside, as every such server does.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ChatRequest {
    /// The conversation.
    pub(crate) messages: Vec<Message>,
    /// The tools that may be called.
    #[serde(default)]
    pub(crate) tools: Vec<Tool>,
    /// Whether the answer comes piece by piece.
    #[serde(default)]
    pub(crate) stream: bool,
    /// Most tokens to generate; 0 only reads the prompt.
    #[serde(alias = "max_completion_tokens")]
    pub(crate) max_tokens: Option<u32>,
    /// 0, the default: always the likeliest token, so that the same words give the same answer.
    pub(crate) temperature: Option<f32>,
    /// Seed for temperatures above 0.
    pub(crate) seed: Option<u32>,
    /// Our own field: the answer is exactly one of these.
    #[serde(default)]
    pub(crate) choices: Vec<String>,
}

/// One message.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Message {
    /// Who says it.
    pub(crate) role: Role,
    /// What; a text, a list of parts, or nothing.
    pub(crate) content: Option<Value>,
    /// What the assistant called.
    #[serde(default)]
    pub(crate) tool_calls: Vec<ToolCall>,
}

impl Message {
    /// Its text, parts joined.
    pub(crate) fn text(&self) -> String {
        match &self.content {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
            _ => String::new(),
        }
    }
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Instructions.
    #[serde(alias = "developer")]
    System,
    /// The caller.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// A call in the past of the conversation.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ToolCall {
    /// What was called.
    pub(crate) function: CalledFunction,
}

/// Name and arguments of a call.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CalledFunction {
    /// The name.
    pub(crate) name: String,
    /// JSON text.
    pub(crate) arguments: String,
}

/// A tool that may be called.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Tool {
    /// The function behind it.
    pub(crate) function: Function,
}

/// A function as the model sees it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Function {
    /// The name.
    pub(crate) name: String,
    /// What it does.
    #[serde(default)]
    pub(crate) description: String,
    /// JSON Schema of its arguments.
    #[serde(default)]
    pub(crate) parameters: Value,
}

/// One chunk of a streamed answer.
pub(crate) fn chunk(model: &str, delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-local",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    })
}

/// An error, as a body and as an event.
pub(crate) fn error(status: u16, message: &str) -> Value {
    json!({"error": {"message": message, "code": status}})
}
