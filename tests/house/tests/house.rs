//! The house rules that STYLE.md and ARCHITECTURE.md state, held against the source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sayback_house::{
    Arrow, Kind, actual_arrows, cargo, code_only, files_below, functions, output_of, product_sources, read,
    root, shown, tracked_files, without_tests, written_arrows,
};

const MOST_LINES_OF_A_FILE: usize = 600;
const MOST_LINES_OF_A_FUNCTION: usize = 60;
/// The one file that reads a clock.
const CLOCK: &str = "crates/runtime/src/clock.rs";

/// Files over the limit, and how long they may be. An entry may shrink or go, never grow; none may be added.
const LONG_FILES: &[(&str, usize)] = &[];
/// Functions over the limit, as `file:name`. The same holds.
const LONG_FUNCTIONS: &[(&str, usize)] = &[];

fn assert_none(faults: &[String], rule: &str) {
    assert!(faults.is_empty(), "{rule}\n  {}\n", faults.join("\n  "));
}

/// What is over a limit and not listed, has grown since it was listed, or is listed without need.
fn judge(sizes: &BTreeMap<String, usize>, most: usize, listed: &[(&str, usize)]) -> Vec<String> {
    let listed: BTreeMap<&str, usize> = listed.iter().copied().collect();
    let limit = |name: &str| listed.get(name).copied().unwrap_or(most);
    let over = sizes.iter().filter(|(name, size)| **size > limit(name));
    let needless = listed.keys().filter(|name| sizes.get(**name).is_none_or(|size| *size <= most));
    over.map(|(name, size)| format!("{name}: {size} lines, at most {}", limit(name)))
        .chain(needless.map(|name| format!("{name}: within the limit now, take it off the list")))
        .collect()
}

#[test]
fn the_arrows_between_crates_are_those_in_architecture_md() {
    let written = written_arrows(&read(&root().join("ARCHITECTURE.md")));
    let actual = actual_arrows();
    assert!(written.len() > 10, "ARCHITECTURE.md has lost its block of arrows");
    let may: BTreeSet<(&str, &str)> =
        written.iter().filter(|a| a.kind == Kind::May).map(|a| (a.from.as_str(), a.to.as_str())).collect();
    let unwritten = actual.iter().filter(|a| !written.contains(a) && !may.contains(&(&a.from, &a.to)));
    let undrawn = written.iter().filter(|a| a.kind != Kind::May && !actual.contains(a));
    let show =
        |arrow: &Arrow, fault: &str| format!("{} -> {} ({:?}): {fault}", arrow.from, arrow.to, arrow.kind);
    let faults: Vec<String> = unwritten
        .map(|arrow| show(arrow, "not in ARCHITECTURE.md"))
        .chain(undrawn.map(|arrow| show(arrow, "in ARCHITECTURE.md, but no crate draws it")))
        .collect();
    assert_none(&faults, "the arrows between the crates are not those that ARCHITECTURE.md lists");
}

#[test]
fn arrows_point_one_way_and_siblings_do_not_see_each_other() {
    let storeys = [
        vec!["sayback-core"],
        vec!["sayback-media"],
        vec!["sayback-runtime"],
        vec![
            "sayback-providers",
            "sayback-transports",
            "sayback-agentfile",
            "sayback-store",
            "sayback-replay",
            "sayback-server",
        ],
        vec!["sayback"],
    ];
    let storey = |name: &str| storeys.iter().position(|names| names.contains(&name));
    let written = written_arrows(&read(&root().join("ARCHITECTURE.md")));
    let faults: Vec<String> = written
        .union(&actual_arrows())
        .filter(|arrow| storey(&arrow.from).zip(storey(&arrow.to)).is_some_and(|(from, to)| from <= to))
        .map(|arrow| format!("{} -> {}", arrow.from, arrow.to))
        .collect();
    assert_none(&faults, "an arrow points sideways or up");
}

#[test]
fn below_core_there_is_no_executor_and_no_clock() {
    let tree = output_of(cargo().args([
        "tree",
        "--offline",
        "-p",
        "sayback-core",
        "-e",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{lib}",
    ]));
    let below: BTreeSet<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
    assert!(below.contains("serde"), "cargo tree was not understood: {tree}");
    let banned =
        ["tokio", "async_std", "smol", "futures", "mio", "chrono", "time", "jiff", "tracing", "log", "rand"];
    let found: Vec<String> =
        banned.iter().filter(|name| below.contains(*name)).map(ToString::to_string).collect();
    assert_none(&found, "sayback-core decides and never waits: these do not belong below it");
    let lib = code_only(&read(&root().join("crates/core/src/lib.rs")));
    assert!(lib.contains("#![no_std]"), "crates/core is no_std");
}

