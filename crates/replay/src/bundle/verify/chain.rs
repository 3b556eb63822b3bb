//! Reading the chain: line by line, each by its own hash and by the one before it.

use sayback_runtime::frozen::sha256;
use sayback_runtime::record::{CHAIN, EVIDENCE, canonical_text, line_hash};
use serde_json::{Map, Value};

use super::Finding;

type Line = Map<String, Value>;

/// The lines of a chain, as far as they can be read.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pub(super) opening: Option<Line>,
    /// Decisions with their lines' numbers.
    pub(super) decisions: Vec<(usize, Line)>,
    pub(super) seal: Option<(usize, Line)>,
    /// Some line is one of a chain.
    pub(super) seen: bool,
}

pub(super) fn read_chain(bytes: &[u8], findings: &mut Vec<Finding>) -> Chain {
    let mut chain = Chain::default();
    let mut prev = sha256(b"");
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for (index, bytes) in lines.iter().enumerate() {
        let number = index + 1;
        let mut fault = |what: &str| findings.push(Finding::new(EVIDENCE, Some(number), what));
        let Some(bytes) = bytes.strip_suffix(b"\n") else {
            fault("the last line is cut off, or its end was changed");
            break;
        };
        let Ok(Value::Object(line)) = serde_json::from_slice::<Value>(bytes) else {
            fault("this line is no JSON object: it was changed");
            continue;
        };
        chain.seen |= line.contains_key("prev");
        // A changed blank or another spelling of the same value shows here, anything else in the hash.
        if canonical_text(&Value::Object(line.clone())).as_bytes() != bytes {
            fault("this line is not written as lines of a chain are: it was changed");
        } else if line.get("hash").and_then(Value::as_str) != Some(&line_hash(&line)) {
            fault("this line does not have the hash that it states: it was changed");
        }
        if line.get("v").and_then(Value::as_u64).is_none_or(|v| v > u64::from(CHAIN)) {
            fault("this line is of a newer version than this program knows");
        }
        if line.get("seq").and_then(Value::as_u64) != u64::try_from(index).ok()
            || line.get("prev").and_then(Value::as_str) != Some(&prev)
        {
            fault("this line does not follow from the one before it: one was changed, removed or added");
        }
        prev = line.get("hash").and_then(Value::as_str).unwrap_or_default().to_owned();
        if chain.seal.is_some() {
            fault("this line comes after the seal");
        }
        match line.get("kind").and_then(Value::as_str) {
            Some("opening") if index == 0 => chain.opening = Some(line),
            Some("decision") if index > 0 => chain.decisions.push((number, line)),
            Some("seal") if index > 0 => chain.seal = Some((number, line)),
            _ => fault("a line of this kind does not belong here"),
        }
    }
    chain
}
