//! The arrows between the workspace's crates: those that ARCHITECTURE.md names, and those that exist.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{cargo, output_of};

/// What an arrow is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `->`: the crate itself needs the other one.
    Needs,
    /// `=>`: only its tests do.
    TestsNeed,
    /// `~>`: may be drawn, need not be there yet.
    May,
}

/// One crate that knows another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    /// Who knows.
    pub from: String,
    /// Whom.
    pub to: String,
    /// What for.
    pub kind: Kind,
}

/// The arrows in the block that begins with "```arrows"; lines are `from -> to to …`.
///
/// # Panics
/// If a line is none of the three forms.
pub fn written_arrows(document: &str) -> BTreeSet<Arrow> {
    let inside = document.lines().skip_while(|line| line.trim() != "```arrows").skip(1);
    inside
        .take_while(|line| line.trim() != "```")
        .filter(|line| !line.trim().is_empty())
        .flat_map(line)
        .collect()
}

fn line(text: &str) -> Vec<Arrow> {
    let forms = [("->", Kind::Needs), ("=>", Kind::TestsNeed), ("~>", Kind::May)];
    let split = forms.into_iter().find_map(|(sign, kind)| text.split_once(sign).map(|(a, b)| (a, b, kind)));
    let (from, to, kind) = split.unwrap_or_else(|| panic!("no arrow: {text:?}"));
    let arrow = |to: &str| Arrow { from: from.trim().to_owned(), to: to.to_owned(), kind };
    to.split_whitespace().map(arrow).collect()
}

/// The arrows that the manifests draw, as `cargo metadata` reads them.
///
/// # Panics
/// If cargo fails or its answer is not of the known form.
pub fn actual_arrows() -> BTreeSet<Arrow> {
    let text = output_of(cargo().args(["metadata", "--no-deps", "--format-version", "1", "--offline"]));
    let metadata: Value = serde_json::from_str(&text).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("it lists packages");
    let names: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut arrows = BTreeSet::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().expect("each lists its dependencies") {
            let (from, to) = (text_of(&package["name"]), text_of(&dependency["name"]));
            let kind = if dependency["kind"].is_null() { Kind::Needs } else { Kind::TestsNeed };
            if names.contains(to.as_str()) {
                arrows.insert(Arrow { from, to, kind });
            }
        }
    }
    arrows
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
