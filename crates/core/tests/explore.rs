//! Every order of events around one question, to a stated depth.
//!
//! A breadth-first search over sessions: from the moment the question is handed to the voice, each of the moves below
//! is tried in each state that is not known yet. Events fall together at one instant unless a move lets time pass, so
//! that orders which come to the same thing meet in the same state and the search ends. The ten invariants are judged
//! at each transition by the monitor. The search starts again at later points, to get as deep behind them. Fewer states
//! than a floor mean that it has lost its way. `SAYBACK_DEPTH` sets another depth.

#![expect(clippy::wildcard_enum_match_arm, reason = "each function makes its own group of moves")]

mod common;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use common::world::{World, input_of, question_of};
use sayback_core::*;

const MOVES: [Move; 22] = [
    Move::SpeechNow,
    Move::SpeechNoticedLate,
    Move::SpeechEnds,
    Move::Affirms,
    Move::Objects,
    Move::NoWords,
    Move::Begins,
    Move::Ends,
    Move::EndsBehindALoop,
    Move::Fails,
    Move::CheckYes,
    Move::CheckNo,
    Move::CheckUnclear,
    Move::Key,
    Move::HangsUp,
    Move::ModelAsks,
    Move::ModelSpeaks,
    Move::ModelLeaves,
    Move::ProgramSpeaks,
    Move::ToolFinishes,
    Move::Wait,
    Move::NextDeadline,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    SpeechNow,
    SpeechNoticedLate,
    SpeechEnds,
    Affirms,
    Objects,
    NoWords,
    Begins,
    Ends,
    EndsBehindALoop,
    Fails,
    CheckYes,
    CheckNo,
    CheckUnclear,
    Key,
    HangsUp,
    ModelAsks,
    ModelSpeaks,
    ModelLeaves,
    ProgramSpeaks,
    ToolFinishes,
    Wait,
    NextDeadline,
}

/// No two segments say the same, so that the monitor can tell which words went where.
const AFFIRMATIONS: [&str; 4] = ["yes", "sure", "okay", "correct"];
const OBJECTIONS: [&str; 4] = ["no", "stop", "never", "nope"];

impl Move {
    /// Makes the move; gives back whether it was possible.
    fn make(self, world: &mut World) -> bool {
        match self {
            Self::SpeechNow | Self::SpeechNoticedLate => self.speak(world),
            Self::SpeechEnds | Self::Affirms | Self::Objects | Self::NoWords => self.recognise(world),
            Self::Begins | Self::Ends | Self::EndsBehindALoop | Self::Fails => self.play(world),
            Self::CheckYes => check(world, Verdict::Yes),
            Self::CheckNo => check(world, Verdict::No),
            Self::CheckUnclear => check(world, Verdict::Unclear),
            Self::ModelAsks | Self::ModelSpeaks | Self::ModelLeaves => self.think(world),
            Self::Key | Self::HangsUp | Self::ProgramSpeaks | Self::ToolFinishes => self.happen(world),
            Self::Wait => {
                world.pass(Duration::from_millis(250));
                world.feed(Event::Tick);
                true
            }
            Self::NextDeadline => {
                let Some((at, _)) = world.session.poll_timeout() else { return false };
                world.now = at;
                world.feed(Event::Tick);
                true
            }
        }
    }

    fn speak(self, world: &mut World) -> bool {
        // Three more than the request: enough for one before, one inside and one after.
        if !world.waits.sounding_speech.is_empty() || world.waits.segments >= 4 || world.waits.hung_up {
            return false;
        }
        let back = if self == Self::SpeechNow { 0 } else { 300 };
        let onset = world.now - Duration::from_millis(back);
        world.speak_from(onset, onset);
        true
    }

