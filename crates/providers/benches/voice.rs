//! How soon the voice starts to sound, and how much faster than speech it is made.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test or bench that breaks off says where, and prints"
)]

#[expect(dead_code, reason = "the recogniser is for the tests and the other bench")]
#[path = "../tests/local/mod.rs"]
mod local;

use sayback_runtime::tts::Synthesize;
use std::ops::ControlFlow;

const ROUNDS: usize = 7;

fn main() {
    let Some(piper) = local::piper(None) else { return };
    for text in [
        "Sure.",
        "Of course, I can move your appointment to Tuesday.",
        "I have found two free times for you. The first is on Tuesday at ten thirty, the second on Friday at nine. \
         Which one would you like?",
    ] {
        let mut rounds: Vec<(u128, u128, f64)> = (0..ROUNDS).map(|_| round(&piper, text)).collect();
        rounds.sort_by_key(|(first, _, _)| *first);
        let (first, whole, seconds) = rounds[ROUNDS / 2];
        let worst = rounds[ROUNDS - 1].0;
        let factor = whole as f64 / 1000.0 / seconds;
        println!(
            "{:>3} letters, {seconds:.2} s of speech: first samples after {first} ms (worst {worst} ms), \
             real-time factor {factor:.3}",
            text.len()
        );
    }
}

/// Milliseconds to the first samples and to the last, and seconds of speech.
fn round(piper: &impl Synthesize, text: &str) -> (u128, u128, f64) {
    let start = now();
    let mut first = None;
    let mut samples = 0;
    piper
        .synthesize(text, "en", &mut |piece| {
            first.get_or_insert_with(|| start.elapsed().as_millis());
            samples += piece.len();
            ControlFlow::Continue(())
        })
        .expect("the voice speaks");
    (first.unwrap_or_default(), start.elapsed().as_millis(), samples as f64 / f64::from(piper.sample_rate()))
}

#[expect(clippy::disallowed_methods, reason = "a bench measures the wall clock")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
