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

const EVIDENCE: &[&str] = &["virtual", "device", "page", "echo", "xr", "rtcp", "mark", "assumed", "unproven"];

/// Fields that have one of a few words. A misspelt one in a `never` would otherwise always hold, too.
const WORDS: &[(&str, &str, &[&str])] = &[
    ("agent.heard", "evidence", EVIDENCE),
    ("question.heard", "evidence", EVIDENCE),
    (
        "question.dropped",
        "reason",
        &[
            "barge_in",
            "replaced",
            "cancelled",
            "not_played",
            "tts_failed",
            "hangup",
            "expired",
            "declined",
            "unconfirmed",
            "owner_gone",
            "definition_changed",
            "rewound",
            "input_error",
        ],
    ),
    ("answer.checked", "verdict", &["yes", "no", "unclear"]),
    ("tool.finished", "outcome", &["executed", "failed", "not_run", "waits_for_approval", "outcome_unknown"]),
    ("confirmation.answered", "outcome", &["approved", "rejected", "expired", "cancelled", "failed"]),
];

/// The words that a field may be, if there are only a few.
pub(super) fn words_of(event: &str, field: &str) -> Option<&'static [&'static str]> {
    WORDS.iter().find(|(name, key, _)| *name == event && *key == field).map(|(_, _, words)| *words)
}

/// The fields of an event; `None`: there is no such event.
pub(super) fn fields_of(event: &str) -> Option<&'static [&'static str]> {
    EVENTS.iter().find(|(name, _)| *name == event).map(|(_, fields)| *fields)
}

/// What an event has that no expectation could ask for: its name if that is unknown, else its unknown fields, and words
/// that are not among those of their field.
///
/// Empty for every event of ours; a test over real runs that says so keeps this list and the event log together.
pub fn unknown_parts(event: &Value) -> Vec<String> {
    let name = event.get("event").and_then(Value::as_str).unwrap_or("(no event)");
    let Some(known) = fields_of(name) else { return vec![name.to_owned()] };
    let fields = event.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let unknown = fields.filter(|key| !matches!(*key, "event" | "t_ms") && !known.contains(key));
    let strange = known.iter().filter_map(|key| {
        let word = event.get(key).and_then(Value::as_str)?;
        let is_known = words_of(name, key).is_none_or(|words| words.contains(&word));
        (!is_known).then(|| format!("{name}: {key} = {word}"))
    });
    unknown.map(|key| format!("{name}: {key}")).chain(strange).collect()
}
