//! Decisions of one voice call.
//!
//! [`Session`] is told the time and what happened ([`Event`]), and answers with what it wants done ([`Output`]).
//! It never waits, and this crate may not touch a clock, a task, a socket, a log or a hash map: the same machine runs
//! live and on a virtual clock, so every call can be decided again to the last microsecond. A panic in here is a bug
//! of ours; bad input is an event that is ignored and counted.
#![no_std]

extern crate alloc;

pub mod approval;
pub mod check;
pub mod command;
pub mod confirmation;
pub mod context;
pub mod event;
pub mod evidence;
pub mod ids;
mod ledger;
mod playout;
pub mod policy;
mod segment;
mod sentence;
mod session;
pub mod time;

pub use approval::{Approval, ApprovalAsker, ApprovalOutcome, PendingApproval, SettledApproval};
pub use command::{
    ApprovalWish, CheckRequest, Command, DropReason, Output, PlainRun, Report, Sounded, Speak, UtteranceKind,
};
pub use confirmation::Confirmation;
pub use context::Item;
pub use event::{
    AskTerms, AskedQuestion, CallStart, CheckAnswer, Event, EvidenceClass, Frozen, ModelEvent, OpenQuestion,
    PastRun, PlayoutEvent, PlayoutFailure, Prepared, Ran, Refusal, Reopened, Rewind, ToolCall, ToolOutcome,
    ToolRef, Transcript, Verdict, VoiceFrame,
};
pub use evidence::{EvidenceRecord, HeardEvidence, SegmentEvidence};
pub use ids::{ApprovalId, CallId, CheckId, GenerationId, HoldId, SegmentId, UtteranceId};
pub use policy::{Adjacency, AfterHangup, ConfirmPolicy, NearEnd, Policy, QuestionBargeIn, TurnPolicy};
pub use segment::SegmenterSettings;
pub use sentence::is_abbreviation;
pub use session::{Session, Timer, is_emergency};
pub use time::{Interval, LoopDelay, Time};
