//! The agent file: TOML to an agent, and the same agent built in Rust.
//!
//! [`load`] reads a file and gives either an [`AgentFile`], in which everything is resolved, or all the faults that were
//! found, each with file, line, column and the mending step. [`ToolBuilder`] makes the same tools from closures.
//!
//! This crate may not drive a call or know a vendor: it turns what an author wrote into the types of the runtime. It
//! fails closed. A tool that names a question never becomes one without; a condition that cannot be decided asks; a
//! template that cannot be rendered is an error and not half a question; a setting that nothing implements is refused.

mod approval;
mod blank;
mod builder;
mod condition;
mod definition;
mod duration;
mod error;
pub mod frozen;
mod lint;
mod policy;
mod question;
mod reader;
mod run;
mod runs;
mod schema;
mod settings;
mod spoken;
mod template;
mod tools;

use std::path::{Path, PathBuf};

use sayback_runtime::agent::Agent;
use sayback_runtime::fault::utf8;
use toml::de::DeTable;

pub use builder::{BuildError, Field, IntoOutput, ToolBuilder, ToolInputError};
pub use duration::parse_duration;
pub use error::{AgentFileError, Fault};
pub use frozen::{canonical, parse_strict};
pub use lint::{CODES, Finding, Severity, lint, lint_offers};
pub use question::MAX_QUESTION;
pub use run::{McpServer, OfferedTool};
pub use schema::Schema;
pub use settings::{
    Fallback, FarEnd, LineSettings, LlmProvider, LlmSettings, Privacy, Redact, SttProvider, SttSettings,
    TtsProvider, TtsSettings,
};

use reader::{Reader, Section};
use tools::{Origin, Surroundings};

/// Largest agent file in bytes.
const MAX_FILE: usize = 1024 * 1024;

/// An agent file, read and resolved.
#[derive(Clone, Debug)]
pub struct AgentFile {
    /// The agent.
    pub agent: Agent,
    /// Its language model.
    pub llm: LlmSettings,
    /// Its speech recognition.
    pub stt: SttSettings,
    /// Its voice.
    pub tts: TtsSettings,
    /// Its line.
    pub line: LineSettings,
    /// What is kept of its calls.
    pub privacy: Privacy,
    /// SHA-256 of the file and of every file that it names, `sha256:…`.
    pub hash: String,
    /// Where it was read from.
    pub path: PathBuf,
    /// What the linter needs to know.
    origins: Vec<Origin>,
}

/// Reads an agent file.
pub fn load(path: impl AsRef<Path>) -> Result<AgentFile, AgentFileError> {
    let path = path.as_ref();
    let unreadable = |reason: String| AgentFileError::Unreadable { path: path.to_owned(), reason };
    let bytes = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    let text = utf8(path, bytes).map_err(|fault| AgentFileError::Faulty(vec![fault]))?;
    parse(&text, path)
}

/// Reads an agent file's text; files that it names are looked for beside `path`.
pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<AgentFile, AgentFileError> {
    let path = path.as_ref();
    let reader = Reader::new(path, text);
    if text.len() > MAX_FILE {
        reader.fault(0..0, "the file is larger than 1 MiB", "is this an agent file?");
        return Err(AgentFileError::Faulty(reader.into_faults()));
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let broken = !errors.is_empty();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        reader.fault(span, format!("this is not TOML: {message}"), "");
    }
    if broken {
        // What a reader guesses of a broken file would only bring up faults that are none.
        return Err(AgentFileError::Faulty(reader.into_faults()));
    }
    let file = resolve(&reader, table.get_ref(), text);
    let faults = reader.into_faults();
    if faults.is_empty() { Ok(file) } else { Err(AgentFileError::Faulty(faults)) }
}

fn resolve<'a>(reader: &'a Reader<'a>, table: &'a DeTable<'a>, text: &str) -> AgentFile {
    let root = reader.root(table);
    let agent_section = root.child("agent");
    if !root.has("agent") {
        let hint = "begin it with `[agent]`, `name = \"Clinic desk\"`, `instructions = \"…\"`";
        root.fault_here("the file has no [agent]", hint);
    }
    let mut agent = read_agent(agent_section);
    agent.policy = policy::policy(root.child("turn"), root.child("confirm"), &agent.language);
    let folder = reader.path().parent().unwrap_or(Path::new("")).to_owned();
    let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
    let mut around = Surroundings::new(folder, agent.language.clone(), &agent.policy);
    let skills = tools::skills(&root, &mut around);
    let (origins, referenced) = (around.origins, around.referenced);
    agent.skills = skills;
    let file = AgentFile {
        llm: settings::llm(root.child("llm")),
        stt: settings::stt(root.child("stt"), &agent.language),
        tts: settings::tts(root.child("tts"), &agent.language),
        line: settings::line(root.child("line")),
        privacy: settings::privacy(root.child("privacy")),
        hash: file_hash(text, &referenced),
        path: reader.path().to_owned(),
        agent,
        origins,
    };
    root.finish();
    file
}

fn read_agent(section: Option<Section<'_>>) -> Agent {
    let mut agent = Agent {
        name: String::new(),
        language: "en".to_owned(),
        greeting: None,
        instructions: String::new(),
        policy: sayback_core::Policy::default(),
        skills: Vec::new(),
    };
    let Some(section) = section else { return agent };
    agent.name = section.required_text("name", "Clinic desk");
    if let Some(language) = section.text("language") {
        if tools::is_language(&language) {
            agent.language = language;
        } else {
            let message = format!("`{}` is not a language tag", reader::shown(&language));
            section.fault_at("language", message, "write it like `en`, `de` or `pt-BR`");
        }
    }
    agent.greeting = section.text("greeting").filter(|greeting| !greeting.trim().is_empty());
    agent.instructions = section.text("instructions").unwrap_or_default().trim().to_owned();
    section.finish();
    agent
}

/// Lengths go in too, so that moving text between two files changes the hash.
fn file_hash(text: &str, referenced: &[String]) -> String {
    let mut all = text.to_owned();
    for other in referenced {
        all.push_str(&format!("\n{}\n{other}", other.len()));
    }
    frozen::sha256(all.as_bytes())
}

#[cfg(test)]
mod tests;
