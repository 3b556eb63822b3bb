//! Which kind of file somebody gave to a command, if it is for another one.

use std::path::Path;

use crate::exit::Stop;

/// What commands take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Agent,
    Scenario,
    Recording,
    /// The file of `sayback serve`.
    Server,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Agent => "an agent file",
            Self::Scenario => "a scenario",
            Self::Recording => "a recorded call",
            Self::Server => "a server's file",
        }
    }

    /// What it is for.
    fn commands(self) -> &'static str {
        match self {
            Self::Agent => {
                "`sayback check`, `chat` and `talk` take it, and a scenario names it as its `agent`"
            }
            Self::Scenario => "`sayback replay` and `sweep` take it",
            Self::Recording => "`sayback verify` and `replay` take it",
            Self::Server => "`sayback serve` takes it",
        }
    }
}

/// Stops a command that was given another kind of thing than it takes. What cannot be read, or is none of them, goes on
/// to whoever reads it: they say best what is wrong with it.
pub(crate) fn other_than(wanted: Kind, path: &Path) -> Result<(), Stop> {
    let Some(given) = kind_of(path).filter(|given| *given != wanted) else { return Ok(()) };
    Err(Stop::unusable(format!(
        "{}: this is {}, and {} is wanted here\n  hint: {}",
        path.display(),
        given.name(),
        wanted.name(),
        given.commands()
    )))
}

fn kind_of(path: &Path) -> Option<Kind> {
    if path.is_dir() {
        return sayback_replay::bundle::is_bundle(path).then_some(Kind::Recording);
    }
    let bytes = std::fs::read(path).ok()?;
    String::from_utf8_lossy(&bytes).lines().find_map(|line| {
        // The first table tells; comments and keys before it do not.
        match line.trim().split(']').next()?.trim_end() {
            "[agent" => Some(Kind::Agent),
            "[agents" => Some(Kind::Server),
            "[[caller" | "[[expect" | "[[model" => Some(Kind::Scenario),
            _ => None,
        }
    })
}
