//! What a call came to, in plain sentences.

use super::timeline::{Question, Timeline};

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its tool ran and succeeded.
    Ran,
    /// Its tool ran and failed, or its outcome is unknown.
    Failed,
    /// Nothing ran.
    NotRun,
    /// It was still open when the log ended.
    Open,
}

impl Ending {
    /// Name of the colour.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Failed => "failed",
            Self::NotRun => "stopped",
            Self::Open => "open",
        }
    }
}

/// How one question ended, and why, as a sentence.
pub(super) fn decision(timeline: &Timeline, question: &Question) -> (Ending, String) {
    let tool = spoken_name(&question.tool);
    if let Some(run) = question.run.and_then(|run| timeline.tools.get(run)) {
        let why = confirmed(question, run.confirmed_by.as_deref().unwrap_or(""));
        return match &run.finished {
            Some(end) if end.ok => (Ending::Ran, format!("Done: {tool}. {why}")),
            Some(_) => (Ending::Failed, format!("Tried and failed: {tool}. {why}")),
            None => (Ending::Failed, format!("Started, outcome unknown: {tool}. {why}")),
        };
    }
    match &question.dropped {
        Some((at, reason)) => {
            let why = why_not(timeline, question, *at, reason);
            (Ending::NotRun, format!("Not done: {tool}. {why}"))
        }
        None => (
            Ending::Open,
            format!("Still open: {tool}. The question had not been answered when the log ended."),
        ),
    }
}

/// What is said where no question was asked.
pub(super) fn without_question(timeline: &Timeline) -> String {
    match timeline.tools.len() {
        0 => "Nothing was asked for a yes, and no tool ran.".into(),
        1 => "Nothing was asked for a yes; one tool that needs none ran.".into(),
        n => format!("Nothing was asked for a yes; {n} runs of tools that need none."),
    }
}

fn confirmed(question: &Question, by: &str) -> String {
    if let Some(answer) = question.answers.last().filter(|answer| answer.verdict == "yes") {
        return format!(
            "The caller said “{}” {} after the question had been heard.",
            answer.words,
            span(answer.margin)
        );
    }
    match by.chars().count() {
        0 => "The caller had agreed.".into(),
        1 => format!("The caller pressed {by} after the question had been heard."),
        _ => format!("Confirmed by “{by}”."),
    }
}

fn why_not(timeline: &Timeline, question: &Question, at: f64, reason: &str) -> String {
    let last = question.answers.last();
    match reason {
        "barge_in" => spoke_over(timeline, question, at),
        "declined" => match last {
            Some(answer) => format!("The caller said “{}”, which is no yes.", answer.words),
            None => "The caller said no.".into(),
        },
        "unconfirmed" => "The caller was asked as often as is allowed and never clearly said yes.".into(),
        "replaced" => "Another question took its place.".into(),
        "cancelled" => "The turn was called off before the question could be answered.".into(),
        "not_played" => "The question did not reach the caller word for word.".into(),
        "tts_failed" => "The voice failed, so the question was not heard whole.".into(),
        "hangup" => "The caller hung up without a complete yes.".into(),
        "expired" => "No answer began in time.".into(),
        "owner_gone" => "The tool no longer exists.".into(),
        "definition_changed" => "The tool changed after the question was asked.".into(),
        "rewound" => "The conversation was taken back to before the question.".into(),
        "input_error" => "A later call of a tool failed, so the details may be stale.".into(),
        other => format!("The question was closed: {other}."),
    }
}

/// Who spoke into the question, and how long before it had been heard.
fn spoke_over(timeline: &Timeline, question: &Question, at: f64) -> String {
    let Some(asking) = question.askings.last() else { return "The caller spoke over the question.".into() };
    let horizon = asking.heard.as_ref().map(|heard| heard.latest);
    let limit = horizon.unwrap_or(at);
    let over = timeline.words.iter().find(|words| words.offset > asking.started && words.onset < limit);
    let key = timeline.keys.iter().find(|(t, _)| (asking.started..=limit).contains(t));
    let before = |onset: f64| match horizon {
        Some(horizon) => format!(", {} before it had been heard", span(horizon - onset)),
        None => String::new(),
    };
    match (over, key) {
        (Some(words), _) => {
            format!("The caller spoke over the question (“{}”{}).", words.text, before(words.onset))
        }
        (None, Some((t, digit))) => format!("The caller pressed {digit} during the question{}.", before(*t)),
        (None, None) => "The caller spoke over the question.".into(),
    }
}

/// `book_meeting` as words: `book meeting`.
pub(super) fn spoken_name(tool: &str) -> String {
    tool.replace(['_', '-'], " ")
}

/// A time that people read: `412 ms`, `3.4 s`.
pub(super) fn span(ms: f64) -> String {
    let ms = ms.max(0.0);
    if ms < 1_000.0 { format!("{} ms", ms.round()) } else { format!("{:.1} s", ms / 1_000.0) }
}
