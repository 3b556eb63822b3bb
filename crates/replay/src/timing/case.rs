//! A timing case, resolved: times on the call clock, defaults filled in.

use std::time::Duration;

use sayback_core::{Adjacency, AfterHangup, QuestionBargeIn, Time, Verdict};
use serde::Deserialize;

/// One question, what the caller does, and what must come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimingCase {
    /// Its name.
    pub id: String,
    /// What it is about.
    pub note: String,
    /// The kind of line as the case names it: `fixture`, `local`, `rtp`, `ws-mark`, `chat`.
    pub transport: String,
    /// The settings in force.
    pub config: TimingConfig,
    /// The question and how it sounded.
    pub question: TimingQuestion,
    /// What happens, in the file's order, which need not be that of time.
    pub events: Vec<TimingEvent>,
    /// What must come of it.
    pub expect: TimingExpect,
}

/// The settings of a case; those that it does not name are the product's own defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimingConfig {
    /// Uncertainty of the line's clocks, added to its loop.
    pub eps: Duration,
    /// Least time between the complete answer and the run.
    pub grace: Duration,
    /// Quiet that ends a turn.
    pub endpoint: Duration,
    /// What speech inside the question does.
    pub question_barge_in: QuestionBargeIn,
    /// Whether the question must be the last thing heard.
    pub adjacency: Adjacency,
    /// What a yes is worth when the caller hangs up after it.
    pub after_hangup: AfterHangup,
    /// Whether keys answer.
    pub keypad: bool,
    /// How long a heard question can be answered; `None`: for ever.
    pub ttl: Option<Duration>,
    /// How much of a question may be lost.
    pub max_loss: Duration,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first moment.
    pub start: Time,
    /// Its end; not before `start`.
    pub end: Time,
}

/// How the question sounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimingQuestion {
    /// Its hold.
    pub hold: String,
    /// The sentences said before it in the same step.
    pub preamble: Vec<Span>,
    /// When its first sample sounds; `None`: it never does.
    pub play_start: Option<Time>,
    /// When its last audible sample sounds; `None`: it never does. Delays are already in it.
    pub last_audible: Option<Time>,
    /// When its buffer ends, silence included.
    pub buffer_end: Option<Time>,
    /// When its last audible sample was sent; `None`: when it sounds.
    pub sent_end: Option<Time>,
    /// The measured round trip; `None`: not measured.
    pub rtt: Option<Duration>,
    /// How much the far end holds back.
    pub remote_jb: Duration,
    /// The round trip assumed where none was measured.
    pub assumed_rtt: Option<Duration>,
    /// When the far end's mark came back.
    pub mark_echo: Option<Time>,
    /// Why it came back, if not because the sound was played: `clear`.
    pub mark_echo_cause: Option<String>,
    /// Playout stood still.
    pub paused: Vec<Span>,
    /// Playout ran dry.
    pub underruns: Vec<Span>,
    /// How much of it never sounded.
    pub lost: Duration,
    /// The line was on hold.
    pub line_hold: Vec<Span>,
    /// When its voice failed.
    pub failed_at: Option<Time>,
    /// How many samples came, where the case says so.
    pub samples: Option<u64>,
    /// When the output device went away.
    pub device_lost_at: Option<Time>,
    /// What to add to a raw input time to bring it onto the call clock, in microseconds.
    pub input_clock_offset_micros: i64,
    /// The conversation was stored just after the question and opened again.
    pub reopened: bool,
}

impl TimingQuestion {
    /// The whole loop of the line, without `eps`: `rtt + remote_jb`, else the assumed one, else nothing.
    pub fn whole_loop(&self) -> Duration {
        match self.rtt {
            Some(rtt) => rtt + self.remote_jb,
            None => self.assumed_rtt.unwrap_or(self.remote_jb),
        }
    }

    /// Brings a raw input time onto the call clock.
    pub fn on_call_clock(&self, raw: Time) -> Time {
        let span = Duration::from_micros(self.input_clock_offset_micros.unsigned_abs());
        if self.input_clock_offset_micros < 0 { raw - span } else { raw + span }
    }
}

