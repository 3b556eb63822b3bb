//! Random calls by the hundred thousand, each made from one number: the invariants hold in all of them, and in a part of
//! them the same events give the same outputs, with and without empty ticks between.
//!
//! `SAYBACK_SOAK` sets how many sequences are tried and `SAYBACK_SEED` where the numbers begin; both are printed. A
//! sequence that breaks an invariant is printed with its own seed, cut down to the moves that matter:
//! `SAYBACK_SOAK=1 SAYBACK_SEED=…` brings it back.

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::caller::{Caller, Move, again};

const SEQUENCES: u64 = 100_000;
/// One sequence in so many is also replayed, twice: that takes longer than the sequence itself.
const REPLAYED: u64 = 16;

/// SplitMix64: small, and every seed is as good as any other.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// As the property tests draw them: often nothing, mostly less than half a second, seldom seconds.
    fn pause(&mut self) -> u16 {
        let pause = match self.below(11) {
            0..4 => 0,
            4..10 => 1 + self.below(399),
            _ => 400 + self.below(8_600),
        };
        pause as u16
    }

    fn one_move(&mut self) -> Move {
        let bits = self.next();
        (self.pause(), bits as u8, (bits >> 8) as u8, (bits >> 16) as u16)
    }
}

/// A sequence: the settings, the moves, and whether it is replayed.
fn sequence(seed: u64) -> (u8, Vec<Move>, bool) {
    let mut random = Random(seed);
    let choice = random.next() as u8;
    let count = 1 + random.below(89);
    let moves = (0..count).map(|_| random.one_move()).collect();
    (choice, moves, random.below(REPLAYED) == 0)
}

#[derive(Default)]
struct Found {
    events: u64,
    runs: u64,
    faults: Vec<String>,
}

fn play(choice: u8, moves: &[Move], replayed: bool) -> Found {
    let mut caller = Caller::new(choice, replayed);
    caller.play(moves);
    let world = caller.world;
    let mut faults = world.monitor.faults;
    if replayed {
        if world.outputs != again(choice, &world.events, &[]) {
            faults.push("the same events gave other outputs".to_owned());
        }
        if world.outputs != again(choice, &world.events, &[9_000, 31_000, 64_000]) {
            faults.push("empty ticks changed the outputs".to_owned());
        }
    }
    Found { events: moves.len() as u64, runs: u64::from(world.monitor.runs), faults }
}

/// Leaves moves out as long as something is still broken.
fn cut_down(choice: u8, mut moves: Vec<Move>, replayed: bool) -> Vec<Move> {
    let mut length = moves.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at < moves.len() {
            let mut fewer = moves.clone();
            fewer.drain(at..(at + length).min(moves.len()));
            if play(choice, &fewer, replayed).faults.is_empty() {
                at += length;
            } else {
                moves = fewer;
            }
        }
        length /= 2;
    }
    moves
}

/// The broken sequence for a reader: what was fed in, and what is wrong with it.
fn story(seed: u64) -> String {
    let (choice, moves, replayed) = sequence(seed);
    let moves = cut_down(choice, moves, replayed);
    let faults = play(choice, &moves, replayed).faults;
    let mut caller = Caller::new(choice, true);
    caller.play(&moves);
    let events: Vec<String> =
        caller.world.events.iter().map(|(at, event)| format!("{at} {event:?}")).collect();
    let outputs = caller.world.outputs.join("\n");
    format!(
        "SAYBACK_SOAK=1 SAYBACK_SEED={seed} brings this back\n{faults:#?}\nchoice {choice}, moves {moves:?}\nevents\n{}\n\
         outputs\n{outputs}",
        events.join("\n")
    )
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn no_random_call_breaks_an_invariant() {
    let (count, seed) = (number("SAYBACK_SOAK", SEQUENCES), number("SAYBACK_SEED", 1));
    let (next, events, runs) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let broken: Mutex<Option<u64>> = Mutex::new(None);
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= count {
            break;
        }
        let own = seed.wrapping_add(index);
        let (choice, moves, replayed) = sequence(own);
        let found = play(choice, &moves, replayed);
        events.fetch_add(found.events, Ordering::Relaxed);
        runs.fetch_add(found.runs, Ordering::Relaxed);
        if !found.faults.is_empty() {
            broken.lock().expect("no thread panics while it holds this").get_or_insert(own);
            next.store(count, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let (events, runs) = (events.into_inner(), runs.into_inner());
    let broken = broken.into_inner().expect("no thread panics while it holds this");
    println!("seed {seed}: {count} sequences, {events} moves, {runs} confirmed runs, broken: {broken:?}");
    assert!(broken.is_none(), "{}", broken.map(story).unwrap_or_default());
    // Sequences in which nothing is ever confirmed would prove nothing.
    assert!(count < 10_000 || runs >= count / 100, "only {runs} runs in {count} sequences");
}
