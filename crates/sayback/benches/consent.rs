//! The consent bench: rows (f) safe, (f2) kind and (f3) quick, on every kind of line, against a caller with a mouth and
//! an ear of their own in virtual time.
//!
//! `cargo bench -p sayback --bench consent [-- YESES [FOLDER]]`: how many yeses that must not run each kind of line gets
//! (default 10,000; the kind callers are a fifth of that), and a folder with more recordings, each named after its word
//! (`sure.wav`, `yes__anything.wav`). With the Silero file among the models that is the detector; else the light one.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sayback::core::{NearEnd, Policy, QuestionBargeIn};
use sayback::media::{Earshot, Silero, SileroModel, SpeechProbability};
use sayback::providers::models::Manifest;
use sayback::replay::consent::{Kind, LineKind, People, Safe, Share, Sounds, Span, honest, unheard};
use sayback::replay::engines::NewVad;

const ASSUMED: Duration = Duration::from_millis(350);
/// Recordings of the repository, and their words.
const CLIPS: [(&str, &str); 6] = [
    ("yes.wav", "yes"),
    ("yes-phone.wav", "yes"),
    ("okay-phone.wav", "okay"),
    ("okay.wav", "okay"),
    ("yes-please.wav", "yes, please"),
    ("yes-please-phone.wav", "yes, please"),
];
/// Words that a recording of another folder may be named after.
const WORDS: [&str; 6] = ["yes", "okay", "sure", "yeah", "yep", "correct"];

fn main() {
    let mut numbers = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let yeses: u64 = numbers.next().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let folder = numbers.next().map(PathBuf::from);
    let (vad, model) = vad();
    let sounds = Sounds::listen(&clips(folder.as_deref()), &vad).expect("the recordings can be heard");
    println!("{} takes of words, half of them at -35 dBFS; detector: {model}", sounds.len());
    late_onsets(&sounds);
    println!("\n(f) safe: yeses begun before the end at the ear, straddling it, held up or with late words");
    println!("    and yeses whose stated onset lies behind the stated horizon    aims: 0 run, 0 lost");
    for line in LineKind::ALL {
        row_safe(line, yeses, &sounds);
    }
    for (name, policy) in policies() {
        println!(
            "\n(f2) kind and (f3) quick, {name}    aims: again 1 % (device, page, echo), 3 % (xr, rtcp), 10 % (assumed, mark);"
        );
        println!("    askings 1.15 in the mix; end of the yes to the run 700 / 1,200 ms with a 300 ms check");
        rows_kind(&policy, yeses / 5, &sounds);
    }
}

fn policies() -> [(&'static str, Policy); 3] {
    let mut plain = Policy::default();
    plain.turn.judged = true;
    let (mut continuers, mut again) = (plain.clone(), plain.clone());
    continuers.confirm.question_barge_in = QuestionBargeIn::Continuers;
    again.confirm.near_end = NearEnd::Again;
    [("plain reading", plain), ("question_barge_in = continuers", continuers), ("near_end = again", again)]
}

fn vad() -> (NewVad, &'static str) {
    let path = Manifest::load().ok().filter(|list| list.is_present("silero-vad").unwrap_or(false));
    let silero =
        path.and_then(|list| list.path("silero-vad").ok()).and_then(|path| SileroModel::load(&path, 1).ok());
    match silero {
        Some(model) => {
            (Arc::new(move || Box::new(Silero::new(&model)) as Box<dyn SpeechProbability>), "Silero")
        }
        None => (Arc::new(|| Box::<Earshot>::default() as Box<dyn SpeechProbability>), "the light one"),
    }
}

fn clips(folder: Option<&Path>) -> Vec<(PathBuf, &'static str)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/audio");
    let mut clips: Vec<(PathBuf, &str)> = CLIPS.map(|(name, words)| (own.join(name), words)).to_vec();
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut more: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    more.sort();
    let light: NewVad = Arc::new(|| Box::<Earshot>::default() as Box<dyn SpeechProbability>);
    for path in more {
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().to_lowercase());
        let word = WORDS.into_iter().find(|word| name.starts_with(word));
        let clip = word.map(|word| (path.clone(), word));
        // One whose beginning cannot be told from its own noise has no truth to be judged by.
        clips.extend(clip.filter(|clip| Sounds::listen(std::slice::from_ref(clip), &light).is_ok()));
    }
    clips
}

