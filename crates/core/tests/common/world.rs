//! A call's surroundings: remembers what the core asked for, so that events can be made up that fit, or that do not.

#![expect(clippy::wildcard_enum_match_arm, reason = "only what has an answer is remembered")]

use std::time::Duration;

use sayback_core::*;

use super::monitor::Monitor;
use super::{frozen, tool};

/// An id that is never given out.
pub(crate) const NOBODY: u32 = 900_000;

/// A session, what it waits for, and a monitor that watches both.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) session: Session,
    pub(crate) monitor: Monitor,
    pub(crate) now: Time,
    /// What went in, with its time, and what came out, as text.
    pub(crate) events: Vec<(Time, Event)>,
    pub(crate) outputs: Vec<String>,
    pub(crate) waits: Waits,
    /// Outputs so far.
    given: u64,
    keeps: bool,
}

/// What the core is waiting for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Waits {
    pub(crate) sounding_speech: Vec<SegmentId>,
    pub(crate) wordless_yet: Vec<SegmentId>,
    pub(crate) queued: Vec<UtteranceId>,
    pub(crate) sounding: Vec<UtteranceId>,
    pub(crate) cut: Vec<UtteranceId>,
    pub(crate) generation: Option<GenerationId>,
    pub(crate) unprepared: Vec<CallId>,
    pub(crate) checks: Vec<CheckId>,
    pub(crate) running: Vec<CallId>,
    pub(crate) held: Vec<CallId>,
    pub(crate) segments: u32,
    pub(crate) calls: u32,
    pub(crate) hung_up: bool,
    pub(crate) left: bool,
}

/// The input that a call always has: no two calls share one.
pub(crate) fn input_of(call: &CallId) -> Frozen {
    frozen(&format!("{{\"call\":\"{call}\"}}"))
}

/// A prepared call with a question of its own.
pub(crate) fn question_of(call: &CallId, input: Frozen) -> Prepared {
    Prepared::Ask {
        tool: tool("book"),
        input,
        question: format!("Shall I do {call}?"),
        language: "en".to_owned(),
        terms: AskTerms::default(),
    }
}

