//! What MCP servers say of the tools that an agent calls: read by asking them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Finding, Severity};
use crate::AgentFile;
use crate::run::OfferedTool;
use crate::tools::Origin;

/// Findings about the tools that an agent takes from MCP servers, in the order of the file.
///
/// Each server is started or called once; what it says of its tools are hints, not promises, so nothing but the agent
/// file decides what is asked.
pub async fn lint_offers(file: &AgentFile) -> Vec<Finding> {
    let mut offers: BTreeMap<*const crate::McpServer, Result<Vec<OfferedTool>, String>> = BTreeMap::new();
    let mut findings = Vec::new();
    for origin in &file.origins {
        let Some((server, name)) = &origin.offer else { continue };
        let listed = match offers.entry(Arc::as_ptr(server)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let listed = server.tools().await;
                if let Err(why) = &listed {
                    let message = format!("the MCP server of `{}` was not looked at: {why}", origin.name);
                    let fix = "start it, or check with `--offline`".to_owned();
                    findings.push(finding("mcp-unreachable", Severity::Warning, origin, message, fix));
                }
                place.insert(listed)
            }
        };
        if let Ok(tools) = listed {
            match tools.iter().find(|tool| &tool.name == name) {
                Some(tool) => compare(origin, tool, &mut findings),
                None => findings.push(missing(origin, server.name(), name, tools)),
            }
        }
    }
    findings.sort_by(|a, b| (a.line, a.code, &a.message).cmp(&(b.line, b.code, &b.message)));
    findings
}

fn finding(code: &'static str, severity: Severity, origin: &Origin, message: String, fix: String) -> Finding {
    Finding { code, severity, line: origin.line, message, fix }
}

fn missing(origin: &Origin, server: &str, name: &str, tools: &[OfferedTool]) -> Finding {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).take(20).collect();
    let message = format!("`{}` calls `{name}`, which {server} does not offer", origin.name);
    let fix = if names.is_empty() {
        "it offers no tools".to_owned()
    } else {
        format!("it offers {}", names.join(", "))
    };
    finding("mcp-no-such-tool", Severity::Error, origin, message, fix)
}

fn compare(origin: &Origin, tool: &OfferedTool, findings: &mut Vec<Finding>) {
    if tool.destructive && origin.question.is_none() {
        let message = format!(
            "`{}` has no question, and its server says that it may change or remove things",
            origin.name
        );
        let fix = format!("for example: confirm = \"{}\"", tool.proposed_question());
        findings.push(finding("mcp-destructive", Severity::Warning, origin, message, fix));
    }
    let theirs = tool.fields();
    let ours: BTreeSet<&str> = origin.schema.fields().into_iter().collect();
    let untaken: Vec<&str> = ours.iter().filter(|field| !theirs.contains_key(**field)).copied().collect();
    let wanted: Vec<&str> = theirs
        .iter()
        .filter(|(field, required)| **required && !ours.contains(**field))
        .map(|(field, _)| *field)
        .collect();
    let mut differ = |what: &str, fields: &[&str], fix: &str| {
        if !fields.is_empty() {
            let message = format!("the input of `{}` {what}: {}", origin.name, fields.join(", "));
            findings.push(finding("mcp-input-differs", Severity::Warning, origin, message, fix.to_owned()));
        }
    };
    differ("lacks what the server requires", &wanted, "add the fields to `input`");
    if !tool.is_open() {
        differ("has what the server does not know", &untaken, "take the fields out of `input`");
    }
}

impl OfferedTool {
    /// A question to begin with: the tool's name as words, and every field that it requires.
    pub fn proposed_question(&self) -> String {
        let words = self.name.replace(['_', '-', '.', '/'], " ");
        let fields: Vec<String> = self
            .fields()
            .into_iter()
            .filter(|(name, required)| *required && is_plain(name))
            .map(|(name, _)| format!("{{{{ {name} }}}}"))
            .collect();
        let of = if fields.is_empty() { String::new() } else { format!(" {}", fields.join(" ")) };
        format!("Shall I {}{of}?", words.trim())
    }

    /// The input's fields, and whether each is required.
    fn fields(&self) -> BTreeMap<&str, bool> {
        let required: BTreeSet<&str> = self
            .input
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let known = self.input.get("properties").and_then(Value::as_object);
        let known = known.into_iter().flat_map(|fields| fields.keys().map(String::as_str));
        known.chain(required.iter().copied()).map(|name| (name, required.contains(name))).collect()
    }

    /// Whether fields are taken that the schema does not name. Silence means yes in JSON Schema, but a server that
    /// lists its fields rarely wants others.
    fn is_open(&self) -> bool {
        let others = self.input.get("additionalProperties");
        let listed = self.input.get("properties").is_some();
        others.map_or(!listed, |others| others != &Value::Bool(false))
    }
}

/// Whether a template can name it.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}
