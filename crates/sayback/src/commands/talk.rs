//! `sayback talk`, `devices` and `calibrate`: a call on this machine's microphone and speaker.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args as ClapArgs;
use sayback_agentfile::AgentFile;
use sayback_core::{CallStart, Event, Interval, SegmentId, Session, Speak, Time, UtteranceId};
use sayback_runtime::clock::{Clock, unix_seconds};
use sayback_runtime::driver::{Driver, Parts, Screen};
use sayback_runtime::ears::{EarEngines, Ears, Heard, Listener, ears};
use sayback_runtime::line::Line;
use sayback_runtime::llm::Llm;
use sayback_runtime::record::Recorder;
use sayback_runtime::voice::{Player, Voice};
use sayback_transports::mic::{
    CalibrationFile, CallClock, DeviceChoice, Direction, EchoMode, LineEvent, LineFact, MicError, MicLine,
    MicOptions, chosen,
};
use serde_json::Value;

use super::stored::Opened;
use crate::answered::Answered;
use crate::engines::{Grounding, Waits, load_agent, sound, warmed_llm};
use crate::exit::Stop;

#[derive(Debug, ClapArgs)]
pub(crate) struct DeviceArgs {
    /// The microphone, by the name that `sayback devices` shows
    #[arg(long, value_name = "DEVICE")]
    input: Option<String>,
    /// The speaker
    #[arg(long, value_name = "DEVICE")]
    output: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The agent file
    #[arg(default_value = "configs/clinic.toml")]
    agent: PathBuf,
    #[command(flatten)]
    devices: DeviceArgs,
    /// What is done about the agent's own sound in the microphone
    #[arg(long, value_enum, default_value = "cancel")]
    echo: Echo,
    /// Steps and verdicts for a scripted model, one JSON object a line
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Writes the event log as JSON lines
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Goes on with a stored conversation; a question that it ended with is said again first
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// Where conversations are stored
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Records the call in this folder: sound, journal, events, evidence
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Echo {
    /// Computed out: both may speak at once
    Cancel,
    /// Recognition does not listen while the agent is heard
    HalfDuplex,
    /// Headphones
    None,
}

fn missing(error: MicError) -> Stop {
    Stop::missing(error)
}

fn calibration_path() -> PathBuf {
    let base = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")));
    base.unwrap_or_else(|| PathBuf::from(".")).join("sayback/devices.toml")
}

fn choice(name: &Option<String>) -> DeviceChoice {
    DeviceChoice { name: name.clone(), ..DeviceChoice::default() }
}

pub(crate) fn devices() -> Result<u8, Stop> {
    for device in sayback_transports::mic::devices().map_err(missing)? {
        let mark = if device.default { "*" } else { " " };
        let rates: Vec<String> = device.rates.iter().map(|(low, high)| format!("{low}-{high} Hz")).collect();
        let what = device.problem.clone().unwrap_or_else(|| rates.join(", "));
        out!("{mark} {:<6} {}  ({})  {what}", device.direction.name(), device.name, device.description);
    }
    out!("* is taken if none is chosen");
    Ok(0)
}

pub(crate) fn calibrate(args: &DeviceArgs) -> Result<u8, Stop> {
    let options = MicOptions {
        input: choice(&args.input),
        output: choice(&args.output),
        calibration: None,
        echo: EchoMode::None,
    };
    out!("A chirp is played three times. Please be quiet for three seconds.");
    let (input, output) = names(&options)?;
    let found = sayback_transports::mic::calibrate(options, call_clock(Clock::start())).map_err(missing)?;
    let mut file = CalibrationFile::read(&calibration_path()).map_err(missing)?;
    file.store(&input, &output, found).map_err(missing)?;
    out!(
        "{input} hears {output} after {:.1} ms (match {:.2}); stored in {}",
        found.delay_ms,
        found.confidence,
        calibration_path().display()
    );
    Ok(0)
}

/// The names of the devices that these options open.
fn names(options: &MicOptions) -> Result<(String, String), Stop> {
    let input = chosen(&options.input, Direction::Input).map_err(missing)?;
    let output = chosen(&options.output, Direction::Output).map_err(missing)?;
    Ok((input, output))
}

fn call_clock(clock: Clock) -> CallClock {
    Arc::new(move || clock.now())
}

/// Which devices, with what was measured of them.
fn options(args: &Args) -> Result<MicOptions, Stop> {
    let mut options = MicOptions {
        input: choice(&args.devices.input),
        output: choice(&args.devices.output),
        calibration: None,
        echo: match args.echo {
            Echo::Cancel => EchoMode::Cancel,
            Echo::HalfDuplex => EchoMode::HalfDuplex,
            Echo::None => EchoMode::None,
        },
    };
    let (input, output) = names(&options)?;
    options.calibration = CalibrationFile::read(&calibration_path()).map_err(missing)?.get(&input, &output);
    Ok(options)
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let mut file = load_agent(&args.agent)?;
    // Before the models are loaded, which takes a while: a device that is missing is said at once.
    let options = options(args)?;
    let engines = sound(&file)?;
    file.agent.policy.turn.judged = engines.end_of_turn.is_some();
    let waits = Waits::new()?;
    let store = super::stored::open(args.store.as_deref())?;
    let model = Answered::new(warmed_llm(&waits, &file, args.script.as_deref())?);
    let redactor = super::record::redactor(&file);
    let mut observers = super::log::observers(args.events.as_deref(), redactor.clone())?;
    let fresh = || format!("talk-{}-{}", unix_seconds(), std::process::id());
    let opened = Opened::new(&store, &file.agent.name, args.resume.as_deref(), fresh, redactor)?;
    let clock = Clock::start();
    let (line, facts) = MicLine::open(options, call_clock(clock)).map_err(missing)?;
    let (input, output) = line.devices();
    eprintln!("{}: microphone {input}, speaker {output}. Ctrl-C hangs up.", file.agent.name);
    let recorder = super::record::begin(args.record.as_deref(), &file, &opened.id, "local")?;
    observers.extend(recorder.as_ref().map(|recorder| recorder.observer()));
    let mic = Arc::new(line);
    let voice = Voice::new(Arc::clone(&engines.tts), Arc::new(MicPlayer(Arc::clone(&mic))));
    let screen = screen(&file);
    let parts = Parts {
        agent: Arc::new(file.agent),
        llm: Arc::clone(&model) as Arc<dyn Llm>,
        screen,
        line: Box::new(TalkLine { mic, voice, ears: None, status: Status::new() }),
        observers,
        call: opened.id.clone(),
        clock,
    };
    let ear_engines = EarEngines { vad: (engines.vad)(), stt: engines.stt, end_of_turn: engines.end_of_turn };
    let session = waits.runtime().block_on(hold(parts, &opened, (ear_engines, facts, recorder.clone())));
    // Neither keeps the other from being written.
    let recorded = super::record::end(recorder.as_ref());
    waits.runtime().block_on(opened.close(&session))?;
    recorded?;
    out!("The call is over. Go on with it: sayback talk {} --resume {}", args.agent.display(), opened.id);
    model.at_last()?;
    Ok(0)
}

/// Holds the call to its end.
async fn hold(
    parts: Parts,
    opened: &Opened,
    (engines, facts, recorder): (EarEngines, tokio::sync::mpsc::Receiver<LineFact>, Option<Recorder>),
) -> Session {
    let start = CallStart {
        transport: "local".to_owned(),
        call: parts.call.clone(),
        language: parts.agent.language.clone(),
        greeting: parts.agent.greeting.clone(),
        chat: false,
    };
    let (mut driver, sender) = Driver::new(parts);
    driver.write_to(Arc::clone(&opened.journal));
    let (ear, listener) = ears(engines, sender.clone());
    driver.listen(listener);
    let hear = sender.clone();
    std::thread::spawn(move || take_facts(facts, ear, recorder, &hear));
    let hang_up = sender.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            let _ = hang_up.send(Event::HungUp).await;
        }
    });
    if let Some(before) = opened.before.clone() {
        let _ = sender.send(Event::Reopened(before)).await;
    }
    let _ = sender.send(Event::CallStarted(start)).await;
    driver.run().await
}