impl World {
    /// `keeps`: events and outputs are kept for a later replay.
    pub(crate) fn new(policy: &Policy, keeps: bool) -> Self {
        Self {
            session: Session::new(policy.clone()),
            monitor: Monitor::new(policy),
            now: Time::ZERO,
            events: Vec::new(),
            outputs: Vec::new(),
            waits: Waits::default(),
            given: 0,
            keeps,
        }
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// Hands an event in and takes every output.
    pub(crate) fn feed(&mut self, event: Event) {
        self.let_time_pass();
        self.monitor.observe(self.now, &event);
        self.note_event(&event);
        if self.keeps {
            self.events.push((self.now, event.clone()));
        }
        self.session.handle(self.now, event);
        self.drain();
        let late = self.session.poll_timeout().filter(|(at, _)| *at <= self.now);
        if let Some((at, timer)) = late {
            self.monitor.faults.push(format!("{} {timer:?} is due since {at}", self.now));
        }
    }

    /// What is due by now happens, each thing at its own time, and is judged by what was known before the next event.
    ///
    /// Nothing is left that happens merely because somebody looks: what depends on time has a deadline of its own.
    fn let_time_pass(&mut self) {
        while let Some((at, _)) = self.session.poll_timeout().filter(|(at, _)| *at <= self.now) {
            self.session.handle(at, Event::Tick);
            self.drain();
        }
        let already = self.given;
        self.session.handle(self.now, Event::Tick);
        self.drain();
        if self.given != already {
            self.monitor.faults.push(format!("{} something happened at no deadline", self.now));
        }
    }

    /// Lets the time pass up to now, then hands in an event about nobody: nothing may come of it. The state itself is
    /// compared where outputs are kept: writing it down takes longer than all else.
    pub(crate) fn feed_unknown(&mut self, event: Event) {
        self.feed(Event::Tick);
        let state = |world: &Self| world.keeps.then(|| world.session.fingerprint());
        let (before, already) = (state(self), self.given);
        let kept = event.clone();
        self.feed(event);
        if state(self) != before || self.given != already {
            self.monitor.faults.push(format!("{} an unknown id had an effect: {kept:?}", self.now));
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.session.poll_output() {
            self.monitor.judge(&output);
            self.given += 1;
            self.note(&output.command);
            if self.keeps {
                self.outputs.push(serde_json::to_string(&output).expect("outputs serialise"));
            }
        }
    }

    fn note(&mut self, command: &Command) {
        let waits = &mut self.waits;
        match command {
            Command::OpenSegment { segment, .. } => {
                waits.sounding_speech.push(*segment);
                waits.segments = waits.segments.max(segment.0);
            }
            Command::CloseSegment { segment, .. } => {
                waits.sounding_speech.retain(|id| id != segment);
                waits.wordless_yet.push(*segment);
            }
            Command::Speak(speak) => waits.queued.push(speak.utterance),
            Command::Clear => {
                waits.cut.append(&mut waits.sounding);
                waits.queued.clear();
            }
            Command::Generate { generation } => waits.generation = Some(*generation),
            Command::CancelGeneration { generation } if waits.generation == Some(*generation) => {
                waits.generation = None;
            }
            Command::Prepare { call, .. } => waits.unprepared.push(call.id.clone()),
            Command::RunPlain(run) => waits.running.push(run.call.clone()),
            Command::RunConfirmed(yes) => waits.running.push(yes.call().clone()),
            Command::Check(request) => waits.checks.push(request.check),
            Command::EndCall { .. } | Command::Transfer { .. } => waits.left = true,
            _ => {}
        }
    }

    fn note_event(&mut self, event: &Event) {
        let waits = &mut self.waits;
        match event {
            Event::HungUp => waits.hung_up = true,
            Event::Message { .. } => waits.segments += 1,
            Event::Transcript(transcript) => {
                waits.wordless_yet.retain(|id| !transcript.segments.contains(id));
                waits.sounding_speech.retain(|id| !transcript.segments.contains(id));
            }
            Event::Checked { check, .. } => waits.checks.retain(|id| id != check),
            Event::Prepared { call, outcome } => {
                let wanted = waits.unprepared.contains(call);
                waits.unprepared.retain(|id| id != call);
                if wanted && matches!(outcome, Prepared::Ask { .. }) {
                    waits.held.push(call.clone());
                }
            }
            Event::ToolFinished { call, .. } => waits.running.retain(|id| id != call),
            Event::Model(ModelEvent::Finished { generation } | ModelEvent::Failed { generation, .. })
                if waits.generation == Some(*generation) =>
            {
                waits.generation = None;
            }
            Event::Playout(event) => self.note_playout(event),
            _ => {}
        }
    }

    fn note_playout(&mut self, event: &PlayoutEvent) {
        let waits = &mut self.waits;
        match event {
            PlayoutEvent::Started { utterance, .. } if waits.queued.contains(utterance) => {
                waits.queued.retain(|id| id != utterance);
                waits.sounding.push(*utterance);
            }
            PlayoutEvent::Finished { utterance, .. } | PlayoutEvent::Failed { utterance, .. } => {
                waits.sounding.retain(|id| id != utterance);
                waits.queued.retain(|id| id != utterance);
            }
            PlayoutEvent::Cleared { utterance, .. } => waits.cut.retain(|id| id != utterance),
            _ => {}
        }
    }

    // Events about what is really there.

    pub(crate) fn start_call(&mut self, chat: bool) {
        self.feed(Event::CallStarted(CallStart {
            transport: if chat { "chat" } else { "local" }.to_owned(),
            call: "call".to_owned(),
            language: "en".to_owned(),
            greeting: None,
            chat,
        }));
    }

    pub(crate) fn speak_from(&mut self, earliest: Time, latest: Time) {
        self.waits.segments += 1;
        let segment = SegmentId(self.waits.segments);
        self.feed(Event::SpeechStarted { segment, onset: Interval::new(earliest, latest) });
    }

    pub(crate) fn speak_now(&mut self) -> SegmentId {
        self.speak_from(self.now, self.now);
        SegmentId(self.waits.segments)
    }

    /// Lets the time pass, with every check answered yes 100 ms after it was asked for and every clearing at once.
    pub(crate) fn settle_until(&mut self, end: Time) {
        let mut checked = None;
        while let Some((at, check)) = self.next_of_settling(end, checked) {
            self.now = at;
            self.feed(Event::Tick);
            match (check, self.waits.cut.first().copied()) {
                (_, Some(utterance)) => self.cleared(utterance, Duration::ZERO),
                (Some(check), None) => self.checked(check, Verdict::Yes),
                (None, None) => {}
            }
            checked = self.waits.checks.first().map(|check| (self.now + Duration::from_millis(100), *check));
        }
        self.now = end;
        self.feed(Event::Tick);
    }

    fn next_of_settling(
        &self,
        end: Time,
        checked: Option<(Time, CheckId)>,
    ) -> Option<(Time, Option<CheckId>)> {
        if !self.waits.cut.is_empty() {
            return Some((self.now, None));
        }
        let deadline = self.session.poll_timeout().map(|(at, _)| (at, None));
        let check = self.waits.checks.first().map(|check| match checked {
            Some((at, known)) if known == *check => (at, Some(*check)),
            _ => (self.now + Duration::from_millis(100), Some(*check)),
        });
        deadline.into_iter().chain(check).min().filter(|(at, _)| *at < end)
    }

    pub(crate) fn words(&mut self, segment: SegmentId, text: &str) {
        self.feed(Event::Transcript(Transcript {
            segments: vec![segment],
            span: None,
            text: text.to_owned(),
            confidence: None,
            phantom: None,
        }));
    }

    pub(crate) fn began(&mut self, utterance: UtteranceId) {
        self.feed(Event::Playout(PlayoutEvent::Started { utterance, at: self.now }));
    }

    pub(crate) fn over(&mut self, utterance: UtteranceId, ahead: Duration, most: Duration) {
        self.feed(Event::Playout(PlayoutEvent::Finished {
            utterance,
            last_audible: self.now + ahead,
            delay: LoopDelay { at_least: Duration::ZERO, at_most: most },
            evidence: EvidenceClass::Virtual,
            lost: Duration::ZERO,
        }));
    }

    pub(crate) fn cleared(&mut self, utterance: UtteranceId, played: Duration) {
        self.feed(Event::Playout(PlayoutEvent::Cleared {
            utterance,
            played,
            audible_to: None,
            audible_from: Duration::ZERO,
        }));
    }

    pub(crate) fn checked(&mut self, check: CheckId, verdict: Verdict) {
        self.feed(Event::Checked { check, answer: CheckAnswer::Verdict { verdict } });
    }

    /// The next call of the model's, of a tool with a question or of a built-in one.
    pub(crate) fn call(&mut self, generation: GenerationId, name: &str) {
        self.waits.calls += 1;
        let id = CallId(format!("c{}", self.waits.calls));
        let call = ToolCall { id, name: name.to_owned(), input: "{\"goodbye\":\"Bye now.\"}".to_owned() };
        self.feed(Event::Model(ModelEvent::Call { generation, call }));
    }

    /// A question that the program itself asks.
    pub(crate) fn ask(&mut self) {
        self.waits.calls += 1;
        let call = CallId(format!("p{}", self.waits.calls));
        let outcome = question_of(&call, input_of(&call));
        self.feed(Event::Asked { call, outcome });
    }

    /// The tool exists no longer in the form in which it was asked about.
    pub(crate) fn tools(&mut self, definition: &str) {
        let tool = ToolRef { definition: definition.to_owned(), ..tool("book") };
        self.feed(Event::Tools(vec![tool]));
    }
}
