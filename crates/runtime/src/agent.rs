//! An agent: who it is, what it can do, and how its calls are run.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use sayback_core::{AskTerms, Confirmation, Frozen, PlainRun, Policy, ToolOutcome, ToolRef};
use serde_json::Value;

/// An agent, whether it came from a file or from Rust.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// The language it speaks, as a BCP 47 tag: `en`, `de`.
    pub language: String,
    /// What it says first.
    pub greeting: Option<String>,
    /// What the model is told about its job.
    pub instructions: String,
    /// How its calls are run.
    pub policy: Policy,
    /// What it can do.
    pub skills: Vec<Skill>,
}

/// A named group of tools with instructions of its own.
#[derive(Clone, Debug)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What the model is told about it.
    pub instructions: String,
    /// Its tools.
    pub tools: Vec<Tool>,
}

/// A tool: with a confirm question or without, and the two are different types, so that the first kind cannot be run
/// without a yes.
#[derive(Clone, Debug)]
pub enum Tool {
    /// Runs at once.
    Plain(PlainTool),
    /// Runs only on the caller's yes.
    Confirmed(ConfirmedTool),
}

/// What every tool has.
#[derive(Clone, Debug)]
pub struct ToolInfo {
    /// Its name, unique within the agent.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its input.
    pub schema: Value,
    /// Validates, coerces and fills in defaults.
    pub validate: Arc<dyn Validate>,
    /// How long it may run.
    pub limit: Duration,
    /// Hash of everything that makes it what it is, `sha256:…`.
    pub definition: String,
}

/// A tool that runs at once.
#[derive(Clone, Debug)]
pub struct PlainTool {
    /// What it is.
    pub info: ToolInfo,
    /// Whether an operator must approve first.
    pub approval: Option<Arc<dyn ApprovalRule>>,
    run: Arc<dyn Handler>,
}

impl PlainTool {
    /// A tool and what it does.
    pub fn new(info: ToolInfo, run: Arc<dyn Handler>) -> Self {
        Self { info, approval: None, run }
    }

    /// Runs it on a validated input; one that an operator must approve is refused.
    pub async fn run(&self, input: &Frozen, context: RunContext) -> ToolOutcome {
        let value = parse(input);
        if needs_approval(self.approval.as_deref(), &self.info.name, &value) {
            return unapproved(&self.info.name);
        }
        guarded(&self.run, value, context).await
    }

    /// Runs it: the operator's answer is used up, and the input is the one inside it.
    pub async fn run_approved(&self, yes: Confirmation, context: RunContext) -> ToolOutcome {
        let value = parse(yes.input());
        if !approved(self.approval.as_deref(), &self.info.name, &value, &yes) {
            return unapproved(&self.info.name);
        }
        guarded(&self.run, value, context.answered(&yes)).await
    }
}

/// A tool that runs only on the caller's yes.
#[derive(Clone, Debug)]
pub struct ConfirmedTool {
    /// What it is.
    pub info: ToolInfo,
    /// Builds its question.
    pub confirm: Arc<dyn Confirm>,
    /// What it asks for beyond a yes.
    pub terms: AskTerms,
    /// Whether an operator must approve before the caller is asked.
    pub approval: Option<Arc<dyn ApprovalRule>>,
    run: Arc<dyn Handler>,
}

impl ConfirmedTool {
    /// A tool, its question and what it does.
    pub fn new(info: ToolInfo, confirm: Arc<dyn Confirm>, terms: AskTerms, run: Arc<dyn Handler>) -> Self {
        Self { info, confirm, terms, approval: None, run }
    }

    /// Runs it: the yes is used up, and the input is the one inside it. An operator's approval does not stand in for the
    /// caller's yes, nor the yes for the approval; both rules are looked at again here.
    pub async fn run(&self, yes: Confirmation, context: RunContext) -> ToolOutcome {
        let value = parse(yes.input());
        if !yes.by_caller() && self.confirm.needed(&value) {
            return unconfirmed(&self.info.name);
        }
        if !approved(self.approval.as_deref(), &self.info.name, &value, &yes) {
            return unapproved(&self.info.name);
        }
        guarded(&self.run, value, context.answered(&yes)).await
    }

    /// Runs it without a yes, if its own condition says that this input needs none; looked at here again, so that no
    /// caller can decide it.
    pub async fn run_exempt(&self, input: &Frozen, context: RunContext) -> ToolOutcome {
        let value = parse(input);
        if self.confirm.needed(&value) {
            return unconfirmed(&self.info.name);
        }
        if needs_approval(self.approval.as_deref(), &self.info.name, &value) {
            return unapproved(&self.info.name);
        }
        guarded(&self.run, value, context).await
    }
}

impl Agent {
    /// All its tools by owner, name and definition.
    pub fn tool_refs(&self) -> Vec<ToolRef> {
        let of = |skill: &Skill| skill.tools.iter().map(|t| t.reference(&skill.name)).collect::<Vec<_>>();
        self.skills.iter().flat_map(of).collect()
    }
}

