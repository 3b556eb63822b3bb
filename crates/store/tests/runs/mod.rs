//! What a journal is given to write.

use sayback_core::{HoldId, Item, Reopened, ToolRef};
use sayback_runtime::journal::{ConfirmedRun, Snapshot};

/// A run on a yes, in the conversation `a`.
pub(crate) fn confirmed(hold: u32, attempt: u32) -> ConfirmedRun {
    ConfirmedRun {
        hold: HoldId(hold),
        attempt,
        idempotency_key: format!("a/{}", HoldId(hold)),
        call: "c1".to_owned(),
        tool: ToolRef {
            skill: "desk".to_owned(),
            name: "book".to_owned(),
            definition: "sha256:2".to_owned(),
        },
        input_hash: "sha256:1".to_owned(),
        confirmed_by: "yes".to_owned(),
    }
}

/// A conversation in which the caller has said this.
pub(crate) fn snapshot(order: u64, text: &str) -> Snapshot {
    let items = vec![Item::Caller { text: text.to_owned() }];
    Snapshot { order, conversation: Reopened { items, ..Reopened::default() } }
}
