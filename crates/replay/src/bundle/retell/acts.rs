//! What the caller did, put behind the event that it followed.

use std::collections::BTreeMap;
use std::time::Duration;

use sayback_core::{Event, Time};
use sayback_runtime::redact::is_redacted;
use serde_json::Value;

use super::anchor;
use crate::scenario::{AnchorEvent, length_of_speech};

/// One thing that the caller did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Act {
    /// When, as a scenario has it: `question.heard + 400ms`.
    pub(super) after: String,
    pub(super) what: What,
}

/// What it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Speech { text: String, length: Duration, transcript: Duration },
    Noise(Duration),
    Message(String),
    Digit(char),
    Hold(Duration),
    HangUp,
}

impl Act {
    /// Its words.
    pub(super) fn words(&self) -> Option<&str> {
        match &self.what {
            What::Speech { text, .. } | What::Message(text) => Some(text),
            What::Noise(_) | What::Digit(_) | What::Hold(_) | What::HangUp => None,
        }
    }
}

/// A stretch of caller sound.
#[derive(Debug)]
struct Stretch {
    onset: Time,
    offset: Time,
    words: Option<(String, Time)>,
}

fn time(value: &Value) -> Option<Time> {
    let micros = value.as_f64()? * 1_000.0;
    (micros >= 0.0).then(|| Time::from_micros(micros.round() as u64))
}

/// The caller's side of a call up to its last decision, and a hang-up behind that.
///
/// `all` is the whole event log, `decided` the part of it up to the last decision.
pub(super) fn acts(inputs: &[(Time, Event)], all: &[Value], decided: &[Value]) -> Vec<Act> {
    let end = decided.last().and_then(|event| time(&event["t_ms"])).unwrap_or(Time::ZERO);
    let anchors = Anchors::new(all);
    let mut found: Vec<(Time, What)> = Vec::new();
    for stretch in stretches(all).into_values() {
        let length = stretch.offset.since(stretch.onset).max(Duration::from_millis(1));
        let what = match stretch.words {
            Some((text, at)) if !text.is_empty() => {
                What::Speech { text, length, transcript: at.since(stretch.offset) }
            }
            Some(_) | None => What::Noise(length),
        };
        found.push((stretch.onset, what));
    }
    let mut chat = false;
    let mut held = None;
    for (at, event) in inputs {
        if let Event::Message { text, received } = event {
            chat = true;
            found.push((*received, What::Message(text.clone())));
        } else if let Event::Digit { digit, start } = event {
            found.push((*start, What::Digit(*digit)));
        } else if matches!(event, Event::HungUp | Event::LineLost) {
            found.push((*at, What::HangUp));
        } else if *event == Event::LineHeld {
            held.get_or_insert(*at);
        } else if *event == Event::LineResumed
            && let Some(since) = held.take()
        {
            found.push((since, What::Hold(at.since(since))));
        }
    }
    found.retain(|(at, _)| *at <= end);
    found.sort_by_key(|(at, _)| *at);
    let mut acts: Vec<Act> =
        found.into_iter().map(|(at, what)| Act { after: anchors.after(at, chat), what }).collect();
    if acts.last().is_none_or(|act| act.what != What::HangUp) {
        acts.push(Act { after: anchors.behind(end), what: What::HangUp });
    }
    acts
}

/// Segments with their words; typed messages have no sound.
fn stretches(events: &[Value]) -> BTreeMap<String, Stretch> {
    let mut stretches = BTreeMap::new();
    for event in events {
        let Some(id) = event["segment"].as_str() else { continue };
        if event["event"] == "caller.speech" {
            let onset = time(&event["onset_earliest_ms"]);
            if let (Some(onset), Some(offset)) = (onset, time(&event["offset_ms"])) {
                stretches.insert(id.to_owned(), Stretch { onset, offset, words: None });
            }
        } else if event["event"] == "caller.words" && event["final"] == true {
            let heard = event["ignored"].is_null();
            let text = event["text"].as_str().filter(|_| heard).unwrap_or_default().to_owned();
            if let (Some(stretch), Some(at)) = (stretches.get_mut(id), time(&event["t_ms"])) {
                stretch.words = Some((text, at));
            }
        }
    }
    stretches
}

/// The events of a call that something can be put behind.
#[derive(Debug, Default)]
struct Anchors {
    list: Vec<(Time, AnchorEvent, u32)>,
    /// The text of each question, by its asking.
    questions: BTreeMap<u32, String>,
    /// How long each took, from its first sample to its end, where that is known.
    spoken: BTreeMap<u32, Duration>,
}

