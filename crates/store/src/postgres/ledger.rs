//! The ledger of several servers.

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use sayback_runtime::ledger::{
    Bounds, Claim, Entry, EntryId, Lease, LedgerFault, LedgerStore, MOST_OFFERED, Moment, Owner, Settled,
    Want, Wanted, Yes,
};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::{Postgres, PostgresError};
use crate::ledger::{EntryRow, claimed, digest_columns, number, remembered, sql};
use crate::rows::Columns;

/// How often a write is tried that the database gave up because another one was in its way.
const TRIES: usize = 5;

/// The ledger of a database, shared by all servers on it: a yes that one of them recorded is used up once, by whichever.
#[derive(Clone, Debug)]
pub struct PostgresLedger {
    database: Postgres,
}

impl PostgresLedger {
    pub(super) fn on(database: Postgres) -> Self {
        Self { database }
    }

    async fn put_once(&self, owner: &Owner, yes: &Yes, bounds: Bounds) -> Result<EntryId, Put> {
        let mut connection = self.database.connection().await.map_err(Put::NoConnection)?;
        let on = connection.transaction().await?;
        let id = put(&on, owner, yes, bounds).await?;
        on.commit().await?;
        Ok(id)
    }
}

/// Why an entry was not put.
enum Put {
    NoConnection(PostgresError),
    Failed(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for Put {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Failed(error)
    }
}

async fn put(
    on: &Transaction<'_>,
    owner: &Owner,
    yes: &Yes,
    bounds: Bounds,
) -> Result<EntryId, tokio_postgres::Error> {
    let (app, scope, at) = (&owner.app, owner.scope.as_str(), number(yes.at.0));
    let add = on.prepare_cached(sql::ADD_SESSION).await?;
    if on.execute(&add, &[app, &scope, &at]).await? == 1 {
        let most = number(bounds.sessions as u64);
        let trim = on.prepare_cached(sql::TRIM_SESSIONS).await?;
        for row in on.query(&trim, &[app, &most]).await? {
            on.execute(sql::DROP_ENTRIES, &[app, &row.get::<_, String>(0)]).await?;
        }
    } else {
        let touch = on.prepare_cached(sql::TOUCH_SESSION).await?;
        on.execute(&touch, &[app, &scope, &at]).await?;
    }
    let (hash, fields) = digest_columns(yes);
    let (kind, actor) = (yes.kind.name(), yes.by.name());
    let add = on.prepare_cached(sql::ADD_ENTRY).await?;
    let row = on.query_one(&add, &[app, &scope, &yes.tool, &hash, &fields, &kind, &actor, &at]).await?;
    let trim = on.prepare_cached(sql::TRIM_ENTRIES).await?;
    on.execute(&trim, &[app, &scope, &number(bounds.entries as u64)]).await?;
    Ok(EntryId(row.get(0)))
}

#[async_trait]
impl LedgerStore for PostgresLedger {
    async fn put(&self, owner: &Owner, yes: &Yes, bounds: &Bounds) -> Result<EntryId, LedgerFault> {
        for _ in 1..TRIES {
            match self.put_once(owner, yes, *bounds).await {
                // Two that wait for each other: the database ends one, and nothing of it is done.
                Err(Put::Failed(error)) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {}
                Err(Put::Failed(error)) => return Err(self.database.failed()(error).into()),
                Err(Put::NoConnection(error)) => return Err(error.into()),
                Ok(id) => return Ok(id),
            }
        }
        Err(LedgerFault::Failed("others were in the way each time; try again".to_owned()))
    }

    async fn offers(&self, owner: &Owner, wanted: &Wanted<'_>) -> Result<Vec<Entry>, LedgerFault> {
        let failed = self.database.failed();
        let connection = self.database.connection().await?;
        let query = connection.prepare_cached(sql::OFFERS).await.map_err(&failed)?;
        let (oldest, newest) = wanted.now.window();
        let (oldest, newest, now) = (number(oldest.0), number(newest.0), number(wanted.now.0));
        let (scope, most) = (owner.scope.as_str(), number(MOST_OFFERED as u64));
        let rows = connection
            .query(&query, &[&owner.app, &scope, &wanted.tool, &oldest, &newest, &now, &wanted.hash, &most])
            .await
            .map_err(&failed)?;
        rows.iter().map(|row| EntryRow::of(row).map_err(&failed)?.read()).collect()
    }

    async fn claim(
        &self,
        app: &str,
        what: &Claim,
        want: Want,
        now: Moment,
    ) -> Result<Option<Lease>, LedgerFault> {
        let failed = self.database.failed();
        let connection = self.database.connection().await?;
        let ((state, until), now) = (claimed(want), number(now.0));
        let row = match what {
            Claim::Entry(id) => {
                let claim = connection.prepare_cached(sql::CLAIM_ENTRY).await.map_err(&failed)?;
                connection.query_opt(&claim, &[&id.0, &app, &state, &until, &now]).await
            }
            Claim::Reference(reference, yes) => {
                let claim = connection.prepare_cached(sql::CLAIM_REFERENCE).await.map_err(&failed)?;
                let (hash, _) = digest_columns(yes);
                let (kind, actor) = (yes.kind.name(), yes.by.name());
                connection
                    .query_opt(
                        &claim,
                        &[&app, reference, &yes.tool, &hash, &kind, &actor, &now, &state, &until],
                    )
                    .await
            }
        };
        Ok(row.map_err(&failed)?.map(|row| Lease(row.get(0))))
    }

    async fn settle(
        &self,
        app: &str,
        what: &Claim,
        lease: Lease,
        settled: Settled,
    ) -> Result<bool, LedgerFault> {
        let connection = self.database.connection().await?;
        let state = match settled {
            Settled::Used => "used",
            Settled::Released => "open",
        };
        let changed = match what {
            Claim::Entry(id) => connection.execute(sql::SETTLE_ENTRY, &[&app, &id.0, &lease.0, &state]).await,
            Claim::Reference(reference, _) => {
                connection.execute(sql::SETTLE_REFERENCE, &[&app, reference, &lease.0, &state]).await
            }
        };
        Ok(changed.map_err(self.database.failed())? == 1)
    }

    async fn forget(&self, now: Moment) -> Result<u64, LedgerFault> {
        let failed = self.database.failed();
        let connection = self.database.connection().await?;
        let (oldest, references) = (number(now.window().0.0), remembered(now));
        let gone = connection.execute(sql::FORGET_ENTRIES, &[&oldest]).await.map_err(&failed)?;
        connection.execute(sql::FORGET_SESSIONS, &[&oldest]).await.map_err(&failed)?;
        connection.execute(sql::FORGET_REFERENCES, &[&references]).await.map_err(&failed)?;
        Ok(gone)
    }
}

impl Columns for Row {
    type Error = tokio_postgres::Error;

    fn number(&self, at: usize) -> Result<i64, Self::Error> {
        self.try_get(at)
    }

    fn text(&self, at: usize) -> Result<String, Self::Error> {
        self.try_get(at)
    }

    fn text_or_none(&self, at: usize) -> Result<Option<String>, Self::Error> {
        self.try_get(at)
    }
}
