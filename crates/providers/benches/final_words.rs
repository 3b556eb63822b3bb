//! How long after the end of speech the final words are there, for a whole sentence and for a short answer.
//!
//! Target on two idle cores: 400 ms for a two-second utterance, 250 ms for a "yes" of 0.4 s.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test or bench that breaks off says where, and prints"
)]

#[path = "../tests/local/mod.rs"]
mod local;

use sayback_providers::whisper::SAMPLE_RATE;
use sayback_runtime::stt::{Cancel, Transcribe};
use std::time::Duration;

const ROUNDS: usize = 15;

fn main() {
    let (Some(piper), Some(whisper)) = (local::piper(None), local::whisper(None)) else { return };
    let sentence = cut(local::hear(&piper, "I would like to move it to Friday, please."), 2.0);
    let answer = cut(local::hear(&piper, "Yes."), 0.4);
    report("two-second utterance", &whisper, &sentence);
    report("0.4 s \"yes\"", &whisper, &answer);
}

/// The first seconds of a sound.
fn cut(mut sound: Vec<f32>, seconds: f32) -> Vec<f32> {
    sound.truncate((seconds * SAMPLE_RATE as f32) as usize);
    sound
}

fn report(what: &str, whisper: &impl Transcribe, sound: &[f32]) {
    let mut text = String::new();
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = now();
            text = whisper.transcribe(sound, false, &Cancel::new()).expect("the model runs").text;
            start.elapsed()
        })
        .collect();
    times.sort();
    let millis = |index: usize| times[index].as_millis();
    let length = sound.len() as f32 / SAMPLE_RATE as f32;
    println!(
        "{what} ({length:.2} s, {text:?}): median {} ms, p95 {} ms",
        millis(ROUNDS / 2),
        millis(ROUNDS * 95 / 100)
    );
}

#[expect(clippy::disallowed_methods, reason = "a bench measures the wall clock")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
