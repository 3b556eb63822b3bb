//! A ledger within one process: gone with it (LED-15). Pure: a book that is handed the time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::entry::{Entry, EntryId, Moment, Scope, Yes};
use super::store::{Bounds, Claim, Lease, LedgerFault, LedgerStore, Owner, Settled, Want, Wanted, offered};

/// References that are remembered, at most; the oldest is forgotten first.
const MOST_REFERENCES: usize = 100_000;

/// Whether something can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Reserved { until: Moment },
    Used,
}

/// Something that can be used once.
#[derive(Clone, Copy, Debug)]
struct Once {
    state: State,
    lease: i64,
}

impl Once {
    const NEW: Self = Self { state: State::Open, lease: 0 };

    fn is_free(self, now: Moment) -> bool {
        match self.state {
            State::Open => true,
            State::Reserved { until } => until <= now,
            State::Used => false,
        }
    }

    fn claim(&mut self, want: Want, now: Moment) -> Option<Lease> {
        if !self.is_free(now) {
            return None;
        }
        self.lease += 1;
        self.state = match want {
            Want::Use => State::Used,
            Want::Reserve { until } => State::Reserved { until },
        };
        Some(Lease(self.lease))
    }

    fn settle(&mut self, lease: Lease, settled: Settled) -> bool {
        let ours = matches!(self.state, State::Reserved { .. }) && self.lease == lease.0;
        if ours {
            self.state = match settled {
                Settled::Used => State::Used,
                Settled::Released => State::Open,
            };
        }
        ours
    }
}

#[derive(Debug, Default)]
struct SessionBook {
    entries: Vec<(Entry, Once)>,
    used: u64,
}

/// Entries and references, with no lock and no clock.
#[derive(Debug, Default)]
struct Book {
    sessions: BTreeMap<String, BTreeMap<Scope, SessionBook>>,
    references: BTreeMap<(String, String), Once>,
    order: VecDeque<(String, String)>,
    last: i64,
    touches: u64,
}

impl Book {
    fn put(&mut self, owner: &Owner, yes: Yes, bounds: &Bounds) -> EntryId {
        self.last += 1;
        self.touches += 1;
        let id = EntryId(self.last);
        let sessions = self.sessions.entry(owner.app.clone()).or_default();
        let session = sessions.entry(owner.scope.clone()).or_default();
        session.used = self.touches;
        session.entries.retain(|(_, once)| once.state != State::Used);
        session.entries.push((Entry { id, yes }, Once::NEW));
        while session.entries.len() > bounds.entries {
            let oldest = session.entries.iter().map(|(entry, _)| (entry.yes.at, entry.id)).min();
            session.entries.retain(|(entry, _)| Some((entry.yes.at, entry.id)) != oldest);
        }
        while sessions.len() > bounds.sessions {
            let idle =
                sessions.iter().min_by_key(|(_, session)| session.used).map(|(scope, _)| scope.clone());
            idle.map(|scope| sessions.remove(&scope));
        }
        id
    }

    fn offers(&self, owner: &Owner, wanted: &Wanted<'_>) -> Vec<Entry> {
        let (oldest, newest) = wanted.now.window();
        let session = self.sessions.get(&owner.app).and_then(|sessions| sessions.get(&owner.scope));
        let entries = session.iter().flat_map(|session| &session.entries);
        let fits = entries.filter(|(entry, once)| {
            let at = entry.yes.at;
            entry.yes.tool == wanted.tool && at >= oldest && at <= newest && once.is_free(wanted.now)
        });
        offered(fits.map(|(entry, _)| entry.clone()).collect(), wanted.hash)
    }

    fn once(&mut self, app: &str, what: &Claim) -> Option<&mut Once> {
        match what {
            Claim::Entry(id) => {
                let sessions = self.sessions.get_mut(app)?.values_mut();
                let mut entries = sessions.flat_map(|session| &mut session.entries);
                entries.find(|(entry, _)| entry.id == *id).map(|(_, once)| once)
            }
            Claim::Reference(reference, _) => {
                let key = (app.to_owned(), reference.clone());
                if !self.references.contains_key(&key) {
                    self.order.push_back(key.clone());
                }
                if self.order.len() > MOST_REFERENCES {
                    self.order.pop_front().map(|oldest| self.references.remove(&oldest));
                }
                Some(self.references.entry(key).or_insert(Once::NEW))
            }
        }
    }

    fn forget(&mut self, now: Moment) -> u64 {
        let (oldest, _) = now.window();
        let mut gone = 0;
        for sessions in self.sessions.values_mut() {
            for session in sessions.values_mut() {
                let before = session.entries.len();
                session.entries.retain(|(entry, once)| once.state != State::Used && entry.yes.at >= oldest);
                gone += before - session.entries.len();
            }
            sessions.retain(|_, session| !session.entries.is_empty());
        }
        u64::try_from(gone).unwrap_or(u64::MAX)
    }
}

/// A store within this process.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<Book>);

impl InMemory {
    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing in a book can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LedgerStore for InMemory {
    async fn put(&self, owner: &Owner, yes: &Yes, bounds: &Bounds) -> Result<EntryId, LedgerFault> {
        Ok(self.book().put(owner, yes.clone(), bounds))
    }

    async fn offers(&self, owner: &Owner, wanted: &Wanted<'_>) -> Result<Vec<Entry>, LedgerFault> {
        Ok(self.book().offers(owner, wanted))
    }

    async fn claim(
        &self,
        app: &str,
        what: &Claim,
        want: Want,
        now: Moment,
    ) -> Result<Option<Lease>, LedgerFault> {
        Ok(self.book().once(app, what).and_then(|once| once.claim(want, now)))
    }

    async fn settle(
        &self,
        app: &str,
        what: &Claim,
        lease: Lease,
        settled: Settled,
    ) -> Result<bool, LedgerFault> {
        Ok(self.book().once(app, what).is_some_and(|once| once.settle(lease, settled)))
    }

    async fn forget(&self, now: Moment) -> Result<u64, LedgerFault> {
        Ok(self.book().forget(now))
    }
}
