//! What a server keeps beside its calls, and where: approvals, the confirmation ledger and conversations with their confirmed
//! runs, in a file or in a database that several servers share; or, without conversations, within this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::clock::unix_millis;
use sayback_runtime::conversations::Conversations;
use sayback_runtime::ledger::{Ledger, LedgerOptions, LedgerStore, Moment, Switch, Unnoted};
use sayback_runtime::sessions::SessionStore;
use sayback_store::{Objects, ObjectsError, Postgres, PostgresError, Store};
use serde::Deserialize;

use super::config::Span;
use crate::exit::Stop;

/// How often what is too old to count is let go of.
const SWEEP: Duration = Duration::from_secs(300);
/// How long a database may take to be there, unless the server's file says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it waits between two tries: doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(4);

/// `[store]` as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreSettings {
    pub(crate) url: Option<String>,
    /// The variable that holds the address, where it has a password.
    pub(crate) url_env: Option<String>,
    /// How long a server that starts waits for a database that is not there yet.
    pub(crate) wait: Option<Span>,
    /// Authorities that are trusted on the way to the database, beside the system's.
    pub(crate) ca: Option<PathBuf>,
    /// Where recordings go once their call is over: `s3://BUCKET/PREFIX`, or a folder.
    pub(crate) objects: Option<String>,
    /// Where S3 is spoken, if it is not AWS.
    pub(crate) endpoint: Option<String>,
}

/// A place for objects, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectsAt {
    address: String,
    endpoint: Option<String>,
}

impl ObjectsAt {
    /// What is written, if it can be right. A folder's path is looked for beside the server's file.
    pub(crate) fn new(address: &str, endpoint: Option<&str>, folder: &Path) -> Result<Self, String> {
        let folder = (!address.contains("://")).then(|| folder.join(address).to_string_lossy().into_owned());
        let place = Self {
            address: folder.clone().unwrap_or_else(|| address.to_owned()),
            endpoint: endpoint.map(str::to_owned),
        };
        if let Some(endpoint) = endpoint
            && !endpoint.starts_with("https://")
            && !endpoint.starts_with("http://")
        {
            return Err(format!("{endpoint:?} is no endpoint"));
        }
        // A folder is made when it is needed, not when a file is checked.
        if folder.is_none() || endpoint.is_some() {
            place.open().map_err(|error| error.to_string())?;
        }
        Ok(place)
    }

    pub(crate) fn open(&self) -> Result<Objects, ObjectsError> {
        Objects::open(&self.address, self.endpoint.as_deref())
    }
}

/// `[ledger]` as it is written.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LedgerSettings {
    /// Whether hashes are keyed, because a plain one of small arguments could be guessed back.
    pub(crate) private: bool,
    /// What happens to a run of our own that cannot be noted.
    pub(crate) unnoted: Unnoted,
}

/// Where things are kept.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Gone with this process.
    InMemory,
    /// In a file.
    Sqlite(PathBuf),
    /// In a database.
    Postgres { url: String, ca: Option<PathBuf>, wait: Duration },
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InMemory => f.write_str("InMemory"),
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            // Its address may hold a password.
            Self::Postgres { .. } => f.write_str("Postgres"),
        }
    }
}

impl Stored {
    /// What an address means. A file's path is looked for beside the server's file.
    pub(crate) fn at(url: &str, folder: &Path, settings: &StoreSettings) -> Result<Self, String> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err("the address of the store names no file".to_owned());
            }
            return Ok(Self::Sqlite(folder.join(path)));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let ca = settings.ca.as_ref().map(|ca| folder.join(ca));
            let wait = settings.wait.map_or(PATIENCE, |wait| wait.0);
            return Ok(Self::Postgres { url: url.to_owned(), ca, wait });
        }
        // What is no address at all may be a password.
        let Some((scheme, _)) = url.split_once("://") else {
            return Err("the address of the store is none".to_owned());
        };
        let scheme: String = scheme.chars().take(20).collect();
        Err(format!("the address of the store begins with {scheme:?}, which is none that is known"))
    }
}

/// What is kept.
#[derive(Debug)]
pub(crate) struct Stores {
    pub(crate) approvals: ApprovalQueue,
    pub(crate) ledger: Ledger,
    /// Where conversations are kept and confirmed runs are written before they are made; `None`: nowhere.
    pub(crate) conversations: Option<Arc<dyn Conversations>>,
    /// Where text sessions are kept, if conversations are.
    pub(crate) sessions: Option<Arc<dyn SessionStore>>,
}

