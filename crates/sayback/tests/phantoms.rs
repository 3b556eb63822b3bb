//! VC-39: sounds that are nobody's answer, and short answers that are hard to hear, through a whole call: real voice
//! activity detection, real recognition with its guards, the core, and a model that takes everything for a yes.
//!
//! With the project's own clips and made-up tones this always runs. `SAYBACK_TRIAL_AUDIO=FOLDER` tries recordings too: a
//! folder with a table `MANIFEST.tsv` whose columns `file`, `cat`, `lang` and `transcript` say what each is. Run that with
//! `cargo test -p sayback --test phantoms -- --nocapture recordings`; it prints a table of what was heard and decided.
//! `SAYBACK_TRIAL_ONLY=TEXT` takes the files alone whose names have it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test of its own crate, which prints its table"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sayback_core::check::is_affirmation;
use sayback_media::clip::{Clip, read_audio};
use sayback_media::noise::active_level_dbfs;
use sayback_media::telephone::over_the_line;
use sayback_media::{resample, wav};
use sayback_providers::piper::{Piper, PiperOptions};
use sayback_rig::{has_models, models};
use sayback_runtime::tts::Synthesize as _;
use serde_json::Value;

const RATE: u32 = 16_000;
const QUESTION: &str = "Shall I book Thursday the 3rd of December at 3 pm for anna at example dot com?";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/sayback lies in it").to_path_buf()
}

/// The desk of configs/clinic.toml, without a greeting, and without asking again by itself: the sounds are what counts.
const DESK: &str = r#"
[agent]
name = "Clinic desk"
[llm]
provider = "scripted"
[confirm]
silence_followup = "none"
[turn]
silence_followup = "none"
[[skill]]
name = "appointments"
[[skill.tool]]
name = "book_appointment"
description = "Books an appointment for a caller."
confirm = "Shall I book {{ start | spoken_datetime }} for {{ email | spoken_email }}?"
run = { reply = { message = "Booked for {{ start }}." } }
[skill.tool.input]
type = "object"
required = ["start", "email"]
properties = { start = { type = "string", format = "local-date-time" }, email = { type = "string", format = "email" } }
"#;

/// What a sound is, and so what may come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nobody's answer: the tool must not run.
    Phantom,
    /// The agent's own question coming back from its beginning on: the tool must not run.
    Echo,
    /// A caller's yes: the tool must run.
    Yes,
    /// A caller's no: it must reach the check as one.
    No,
    /// A sound of which either is right: it is only printed.
    Open,
}

/// What the caller says first, as a file beside the scenarios.
const HELLO: &str = "hello.wav";
/// The same, 20 dB down.
const FAINT_HELLO: &str = "hello-at-a-low-level.wav";

/// One sound of a caller.
#[derive(Clone, Debug)]
struct Trial {
    name: String,
    kind: Kind,
    samples: Vec<f32>,
}

impl Trial {
    fn new(name: impl Into<String>, kind: Kind, samples: Vec<f32>) -> Self {
        Self { name: name.into(), kind, samples }
    }

    /// Whether the whole call is faint. A faint yes on a loud call is somebody else's, and counts for nothing.
    fn is_faint_caller(&self) -> bool {
        matches!(self.kind, Kind::Yes | Kind::No) && self.name.ends_with("-faint")
    }

    fn scenario(&self) -> String {
        let after = match self.kind {
            Kind::Echo => "question.started + 120ms",
            Kind::Phantom | Kind::Yes | Kind::No | Kind::Open => "question.heard + 700ms",
        };
        let quiet = self.samples.len() as u64 * 1_000 / u64::from(RATE) + 5_000;
        let hello = if self.is_faint_caller() { FAINT_HELLO } else { HELLO };
        let mut text = format!(
            "title = \"{}\"\nagent = \"desk.toml\"\nspeech = \"audio\"\n\
             [[caller]]\nat = \"600ms\"\ntext = \"hello\"\naudio = \"{hello}\"\n\
             [[caller]]\nafter = \"{after}\"\ntext = \"a sound\"\naudio = \"{}.wav\"\n\
             [[caller]]\nafter = \"question.heard + {quiet}ms\"\nhangup = true\n\
             [[caller]]\nat = \"80s\"\nhangup = true\n\
             [[model]]\ncall = {{ tool = \"book_appointment\", input = {{ start = \"2026-12-03T15:00\", email = \
             \"anna@example.com\" }} }}\n",
            self.name, self.name
        );
        text.push_str("[[expect]]\nevent = \"question.started\"\n");
        for _ in 0..8 {
            text.push_str("[[model]]\nsay = \"Sorry, once more.\"\n[[check]]\nverdict = \"yes\"\n");
        }
        text
    }
}