/// Recordings whose stated onset lies behind their true beginning: what the gate cannot know.
fn late_onsets(sounds: &Sounds) {
    let takes = (0..sounds.len() as u64).map(|number| sounds.pick(number));
    let late: Vec<_> = takes
        .filter_map(|take| Some((take.stated_late_micros()?, &take.name)))
        .filter(|(late, _)| *late > 0)
        .collect();
    println!("stated onsets that lie behind the true beginning: {} of {}", late.len(), sounds.len());
    for (micros, name) in late {
        println!("    {:.1} ms: {name}", micros as f64 / 1_000.0);
    }
}

fn row_safe(line: LineKind, yeses: u64, sounds: &Sounds) {
    let (_, policy) = &policies()[0];
    let mut safe = Safe::default();
    for seed in 0..yeses {
        let kind = Kind::ALL[(seed % Kind::ALL.len() as u64) as usize];
        safe.note(&unheard(line, kind, policy, ASSUMED, seed).run(sounds));
    }
    for seed in 0..yeses / 5 {
        safe.note_honest(&honest(line, People::Slow, 0, (policy, ASSUMED), seed).run(sounds));
    }
    println!(
        "    {:22} {:>6} yeses, {} ran; loop stated rightly in {:.2} %; {:>5} behind the horizon, {} lost",
        line.name(),
        safe.yeses,
        safe.ran,
        100.0 * safe.contained as f64 / safe.yeses.max(1) as f64,
        safe.behind,
        safe.behind_lost,
    );
}

/// One population on one line.
fn population(
    line: LineKind,
    people: People,
    policy: &Policy,
    calls: u64,
    sounds: &Sounds,
) -> (Share, Share, Span) {
    let (mut alone, mut mixed, mut span) = (Share::default(), Share::default(), Span::default());
    for seed in 0..calls {
        let trial = honest(line, people, 0, (policy, ASSUMED), seed);
        let judged = trial.run(sounds);
        alone.note(&trial, &judged);
        span.note(&judged);
        // One question in ten hears an "mm-hm".
        let trial = honest(line, people, 10, (policy, ASSUMED), seed);
        mixed.note(&trial, &trial.run(sounds));
    }
    (alone, mixed, span)
}

fn rows_kind(policy: &Policy, calls: u64, sounds: &Sounds) {
    println!(
        "    {:22} {:>16} {:>16} {:>24} {:>22}",
        "line", "again (quick)", "again (slow)", "askings quick/slow/mix", "median / p95 ms"
    );
    let (mut mix, mut all) = (Share::default(), Span::default());
    for line in LineKind::ALL {
        let quick = population(line, People::Quick, policy, calls / 2, sounds);
        let slow = population(line, People::Slow, policy, calls / 2, sounds);
        let (mut both, mut span) = (quick.1, quick.2);
        both.add(&slow.1);
        span.add(&slow.2);
        println!(
            "    {:22} {:>14.1} % {:>14.1} % {:>10.2} / {:.2} / {:.2} {:>13.0} / {:.0}",
            line.name(),
            quick.0.again_percent(),
            slow.0.again_percent(),
            quick.1.askings_each(),
            slow.1.askings_each(),
            both.askings_each(),
            span.percentile_ms(50),
            span.percentile_ms(95),
        );
        mix.add(&both);
        all.add(&span);
    }
    println!(
        "    all lines: askings {:.2} ({:.2} of them spoken into before their end), {} of {} calls confirmed, {:.0} / {:.0} ms",
        mix.askings_each(),
        mix.spoken_into_each(),
        mix.confirmed,
        mix.calls,
        all.percentile_ms(50),
        all.percentile_ms(95)
    );
}