fn screen(file: &AgentFile) -> Option<Arc<dyn Screen>> {
    file.llm.may_be_local().then(|| Arc::new(Grounding::new()) as Arc<dyn Screen>)
}

/// Everything that the line tells, to where it belongs.
fn take_facts(
    mut facts: tokio::sync::mpsc::Receiver<LineFact>,
    mut ear: Ears,
    recorder: Option<Recorder>,
    call: &tokio::sync::mpsc::Sender<Event>,
) {
    while let Some(fact) = facts.blocking_recv() {
        let sent = match fact {
            LineFact::Heard(block) => {
                if let Some(recorder) = &recorder {
                    recorder.hear(block.start, &block.raw, &block.played);
                }
                ear.hear(Heard {
                    start: block.start,
                    samples: &block.samples,
                    raw: &block.raw,
                    played: &block.played,
                    gated: block.gated,
                });
                Ok(())
            }
            LineFact::Playout(event) => call.blocking_send(Event::Playout(event)),
            LineFact::Line(event) => {
                on_device(event, &mut ear);
                Ok(())
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

fn on_device(event: LineEvent, ear: &mut Ears) {
    match event {
        LineEvent::InputLost { message } | LineEvent::OutputLost { message } => {
            eprintln!("\nsayback: {message}")
        }
        LineEvent::InputBack { device } => eprintln!("\nsayback: listening on {device} again"),
        LineEvent::OutputBack { device } => eprintln!("\nsayback: speaking on {device} again"),
        LineEvent::Censored { from, to } => ear.lost(from, to),
    }
}

struct MicPlayer(Arc<MicLine>);

impl Player for MicPlayer {
    fn begin(&self, utterance: UtteranceId, rate: u32) {
        if let Err(error) = self.0.begin(utterance, rate) {
            tracing::error!("{error}");
            self.0.fail(utterance);
        }
    }

    fn push(&self, utterance: UtteranceId, samples: &[i16]) -> ControlFlow<()> {
        self.0.push(utterance, samples)
    }

    fn finish(&self, utterance: UtteranceId) {
        self.0.finish(utterance);
    }

    fn fail(&self, utterance: UtteranceId) {
        self.0.fail(utterance);
    }

    fn clear(&self) {
        self.0.clear();
    }
}

struct TalkLine {
    mic: Arc<MicLine>,
    voice: Voice,
    ears: Option<Listener>,
    status: Status,
}

impl Line for TalkLine {
    fn speak(&mut self, speak: Speak) {
        self.voice.speak(speak);
    }

    fn pause(&mut self) {
        self.mic.pause();
    }

    fn resume(&mut self) {
        self.mic.resume();
    }

    fn clear(&mut self) {
        self.voice.clear();
    }

    fn listen(&mut self, listener: Listener) {
        self.ears = Some(listener);
    }

    fn open_segment(&mut self, segment: SegmentId, onset: Interval) {
        if let Some(ears) = &self.ears {
            ears.open(segment, onset);
        }
    }

    fn close_segment(&mut self, segment: SegmentId, offset: Time) {
        if let Some(ears) = &self.ears {
            ears.close(segment, offset);
        }
    }

    fn on_event(&mut self, line: &Value) {
        self.status.event(line);
    }

    fn on_state(&mut self, session: &Session) {
        self.status.state(session);
    }
}

/// What a person at the terminal sees: the conversation, and one live line below it.
struct Status {
    live: bool,
    shown: String,
}

impl Status {
    fn new() -> Self {
        Self { live: std::io::stderr().is_terminal(), shown: String::new() }
    }

    fn event(&mut self, line: &Value) {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let shown = match line["event"].as_str() {
            Some("caller.turn") => format!("you    {}", text("text")),
            Some("agent.heard") => {
                format!("agent  {}{}", text("text"), if line["complete"] == true { "" } else { " …" })
            }
            Some("question.heard") => "       (the question has been heard; it is open)".to_owned(),
            Some("question.dropped") => format!("       (the question was dropped: {})", text("reason")),
            Some("tool.started") => match line["confirmed_by"].as_str() {
                Some(by) => format!("tool   {} {} on {by:?}", text("tool"), line["input"]),
                None => format!("tool   {} {}", text("tool"), line["input"]),
            },
            Some("model.failed") => format!("       (the model failed: {})", text("error")),
            _ => return,
        };
        self.wipe();
        out!("{shown}");
    }

    fn state(&mut self, session: &Session) {
        if !self.live {
            return;
        }
        let state = match session.open_question() {
            Some((_, question, true)) => format!("waiting for yes or no: {question}"),
            Some((_, question, false)) => format!("asking: {question}"),
            None if session.is_idle() => "listening".to_owned(),
            None => "busy".to_owned(),
        };
        if state != self.shown {
            self.wipe();
            let short: String = state.chars().take(100).collect();
            eprint!("\r[{short}]");
            let _ = std::io::stderr().flush();
            self.shown = state;
        }
    }

    fn wipe(&mut self) {
        if self.live && !self.shown.is_empty() {
            eprint!("\r\x1b[2K");
            self.shown.clear();
        }
    }
}
