//! A caller who does anything: what the core waits for, what it does not, and what is about nobody.

use std::time::Duration;

use sayback_core::*;

use super::world::{NOBODY, World, input_of, question_of};
use super::{frozen, tool};

/// One move: how long after the last, of which kind, and two numbers that choose among what is possible.
pub(crate) type Move = (u16, u8, u8, u16);

/// The settings that change how the gate decides.
pub(crate) fn policy(choice: u8) -> Policy {
    let mut policy = Policy::default();
    let confirm = &mut policy.confirm;
    match choice % 8 {
        0 => confirm.keypad = true,
        1 => confirm.ttl = Some(Duration::from_millis(900)),
        2 => confirm.near_end = NearEnd::Again,
        3 => confirm.adjacency = Adjacency::Off,
        4 => confirm.question_barge_in = QuestionBargeIn::Continuers,
        5 => confirm.after_hangup = AfterHangup::Drop,
        6 => (confirm.silence_text, confirm.check_after_quiet) = (Some("Still there?".to_owned()), None),
        _ => {}
    }
    policy
}

fn pick<T: Clone>(list: &[T], choice: u16) -> Option<T> {
    list.get(usize::from(choice) % list.len().max(1)).cloned()
}

/// How sound reaches the core in this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Segments,
    Frames,
    Typed,
}

pub(crate) struct Caller {
    pub(crate) world: World,
    line: Line,
}

impl Caller {
    /// `keeps`: events and outputs are kept for a later replay.
    pub(crate) fn new(choice: u8, keeps: bool) -> Self {
        let line = match choice / 8 % 4 {
            0 => Line::Frames,
            1 => Line::Typed,
            _ => Line::Segments,
        };
        let mut world = World::new(&policy(choice), keeps);
        if choice > 200 {
            let call = CallId("p0".to_owned());
            world.feed(Event::Reopened(Reopened { open: Some(reopened(&call)), ..Reopened::default() }));
        }
        world.start_call(line == Line::Typed);
        Self { world, line }
    }

    pub(crate) fn play(&mut self, moves: &[Move]) {
        for (pause, kind, a, b) in moves {
            self.world.pass(Duration::from_millis(u64::from(*pause)));
            match kind {
                0..190 => self.likely(*a, *b),
                190..235 => self.unlikely(*a, *b),
                235.. => self.unknown(*a),
            }
        }
        self.world.pass(Duration::from_secs(8));
        self.world.feed(Event::Tick);
    }

    /// Something that the core is waiting for.
    fn likely(&mut self, a: u8, b: u16) {
        let waits = self.world.waits.clone();
        let mut open: Vec<fn(&mut Self, u16)> = Vec::new();
        let mut offer = |there: bool, what: fn(&mut Self, u16)| {
            if there {
                open.push(what);
            }
        };
        let heard = self.world.monitor.open().is_some_and(|(_, heard)| heard);
        offer(!waits.queued.is_empty() && waits.sounding.is_empty(), Self::begin);
        offer(!waits.sounding.is_empty(), Self::finish);
        offer(!waits.cut.is_empty(), Self::clear);
        offer(!waits.unprepared.is_empty(), Self::prepare);
        offer(!waits.checks.is_empty(), Self::check);
        offer(!waits.sounding_speech.is_empty(), Self::end_speech);
        offer(!waits.wordless_yet.is_empty(), Self::transcribe);
        offer(!waits.running.is_empty(), Self::finish_tool);
        offer(waits.generation.is_some(), Self::think);
        offer(waits.sounding_speech.is_empty() || heard, Self::start_speech);
        if let Some(what) = pick(&open, u16::from(a)) {
            what(self, b);
        }
    }

    fn begin(&mut self, b: u16) {
        let Some(utterance) = self.world.waits.queued.first().copied() else { return };
        self.world.began(utterance);
        if b.is_multiple_of(2) {
            self.world.feed(Event::Playout(PlayoutEvent::Synthesised {
                utterance,
                audible_from: Duration::from_millis(u64::from(b % 50)),
                audible_to: Duration::from_millis(u64::from(b % 2_000)),
            }));
        }
    }

    fn finish(&mut self, b: u16) {
        let Some(utterance) = pick(&self.world.waits.sounding, b) else { return };
        let most = if b.is_multiple_of(3) { 350 } else { 0 };
        self.world.over(utterance, Duration::from_millis(u64::from(b % 300)), Duration::from_millis(most));
    }

    fn clear(&mut self, b: u16) {
        let Some(utterance) = pick(&self.world.waits.cut, b) else { return };
        self.world.cleared(utterance, Duration::from_millis(u64::from(b % 3_000)));
    }

    fn prepare(&mut self, b: u16) {
        let Some(call) = pick(&self.world.waits.unprepared, b) else { return };
        let held = self.world.waits.held.contains(&call);
        let outcome = match b % 10 {
            0 => Prepared::Plain { tool: tool("find"), input: input_of(&call) },
            1 => refused(b),
            2 if held => question_of(&call, frozen("{\"changed\":true}")),
            _ => question_of(&call, input_of(&call)),
        };
        self.world.feed(Event::Prepared { call, outcome });
    }

