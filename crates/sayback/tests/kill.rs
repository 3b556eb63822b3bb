//! Exactly once, through crashes: a real `sayback chat` is killed, at random points and at each step of a confirmed
//! run, and its conversation is opened again. Nothing runs twice, and nothing that ran is forgotten (VC-79).
//!
//! The tool appends its idempotency key to a file and waits until that is on the disk. It goes on by itself when the
//! program is killed, so the test waits for both: descriptor 3 of each is the same pipe as standard output, and the
//! pipe ends with the last of them.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use sayback_core::{Item, Reopened};
use sayback_runtime::clock::Clock;
use sayback_store::{Store, Stored};

/// Kills that must strike while the program is at work.
const KILLS: u32 = 200;
/// Confirmed runs in each conversation.
const BOOKINGS: usize = 3;
/// Nothing takes longer than this, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The plain tool: it does its work and says so.
const WORKS: &str = "echo $SAYBACK_IDEMPOTENCY_KEY >> ran; sync ran; echo Booked.";

/// A folder with an agent whose tool runs a shell script, and a store.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new(tool: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let agent = format!(
            r#"
                [agent]
                name = "Desk"
                [llm]
                provider = "scripted"
                [[skill]]
                name = "desk"
                [[skill.tool]]
                name = "book"
                description = "Books."
                confirm = "Shall I book number {{{{ n }}}}?"
                input = {{ type = "object", required = ["n"], properties = {{ n = {{ type = "integer" }} }} }}
                run = {{ command = ["sh", "-c", "{tool}"] }}
            "#
        );
        std::fs::write(folder.path().join("agent.toml"), agent).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self) -> Store {
        Store::open(&self.path("c.db")).unwrap()
    }

    /// The one conversation in the store, if it got that far.
    fn conversation(&self) -> Option<(String, Stored)> {
        let store = self.store();
        let id = store.conversations().unwrap().first()?.id.clone();
        let stored = store.conversation(&id).unwrap().unwrap();
        Some((id, stored))
    }

    /// How often each key ran.
    fn ran(&self) -> BTreeMap<String, u32> {
        let mut ran = BTreeMap::new();
        for key in std::fs::read_to_string(self.path("ran")).unwrap_or_default().lines() {
            *ran.entry(key.to_owned()).or_insert(0) += 1;
        }
        ran
    }

    /// Starts a chat with a scripted model.
    fn chat(&self, script: &str, arguments: &[&str]) -> Chat {
        std::fs::write(self.path("script.jsonl"), script).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3>&1"]).arg(env!("CARGO_BIN_EXE_sayback"));
        command.arg("chat").arg(self.path("agent.toml")).arg("--script").arg(self.path("script.jsonl"));
        command.arg("--store").arg(self.path("c.db")).args(arguments);
        Chat::start(command)
    }

    /// Opens the conversation again, says yes to whatever it asks, and gives what was shown.
    fn resume(&self, id: &str) -> String {
        let say = "{\"say\":\"Let me see.\"}\n".repeat(4);
        let mut chat = self.chat(&format!("{{\"verdict\":\"yes\"}}\n{say}"), &["--resume", id]);
        chat.type_all("yes\n");
        let (lines, ok) = chat.rest();
        let shown = lines.join("\n");
        assert!(ok, "{shown}");
        shown
    }
}

/// A chat that runs.
struct Chat {
    child: Child,
    lines: Receiver<String>,
}

