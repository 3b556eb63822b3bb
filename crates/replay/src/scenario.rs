//! Scenario files, `NAME.call.toml`: what a caller does, what the model and the tools answer, and what must come of
//! it.
//!
//! A file is read in two levels. The first is the text as written, with the place of every key and value, so that
//! each fault can be named with its line; it refuses keys that do not exist. The second is [`Scenario`], in which
//! every default is filled in. All faults of a file are reported at once, since mending them one by one is tedious.
//!
//! Reading is pure: [`parse_scenario`] touches no file. Only [`load_scenario`] reads one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sayback_core::{EvidenceClass, Time, Verdict};
use serde_json::Value;

mod check;
mod expect;
mod fault;
pub(crate) mod numbers;
mod read;
mod vocabulary;
mod when;
mod written;

pub(crate) use check::around;
pub use check::{Failure, check_expectations};
pub use expect::{Expect, Expected, Matcher};
pub use fault::{Fault, ScenarioError};
pub use numbers::length_of_speech;
pub use read::parse_scenario;
pub use vocabulary::unknown_parts;
pub use when::{Anchor, AnchorEvent, When};

/// How long a scenario may run on the call clock if the file does not say.
///
/// Generous for a call, and short enough that a call in which nothing happens any more ends.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(120);

/// One scenario, resolved: every default is filled in and every path is relative to the working directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The file it was read from; for messages.
    pub path: PathBuf,
    /// What it shows, in one sentence.
    pub title: String,
    /// The agent's file.
    pub agent: PathBuf,
    /// Line and column at which the file names it; for messages.
    pub agent_at: (usize, usize),
    /// Whether the caller's sound or its text is used, unless the command line says otherwise.
    pub speech: SpeechMode,
    /// How sound travels.
    pub line: LinePath,
    /// What the caller does, in the file's order.
    pub callers: Vec<CallerAct>,
    /// The model's steps, in order; `None`: the agent's own model answers.
    pub model: Option<Vec<ModelStep>>,
    /// The check's answers, in order; `None`: the agent's own model gives them.
    pub checks: Option<Vec<CheckStep>>,
    /// What operators answer, in order; an approval without an entry stays open.
    pub approvals: Vec<ApprovalStep>,
    /// What tools answer. Several entries of one name answer its calls in order, and the last goes on answering;
    /// a tool without an entry runs as the agent file says.
    pub tools: Vec<ToolScript>,
    /// What goes wrong with the agent's voice.
    pub tts_faults: Vec<TtsFault>,
    /// What goes wrong with the far end's word on what it has played.
    pub ack_faults: Vec<AckFault>,
    /// What must come of it.
    pub expects: Vec<Expect>,
    /// When the caller hangs up at the latest, on the call clock; `None`: when nothing is left to happen.
    pub end_at: Option<Time>,
    /// How long the call may last; a run that reaches it is cut there.
    pub limit: Duration,
}

/// What stands for the caller's voice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeechMode {
    /// Each line's text is its transcript and its length its speech; no model is loaded.
    #[default]
    Text,
    /// The clips are played into real voice activity detection and recognition, and the agent speaks aloud.
    Audio,
}

/// How sound travels between the agent and the caller; it decides by which clock a question was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePath {
    /// The kind of line.
    pub transport: Transport,
    /// There and back; `None`: not measured, so the agent's assumed loop counts (for `local` and `chat` there is
    /// none to measure, and it is zero).
    pub round_trip: Option<Duration>,
    /// How much the far end holds back before it plays.
    pub output_buffer: Duration,
    /// How it is known what the caller heard; the transport's own if the file does not say.
    pub evidence: EvidenceClass,
}

/// The kind of line a scenario's call comes in on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Microphone and speaker of this machine.
    #[default]
    Local,
    /// A telephone call over SIP.
    Sip,
    /// A browser.
    WebRtc,
    /// A provider's media stream over a WebSocket.
    MediaStream,
    /// Typed messages.
    Chat,
}

impl Transport {
    /// All of them, for lists in messages.
    pub const ALL: [Self; 5] = [Self::Local, Self::Sip, Self::WebRtc, Self::MediaStream, Self::Chat];

    /// The name as scenario files and the event log write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Sip => "sip",
            Self::WebRtc => "webrtc",
            Self::MediaStream => "media-stream",
            Self::Chat => "chat",
        }
    }

    /// How such a line knows what was heard, if nothing better is declared. SIP counts as a trunk: its reports say
    /// nothing of the leg behind it.
    pub const fn evidence(self) -> EvidenceClass {
        match self {
            Self::Local => EvidenceClass::Device,
            Self::Sip => EvidenceClass::Assumed,
            Self::WebRtc => EvidenceClass::Page,
            Self::MediaStream => EvidenceClass::Mark,
            Self::Chat => EvidenceClass::Virtual,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing the caller does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerAct {
    /// Line of the file, from 1; for messages.
    pub line: usize,
    /// When its sound reaches our input.
    pub when: When,
    /// What it is.
    pub act: Act,
}

/// What a caller can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Says something.
    Speech(Speech),
    /// Makes a sound that voice activity detection takes for speech and that has no words: a cough, music.
    Noise {
        /// How long, in text mode.
        length: Duration,
        /// The clip, in audio mode; without one a speech-like noise of that length is made.
        audio: Option<PathBuf>,
    },
    /// Presses a key: `0`-`9`, `*`, `#`, `A`-`D`.
    Digit(char),
    /// Types a message.
    Message(String),
    /// Hangs up.
    HangUp,
    /// Puts the agent on hold for this long: nothing that it says meanwhile is heard.
    Hold(Duration),
    /// Takes the conversation back: to just after the last question that was heard, or to its beginning.
    Rewind(RewindTo),
    /// The program ends without a word, whatever it is doing, and the stored conversation is opened again. Text mode only.
    Reopen,
}

/// Where a conversation is taken back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindTo {
    /// Just after the last question that was heard.
    Question,
    /// Its beginning.
    Start,
}

