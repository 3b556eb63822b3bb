//! Text-mode replay against real time: how much of a call one core decides in a second.
//!
//! `cargo bench -p sayback --bench text_replay [-- SCENARIO]` prints the time for 60 s of call and the ratio to real
//! time, which is the reference: a caller who waits for nothing would need it.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a bench reads the clock and prints")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use sayback::replay::engines::{BlockOn, Engines};
use sayback::replay::run::run_scenario;
use sayback::replay::scenario::{SpeechMode, load_scenario};

struct Waits(tokio::runtime::Runtime);

impl BlockOn for Waits {
    fn block_on(&self, future: BoxFuture<'_, ()>) {
        self.0.block_on(future);
    }
}

const RUNS: u32 = 200;

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::args().nth(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from);
    let path = given.unwrap_or_else(|| root.join("tests/calls/yes-after-question.call.toml"));
    let scenario = load_scenario(&path).expect("the scenario can be read");
    let file = sayback::agentfile::load(&scenario.agent).expect("its agent can be read");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an executor");
    let engines = Engines {
        waits: Arc::new(Waits(runtime)),
        agent: Arc::new(file.agent),
        llm: None,
        sound: None,
        assumed_loop: file.line.assumed_loop,
        today: String::new(),
        screen: None,
    };
    let run = || run_scenario(&scenario, SpeechMode::Text, &engines).expect("text mode cannot fail");
    let call = run().length;
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            let length = run().length;
            assert_eq!(length, call, "a replay took another course");
            started.elapsed()
        })
        .collect();
    times.sort();
    let median = times[times.len() / 2];
    let minute = median.as_secs_f64() * 60.0 / call.as_secs_f64();
    println!(
        "{}: {:.1} s of call in {:.3} ms (median of {RUNS}); 60 s in {:.2} ms; {:.0} times real time",
        path.display(),
        call.as_secs_f64(),
        median.as_secs_f64() * 1e3,
        minute * 1e3,
        call.as_secs_f64() / median.as_secs_f64(),
    );
}
