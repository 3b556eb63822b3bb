//! A language model that runs beside this process: no key, no network, no account.
//!
//! It is a program of its own (`sayback-llm`), since llama.cpp and whisper.cpp cannot share a binary. It is started
//! here, talks the OpenAI chat API on loopback, and ends when its standard input closes, so it never outlives us,
//! however we end.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sayback_runtime::llm::{Llm, LlmError, LlmRequest, LlmStream};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};

use crate::openai::{OpenAi, OpenAiConfig, OpenAiConfigError};

/// The model that is fetched by default, as `sayback models fetch` knows it.
pub const DEFAULT_MODEL: &str = "qwen2.5-coder-1.5b-instruct";
/// Names the program, where it is neither beside this one nor in its build folder.
pub const PROGRAM_VARIABLE: &str = "SAYBACK_LLM_SERVER";

const PROGRAM: &str = "sayback-llm";
const BUILT: &str = "local-llm/target/release/sayback-llm";
/// What the program says when it is ready, before its address.
const READY: &str = "listening on ";
/// Most bytes of its complaints that are repeated.
const MOST_WORDS: u64 = 2048;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalLlmConfig {
    /// The GGUF file.
    pub model: PathBuf,
    /// The program; `None`: it is looked for, see [`find_program`].
    pub program: Option<PathBuf>,
    /// Threads that compute. More than the idle cores makes it slower.
    pub threads: u16,
    /// Longest wait until the model is loaded.
    pub start_within: Duration,
}

impl LocalLlmConfig {
    /// This model with the program where it is usually found, two threads, and a minute to load.
    pub fn new(model: impl Into<PathBuf>) -> Self {
        Self { model: model.into(), program: None, threads: 2, start_within: Duration::from_secs(60) }
    }
}

/// Why the local language model does not run.
#[derive(Debug, thiserror::Error)]
pub enum LocalLlmError {
    /// The program was never built.
    #[error(
        "the local language model's program is missing (looked at {}); build it with `scripts/setup --llm`, or name it \
         in {PROGRAM_VARIABLE}",
        list(looked_at)
    )]
    ProgramMissing {
        /// Where it was looked for, in order.
        looked_at: Vec<PathBuf>,
    },
    /// The model was never fetched.
    #[error("there is no language model at {}; fetch it with `sayback models fetch {DEFAULT_MODEL}`", .0.display())]
    ModelMissing(PathBuf),
    /// The program cannot be run.
    #[error("cannot run {}: {reason}; build it again with `scripts/setup --llm`", program.display())]
    NotRun {
        /// The program.
        program: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The program ended before it was ready.
    #[error("the local language model ended while starting: {0}")]
    Ended(String),
    /// The program said something else than its address.
    #[error("{} does not speak like {PROGRAM}: {said:?}; build it again with `scripts/setup --llm`", program.display())]
    Stranger {
        /// The program.
        program: PathBuf,
        /// Its first line.
        said: String,
    },
    /// The model did not load in time.
    #[error("the local language model was not ready within {} s; is the machine short of memory?", .0.as_secs())]
    TooSlow(Duration),
    /// It listens where nobody can call.
    #[error("the local language model gave an address that cannot be used: {0}")]
    Address(#[from] OpenAiConfigError),
}

/// A language model in a process of its own, ended when this is dropped.
#[derive(Debug)]
pub struct LocalLlm {
    client: OpenAi,
    /// Held open: the program ends when it closes.
    _input: ChildStdin,
    /// Held open: the program may still complain.
    _complaints: ChildStderr,
    /// Killed on drop.
    _program: Child,
}

impl LocalLlm {
    /// Starts the program and waits until its model is loaded.
    pub async fn start(config: LocalLlmConfig) -> Result<Self, LocalLlmError> {
        let program = match config.program {
            Some(program) if program.is_file() => program,
            Some(program) => return Err(LocalLlmError::ProgramMissing { looked_at: vec![program] }),
            None => find_program()?,
        };
        if !config.model.is_file() {
            return Err(LocalLlmError::ModelMissing(config.model));
        }
        let not_run = |reason: String| LocalLlmError::NotRun { program: program.clone(), reason };
        let mut child = Command::new(&program)
            .arg("--model")
            .arg(&config.model)
            .args(["--port", "0", "--threads", &config.threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| not_run(error.to_string()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(mut complaints)) = pipes else {
            return Err(not_run("its pipes are missing".to_owned()));
        };
        let address = tokio::time::timeout(config.start_within, address(&program, output, &mut complaints))
            .await
            .map_err(|_| LocalLlmError::TooSlow(config.start_within))??;
        tracing::info!(%address, model = %config.model.display(), "the local language model is ready");
        let model =
            config.model.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let client = OpenAi::new(OpenAiConfig {
            provider: "local".to_owned(),
            choices_field: true,
            ..OpenAiConfig::new(format!("http://{address}/v1"), model)
        })?;
        Ok(Self { client, _input: input, _complaints: complaints, _program: child })
    }

    /// Where it answers, up to and including the version, for other clients on this machine.
    pub fn base_url(&self) -> &str {
        &self.client.config().base_url
    }
}

#[async_trait::async_trait]
impl Llm for LocalLlm {
    fn name(&self) -> String {
        self.client.name()
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        self.client.stream(request).await
    }

    async fn warm(&self, request: LlmRequest) -> Result<(), LlmError> {
        self.client.warm(request).await
    }
}

/// Finds the program: as named in the environment, beside this one, or in its build folder, seen from the working
/// directory or from any folder above this program.
pub fn find_program() -> Result<PathBuf, LocalLlmError> {
    let named = std::env::var_os(PROGRAM_VARIABLE).filter(|named| !named.is_empty()).map(PathBuf::from);
    let here = std::env::current_exe().ok();
    let looked_at = places(named, here.as_deref());
    match looked_at.iter().find(|place| place.is_file()) {
        Some(program) => Ok(program.clone()),
        None => Err(LocalLlmError::ProgramMissing { looked_at }),
    }
}

/// A named program is the only place: whoever names one does not want another.
fn places(named: Option<PathBuf>, this_program: Option<&Path>) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named];
    }
    let folder = this_program.and_then(Path::parent);
    let beside = folder.map(|folder| folder.join(PROGRAM));
    let above = folder.into_iter().flat_map(Path::ancestors).skip(1).map(|folder| folder.join(BUILT));
    beside.into_iter().chain([PathBuf::from(BUILT)]).chain(above).collect()
}