    fn check(&mut self, b: u16) {
        let Some(check) = pick(&self.world.waits.checks, b / 16) else { return };
        let answer = match b % 16 {
            0 => CheckAnswer::Vetoed { veto: "negation".to_owned() },
            1 => CheckAnswer::Failed { error: "garbage".to_owned() },
            2 => CheckAnswer::Verdict { verdict: Verdict::No },
            3 => CheckAnswer::Verdict { verdict: Verdict::Unclear },
            _ => CheckAnswer::Verdict { verdict: Verdict::Yes },
        };
        self.world.feed(Event::Checked { check, answer });
    }

    fn end_speech(&mut self, b: u16) {
        if self.line == Line::Frames {
            self.frames(8 + u64::from(b % 4), 2);
            return;
        }
        let Some(segment) = pick(&self.world.waits.sounding_speech, b) else { return };
        let offset = self.world.now - Duration::from_millis(u64::from(b % 250));
        self.world.feed(Event::SpeechEnded { segment, offset });
    }

    fn transcribe(&mut self, b: u16) {
        let Some(segment) = pick(&self.world.waits.wordless_yet, b) else { return };
        let text = match b % 8 {
            0 => String::new(),
            1 => format!("wait s{}", segment.0),
            2 => "no".to_owned(),
            3 => format!("yes s{}", segment.0),
            4 => "mm-hm".to_owned(),
            _ => "yes".to_owned(),
        };
        self.world.words(segment, &text);
    }

    fn finish_tool(&mut self, b: u16) {
        let Some(call) = pick(&self.world.waits.running, b) else { return };
        let outcome = match b % 4 {
            0 => ToolOutcome::Failed { message: "full".to_owned() },
            1 => ToolOutcome::Unknown,
            _ => ToolOutcome::Done { message: "Booked.".to_owned() },
        };
        self.world.feed(Event::ToolFinished { call, outcome });
    }

    fn think(&mut self, b: u16) {
        let Some(generation) = self.world.waits.generation else { return };
        match b % 12 {
            0..3 => self.world.feed(text(generation, "Let me see. One moment. ")),
            3..8 => self.world.call(generation, "book"),
            8 => self.world.call(generation, ["end_call", "transfer_call"][usize::from(b) / 12 % 2]),
            9 if b > 60_000 => self.world.feed(failed(generation)),
            _ => self.world.feed(Event::Model(ModelEvent::Finished { generation })),
        }
    }

    fn start_speech(&mut self, b: u16) {
        match self.line {
            Line::Frames => self.frames(2 + u64::from(b % 9), 95),
            Line::Typed => {
                let text = ["yes", "no", "what else", "yes please"][usize::from(b) % 4].to_owned();
                let received = self.world.now - Duration::from_millis(u64::from(b / 4 % 3) * 100);
                self.world.feed(Event::Message { text, received });
            }
            Line::Segments => {
                let latest = self.world.now - Duration::from_millis(u64::from(b % 200));
                let earliest = latest - Duration::from_millis(u64::from(b / 200 % 4) * 20);
                self.world.speak_from(earliest, latest);
            }
        }
    }

    /// Sound, 32 ms a frame.
    fn frames(&mut self, count: u64, speech: u8) {
        for _ in 0..count {
            let start = self.world.now;
            self.world.pass(Duration::from_millis(32));
            let rise = start - Duration::from_millis(20);
            self.world.feed(Event::Voice(VoiceFrame { start, end: self.world.now, speech, rise }));
        }
    }

    /// Something that happens seldom, or that should not.
    fn unlikely(&mut self, a: u8, b: u16) {
        let world = &mut self.world;
        let speech = pick(&world.waits.sounding_speech, b).or(pick(&world.waits.wordless_yet, b));
        let segment = speech.unwrap_or(SegmentId(u32::from(b % 5)));
        match a % 22 {
            0 if b < 20_000 => world.feed(Event::HungUp),
            1 => world.feed(Event::LineHeld),
            2 => world.feed(Event::LineResumed),
            3 => world.feed(Event::Echo { segment }),
            4 => world.feed(Event::Partial { segment, text: "ye".to_owned() }),
            5 => world.feed(Event::EndOfTurn { segment, percent: (b % 101) as u8 }),
            6 => world.feed(Event::Digit { digit: '1', start: world.now }),
            7 => world.feed(Event::Digit { digit: '2', start: world.now }),
            8 => world.ask(),
            9 => world.feed(Event::Say { text: "By the way.".to_owned() }),
            10 if b < 9_000 => world.feed(Event::EndRequested),
            11 => world.tools(["sha256:1", "sha256:2"][usize::from(b) % 2]),
            12 => world.feed(Event::Rewound(Rewind { items: u32::from(b % 9) })),
            13 => self.break_playout(b),
            14 => world.feed(whole_transcript(b)),
            15 => world.feed(Event::Message { text: "yes".to_owned(), received: world.now }),
            16 => world.start_call(false),
            17 => world.feed(Event::Checked { check: CheckId(u32::from(b % 4)), answer: yes() }),
            18 => self.answer_again(b),
            19 => world.feed(Event::Playout(PlayoutEvent::Paused { at: world.now })),
            20 => world.feed(Event::Playout(PlayoutEvent::Resumed { at: world.now })),
            _ => world.feed(Event::Reopened(Reopened::default())),
        }
    }

