//! What the core wants done: the closed set of wishes it hands to whoever drives it.

use alloc::boxed::Box;
use alloc::string::String;
use core::time::Duration;

use serde::Serialize;

use crate::confirmation::Confirmation;
use crate::event::{EvidenceClass, Frozen, ToolCall, ToolRef, Verdict};
use crate::evidence::EvidenceRecord;
use crate::ids::{ApprovalId, CallId, CheckId, GenerationId, HoldId, SegmentId, UtteranceId};
use crate::time::{Interval, Time};

/// One wish and the moment it was made. Not `Clone`: a confirmed run is handed on once.
#[derive(Debug, Serialize)]
pub struct Output {
    /// When the core decided this; at a deadline, the deadline itself.
    pub at: Time,
    /// What it wants.
    pub command: Command,
}

/// One wish.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "type", content = "data")]
pub enum Command {
    /// Tell the outside what happened (the event log).
    Report(Report),
    /// Recognise this segment; its sound began at `onset` and still goes on.
    OpenSegment {
        /// The segment.
        segment: SegmentId,
        /// When it began.
        onset: Interval,
    },
    /// The segment is over; its final words are wanted.
    CloseSegment {
        /// The segment.
        segment: SegmentId,
        /// When its sound ended.
        offset: Time,
    },
    /// Ask the end-of-turn model about the sound up to the end of this segment.
    JudgeEnd {
        /// The segment.
        segment: SegmentId,
    },
    /// Say this after what is already queued.
    Speak(Speak),
    /// Fall silent at once, keeping the queue.
    Pause,
    /// Go on.
    Resume,
    /// Throw everything away that has not sounded, and say how much had.
    Clear,
    /// Ask the model for its next step, with the session's context as it is now.
    Generate {
        /// The request.
        generation: GenerationId,
    },
    /// The step is no longer wanted.
    CancelGeneration {
        /// The request.
        generation: GenerationId,
    },
    /// Validate a call and build its question.
    Prepare {
        /// The call.
        call: ToolCall,
        /// The language in force.
        language: String,
    },
    /// Run a tool that needs no confirmation.
    RunPlain(PlainRun),
    /// Run a tool that the caller said yes to.
    RunConfirmed(Confirmation),
    /// Ask an operator or an app.
    RequestApproval(ApprovalWish),
    /// They need not answer any more: a later answer runs nothing.
    WithdrawApproval {
        /// Which approval.
        approval: ApprovalId,
        /// Why.
        reason: String,
    },
    /// Ask whether these words answer this question.
    Check(CheckRequest),
    /// Keep this record.
    Record(Box<EvidenceRecord>),
    /// Hang up.
    EndCall {
        /// Why.
        reason: String,
    },
    /// Hand the caller to somebody else.
    Transfer {
        /// The call that asked for it.
        call: CallId,
        /// Its arguments as JSON text.
        input: String,
        /// The question that was open and went with the call: whoever takes over should know (VC-23).
        dropped: Option<String>,
    },
}

/// One piece of agent speech, said whole and in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Speak {
    /// Its id.
    pub utterance: UtteranceId,
    /// Plain text, never markup.
    pub text: String,
    /// The language it is in.
    pub language: String,
    /// What it is.
    pub kind: UtteranceKind,
}

/// What a piece of agent speech is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UtteranceKind {
    /// What the model, the greeting or the runtime says.
    Speech,
    /// A confirm question, word for word.
    Question,
}

/// A run that needs no confirmation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlainRun {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolRef,
    /// Its validated input.
    pub input: Frozen,
    /// How long it may take.
    pub limit: Duration,
}

/// What an operator or an app is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApprovalWish {
    /// Its id, unique within the conversation.
    pub approval: ApprovalId,
    /// The model's call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolRef,
    /// Its validated input.
    pub input: Frozen,
    /// What they are told.
    pub hint: String,
    /// What they may fill in, as JSON.
    pub payload: Option<String>,
}

/// One short call on the agent's own model.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct CheckRequest {
    /// Its id.
    pub check: CheckId,
    /// The hold it is about.
    pub hold: HoldId,
    /// The question as it was said.
    pub question: String,
    /// The caller's words since.
    pub words: String,
    /// The language of the question.
    pub language: String,
    /// The frozen input, canonical JSON: values the caller may name.
    pub input: String,
    /// How the answer sounded: what the words alone do not tell.
    pub sounded: Sounded,
    /// How long it may take.
    pub limit: Duration,
}

/// How an answer sounded, for the vetoes. What was not measured is absent and vetoes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Sounded {
    /// The recogniser's least confidence in any part of it, in percent.
    pub confidence: Option<u8>,
    /// How far its quietest part lies under the median level of this call's caller so far, in dB.
    pub under_median_db: Option<u16>,
    /// The most people that were heard in any part of it; `None` unless measured.
    pub speakers: Option<u8>,
    /// The agent's own voice sounded during some part of it.
    pub over_agent: bool,
}

