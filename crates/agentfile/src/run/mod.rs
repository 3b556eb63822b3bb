//! What a tool of an agent file does: an answer of its own, an HTTP request, a command or a tool of an MCP server.

mod command;
mod http;
mod mcp;
mod reply;

use std::time::Duration;

use reqwest::Url;
use sayback_runtime::agent::{RunError, ToolOutput};
use serde_json::Value;

pub(crate) use command::Command;
pub(crate) use http::{Header, Http, Method};
pub(crate) use mcp::{Mcp, Reach};
pub use mcp::{McpServer, OfferedTool};
pub(crate) use reply::Reply;

/// Most bytes of an answer that are read.
const MAX_ANSWER: usize = 64 * 1024;
/// What a back end has beyond the tool's limit. The core's own limit comes first; this one makes sure that nothing runs
/// on.
const BEYOND_LIMIT: Duration = Duration::from_millis(250);

/// An http or https address with a host.
pub(crate) fn web_address(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// An answer: `{"ok": …, "message": …}`, any other JSON as it is, or text.
fn answer(body: &str, worked: bool) -> ToolOutput {
    let body = body.trim();
    let parsed = serde_json::from_str::<Value>(body).ok();
    let field = |name: &str| parsed.as_ref().and_then(|value| value.get(name));
    let ok = worked && field("ok").and_then(Value::as_bool).unwrap_or(true);
    let message = field("message").and_then(Value::as_str).unwrap_or(body);
    let message = match (message, ok) {
        ("", true) => "Done.".to_owned(),
        ("", false) => "It failed and gave no reason.".to_owned(),
        (message, _) => message.to_owned(),
    };
    ToolOutput { ok, message }
}

/// Whether a body says by itself whether it worked, whatever else was said around it.
fn tells_outcome(body: &str) -> bool {
    serde_json::from_str::<Value>(body.trim()).is_ok_and(|value| value["ok"].is_boolean())
}

fn too_late(what: &str, limit: Duration) -> RunError {
    RunError::Unknown(format!("{what} did not answer within {} s", limit.as_secs_f32()))
}