    fn break_playout(&mut self, b: u16) {
        let waits = &self.world.waits;
        let Some(utterance) = pick(&waits.sounding, b).or(pick(&waits.queued, b)) else { return };
        let failure = [PlayoutFailure::TtsFailed, PlayoutFailure::NotPlayed][usize::from(b) % 2];
        let played = Duration::from_millis(u64::from(b % 900));
        self.world.feed(Event::Playout(PlayoutEvent::Failed { utterance, failure, played }));
    }

    /// A result that came already comes again.
    fn answer_again(&mut self, b: u16) {
        let Some(call) = pick(&self.world.waits.held, b) else { return };
        let outcome = question_of(&call, input_of(&call));
        let event = match b % 3 {
            0 => Event::Prepared { call, outcome },
            1 => Event::ToolFinished { call, outcome: ToolOutcome::Done { message: "Late.".to_owned() } },
            _ => Event::Asked { call, outcome },
        };
        self.world.feed(event);
    }

    /// About an id that was never given out.
    fn unknown(&mut self, a: u8) {
        let (segment, utterance) = (SegmentId(NOBODY), UtteranceId(NOBODY));
        let (generation, call) = (GenerationId(NOBODY), CallId("nobody".to_owned()));
        let now = self.world.now;
        let event = match a % 13 {
            0 => Event::SpeechEnded { segment, offset: now },
            1 => Event::Echo { segment },
            2 => Event::Partial { segment, text: "yes".to_owned() },
            3 => Event::EndOfTurn { segment, percent: 99 },
            4 => Event::Checked { check: CheckId(NOBODY), answer: yes() },
            5 => text(generation, "It is booked. Anything else?"),
            6 => Event::Model(ModelEvent::Finished { generation }),
            7 => failed(generation),
            8 => Event::Prepared { outcome: question_of(&call, input_of(&call)), call },
            9 => Event::ToolFinished { call, outcome: ToolOutcome::Unknown },
            10 => Event::Playout(PlayoutEvent::Started { utterance, at: now }),
            11 => Event::Playout(PlayoutEvent::Failed {
                utterance,
                failure: PlayoutFailure::DeviceLost,
                played: Duration::ZERO,
            }),
            _ => Event::Transcript(Transcript {
                segments: vec![segment],
                span: None,
                text: "yes".to_owned(),
                confidence: Some(99),
                phantom: None,
            }),
        };
        self.world.feed_unknown(event);
    }
}

fn reopened(call: &CallId) -> OpenQuestion {
    OpenQuestion {
        hold: HoldId(7),
        call: call.clone(),
        tool: tool("book"),
        input: input_of(call),
        question: format!("Shall I do {call}?"),
        language: "en".to_owned(),
        terms: AskTerms::default(),
        approval: None,
    }
}

fn text(generation: GenerationId, text: &str) -> Event {
    Event::Model(ModelEvent::Text { generation, text: text.to_owned() })
}

fn failed(generation: GenerationId) -> Event {
    Event::Model(ModelEvent::Failed { generation, error: "down".to_owned() })
}

fn yes() -> CheckAnswer {
    CheckAnswer::Verdict { verdict: Verdict::Yes }
}

fn refused(b: u16) -> Prepared {
    let message = "no such slot".to_owned();
    Prepared::Refused { reason: Refusal::InvalidInput, message, confirms: b.is_multiple_of(4) }
}

/// A final that names no segment: whatever is unresolved is covered.
fn whole_transcript(b: u16) -> Event {
    let phantom = (b % 3 == 1).then(|| "no speech".to_owned());
    let span = (b % 3 == 2).then(|| (Time::ZERO, Time::from_millis(u64::from(u32::MAX))));
    let text = "yes".to_owned();
    Event::Transcript(Transcript { segments: Vec::new(), span, text, confidence: None, phantom })
}

/// Hands the same events in again, with `ticks` empty ones spread between them.
pub(crate) fn again(choice: u8, events: &[(Time, Event)], ticks: &[u16]) -> Vec<String> {
    let mut session = Session::new(policy(choice));
    let mut outputs = Vec::new();
    let mut take = |session: &mut Session| {
        while let Some(output) = session.poll_output() {
            outputs.push(serde_json::to_string(&output).expect("outputs serialise"));
        }
    };
    let mut last = Time::ZERO;
    for (index, (at, event)) in events.iter().enumerate() {
        let gap = at.since(last).as_micros() as u64;
        let mut between: Vec<u64> =
            ticks.iter().skip(index % 3).step_by(3).map(|t| u64::from(*t) * gap / 65_536).collect();
        between.sort_unstable();
        for tick in between {
            session.handle(last + Duration::from_micros(tick), Event::Tick);
            take(&mut session);
        }
        session.handle(*at, event.clone());
        take(&mut session);
        last = last.max(*at);
    }
    outputs
}
