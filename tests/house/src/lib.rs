//! Reading the repository as text, for tests of its rules.
//!
//! This crate may not depend on any other crate of the workspace: it judges them. It starts `cargo` and `git` and
//! reads files, and touches nothing.

mod arrows;
mod coverage;
mod source;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use arrows::{Arrow, Kind, actual_arrows, written_arrows};
pub use coverage::{Row, TABLES, Table, ids_in, page, test_functions, tests_by_id};
pub use source::{Function, code_only, functions, without_tests};

/// The repository's root folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("/")).to_path_buf()
}

/// A file of the repository as text.
///
/// # Panics
/// If it cannot be read: then the rule that asked for it is broken.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a command prints.
///
/// # Panics
/// If it cannot be started or fails, with what it said.
pub fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Cargo, the one that runs these tests where there is one.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// The paths of all files under a folder of the repository whose name ends so; sorted, build output left out.
pub fn files_below(folder: &str, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root().join(folder), end, &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && name != "target" {
            collect(&path, end, found);
        } else if name.ends_with(end) {
            found.push(path);
        }
    }
}

/// The Rust files of the product: `crates/*/src`, and the language model's own program.
pub fn product_sources() -> Vec<PathBuf> {
    let in_src = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "src");
    let mut files: Vec<PathBuf> = files_below("crates", ".rs").into_iter().filter(in_src).collect();
    files.extend(files_below("local-llm/src", ".rs"));
    files
}

/// Every file that is kept under version control and still there; without git, all text files of the source.
pub fn tracked_files() -> Vec<PathBuf> {
    let root = root();
    let listed = Command::new("git").current_dir(&root).args(["ls-files", "-z"]).output();
    let Some(listed) = listed.ok().filter(|output| output.status.success()) else {
        return [".rs", ".md", ".toml", ".lock"].iter().flat_map(|end| files_below("", end)).collect();
    };
    let list = String::from_utf8_lossy(&listed.stdout).into_owned();
    list.split('\0')
        .filter(|name| !name.is_empty())
        .map(|name| root.join(name))
        .filter(|p| p.is_file())
        .collect()
}

/// A path as it is written in messages: from the repository's root.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
