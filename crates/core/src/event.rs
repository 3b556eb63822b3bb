//! What can happen to a call: the closed set of facts that the core is told.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::approval::{Approval, PendingApproval, SettledApproval};
use crate::context::Item;
use crate::ids::{CallId, CheckId, GenerationId, HoldId, SegmentId, UtteranceId};
use crate::time::{Interval, LoopDelay, Time};

/// One fact. Every event is journaled as it is handed in, and the journal replays to the same commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type", content = "data")]
pub enum Event {
    /// The line is up. The greeting, if any, is said now.
    CallStarted(CallStart),
    /// The caller is gone. Playout stops; what was answered before may still run.
    HungUp,
    /// The way to the caller is gone and did not come back in time. The same as [`Event::HungUp`], but nobody chose it, and
    /// the log says so.
    LineLost,
    /// An outbound call is up to whoever answers it, and nobody has yet: it rings, or a machine or a greeting speaks.
    /// Until [`Event::Answered`] no question is asked (VC-84).
    Unanswered,
    /// A person has answered the outbound call.
    Answered,
    /// The far end put us on hold: nothing said now is heard.
    LineHeld,
    /// The far end took us off hold.
    LineResumed,
    /// One frame of caller sound, judged by voice activity detection. The core cuts segments from these.
    Voice(VoiceFrame),
    /// A segment began. For lines that cut segments themselves (text scenarios); others send `Voice`.
    SpeechStarted {
        /// The new segment; ids grow.
        segment: SegmentId,
        /// When its sound began, on the input clock: retroactive, not when it was detected.
        onset: Interval,
    },
    /// A segment ended.
    SpeechEnded {
        /// Which one.
        segment: SegmentId,
        /// When its sound ended.
        offset: Time,
    },
    /// A segment turned out to be the agent's own sound coming back.
    Echo {
        /// Which one.
        segment: SegmentId,
    },
    /// Words so far. Never an answer (VC-36); used to keep a false interruption from resuming.
    Partial {
        /// The segment being spoken.
        segment: SegmentId,
        /// The words so far.
        text: String,
    },
    /// The recogniser is done with one or more segments.
    Transcript(Transcript),
    /// How a segment sounded, where that is measured. To be told before its words.
    Measured {
        /// Which one.
        segment: SegmentId,
        /// Level of its voiced part in dB of full scale; 0 is the loudest.
        level_db: Option<i16>,
        /// How many people spoke in it; `None`: not measured.
        speakers: Option<u8>,
    },
    /// The end-of-turn model's opinion on the caller's sound up to the end of a segment.
    EndOfTurn {
        /// The last segment it heard.
        segment: SegmentId,
        /// How sure it is that the caller has finished, in percent.
        percent: u8,
    },
    /// A key was pressed (RFC 4733, INFO, or a provider's event; never an in-band tone).
    Digit {
        /// `0`-`9`, `*`, `#`, `A`-`D`.
        digit: char,
        /// When the key went down.
        start: Time,
    },
    /// A typed message.
    Message {
        /// What was typed.
        text: String,
        /// When it was received; it may have waited in a queue since.
        received: Time,
    },
    /// From the language model.
    Model(ModelEvent),
    /// A call of a tool was validated, and its question built.
    Prepared {
        /// Which call.
        call: CallId,
        /// What came of it.
        outcome: Prepared,
    },
    /// A tool has run.
    ToolFinished {
        /// Which call.
        call: CallId,
        /// What came of it.
        outcome: ToolOutcome,
    },
    /// The check has answered.
    Checked {
        /// Which check.
        check: CheckId,
        /// Its answer, vetoes applied.
        answer: CheckAnswer,
    },
    /// Approvals that were asked for are settled. Several at once: what was answered in one breath runs before the model
    /// is asked again.
    Approvals(Vec<SettledApproval>),
    /// From playout.
    Playout(PlayoutEvent),
    /// The tools that exist from now on. A question whose tool is no longer among them cannot be answered with a
    /// run (VC-71).
    Tools(Vec<ToolRef>),
    /// The conversation was taken back to an earlier point.
    Rewound(Rewind),
    /// A stored conversation goes on. Sent before `CallStarted`.
    Reopened(Reopened),
    /// The program itself holds a call, outside a model's step: the caller is asked at once.
    Asked {
        /// Its id.
        call: CallId,
        /// The call, validated, with its question; anything but `Ask` is ignored.
        outcome: Prepared,
    },
    /// The program says something of its own.
    Say {
        /// Plain text.
        text: String,
    },
    /// An operator or the program asks for the end of the call.
    EndRequested,
    /// Nothing but the passing of time. Changes nothing that time itself does not.
    Tick,
}

