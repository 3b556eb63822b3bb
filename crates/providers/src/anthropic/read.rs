//! The events of an answer, as text and whole calls.

use std::collections::{BTreeMap, VecDeque};

use sayback_runtime::llm::{LlmCall, LlmEvent};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::hosted::step::{Dialect, Progress};
use crate::hosted::{ApiKey, Fault, cleared};

/// More calls than this in one step are a runaway.
const MOST_CALLS: usize = 64;

/// Reads content blocks until a stop reason ends them.
pub(super) struct Blocks {
    /// Calls under way, by the number of their block.
    calls: BTreeMap<u64, LlmCall>,
    key: Option<ApiKey>,
}

/// One event. Kinds that are not named here are to be passed over, as the API's versioning demands.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    index: u64,
    #[serde(default)]
    content_block: Value,
    #[serde(default)]
    delta: Value,
    #[serde(default)]
    error: Value,
}

impl Blocks {
    pub(super) fn new(key: Option<ApiKey>) -> Self {
        Self { calls: BTreeMap::new(), key }
    }

    fn on_start(&mut self, event: &Event) -> Result<Progress, Fault> {
        let block = &event.content_block;
        if block["type"] != "tool_use" {
            return Ok(Progress::Nothing);
        }
        let part = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        let (id, name) = (part("id"), part("name"));
        if id.is_empty() || name.is_empty() {
            return Err(Fault::Garbage("a tool call without an id or a name".to_owned()));
        }
        if self.calls.len() >= MOST_CALLS {
            return Err(Fault::Garbage(format!("more than {MOST_CALLS} tool calls in one step")));
        }
        // Its input comes in pieces; only servers that imitate this API send it at once.
        let whole = block["input"].as_object().filter(|input| !input.is_empty());
        let arguments = whole.map(|_| block["input"].to_string()).unwrap_or_default();
        self.calls.insert(event.index, LlmCall { id, name, arguments });
        Ok(Progress::Piece)
    }

    fn on_delta(&mut self, event: &Event, ready: &mut VecDeque<LlmEvent>) -> Result<Progress, Fault> {
        let delta = &event.delta;
        match delta["type"].as_str() {
            Some("text_delta") => {
                let text = delta["text"].as_str().unwrap_or_default();
                if text.is_empty() {
                    return Ok(Progress::Nothing);
                }
                ready.push_back(LlmEvent::Text(text.to_owned()));
                Ok(Progress::Piece)
            }
            Some("input_json_delta") => {
                let Some(call) = self.calls.get_mut(&event.index) else {
                    return Err(Fault::Garbage("a piece of a tool call that never began".to_owned()));
                };
                call.arguments.push_str(delta["partial_json"].as_str().unwrap_or_default());
                Ok(Progress::Piece)
            }
            _ => Ok(Progress::Nothing),
        }
    }

    /// The answer is whole: its calls are delivered. `reason` as the server names it.
    fn finish(&mut self, reason: &str, ready: &mut VecDeque<LlmEvent>) -> Result<Progress, Fault> {
        let cut = |call: &LlmCall| serde_json::from_str::<IgnoredAny>(&call.arguments).is_err();
        let mut calls: Vec<LlmCall> = std::mem::take(&mut self.calls).into_values().collect();
        for call in calls.iter_mut().filter(|call| call.arguments.trim().is_empty()) {
            call.arguments = "{}".to_owned();
        }
        match reason {
            "max_tokens" | "model_context_window_exceeded" if calls.iter().any(cut) => {
                Err(Fault::BrokeOff("the token limit was reached inside a tool call".to_owned()))
            }
            "refusal" => Err(Fault::BrokeOff("the model declined to answer".to_owned())),
            _ => {
                ready.extend(calls.into_iter().map(LlmEvent::Call));
                Ok(Progress::Finished)
            }
        }
    }

    fn fault(&self, error: &Value) -> Fault {
        let message = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
        let message = cleared(&message, self.key.as_ref());
        match error["type"].as_str() {
            Some("authentication_error" | "permission_error") => Fault::Unauthorised(message),
            Some("rate_limit_error") => Fault::RateLimited { retry_after: None },
            Some("invalid_request_error") => Fault::Refused { status: 400, message },
            Some("overloaded_error") => Fault::Refused { status: 529, message },
            _ => Fault::Refused { status: 500, message },
        }
    }
}

impl Dialect for Blocks {
    fn read(&mut self, data: &str, ready: &mut VecDeque<LlmEvent>) -> Result<Progress, Fault> {
        let event: Event = serde_json::from_str(data)
            .map_err(|_| Fault::Garbage(format!("no event: {}", cleared(data, self.key.as_ref()))))?;
        match event.kind.as_str() {
            "content_block_start" => self.on_start(&event),
            "content_block_delta" => self.on_delta(&event, ready),
            "message_delta" => match event.delta["stop_reason"].as_str() {
                Some(reason) => self.finish(reason, ready),
                None => Ok(Progress::Nothing),
            },
            "message_stop" => self.finish("", ready),
            "error" => Err(self.fault(&event.error)),
            _ => Ok(Progress::Nothing),
        }
    }
}
