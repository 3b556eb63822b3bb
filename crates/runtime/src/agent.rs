//! An agent: who it is, what it can do, and how its calls are run.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
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
    run: Arc<dyn Handler>,
}

impl PlainTool {
    /// A tool and what it does.
    pub fn new(info: ToolInfo, run: Arc<dyn Handler>) -> Self {
        Self { info, run }
    }

    /// Runs it on a validated input.
    pub async fn run(&self, input: &Frozen, context: RunContext) -> ToolOutcome {
        guarded(self.run.run(parse(input), context)).await
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
    run: Arc<dyn Handler>,
}

impl ConfirmedTool {
    /// A tool, its question and what it does.
    pub fn new(info: ToolInfo, confirm: Arc<dyn Confirm>, terms: AskTerms, run: Arc<dyn Handler>) -> Self {
        Self { info, confirm, terms, run }
    }

    /// Runs it: the yes is used up, and the input is the one inside it.
    pub async fn run(&self, yes: Confirmation, context: RunContext) -> ToolOutcome {
        guarded(self.run.run(parse(yes.input()), context)).await
    }

    /// Runs it without a yes, if its own condition says that this input needs none; looked at here again, so that no
    /// caller can decide it.
    pub async fn run_exempt(&self, input: &Frozen, context: RunContext) -> ToolOutcome {
        let value = parse(input);
        if self.confirm.needed(&value) {
            let message = format!("{} needs the caller's yes; nothing ran.", self.info.name);
            return ToolOutcome::Failed { message };
        }
        guarded(self.run.run(value, context)).await
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
    async fn run(&self, input: Value, context: RunContext) -> Result<ToolOutput, String>;
}

/// What a handler is told besides the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunContext {
    /// The same for each attempt at the same confirmed action; pass it on to what you call.
    pub idempotency_key: String,
    /// Call variables.
    pub vars: BTreeMap<String, String>,
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
        Some(Tool::Plain(_)) | None => gone(yes.tool()),
    }
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

/// A handler that panics is a handler that failed.
async fn guarded(run: impl Future<Output = Result<ToolOutput, String>>) -> ToolOutcome {
    match AssertUnwindSafe(run).catch_unwind().await {
        Ok(result) => finish(result),
        Err(_) => ToolOutcome::Failed { message: "The tool broke down.".to_owned() },
    }
}

fn finish(result: Result<ToolOutput, String>) -> ToolOutcome {
    match result {
        Ok(ToolOutput { ok: true, message }) => ToolOutcome::Done { message },
        Ok(ToolOutput { ok: false, message }) | Err(message) => ToolOutcome::Failed { message },
    }
}
