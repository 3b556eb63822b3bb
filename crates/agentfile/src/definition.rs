//! What a tool is, whether it came from a file or from Rust: its hash and what the model is told about it.

use std::collections::BTreeMap;

use sayback_core::{AskTerms, EvidenceClass};
use serde_json::{Value, json};

use crate::frozen::{FreezeError, canonical};
use crate::policy::EVIDENCE;

/// Names that belong to the runtime's own tools.
pub(crate) const RESERVED_TOOLS: [&str; 2] = ["end_call", "transfer_call"];

/// Told to the model behind the description of each tool with a question (VC-09).
const CONFIRM_NOTE: &str = "Calling this asks the caller to confirm: the system itself reads the details back and waits \
for the answer. Do not ask for confirmation yourself, and never say or imply that it has been done before the result \
says so.";

/// Everything that makes a tool what it is. A yes given to one definition runs another only if that asks the very same
/// question about the very same input (VC-72).
#[derive(Debug)]
pub(crate) struct Definition<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: &'a Value,
    pub(crate) confirm: BTreeMap<&'a str, &'a str>,
    pub(crate) when: Option<&'a str>,
    pub(crate) run: &'a Value,
    pub(crate) terms: AskTerms,
    /// Who must approve and when; `null` if nobody.
    pub(crate) approval: Value,
}

impl Definition<'_> {
    /// `sha256:…` over its canonical JSON.
    pub(crate) fn hash(&self) -> Result<String, FreezeError> {
        let evidence = self.terms.evidence.map(evidence_name);
        let mut value = json!({
            "name": self.name,
            "schema": self.schema,
            "confirm": self.confirm,
            "confirm_when": self.when,
            "run": self.run,
            "flags": { "irreversible": self.terms.irreversible, "evidence": evidence },
        });
        if !self.approval.is_null() {
            value["approval"] = self.approval.clone();
        }
        canonical(&value).map(|frozen| frozen.hash)
    }
}

/// What the model is told about a tool.
pub(crate) fn described(description: &str, confirms: bool) -> String {
    let description = description.trim();
    if !confirms {
        return description.to_owned();
    }
    let stop = if description.ends_with(['.', '!', '?', '。']) || description.is_empty() { "" } else { "." };
    format!("{description}{stop} {CONFIRM_NOTE}").trim_start().to_owned()
}

/// Why a tool may not have this name.
pub(crate) fn name_fault(name: &str) -> Option<String> {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if RESERVED_TOOLS.contains(&name) {
        return Some(format!("`{name}` is built in; give the tool another name"));
    }
    let fits = (1..=64).contains(&name.len()) && name.chars().all(letters);
    (!fits).then(|| "a tool's name has 1 to 64 letters, digits, `_` or `-`".to_owned())
}

fn evidence_name(class: EvidenceClass) -> &'static str {
    EVIDENCE.iter().find(|(_, known)| *known == class).map_or("unproven", |(name, _)| name)
}