impl Sounded {
    /// A voice further than this under the caller's own is somebody else's, or not meant for the telephone.
    pub const MOST_UNDER_DB: u16 = 15;

    /// Why a yes that sounded like this does not count, if it does not. Confidence and speakers have rules among the
    /// vetoes on words.
    pub fn veto(&self) -> Option<&'static str> {
        if self.over_agent {
            return Some("over_agent");
        }
        self.under_median_db.is_some_and(|db| db > Self::MOST_UNDER_DB).then_some("level")
    }
}

/// Why a question is no longer open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the interface; confirmations.md defines each")]
pub enum DropReason {
    BargeIn,
    Replaced,
    Cancelled,
    NotPlayed,
    TtsFailed,
    Hangup,
    Expired,
    Declined,
    Unconfirmed,
    OwnerGone,
    DefinitionChanged,
    Rewound,
    InputError,
}

/// A line of the event log. The names and fields are the product's outer face.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event")]
#[allow(missing_docs, reason = "documented as a table in docs/events.md")]
pub enum Report {
    #[serde(rename = "call.started")]
    CallStarted { call: String, transport: String },
    #[serde(rename = "call.ended")]
    CallEnded { reason: String },
    #[serde(rename = "caller.speech")]
    CallerSpeech { segment: SegmentId, onset_earliest_ms: f64, onset_ms: f64, offset_ms: f64 },
    #[serde(rename = "caller.words")]
    CallerWords {
        segment: SegmentId,
        text: String,
        onset_ms: f64,
        offset_ms: f64,
        #[serde(rename = "final")]
        is_final: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        confidence: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ignored: Option<String>,
    },
    #[serde(rename = "caller.turn")]
    CallerTurn { text: String, onset_ms: f64 },
    #[serde(rename = "agent.said")]
    AgentSaid { utterance: UtteranceId, text: String },
    #[serde(rename = "agent.started")]
    AgentStarted { utterance: UtteranceId },
    #[serde(rename = "agent.paused")]
    AgentPaused {},
    #[serde(rename = "agent.resumed")]
    AgentResumed {},
    #[serde(rename = "agent.heard")]
    AgentHeard {
        utterance: UtteranceId,
        text: String,
        complete: bool,
        earliest_ms: f64,
        latest_ms: f64,
        evidence: EvidenceClass,
    },
    #[serde(rename = "tool.called")]
    ToolCalled { call_id: CallId, skill: String, tool: String, input: serde_json::Value },
    #[serde(rename = "question.held")]
    QuestionHeld { question: HoldId, tool: String, text: String },
    #[serde(rename = "question.started")]
    QuestionStarted { question: HoldId, tool: String, text: String },
    #[serde(rename = "question.heard")]
    QuestionHeard { question: HoldId, earliest_ms: f64, latest_ms: f64, evidence: EvidenceClass },
    #[serde(rename = "question.dropped")]
    QuestionDropped { question: HoldId, reason: DropReason },
    #[serde(rename = "question.repeated")]
    QuestionRepeated { question: HoldId, round: u8 },
    #[serde(rename = "question.reopened")]
    QuestionReopened {
        question: HoldId,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        ran_before: Option<String>,
    },
    #[serde(rename = "answer.checked")]
    AnswerChecked {
        question: HoldId,
        words: String,
        onset_ms: f64,
        margin_ms: f64,
        verdict: Verdict,
        #[serde(skip_serializing_if = "Option::is_none")]
        veto: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    #[serde(rename = "confirmation.requested")]
    ConfirmationRequested {
        id: ApprovalId,
        call_id: CallId,
        tool: String,
        input: serde_json::Value,
        hint: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<serde_json::Value>,
    },
    #[serde(rename = "confirmation.answered")]
    ConfirmationAnswered {
        id: ApprovalId,
        call_id: CallId,
        tool: String,
        confirmed: bool,
        outcome: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<serde_json::Value>,
    },
    #[serde(rename = "tool.started")]
    ToolStarted {
        call_id: CallId,
        tool: String,
        input: serde_json::Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        confirmed_by: Option<String>,
    },
    #[serde(rename = "tool.finished")]
    ToolFinished { call_id: CallId, tool: String, ok: bool, message: String, outcome: String },
    #[serde(rename = "conversation.rewound")]
    ConversationRewound { items: usize },
    #[serde(rename = "model.told")]
    ModelTold { text: String },
    #[serde(rename = "model.failed")]
    ModelFailed { generation: GenerationId, error: String },
    #[serde(rename = "silence.followup")]
    SilenceFollowup { n: u8, text: String },
    #[serde(rename = "dtmf")]
    Dtmf { digit: char },
}