#[test]
fn files_are_short_enough_to_be_read() {
    let length = |path: &Path| without_tests(&read(path)).lines().count();
    let sizes = product_sources().iter().map(|path| (shown(path), length(path))).collect();
    assert_none(
        &judge(&sizes, MOST_LINES_OF_A_FILE, LONG_FILES),
        "files have at most 600 lines, tests not counted: split by noun",
    );
}

#[test]
fn functions_are_short_enough_to_be_read() {
    let mut sizes = BTreeMap::new();
    for path in product_sources() {
        for function in functions(without_tests(&read(&path))) {
            let size = sizes.entry(format!("{}:{}", shown(&path), function.name)).or_insert(0);
            *size = function.lines.max(*size);
        }
    }
    assert!(sizes.len() > 500, "only {} functions were found", sizes.len());
    assert_none(
        &judge(&sizes, MOST_LINES_OF_A_FUNCTION, LONG_FUNCTIONS),
        "functions have at most 60 lines of code",
    );
}

#[test]
fn the_clock_is_read_in_one_file() {
    let reads = [
        "Instant::now",
        "SystemTime::now",
        ".elapsed()",
        "Utc::now",
        "Local::now",
        "thread::sleep",
        "time::sleep(",
    ];
    let mut faults = Vec::new();
    for path in files_below("crates", ".rs").into_iter().filter(|path| shown(path).contains("/src/")) {
        let name = shown(&path);
        for (at, line) in code_only(&read(&path)).lines().enumerate() {
            for found in reads.iter().filter(|read| line.contains(**read) && name != CLOCK) {
                faults.push(format!("{name}:{}: {found}", at + 1));
            }
        }
    }
    assert_none(&faults, "the clock is read in crates/runtime/src/clock.rs only, and nothing sleeps");
}

#[test]
fn nothing_is_left_to_do_and_no_test_is_left_out() {
    let marks = ["todo!", "unimplemented!", "#[ignore", "dbg!"];
    let mut faults = Vec::new();
    for path in ["crates", "tests", "local-llm/src"].iter().flat_map(|folder| files_below(folder, ".rs")) {
        let text = read(&path);
        for (at, line) in code_only(&text).lines().enumerate() {
            for found in marks.iter().filter(|mark| line.contains(**mark)) {
                faults.push(format!("{}:{}: {found}", shown(&path), at + 1));
            }
        }
    }
    assert_none(&faults, "unfinished code and tests that are left out do not go in");
}

/// Written in halves, so that this file does not hold them itself.
fn forbidden() -> Vec<String> {
    let halves = [
        ("/wo", "rk/"),
        ("/fa", "rm/"),
        ("/ro", "ot/"),
        ("/tmp/mo", "dels"),
        ("index.crat", "es.io"),
        ("static.crat", "es.io"),
        ("py", "pi.org"),
        ("pythonho", "sted.org"),
        ("registry.npm", "js.org"),
        ("deb.deb", "ian.org"),
        ("proxy.gol", "ang.org"),
        ("arti", "factory"),
        ("index-", "url"),
    ];
    halves.iter().map(|(a, b)| format!("{a}{b}")).collect()
}

#[test]
fn no_file_speaks_of_one_machine_or_of_a_package_registry() {
    let words = forbidden();
    let mut faults = Vec::new();
    for path in tracked_files() {
        // What is no text has no words.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for (at, line) in text.lines().enumerate() {
            for found in words.iter().filter(|word| line.contains(word.as_str())) {
                faults.push(format!("{}:{}: {found}", shown(&path), at + 1));
            }
        }
    }
    assert_none(&faults, "paths of one machine and hosts of registries stay out: users have their own");
}

#[test]
fn the_lock_file_takes_crates_from_the_public_registry_only() {
    for lock in ["Cargo.lock", "local-llm/Cargo.lock"] {
        let text = read(&root().join(lock));
        let sources: BTreeSet<&str> = text.lines().filter(|line| line.starts_with("source = ")).collect();
        let public = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
        assert_eq!(sources, BTreeSet::from([public]), "{lock}");
    }
}

