//! A tool of an MCP server: the program is started, or the address called, when the first tool needs it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::ServiceExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, MetaObject, RequestMetaObject,
};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use sayback_runtime::agent::{Handler, RunContext, RunError, ToolOutput};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::Mutex;

use super::{BEYOND_LIMIT, Header, MAX_ANSWER, answer, too_late};

/// Longest wait for a server to start and to greet.
const GREETING: Duration = Duration::from_secs(15);
/// Where the server finds the idempotency key: a name of our own in the request's `_meta`.
const KEY: &str = "sayback/idempotencyKey";
/// Most tools of one server that are looked at.
const MAX_TOOLS: usize = 1_000;

type Link = RunningService<RoleClient, ()>;

/// How a server is reached.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// A program that speaks on its standard input and output.
    Program { program: String, arguments: Vec<String>, folder: PathBuf },
    /// An address that speaks streamable HTTP.
    Address { url: Url, headers: Vec<(String, Header)> },
}

/// One server of an agent file; tools that name the same one share its connection.
pub struct McpServer {
    reach: Reach,
    link: Mutex<Option<Arc<Link>>>,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("reach", &self.reach).finish_non_exhaustive()
    }
}

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// What it does, in the server's words.
    pub description: String,
    /// JSON Schema of its input.
    pub input: Value,
    /// Whether it may change or remove something. The protocol's defaults hold: a tool that says nothing may.
    pub destructive: bool,
}

impl McpServer {
    pub(crate) fn new(reach: Reach) -> Self {
        Self { reach, link: Mutex::new(None) }
    }

    /// A server that is started as a program, in this folder.
    pub fn program(words: &[String], folder: PathBuf) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self::new(Reach::Program { program: program.clone(), arguments: arguments.to_vec(), folder }))
    }

    /// A server at an http or https address; `None` if it is none.
    pub fn address(url: &str) -> Option<Self> {
        let url = super::web_address(url)?;
        Some(Self::new(Reach::Address { url, headers: Vec::new() }))
    }

    /// What it is called in messages: the program, or the host.
    pub fn name(&self) -> &str {
        match &self.reach {
            Reach::Program { program, .. } => program,
            Reach::Address { url, .. } => url.host_str().unwrap_or("the server"),
        }
    }

    /// The tools that it offers at present.
    ///
    /// # Errors
    /// If it cannot be reached or does not answer in time, as a sentence.
    pub async fn tools(&self) -> Result<Vec<OfferedTool>, String> {
        let link = self.link().await?;
        let listed = tokio::time::timeout(GREETING, link.list_all_tools()).await;
        let tools = listed
            .map_err(|_| format!("{} did not list its tools within {} s", self.name(), GREETING.as_secs()))?
            .map_err(|error| format!("{} did not list its tools: {error}", self.name()))?;
        Ok(tools.into_iter().take(MAX_TOOLS).map(offered).collect())
    }

    /// The connection; a lost one is made anew. Nothing is called while it is made.
    async fn link(&self) -> Result<Arc<Link>, String> {
        let mut held = self.link.lock().await;
        if let Some(link) = held.as_ref().filter(|link| !link.is_closed() && !link.is_transport_closed()) {
            return Ok(Arc::clone(link));
        }
        let greeted = tokio::time::timeout(GREETING, self.greet()).await;
        let link = greeted
            .map_err(|_| format!("{} did not greet within {} s", self.name(), GREETING.as_secs()))??;
        let link = Arc::new(link);
        *held = Some(Arc::clone(&link));
        Ok(link)
    }

    async fn greet(&self) -> Result<Link, String> {
        let cannot =
            |error: &dyn std::error::Error| format!("{} cannot be reached: {}", self.name(), root(error));
        match &self.reach {
            Reach::Program { program, arguments, folder } => {
                let mut command = tokio::process::Command::new(program);
                command.args(arguments).current_dir(folder).process_group(0).kill_on_drop(true);
                let started = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn();
                let (process, errors) =
                    started.map_err(|error| format!("{program} cannot be started: {error}"))?;
                if let Some(errors) = errors {
                    tokio::spawn(note(errors, program.clone()));
                }
                ().serve(process).await.map_err(|error| cannot(&error))
            }
            Reach::Address { url, headers } => {
                let mut custom = HashMap::new();
                for (name, value) in headers {
                    let value = HeaderValue::from_str(&value.resolve()?).map_err(|error| cannot(&error))?;
                    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| cannot(&error))?;
                    custom.insert(name, value);
                }
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(custom)
                    .max_json_response_size(4 * MAX_ANSWER)
                    .max_sse_event_size(4 * MAX_ANSWER);
                // A call that is sent again could run twice; whoever lost a session is told.
                config.reinit_on_expired_session = false;
                let transport = StreamableHttpClientTransport::with_client(super::http::client()?, config);
                ().serve(transport).await.map_err(|error| cannot(&error))
            }
        }
    }
}

