//! The events of a call that its page is told.

use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use crate::wire::Signalling;

/// Messages to the page that may wait; more are lost, and the page's next ones stand.
pub(super) const MESSAGES: usize = 128;

/// What a caller may be told of their own call. Whoever calls is not whoever runs the server: what the model is told,
/// and what tools are given, stay here.
const TOLD: [&str; 18] = [
    "call.started",
    "call.ended",
    "caller.speech",
    "caller.words",
    "caller.turn",
    "agent.said",
    "agent.started",
    "agent.heard",
    "question.held",
    "question.started",
    "question.heard",
    "question.dropped",
    "question.repeated",
    "answer.checked",
    "tool.started",
    "tool.finished",
    "silence.followup",
    "dtmf",
];

/// Tells the page the events of its call.
#[derive(Debug)]
pub(super) struct PageEvents(pub(super) Sender<String>);

impl Signalling for PageEvents {
    fn on_event(&mut self, line: &Value) {
        if let Some(line) = told(line) {
            // A page that takes nothing misses some of it; the call does not wait for it.
            let _ = self.0.try_send(json!({ "type": "event", "line": line }).to_string());
        }
    }
}

/// An event as the caller is told it.
fn told(line: &Value) -> Option<Value> {
    let name = line.get("event")?.as_str()?;
    if !TOLD.contains(&name) {
        return None;
    }
    let mut line = line.clone();
    if name.starts_with("tool.")
        && let Some(fields) = line.as_object_mut()
    {
        fields.retain(|key, _| {
            matches!(key.as_str(), "t_ms" | "event" | "call_id" | "tool" | "ok" | "outcome")
        });
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_not_told_what_is_not_theirs() {
        assert_eq!(told(&json!({"event": "model.told", "text": "…"})), None);
        assert_eq!(told(&json!({"event": "tool.called", "input": {}})), None);
        let started = json!({"t_ms": 1.0, "event": "tool.started", "tool": "book", "input": {"a": 1}, "confirmed_by": "yes"});
        assert_eq!(told(&started), Some(json!({"t_ms": 1.0, "event": "tool.started", "tool": "book"})));
        let said = json!({"event": "agent.said", "text": "Hello"});
        assert_eq!(told(&said), Some(said.clone()));
    }
}