/// Something that the caller says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speech {
    /// The words; in text mode they are the transcript.
    pub text: String,
    /// The clip for audio mode; without one the line can be used in text mode only.
    pub audio: Option<PathBuf>,
    /// How long it lasts in text mode.
    pub length: Duration,
    /// How long after the end of speech its final words arrive.
    pub transcript_delay: Duration,
    /// How sure the recogniser says it is, in percent; `None`: it does not say.
    pub confidence: Option<u8>,
    /// It is the agent's own sound coming back, not the caller.
    pub echo: bool,
}

/// One step of a scripted model: a text, calls, or a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelStep {
    /// Line of the file, from 1; for messages.
    pub line: usize,
    /// What it says before its calls.
    pub say: Option<String>,
    /// The tools it calls, in order.
    pub calls: Vec<ScriptedCall>,
    /// What it says after its calls.
    pub say_after: Option<String>,
    /// How long it takes before its first piece.
    pub delay: Duration,
    /// How it fails, after what it says and calls.
    pub error: Option<ScriptedError>,
}

/// A tool call of a scripted model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments as JSON text; a file may write text of its own that is no JSON.
    pub input: String,
}

/// How something scripted fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptedError {
    /// It never answers, so that the limit decides. Written `error = "timeout"`.
    Timeout,
    /// It fails with this message.
    Message(String),
}

/// One answer of a scripted check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckStep {
    /// Line of the file, from 1; for messages.
    pub line: usize,
    /// What it answers.
    pub answer: ScriptedAnswer,
    /// How long it takes.
    pub delay: Duration,
}

/// What a scripted check answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptedAnswer {
    /// One of the three words.
    Verdict(Verdict),
    /// Any other text.
    Text(String),
    /// Nothing.
    Error(ScriptedError),
}

/// One answer of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalStep {
    /// Line of the file, from 1; for messages.
    pub line: usize,
    /// Only for this tool; `None`: for whichever is asked about next.
    pub tool: Option<String>,
    /// What becomes of it; `None`: nobody answers.
    pub outcome: Option<sayback_core::ApprovalOutcome>,
    /// How long they take.
    pub delay: Duration,
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolScript {
    /// Line of the file, from 1; for messages.
    pub line: usize,
    /// The tool.
    pub name: String,
    /// Its answer.
    pub answer: ToolAnswer,
    /// How long it takes.
    pub delay: Duration,
}

/// A scripted tool's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolAnswer {
    /// It runs and returns this: `{ ok, message }`, or any JSON.
    Result(Value),
    /// It fails, or never returns.
    Error(ScriptedError),
    /// The exchange breaks off: nobody knows whether it happened.
    BrokeOff,
}

/// Which pieces of agent speech a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Only questions, or only other speech; `None`: both.
    pub kind: Option<sayback_core::UtteranceKind>,
    /// Only the n-th of that kind, from 1; `None`: every one.
    pub occurrence: Option<u32>,
}

/// A point within a piece of speech.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// This share of its length, 0 to 100.
    Percent(u8),
    /// This long after its first sample.
    After(Duration),
}

impl Point {
    /// Where it lies in a piece of that length, from its first sample; never behind its end.
    pub fn within(self, length: Duration) -> Duration {
        match self {
            Self::Percent(percent) => length * u32::from(percent.min(100)) / 100,
            Self::After(after) => after.min(length),
        }
    }
}

/// Something that goes wrong with the agent's voice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TtsFault {
    /// Line of the file, from 1; for messages.
    pub line: usize,
    /// Where it strikes.
    pub on: Target,
    /// It fails there, and nothing more comes; at zero no sample comes at all.
    pub fail_at: Option<Point>,
    /// Its sound ends in this much silence.
    pub silence_tail: Duration,
    /// Playout runs dry there for that long; no sample is lost, the end moves.
    pub gap: Option<(Point, Duration)>,
    /// That much of it is lost on the way.
    pub lost: Duration,
    /// Its first sample is this late.
    pub delay: Duration,
}

/// Something that goes wrong with the far end's word on what it has played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckFault {
    /// Line of the file, from 1; for messages.
    pub line: usize,
    /// Where it strikes.
    pub on: Target,
    /// It comes this much late.
    pub delay: Duration,
    /// It never comes.
    pub lose: bool,
    /// It comes twice.
    pub duplicate: bool,
    /// What comes for speech that was thrown away.
    pub after_clear: AfterClear,
    /// It comes behind the word on the next piece that is played; never, if there is none.
    pub reorder: bool,
    /// When the piece begins to sound, the word on the piece before it comes once more.
    pub earlier: bool,
}

/// What the far end says of speech that was thrown away before it sounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterClear {
    /// Nothing.
    #[default]
    Silent,
    /// That it was played, as some providers do.
    Echo,
}

/// Reads one scenario file.
///
/// # Errors
/// The file cannot be read, or it has faults: all of them are in the error, with their lines.
pub fn load_scenario(path: &Path) -> Result<Scenario, ScenarioError> {
    let bytes =
        std::fs::read(path).map_err(|source| ScenarioError::Unreadable { path: path.to_owned(), source })?;
    let text =
        sayback_runtime::fault::utf8(path, bytes).map_err(|fault| ScenarioError::Faults(vec![fault]))?;
    parse_scenario(&text, path)
}
