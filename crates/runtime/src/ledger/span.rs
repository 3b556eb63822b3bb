//! Spans of confirmations and checks: the tool and hashes, never arguments. Where `telemetry` is set up they go to a
//! collector; they are made at level `info`.

use super::entry::Yes;
use super::rule::{Checked, Mode};

/// A person let something happen, or did not.
pub(super) fn approval(yes: &Yes, outcome: &str) {
    let hash = yes.digest.as_ref().map_or("", |digest| digest.hash.as_str());
    drop(tracing::info_span!(
        target: "sayback::ledger",
        "human_in_loop approval",
        kind = yes.kind.name(),
        outcome,
        actor.role = yes.by.name(),
        tool = yes.tool,
        args_hash = hash,
    ));
}

/// A call was held against a rule.
pub(super) fn checked(app: &str, tool: &str, checked: Checked) {
    let mode = match checked.mode {
        Mode::Observe => "observe",
        Mode::Enforce => "enforce",
    };
    drop(tracing::info_span!(
        target: "sayback::ledger",
        "ledger check",
        app,
        tool,
        mode,
        reason = checked.reason.code(),
        confirmed = checked.confirmed,
        allowed = checked.allowed,
    ));
}
