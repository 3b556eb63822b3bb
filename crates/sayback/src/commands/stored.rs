//! Stored conversations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sayback_core::{Reopened, Session};
use sayback_runtime::conversations::Reopening;
use sayback_runtime::journal::{Journal, Snapshot};
use sayback_runtime::redact::{RedactedJournal, Redactor};
use sayback_store::{Store, Stored, StoredRun};

use crate::exit::Stop;

/// Where this program keeps what it is not told another place for.
pub(crate) fn data_folder() -> PathBuf {
    let base = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    base.unwrap_or_else(|| PathBuf::from(".")).join("sayback")
}

fn default_path() -> PathBuf {
    data_folder().join("conversations.db")
}

/// Opens the store, making it if there is none.
pub(crate) fn open(path: Option<&Path>) -> Result<Store, Stop> {
    let path = path.map_or_else(default_path, Path::to_owned);
    Store::open(&path)
        .map_err(|error| Stop::unusable(format!("{error}\n  hint: name another file with --store FILE")))
}

/// A conversation that begins or goes on, and where it is written.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: String,
    /// What was said before, if it goes on.
    pub(crate) before: Option<Reopened>,
    pub(crate) journal: Arc<dyn Journal>,
}

impl Opened {
    /// The stored conversation that `resume` names, or a new one called `fresh`; kept without what `redactor` takes out.
    pub(crate) fn new(
        store: &Store,
        agent: &str,
        resume: Option<&str>,
        fresh: impl FnOnce() -> String,
        redactor: Option<Redactor>,
    ) -> Result<Self, Stop> {
        let kept = |journal: Arc<dyn Journal>| match redactor {
            Some(redactor) => Arc::new(RedactedJournal::new(journal, redactor)) as Arc<dyn Journal>,
            None => journal,
        };
        let Some(id) = resume else {
            let id = fresh();
            let journal = kept(Arc::new(store.begin_conversation(&id, agent)));
            return Ok(Self { id, before: None, journal });
        };
        // Looked at first: one that cannot be read is left as it is.
        let looked = store.conversation(id).map_err(Stop::unusable)?.ok_or_else(|| unknown(store, id))?;
        read(id, &looked)?;
        let (stored, journal) =
            store.reopen(id, agent).map_err(Stop::unusable)?.ok_or_else(|| unknown(store, id))?;
        let before = read(id, &stored)?;
        show(id, &before, &stored.runs);
        Ok(Self { id: id.to_owned(), before: Some(before), journal: kept(Arc::new(journal)) })
    }

    /// Stores the conversation as the call left it.
    pub(crate) async fn close(&self, session: &Session) -> Result<(), Stop> {
        let last = Snapshot::last(session.to_store());
        let stored = self.journal.keep(&last).await;
        stored.map_err(|error| Stop::unusable(format!("conversation {} was not stored: {error}", self.id)))
    }
}

/// There is none of that id.
pub(crate) fn unknown(store: &Store, id: &str) -> Stop {
    let known: Vec<String> = store.conversations().unwrap_or_default().into_iter().map(|c| c.id).collect();
    let hint = if known.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are: {}", known.join(", "))
    };
    Stop::unusable(format!("there is no conversation {id} in {}\n  hint: {hint}", store.path().display()))
}

/// A stored conversation with what the journal knows of its runs.
pub(crate) fn read(id: &str, stored: &Stored) -> Result<Reopened, Stop> {
    let Reopening { conversation, question_dropped } = stored.reopening().map_err(|error| {
        let hint = "it was written by another version, or by hand; begin a new one";
        Stop::unusable(format!("conversation {id} cannot be read: {error}\n  hint: {hint}"))
    })?;
    if question_dropped {
        eprintln!(
            "sayback: the question that conversation {id} ended with does not fit the rest; it is dropped"
        );
    }
    Ok(conversation)
}

/// What a person is shown before the conversation goes on: what ran and is not run again, what is not known, and what
/// is still asked (VC-74, VC-75, VC-79).
fn show(id: &str, conversation: &Reopened, runs: &[StoredRun]) {
    out!("Conversation {id} goes on.");
    for run in runs {
        out!("  {}", of_run(run));
    }
    if let Some(open) = &conversation.open {
        out!("  (still open) {}", open.question);
    }
}

/// One confirmed run, for people.
pub(crate) fn of_run(run: &StoredRun) -> String {
    let StoredRun { tool, confirmed_by, message, .. } = run;
    match run.state.as_str() {
        "executed" => format!("not replayed: {tool} ran on {confirmed_by:?}: {message}"),
        "failed" => format!("not replayed: {tool} failed on {confirmed_by:?}: {message}"),
        _ => format!(
            "outcome unknown: {tool} was started on {confirmed_by:?} and the program stopped; it is not run again \
             (idempotency key {})",
            run.idempotency_key
        ),
    }
}
