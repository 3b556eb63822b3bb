//! What a test needs and a machine may not have, and what it says then.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the models: `SAYBACK_MODELS`, or the repository's own.
pub fn models() -> PathBuf {
    std::env::var_os("SAYBACK_MODELS").map_or_else(|| repository().join("models"), PathBuf::from)
}

/// Whether the models of the set `core` are there, as their list names them; if not, see [`skip`].
///
/// # Panics
/// In continuous integration, if one is missing.
pub fn has_models() -> bool {
    let missing: Vec<String> =
        core_models().into_iter().filter(|name| !models().join(name).is_file()).collect();
    missing.is_empty()
        || skip(&format!("models are missing: {missing:?}; get them with: scripts/fetch-models"))
}

/// Whether a program is installed, which `flag` makes say something and end; if not, see [`skip`].
///
/// # Panics
/// In continuous integration, if it is not.
pub fn has_program(name: &str, flag: &str) -> bool {
    runs(name, flag) || skip(&format!("{name} is missing; get it with: scripts/setup --peers"))
}

/// Whether a program can be started, for who has another one to try.
pub fn runs(name: &str, flag: &str) -> bool {
    Command::new(name).arg(flag).stdin(Stdio::null()).output().is_ok()
}

/// Says that a test cannot be made here, past what keeps the output of tests back. Always false.
///
/// # Panics
/// In continuous integration (`CI` is set): there it is a failure.
pub fn skip(why: &str) -> bool {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    // If even this cannot be said, nobody listens.
    let _ = writeln!(std::io::stderr(), "\n=== SKIPPED: {why} ===\n");
    false
}

pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("tests/rig lies in it")
}

/// The files that `scripts/fetch-models` gets, so that no test waits for a file that nobody is told to get.
fn core_models() -> Vec<String> {
    let list =
        std::fs::read_to_string(repository().join("models/manifest.toml")).expect("it is in the repository");
    let list: toml::Table = list.parse().expect("it is tested where it is read");
    let array = |table: &toml::Value, key: &str| {
        table.get(key).and_then(toml::Value::as_array).cloned().unwrap_or_default()
    };
    let all = list.get("model").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let core = all.iter().filter(|model| array(model, "sets").iter().any(|set| set.as_str() == Some("core")));
    let files = core.flat_map(|model| array(model, "file"));
    files.filter_map(|file| Some(file.get("name")?.as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::core_models;

    #[test]
    fn the_list_of_models_is_read() {
        let all = core_models();
        for kind in ["ggml-", "silero", "smart-turn", "onnx.json"] {
            assert!(all.iter().any(|name| name.contains(kind)), "{kind}: {all:?}");
        }
        assert!(all.len() >= 5 && !all.iter().any(|name| name.ends_with(".gguf")), "{all:?}");
    }
}
