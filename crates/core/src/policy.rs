//! How an agent wants its calls run: resolved settings, no `Option` that is always `Some`.

use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::EvidenceClass;

/// Everything that an agent file's `[turn]` and `[confirm]` tables decide, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Turn-taking.
    pub turn: TurnPolicy,
    /// Confirmation.
    pub confirm: ConfirmPolicy,
}

/// Turn-taking.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnPolicy {
    /// Quiet that ends a turn when the end-of-turn model is sure, or there is none.
    pub endpoint: Duration,
    /// The same when it is unsure.
    pub endpoint_unsure: Duration,
    /// The same when the words trail off ("and", "um").
    pub endpoint_trailing: Duration,
    /// An end-of-turn model listens: until it has spoken, a turn counts as unsure.
    pub judged: bool,
    /// Percent from which the end-of-turn model counts as sure.
    pub sure_percent: u8,
    /// Voiced speech that pauses the agent.
    pub barge_in: Duration,
    /// Quiet after which a paused agent goes on if no words came.
    pub resume: Duration,
    /// Quiet, from the heard end, after which the caller is spoken to; `None`: never.
    pub silence_followup: Option<Duration>,
    /// What is said then.
    pub silence_text: String,
    /// How often in a row at most.
    pub silence_limit: u8,
    /// How long the recogniser may take after the end of a segment before it counts as wordless.
    pub transcript_limit: Duration,
    /// How long a model may be silent before its step counts as failed.
    pub model_limit: Duration,
    /// How long a tool may run before its outcome counts as unknown.
    pub tool_limit: Duration,
    /// Said when a model or the voice fails.
    pub apology: String,
}

impl Default for TurnPolicy {
    fn default() -> Self {
        Self {
            endpoint: Duration::from_millis(350),
            endpoint_unsure: Duration::from_millis(700),
            endpoint_trailing: Duration::from_millis(1_200),
            judged: false,
            sure_percent: 50,
            barge_in: Duration::from_millis(96),
            resume: Duration::from_millis(800),
            silence_followup: Some(Duration::from_secs(8)),
            silence_text: String::from("Are you still there?"),
            silence_limit: 3,
            transcript_limit: Duration::from_secs(5),
            model_limit: Duration::from_secs(20),
            tool_limit: Duration::from_secs(30),
            apology: String::from("Sorry, something went wrong on my side. Could you say that again?"),
        }
    }
}

/// What speech inside the question does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionBargeIn {
    /// It drops the question (the plain reading).
    Drop,
    /// A lone "mm-hm" neither stops the question nor ever answers it.
    Continuers,
    /// The question plays on; the words never answer it.
    Ignore,
}

/// Whether the question must be the last agent speech heard before a yes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adjacency {
    /// It must.
    Strict,
    /// It need not.
    Off,
}

/// What becomes of a yes that is followed by a hang-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterHangup {
    /// The caller has answered: it runs.
    Run,
    /// Nothing runs.
    Drop,
}

/// What words do that are only an affirmation and begin in the last 300 ms before the horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NearEnd {
    /// They drop the question like any words; the model asks again.
    Model,
    /// The runtime asks again by itself, once.
    Again,
}

/// Confirmation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfirmPolicy {
    /// Speech inside the question.
    pub question_barge_in: QuestionBargeIn,
    /// Voiced speech inside the question that pauses it.
    pub barge_in: Duration,
    /// Speech that begins this close to the question's end does not pause it.
    pub no_pause_before_end: Duration,
    /// Quiet after which a paused question goes on.
    pub resume: Duration,
    /// A pause longer than this: the question starts again from its beginning.
    pub max_gap: Duration,
    /// See [`NearEnd`].
    pub near_end: NearEnd,
    /// See [`Adjacency`].
    pub adjacency: Adjacency,
    /// From the complete answer turn to the run, at least.
    pub grace: Duration,
    /// How often an unclear answer is asked again.
    pub rounds: u8,
    /// See [`AfterHangup`].
    pub after_hangup: AfterHangup,
    /// Keypad answers: 1 is yes, 2 is no.
    pub keypad: bool,
    /// From the horizon of the latest asking; by onset.
    pub ttl: Option<Duration>,
    /// How much of the question may be lost before it counts as not heard.
    pub max_loss: Duration,
    /// How long the check may take.
    pub check_limit: Duration,
    /// The check may start before the turn is complete, once this much is quiet; `None`: it waits for the turn.
    pub check_after_quiet: Option<Duration>,
    /// Quiet after the question before it is said again.
    pub silence_followup: Option<Duration>,
    /// The same for each further time.
    pub silence_again: Duration,
    /// A text of the author's own instead of the question (then the question is no longer the last thing heard).
    pub silence_text: Option<String>,
    /// Quiet before a hold word's re-ask ("hold on": decision 14).
    pub hold_wait: Duration,
    /// Least class of evidence that a question was heard.
    pub evidence: EvidenceClass,
    /// Quiet before the run: no sign of speech for this long.
    pub quiet: Duration,
    /// The same for irreversible tools.
    pub quiet_irreversible: Duration,
    /// How long an operator may take while a caller waits on the line; `None`: as long as the caller waits. A text
    /// conversation waits without end.
    pub approval_wait: Option<Duration>,
    /// What the caller hears meanwhile.
    pub approval_text: String,
}

impl Default for ConfirmPolicy {
    fn default() -> Self {
        Self {
            question_barge_in: QuestionBargeIn::Drop,
            barge_in: Duration::from_millis(200),
            no_pause_before_end: Duration::from_millis(300),
            resume: Duration::from_millis(600),
            max_gap: Duration::from_millis(800),
            near_end: NearEnd::Model,
            adjacency: Adjacency::Strict,
            grace: Duration::from_millis(250),
            rounds: 3,
            after_hangup: AfterHangup::Run,
            keypad: false,
            ttl: None,
            max_loss: Duration::from_millis(200),
            check_limit: Duration::from_millis(1_500),
            check_after_quiet: Some(Duration::from_millis(200)),
            silence_followup: Some(Duration::from_secs(6)),
            silence_again: Duration::from_secs(8),
            silence_text: None,
            hold_wait: Duration::from_secs(20),
            evidence: EvidenceClass::Assumed,
            quiet: Duration::from_millis(100),
            quiet_irreversible: Duration::from_millis(600),
            approval_wait: Some(Duration::from_secs(300)),
            approval_text: String::from("One moment please, I am having this approved."),
        }
    }
}
