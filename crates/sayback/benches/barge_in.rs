//! How quickly `sayback talk` falls silent when the caller speaks, and how often noise makes it pause.
//!
//! ```text
//! cargo bench -p sayback --bench barge_in                     25 interruptions, two minutes of noise
//! cargo bench -p sayback --bench barge_in -- --noise FOLDER   the recordings of a folder instead of our own noise
//! cargo bench -p sayback --bench barge_in -- --minutes 10     so much noise, and no interruptions
//! ```
//!
//! On virtual devices, in the default configuration, measured from outside: the caller's onset and the agent's silence
//! are both on the clock of a telephone at the other end of the devices. The last frame was handed to the device when the
//! pause was decided or up to 10 ms later, which is what the event log tells; it sounded about 20 ms after that, which is
//! what is recorded. Both are printed.

#![expect(clippy::unwrap_used, reason = "a bench of its own crate")]
#![expect(clippy::print_stdout, reason = "its figures are printed")]

#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "the test of the same name uses more of it")]
mod support;

use std::path::Path;
use std::time::Duration;

use sayback_core::Time;
use sayback_media::clip::read_audio;
use sayback_media::noise::WhiteNoise;
use sayback_media::pcm;
use sayback_rig::{Rig, inside_with};
use sayback_runtime::clock::Clock;
use serde_json::{Value, json};
use support::{Call, Phone, has_models, recorded, repository};

/// What the agent is interrupted in.
const LONG: &str = "We are open from Monday to Friday between nine and half past four and the practice is closed on all \
                    public holidays and on the last Friday of each month";
/// What it is interrupted with: short, so that each is one turn.
const CLIPS: [&str; 5] = ["no-wait.wav", "no-friday.wav", "hold-on.wav", "yes-please.wav", "no.wav"];
const TRIALS: usize = 25;
/// How much noise the agent talks over, if nothing else is wanted.
const MINUTES: usize = 2;
/// Sentences that it says in a minute.
const PER_MINUTE: usize = 20;
const SENTENCE: &str = "Please bring your insurance card and a list of what you take with you.";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1);
    inside_with("barge_in", &arguments, |rig| {
        if !has_models() {
            return;
        }
        let minutes = after("--minutes").map(|text| text.parse().expect("--minutes takes a number"));
        if minutes.is_none() {
            interruptions(rig);
        }
        noise(rig, after("--noise").map(Path::new), minutes.unwrap_or(MINUTES));
    });
}

fn interruptions(rig: &Rig) {
    let clock = Clock::start();
    let mut phone = Phone::new(clock);
    let script: Vec<Value> = (0..TRIALS + 2).map(|n| json!({"say": format!("{LONG} {n}.")})).collect();
    let mut call = Call::start(rig, clock, "cancel", &script);
    call.until("agent.heard");
    phone.say(&recorded("appointment.wav"));
    let (mut silent, mut paused, mut missed) = (Vec::new(), Vec::new(), 0);
    for trial in 0..TRIALS {
        let started = call.until("agent.started");
        let begin = call.at(&started["t_ms"]) + Duration::from_millis(1_500 + 37 * trial as u64);
        let clip = CLIPS[trial % CLIPS.len()];
        let onset = phone.say_at(begin, &recorded(clip)) + speech_begins(clip);
        let stopped = call.until_any(&["agent.paused", "agent.heard"]);
        if stopped["event"] == "agent.heard" {
            missed += 1;
            let sounds = call.all("caller.speech").len();
            println!(
                "  trial {trial}, {clip}: not heard over the agent ({sounds} sounds of the caller so far)"
            );
            // The agent has finished and waits: the next answer is asked for, or all that follows is out of step.
            phone.say(&recorded("appointment.wav"));
            continue;
        }
        paused.push(millis(call.at(&stopped["t_ms"]), onset));
        // The cut-off answer is settled before the next one starts.
        call.until("agent.heard");
        // Not a pause for breath before it, and what was with the device sounds on for a moment after it.
        let decided = call.at(&stopped["t_ms"]);
        let quiet = phone.silent_from(decided, Duration::from_millis(150)).expect("it fell silent");
        silent.push(millis(quiet, onset));
    }
    println!(
        "from the caller's onset to the agent's silence, {} of {TRIALS} trials, {missed} missed",
        silent.len()
    );
    print_spread("  pause decided (event log)", paused);
    print_spread("  last sample sounded (recorded)", silent);
    call.interrupt();
}

/// Where the words of a clip begin in it.
fn speech_begins(name: &str) -> Duration {
    let list = std::fs::read_to_string(repository().join("tests/audio/clips.json")).unwrap();
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let clip = list.iter().find(|clip| clip["file"] == name).expect("the clip is listed");
    Duration::from_micros((clip["from_ms"].as_f64().unwrap() * 1_000.0) as u64)
}

