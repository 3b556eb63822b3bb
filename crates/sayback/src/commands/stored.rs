//! Stored conversations.

use std::path::{Path, PathBuf};

use sayback_core::{Item, OpenQuestion, Reopened, Session};
use sayback_store::Store;

use crate::exit::Stop;

fn default_path() -> PathBuf {
    let base = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    base.unwrap_or_else(|| PathBuf::from(".")).join("sayback/conversations.db")
}

/// Opens the store, making it if there is none.
pub(crate) fn open(path: Option<&Path>) -> Result<Store, Stop> {
    let path = path.map_or_else(default_path, Path::to_owned);
    Store::open(&path)
        .map_err(|error| Stop::unusable(format!("{error}\n  hint: name another file with --store FILE")))
}

/// A stored conversation.
pub(crate) fn load(store: &Store, id: &str) -> Result<Reopened, Stop> {
    let text = store.conversation(id).map_err(Stop::unusable)?.ok_or_else(|| {
        let known = store.conversations().unwrap_or_default().join(", ");
        Stop::unusable(format!("there is no conversation {id}\n  hint: there are: {known}"))
    })?;
    let mut stored: Reopened = serde_json::from_str(&text)
        .map_err(|error| Stop::unusable(format!("conversation {id} cannot be read: {error}")))?;
    if stored.open.as_ref().is_some_and(|open| !is_sound(open, &stored.items)) {
        eprintln!(
            "sayback: the question that conversation {id} ended with does not fit the rest; it is dropped"
        );
        stored.open = None;
    }
    if let Some(open) = &stored.open {
        out!("(still open) {}", open.question);
    }
    Ok(stored)
}

/// A stored question is open only if it is the last thing that was heard, and its input is the one that was frozen.
fn is_sound(open: &OpenQuestion, items: &[Item]) -> bool {
    let value = sayback_runtime::frozen::parse_strict(&open.input.json).ok();
    let frozen = value.and_then(|value| sayback_runtime::frozen::canonical(&value).ok());
    let last = items.iter().rev().find(|item| matches!(item, Item::Agent { .. } | Item::Caller { .. }));
    let asked_last = matches!(last, Some(Item::Agent { text, complete: true }) if *text == open.question);
    frozen.is_some_and(|frozen| frozen == open.input) && asked_last
}

/// Stores a conversation under its id.
pub(crate) fn save(store: &Store, id: &str, session: &Session) -> Result<(), Stop> {
    let text = serde_json::to_string(&session.to_store()).map_err(Stop::unusable)?;
    store.save_conversation(id, &text).map_err(Stop::unusable)
}
