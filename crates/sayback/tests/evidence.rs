//! The evidence of a call: every scenario's recording is found in order, and one changed byte anywhere is found and
//! named.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use proptest::prelude::*;
use sayback_core::{Policy, Time};
use sayback_replay::bundle::{Bundle, BundleError, Finding, Verified, recompute, verify, write_run};
use sayback_replay::engines::{BlockOn, Engines};
use sayback_replay::run::{CallRun, run_scenario};
use sayback_replay::scenario::{SpeechMode, load_scenario};
use sayback_runtime::record::{AgentSheet, CallSheet, Recorder, SoundSheet};
use serde_json::Value;

struct Waits(tokio::runtime::Runtime);

impl BlockOn for Waits {
    fn block_on(&self, future: BoxFuture<'_, ()>) {
        self.0.block_on(future);
    }
}

fn calls() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/calls")
}

/// A scenario's call, with its transport and the settings it was run with.
fn run(file: &Path) -> (CallRun, String, Policy) {
    let scenario = load_scenario(file).unwrap();
    let agent = sayback_agentfile::load(&scenario.agent).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let policy = agent.agent.policy.clone();
    let engines = Engines {
        waits: Arc::new(Waits(runtime)),
        agent: Arc::new(agent.agent),
        llm: None,
        sound: None,
        assumed_loop: agent.line.assumed_loop,
        today: String::new(),
        screen: None,
    };
    let run = run_scenario(&scenario, SpeechMode::Text, &engines).unwrap();
    (run, scenario.line.transport.name().to_owned(), policy)
}

/// Records a call, with noise for its sound.
fn record(file: &Path, folder: &Path) {
    let (run, transport, policy) = run(file);
    let agent = AgentSheet { name: "An agent".into(), file: "agent.toml".into(), hash: "sha256:0".into() };
    let mut sheet = CallSheet::new("call", &transport, agent, policy.clone());
    sheet.sound = (transport != "chat").then(SoundSheet::default);
    let recorder = Recorder::create(folder, &sheet).unwrap();
    let mut heard = 0;
    write_run(&run, &policy, &recorder, |until| {
        while Time::from_millis(heard * 10) < until {
            let sample = |n: u64, side: u64| (((heard * 160 + n) * (7 + side)) % 401) as f32 / 2_000.0 - 0.1;
            let block = |side: u64| (0..160).map(|n| sample(n, side)).collect::<Vec<f32>>();
            recorder.hear(Time::from_millis(heard * 10), &block(1), &block(2));
            heard += 1;
        }
    });
    recorder.finish(Some("<!doctype html><title>A page</title>")).unwrap();
}

fn verified(folder: &Path) -> Verified {
    verify(folder).unwrap()
}

#[test]
fn the_recording_of_every_scenario_is_in_order() {
    let (mut decisions, mut sounds) = (0, 0);
    let mut wrong: Vec<String> = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(calls()).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".call.toml"));
    files.sort();
    for file in files {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("call");
        record(&file, &bundle);
        let found = verified(&bundle);
        wrong.extend(found.findings.iter().map(|finding| format!("{}: {finding}", file.display())));
        assert!(found.seal.is_some());
        let again = recompute(&Bundle::open(&bundle).unwrap()).unwrap();
        assert_eq!(again.divergence, None, "{}", file.display());
        decisions += found.decisions.len();
        sounds += found.sounds;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(decisions > 60 && sounds > 60, "{decisions} decisions, {sounds} stretches of sound");
}

/// A recording to be broken.
static RECORDING: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    record(&calls().join("yes-after-question.call.toml"), &folder.path().join("call"));
    folder
});

const FILES: [&str; 6] =
    ["call.json", "journal.jsonl", "events.jsonl", "evidence.jsonl", "call.flac", "timeline.html"];

fn copied() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in FILES {
        std::fs::copy(RECORDING.path().join("call").join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// What is found when one file is changed.
fn found(name: &str, how: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Verified {
    let folder = copied();
    let path = folder.path().join(name);
    let bytes = std::fs::read(&path).unwrap();
    let changed = how(bytes.clone());
    assert_ne!(changed, bytes, "{name}");
    std::fs::write(&path, changed).unwrap();
    verified(folder.path())
}

fn names(found: &Verified, name: &str) -> bool {
    found.findings.iter().any(|finding: &Finding| finding.file == name)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(240))]
    #[test]
    fn a_flipped_bit_anywhere_is_found_and_its_file_named(file in 0..FILES.len(), at in 0.0..1.0f64, bit in 0..8u8) {
        let name = FILES[file];
        let found = found(name, |mut bytes| {
            let at = (at * bytes.len() as f64) as usize;
            bytes[at] ^= 1 << bit;
            bytes
        });
        prop_assert!(names(&found, name), "{name}: {:#?}", found.findings);
    }

    #[test]
    fn a_blank_more_or_less_is_found_too(file in 0..4usize, at in 0.0..1.0f64) {
        let name = FILES[file];
        let found = found(name, |mut bytes| {
            let at = (at * bytes.len() as f64) as usize;
            bytes.insert(at, b' ');
            bytes
        });
        prop_assert!(names(&found, name), "{name}: {:#?}", found.findings);
    }
}

#[test]
fn a_recording_that_breaks_off_is_unsealed_and_otherwise_in_order() {
    let folder = copied();
    let path = folder.path().join("evidence.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let kept: String =
        text.lines().filter(|l| !l.contains("\"kind\":\"seal\"")).map(|l| format!("{l}\n")).collect();
    std::fs::write(&path, kept).unwrap();
    let found = verified(folder.path());
    assert_eq!((found.seal, found.findings), (None, Vec::new()));
}

#[test]
fn a_line_that_is_removed_or_moved_is_found() {
    let without = |index: usize| {
        move |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            let lines = text.split_inclusive('\n').enumerate().filter(|(n, _)| *n != index);
            lines.map(|(_, line)| line).collect::<String>().into_bytes()
        }
    };
    for index in 0..3 {
        assert!(names(&found("evidence.jsonl", without(index)), "evidence.jsonl"), "line {index}");
    }
    assert!(names(&found("journal.jsonl", without(4)), "journal.jsonl"));
}

/// The chain does not prove who wrote it: what is forged with all its hashes is found by deciding again.
#[test]
fn a_forged_yes_does_not_follow_from_the_journal() {
    let found = found("evidence.jsonl", |bytes| {
        let text = String::from_utf8(bytes).unwrap();
        let mut prev = None;
        let forged = text.lines().map(|line| {
            let Value::Object(mut line) = serde_json::from_str(line).unwrap() else { panic!("an object") };
            if line["kind"] == "decision" {
                line["answer"]["words"] = "no".into();
                line["check"]["words"] = "no".into();
            }
            if let Some(prev) = prev.take() {
                line.insert("prev".to_owned(), prev);
            }
            let hash = Value::from(sayback_runtime::record::line_hash(&line));
            line.insert("hash".to_owned(), hash.clone());
            prev = Some(hash);
            format!("{}\n", sayback_runtime::record::canonical_text(&Value::Object(line)))
        });
        forged.collect::<String>().into_bytes()
    });
    let whats: Vec<&str> = found.findings.iter().map(|f| f.what.as_str()).collect();
    assert!(whats.contains(&"`answer` is not what the journal gives"), "{whats:#?}");
    assert!(whats.iter().any(|what| what.starts_with("the veto was none")), "{whats:#?}");
}

#[test]
fn a_recording_from_before_chains_says_so() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/format-1-chat");
    assert!(matches!(verify(&old), Err(BundleError::NoChain(_))));
}
