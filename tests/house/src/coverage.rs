//! Which tests cover which row of the rules: found by the row's id in test sources and scenario files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{files_below, read, root, shown};

/// A row of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// `VC-01`.
    pub id: String,
    /// What it asks for, in a sentence.
    pub text: String,
}

/// A set of rules: its rows, and the page that says which tests carry their ids.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// `VC`.
    pub prefix: &'static str,
    /// How many rows it has: a row that is lost is noticed.
    pub rows: usize,
    /// The file with the rows, below tests/house.
    pub source: &'static str,
    /// The page, below docs.
    pub page: &'static str,
    /// What it is about: `Each … , and the tests`.
    pub about: &'static str,
}

/// All of them. One more is one line.
pub const TABLES: &[Table] = &[
    Table {
        prefix: "VC",
        rows: 85,
        source: "rows.txt",
        page: "conformance.md",
        about: "rule of the confirmation gate",
    },
    Table {
        prefix: "LED",
        rows: 37,
        source: "rows-ledger.txt",
        page: "conformance-ledger.md",
        about: "rule of the confirmation ledger",
    },
    Table {
        prefix: "ADK",
        rows: 25,
        source: "rows-adk.txt",
        page: "conformance-adk.md",
        about: "rule of approval by id",
    },
];

impl Table {
    /// The rows, as the file lists them.
    pub fn rows(&self) -> Vec<Row> {
        let text = read(&root().join("tests/house").join(self.source));
        let prefix = format!("{}-", self.prefix);
        let lines = text.lines().filter(|line| line.starts_with(&prefix));
        lines
            .filter_map(|line| line.split_once(' '))
            .map(|(id, text)| Row { id: id.to_owned(), text: text.to_owned() })
            .collect()
    }
}

/// For each id, the tests that carry it: by file, their names. A scenario's test is the file itself.
pub fn tests_by_id() -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut found: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let mut note = |id: String, path: &Path, name: &str| {
        found.entry(id).or_default().entry(shown(path)).or_default().insert(name.to_owned());
    };
    let sources = ["crates", "tests"].iter().flat_map(|folder| files_below(folder, ".rs"));
    // The tests of this very search are none of the rules'.
    for path in sources.filter(|path| !path.starts_with(root().join("tests/house"))) {
        for (name, text) in test_functions(&read(&path)) {
            ids_in(&format!("{name}\n{text}")).into_iter().for_each(|id| note(id, &path, &name));
        }
    }
    for path in files_below("tests/calls", ".call.toml") {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        ids_in(&read(&path)).into_iter().for_each(|id| note(id, &path, name.trim_end_matches(".call.toml")));
    }
    found
}

/// The test functions of a source: name, and the text from the comment above to the closing brace.
pub fn test_functions(source: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = source.lines().collect();
    let is_mark = |line: &str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    let marks = lines.iter().enumerate().filter(|(_, line)| is_mark(line.trim_start()));
    marks.filter_map(|(at, _)| test_function(&lines, at)).collect()
}

fn test_function(lines: &[&str], mark: usize) -> Option<(String, String)> {
    let about = |line: &&str| line.trim_start().starts_with("//") || line.trim_start().starts_with("#[");
    let above = lines[..mark].iter().rev().take_while(|line| about(line)).count();
    let head = lines[mark..].iter().position(|line| line.contains("fn "))? + mark;
    let margin = lines[head].len() - lines[head].trim_start().len();
    let close = format!("{}}}", " ".repeat(margin));
    let end = lines[head..]
        .iter()
        .position(|line| line.trim_end() == close)
        .map_or(lines.len() - 1, |end| head + end);
    let name = lines[head].split("fn ").nth(1)?.split('(').next()?;
    Some((name.to_owned(), lines[mark - above..=end].join("\n")))
}

/// `VC-29` and `vc_29`, wherever they stand as a word's beginning, for each table's prefix.
pub fn ids_in(text: &str) -> BTreeSet<String> {
    let upper = text.to_ascii_uppercase();
    TABLES.iter().flat_map(|table| ids_of(table.prefix, &upper)).collect()
}

fn ids_of(prefix: &str, upper: &str) -> Vec<String> {
    let marks = [format!("{prefix}-"), format!("{prefix}_")];
    let starts = marks.iter().flat_map(|mark| upper.match_indices(mark.as_str()));
    starts
        .filter(|(at, _)| !upper[..*at].ends_with(|c: char| c.is_ascii_alphanumeric()))
        .filter_map(|(at, mark)| {
            let digits: String = upper[at + mark.len()..].chars().take_while(char::is_ascii_digit).collect();
            (digits.len() == 2).then(|| format!("{prefix}-{digits}"))
        })
        .collect()
}

/// A table's page.
pub fn page(table: &Table) -> String {
    let (rows, tests) = (table.rows(), tests_by_id());
    let covered = rows.iter().filter(|row| tests.contains_key(&row.id)).count();
    let mut page = format!(
        "# Rules and their tests\n\nEach {}, and the tests that carry its id: {covered} of {} \
         rules. Scenarios are in [tests/calls](../tests/calls); `sayback replay tests/calls` runs them. This page is made by \
         `UPDATE=1 cargo test -p sayback-house --test conformance` from `tests/house/{}` and the sources; do not \
         edit it.\n\n| rule | what it asks for | tests |\n|---|---|---|\n",
        table.about,
        rows.len(),
        table.source
    );
    for row in &rows {
        let files = tests.get(&row.id).cloned().unwrap_or_default();
        page.push_str(&format!("| {} | {} | {} |\n", row.id, row.text, cell(&files)));
    }
    page
}

fn cell(files: &BTreeMap<String, BTreeSet<String>>) -> String {
    let (calls, sources): (Vec<_>, Vec<_>) = files.iter().partition(|(file, _)| file.ends_with(".call.toml"));
    let mut parts: Vec<String> = sources
        .iter()
        .map(|(file, names)| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("[{file}](../{file}): {}", names.join(", "))
        })
        .collect();
    let calls: Vec<String> = calls
        .iter()
        .flat_map(|(file, names)| names.iter().map(move |name| format!("[{name}](../{file})")))
        .collect();
    if !calls.is_empty() {
        parts.push(format!("scenarios: {}", calls.join(", ")));
    }
    parts.join("<br>")
}
