//! Tools in Rust, with the same behaviour as tools of a file (VC-10).
//!
//! ```
//! use sayback_agentfile::{Field, ToolBuilder, ToolInputError};
//!
//! let tool = ToolBuilder::new("book_meeting")
//!     .describe("Books the chosen slot.")
//!     .field("start", Field::string().describe("Start, like 2026-12-03T15:00.").format("local-date-time"))
//!     .confirm(|input, _| Ok::<_, ToolInputError>(format!("Shall I book {}?", input["start"])))
//!     .on_submit(|_, _| async { Ok::<_, ToolInputError>("Booked.") })
//!     .build();
//! assert!(tool.is_ok());
//! ```
//!
//! A built [`Tool`] can be cloned into as many agents as want it. With a typed input (`serde::Deserialize` and
//! `schemars::JsonSchema`) the closures get that type.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use sayback_core::{AskTerms, EvidenceClass};
use sayback_runtime::agent::{
    ApprovalRule, AskContext, Confirm, ConfirmError, ConfirmedTool, Handler, PlainTool, RunContext, RunError,
    Tool, ToolInfo, ToolOutput,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::definition::{Definition, described, name_fault};
use crate::question::usable;
use crate::schema::Schema;

/// Better input is wanted: the model is told the text, nothing is held and nothing is said (VC-11).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolInputError(pub String);

impl From<ToolInputError> for RunError {
    fn from(error: ToolInputError) -> Self {
        Self::Failed(error.0)
    }
}

impl From<ToolInputError> for ConfirmError {
    fn from(error: ToolInputError) -> Self {
        Self::Input(error.0)
    }
}

/// Why there is no tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The name cannot be used.
    #[error("the tool name `{name}` cannot be used: {why}")]
    Name {
        /// As given.
        name: String,
        /// What a name may be.
        why: String,
    },
    /// The schema does not compile.
    #[error("the input schema of tool `{tool}` is broken: {why}")]
    Schema {
        /// The tool.
        tool: String,
        /// What is wrong.
        why: String,
    },
    /// It does nothing.
    #[error("tool `{0}` has no `on_submit`")]
    NoRun(String),
    /// Something that only a question can have.
    #[error("tool `{tool}` sets `{what}`, which has no meaning without `confirm`")]
    NoQuestion {
        /// The tool.
        tool: String,
        /// What was set.
        what: &'static str,
    },
}

/// One field of an input, for tools that are described field by field.
#[derive(Clone, Debug)]
pub struct Field {
    schema: Map<String, Value>,
    required: bool,
}

impl Field {
    /// Text.
    pub fn string() -> Self {
        Self::of("string")
    }

    /// A whole number.
    pub fn integer() -> Self {
        Self::of("integer")
    }

    /// Any number. Money belongs in text or in whole cents.
    pub fn number() -> Self {
        Self::of("number")
    }

    /// Yes or no.
    pub fn boolean() -> Self {
        Self::of("boolean")
    }

    /// A list of such fields.
    pub fn list(items: Self) -> Self {
        Self::of("array").with("items", Value::Object(items.schema))
    }

    /// What it means, for the model.
    pub fn describe(self, text: &str) -> Self {
        self.with("description", text.into())
    }

    /// A JSON Schema format, or `local-date-time`, `local-time`, `phone`.
    pub fn format(self, name: &str) -> Self {
        self.with("format", name.into())
    }

    /// One of these words only.
    pub fn one_of(self, words: &[&str]) -> Self {
        self.with("enum", json!(words))
    }

    /// The value where the model gives none; makes it optional.
    pub fn default(self, value: Value) -> Self {
        self.with("default", value).optional()
    }

    /// May be left out.
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// Any other JSON Schema keyword.
    pub fn with(mut self, keyword: &str, value: Value) -> Self {
        self.schema.insert(keyword.to_owned(), value);
        self
    }

    fn of(kind: &str) -> Self {
        Self { schema: Map::new(), required: true }.with("type", kind.into())
    }
}

/// What a run may give back.
pub trait IntoOutput {
    /// As a tool's answer.
    fn into_output(self) -> ToolOutput;
}

impl IntoOutput for ToolOutput {
    fn into_output(self) -> ToolOutput {
        self
    }
}

