//! The chunks of an answer, as text and whole calls.

use std::collections::VecDeque;

use sayback_runtime::llm::LlmEvent;
use serde_json::Value;

use super::assemble::Calls;
use super::wire::{Choice, Chunk, Delta};
use crate::hosted::step::{Dialect, Progress};
use crate::hosted::{ApiKey, Fault, cleared, in_stream};

/// Reads chunks until one has a finish reason.
pub(super) struct Chunks {
    calls: Calls,
    id_stem: String,
    key: Option<ApiKey>,
}

impl Chunks {
    pub(super) fn new(id_stem: String, key: Option<ApiKey>) -> Self {
        Self { calls: Calls::default(), id_stem, key }
    }

    fn on_choice(&mut self, choice: Choice, ready: &mut VecDeque<LlmEvent>) -> Result<Progress, Fault> {
        let progress = self.take(choice.delta, ready)?;
        match choice.finish_reason {
            Some(reason) if !reason.is_empty() => self.finish(Some(&reason), ready),
            _ => Ok(progress),
        }
    }

    /// Takes what is new: a role or a thought is no piece of the answer.
    fn take(&mut self, delta: Delta, ready: &mut VecDeque<LlmEvent>) -> Result<Progress, Fault> {
        let text = delta.content.as_ref().and_then(Value::as_str).unwrap_or_default();
        let is_piece = !text.is_empty() || !delta.tool_calls.is_empty();
        if !text.is_empty() {
            ready.push_back(LlmEvent::Text(text.to_owned()));
        }
        for call in delta.tool_calls {
            self.calls.push(call).map_err(|error| Fault::Garbage(error.to_string()))?;
        }
        Ok(if is_piece { Progress::Piece } else { Progress::Nothing })
    }

    /// The answer is whole: its calls are delivered. `reason` as the server names it.
    fn finish(&mut self, reason: Option<&str>, ready: &mut VecDeque<LlmEvent>) -> Result<Progress, Fault> {
        if reason == Some("length") && self.calls.has_cut_arguments() {
            return Err(Fault::BrokeOff("the token limit was reached inside a tool call".to_owned()));
        }
        if reason == Some("content_filter") {
            return Err(Fault::BrokeOff("the server's content filter stopped the answer".to_owned()));
        }
        let calls = self.calls.finish(&self.id_stem).map_err(|e| Fault::Garbage(e.to_string()))?;
        ready.extend(calls.into_iter().map(LlmEvent::Call));
        Ok(Progress::Finished)
    }
}

impl Dialect for Chunks {
    fn read(&mut self, data: &str, ready: &mut VecDeque<LlmEvent>) -> Result<Progress, Fault> {
        if data == "[DONE]" {
            return self.finish(None, ready);
        }
        let chunk: Chunk = serde_json::from_str(data)
            .map_err(|_| Fault::Garbage(format!("no chunk: {}", cleared(data, self.key.as_ref()))))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(in_stream(&error, self.key.as_ref()));
        }
        match chunk.choices.into_iter().next() {
            Some(choice) => self.on_choice(choice, ready),
            None => Ok(Progress::Nothing),
        }
    }
}
