//! The consent bench, small: a caller with a mouth and an ear at the far end of every kind of line. Nothing runs on a yes
//! that began before its question had reached the ear, and what begins behind the horizon runs.
//!
//! `SAYBACK_CASES` sets how many calls each kind of yes gets on each kind of line.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sayback_core::{NearEnd, Policy, QuestionBargeIn};
use sayback_media::{Earshot, SpeechProbability};
use sayback_replay::consent::{Kind, LineKind, People, Random, Safe, Share, Sounds, honest, unheard};

const ASSUMED: Duration = Duration::from_millis(350);

static SOUNDS: LazyLock<Sounds> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/audio");
    let clips: Vec<(PathBuf, &str)> =
        [("yes-phone.wav", "yes"), ("okay-phone.wav", "okay"), ("yes-please.wav", "yes, please")]
            .map(|(name, words)| (folder.join(name), words))
            .to_vec();
    let light = || Box::<Earshot>::default() as Box<dyn SpeechProbability>;
    Sounds::listen(&clips, &(Arc::new(light) as _)).expect("the recordings are part of the repository")
});

fn cases(default: u64) -> u64 {
    std::env::var("SAYBACK_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn policies() -> [(&'static str, Policy); 3] {
    let with = |change: fn(&mut Policy)| {
        let mut policy = Policy::default();
        policy.turn.judged = true;
        change(&mut policy);
        policy
    };
    [
        ("plain", with(|_| {})),
        ("continuers", with(|p| p.confirm.question_barge_in = QuestionBargeIn::Continuers)),
        ("again", with(|p| p.confirm.near_end = NearEnd::Again)),
    ]
}

#[test]
fn no_yes_from_before_the_end_at_the_ear_runs_on_any_line() {
    for (name, policy) in policies() {
        for line in LineKind::ALL {
            let mut safe = Safe::default();
            for kind in Kind::ALL {
                for seed in 0..cases(16) {
                    let trial = unheard(line, kind, &policy, ASSUMED, seed);
                    let judged = trial.run(&SOUNDS);
                    assert!(!judged.ran, "{name}, {}, {kind:?}, seed {seed}: {trial:#?}", line.name());
                    safe.note(&judged);
                }
            }
            assert_eq!(safe.contained, safe.yeses, "{}: a true loop outside the stated one", line.name());
        }
    }
}

#[test]
fn a_yes_that_begins_behind_the_horizon_runs_on_every_line() {
    let (_, policy) = policies()[0].clone();
    for line in LineKind::ALL {
        let mut safe = Safe::default();
        let mut share = Share::default();
        for seed in 0..cases(40) {
            let trial = honest(line, People::Slow, 0, (&policy, ASSUMED), seed);
            let judged = trial.run(&SOUNDS);
            assert!(!judged.unheard, "{}, seed {seed}: {trial:#?}", line.name());
            assert!(!judged.behind || judged.at_once, "{}, seed {seed}: {trial:#?}", line.name());
            safe.note_honest(&judged);
            share.note(&trial, &judged);
        }
        assert!(
            safe.behind >= cases(40) / 3,
            "{}: only {} yeses behind the horizon",
            line.name(),
            safe.behind
        );
        assert!(share.confirmed * 100 >= share.calls * 95, "{}: {share:?}", line.name());
    }
}

#[test]
fn the_same_seed_makes_the_same_call() {
    let (_, policy) = policies()[0].clone();
    let mut random = Random::new(5);
    for line in LineKind::ALL {
        let trial = honest(line, People::Quick, 30, (&policy, ASSUMED), random.bits());
        assert_eq!(trial.run(&SOUNDS), trial.run(&SOUNDS), "{}", line.name());
    }
}

#[test]
fn weak_words_are_among_the_sounds() {
    let weak = (0..SOUNDS.len() as u64).filter(|number| SOUNDS.pick(*number).weak).count();
    assert_eq!(weak * 2, SOUNDS.len());
}