impl Tool {
    /// What it is.
    pub fn info(&self) -> &ToolInfo {
        match self {
            Self::Plain(tool) => &tool.info,
            Self::Confirmed(tool) => &tool.info,
        }
    }

    /// Whether an operator must approve it first, and for which inputs.
    pub fn approval(&self) -> Option<&dyn ApprovalRule> {
        match self {
            Self::Plain(tool) => tool.approval.as_deref(),
            Self::Confirmed(tool) => tool.approval.as_deref(),
        }
    }

    /// The same tool, behind an operator's approval.
    #[must_use]
    pub fn approved_by(self, rule: Arc<dyn ApprovalRule>) -> Self {
        match self {
            Self::Plain(tool) => Self::Plain(PlainTool { approval: Some(rule), ..tool }),
            Self::Confirmed(tool) => Self::Confirmed(ConfirmedTool { approval: Some(rule), ..tool }),
        }
    }

    /// By owner, name and definition.
    pub fn reference(&self, skill: &str) -> ToolRef {
        let info = self.info();
        ToolRef { skill: skill.to_owned(), name: info.name.clone(), definition: info.definition.clone() }
    }
}

/// Validates a tool's input.
pub trait Validate: Send + Sync + std::fmt::Debug {
    /// The validated value, coerced and with defaults; or what is wrong, for the model.
    fn validate(&self, input: Value) -> Result<Value, String>;
}

/// Builds a tool's question.
#[async_trait]
pub trait Confirm: Send + Sync + std::fmt::Debug {
    /// Whether this input needs a yes at all. Anything but a clear no asks.
    fn needed(&self, _input: &Value) -> bool {
        true
    }

    /// The question, built from the validated input, in the given language.
    async fn question(&self, input: &Value, context: &AskContext) -> Result<String, ConfirmError>;
}

/// Decides which calls of a tool an operator must approve first.
pub trait ApprovalRule: Send + Sync + std::fmt::Debug {
    /// Whether this input needs an approval. It sees the validated input, may be asked more than once for the same call,
    /// and must not do anything. Only the boolean `false` lets it run without: any other value, an error or a panic asks
    /// (ADK-04).
    ///
    /// # Errors
    /// It cannot say; the error is logged, and the operator is asked.
    fn needed(&self, _input: &Value) -> Result<Value, String> {
        Ok(Value::Bool(true))
    }

    /// What the operator is told; absent: which tool wants to run.
    fn hint(&self, _input: &Value) -> Option<String> {
        None
    }
}

/// Asks every time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlwaysApprove;

impl ApprovalRule for AlwaysApprove {}

/// Whether a rule wants an operator to approve this input. Fails closed.
pub(crate) fn needs_approval(rule: Option<&dyn ApprovalRule>, tool: &str, input: &Value) -> bool {
    let Some(rule) = rule else { return false };
    match catch_unwind(AssertUnwindSafe(|| rule.needed(input))) {
        Ok(Ok(Value::Bool(needed))) => needed,
        Ok(Ok(other)) => {
            tracing::warn!(
                "the approval rule of {tool} gave {other}, which is no boolean: an operator is asked"
            );
            true
        }
        Ok(Err(error)) => {
            tracing::warn!("the approval rule of {tool} failed, so an operator is asked: {error}");
            true
        }
        Err(_) => {
            tracing::warn!("the approval rule of {tool} panicked, so an operator is asked");
            true
        }
    }
}

fn approved(rule: Option<&dyn ApprovalRule>, tool: &str, input: &Value, yes: &Confirmation) -> bool {
    yes.approval().is_some_and(|approval| approval.confirmed) || !needs_approval(rule, tool, input)
}

/// What a question may be built from besides the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskContext {
    /// The language in force.
    pub language: String,
    /// Call variables: SIP headers and what the program set.
    pub vars: BTreeMap<String, String>,
}

/// Why there is no question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfirmError {
    /// The author's `ToolInputError`: the model should send better input.
    #[error("{0}")]
    Input(String),
    /// The question could not be built.
    #[error("the question could not be built: {0}")]
    Failed(String),
}

/// Does what a tool does.
#[async_trait]
pub trait Handler: Send + Sync + std::fmt::Debug {
    /// Runs it.
    ///
    /// # Errors
    /// Nothing came of it, or nobody knows what did: see [`RunError`].
    async fn run(&self, input: Value, context: RunContext) -> Result<ToolOutput, RunError>;
}

/// Why a tool gave no answer. Whether anything may have happened is what matters to the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// It was not begun, or is known to have failed. The model is told this.
    #[error("{0}")]
    Failed(String),
    /// It was begun and broke off before it answered, so it may or may not have happened (VC-62). The caller is told so,
    /// and nothing runs it again by itself; the reason is for the log.
    #[error("{0}; it is not known whether it happened")]
    Unknown(String),
}

impl From<String> for RunError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<&str> for RunError {
    fn from(why: &str) -> Self {
        Self::Failed(why.to_owned())
    }
}

