//! What is wrong with an agent file: every fault with its place and, where there is one, the mending step.

use std::fmt;
use std::path::PathBuf;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file; an agent file's schema may be a file of its own.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// How to mend it; empty where the message says all there is.
    pub hint: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.path.display(), self.line, self.column, self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

/// Why there is no agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentFileError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {reason}; name an agent file, for example configs/clinic.toml", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The file can be read and is not an agent: all faults that were found, in the order of the file.
    #[error("{}", one_per_line(.0))]
    Faulty(Vec<Fault>),
}

impl AgentFileError {
    /// The faults, if the file could be read.
    pub fn faults(&self) -> &[Fault] {
        match self {
            Self::Unreadable { .. } => &[],
            Self::Faulty(faults) => faults,
        }
    }
}

fn one_per_line(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n")
}
