//! What holds for any sequence of events, likely or not.
//!
//! `SAYBACK_CASES` sets how many sequences are tried; a failure prints the shortest one that fails, and its seed is
//! kept in `properties.regressions`.

mod common;

use std::time::Duration;

use common::caller::{Caller, Move, again};
use common::monitor::Monitor;
use common::world::World;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestCaseResult};
use sayback_core::*;

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
        let mut caller = Caller::new(choice, true);
        caller.play(&moves);
        assert_sound(&caller.world.monitor, &caller.world.events)?;
    }

    #[test]
    fn the_same_events_give_the_same_outputs(choice in any::<u8>(), moves in moves()) {
        let mut caller = Caller::new(choice, true);
        caller.play(&moves);
        prop_assert_eq!(&caller.world.outputs, &again(choice, &caller.world.events, &[]));
    }

    #[test]
    fn empty_ticks_change_nothing(
        choice in any::<u8>(),
        moves in moves(),
        ticks in vec(any::<u16>(), 1..12),
    ) {
        let mut caller = Caller::new(choice, true);
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
        let mut caller = Caller::new(choice, true);
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