/// What came of a sound.
#[derive(Debug)]
struct Outcome {
    words: String,
    checks: Vec<(String, String)>,
    ran: bool,
}

impl Outcome {
    fn of(events: &[Value]) -> Self {
        let named = |name: &'static str| events.iter().filter(move |event| event["event"] == name);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let begins = named("question.started").next().and_then(|event| event["t_ms"].as_f64()).unwrap_or(0.0);
        let spoken = named("caller.words")
            .filter(|event| event["final"] == true && event["t_ms"].as_f64().is_some_and(|at| at > begins));
        let percent =
            |event: &Value| event["confidence"].as_f64().map_or_else(String::new, |sure| format!(" {sure}"));
        let words: Vec<String> =
            spoken.map(|event| format!("{}{}", text(&event["text"]), percent(event))).collect();
        let check = |event: &Value| {
            let veto = event["veto"].as_str().map(|veto| format!(" ({veto})")).unwrap_or_default();
            (text(&event["words"]), format!("{}{veto}", text(&event["verdict"])))
        };
        Self {
            words: words.join(" / "),
            checks: named("answer.checked").map(check).collect(),
            ran: named("tool.started").next().is_some(),
        }
    }

    fn is_right(&self, kind: Kind) -> bool {
        match kind {
            Kind::Phantom | Kind::Echo => !self.ran,
            Kind::Yes => self.ran,
            Kind::No => {
                let denies = |words: &str| {
                    let words = words.to_lowercase();
                    words.split(|c: char| !c.is_alphabetic()).any(|word| word == "no" || word == "nope")
                };
                !self.ran && self.checks.iter().any(|(words, _)| denies(words))
            }
            Kind::Open => true,
        }
    }
}

/// Runs every sound in a call of its own, prints the table, and gives the names of those that came out wrong.
fn run(trials: &[Trial]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut faults = Vec::new();
    let mut table = String::new();
    for (index, trial) in trials.iter().enumerate() {
        let sound = wav::encode(&Clip::mono(RATE, trial.samples.clone()));
        std::fs::write(folder.path().join(format!("{}.wav", trial.name)), sound).unwrap();
        std::fs::write(folder.path().join(format!("{index:04}.call.toml")), trial.scenario()).unwrap();
    }
    std::fs::write(folder.path().join("desk.toml"), DESK).unwrap();
    for (name, gain) in [(HELLO, 0.0), (FAINT_HELLO, -20.0)] {
        let sound = wav::encode(&Clip::mono(RATE, louder(&own("yes.wav"), gain)));
        std::fs::write(folder.path().join(name), sound).unwrap();
    }
    let calls = calls(folder.path());
    assert_eq!(calls.len(), trials.len());
    for (trial, events) in trials.iter().zip(&calls) {
        let outcome = Outcome::of(events);
        let right = outcome.is_right(trial.kind);
        let checks: Vec<String> =
            outcome.checks.iter().map(|(words, verdict)| format!("{words:?} {verdict}")).collect();
        let (name, kind) = (&trial.name, format!("{:?}", trial.kind));
        let (ran, mark) = (if outcome.ran { "ran" } else { "-" }, if right { "" } else { "  <== WRONG" });
        let words = &outcome.words;
        let line = format!("{name:<44} {kind:<8} {ran:<4} heard {words:?}; checked {checks:?}{mark}");
        println!("{line}");
        writeln!(table, "{line}").unwrap();
        if !right {
            faults.push(line);
        }
    }
    let count = |kind| trials.iter().filter(|trial| trial.kind == kind).count();
    println!(
        "{} sounds of nobody, {} echoes, {} yeses, {} noes, {} open; {} wrong",
        count(Kind::Phantom),
        count(Kind::Echo),
        count(Kind::Yes),
        count(Kind::No),
        count(Kind::Open),
        faults.len()
    );
    faults
}

