//! A tool that runs a program: the input on its standard input, the answer from its standard output.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process_group};
use sayback_runtime::agent::{Handler, RunContext, RunError, ToolOutput};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};

use super::{BEYOND_LIMIT, MAX_ANSWER, answer, tells_outcome, too_late};

/// A program, its arguments and where it runs. No shell is involved.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    /// The agent file's folder.
    pub(crate) folder: PathBuf,
    pub(crate) limit: Duration,
}

#[async_trait]
impl Handler for Command {
    async fn run(&self, input: Value, context: RunContext) -> Result<ToolOutput, RunError> {
        let mut child = self.spawn(&context.idempotency_key)?;
        let group = Group::of(&child);
        let outcome = tokio::time::timeout(self.limit + BEYOND_LIMIT, converse(&mut child, &input)).await;
        match outcome {
            Ok(result) => {
                if result.is_ok() {
                    group.leave();
                }
                result
            }
            Err(_) => Err(too_late("the program", self.limit)),
        }
    }
}

impl Command {
    fn spawn(&self, key: &str) -> Result<Child, String> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env("SAYBACK_IDEMPOTENCY_KEY", key)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        command
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}; nothing was done.", self.program))
    }
}

async fn converse(child: &mut Child, input: &Value) -> Result<ToolOutput, RunError> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ((), out, err) = tokio::try_join!(feed(stdin, input.to_string()), read(stdout), read(stderr))?;
    let status = child.wait().await.map_err(|error| lost(&error))?;
    if status.code().is_none() && !tells_outcome(&out) {
        return Err(RunError::Unknown(format!("the program was ended from outside ({status})")));
    }
    let mut output = answer(&out, status.success());
    if !status.success() && out.trim().is_empty() {
        let last = err.lines().rev().find(|line| !line.trim().is_empty());
        output.message = last.map_or_else(|| format!("The program failed ({status})."), str::to_owned);
    }
    Ok(output)
}

/// A program that does not read its input is no fault.
async fn feed(stdin: Option<ChildStdin>, input: String) -> Result<(), RunError> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    drop(stdin.write_all(input.as_bytes()).await);
    drop(stdin.shutdown().await);
    Ok(())
}

async fn read(stream: Option<impl AsyncRead + Unpin>) -> Result<String, RunError> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let mut limited = stream.take(MAX_ANSWER as u64 + 1);
        limited.read_to_end(&mut bytes).await.map_err(|error| lost(&error))?;
    }
    if bytes.len() > MAX_ANSWER {
        return Err(RunError::Unknown("the program wrote more than 64 KiB and was ended".to_owned()));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn lost(error: &std::io::Error) -> RunError {
    RunError::Unknown(format!("the program was lost: {error}"))
}

/// The program and whatever it started: killed together unless it came to its end. Also when the future is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    fn leave(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may be gone already.
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests;
