//! A tool that only answers: for demonstrations and tests.

use async_trait::async_trait;
use sayback_runtime::agent::{Handler, RunContext, RunError, ToolOutput};
use serde_json::Value;

use crate::template::{Template, View};

/// A fixed answer over the input.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) ok: bool,
    pub(crate) message: Template,
    pub(crate) language: String,
}

#[async_trait]
impl Handler for Reply {
    async fn run(&self, input: Value, context: RunContext) -> Result<ToolOutput, RunError> {
        let view = View { input: &input, vars: &context.vars, language: &self.language };
        let message = self.message.render(view)?;
        Ok(ToolOutput { ok: self.ok, message })
    }
}