impl IntoOutput for String {
    fn into_output(self) -> ToolOutput {
        ToolOutput { ok: true, message: self }
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> ToolOutput {
        ToolOutput { ok: true, message: self.to_owned() }
    }
}

/// Builds a tool. `T` is what the closures get: JSON, or the type given to [`ToolBuilder::input`].
#[derive(Debug)]
pub struct ToolBuilder<T = Value> {
    name: String,
    description: String,
    schema: Value,
    confirm: Option<Arc<dyn Confirm>>,
    run: Option<Arc<dyn Handler>>,
    terms: AskTerms,
    limit: Duration,
    revision: String,
    approval: Option<Arc<dyn ApprovalRule>>,
    input: PhantomData<fn(T)>,
}

impl ToolBuilder<Value> {
    /// A tool without input; see [`field`](Self::field), [`schema`](Self::schema), [`input`](Self::input).
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: String::new(),
            schema: json!({ "type": "object", "properties": {}, "required": [] }),
            confirm: None,
            run: None,
            terms: AskTerms::default(),
            limit: Duration::from_secs(30),
            revision: String::new(),
            approval: None,
            input: PhantomData,
        }
    }

    /// Adds a field to the input.
    pub fn field(mut self, name: &str, field: Field) -> Self {
        if let Some(properties) = self.schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert(name.to_owned(), Value::Object(field.schema));
        }
        if let Some(required) = self.schema.get_mut("required").and_then(Value::as_array_mut)
            && field.required
        {
            required.push(name.into());
        }
        self
    }

    /// The whole input as one JSON Schema.
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = schema;
        self
    }

    /// A typed input. Comes before the closures, which get this type.
    pub fn input<T: DeserializeOwned + JsonSchema>(self) -> ToolBuilder<T> {
        ToolBuilder {
            name: self.name,
            description: self.description,
            schema: schemars::schema_for!(T).to_value(),
            confirm: None,
            run: None,
            terms: self.terms,
            limit: self.limit,
            revision: self.revision,
            approval: self.approval,
            input: PhantomData,
        }
    }
}