/// What a handler is told besides the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunContext {
    /// The same for each attempt at the same confirmed action; pass it on to what you call.
    pub idempotency_key: String,
    /// Call variables.
    pub vars: BTreeMap<String, String>,
    /// What an operator answered, if one was asked. A tool that asked by itself hears of a no as well, and must look.
    pub confirmation: Option<ToolConfirmation>,
    /// What the run itself asks an operator for: see [`RunContext::request_confirmation`].
    pub asks: Asks,
}

/// What an operator answered to a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolConfirmation {
    /// Whether they agreed.
    pub confirmed: bool,
    /// What they filled in.
    pub payload: Option<Value>,
    /// Who they are.
    pub by: String,
}

/// What an operator is told, and what they may fill in.
type Asked = (String, Option<Value>);

/// What a run asks an operator for, with [`RunContext::request_confirmation`].
#[derive(Clone, Debug, Default)]
pub struct Asks(Arc<Mutex<Option<Asked>>>);

impl PartialEq for Asks {
    fn eq(&self, other: &Self) -> bool {
        *self.lock() == *other.lock()
    }
}

impl Eq for Asks {}

impl Asks {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunContext {
    /// A context with an idempotency key.
    pub fn keyed(idempotency_key: String) -> Self {
        Self { idempotency_key, ..Self::default() }
    }

    /// Asks an operator out of a run: what this run returns is told as how things stand, and once they have answered the
    /// tool is run again with [`confirmation`](Self::confirmation) set. `payload` is what they may fill in (ADK-21).
    pub fn request_confirmation(&self, hint: &str, payload: Option<Value>) {
        *self.asks.lock() = Some((hint.to_owned(), payload));
    }

    fn answered(mut self, yes: &Confirmation) -> Self {
        self.confirmation = yes.approval().map(|approval| ToolConfirmation {
            confirmed: approval.confirmed,
            payload: approval.payload.as_deref().and_then(|text| serde_json::from_str(text).ok()),
            by: approval.by.clone(),
        });
        self
    }
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// Whether it worked.
    pub ok: bool,
    /// What the model is told.
    pub message: String,
}

/// Runs a tool that needs no yes for this input; one that does is refused.
pub async fn run_plain(agent: &Agent, run: &PlainRun, context: RunContext) -> ToolOutcome {
    match owned(agent, &run.tool) {
        Some(Tool::Plain(tool)) => tool.run(&run.input, context).await,
        Some(Tool::Confirmed(tool)) => tool.run_exempt(&run.input, context).await,
        None => gone(&run.tool),
    }
}

/// Runs a tool that the caller said yes to.
pub async fn run_confirmed(agent: &Agent, yes: Confirmation, context: RunContext) -> ToolOutcome {
    match owned(agent, yes.tool()) {
        Some(Tool::Confirmed(tool)) => tool.run(yes, context).await,
        Some(Tool::Plain(tool)) if !yes.by_caller() => tool.run_approved(yes, context).await,
        Some(Tool::Plain(_)) | None => gone(yes.tool()),
    }
}

fn unconfirmed(tool: &str) -> ToolOutcome {
    ToolOutcome::Failed { message: format!("{tool} needs the caller's yes; nothing ran.") }
}

fn unapproved(tool: &str) -> ToolOutcome {
    ToolOutcome::Failed { message: format!("{tool} needs an operator's approval; nothing ran.") }
}

fn owned<'a>(agent: &'a Agent, tool: &ToolRef) -> Option<&'a Tool> {
    let skill = agent.skills.iter().find(|skill| skill.name == tool.skill)?;
    skill.tools.iter().find(|t| t.info().name == tool.name)
}

fn gone(tool: &ToolRef) -> ToolOutcome {
    ToolOutcome::Failed { message: format!("{} is no longer available; nothing ran.", tool.name) }
}

fn parse(input: &Frozen) -> Value {
    serde_json::from_str(&input.json).unwrap_or(Value::Null)
}

/// A handler that panics broke off in the middle: what it had done by then nobody knows.
async fn guarded(run: &Arc<dyn Handler>, input: Value, context: RunContext) -> ToolOutcome {
    let asks = context.asks.clone();
    match AssertUnwindSafe(run.run(input, context)).catch_unwind().await {
        Ok(result) => match (finish(result), asks.lock().take()) {
            (ToolOutcome::Done { message }, Some((hint, payload))) => {
                ToolOutcome::Asks { message, hint, payload: payload.map(|payload| payload.to_string()) }
            }
            (outcome, _) => outcome,
        },
        Err(_) => finish(Err(RunError::Unknown("the tool broke down".to_owned()))),
    }
}

fn finish(result: Result<ToolOutput, RunError>) -> ToolOutcome {
    match result {
        Ok(ToolOutput { ok: true, message }) => ToolOutcome::Done { message },
        Ok(ToolOutput { ok: false, message }) | Err(RunError::Failed(message)) => {
            ToolOutcome::Failed { message }
        }
        Err(error @ RunError::Unknown(_)) => {
            tracing::warn!(%error, "a tool's outcome is unknown");
            ToolOutcome::Unknown
        }
    }
}