/// How the call came about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStart {
    /// The transport's name as the event log says it: `local`, `chat`, `sip`, `webrtc`, `media-stream`.
    pub transport: String,
    /// The call's id.
    pub call: String,
    /// The language in force.
    pub language: String,
    /// What is said first, if anything.
    pub greeting: Option<String>,
    /// Text in, text out: a question is heard the instant it is emitted (VC-25).
    pub chat: bool,
}

/// One frame of voice activity detection, typically 32 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceFrame {
    /// First sample, on the input clock.
    pub start: Time,
    /// One past its last sample.
    pub end: Time,
    /// Probability of speech in percent.
    pub speech: u8,
    /// The earliest moment at which the sound that goes on in this frame may have begun: walked back to the noise
    /// floor, less the margin for the signal-to-noise ratio, moved to the start of any gap that could hide it.
    pub rise: Time,
}

/// The recogniser's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// The segments it covers. Empty if the engine does not know: then `span` decides, and if that is absent too,
    /// every unresolved segment is covered (VC-38).
    pub segments: Vec<SegmentId>,
    /// The stretch of sound that the words came from, on the input clock.
    pub span: Option<(Time, Time)>,
    /// The words; empty if there were none.
    pub text: String,
    /// Confidence in percent, where the engine gives one.
    pub confidence: Option<u8>,
    /// Why the words are not taken for the caller's, if they are not (VC-39).
    pub phantom: Option<String>,
}

/// From the language model, by generation: what an old one sends late is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ModelEvent {
    /// More text.
    Text {
        /// Which request.
        generation: GenerationId,
        /// The next piece.
        text: String,
    },
    /// A whole tool call.
    Call {
        /// Which request.
        generation: GenerationId,
        /// The call.
        call: ToolCall,
    },
    /// The step is complete.
    Finished {
        /// Which request.
        generation: GenerationId,
    },
    /// The step failed; nothing more comes.
    Failed {
        /// Which request.
        generation: GenerationId,
        /// What went wrong, for the log.
        error: String,
    },
}

/// A tool call as the model made it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id of it.
    pub id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text, not yet validated.
    pub input: String,
}

/// A tool by owner, name and the hash of its definition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ToolRef {
    /// The skill that owns it.
    pub skill: String,
    /// Its name.
    pub name: String,
    /// Hash of its definition (schema, question, policy), `sha256:…`.
    pub definition: String,
}

/// A validated input, frozen: the very bytes that the question was built from and that the tool will get.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frozen {
    /// Canonical JSON (RFC 8785), coerced and with defaults.
    pub json: String,
    /// SHA-256 of it, `sha256:…`.
    pub hash: String,
}