impl<T: DeserializeOwned + Send + 'static> ToolBuilder<T> {
    /// What it does, for the model.
    pub fn describe(mut self, text: &str) -> Self {
        text.clone_into(&mut self.description);
        self
    }

    /// Its question, from the validated input. An error goes to the model as an input error.
    pub fn confirm<E: Into<ConfirmError>>(
        self,
        build: impl Fn(&T, &AskContext) -> Result<String, E> + Send + Sync + 'static,
    ) -> Self {
        self.confirm_async(move |input, context| {
            let question: Result<String, ConfirmError> = build(&input, &context).map_err(Into::into);
            async move { question }
        })
    }

    /// The same for a question that has to be looked up first.
    pub fn confirm_async<E, F>(mut self, build: impl Fn(T, AskContext) -> F + Send + Sync + 'static) -> Self
    where
        E: Into<ConfirmError>,
        F: Future<Output = Result<String, E>> + Send + 'static,
    {
        let ask = move |input: &Value, context: &AskContext| -> Boxed<Result<String, ConfirmError>> {
            let context = context.clone();
            match typed::<T>(input) {
                Ok(input) => Box::pin(build(input, context).map(|question| question.map_err(Into::into))),
                Err(why) => Box::pin(async { Err(ConfirmError::Input(why)) }),
            }
        };
        self.confirm = Some(Arc::new(ClosureConfirm { ask: Box::new(ask) }));
        self
    }

    /// What it does, on a yes if there is a question. Runs with the very value that the question was built from. Text as
    /// an error says that it failed; [`RunError::Unknown`], that nobody knows whether it happened.
    pub fn on_submit<O, E, F>(mut self, run: impl Fn(T, RunContext) -> F + Send + Sync + 'static) -> Self
    where
        O: IntoOutput,
        E: Into<RunError>,
        F: Future<Output = Result<O, E>> + Send + 'static,
    {
        let run = move |input: Value, context: RunContext| -> Boxed<Result<ToolOutput, RunError>> {
            match typed::<T>(&input) {
                Ok(input) => Box::pin(run(input, context).map(|result| match result {
                    Ok(output) => Ok(output.into_output()),
                    Err(error) => Err(error.into()),
                })),
                Err(why) => Box::pin(async { Err(why.into()) }),
            }
        };
        self.run = Some(Arc::new(ClosureRun { run: Box::new(run) }));
        self
    }

    /// An operator must approve each call first, or those that the rule says. What the rule sees is the validated input.
    pub fn approval(mut self, rule: Arc<dyn ApprovalRule>) -> Self {
        self.approval = Some(rule);
        self
    }

    /// What is done cannot be undone: a longer quiet before the run.
    pub fn irreversible(mut self) -> Self {
        self.terms.irreversible = true;
        self
    }

    /// The least class of evidence that the question was heard.
    pub fn evidence(mut self, class: EvidenceClass) -> Self {
        self.terms.evidence = Some(class);
        self
    }

    /// How long it may run; 30 s by default.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Closures cannot be hashed: change this when what they do changes, and an open question of the old definition is
    /// dropped instead of running the new one.
    pub fn revision(mut self, revision: &str) -> Self {
        revision.clone_into(&mut self.revision);
        self
    }

    /// The tool.
    pub fn build(self) -> Result<Tool, BuildError> {
        let name = self.name;
        if let Some(why) = name_fault(&name) {
            return Err(BuildError::Name { name, why });
        }
        let broken = |why: String| BuildError::Schema { tool: name.clone(), why };
        let schema = Arc::new(Schema::compile(self.schema).map_err(broken)?);
        let Some(run) = self.run else { return Err(BuildError::NoRun(name)) };
        if self.confirm.is_none() && self.terms != AskTerms::default() {
            let what = if self.terms.irreversible { "irreversible" } else { "evidence" };
            return Err(BuildError::NoQuestion { tool: name, what });
        }
        let written = json!({ "rust": self.revision });
        let confirm = self.confirm.iter().map(|_| ("*", "rust")).collect::<BTreeMap<_, _>>();
        let definition = Definition {
            name: &name,
            schema: schema.source(),
            confirm,
            when: None,
            run: &written,
            terms: self.terms,
            approval: if self.approval.is_some() { json!("rust") } else { Value::Null },
        };
        let definition = definition.hash().map_err(|error| broken(error.to_string()))?;
        let info = ToolInfo {
            description: described(&self.description, self.confirm.is_some()),
            schema: schema.source().clone(),
            validate: schema,
            limit: self.limit,
            definition,
            name,
        };
        let tool = match self.confirm {
            None => Tool::Plain(PlainTool::new(info, run)),
            Some(confirm) => Tool::Confirmed(ConfirmedTool::new(info, confirm, self.terms, run)),
        };
        Ok(match self.approval {
            Some(rule) => tool.approved_by(rule),
            None => tool,
        })
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Ask = dyn Fn(&Value, &AskContext) -> Boxed<Result<String, ConfirmError>> + Send + Sync;
type Run = dyn Fn(Value, RunContext) -> Boxed<Result<ToolOutput, RunError>> + Send + Sync;

struct ClosureConfirm {
    ask: Box<Ask>,
}

struct ClosureRun {
    run: Box<Run>,
}

impl fmt::Debug for ClosureConfirm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClosureConfirm")
    }
}

impl fmt::Debug for ClosureRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClosureRun")
    }
}

#[async_trait]
impl Confirm for ClosureConfirm {
    async fn question(&self, input: &Value, context: &AskContext) -> Result<String, ConfirmError> {
        // The closure's own part may panic as well as the future that it gives.
        let begun = catch_unwind(AssertUnwindSafe(|| (self.ask)(input, context)));
        let asked = match begun {
            Ok(question) => AssertUnwindSafe(question).catch_unwind().await,
            Err(panic) => Err(panic),
        };
        match asked {
            Ok(question) => usable(&question?),
            Err(_) => Err(ConfirmError::Failed("the program that builds it failed".to_owned())),
        }
    }
}

#[async_trait]
impl Handler for ClosureRun {
    async fn run(&self, input: Value, context: RunContext) -> Result<ToolOutput, RunError> {
        let begun = catch_unwind(AssertUnwindSafe(|| (self.run)(input, context)));
        let done = match begun {
            Ok(run) => AssertUnwindSafe(run).catch_unwind().await,
            Err(panic) => Err(panic),
        };
        done.unwrap_or_else(|_| Err(RunError::Unknown("the tool failed half-way".to_owned())))
    }
}

fn typed<T: DeserializeOwned>(input: &Value) -> Result<T, String> {
    T::deserialize(input).map_err(|error| format!("The input is not valid. {error}"))
}

#[cfg(test)]
mod tests;
