//! A timing case as written: every key optional where a case may leave it out, and none beside them.

use sayback_core::{Adjacency, AfterHangup, ConfirmPolicy, QuestionBargeIn, Time, TurnPolicy, Verdict};
use serde::{Deserialize, Deserializer};

use super::case::{
    CheckReply, HandlerSpan, Merged, PlayedSpeech, Reask, Span, Spoken, TimingCase, TimingConfig,
    TimingEvent, TimingExpect, TimingQuestion, Told,
};

/// Latest point that a case may name, in ms: a week. Sums of a few of them stay far from any overflow.
const LATEST_MS: f64 = 604_800_000.0;

/// Milliseconds of either sign, whole or not, kept in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Millis(pub(super) i64);

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ms = f64::deserialize(deserializer)?;
        if ms.abs() <= LATEST_MS {
            return Ok(Self((ms * 1_000.0).round() as i64));
        }
        Err(serde::de::Error::custom(format!("{ms} ms is more than a week")))
    }
}

/// A point in time: milliseconds, not below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At(pub(super) Time);

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Millis(micros) = Millis::deserialize(deserializer)?;
        let micros =
            u64::try_from(micros).map_err(|_| serde::de::Error::custom("a time before the call began"))?;
        Ok(Self(Time::from_micros(micros)))
    }
}

impl From<At> for Time {
    fn from(at: At) -> Self {
        at.0
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (At(start), At(end)) = Deserialize::deserialize(deserializer)?;
        if end < start {
            return Err(serde::de::Error::custom("a span that ends before it starts"));
        }
        Ok(Self { start, end })
    }
}

/// One span or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Spans {
    One(Span),
    Many(Vec<Span>),
}

fn spans<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Span>, D::Error> {
    Ok(match Option::<Spans>::deserialize(deserializer)? {
        None => Vec::new(),
        Some(Spans::One(span)) => vec![span],
        Some(Spans::Many(spans)) => spans,
    })
}

/// A key that is named, even with `null`: then it says that there must be none.
fn named<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    id: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    transport: String,
    #[serde(default)]
    config: Config,
    question: Question,
    #[serde(default)]
    events: Vec<WrittenEvent>,
    expect: Expect,
}