/// The innermost cause: what is around it names the library's types.
fn root(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// What a server writes beside the protocol goes to our log, not over the caller's screen.
async fn note(errors: ChildStderr, program: String) {
    let mut lines = BufReader::new(errors).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!(program, line, "MCP server");
    }
}

fn offered(tool: rmcp::model::Tool) -> OfferedTool {
    let hints = tool.annotations.unwrap_or_default();
    let reads = hints.read_only_hint.unwrap_or(false);
    OfferedTool {
        name: tool.name.into_owned(),
        description: tool.description.map(std::borrow::Cow::into_owned).unwrap_or_default(),
        input: Value::Object((*tool.input_schema).clone()),
        destructive: !reads && hints.destructive_hint.unwrap_or(true),
    }
}

/// A call of one tool.
#[derive(Clone, Debug)]
pub(crate) struct Mcp {
    pub(crate) server: Arc<McpServer>,
    pub(crate) tool: String,
    pub(crate) limit: Duration,
}

#[async_trait]
impl Handler for Mcp {
    async fn run(&self, input: Value, context: RunContext) -> Result<ToolOutput, RunError> {
        let link = self.server.link().await.map_err(|why| format!("{why}; nothing was done."))?;
        let arguments = match input {
            Value::Object(fields) => fields,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err("The input is no object; nothing was done.".into());
            }
        };
        let mut meta = JsonObject::new();
        meta.insert(KEY.to_owned(), Value::String(context.idempotency_key));
        let mut params = CallToolRequestParams::new(self.tool.clone());
        params.arguments = Some(arguments);
        params.meta = Some(RequestMetaObject::from(MetaObject(meta)));
        match tokio::time::timeout(self.limit + BEYOND_LIMIT, link.peer().call_tool(params)).await {
            Ok(Ok(result)) => read(&result),
            Ok(Err(error)) => Err(failure(self.server.name(), &error)),
            Err(_) => Err(too_late("the MCP server", self.limit)),
        }
    }
}

fn read(result: &CallToolResult) -> Result<ToolOutput, RunError> {
    // Pictures and sound cannot be read to a caller.
    let texts = result.content.iter().filter_map(ContentBlock::as_text).map(|text| text.text.as_str());
    let mut text = texts.collect::<Vec<_>>().join("\n");
    if text.trim().is_empty()
        && let Some(structured) = &result.structured_content
    {
        text = structured.to_string();
    }
    let failed = result.is_error.unwrap_or(false);
    if text.len() > MAX_ANSWER {
        let why = "The MCP server answered with more than 64 KiB";
        return Err(if failed {
            RunError::Failed(format!("{why}."))
        } else {
            RunError::Unknown(why.to_owned())
        });
    }
    Ok(answer(&text, !failed))
}

fn failure(server: &str, error: &ServiceError) -> RunError {
    // Of all errors only this one is an answer of the server's.
    if let ServiceError::McpError(refusal) = error {
        return RunError::Failed(format!("{server} refused: {}", refusal.message));
    }
    RunError::Unknown(format!("the exchange with {server} broke off: {error}"))
}