    fn recognise(self, world: &mut World) -> bool {
        if self == Self::SpeechEnds {
            let Some(segment) = world.waits.sounding_speech.first().copied() else { return false };
            world.feed(Event::SpeechEnded { segment, offset: world.now });
            return true;
        }
        let Some(segment) = world.waits.wordless_yet.first().copied() else { return false };
        let index = segment.0 as usize % AFFIRMATIONS.len();
        let text = match self {
            Self::Affirms => AFFIRMATIONS[index],
            Self::Objects => OBJECTIONS[index],
            _ => "",
        };
        world.words(segment, text);
        true
    }

    fn play(self, world: &mut World) -> bool {
        if self == Self::Begins {
            let next = world.waits.queued.first().copied().filter(|_| world.waits.sounding.is_empty());
            let Some(utterance) = next else { return false };
            world.began(utterance);
            return true;
        }
        let Some(utterance) = world.waits.sounding.first().copied() else { return false };
        let (failure, played) = (PlayoutFailure::TtsFailed, Duration::ZERO);
        match self {
            Self::Ends => world.over(utterance, Duration::ZERO, Duration::ZERO),
            Self::EndsBehindALoop => world.over(utterance, Duration::ZERO, Duration::from_millis(350)),
            _ => world.feed(Event::Playout(PlayoutEvent::Failed { utterance, failure, played })),
        }
        true
    }

    /// A whole step of the model's, or where none runs, a question of the program's.
    fn think(self, world: &mut World) -> bool {
        let Some(generation) = world.waits.generation else {
            let free = self == Self::ModelAsks && world.waits.calls < 3 && !world.waits.hung_up;
            if free {
                world.ask();
            }
            return free;
        };
        match self {
            Self::ModelSpeaks => {
                let text = "I see.".to_owned();
                world.feed(Event::Model(ModelEvent::Text { generation, text }));
            }
            Self::ModelAsks => {
                world.call(generation, "book");
                prepare(world);
            }
            _ => world.call(generation, "end_call"),
        }
        world.feed(Event::Model(ModelEvent::Finished { generation }));
        true
    }

    fn happen(self, world: &mut World) -> bool {
        let waits = &world.waits;
        let possible = match self {
            Self::Key | Self::HangsUp => !waits.hung_up,
            Self::ProgramSpeaks => waits.queued.len() < 2 && !waits.hung_up,
            _ => !waits.running.is_empty(),
        };
        if !possible {
            return false;
        }
        let now = world.now;
        match self {
            Self::Key => world.feed(Event::Digit { digit: '1', start: now }),
            Self::HangsUp => world.feed(Event::HungUp),
            Self::ProgramSpeaks => world.feed(Event::Say { text: "One thing more.".to_owned() }),
            _ => {
                let Some(call) = world.waits.running.first().cloned() else { return false };
                let outcome = ToolOutcome::Done { message: "Booked.".to_owned() };
                world.feed(Event::ToolFinished { call, outcome });
            }
        }
        true
    }
}

fn check(world: &mut World, verdict: Verdict) -> bool {
    // The newest check, or an old one that answers late.
    let Some(check) = world.waits.checks.first().copied() else { return false };
    world.checked(check, verdict);
    true
}

fn prepare(world: &mut World) {
    while let Some(call) = world.waits.unprepared.first().cloned() {
        let outcome = question_of(&call, input_of(&call));
        world.feed(Event::Prepared { call, outcome });
    }
}

/// Playout answers a clearing at once: that costs no move.
fn answer_clearing(world: &mut World) {
    while let Some(utterance) = world.waits.cut.first().copied() {
        world.cleared(utterance, Duration::from_millis(100));
    }
}

fn key(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.session.fingerprint().hash(&mut hasher);
    (&world.monitor, &world.waits).hash(&mut hasher);
    hasher.finish()
}