/// The events of each call of a folder, in the order of the files.
fn calls(folder: &Path) -> Vec<Vec<Value>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
    command.arg("replay").arg(folder).args(["--events", "-"]).current_dir(repository());
    let output = command.output().unwrap();
    let (log, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let mut calls: Vec<Vec<Value>> = Vec::new();
    for event in log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if event["event"] == "call.started" {
            calls.push(Vec::new());
        }
        calls.last_mut().unwrap().push(event);
    }
    // Each expects that the question began to sound: only then has a sound been tried.
    assert!(output.status.success(), "{said}");
    calls
}

fn own(name: &str) -> Vec<f32> {
    read_audio(&repository().join("tests/audio").join(name)).unwrap().mono_at(RATE).unwrap()
}

fn louder(samples: &[f32], decibels: f32) -> Vec<f32> {
    let gain = 10.0_f32.powf(decibels / 20.0);
    samples.iter().map(|sample| sample * gain).collect()
}

/// Through a telephone: 8,000 Hz, band and μ-law.
fn telephone(samples: &[f32]) -> Vec<f32> {
    let narrow = resample::resample(samples, RATE, 8_000).unwrap();
    resample::resample(&over_the_line(&narrow, 8_000), 8_000, RATE).unwrap()
}

/// Tones at once, on and off in turn for `seconds` in all.
fn tones(frequencies: &[f32], on: f32, off: f32, seconds: f32) -> Vec<f32> {
    let at = |n: usize| n as f32 / RATE as f32;
    let count = (seconds * RATE as f32) as usize;
    (0..count)
        .map(|n| {
            let sounds = at(n) % (on + off) < on;
            let sum: f32 = frequencies.iter().map(|f| (std::f32::consts::TAU * f * at(n)).sin()).sum();
            if sounds { 0.2 * sum / frequencies.len() as f32 } else { 0.0 }
        })
        .collect()
}

/// Noise from a counter: the same every time.
fn noise(seconds: f32, smooth: f32) -> Vec<f32> {
    let mut state = 0x9E37_79B9_u32;
    let mut low = 0.0_f32;
    (0..(seconds * RATE as f32) as usize)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            low += smooth * (state as f32 / u32::MAX as f32 - 0.5 - low);
            low * 0.4
        })
        .collect()
}

/// The loudest 30 ms of a sound, at the given places after it in steps of its length, in silence.
fn slices(samples: &[f32], count: usize, gap: f32) -> Vec<f32> {
    let length = RATE as usize * 30 / 1_000;
    let energy = |at: usize| samples[at..at + length].iter().map(|s| s * s).sum::<f32>();
    let best =
        (0..samples.len() - length).step_by(80).max_by(|a, b| energy(*a).total_cmp(&energy(*b))).unwrap();
    let pause = vec![0.0; (gap * RATE as f32) as usize];
    (0..count).flat_map(|_| samples[best..best + length].iter().copied().chain(pause.clone())).collect()
}

/// A sound over and over.
fn over_and_over(samples: &[f32], count: usize, gap: f32) -> Vec<f32> {
    let pause = vec![0.0; (gap * RATE as f32) as usize];
    (0..count).flat_map(|_| samples.iter().copied().chain(pause.clone())).collect()
}

fn question() -> Vec<f32> {
    let voice = Piper::load(&models().join("en_US-joe-medium.onnx"), PiperOptions::default()).unwrap();
    let mut sound: Vec<f32> = Vec::new();
    let spoken = voice.synthesize(QUESTION, "en", &mut |piece| {
        sound.extend(piece.iter().map(|sample| f32::from(*sample) / 32_768.0));
        std::ops::ControlFlow::Continue(())
    });
    spoken.unwrap();
    resample::resample(&sound, voice.sample_rate(), RATE).unwrap()
}