impl Anchors {
    fn new(events: &[Value]) -> Self {
        let mut anchors = Self::default();
        let mut counts: BTreeMap<AnchorEvent, u32> = BTreeMap::new();
        let mut asked: Option<(Time, u32)> = None;
        for event in events {
            let Some(kind) = anchor(event) else { continue };
            if kind == AnchorEvent::AgentHeard && event["complete"] != true {
                continue;
            }
            let Some(at) = time(&event["latest_ms"]).or_else(|| time(&event["t_ms"])) else { continue };
            let count = counts.entry(kind).or_insert(0);
            *count += 1;
            if kind == AnchorEvent::QuestionStarted {
                asked = Some((at, *count));
                anchors.questions.insert(*count, event["text"].as_str().unwrap_or_default().to_owned());
            } else if kind == AnchorEvent::QuestionHeard
                && let Some((began, number)) = asked
            {
                anchors.spoken.insert(number, at.since(began));
            }
            anchors.list.push((at, kind, *count));
        }
        // Ends are stated for the ear, so they need not be in the log's order.
        anchors.list.sort_by_key(|(at, _, _)| *at);
        anchors
    }

    /// Where something at this time belongs.
    fn after(&self, at: Time, chat: bool) -> String {
        let before = |kinds: &[AnchorEvent]| {
            self.list.iter().rev().find(|(t, kind, _)| *t <= at && kinds.contains(kind)).copied()
        };
        let asked = before(&[AnchorEvent::QuestionStarted]);
        let heard = before(&[AnchorEvent::QuestionHeard]);
        let closed = before(&[AnchorEvent::QuestionDropped, AnchorEvent::ToolStarted]);
        let later = |one: Option<(Time, AnchorEvent, u32)>, other: Option<(Time, AnchorEvent, u32)>| {
            one.filter(|one| other.is_none_or(|other| one.0 > other.0))
        };
        if let Some(heard) = later(heard, closed).filter(|h| asked.is_none_or(|asked| h.0 >= asked.0)) {
            return written(heard, at.since(heard.0), chat);
        }
        if let Some((began, kind, number)) = later(asked, closed) {
            return written((began, kind, number), self.scaled(number, at.since(began)), chat);
        }
        let spoke = before(&[AnchorEvent::AgentStarted]);
        let over = before(&[
            AnchorEvent::CallStarted,
            AnchorEvent::AgentHeard,
            AnchorEvent::ToolFinished,
            AnchorEvent::QuestionDropped,
            AnchorEvent::AnswerChecked,
        ]);
        match later(spoke, over).or(over) {
            Some(anchor) => written(anchor, at.since(anchor.0), chat),
            None => "call.started + 1s".to_owned(),
        }
    }

    /// A point inside a question, moved to the same share of it: in text its length follows from its letters.
    fn scaled(&self, number: u32, offset: Duration) -> Duration {
        let question = self.questions.get(&number).map_or("", String::as_str);
        let real = self.spoken.get(&number).copied();
        // A redacted question has no length of its own; people and voices say it about as fast as the rule.
        let text =
            if is_redacted(question) { real.unwrap_or(offset * 2) } else { length_of_speech(question) };
        let real = real.unwrap_or(text).max(Duration::from_millis(1));
        let share = offset.as_secs_f64() / real.as_secs_f64();
        text.mul_f64(share.clamp(0.0, 1.0)).min(text.saturating_sub(Duration::from_millis(50)))
    }

    /// A second behind the last event up to a time.
    fn behind(&self, end: Time) -> String {
        let closing = [AnchorEvent::ToolFinished, AnchorEvent::QuestionDropped, AnchorEvent::AnswerChecked];
        let last = self.list.iter().rev().find(|(at, kind, _)| *at <= end && closing.contains(kind));
        let any = last.or_else(|| self.list.iter().rev().find(|(at, _, _)| *at <= end));
        any.map_or("call.started + 5s".to_owned(), |anchor| written(*anchor, Duration::from_secs(1), false))
    }
}

/// In a chat nobody types as fast as a program reads.
fn written((_, kind, number): (Time, AnchorEvent, u32), by: Duration, chat: bool) -> String {
    let by = if chat { by.max(Duration::from_millis(500)) } else { by };
    let number = if number == 1 { String::new() } else { format!("#{number}") };
    format!("{}{number} + {}ms", kind.name(), by.as_millis())
}