impl Stores {
    /// Opens everything; tables are brought up to date.
    pub(crate) async fn open(stored: &Stored, settings: LedgerSettings) -> Result<Self, Stop> {
        let options = LedgerOptions {
            private: settings.private,
            switch: Switch::of_environment(),
            ..LedgerOptions::default()
        };
        let mut conversations: Option<Arc<dyn Conversations>> = None;
        let mut sessions: Option<Arc<dyn SessionStore>> = None;
        let (approvals, ledger) = match stored {
            Stored::InMemory => (ApprovalQueue::default(), Ledger::in_memory(options)),
            Stored::Sqlite(path) => {
                let path = path.clone();
                let opening = tokio::task::spawn_blocking(move || Store::open(&path));
                let store = opening.await.map_err(Stop::missing)?.map_err(Stop::unusable)?;
                let ledger: Arc<dyn LedgerStore> = Arc::new(store.ledger());
                conversations = Some(Arc::new(store.clone()));
                sessions = Some(Arc::new(store.clone()));
                let approvals = ApprovalQueue::new(Arc::new(store));
                // The file is this server's alone, so no call that asked for one is still there.
                approvals.cancel_left_over().await.map_err(Stop::unusable)?;
                (approvals, Ledger::on(ledger, options))
            }
            Stored::Postgres { url, ca, wait } => {
                let database = wait_for(url, ca.as_deref(), *wait).await?;
                let ledger: Arc<dyn LedgerStore> = Arc::new(database.ledger());
                conversations = Some(Arc::new(database.clone()));
                sessions = Some(Arc::new(database.clone()));
                (ApprovalQueue::new(Arc::new(database)), Ledger::on(ledger, options))
            }
        };
        // Before its first call asks for anything: a server that nobody has heard of is a dead one.
        approvals.beat().await.map_err(Stop::missing)?;
        tokio::spawn(approvals.clone().keep_alive(conversations.clone()));
        let ledger = ledger.map_err(Stop::missing)?;
        tokio::spawn(sweep(ledger.clone()));
        Ok(Self { approvals, ledger, conversations, sessions })
    }
}

/// The database, which may still be starting: it is tried again until it is there, or `patience` is over.
async fn wait_for(url: &str, ca: Option<&Path>, patience: Duration) -> Result<Postgres, Stop> {
    let (mut last, mut wait) = (None, FIRST_WAIT);
    let there = tokio::time::timeout(patience, async {
        loop {
            let error = match Postgres::open(url, ca).await {
                Err(error @ PostgresError::Unreachable { .. }) => error,
                opened => return opened,
            };
            if last.is_none() {
                eprintln!("sayback: {error}");
                eprintln!("sayback: waiting for the database, {} s at the most", patience.as_secs());
            }
            last = Some(error);
            let _ = tokio::time::timeout(wait, std::future::pending::<()>()).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    });
    match (there.await, last) {
        (Ok(opened), waited) => {
            let database = opened.map_err(stop)?;
            if waited.is_some() {
                eprintln!("sayback: the database is there");
            }
            Ok(database)
        }
        (Err(_), Some(error)) => Err(stop(error)),
        (Err(_), None) => Err(Stop::missing("the database did not answer in time; see wait in [store]")),
    }
}

fn stop(error: PostgresError) -> Stop {
    match error {
        PostgresError::Unreachable { .. } => {
            Stop::missing(format!("{error}\n  hint: start the database, or mend url in [store]"))
        }
        PostgresError::Address
        | PostgresError::InTheClear { .. }
        | PostgresError::Authorities { .. }
        | PostgresError::Refused { .. }
        | PostgresError::Newer { .. } => Stop::unusable(format!("[store]: {error}")),
    }
}

/// Lets go of what is too old, for as long as the server runs.
async fn sweep(ledger: Ledger) {
    let mut again = tokio::time::interval(SWEEP);
    loop {
        again.tick().await;
        if let Err(error) = ledger.forget(Moment(unix_millis())).await {
            tracing::warn!("what is too old could not be let go of: {error}");
        }
    }
}
