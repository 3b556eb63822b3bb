//! The core's laws, held up against its own source and against what it is built on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What the core may not touch: clocks, tasks, hash maps (their order differs from run to run), panics, output.
const FORBIDDEN: [&str; 16] = [
    "std::",
    "Instant",
    "SystemTime",
    "async ",
    ".await",
    "tokio",
    "HashMap",
    "HashSet",
    "panic!",
    "unreachable!",
    "todo!",
    "unimplemented!",
    "unwrap()",
    ".expect(",
    "println!",
    "unsafe",
];

fn crate_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a folder entry can be read").path());
    let mut found: Vec<PathBuf> = paths
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    found.sort();
    found
}

/// The lines of a file that are product code: no comments, nothing from the first test module on.
fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
}

/// The same line without what stands in string literals: a word list may speak of anything.
fn without_literals(line: &str) -> String {
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

#[test]
fn the_core_touches_no_clock_no_task_no_hash_map_and_never_panics() {
    let mut broken = Vec::new();
    let files = sources(&crate_root().join("src"));
    assert!(files.len() >= 20, "only {} files of source were found", files.len());
    for path in files {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for (number, line) in product_lines(&text) {
            let code = without_literals(line);
            for word in FORBIDDEN.iter().filter(|word| code.contains(**word)) {
                broken.push(format!("{}:{number}: {word} in {}", path.display(), line.trim()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_core_is_no_std() {
    let text = fs::read_to_string(crate_root().join("src/lib.rs")).expect("the crate has a lib.rs");
    assert!(text.lines().any(|line| line == "#![no_std]"));
}

/// This machine's target: packages for other ones need not have been downloaded.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc can be run");
    let text = String::from_utf8(output.stdout).expect("rustc speaks UTF-8");
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host").to_owned()
}

/// Everything that the core is built on, by name, without what only its tests use.
fn below_core() -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", &host()])
        .current_dir(crate_root())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names: BTreeMap<String, String> =
        list(&metadata["packages"]).iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
    let arrows: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let normal = |dep: &&Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let deps = list(&node["deps"]);
            (text(&node["id"]), deps.iter().filter(normal).map(|dep| text(&dep["pkg"])).collect())
        })
        .collect();
    let core = names.iter().find(|(_, name)| *name == "sayback-core").map(|(id, _)| id.clone());
    let mut open = vec![core.expect("the core is in its own workspace")];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if seen.insert(id.clone()) {
            open.extend(arrows.get(&id).cloned().unwrap_or_default());
        }
    }
    seen.iter().filter_map(|id| names.get(id).cloned()).filter(|name| name != "sayback-core").collect()
}

#[test]
fn the_core_stands_on_serde_alone() {
    let below = below_core();
    assert!(below.contains("serde"), "{below:?}");
    let runtimes =
        ["tokio", "async-std", "smol", "futures", "futures-core", "mio", "async-trait", "tracing", "log"];
    let found: Vec<&str> = runtimes.into_iter().filter(|name| below.contains(*name)).collect();
    assert!(found.is_empty(), "the core reaches {found:?}");
    let ours: Vec<&String> = below.iter().filter(|name| name.starts_with("sayback")).collect();
    assert!(ours.is_empty(), "the core reaches {ours:?}, which stand on it");
}
