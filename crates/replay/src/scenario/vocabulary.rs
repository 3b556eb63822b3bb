//! The event log's names and fields, so that an expectation cannot ask for what does not exist. A misspelt field in
//! a `never` would otherwise always hold.

use serde_json::Value;

/// Every event and its fields beside `event` and `t_ms`.
pub(super) const EVENTS: &[(&str, &[&str])] = &[
    ("call.started", &["call", "transport"]),
    ("call.ended", &["reason"]),
    ("caller.speech", &["segment", "onset_earliest_ms", "onset_ms", "offset_ms"]),
    ("caller.words", &["segment", "text", "onset_ms", "offset_ms", "final", "confidence", "ignored"]),
    ("caller.turn", &["text", "onset_ms"]),
    ("agent.said", &["utterance", "text"]),
    ("agent.started", &["utterance"]),
    ("agent.paused", &[]),
    ("agent.resumed", &[]),
    ("agent.heard", &["utterance", "text", "complete", "earliest_ms", "latest_ms", "evidence"]),
    ("tool.called", &["call_id", "skill", "tool", "input"]),
    ("question.held", &["question", "tool", "text"]),
    ("question.started", &["question", "tool", "text"]),
    ("question.heard", &["question", "earliest_ms", "latest_ms", "evidence"]),
    ("question.dropped", &["question", "reason"]),
    ("question.repeated", &["question", "round"]),
    ("question.reopened", &["question", "text", "ran_before"]),
    ("answer.checked", &["question", "words", "onset_ms", "margin_ms", "verdict", "veto", "error"]),
    ("tool.started", &["call_id", "tool", "input", "confirmed_by"]),
    ("tool.finished", &["call_id", "tool", "ok", "message", "outcome"]),
    ("conversation.rewound", &["items"]),
    ("model.told", &["text"]),
    ("model.failed", &["generation", "error"]),
    ("silence.followup", &["n", "text"]),
    ("dtmf", &["digit"]),
    ("confirmation.requested", &["id", "call_id", "tool", "input", "hint", "payload"]),
    ("confirmation.answered", &["id", "call_id", "tool", "confirmed", "outcome", "by", "reason", "payload"]),
];

/// The fields of an event; `None`: there is no such event.
pub(super) fn fields_of(event: &str) -> Option<&'static [&'static str]> {
    EVENTS.iter().find(|(name, _)| *name == event).map(|(_, fields)| *fields)
}

/// What an event has that no expectation could ask for: its name if that is unknown, else its unknown fields.
///
/// Empty for every event of ours; a test over real runs that says so keeps this list and the event log together.
pub fn unknown_parts(event: &Value) -> Vec<String> {
    let name = event.get("event").and_then(Value::as_str).unwrap_or("(no event)");
    let Some(known) = fields_of(name) else { return vec![name.to_owned()] };
    let fields = event.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let unknown = fields.filter(|key| !matches!(*key, "event" | "t_ms") && !known.contains(key));
    unknown.map(|key| format!("{name}: {key}")).collect()
}
