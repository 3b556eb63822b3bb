//! The ledger in a file.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use sayback_runtime::ledger::{
    Bounds, Claim, Entry, EntryId, Lease, LedgerFault, LedgerStore, MOST_OFFERED, Moment, Owner, Settled,
    Want, Wanted, Yes,
};

use super::{EntryRow, claimed, digest_columns, number, remembered, sql};
use crate::{Store, StoreError};

/// The ledger of a [`Store`]. Several processes may have the same file open.
#[derive(Clone, Debug)]
pub struct SqliteLedger {
    store: Store,
}

impl Store {
    /// Its confirmation ledger.
    pub fn ledger(&self) -> SqliteLedger {
        SqliteLedger { store: self.clone() }
    }
}

impl SqliteLedger {
    /// Works on the connection where waiting for the disk holds nobody up.
    async fn on<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, LedgerFault> {
        let store = self.store.clone();
        let done = tokio::task::spawn_blocking(move || {
            work(&mut store.connection()).map_err(|error| StoreError::of(store.path(), error))
        });
        match done.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error @ StoreError::Busy { .. })) => Err(LedgerFault::Unreachable(error.to_string())),
            Ok(Err(error)) => Err(LedgerFault::Failed(error.to_string())),
            Err(error) => Err(LedgerFault::Failed(format!("the work broke off: {error}"))),
        }
    }
}

/// A statement as SQLite writes its parameters.
fn lite(statement: &str) -> String {
    statement.replace('$', "?")
}

fn put(connection: &mut Connection, owner: &Owner, yes: &Yes, bounds: Bounds) -> rusqlite::Result<EntryId> {
    let (app, scope, at) = (&owner.app, owner.scope.as_str(), number(yes.at.0));
    let on = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if on.execute(&lite(sql::ADD_SESSION), params![app, scope, at])? == 1 {
        let most = number(bounds.sessions as u64);
        let mut trim = on.prepare_cached(&lite(sql::TRIM_SESSIONS))?;
        let gone = trim.query_map(params![app, most], |row| row.get::<_, String>(0))?;
        let gone = gone.collect::<Result<Vec<_>, _>>()?;
        for scope in gone {
            on.execute(&lite(sql::DROP_ENTRIES), params![app, scope])?;
        }
    } else {
        on.execute(&lite(sql::TOUCH_SESSION), params![app, scope, at])?;
    }
    let (hash, fields) = digest_columns(yes);
    let (kind, actor) = (yes.kind.name(), yes.by.name());
    let columns = params![app, scope, yes.tool, hash, fields, kind, actor, at];
    let id = on.query_row(&lite(sql::ADD_ENTRY), columns, |row| row.get(0))?;
    on.execute(&lite(sql::TRIM_ENTRIES), params![app, scope, number(bounds.entries as u64)])?;
    on.commit()?;
    Ok(EntryId(id))
}

fn claim(
    connection: &Connection,
    app: &str,
    what: &Claim,
    (want, now): (Want, Moment),
) -> rusqlite::Result<Option<Lease>> {
    let ((state, until), now) = (claimed(want), number(now.0));
    let lease = |row: &Row<'_>| row.get(0).map(Lease);
    match what {
        Claim::Entry(id) => connection
            .prepare_cached(&lite(sql::CLAIM_ENTRY))?
            .query_row(params![id.0, app, state, until, now], lease),
        Claim::Reference(reference, yes) => {
            let (hash, _) = digest_columns(yes);
            let (kind, actor) = (yes.kind.name(), yes.by.name());
            let columns = params![app, reference, yes.tool, hash, kind, actor, now, state, until];
            connection.prepare_cached(&lite(sql::CLAIM_REFERENCE))?.query_row(columns, lease)
        }
    }
    .optional()
}

#[async_trait]
impl LedgerStore for SqliteLedger {
    async fn put(&self, owner: &Owner, yes: &Yes, bounds: &Bounds) -> Result<EntryId, LedgerFault> {
        let (owner, yes, bounds) = (owner.clone(), yes.clone(), *bounds);
        self.on(move |connection| put(connection, &owner, &yes, bounds)).await
    }

    async fn offers(&self, owner: &Owner, wanted: &Wanted<'_>) -> Result<Vec<Entry>, LedgerFault> {
        let (owner, tool) = (owner.clone(), wanted.tool.to_owned());
        let (hash, now) = (wanted.hash.map(str::to_owned), wanted.now);
        let rows: Vec<EntryRow> = self
            .on(move |connection| {
                let (oldest, newest) = now.window();
                let mut query = connection.prepare_cached(&lite(sql::OFFERS))?;
                let (oldest, newest, now) = (number(oldest.0), number(newest.0), number(now.0));
                let most = number(MOST_OFFERED as u64);
                let wanted = params![owner.app, owner.scope.as_str(), tool, oldest, newest, now, hash, most];
                query.query_map(wanted, |row| EntryRow::of(row))?.collect()
            })
            .await?;
        rows.into_iter().map(EntryRow::read).collect()
    }

    async fn claim(
        &self,
        app: &str,
        what: &Claim,
        want: Want,
        now: Moment,
    ) -> Result<Option<Lease>, LedgerFault> {
        let (app, what) = (app.to_owned(), what.clone());
        self.on(move |connection| claim(connection, &app, &what, (want, now))).await
    }

    async fn settle(
        &self,
        app: &str,
        what: &Claim,
        lease: Lease,
        settled: Settled,
    ) -> Result<bool, LedgerFault> {
        let (app, what) = (app.to_owned(), what.clone());
        let state = match settled {
            Settled::Used => "used",
            Settled::Released => "open",
        };
        self.on(move |connection| {
            let changed = match what {
                Claim::Entry(id) => {
                    connection.execute(&lite(sql::SETTLE_ENTRY), params![app, id.0, lease.0, state])
                }
                Claim::Reference(reference, _) => {
                    connection.execute(&lite(sql::SETTLE_REFERENCE), params![app, reference, lease.0, state])
                }
            };
            changed.map(|changed| changed == 1)
        })
        .await
    }

    async fn forget(&self, now: Moment) -> Result<u64, LedgerFault> {
        let (oldest, references) = (number(now.window().0.0), remembered(now));
        self.on(move |connection| {
            let gone = connection.execute(&lite(sql::FORGET_ENTRIES), [oldest])?;
            connection.execute(&lite(sql::FORGET_SESSIONS), [oldest])?;
            connection.execute(&lite(sql::FORGET_REFERENCES), [references])?;
            Ok(gone as u64)
        })
        .await
    }
}