/// One thing that happens in a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimingEvent {
    /// A stretch of caller sound.
    Segment(Spoken),
    /// Several stretches whose words come in one piece.
    Merged(Merged),
    /// Words so far.
    Partial {
        /// The words.
        text: String,
        /// When they come.
        at: Time,
    },
    /// The check's answer.
    Check {
        /// When it was asked, where the case says so.
        started: Option<Time>,
        /// When the answer comes.
        at: Time,
        /// What it is.
        reply: CheckReply,
    },
    /// A key.
    Digit {
        /// Which.
        digit: char,
        /// When it went down.
        at: Time,
    },
    /// The caller hangs up.
    HangUp {
        /// When.
        at: Time,
    },
    /// The model calls another tool, whose question takes this one's place.
    Replace {
        /// The new hold.
        hold: String,
        /// When.
        at: Time,
    },
    /// Other agent speech, a silence follow-up, or the question again.
    Played(PlayedSpeech),
    /// A typed message.
    Message {
        /// What was typed.
        text: String,
        /// When it was received.
        received: Time,
    },
    /// The tool runs, if it does.
    Handler(HandlerSpan),
}

/// A stretch of caller sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// When it begins.
    pub onset: Time,
    /// When it ends.
    pub offset: Time,
    /// Its words; empty if it has none.
    pub text: String,
    /// When its final comes; `None`: never.
    pub final_at: Option<Time>,
    /// It turned out to have no words.
    pub rejected: bool,
    /// It is the agent's own sound.
    pub echo: bool,
    /// `onset` and `offset` are on the input device's own clock; see [`TimingQuestion::on_call_clock`].
    pub raw: bool,
}

/// One final over several stretches of caller sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The stretches, each its own segment.
    pub segments: Vec<Span>,
    /// The words of all of them.
    pub text: String,
    /// When they come.
    pub final_at: Time,
}

/// What the check's model answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckReply {
    /// One of the three words.
    Verdict(Verdict),
    /// This text, to be read as the product reads it.
    Raw(String),
    /// Nothing in time.
    Timeout,
    /// An error.
    Error,
}

/// Agent speech beside the question's first asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedSpeech {
    /// When it sounds.
    pub span: Span,
    /// What it says; may be empty where it is the question.
    pub text: String,
    /// It is the question again, word for word.
    pub verbatim: bool,
    /// It is the silence follow-up, due at this time.
    pub followup: Option<Time>,
}

/// The stretch in which the tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerSpan {
    /// When it begins.
    pub start: Time,
    /// When it is done.
    pub end: Time,
}

/// What must come of a case. `None` is not asserted; `Some(None)` asserts that there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimingExpect {
    /// How the hold stands at the end.
    pub state: Option<State>,
    /// Why it was closed, as the event log says it.
    pub reason: Option<Option<String>>,
    /// How many checks were asked for.
    pub check_calls: Option<u32>,
    /// The words that the last check was about.
    pub check_words: Option<Option<String>>,
    /// How often the tool ran.
    pub tool_runs: Option<u32>,
    /// Whether the model was told what happened.
    pub model_told: Option<Told>,
    /// The words that the record says confirmed the run.
    pub evidence_words: Option<Option<String>>,
    /// The record's outcome.
    pub evidence: Option<Option<String>>,
    /// The answer horizon.
    pub horizon: Option<Option<Time>>,
    /// The answer's onset on the call clock.
    pub mapped_onset: Option<Option<Time>>,
    /// The number of the asking, from 1, that was answered.
    pub asked_playout: Option<u32>,
    /// Words that are kept as context.
    pub context_words: Option<Option<String>>,
    /// Words that are the next turn's input.
    pub next_turn_words: Option<Option<String>>,
    /// The hold that is there at the end.
    pub hold: Option<Option<String>>,
    /// Whether the question is asked again.
    pub reask: Option<Reask>,
}

/// How a hold stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its tool has run.
    Executed,
    /// The caller said no.
    Declined,
    /// It was closed without an answer.
    Dropped,
    /// There is none.
    Idle,
    /// It is not closed, being asked again included.
    Open,
}

/// What is expected of what the model was told.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Told {
    /// Whether it was told anything.
    Whether(bool),
    /// It was told something with this in it.
    Contains(String),
}

/// What is expected of asking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Reask {
    /// Whether it is asked again.
    Whether(bool),
    /// How often.
    Times(u32),
}