impl Chat {
    fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (send, lines) = channel();
        let said = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || said.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { child, lines }
    }

    fn type_all(&mut self, text: &str) {
        // A program that was killed reads nothing any more.
        let _ = self.child.stdin.take().unwrap().write_all(text.as_bytes());
    }

    fn type_on(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Waits until it shows a line that holds this.
    fn until(&self, what: &str) {
        while !self.lines.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("never: {what}")).contains(what) {}
    }

    /// Lets it work for so long; false if it has come to its end by then.
    fn work_for(&self, span: Duration, clock: Clock) -> bool {
        let end = clock.now() + span;
        loop {
            match self.lines.recv_timeout(end.since(clock.now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// `kill -9`, and waits for the tool that may still be at work.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while self
            .lines
            .recv_timeout(LIMIT)
            .map_err(|error| assert_ne!(error, RecvTimeoutError::Timeout))
            .is_ok()
        {}
    }

    /// The rest of what it shows, and whether it ended well.
    fn rest(mut self) -> (Vec<String>, bool) {
        let lines = self.lines.iter().collect();
        (lines, self.child.wait().unwrap().success())
    }
}

/// A model that books number after number, each on a yes.
fn booking_script(count: usize) -> String {
    let one = |n| {
        format!(
            "{{\"call\":{{\"tool\":\"book\",\"input\":{{\"n\":{n}}}}}}}\n{{\"verdict\":\"yes\"}}\n{{\"say\":\"Done.\"}}\n"
        )
    };
    (1..=count).map(one).collect()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

fn seed() -> u64 {
    let given = std::env::var("SAYBACK_SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| RandomState::new().build_hasher().finish())
}

/// What was found after the kills.
#[derive(Debug, Default)]
struct Found {
    kills: u32,
    /// Runs that had begun without a result: told as unknown.
    unknown: u32,
    /// Unknown ones whose tool did its work.
    unknown_but_done: u32,
    /// Runs with their result.
    known: u32,
    /// Conversations that were open at a question.
    open: u32,
    double_runs: u32,
    lost_records: u32,
}

impl Found {
    /// Holds what ran against what was written down, before and after the conversation is opened again.
    fn look(&mut self, desk: &Desk) {
        self.kills += 1;
        let ran = desk.ran();
        let Some((id, stored)) = desk.conversation() else {
            self.lost_records += u32::try_from(ran.len()).unwrap();
            return;
        };
        let written = |key: &str| stored.runs.iter().any(|run| run.idempotency_key == key);
        self.lost_records += u32::try_from(ran.keys().filter(|key| !written(key)).count()).unwrap();
        for run in &stored.runs {
            let done = ran.contains_key(&run.idempotency_key);
            match run.state.as_str() {
                "started" => {
                    self.unknown += 1;
                    self.unknown_but_done += u32::from(done);
                }
                // A result without the work is a record of something that never happened.
                _ => self.lost_records += u32::from(!done),
            }
            self.known += u32::from(run.state != "started");
        }
        let unknown = stored.runs.iter().filter(|run| run.state == "started").count();
        let was_open = serde_json::from_str::<Reopened>(&stored.body).unwrap().open.is_some();
        self.open += u32::from(was_open);
        let shown = desk.resume(&id);
        assert_eq!(shown.matches("outcome unknown: book").count(), unknown, "shown to the user: {shown}");
        self.look_again(desk, (&ran, unknown, was_open));
    }

    fn look_again(&mut self, desk: &Desk, before: (&BTreeMap<String, u32>, usize, bool)) {
        let (ran, unknown, was_open) = before;
        let after = desk.ran();
        self.double_runs += after.values().map(|times| times - 1).sum::<u32>();
        // What was open at its question was asked for, and runs now for the first time; nothing else does.
        assert_eq!(after.len(), ran.len() + usize::from(was_open), "{ran:?} {after:?}");
        let (_, stored) = desk.conversation().unwrap();
        let items = serde_json::from_str::<Reopened>(&stored.body).unwrap().items;
        let told = |item: &&Item| matches!(item, Item::Told { text } if text.contains("not known whether it happened"));
        assert_eq!(items.iter().filter(told).count(), unknown, "told to the model: {items:?}");
        let pending =
            |item: &Item| matches!(item, Item::Result { text, .. } if text.contains("Nothing has happened"));
        assert!(!items.iter().any(pending), "each call has what came of it: {items:?}");
    }
}

/// How long the whole conversation takes when nobody kills it, from its first line on.
fn whole_span(clock: Clock) -> Duration {
    let desk = Desk::new(WORKS);
    let mut chat = desk.chat(&booking_script(BOOKINGS), &[]);
    chat.type_all(&"go on\nyes\n".repeat(BOOKINGS));
    chat.until("go on");
    let begin = clock.now();
    let (_, ok) = chat.rest();
    assert!(ok);
    assert_eq!(desk.ran().len(), BOOKINGS);
    clock.now().since(begin)
}

#[test]
fn vc_79_kill_9_at_random_points_repeats_nothing_and_forgets_nothing() {
    let (seed, clock) = (seed(), Clock::start());
    let span = u64::try_from(whole_span(clock).as_micros()).unwrap();
    let mut random = Random(seed);
    let mut found = Found::default();
    let mut missed = 0;
    while found.kills < KILLS {
        let desk = Desk::new(WORKS);
        let mut chat = desk.chat(&booking_script(BOOKINGS), &[]);
        chat.type_all(&"go on\nyes\n".repeat(BOOKINGS));
        chat.until("go on");
        let at_work = chat.work_for(Duration::from_micros(random.below(span)), clock);
        chat.kill();
        if at_work {
            found.look(&desk);
        } else {
            missed += 1;
            assert!(missed < 4 * KILLS, "the program is always done before it is killed");
        }
    }
    println!(
        "seed {seed}: {found:?}, and {missed} kills that came too late, in {} ms",
        clock.now().as_millis_f64()
    );
    assert_eq!((found.double_runs, found.lost_records), (0, 0), "seed {seed}: {found:?}");
    assert!(found.unknown > 0 && found.known > 0, "seed {seed}: the kills fell all alike: {found:?}");
}

/// One booking that is cut off where the tool's script says; gives what was found then.
#[track_caller]
fn cut_off_by(tool: &str) -> (Desk, Found) {
    let desk = Desk::new(tool);
    let mut chat = desk.chat(&booking_script(1), &[]);
    chat.type_all("go on\nyes\n");
    let (_, ok) = chat.rest();
    assert!(!ok, "the tool kills the program");
    let mut found = Found::default();
    found.look(&desk);
    (desk, found)
}

#[test]
fn vc_79_killed_before_the_tool_does_its_work() {
    let (desk, found) = cut_off_by("kill -9 $PPID");
    assert_eq!((found.unknown, found.unknown_but_done), (1, 0), "{found:?}");
    assert_eq!(desk.ran().len(), 0, "it is not made up for by itself");
}

#[test]
fn vc_79_killed_while_the_tool_does_its_work() {
    let (desk, found) = cut_off_by("kill -9 $PPID; echo $SAYBACK_IDEMPOTENCY_KEY >> ran; sync ran");
    assert_eq!((found.unknown, found.unknown_but_done), (1, 1), "{found:?}");
    assert_eq!(desk.ran().into_values().collect::<Vec<_>>(), [1]);
}

#[test]
fn vc_79_killed_after_the_work_before_the_result_is_written() {
    let (desk, found) =
        cut_off_by("echo $SAYBACK_IDEMPOTENCY_KEY >> ran; sync ran; kill -9 $PPID; echo Booked.");
    assert_eq!((found.unknown, found.unknown_but_done), (1, 1), "{found:?}");
    assert_eq!(desk.ran().into_values().collect::<Vec<_>>(), [1]);
}

#[test]
fn vc_74_killed_at_the_open_question() {
    let desk = Desk::new(WORKS);
    let mut chat = desk.chat(&booking_script(1), &[]);
    chat.type_on("go on\n");
    chat.until("Shall I book");
    // It rests when it has kept the conversation; the store says when.
    until_stored(&desk);
    chat.kill();
    let mut found = Found::default();
    found.look(&desk);
    assert_eq!((found.open, found.double_runs), (1, 0), "{found:?}");
    assert_eq!(desk.ran().len(), 1, "the yes after reopening is the first one");
}

/// Waits until the open question is kept.
fn until_stored(desk: &Desk) {
    let open = || desk.conversation().is_some_and(|(_, stored)| stored.body.contains("\"open\":{"));
    let (tell, wait) = channel::<()>();
    while !open() {
        // Nothing tells of it: looked at again a moment later.
        assert_eq!(wait.recv_timeout(Duration::from_millis(5)), Err(RecvTimeoutError::Timeout));
    }
    drop(tell);
}

/// Keeps the store locked, as another process at work would.
fn locked(path: &Path) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[test]
fn vc_79_killed_while_the_run_waits_to_be_written_down() {
    let desk = Desk::new(WORKS);
    let mut chat = desk.chat(&booking_script(1), &[]);
    chat.type_on("go on\n");
    chat.until("Shall I book");
    until_stored(&desk);
    let other = locked(&desk.path("c.db"));
    chat.type_on("yes\n");
    chat.until("[book");
    chat.kill();
    drop(other);
    assert_eq!(desk.ran().len(), 0, "what is not written down does not run");
    let mut found = Found::default();
    found.look(&desk);
    assert_eq!((found.unknown, found.known, found.open), (0, 0, 1), "{found:?}");
}

#[test]
fn vc_79_killed_while_the_result_waits_to_be_written_down() {
    let desk = Desk::new(
        "echo $SAYBACK_IDEMPOTENCY_KEY >> ran; sync ran; echo at work >&3; read wait < go; echo Booked.",
    );
    assert!(Command::new("mkfifo").arg(desk.path("go")).status().unwrap().success());
    let mut chat = desk.chat(&booking_script(1), &[]);
    chat.type_on("go on\nyes\n");
    chat.until("at work");
    let other = locked(&desk.path("c.db"));
    std::fs::write(desk.path("go"), "go\n").unwrap();
    chat.kill();
    drop(other);
    let mut found = Found::default();
    found.look(&desk);
    assert_eq!((found.unknown, found.unknown_but_done), (1, 1), "{found:?}");
}

#[test]
fn a_store_that_cannot_be_written_runs_nothing_and_says_so() {
    let desk = Desk::new(WORKS);
    let events = desk.path("events.jsonl");
    let mut chat = desk.chat(&booking_script(1), &["--events", events.to_str().unwrap()]);
    chat.type_on("go on\n");
    chat.until("Shall I book");
    until_stored(&desk);
    let other = locked(&desk.path("c.db"));
    chat.type_on("yes\n");
    chat.until("Done.");
    drop(other);
    chat.type_all("/quit\n");
    let (lines, ok) = chat.rest();
    assert!(ok, "{lines:?}");
    assert_eq!(desk.ran().len(), 0);
    let log = std::fs::read_to_string(events).unwrap();
    let finished = log.lines().find(|line| line.contains("\"tool.finished\"")).unwrap();
    assert!(finished.contains("\"outcome\":\"not_run\"") && finished.contains("\"ok\":false"), "{finished}");
    assert!(log.contains("could not be written down"), "the model is told: {log}");
}

#[test]
fn vc_65_of_two_programs_with_the_same_open_question_one_runs_it() {
    let desk = Desk::new(WORKS);
    let mut chat = desk.chat(&booking_script(1), &[]);
    chat.type_on("go on\n");
    chat.until("Shall I book");
    chat.type_all("/quit\n");
    assert!(chat.rest().1);
    let (id, _) = desk.conversation().unwrap();
    let script = "{\"verdict\":\"yes\"}\n{\"say\":\"Well.\"}\n";
    let mut both = [(); 2].map(|()| {
        let chat = desk.chat(script, &["--resume", &id]);
        chat.until("(still open)");
        chat
    });
    both.iter_mut().for_each(|chat| chat.type_on("yes\n"));
    for mut chat in both {
        chat.until("Well.");
        chat.type_all("/quit\n");
        chat.rest();
    }
    assert_eq!(desk.ran().into_values().collect::<Vec<_>>(), [1]);
}
