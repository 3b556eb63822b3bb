//! The project's own scenarios, tests/calls: each of them can be read.

use std::path::{Path, PathBuf};

use sayback_replay::scenario::load_scenario;

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/calls");
    let entries = std::fs::read_dir(folder).expect("tests/calls is part of the repository");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut files: Vec<_> = paths.filter(|path| path.to_string_lossy().ends_with(".call.toml")).collect();
    files.sort();
    files
}

#[test]
fn every_scenario_can_be_read() {
    let faults: Vec<String> =
        scenarios().iter().filter_map(|path| load_scenario(path).err()).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(scenarios().len() >= 45, "the product's story is told by at least 45 calls");
}
