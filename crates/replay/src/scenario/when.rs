//! When a caller does something: on the call clock, or after an event.

use std::fmt;
use std::time::Duration;

use sayback_core::Time;

use super::numbers;

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this point of the call clock.
    At(Time),
    /// Before or after an event.
    After(Anchor),
}

impl When {
    /// The same, `by` later.
    #[must_use]
    pub fn later(self, by: Duration) -> Self {
        match self {
            Self::At(at) => Self::At(at + by),
            Self::After(mut anchor) => {
                let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
                anchor.offset_micros = anchor.offset_micros.saturating_add(micros);
                Self::After(anchor)
            }
        }
    }
}

/// A point before or after one occurrence of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The event.
    pub event: AnchorEvent,
    /// Which occurrence, from 1.
    pub occurrence: u32,
    /// Microseconds from it; negative: before it, which only events with a planned end allow.
    pub offset_micros: i64,
}

impl Anchor {
    /// The point itself, given when the event was; never before the call began.
    pub fn resolve(self, event: Time) -> Time {
        let span = Duration::from_micros(self.offset_micros.unsigned_abs());
        if self.offset_micros < 0 { event - span } else { event + span }
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.event.name())?;
        if self.occurrence != 1 {
            write!(f, "#{}", self.occurrence)?;
        }
        if self.offset_micros != 0 {
            let sign = if self.offset_micros < 0 { '-' } else { '+' };
            let micros = self.offset_micros.unsigned_abs();
            write!(f, " {sign} {}ms", micros as f64 / 1_000.0)?;
        }
        Ok(())
    }
}

/// An event that a caller's line can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnchorEvent {
    /// The line is up: the beginning of the call clock.
    CallStarted,
    /// A piece of agent speech, questions included, sounds.
    AgentStarted,
    /// A piece of agent speech has been heard to its end: the latest moment at which that was so.
    AgentHeard,
    /// A question's first sample sounds.
    QuestionStarted,
    /// A question has been heard: its horizon.
    QuestionHeard,
    /// The question is asked once more.
    QuestionRepeated,
    /// The question is no longer open.
    QuestionDropped,
    /// The check has answered.
    AnswerChecked,
    /// The caller's turn is complete.
    CallerTurn,
    /// A tool begins to run.
    ToolStarted,
    /// A tool has run.
    ToolFinished,
    /// The caller is spoken to after a silence.
    SilenceFollowup,
    /// An operator is asked.
    ConfirmationRequested,
    /// An approval is settled.
    ConfirmationAnswered,
}

impl AnchorEvent {
    /// All of them, for lists in messages.
    pub const ALL: [Self; 14] = [
        Self::CallStarted,
        Self::AgentStarted,
        Self::AgentHeard,
        Self::QuestionStarted,
        Self::QuestionHeard,
        Self::QuestionRepeated,
        Self::QuestionDropped,
        Self::AnswerChecked,
        Self::CallerTurn,
        Self::ToolStarted,
        Self::ToolFinished,
        Self::SilenceFollowup,
        Self::ConfirmationRequested,
        Self::ConfirmationAnswered,
    ];

    /// The event's name in the event log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CallStarted => "call.started",
            Self::AgentStarted => "agent.started",
            Self::AgentHeard => "agent.heard",
            Self::QuestionStarted => "question.started",
            Self::QuestionHeard => "question.heard",
            Self::QuestionRepeated => "question.repeated",
            Self::QuestionDropped => "question.dropped",
            Self::AnswerChecked => "answer.checked",
            Self::CallerTurn => "caller.turn",
            Self::ToolStarted => "tool.started",
            Self::ToolFinished => "tool.finished",
            Self::SilenceFollowup => "silence.followup",
            Self::ConfirmationRequested => "confirmation.requested",
            Self::ConfirmationAnswered => "confirmation.answered",
        }
    }

    /// Whether its time is known before it comes, so that something can happen a little earlier.
    pub const fn is_planned(self) -> bool {
        matches!(self, Self::AgentHeard | Self::QuestionHeard)
    }
}

/// Why a text is no point in time: what is wrong, and how to mend it.
#[derive(Debug)]
pub(crate) struct NoPoint {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// `question.heard`, `question.heard#2 + 400ms`, `agent.heard - 200ms`.
pub(crate) fn anchor(text: &str) -> Result<Anchor, NoPoint> {
    let (name, offset_micros) = split_offset(text)?;
    let (name, occurrence) = split_occurrence(name.trim())?;
    let known = AnchorEvent::ALL.map(AnchorEvent::name);
    let event = AnchorEvent::ALL.into_iter().find(|event| event.name() == name).ok_or_else(|| NoPoint {
        message: format!("`{name}` is no event that a line can wait for"),
        hint: super::fault::suggestion(name, known),
    })?;
    if offset_micros < 0 && !event.is_planned() {
        return Err(NoPoint {
            message: format!("nothing can happen before `{name}`: its time is not known in advance"),
            hint: "use `question.heard` or `agent.heard`, whose end is planned, or a time with `at`".into(),
        });
    }
    Ok(Anchor { event, occurrence, offset_micros })
}

fn split_offset(text: &str) -> Result<(&str, i64), NoPoint> {
    let Some(at) = text.find(['+', '-']) else { return Ok((text, 0)) };
    let (name, signed) = text.split_at(at);
    let (sign, span) = signed.split_at(1);
    let micros = numbers::duration(span).and_then(|d| i64::try_from(d.as_micros()).ok());
    let micros = micros.ok_or_else(|| NoPoint {
        message: format!("`{}` is no duration", span.trim()),
        hint: "write it like `question.heard + 400ms`".into(),
    })?;
    Ok((name, if sign == "-" { -micros } else { micros }))
}

fn split_occurrence(text: &str) -> Result<(&str, u32), NoPoint> {
    let Some((name, number)) = text.split_once('#') else { return Ok((text, 1)) };
    match number.trim().parse() {
        Ok(occurrence) if occurrence > 0 => Ok((name.trim_end(), occurrence)),
        _ => Err(NoPoint {
            message: format!("`#{}` names no occurrence", number.trim()),
            hint: "the first is `#1`, the second `#2`".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_has_a_name_an_occurrence_and_an_offset() {
        let anchor = anchor("question.heard#2 - 200ms").unwrap();
        assert_eq!(anchor.event, AnchorEvent::QuestionHeard);
        assert_eq!(anchor.occurrence, 2);
        assert_eq!(anchor.offset_micros, -200_000);
        assert_eq!(anchor.to_string(), "question.heard#2 - 200ms");
        assert_eq!(anchor.resolve(Time::from_millis(1_000)), Time::from_millis(800));
        assert_eq!(anchor.resolve(Time::from_millis(100)), Time::ZERO);
    }

    #[test]
    fn what_is_no_point_says_how_to_mend_it() {
        assert_eq!(anchor("question.herd + 1s").unwrap_err().hint, "did you mean `question.heard`?");
        assert!(anchor("tool.started - 1ms").unwrap_err().hint.contains("question.heard"));
        assert!(anchor("question.heard + 1").unwrap_err().message.contains("`1` is no duration"));
        assert!(anchor("question.heard#0").unwrap_err().hint.contains("#1"));
        assert!(anchor("").is_err());
    }
}