/// What came of validating a call and building its question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Prepared {
    /// Valid, and needs no question.
    Plain {
        /// The tool.
        tool: ToolRef,
        /// Its input.
        input: Frozen,
    },
    /// Valid, and the caller must say yes to this question first.
    Ask {
        /// The tool.
        tool: ToolRef,
        /// Its input.
        input: Frozen,
        /// The question, word for word.
        question: String,
        /// The language it is in.
        language: String,
        /// What the tool asks for beyond a yes.
        terms: AskTerms,
    },
    /// Valid, and an operator or an app must approve it first; then it goes on as `then` says (decision 2).
    Approve {
        /// What they are told.
        hint: String,
        /// What it comes to once they have: `Plain` or `Ask`.
        then: Box<Prepared>,
    },
    /// Not to be run; the message goes to the model.
    Refused {
        /// Why.
        reason: Refusal,
        /// What the model is told.
        message: String,
        /// Whether the tool is one with a question: then an open question is closed (VC-12).
        confirms: bool,
    },
}

impl Prepared {
    /// What it comes to once an operator has approved, if one must.
    pub(crate) fn behind_approval(&self) -> &Self {
        if let Self::Approve { then, .. } = self { then } else { self }
    }
}

/// Why a call was refused before anything was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// No tool of that name.
    UnknownTool,
    /// The input does not fit the schema, or is not JSON.
    InvalidInput,
    /// The author's `ToolInputError`: better input is wanted.
    InputError,
    /// The question could not be built: an error, a panic, too slow, empty, too long.
    QuestionFailed,
    /// The tool may not be used now (an outbound call that no human answered, a missing approval).
    NotNow,
}

/// What a tool asks for beyond a yes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AskTerms {
    /// A longer quiet before the run: what is done cannot be undone.
    pub irreversible: bool,
    /// Least class of evidence that the question was heard; `None`: the agent's own setting.
    pub evidence: Option<EvidenceClass>,
}

/// What came of running a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ToolOutcome {
    /// It ran and says so.
    Done {
        /// What the model is told: the message or the JSON result.
        message: String,
    },
    /// It ran and failed, or could not be started.
    Failed {
        /// What the model is told.
        message: String,
    },
    /// It did not answer within its limit, or the exchange broke off: it may or may not have happened (VC-62).
    Unknown,
    /// It ran as far as it may by itself, and asks for an approval; with the answer it is run again.
    Asks {
        /// What the model is told meanwhile.
        message: String,
        /// What the operator is told.
        hint: String,
        /// What the operator may fill in, as JSON.
        payload: Option<String>,
    },
    /// The handler was not called: the run could not be written down first, or was made elsewhere already (VC-65).
    NotRun {
        /// What the model is told.
        message: String,
    },
}

/// The answer of the check.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum CheckAnswer {
    /// The model said one word, and no veto fired.
    Verdict {
        /// The word.
        verdict: Verdict,
    },
    /// The model said yes, and a veto lowers it to unclear.
    Vetoed {
        /// Which veto.
        veto: String,
    },
    /// No usable answer: a timeout, an error, a refusal or any other text. Counts as unclear.
    Failed {
        /// What came instead.
        error: String,
    },
}

/// Yes, no, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Do exactly this.
    Yes,
    /// Do not, or not like this.
    No,
    /// Neither.
    Unclear,
}

/// How it is known that sound was heard, weakest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceClass {
    /// Given by a scenario; exact.
    Virtual,
    /// A local device's own clock.
    Device,
    /// Reported by our page.
    Page,
    /// Our own voice found in the inbound sound.
    Echo,
    /// RTCP extended reports.
    Xr,
    /// RTCP of a declared endpoint.
    Rtcp,
    /// A media stream's mark.
    Mark,
    /// An assumed loop.
    Assumed,
    /// Nothing shows that the far end receives us.
    Unproven,
}

