//! What a ledger needs of a store.

use async_trait::async_trait;

use super::entry::{Entry, EntryId, MOST_OFFERED, Moment, Scope, Yes};

/// How much is kept; the oldest goes first (LED-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Entries of a session that are not used up.
    pub entries: usize,
    /// Sessions of an app; the one whose last confirmation is the oldest goes, with its entries.
    pub sessions: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { entries: 50, sessions: 1_000 }
    }
}

/// Whose entries these are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The app: another one's entries are never seen (LED-15).
    pub app: String,
    /// Its session.
    pub scope: Scope,
}

/// Something that can be used once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// An entry of the ledger.
    Entry(EntryId),
    /// A confirmation that came with the call, by its reference (LED-18). References are remembered, so that a retry
    /// that brings the same one does not use it twice (LED-20).
    Reference(String, Yes),
}

/// What is wanted of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// It is used up at once.
    Use,
    /// Nobody else gets it until then; it is used or given back with [`LedgerStore::settle`]. Whoever dies meanwhile
    /// gives it back by that.
    Reserve {
        /// When it is free again.
        until: Moment,
    },
}

/// Who holds a reservation: grows with each one, so that one that has lapsed cannot settle the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease(pub i64);

/// What becomes of what was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It is used up.
    Used,
    /// It can be used again (LED-09).
    Released,
}

/// Why a store did not answer. What was to be written may or may not be: nothing counts as confirmed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerFault {
    /// It is not there at the moment.
    #[error("the ledger's store cannot be reached: {0}; try again")]
    Unreachable(String),
    /// It is there and said no.
    #[error("the ledger's store failed: {0}")]
    Failed(String),
}

/// Keeps entries. Every method is one atomic step: of any number of callers, in any number of processes, one gets a
/// claim.
#[async_trait]
pub trait LedgerStore: Send + Sync + std::fmt::Debug {
    /// Writes a yes down, and lets go of what is too much. What is written survives a crash where the store is a file
    /// or a database.
    ///
    /// # Errors
    /// The store did not answer.
    async fn put(&self, owner: &Owner, yes: &Yes, bounds: &Bounds) -> Result<EntryId, LedgerFault>;

    /// Entries for a tool that can be used now: at most [`MOST_OFFERED`], those with this hash first, then the newest.
    ///
    /// # Errors
    /// The store did not answer.
    async fn offers(&self, owner: &Owner, wanted: &Wanted<'_>) -> Result<Vec<Entry>, LedgerFault>;

    /// Takes something that can be used once; `None` if somebody else has it.
    ///
    /// # Errors
    /// The store did not answer. It may be taken.
    async fn claim(
        &self,
        app: &str,
        what: &Claim,
        want: Want,
        now: Moment,
    ) -> Result<Option<Lease>, LedgerFault>;

    /// Uses up or gives back what was reserved; `false` if the reservation has gone to somebody else.
    ///
    /// # Errors
    /// The store did not answer. It may be settled.
    async fn settle(
        &self,
        app: &str,
        what: &Claim,
        lease: Lease,
        settled: Settled,
    ) -> Result<bool, LedgerFault>;

    /// Lets go of everything that is too old to count; gives how much that was.
    ///
    /// # Errors
    /// The store did not answer.
    async fn forget(&self, now: Moment) -> Result<u64, LedgerFault>;
}

/// What entries are wanted for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The tool that is called.
    pub tool: &'a str,
    /// The hash of its arguments, if they have one.
    pub hash: Option<&'a str>,
    /// When.
    pub now: Moment,
}

/// Puts entries in the order in which they are offered, and leaves out what is too much.
pub(super) fn offered(mut entries: Vec<Entry>, hash: Option<&str>) -> Vec<Entry> {
    let fits = |entry: &Entry| hash.is_some() && entry.yes.digest.as_ref().map(|d| d.hash.as_str()) == hash;
    entries.sort_by_key(|entry| (!fits(entry), std::cmp::Reverse(entry.yes.at), std::cmp::Reverse(entry.id)));
    entries.truncate(MOST_OFFERED);
    entries
}
