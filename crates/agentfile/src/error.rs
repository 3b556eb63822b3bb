//! What is wrong with an agent file: every fault with its place and, where there is one, the mending step.

use std::path::PathBuf;

pub use sayback_runtime::fault::Fault;

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
