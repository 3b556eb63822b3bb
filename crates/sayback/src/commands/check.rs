//! `sayback check AGENT`: every fault of an agent file, and what its questions will do to callers.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use sayback_agentfile::{Finding, Severity, lint, lint_offers};
use serde_json::{Value, json};

use crate::engines::{Waits, load_agent};
use crate::exit::{FAULTS, Stop};
use crate::out::count;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The agent file
    agent: PathBuf,
    /// One JSON object, for other programs
    #[arg(long)]
    json: bool,
    /// Do not start or call the MCP servers that the file names
    #[arg(long)]
    offline: bool,
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let file = load_agent(&args.agent)?;
    let mut findings = lint(&file);
    if !args.offline {
        findings.extend(Waits::new()?.runtime().block_on(lint_offers(&file)));
        findings.sort_by_key(|finding| finding.line);
    }
    let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
    let wrong = errors > 0;
    let warnings = findings.len() - errors;
    let tools: usize = file.agent.skills.iter().map(|skill| skill.tools.len()).sum();
    let path = args.agent.display();
    if args.json {
        let findings: Vec<Value> = findings.iter().map(as_json).collect();
        let all = json!({
            "file": path.to_string(), "tools": tools, "errors": errors, "warnings": warnings, "findings": findings,
        });
        out!("{all}");
    } else {
        for Finding { code, severity, line, message, fix } in &findings {
            out!("{path}:{line}: {severity} [{code}]: {message}\n  hint: {fix}; see docs/lints/{code}.md");
        }
        let (tools, errors) = (count(tools, "tool"), count(errors, "error"));
        out!("{path}: {tools}, {errors}, {}", count(warnings, "warning"));
    }
    Ok(if wrong { FAULTS } else { 0 })
}

fn as_json(finding: &Finding) -> Value {
    let mut value = serde_json::to_value(finding).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("page".to_owned(), json!(format!("docs/lints/{}.md", finding.code)));
    }
    value
}
