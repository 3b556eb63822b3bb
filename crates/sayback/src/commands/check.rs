//! `sayback check AGENT`: every fault of an agent file, and what its questions will do to callers.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use sayback_agentfile::{Severity, lint};

use crate::engines::load_agent;
use crate::exit::{FAULTS, Stop};

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The agent file
    agent: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let file = load_agent(&args.agent)?;
    let findings = lint(&file);
    for finding in &findings {
        out!("{}:{}", args.agent.display(), finding);
    }
    let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
    let tools: usize = file.agent.skills.iter().map(|skill| skill.tools.len()).sum();
    out!(
        "{}: {} tools, {} errors, {} warnings",
        args.agent.display(),
        tools,
        errors,
        findings.len() - errors
    );
    Ok(if errors > 0 { FAULTS } else { 0 })
}