fn noise(rig: &Rig, folder: Option<&Path>, minutes: usize) {
    let kinds = folder.map_or_else(own_noise, recordings);
    let sentences = (minutes * PER_MINUTE).div_ceil(kinds.len());
    let (mut pauses, mut ends, mut seconds) = (0, 0, 0.0);
    for (name, samples) in kinds {
        let (paused, ended, length) = over_noise(rig, &samples, sentences);
        println!("noise {name}: {paused} pauses, {ended} ended, {length:.0} s");
        (pauses, ends, seconds) = (pauses + paused, ends + ended, seconds + length);
    }
    let per_ten = |count: usize| count as f64 * 600.0 / seconds;
    println!("per 10 minutes of noise: {:.1} pauses, {:.1} ends of speech", per_ten(pauses), per_ten(ends));
}

/// Lets the agent talk while noise is played, over and over. Gives pauses, unfinished sentences, and seconds.
fn over_noise(rig: &Rig, noise: &[i16], sentences: usize) -> (usize, usize, f64) {
    let clock = Clock::start();
    let mut phone = Phone::new(clock);
    let text = vec![SENTENCE; sentences].join(" ");
    let mut call =
        Call::start(rig, clock, "cancel", &[json!({"say": text}), json!({"say": "So much for that."})]);
    call.until("agent.heard");
    // One word, for a pause in a longer clip would be answered, and the answer cut off by its rest.
    phone.say(&recorded("yes.wav"));
    let started = call.until("agent.started");
    let long: Vec<i16> = noise.iter().copied().cycle().take(16_000 * 6 * sentences).collect();
    let begun = phone.say(&(16_000, long));
    let mut whole = 0;
    while whole < sentences {
        let heard = call.until("agent.heard");
        if heard["complete"] == false {
            break;
        }
        whole += 1;
    }
    let end = clock.now();
    let from = call.at(&started["t_ms"]).max(begun);
    let pauses = call.all("agent.paused").len();
    call.interrupt();
    (pauses, usize::from(whole < sentences), end.since(from).as_secs_f64())
}

/// Noise that no recording is needed for, and what the project has recorded.
fn own_noise() -> Vec<(String, Vec<i16>)> {
    let mut white = Vec::new();
    pcm::extend_i16(&mut white, &WhiteNoise::new(11).samples(16_000 * 10, -40.0));
    let mut loud = Vec::new();
    pcm::extend_i16(&mut loud, &WhiteNoise::new(12).samples(16_000 * 10, -28.0));
    let mut named = vec![("white -40 dBFS".to_owned(), white), ("white -28 dBFS".to_owned(), loud)];
    named.push(("keys".to_owned(), keys()));
    for name in ["cough.wav", "hold-music-phone.wav"] {
        let mut samples = at_16k(&repository().join("tests/audio").join(name));
        samples.resize(samples.len() + 32_000, 0);
        named.push((name.to_owned(), samples));
    }
    named
}

/// A keyboard: short clicks, unevenly apart.
fn keys() -> Vec<i16> {
    let mut clicks = WhiteNoise::new(13);
    let mut samples = Vec::new();
    for gap in [130, 90, 210, 160, 120, 400, 95, 170] {
        let decay = |(n, s): (usize, f32)| s * (-(n as f32) / 80.0).exp();
        let click: Vec<f32> = clicks.samples(480, -12.0).into_iter().enumerate().map(decay).collect();
        pcm::extend_i16(&mut samples, &click);
        samples.resize(samples.len() + 16 * gap, 0);
    }
    samples
}

fn recordings(folder: &Path) -> Vec<(String, Vec<i16>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let sound = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "wav" || e == "flac");
    files.retain(sound);
    files.into_iter().map(|path| (path.display().to_string(), at_16k(&path))).collect()
}

fn at_16k(path: &Path) -> Vec<i16> {
    let mut samples = Vec::new();
    pcm::extend_i16(&mut samples, &read_audio(path).unwrap().mono_at(16_000).unwrap());
    samples
}

fn millis(later: Time, earlier: Time) -> f64 {
    later.diff_micros(earlier) as f64 / 1_000.0
}

fn print_spread(what: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let at =
        |share: f64| values.get(((values.len() as f64 * share).ceil() as usize).saturating_sub(1)).copied();
    println!(
        "{what}: median {:.0} ms, p95 {:.0} ms, least {:.0}, most {:.0}",
        at(0.5).unwrap_or(f64::NAN),
        at(0.95).unwrap_or(f64::NAN),
        at(0.0).unwrap_or(f64::NAN),
        at(1.0).unwrap_or(f64::NAN)
    );
}
