//! What holds for any sequence of events, likely or not.
//!
//! `SAYBACK_CASES` sets how many sequences are tried; a failure prints the shortest one that fails, and its seed is
//! kept in `properties.regressions`.

mod common;

use std::time::Duration;

use common::monitor::Monitor;
use common::world::{NOBODY, World, input_of, question_of};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestCaseResult};
use sayback_core::*;

/// One move: how long after the last, of which kind, and two numbers that choose among what is possible.
type Move = (u16, u8, u8, u16);

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let pause = prop_oneof![4 => Just(0_u16), 6 => 1_u16..400, 1 => 400_u16..9_000];
    vec((pause, any::<u8>(), any::<u8>(), any::<u16>()), 1..90)
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("SAYBACK_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(256);
    let kept = FileFailurePersistence::WithSource("regressions");
    ProptestConfig {
        cases,
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(kept)),
        ..ProptestConfig::default()
    }
}

/// The settings that change how the gate decides.
fn policy(choice: u8) -> Policy {
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

struct Caller {
    world: World,
    line: Line,
}

impl Caller {
    fn new(choice: u8) -> Self {
        let line = match choice / 8 % 4 {
            0 => Line::Frames,
            1 => Line::Typed,
            _ => Line::Segments,
        };
        let mut world = World::new(&policy(choice), true);
        if choice > 200 {
            let call = CallId("p0".to_owned());
            world.feed(Event::Reopened(Reopened { open: Some(reopened(&call)), ..Reopened::default() }));
        }
        world.start_call(line == Line::Typed);
        Self { world, line }
    }

    fn play(&mut self, moves: &[Move]) {
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
            0 => Prepared::Plain { tool: common::tool("find"), input: input_of(&call) },
            1 => refused(b),
            2 if held => question_of(&call, common::frozen("{\"changed\":true}")),
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
        tool: common::tool("book"),
        input: input_of(call),
        question: format!("Shall I do {call}?"),
        language: "en".to_owned(),
        terms: AskTerms::default(),
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
fn again(choice: u8, events: &[(Time, Event)], ticks: &[u16]) -> Vec<String> {
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

fn assert_sound(monitor: &Monitor, events: &[(Time, Event)]) -> TestCaseResult {
    let list: Vec<String> = events.iter().map(|(at, event)| format!("{at} {event:?}")).collect();
    prop_assert!(monitor.faults.is_empty(), "{:#?}\nafter\n{}", monitor.faults, list.join("\n"));
    Ok(())
}

/// What the caller says around one question: onset, length, delay of the words, whether it is a yes.
type Said = (u16, u16, u16, bool);

fn said(onsets: std::ops::Range<u16>) -> impl Strategy<Value = Said> {
    (onsets, 40_u16..1_200, 0_u16..900, any::<bool>())
}

/// When the question sounds, and when its last sample leaves.
const SOUNDS: (u16, u16) = (500, 2_500);

/// Asks one question of a caller who says all this, with a check that takes everything for a yes; gives the runs.
fn runs_of(loop_ms: u16, said: &[Said]) -> (u32, Vec<String>) {
    let mut facts: Vec<(u16, usize, u8)> = vec![(SOUNDS.0, 0, 3), (SOUNDS.1, 0, 4)];
    for (index, (onset, length, delay, _)) in said.iter().enumerate() {
        let end = onset + length;
        facts.extend([(*onset, index, 0), (end, index, 1), (end + delay, index, 2)]);
    }
    facts.sort_by_key(|(at, index, kind)| (*at, *kind, *index));
    let mut world = World::new(&Policy::default(), false);
    world.start_call(false);
    world.ask();
    let mut ids = vec![SegmentId(0); said.len()];
    for (at, index, kind) in facts {
        world.settle_until(Time::from_millis(u64::from(at)));
        match kind {
            0 => ids[index] = world.speak_now(),
            1 => world.feed(Event::SpeechEnded { segment: ids[index], offset: world.now }),
            2 => world.words(ids[index], if said[index].3 { "yes" } else { "go on" }),
            3 => world.began(UtteranceId(1)),
            _ => world.over(UtteranceId(1), Duration::ZERO, Duration::from_millis(u64::from(loop_ms))),
        }
    }
    world.settle_until(Time::from_millis(9_000));
    (world.monitor.runs, world.monitor.faults)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn speech_before_the_horizon_never_makes_a_run(
        loop_ms in prop_oneof![Just(0_u16), Just(350)],
        others in vec(said(0..4_500), 0..4),
        inside in said(SOUNDS.0..SOUNDS.1),
    ) {
        let (_, faults) = runs_of(loop_ms, &others);
        prop_assert!(faults.is_empty(), "{faults:#?}");
        let mut all = others;
        all.push(inside);
        let (with, faults) = runs_of(loop_ms, &all);
        prop_assert!(faults.is_empty(), "{faults:#?}");
        prop_assert_eq!(with, 0, "words inside the question, and yet it ran");
    }

    #[test]
    fn one_yes_behind_the_horizon_runs(
        loop_ms in prop_oneof![Just(0_u16), Just(350)],
        yes in said(SOUNDS.1 + 350..5_000),
    ) {
        prop_assert_eq!(runs_of(loop_ms, &[yes]), (1, Vec::new()));
    }

    #[test]
    fn any_sequence_keeps_the_invariants(choice in any::<u8>(), moves in moves()) {
        let mut caller = Caller::new(choice);
        caller.play(&moves);
        assert_sound(&caller.world.monitor, &caller.world.events)?;
    }

    #[test]
    fn the_same_events_give_the_same_outputs(choice in any::<u8>(), moves in moves()) {
        let mut caller = Caller::new(choice);
        caller.play(&moves);
        prop_assert_eq!(&caller.world.outputs, &again(choice, &caller.world.events, &[]));
    }

    #[test]
    fn empty_ticks_change_nothing(
        choice in any::<u8>(),
        moves in moves(),
        ticks in vec(any::<u16>(), 1..12),
    ) {
        let mut caller = Caller::new(choice);
        caller.play(&moves);
        prop_assert_eq!(&caller.world.outputs, &again(choice, &caller.world.events, &ticks));
    }
}

/// Random sequences prove nothing if none of them ever gets as far as a run.
#[test]
fn random_sequences_reach_every_outcome() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut runs, mut ends) = (0, std::collections::BTreeMap::<String, u32>::new());
    for _ in 0..400 {
        let (choice, moves) =
            (any::<u8>(), moves()).new_tree(&mut runner).expect("sequences can be made").current();
        let mut caller = Caller::new(choice);
        caller.play(&moves);
        runs += caller.world.monitor.runs;
        for reason in caller.world.monitor.drop_reasons() {
            *ends.entry(reason).or_default() += 1;
        }
    }
    println!("{runs} runs; dropped: {ends:?}");
    assert!(runs >= 20, "only {runs} runs");
    assert!(ends.len() >= 9, "only {ends:?}");
}