#[test]
fn each_dependency_has_its_reason_in_architecture_md() {
    let table = read(&root().join("ARCHITECTURE.md"));
    let reasons: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    let manifest = read(&root().join("Cargo.toml"));
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let names: Vec<&str> =
        section.lines().filter_map(|line| line.split_once(" = ").map(|(name, _)| name)).collect();
    assert!(names.len() > 20, "Cargo.toml was not understood");
    let explained = |name: &str| reasons.iter().any(|line| line.contains(&format!("`{name}`")));
    let faults: Vec<String> = names
        .iter()
        .filter(|name| !name.starts_with("sayback-") && !explained(name))
        .map(ToString::to_string)
        .collect();
    assert_none(&faults, "a crate that is depended on has a line in ARCHITECTURE.md that says why this one");
}

#[test]
fn each_crate_says_on_its_first_page_what_it_may_not_touch() {
    let mut faults = Vec::new();
    let libs: Vec<_> =
        files_below("crates", "lib.rs").into_iter().filter(|p| p.ends_with("src/lib.rs")).collect();
    assert!(libs.len() >= 10, "only {} crates were found", libs.len());
    for path in libs {
        let text = read(&path);
        let page: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let page = page.join(" ").replace("//!", "").to_lowercase();
        let says = ["may not", "nothing in here", "never"].iter().any(|words| page.contains(words));
        let name = shown(&path);
        if !says {
            faults.push(name);
        }
    }
    assert_none(&faults, "the first page of a crate says what it may not touch, and why (\"may not …\")");
}

#[test]
fn licences_and_lock_files_are_there() {
    for (name, words) in [
        ("LICENSE-APACHE", "Apache License"),
        ("LICENSE-MIT", "Permission is hereby granted"),
        ("NOTICE", "Sayback"),
        ("Cargo.lock", "name = \"sayback-core\""),
        ("local-llm/Cargo.lock", "name = \"sayback-llm\""),
    ] {
        assert!(read(&root().join(name)).contains(words), "{name} does not hold {words:?}");
    }
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let mut faults = Vec::new();
    let documents = tracked_files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "md"));
    for path in documents {
        let text = read(&path);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let outside = target.contains("://") || file.is_empty();
            if !outside && !path.with_file_name("").join(file).exists() {
                faults.push(format!("{}: {target}", shown(&path)));
            }
        }
    }
    assert_none(&faults, "links that lead nowhere");
}

#[test]
fn every_event_and_field_of_the_log_is_documented() {
    let source = read(&root().join("crates/core/src/command.rs"));
    let report = source.split("pub enum Report").nth(1).unwrap_or_default();
    let documented = read(&root().join("docs/events.md"));
    let renamed = report.split("rename = \"").skip(1).filter_map(|rest| rest.split('"').next());
    let fields =
        report.split(['{', ',', '\n']).filter_map(|part| part.split_once(": ").map(|(name, _)| name.trim()));
    let names: BTreeSet<&str> = renamed.chain(fields.filter(|name| *name != "is_final")).collect();
    assert!(names.contains("question.heard") && names.contains("margin_ms"), "command.rs was not understood");
    let reasons = source.split("pub enum DropReason").nth(1).and_then(|rest| rest.split('}').next());
    let reasons =
        reasons.unwrap_or_default().lines().filter_map(|line| line.trim().strip_suffix(',')).map(snake_case);
    let all = names.into_iter().map(str::to_owned).chain(reasons);
    let faults: Vec<String> = all.filter(|name| !documented.contains(&format!("`{name}`"))).collect();
    assert_none(&faults, "docs/events.md does not have");
}

fn snake_case(name: &str) -> String {
    let lower = |c: char| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() };
    name.chars().map(lower).collect::<String>().trim_start_matches('_').to_owned()
}

#[test]
fn the_readme_shows_the_first_agent_as_it_is() {
    let readme = read(&root().join("README.md"));
    for name in ["taxi.toml", "early-yes.call.toml"] {
        let text = read(&root().join("docs/first-agent").join(name));
        assert!(readme.contains(text.trim_end()), "README.md and docs/first-agent/{name} differ");
    }
}

#[test]
fn the_counter_counts() {
    let source = "fn a() {\n    // no\n    b('{', \"}\");\n\n    c(r#\"}\"#);\n}\n\nfn none();\n#[cfg(test)]\nmod tests {\n}\n";
    let counted: Vec<(String, usize)> =
        functions(without_tests(source)).into_iter().map(|f| (f.name, f.lines)).collect();
    assert_eq!(counted, [("a".to_owned(), 2)]);
    assert!(!without_tests(source).contains("mod tests"));
    assert_eq!(code_only("a /* { */ b"), "a         b");
}
