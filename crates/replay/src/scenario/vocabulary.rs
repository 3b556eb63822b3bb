//! The event log's names and fields, so that an expectation cannot ask for what does not exist. A misspelt field in
//! a `never` would otherwise always hold.

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
    ("answer.checked", &["question", "words", "onset_ms", "margin_ms", "verdict", "veto", "error"]),
    ("tool.started", &["call_id", "tool", "input", "confirmed_by"]),
    ("tool.finished", &["call_id", "tool", "ok", "message", "outcome"]),
    ("model.told", &["text"]),
    ("model.failed", &["generation", "error"]),
    ("silence.followup", &["n", "text"]),
    ("dtmf", &["digit"]),
    ("confirmation.requested", &["id", "tool", "input", "call_id"]),
    ("confirmation.answered", &["id", "confirmed", "by", "reason"]),
];

/// The fields of an event; `None`: there is no such event.
pub(super) fn fields_of(event: &str) -> Option<&'static [&'static str]> {
    EVENTS.iter().find(|(name, _)| *name == event).map(|(_, fields)| *fields)
}