/// The program's first line, as an address.
async fn address(
    program: &Path,
    output: impl AsyncRead + Unpin,
    complaints: &mut ChildStderr,
) -> Result<String, LocalLlmError> {
    let mut line = String::new();
    let read = BufReader::new(output.take(MOST_WORDS)).read_line(&mut line).await;
    if let (Ok(1..), Some(address)) = (&read, line.trim_end().strip_prefix(READY)) {
        return Ok(address.to_owned());
    }
    if !line.is_empty() {
        return Err(LocalLlmError::Stranger {
            program: program.to_owned(),
            said: line.trim_end().to_owned(),
        });
    }
    let mut words = Vec::new();
    // What cannot be read was not said.
    let _ = complaints.take(MOST_WORDS).read_to_end(&mut words).await;
    let words = String::from_utf8_lossy(&words).trim().to_owned();
    Err(LocalLlmError::Ended(if words.is_empty() { "it said nothing".to_owned() } else { words }))
}

fn list(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A model file and a program that runs `script`.
    fn config(folder: &Path, script: &str) -> LocalLlmConfig {
        let program = folder.join("program");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let model = folder.join("tiny-model.gguf");
        std::fs::write(&model, "").unwrap();
        LocalLlmConfig { program: Some(program), ..LocalLlmConfig::new(model) }
    }

    // One test, since a program that another thread's fork still holds open for writing cannot be run.
    #[tokio::test]
    async fn the_program_is_started_understood_and_ended() {
        let folder = tempfile::tempdir().unwrap();
        let start = async |script: &str| LocalLlm::start(config(folder.path(), script)).await;

        let error = start("echo 'sayback-llm: cannot load it' >&2; exit 1").await.unwrap_err();
        assert!(matches!(&error, LocalLlmError::Ended(why) if why.contains("cannot load it")), "{error}");

        let error = start("echo 'Usage: cat [FILE]'").await.unwrap_err();
        assert!(matches!(&error, LocalLlmError::Stranger { said, .. } if said.contains("Usage")), "{error}");

        let error = start("echo listening on nowhere at all").await.unwrap_err();
        assert!(matches!(error, LocalLlmError::Address(_)), "{error}");

        let limit = Duration::from_millis(50);
        let slow = LocalLlmConfig { start_within: limit, ..config(folder.path(), "cat") };
        let error = LocalLlm::start(slow).await.unwrap_err();
        assert!(matches!(error, LocalLlmError::TooSlow(waited) if waited == limit), "{error}");

        // The program holds a pipe open for writing: the pipe ends when the program does.
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut alive = tokio::net::unix::pipe::OpenOptions::new().open_receiver(&pipe).unwrap();
        let script = format!("exec 3>'{}'; echo up >&3; echo listening on 127.0.0.1:9; cat", pipe.display());
        let model = start(&script).await.unwrap();
        assert_eq!(model.name(), "local/tiny-model");
        assert_eq!(model.base_url(), "http://127.0.0.1:9/v1");
        drop(model);
        let mut said = String::new();
        alive.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "up\n");
    }

    #[tokio::test]
    async fn what_is_missing_is_named_with_its_mending_command() {
        let folder = tempfile::tempdir().unwrap();
        let program = Some(folder.path().join("none"));
        let missing = LocalLlmConfig { program, ..LocalLlmConfig::new("m.gguf") };
        let error = LocalLlm::start(missing).await.unwrap_err().to_string();
        assert!(error.contains("scripts/setup --llm"), "{error}");
        let model = folder.path().join("none.gguf");
        let missing = LocalLlmConfig { program: std::env::current_exe().ok(), ..LocalLlmConfig::new(model) };
        let error = LocalLlm::start(missing).await.unwrap_err().to_string();
        assert!(error.contains("sayback models fetch qwen2.5-coder-1.5b-instruct"), "{error}");
    }

    #[test]
    fn the_program_is_looked_for_beside_this_one_and_in_its_build_folder() {
        let looked_at = places(None, Some(Path::new("/repo/target/debug/sayback")));
        let expected = [
            "/repo/target/debug/sayback-llm",
            "local-llm/target/release/sayback-llm",
            "/repo/target/local-llm/target/release/sayback-llm",
            "/repo/local-llm/target/release/sayback-llm",
            "/local-llm/target/release/sayback-llm",
        ];
        assert_eq!(looked_at, expected.map(PathBuf::from));
        assert_eq!(places(Some("/x".into()), Some(Path::new("/a/b"))), [PathBuf::from("/x")]);
    }
}
