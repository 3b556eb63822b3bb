//! A caller of `sayback talk`: the built program on virtual devices, and a telephone at the other end of them.
//!
//! The caller's telephone is a microphone line of the test's own, turned around: it plays into the virtual microphone
//! and listens to what the virtual speaker plays. So both directions are stamped by the devices on the test's clock, and
//! what the program says of itself is held against what really sounded.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sayback_core::{PlayoutEvent, Time, UtteranceId};
use sayback_media::clip::read_audio;
use sayback_media::pcm;
use sayback_providers::piper::{Piper, PiperOptions};
pub(crate) use sayback_rig::has_models;
use sayback_rig::{Rig, models};
use sayback_runtime::clock::Clock;
use sayback_runtime::tts::Synthesize;
use sayback_transports::mic::{DeviceChoice, EchoMode, LineFact, MicLine, MicOptions};
use serde_json::{Value, json};

/// Nothing in a call takes longer than this, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A sample louder than this is sound; the virtual devices are free of noise.
const LOUD: f32 = 0.01;

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/sayback lies in it").to_path_buf()
}

/// A recording of the caller.
pub(crate) fn recorded(name: &str) -> (u32, Vec<i16>) {
    let clip = read_audio(&repository().join("tests/audio").join(name)).unwrap();
    let mut samples = Vec::new();
    pcm::extend_i16(&mut samples, &clip.mixed_down());
    (clip.rate, samples)
}