/// Sounds of nobody, made here or from the project's clips.
fn own_phantoms() -> Vec<Trial> {
    let sweep: Vec<f32> = (0..RATE * 3)
        .map(|n| {
            let t = n as f32 / RATE as f32;
            0.2 * (std::f32::consts::TAU * (700.0 * t + 250.0 * (t * 2.0).sin())).sin()
        })
        .collect();
    let german = own("de-tisch.wav");
    let mut trials = vec![
        Trial::new("silence", Kind::Phantom, vec![0.0; RATE as usize * 2]),
        Trial::new("hiss", Kind::Phantom, noise(3.0, 1.0)),
        Trial::new("rumble", Kind::Phantom, louder(&noise(3.0, 0.02), 12.0)),
        Trial::new("siren", Kind::Phantom, sweep),
        Trial::new("ringback-us", Kind::Phantom, tones(&[440.0, 480.0], 2.0, 4.0, 6.5)),
        Trial::new("ringback-uk", Kind::Phantom, tones(&[400.0, 450.0], 0.4, 0.2, 4.0)),
        Trial::new("busy", Kind::Phantom, tones(&[480.0, 620.0], 0.5, 0.5, 4.0)),
        Trial::new("ringback-eu", Kind::Phantom, tones(&[425.0], 1.0, 4.0, 6.0)),
        Trial::new("key-5", Kind::Phantom, tones(&[770.0, 1336.0], 0.2, 0.1, 1.0)),
        Trial::new("hold-music", Kind::Phantom, own("hold-music-phone.wav")),
        Trial::new("hold-music-faint", Kind::Phantom, louder(&own("hold-music-phone.wav"), -25.0)),
        Trial::new("cough", Kind::Phantom, own("cough.wav")),
        Trial::new("cough-phone", Kind::Phantom, telephone(&own("cough.wav"))),
        Trial::new("german", Kind::Phantom, german.clone()),
        Trial::new("german-phone", Kind::Phantom, telephone(&german)),
        Trial::new("slice-of-yes", Kind::Phantom, slices(&own("yes.wav"), 1, 0.1)),
        Trial::new("slices-of-yes", Kind::Phantom, slices(&own("yes.wav"), 6, 0.25)),
        Trial::new("slices-of-okay", Kind::Phantom, slices(&own("okay.wav"), 5, 0.4)),
        Trial::new("no-no-no", Kind::Phantom, over_and_over(&own("no.wav"), 12, 0.06)),
        Trial::new("no-no-no-slow", Kind::Phantom, over_and_over(&own("no.wav"), 5, 0.25)),
        Trial::new("yes-yes-yes", Kind::Open, over_and_over(&own("yes.wav"), 12, 0.05)),
    ];
    let back = question();
    for level in [-6.0, -20.0, -34.0] {
        let name = |what: &str| format!("question-back{what}{level}dB");
        trials.push(Trial::new(name(""), Kind::Echo, louder(&back, level)));
        trials.push(Trial::new(name("-phone"), Kind::Echo, louder(&telephone(&back), level)));
        // As a speakerphone with a long delay gives it back: after its end, whole.
        trials.push(Trial::new(name("-late"), Kind::Phantom, louder(&back, level)));
    }
    trials
}

/// Short answers, as they are, faint, over the telephone, and both.
fn own_answers() -> Vec<Trial> {
    let wanted = std::env::var("SAYBACK_TRIAL_ONLY").unwrap_or_default();
    let mut trials = Vec::new();
    for (name, kind) in [
        ("yes", Kind::Yes),
        ("yes-please", Kind::Yes),
        ("okay", Kind::Yes),
        ("no", Kind::No),
        ("nope", Kind::No),
    ] {
        let clip = own(&format!("{name}.wav"));
        trials.push(Trial::new(name, kind, clip.clone()));
        trials.push(Trial::new(format!("{name}-faint"), kind, louder(&clip, -22.0)));
        trials.push(Trial::new(format!("{name}-narrow"), kind, telephone(&clip)));
        trials.push(Trial::new(format!("{name}-narrow-faint"), kind, louder(&telephone(&clip), -18.0)));
    }
    for (name, kind) in [
        ("yes-phone", Kind::Yes),
        ("yes-noise-20", Kind::Yes),
        ("yes-room", Kind::Yes),
        ("okay-phone", Kind::Yes),
        ("yep-phone", Kind::Yes),
        ("nope-phone", Kind::No),
        ("no-phone", Kind::No),
    ] {
        trials.push(Trial::new(name, kind, own(&format!("{name}.wav"))));
    }
    trials.retain(|trial| trial.name.contains(&wanted));
    trials
}