impl Case {
    pub(super) fn resolve(self) -> Result<TimingCase, String> {
        let events = self.events.into_iter().enumerate();
        let events = events.map(|(index, event)| {
            event.resolve().map_err(|problem| format!("event {} of case {}: {problem}", index + 1, self.id))
        });
        Ok(TimingCase {
            events: events.collect::<Result<_, _>>()?,
            id: self.id,
            note: self.note,
            transport: self.transport,
            config: self.config.resolve(),
            question: self.question.resolve(),
            expect: self.expect.resolve(),
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    eps_ms: Option<At>,
    grace_ms: Option<At>,
    endpoint_ms: Option<At>,
    question_barge_in: Option<QuestionBargeIn>,
    adjacency: Option<Adjacency>,
    after_hangup: Option<AfterHangup>,
    dtmf: bool,
    question_ttl_ms: Option<At>,
    max_question_loss_ms: Option<At>,
}

impl Config {
    fn resolve(self) -> TimingConfig {
        let confirm = ConfirmPolicy::default();
        let span = |at: At| at.0.since(Time::ZERO);
        TimingConfig {
            eps: self.eps_ms.map(span).unwrap_or_default(),
            grace: self.grace_ms.map_or(confirm.grace, span),
            endpoint: self.endpoint_ms.map_or(TurnPolicy::default().endpoint, span),
            question_barge_in: self.question_barge_in.unwrap_or(confirm.question_barge_in),
            adjacency: self.adjacency.unwrap_or(confirm.adjacency),
            after_hangup: self.after_hangup.unwrap_or(confirm.after_hangup),
            keypad: self.dtmf,
            ttl: self.question_ttl_ms.map(span),
            max_loss: self.max_question_loss_ms.map_or(confirm.max_loss, span),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    #[serde(default = "first_hold")]
    hold: String,
    #[serde(default, deserialize_with = "spans")]
    preamble: Vec<Span>,
    play_start: Option<At>,
    last_audible: Option<At>,
    buffer_end: Option<At>,
    sent_end: Option<At>,
    rtt_ms: Option<At>,
    remote_jb_ms: Option<At>,
    assumed_rtt_ms: Option<At>,
    mark_echo: Option<At>,
    mark_echo_cause: Option<String>,
    #[serde(default, deserialize_with = "spans")]
    paused: Vec<Span>,
    #[serde(default, deserialize_with = "spans")]
    underruns: Vec<Span>,
    lost_ms: Option<At>,
    #[serde(default, deserialize_with = "spans")]
    line_hold: Vec<Span>,
    failed_at: Option<At>,
    samples: Option<u64>,
    device_lost_at: Option<At>,
    input_clock_offset_ms: Option<Millis>,
    #[serde(default)]
    reopened: bool,
}

fn first_hold() -> String {
    "h1".to_owned()
}

impl Question {
    fn resolve(self) -> TimingQuestion {
        let span = |at: At| at.0.since(Time::ZERO);
        TimingQuestion {
            hold: self.hold,
            preamble: self.preamble,
            play_start: self.play_start.map(Into::into),
            last_audible: self.last_audible.map(Into::into),
            buffer_end: self.buffer_end.map(Into::into),
            sent_end: self.sent_end.map(Into::into),
            rtt: self.rtt_ms.map(span),
            remote_jb: self.remote_jb_ms.map(span).unwrap_or_default(),
            assumed_rtt: self.assumed_rtt_ms.map(span),
            mark_echo: self.mark_echo.map(Into::into),
            mark_echo_cause: self.mark_echo_cause,
            paused: self.paused,
            underruns: self.underruns,
            lost: self.lost_ms.map(span).unwrap_or_default(),
            line_hold: self.line_hold,
            failed_at: self.failed_at.map(Into::into),
            samples: self.samples,
            device_lost_at: self.device_lost_at.map(Into::into),
            input_clock_offset_micros: self.input_clock_offset_ms.map_or(0, |ms| ms.0),
            reopened: self.reopened,
        }
    }
}

/// All keys that any event can have; which of them are there says what it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEvent {
    seg: Option<Segment>,
    merged: Option<Vec<Span>>,
    partial: Option<String>,
    check: Option<Check>,
    dtmf: Option<String>,
    hangup: Option<At>,
    replace: Option<String>,
    play: Option<Span>,
    silence_followup: Option<At>,
    message: Option<String>,
    handler: Option<Span>,
    t: Option<At>,
    text: Option<String>,
    stt_final_at: Option<At>,
    received: Option<At>,
    verbatim: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Segment {
    onset: At,
    offset: At,
    #[serde(default)]
    text: String,
    stt_final_at: Option<At>,
    #[serde(default)]
    rejected: bool,
    #[serde(default)]
    echo: bool,
    #[serde(default)]
    raw: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    started: Option<At>,
    at: At,
    verdict: Option<String>,
    raw: Option<String>,
}

impl WrittenEvent {
    fn resolve(mut self) -> Result<TimingEvent, String> {
        let event = self.take()?;
        let left = [
            ("seg", self.seg.is_some()),
            ("merged", self.merged.is_some()),
            ("partial", self.partial.is_some()),
            ("check", self.check.is_some()),
            ("dtmf", self.dtmf.is_some()),
            ("hangup", self.hangup.is_some()),
            ("replace", self.replace.is_some()),
            ("play", self.play.is_some()),
            ("message", self.message.is_some()),
            ("handler", self.handler.is_some()),
            ("t", self.t.is_some()),
            ("text", self.text.is_some()),
            ("stt_final_at", self.stt_final_at.is_some()),
            ("received", self.received.is_some()),
            ("verbatim", self.verbatim.is_some()),
        ];
        match left.into_iter().find(|(_, present)| *present) {
            Some((key, _)) => Err(format!("`{key}` does not belong to this kind of event")),
            None => Ok(event),
        }
    }

    /// Takes what belongs to the event out of the keys.
    fn take(&mut self) -> Result<TimingEvent, String> {
        if let Some(segment) = self.seg.take() {
            return segment.resolve();
        }
        if let Some(segments) = self.merged.take() {
            let text = self.text.take().unwrap_or_default();
            let final_at = need(self.stt_final_at.take(), "stt_final_at")?;
            return Ok(TimingEvent::Merged(Merged { segments, text, final_at }));
        }
        if let Some(text) = self.partial.take() {
            return Ok(TimingEvent::Partial { text, at: need(self.t.take(), "t")? });
        }
        if let Some(check) = self.check.take() {
            return check.resolve();
        }
        if let Some(digit) = self.dtmf.take() {
            return digit_event(&digit, need(self.t.take(), "t")?);
        }
        if let Some(at) = self.hangup.take() {
            return Ok(TimingEvent::HangUp { at: at.0 });
        }
        if let Some(hold) = self.replace.take() {
            return Ok(TimingEvent::Replace { hold, at: need(self.t.take(), "t")? });
        }
        if let Some(text) = self.message.take() {
            return Ok(TimingEvent::Message { text, received: need(self.received.take(), "received")? });
        }
        if let Some(span) = self.handler.take() {
            return Ok(TimingEvent::Handler(HandlerSpan { start: span.start, end: span.end }));
        }
        self.take_speech()
    }

    fn take_speech(&mut self) -> Result<TimingEvent, String> {
        let followup = self.silence_followup.take().map(|at| at.0);
        let play = self.play.take();
        let at = followup.or(play.map(|span| span.start));
        let at = at.ok_or(
            "no kind of event is named (seg, merged, partial, check, dtmf, hangup, replace, play, ...)",
        )?;
        Ok(TimingEvent::Played(PlayedSpeech {
            span: play.unwrap_or(Span { start: at, end: at }),
            text: self.text.take().unwrap_or_default(),
            verbatim: self.verbatim.take().unwrap_or(false),
            followup,
        }))
    }
}

fn need(at: Option<At>, key: &str) -> Result<Time, String> {
    at.map(|at| at.0).ok_or_else(|| format!("`{key}` is missing"))
}

fn digit_event(digit: &str, at: Time) -> Result<TimingEvent, String> {
    let mut keys = digit.chars();
    match (keys.next(), keys.next()) {
        (Some(digit @ ('0'..='9' | '*' | '#' | 'A'..='D')), None) => Ok(TimingEvent::Digit { digit, at }),
        _ => Err(format!("`{digit}` is no key")),
    }
}

impl Segment {
    fn resolve(self) -> Result<TimingEvent, String> {
        if self.offset.0 < self.onset.0 {
            return Err("a segment that ends before it starts".into());
        }
        Ok(TimingEvent::Segment(Spoken {
            onset: self.onset.0,
            offset: self.offset.0,
            text: self.text,
            final_at: self.stt_final_at.map(Into::into),
            rejected: self.rejected,
            echo: self.echo,
            raw: self.raw,
        }))
    }
}

impl Check {
    fn resolve(self) -> Result<TimingEvent, String> {
        let reply = match (self.verdict.as_deref(), self.raw) {
            (Some("yes"), None) => CheckReply::Verdict(Verdict::Yes),
            (Some("no"), None) => CheckReply::Verdict(Verdict::No),
            (Some("unclear"), None) => CheckReply::Verdict(Verdict::Unclear),
            (Some("timeout"), None) => CheckReply::Timeout,
            (Some("error"), None) => CheckReply::Error,
            (Some(other), None) => {
                return Err(format!("`{other}` is no verdict: yes, no, unclear, timeout, error"));
            }
            (None, Some(raw)) => CheckReply::Raw(raw),
            (None, None) => return Err("the check has neither `verdict` nor `raw`".into()),
            (Some(_), Some(_)) => return Err("the check has both `verdict` and `raw`".into()),
        };
        Ok(TimingEvent::Check { started: self.started.map(Into::into), at: self.at.0, reply })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Expect {
    state: Option<super::case::State>,
    #[serde(deserialize_with = "named")]
    reason: Option<Option<String>>,
    check_calls: Option<u32>,
    #[serde(deserialize_with = "named")]
    check_words: Option<Option<String>>,
    tool_runs: Option<u32>,
    model_told: Option<Told>,
    #[serde(deserialize_with = "named")]
    evidence_words: Option<Option<String>>,
    #[serde(deserialize_with = "named")]
    evidence: Option<Option<String>>,
    #[serde(deserialize_with = "named")]
    horizon: Option<Option<At>>,
    #[serde(deserialize_with = "named")]
    mapped_onset: Option<Option<At>>,
    asked_playout: Option<u32>,
    #[serde(deserialize_with = "named")]
    context_words: Option<Option<String>>,
    #[serde(deserialize_with = "named")]
    next_turn_words: Option<Option<String>>,
    #[serde(deserialize_with = "named")]
    hold: Option<Option<String>>,
    reask: Option<Reask>,
}

impl Expect {
    fn resolve(self) -> TimingExpect {
        TimingExpect {
            state: self.state,
            reason: self.reason,
            check_calls: self.check_calls,
            check_words: self.check_words,
            tool_runs: self.tool_runs,
            model_told: self.model_told,
            evidence_words: self.evidence_words,
            evidence: self.evidence,
            horizon: self.horizon.map(|at| at.map(Into::into)),
            mapped_onset: self.mapped_onset.map(|at| at.map(Into::into)),
            asked_playout: self.asked_playout,
            context_words: self.context_words,
            next_turn_words: self.next_turn_words,
            hold: self.hold,
            reask: self.reask,
        }
    }
}