/// What the agent's voice makes of a text: its samples at its rate. The same text gives the same samples.
pub(crate) fn spoken(text: &str) -> (u32, Vec<i16>) {
    let voice = Piper::load(&models().join("en_US-joe-medium.onnx"), PiperOptions::default()).unwrap();
    let mut samples = Vec::new();
    voice
        .synthesize(text, "en", &mut |piece| {
            samples.extend_from_slice(piece);
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    (voice.sample_rate(), samples)
}

/// Blocks of 10 ms at 16 kHz, each with when it sounded.
type Blocks = Vec<(Time, Vec<f32>)>;

/// The caller's telephone.
pub(crate) struct Phone {
    line: Arc<MicLine>,
    clock: Clock,
    heard: Arc<Mutex<Blocks>>,
    playout: Receiver<PlayoutEvent>,
    said: u32,
}

impl Phone {
    /// Takes the receiver off the hook. `origin` is the zero of its clock.
    pub(crate) fn new(clock: Clock) -> Self {
        let named = |name: &str| DeviceChoice { name: Some(name.to_owned()), ..DeviceChoice::default() };
        let options = MicOptions {
            input: named("speaker_tap"),
            output: named("feed"),
            calibration: None,
            echo: EchoMode::None,
        };
        let (line, mut facts) = MicLine::open(options, Arc::new(move || clock.now())).unwrap();
        let heard: Arc<Mutex<Blocks>> = Arc::default();
        let (news, playout) = channel();
        let ear = Arc::clone(&heard);
        std::thread::spawn(move || {
            while let Some(fact) = facts.blocking_recv() {
                match fact {
                    LineFact::Heard(block) => ear.lock().unwrap().push((block.start, block.samples)),
                    LineFact::Playout(event) => drop(news.send(event)),
                    LineFact::Line(event) => eprintln!("the caller's telephone: {event:?}"),
                }
            }
        });
        Self { line: Arc::new(line), clock, heard, playout, said: 0 }
    }

    /// The clock that it stamps with.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Says something, and gives when it begins to sound.
    pub(crate) fn say(&mut self, (rate, samples): &(u32, Vec<i16>)) -> Time {
        self.said += 1;
        let id = UtteranceId(self.said);
        self.line.begin(id, *rate).unwrap();
        assert!(self.line.push(id, samples).is_continue());
        self.line.finish(id);
        loop {
            let news = self.playout.recv_timeout(LIMIT).expect("the telephone plays");
            if let PlayoutEvent::Failed { failure, .. } = &news {
                panic!("the telephone does not play: {failure:?}");
            }
            if let PlayoutEvent::Started { utterance, at } = news
                && utterance == id
            {
                return at;
            }
        }
    }

    /// Says something so that it begins to sound at `at`.
    pub(crate) fn say_at(&mut self, at: Time, (rate, samples): &(u32, Vec<i16>)) -> Time {
        // Silence in front instead of a wait in front: the device counts it exactly.
        let wait = at.since(self.clock.now() + PICKUP);
        let silence = (wait.as_micros() * u128::from(*rate) / 1_000_000) as usize;
        let mut sound = vec![0i16; silence];
        sound.extend_from_slice(samples);
        let began = self.say(&(*rate, sound));
        began + Duration::from_micros(silence as u64 * 1_000_000 / u64::from(*rate))
    }

    fn heard(&self) -> MutexGuard<'_, Blocks> {
        self.heard.lock().unwrap()
    }

    /// The first stretch without sound of at least `length` at or after a time: where it begins.
    pub(crate) fn silent_from(&self, from: Time, length: Duration) -> Option<Time> {
        let heard = self.heard();
        let mut since = from;
        for (start, samples) in heard.iter().filter(|(start, _)| *start >= from) {
            let end = *start + Duration::from_millis(10);
            if samples.iter().any(|sample| sample.abs() > LOUD) {
                since = end;
            } else if end.since(since) >= length {
                return Some(since);
            }
        }
        None
    }

    /// All that was heard from a time on, as one piece of 16 kHz sound, and when it begins.
    pub(crate) fn recording(&self, from: Time, to: Time) -> (Time, Vec<f32>) {
        let heard = self.heard();
        let blocks: Vec<_> = heard.iter().filter(|(start, _)| *start >= from && *start < to).collect();
        let start = blocks.first().map_or(from, |(start, _)| *start);
        (start, blocks.into_iter().flat_map(|(_, samples)| samples.iter().copied()).collect())
    }
}

/// From handing sound to the telephone to its sounding, about: what [`Phone::say_at`] allows for.
const PICKUP: Duration = Duration::from_millis(40);

/// The program in a call.
pub(crate) struct Call {
    child: Child,
    events: Receiver<(Time, Value)>,
    stderr: Arc<Mutex<String>>,
    recording: PathBuf,
    log: Vec<(Time, Value)>,
    taken: usize,
}

impl Call {
    /// Starts `sayback talk` with the clinic's agent and a scripted model.
    pub(crate) fn start(rig: &Rig, clock: Clock, echo: &str, script: &[Value]) -> Self {
        Self::start_with(rig, clock, script, &["--echo", echo])
    }

    /// The same with any arguments. Conversations are stored in the rig's folder.
    pub(crate) fn start_with(rig: &Rig, clock: Clock, script: &[Value], arguments: &[&str]) -> Self {
        let folder = rig.folder();
        let text = std::fs::read_to_string(repository().join("configs/clinic.toml")).unwrap();
        let agent = text.replace("provider = \"local\"", "provider = \"scripted\"");
        assert_ne!(agent, text, "the clinic's model is replaced");
        let agent = agent.replace("redact = [\"phone\", \"email\"]", "redact = []");
        std::fs::write(folder.join("agent.toml"), agent).unwrap();
        let steps: String = script.iter().map(|step| format!("{step}\n")).collect();
        std::fs::write(folder.join("script.jsonl"), steps).unwrap();
        // A pipe with a name in place of a file: whoever reads it waits for the next line instead of polling.
        let log = folder.join("events.jsonl");
        let _ = std::fs::remove_file(&log);
        assert!(Command::new("mkfifo").arg(&log).status().unwrap().success());
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayback"));
        command.arg("talk").arg(folder.join("agent.toml")).arg("--script").arg(folder.join("script.jsonl"));
        command.arg("--events").arg(&log).args(["--input", "microphone", "--output", "speaker"]);
        command.arg("--store").arg(folder.join("conversations.db"));
        command.args(arguments).env("SAYBACK_MODELS", models());
        let recording = folder.join("recording");
        let _ = std::fs::remove_dir_all(&recording);
        command.arg("--record").arg(&recording);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr: Arc<Mutex<String>> = Arc::default();
        let said = Arc::clone(&stderr);
        let errors = child.stderr.take().expect("it is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                said.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let (send, events) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(std::fs::File::open(log).unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("each line is JSON");
                if send.send((clock.now(), event)).is_err() {
                    return;
                }
            }
        });
        Self { child, events, stderr, recording, log: Vec::new(), taken: 0 }
    }

    /// Waits for the next event of a name, and gives it.
    pub(crate) fn until(&mut self, name: &str) -> Value {
        self.until_any(&[name])
    }

    /// Waits for the next event of one of these names.
    pub(crate) fn until_any(&mut self, names: &[&str]) -> Value {
        loop {
            while self.taken < self.log.len() {
                self.taken += 1;
                let event = &self.log[self.taken - 1].1;
                if names.iter().any(|name| event["event"] == *name) {
                    return event.clone();
                }
            }
            match self.events.recv_timeout(LIMIT) {
                Ok(line) => self.log.push(line),
                Err(RecvTimeoutError::Timeout) => panic!("no {names:?}\n{}", self.story()),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the call ended without {names:?}\n{}", self.story())
                }
            }
        }
    }

    /// Everything so far, for people.
    pub(crate) fn story(&self) -> String {
        let lines: String =
            self.log.iter().map(|(at, line)| format!("{:9.1} {line}\n", at.as_millis_f64())).collect();
        format!("{lines}--- standard error\n{}", self.stderr.lock().unwrap())
    }

    /// What it wrote to standard error.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// All events of a name so far.
    pub(crate) fn all(&self, name: &str) -> Vec<Value> {
        self.log.iter().filter(|(_, line)| line["event"] == name).map(|(_, line)| line.clone()).collect()
    }

    /// A time of its log on the test's clock. The line that came through quickest tells when its clock began.
    pub(crate) fn at(&self, field: &Value) -> Time {
        let late = |(at, line): &(Time, Value)| at.as_millis_f64() - line["t_ms"].as_f64().unwrap();
        let origin = self.log.iter().map(late).fold(f64::INFINITY, f64::min);
        Time::from_micros(((origin + field.as_f64().unwrap()) * 1_000.0) as u64)
    }

    /// Where it is recorded.
    pub(crate) fn recording(&self) -> &Path {
        &self.recording
    }

    /// Presses Ctrl-C, and gives how it ended.
    pub(crate) fn interrupt(&mut self) -> ExitStatus {
        let kill = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        self.ended()
    }

    /// Waits for its end; takes the rest of the log.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        loop {
            match self.events.recv_timeout(LIMIT) {
                Ok(line) => self.log.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end\n{}", self.story()),
            }
        }
        self.child.wait().unwrap()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The model's step that books what [`recorded`]`("book.wav")` asks for.
pub(crate) fn booking() -> Value {
    json!({"call": {"tool": "book_appointment", "input": {"start": "2026-12-03T15:00", "email": "anna@example.com"}}})
}