#[test]
fn vc_39_sounds_of_nobody_never_answer() {
    if has_models() {
        let faults = run(&own_phantoms());
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

#[test]
fn vc_39_short_answers_at_a_low_level_and_over_the_telephone_still_do() {
    if has_models() {
        let faults = run(&own_answers());
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

/// Longest piece of a recording that is tried.
const PIECE: usize = RATE as usize * 4;

/// The recordings of a folder, cut into pieces.
fn recordings(folder: &Path) -> Vec<Trial> {
    let table = std::fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let column = |name: &str| head.iter().position(|head| *head == name).unwrap();
    let (file, cat, lang, transcript) = (column("file"), column("cat"), column("lang"), column("transcript"));
    let wanted = std::env::var("SAYBACK_TRIAL_ONLY").unwrap_or_default();
    let mut trials = Vec::new();
    for row in lines.map(|line| line.split('\t').collect::<Vec<_>>()) {
        let [Some(name), Some(cat), Some(lang), Some(words)] =
            [file, cat, lang, transcript].map(|column| row.get(column).copied())
        else {
            continue;
        };
        let Some(kind) = kind_of(cat, lang, words) else { continue };
        if !name.contains(&wanted) {
            continue;
        }
        let sound = read_audio(&folder.join(name)).unwrap().mono_at(RATE).unwrap();
        let stem = name.split('.').next().unwrap_or(name);
        trials.extend(pieces(stem, kind, &sound));
    }
    trials
}

/// What a row of the table is; `None`: it is not tried.
fn kind_of(cat: &str, lang: &str, words: &str) -> Option<Kind> {
    let bare = words.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    match (cat, bare.as_str()) {
        ("short" | "prompt", "no") if lang == "en" => Some(Kind::No),
        ("short", words) if lang == "en" && is_affirmation("en", words) => Some(Kind::Yes),
        ("backchannel", _) => Some(Kind::Open),
        ("noise" | "tones" | "machine" | "short" | "lang" | "telband" | "dates" | "commands", _) => {
            Some(Kind::Phantom)
        }
        _ => None,
    }
}

/// A sound at the level of the caller's first word: whoever answers is the one who spoke before.
fn of_the_caller(sound: &[f32]) -> Vec<f32> {
    louder(sound, active_level_dbfs(&own("yes.wav"), RATE) - active_level_dbfs(sound, RATE))
}

/// A short recording as it is, faint and over the telephone; of a long one the beginning, the middle and the end.
fn pieces(stem: &str, kind: Kind, sound: &[f32]) -> Vec<Trial> {
    let answers = matches!(kind, Kind::Yes | Kind::No);
    let levelled = answers.then(|| of_the_caller(sound));
    let sound = levelled.as_deref().unwrap_or(sound);
    let cut = |from: usize| sound[from..(from + PIECE).min(sound.len())].to_vec();
    let whole = Trial::new(stem, kind, cut(0));
    if sound.len() > PIECE {
        let middle = Trial::new(format!("{stem}-middle"), kind, cut((sound.len() - PIECE) / 2));
        let end = Trial::new(format!("{stem}-end"), kind, cut(sound.len() - PIECE));
        return vec![whole, middle, end];
    }
    if !answers {
        return vec![whole];
    }
    let narrow = Trial::new(format!("{stem}-narrow"), kind, of_the_caller(&telephone(sound)));
    let faint = Trial::new(format!("{stem}-faint"), kind, louder(sound, -12.0));
    vec![whole, narrow, faint]
}

#[test]
fn vc_39_recordings_of_a_folder() {
    let Some(folder) = std::env::var_os("SAYBACK_TRIAL_AUDIO").map(PathBuf::from) else { return };
    if has_models() {
        let faults = run(&recordings(&folder));
        assert!(faults.is_empty(), "{faults:#?}");
    }
}
