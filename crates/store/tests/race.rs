//! VC-65: threads and processes that race for the same holds on one file. Of all of them, one may run each.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Barrier;

use sayback_core::{HoldId, Reopened, ToolRef};
use sayback_runtime::journal::{Begun, ConfirmedRun, Journal, Snapshot};
use sayback_store::{ConversationJournal, Store};
use tokio::runtime::Runtime;

/// Holds that are raced for.
const HOLDS: u32 = 1_000;
/// Set in a racing process alone: the file that it races on.
const STORE: &str = "SAYBACK_RACE_STORE";

fn run(hold: u32) -> ConfirmedRun {
    ConfirmedRun {
        hold: HoldId(hold),
        attempt: 1,
        idempotency_key: format!("a/{hold}"),
        call: format!("c{hold}"),
        tool: ToolRef { skill: "s".to_owned(), name: "pay".to_owned(), definition: "sha256:1".to_owned() },
        input_hash: "sha256:2".to_owned(),
        confirmed_by: "yes".to_owned(),
    }
}

/// One that races, over a connection of its own.
struct Racer {
    journal: ConversationJournal,
    executor: Runtime,
}

impl Racer {
    fn on(path: &Path) -> Self {
        let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { journal: Store::open(path).unwrap().begin_conversation("a", "Desk"), executor }
    }

    /// Whether it may run this hold.
    fn wins(&self, hold: u32) -> bool {
        let now = Snapshot { order: u64::from(hold) + 1, conversation: Reopened::default() };
        self.executor.block_on(self.journal.begin(&run(hold), &now)).unwrap() == Begun::Fresh
    }
}

#[track_caller]
fn assert_each_once(mut won: Vec<u32>) {
    won.sort_unstable();
    assert_eq!(won, (0..HOLDS).collect::<Vec<u32>>(), "each hold is run by one, and by one only");
}

#[test]
fn vc_65_of_threads_that_race_for_a_hold_one_runs_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.db");
    let start = Barrier::new(4);
    let shares: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let racer = Racer::on(&path);
                    let won = (0..HOLDS).filter(|hold| {
                        // All go for the same hold at the same time.
                        start.wait();
                        racer.wins(*hold)
                    });
                    won.collect()
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let counts: Vec<usize> = shares.iter().map(Vec::len).collect();
    println!("{} tries by 4 threads, runs: {counts:?}", 4 * HOLDS);
    assert_each_once(shares.concat());
}

/// A racer in a process of its own: told a hold, it says whether it may run it.
struct OtherProcess {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl OtherProcess {
    fn on(path: &Path) -> Self {
        let mut racer = Command::new(std::env::current_exe().unwrap());
        let test = "vc_65_of_processes_that_race_for_a_hold_one_runs_it";
        racer.args(["--exact", test, "--nocapture"]).env(STORE, path);
        let mut child = racer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, orders, answers }
    }

    fn go_for(&mut self, hold: u32) {
        writeln!(self.orders, "{hold}").unwrap();
    }

    fn won(&mut self) -> bool {
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "the other process is gone");
            // The test runner speaks on the same line.
            if line.trim_end().ends_with("won") || line.trim_end().ends_with("lost") {
                return line.trim_end().ends_with("won");
            }
        }
    }
}

#[test]
fn vc_65_of_processes_that_race_for_a_hold_one_runs_it() {
    if let Some(path) = std::env::var_os(STORE) {
        return race(path.as_ref());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.db");
    let mut racers = [OtherProcess::on(&path), OtherProcess::on(&path)];
    let mut won = Vec::new();
    let mut counts = [0; 2];
    for hold in 0..HOLDS {
        racers.iter_mut().for_each(|racer| racer.go_for(hold));
        for (racer, count) in racers.iter_mut().zip(&mut counts) {
            if racer.won() {
                won.push(hold);
                *count += 1;
            }
        }
    }
    for OtherProcess { mut child, orders, .. } in racers {
        drop(orders);
        assert!(child.wait().unwrap().success());
    }
    println!("{} tries by 2 processes, runs: {counts:?}", 2 * HOLDS);
    assert_each_once(won);
}

/// What the other processes do.
fn race(path: &Path) {
    let racer = Racer::on(path);
    let mut told = std::io::stdout();
    for line in std::io::stdin().lines() {
        let won = racer.wins(line.unwrap().trim().parse().unwrap());
        writeln!(told, "{}", if won { "won" } else { "lost" }).unwrap();
    }
}