/// From playout. Times are on the input clock as far as it can be mapped; see `LoopDelay` for the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum PlayoutEvent {
    /// The voice has delivered all of an utterance.
    Synthesised {
        /// Which one.
        utterance: UtteranceId,
        /// From its first sample to its first audible one.
        audible_from: Duration,
        /// From its first sample to the end of its last audible one.
        audible_to: Duration,
    },
    /// Its first sample was handed to the line and sounds at `at`.
    Started {
        /// Which one.
        utterance: UtteranceId,
        /// When it sounds.
        at: Time,
    },
    /// Its last audible sample is irrevocably on its way and sounds at `last_audible`, which may still be ahead.
    Finished {
        /// Which one.
        utterance: UtteranceId,
        /// When the last audible sample leaves for the ear.
        last_audible: Time,
        /// How long the loop from there is.
        delay: LoopDelay,
        /// How this is known.
        evidence: EvidenceClass,
        /// How much of it never sounded: lost, muted, on hold.
        lost: Duration,
    },
    /// Playout is silent from `at` on, as asked.
    Paused {
        /// From when.
        at: Time,
    },
    /// Playout goes on.
    Resumed {
        /// From when.
        at: Time,
    },
    /// An utterance was thrown away, as asked.
    Cleared {
        /// Which one.
        utterance: UtteranceId,
        /// How much of it had sounded by then, from its first sample; zero if it had not begun.
        played: Duration,
        /// Its length as far as known, from its first sample to the end of its last audible one.
        audible_to: Option<Duration>,
        /// From its first sample to its first audible one, as far as known.
        audible_from: Duration,
    },
    /// An utterance will not be heard whole.
    Failed {
        /// Which one.
        utterance: UtteranceId,
        /// Why.
        failure: PlayoutFailure,
        /// How much of it had sounded by then.
        played: Duration,
    },
}

/// Why an utterance was not heard whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayoutFailure {
    /// The voice failed or broke off.
    TtsFailed,
    /// The voice gave no samples.
    NoSamples,
    /// The device is gone.
    DeviceLost,
    /// The line was on hold, muted, or lost too much.
    NotPlayed,
}

/// A stored conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reopened {
    /// What was said and done before.
    pub items: Vec<Item>,
    /// The question it ended with, if it was heard to its end.
    pub open: Option<OpenQuestion>,
    /// How many holds there were: a later one gets a later id, and with it an idempotency key of its own.
    #[serde(default)]
    pub holds: u32,
    /// The hold of each confirmed run so far, in order; one that ran again after a rewind is there twice (VC-76).
    #[serde(default)]
    pub runs: Vec<HoldId>,
    /// Runs whose outcome the items do not tell yet: the process ended before it could be added (VC-79).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsettled: Vec<PastRun>,
    /// The questions that were heard in it, oldest first: it may be taken back to one of them.
    #[serde(default)]
    pub asked: Vec<AskedQuestion>,
    /// Approvals that were asked for and not settled: they are asked for again under the same ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<PendingApproval>,
    /// How many approvals were asked for: a later one gets a later id, for what was answered under an earlier one must
    /// not stand for it. `None`: it was stored before this was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_ids: Option<u32>,
}

/// A confirmed run of an earlier process, and what is known of it now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    /// Its hold.
    pub hold: HoldId,
    /// The model's call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The words or the digit that said yes.
    pub confirmed_by: String,
    /// What came of it. `Unknown`: it had begun, and no result was written down. It is never run again by itself.
    pub outcome: ToolOutcome,
}

/// A question that was heard in the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AskedQuestion {
    /// The question, with the call that it is about.
    pub question: OpenQuestion,
    /// One past the item of the conversation that it is.
    pub end: u32,
    /// What ran on a yes to it.
    pub ran: Option<Ran>,
}

/// A run on a yes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ran {
    /// The words or the digit that said yes.
    pub by: String,
    /// The item of the conversation that they are.
    pub item: u32,
}

/// A question that was open when a conversation was stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Its hold, so that the run keeps its idempotency key.
    pub hold: HoldId,
    /// The model's call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolRef,
    /// Its frozen input.
    pub input: Frozen,
    /// The question, word for word.
    pub question: String,
    /// Its language.
    pub language: String,
    /// What the tool asks for.
    pub terms: AskTerms,
    /// The approval that came first, if the tool needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

/// Where a conversation was taken back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rewind {
    /// How many items of the conversation remain.
    pub items: u32,
}
