//! What can be wrong with a scenario file, and how it is said.

use std::fmt;
use std::path::PathBuf;

pub use sayback_runtime::fault::Fault;
use sayback_runtime::fault::nearest;

/// Why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("{}: cannot be read: {source}\n  hint: check the path and its permissions", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file has faults; each is one line and a hint.
    #[error("{}", Listed(.0))]
    Faults(Vec<Fault>),
}

impl ScenarioError {
    /// The faults with their lines; none if the file could not be read at all.
    pub fn faults(&self) -> &[Fault] {
        match self {
            Self::Unreadable { .. } => &[],
            Self::Faults(faults) => faults,
        }
    }
}

struct Listed<'a>(&'a [Fault]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault:#}")?;
        }
        Ok(())
    }
}

/// "did you mean `x`?", or the whole list.
pub(crate) fn suggestion<'a>(given: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(given, known.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let names: Vec<_> = known.into_iter().collect();
            format!("one of: {}", names.join(", "))
        }
    }
}