/// The caller asked, the model called, the question is in the hands of the voice.
fn asked(keypad: bool) -> World {
    let mut policy = Policy::default();
    policy.confirm.keypad = keypad;
    let mut world = World::new(&policy, false);
    world.start_call(false);
    world.pass(Duration::from_millis(500));
    world.speak_from(world.now, world.now);
    world.pass(Duration::from_millis(300));
    world.feed(Event::SpeechEnded { segment: SegmentId(1), offset: world.now });
    world.words(SegmentId(1), "book it");
    world.pass(Duration::from_millis(400));
    world.feed(Event::Tick);
    let generation = world.waits.generation.expect("the turn is complete");
    world.call(generation, "book");
    prepare(&mut world);
    world.feed(Event::Model(ModelEvent::Finished { generation }));
    world
}

struct Found {
    states: usize,
    transitions: usize,
    runs: usize,
}

fn search(start: World, moves: &[Move], depth: usize) -> Found {
    let mut known = BTreeSet::from([key(&start)]);
    let mut found = Found { states: 1, transitions: 0, runs: 0 };
    let mut layer = vec![(start, Vec::new())];
    for _ in 0..depth {
        let mut next = Vec::new();
        for (world, path) in &layer {
            for step in moves {
                let mut world = world.clone();
                if !step.make(&mut world) {
                    continue;
                }
                answer_clearing(&mut world);
                let mut path: Vec<Move> = path.clone();
                path.push(*step);
                assert!(world.monitor.faults.is_empty(), "{:#?}\nafter {path:?}", world.monitor.faults);
                found.transitions += 1;
                if known.insert(key(&world)) {
                    found.runs += usize::try_from(world.monitor.runs).unwrap_or(0);
                    next.push((world, path));
                }
            }
        }
        layer = next;
    }
    found.states = known.len();
    found
}

fn depth(default: usize) -> usize {
    std::env::var("SAYBACK_DEPTH").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The same, with these moves behind it.
fn after(moves: &[Move]) -> World {
    let mut world = asked(true);
    for step in moves {
        assert!(step.make(&mut world), "{step:?} is not possible here");
        answer_clearing(&mut world);
    }
    world
}

#[track_caller]
#[expect(clippy::print_stdout, reason = "how far the search came is part of its result")]
fn explore(name: &str, start: World, (moves, default): (&[Move], usize), floor: (usize, usize)) {
    let depth = depth(default);
    let found = search(start, moves, depth);
    let (states, transitions, runs) = (found.states, found.transitions, found.runs);
    println!("{name}: {states} states, {transitions} transitions, {runs} after a run, depth {depth}");
    assert!(states >= floor.0, "only {states} states");
    assert!(runs >= floor.1, "only {runs} states with a run");
}

const HEARD: [Move; 3] = [Move::Begins, Move::Wait, Move::Ends];
const ANSWERED: [Move; 7] = [
    Move::Begins,
    Move::Ends,
    Move::Wait,
    Move::SpeechNow,
    Move::SpeechEnds,
    Move::Affirms,
    Move::NextDeadline,
];

#[test]
fn every_order_from_the_question_on_keeps_the_invariants() {
    explore("question", after(&[]), (&MOVES, 6), (40_000, 100));
}

#[test]
fn every_order_from_its_end_on_keeps_the_invariants() {
    explore("heard", after(&HEARD), (&MOVES, 6), (30_000, 100));
}

#[test]
fn every_order_from_the_check_on_keeps_the_invariants() {
    explore("checking", after(&ANSWERED), (&MOVES, 5), (15_000, 100));
}

/// Fewer moves, but all the way from the question to a run and beyond.
#[test]
fn every_order_of_the_plain_course_keeps_the_invariants() {
    let moves = [
        Move::SpeechNow,
        Move::SpeechNoticedLate,
        Move::SpeechEnds,
        Move::Affirms,
        Move::NoWords,
        Move::Begins,
        Move::Ends,
        Move::EndsBehindALoop,
        Move::CheckYes,
        Move::NextDeadline,
    ];
    explore("plain course", after(&[]), (&moves, 9), (20_000, 1));
}
