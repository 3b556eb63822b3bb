//! Every timing case, by id, through the core.

use std::path::Path;

use sayback_replay::conform::run_timing;
use sayback_replay::timing::{load_cases, parse_timing};

fn run_all(file: &str, least: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance").join(file);
    let cases = load_cases(&path, parse_timing).unwrap_or_else(|error| panic!("{error}"));
    assert!(cases.len() >= least, "{} cases", cases.len());
    let mut failed = Vec::new();
    for case in &cases {
        for mismatch in run_timing(case) {
            failed.push(format!("{} ({}): {mismatch}", case.id, case.note));
        }
    }
    assert!(failed.is_empty(), "{} mismatches:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn every_timing_case_comes_out_as_stated() {
    run_all("timing.jsonl", 36);
}

/// Modes and faults that those cases leave out.
#[test]
fn our_own_timing_cases_come_out_as_stated() {
    run_all("timing_own.jsonl", 100);
}
