//! What the caller does, put on the clock: at a time, or after an event.

use super::*;

/// How long after the end of a sound without words it is known that it had none.
const NOTICED: Duration = Duration::from_millis(200);
/// First partial words of a line in text mode.
const FIRST_PARTIAL: Duration = Duration::from_millis(400);

impl VirtualCall<'_> {
    pub(super) fn act(&mut self, index: usize) {
        let Some(CallerAct { act, .. }) = self.scenario.callers.get(index) else { return };
        if self.waiting.hung_up && *act != Act::Reopen {
            return;
        }
        match act {
            Act::Rewind(to) => self.rewind(*to),
            Act::Reopen => self.reopen(index),
            Act::Digit(digit) => self.hand(Event::Digit { digit: *digit, start: self.now }),
            Act::Message(text) => self.hand(Event::Message { text: text.clone(), received: self.now }),
            Act::HangUp => self.hand(Event::HungUp),
            Act::Hold(length) => {
                self.hand(Event::LineHeld);
                self.later(*length, Event::LineResumed);
            }
            Act::Speech(_) | Act::Noise { .. } if self.ears.is_some() => {
                if let Some(ears) = self.ears.as_mut() {
                    ears.play(index, self.now);
                }
            }
            Act::Noise { length, .. } => self.sound(*length, NOTICED, "", None, false),
            Act::Speech(speech) => {
                let (length, delay) = (speech.length, speech.transcript_delay);
                self.sound(length, delay, &speech.text, speech.confidence, speech.echo);
            }
        }
    }

    /// A stretch of caller sound in text mode.
    fn sound(&mut self, length: Duration, delay: Duration, text: &str, confidence: Option<u8>, echo: bool) {
        self.waiting.segments += 1;
        let segment = SegmentId(self.waiting.segments);
        let (onset, offset) = (self.now, self.now + length);
        self.hand(Event::SpeechStarted { segment, onset: sayback_core::Interval::exact(onset) });
        if length > FIRST_PARTIAL && !text.is_empty() {
            let first = text.split_whitespace().next().unwrap_or_default().to_owned();
            self.later(FIRST_PARTIAL, Event::Partial { segment, text: first });
        }
        // At its very end, so that only what sounds counts as voiced: a click must not pause the agent.
        self.later(length, Event::SpeechEnded { segment, offset });
        let done = if echo {
            Event::Echo { segment }
        } else {
            Event::Transcript(sayback_core::Transcript {
                segments: vec![segment],
                span: None,
                text: text.to_owned(),
                confidence,
                phantom: None,
            })
        };
        self.later(length + delay, done);
    }

    /// An event came: acts that wait for it are put on the clock.
    pub(super) fn notice(&mut self, at: Time, line: &Value) {
        let Some(name) = line["event"].as_str() else { return };
        let Some(event) = AnchorEvent::ALL.into_iter().find(|event| event.name() == name) else { return };
        if event == AnchorEvent::AgentHeard && line["complete"] != Value::Bool(true) {
            return;
        }
        let count = self.waiting.counts.entry(event.name()).or_insert(0);
        *count += 1;
        let count = *count;
        let heard = line["latest_ms"].as_f64().map(|ms| Time::from_micros((ms * 1_000.0).round() as u64));
        self.release(event, count, heard.unwrap_or(at));
    }

    fn release(&mut self, event: AnchorEvent, occurrence: u32, at: Time) {
        let due = |call: &Self, index: usize| match call.scenario.callers[index].when {
            When::After(anchor) if anchor.event == event && anchor.occurrence == occurrence => {
                Some(anchor.resolve(at))
            }
            When::After(_) | When::At(_) => None,
        };
        for index in std::mem::take(&mut self.waiting.acts) {
            match due(self, index) {
                Some(time) => self.put(time, Happening::Act(index)),
                None => self.waiting.acts.push(index),
            }
        }
    }

    /// Speech sounds: acts that come before its end can be put on the clock now.
    pub(super) fn plan_ahead(&mut self) {
        let Some((horizon, kind)) = self.mouth.planned_horizon() else { return };
        let mut events = vec![AnchorEvent::AgentHeard];
        if kind == UtteranceKind::Question {
            events.push(AnchorEvent::QuestionHeard);
        }
        for event in events {
            let next = self.waiting.counts.get(event.name()).copied().unwrap_or(0) + 1;
            let early = |call: &Self, index: usize| match call.scenario.callers[index].when {
                When::After(anchor) => {
                    anchor.event == event && anchor.occurrence == next && anchor.offset_micros < 0
                }
                When::At(_) => false,
            };
            for index in std::mem::take(&mut self.waiting.acts) {
                if early(self, index)
                    && let When::After(anchor) = self.scenario.callers[index].when
                {
                    self.put(anchor.resolve(horizon), Happening::Act(index));
                } else {
                    self.waiting.acts.push(index);
                }
            }
        }
    }
}
