//! One database for several servers: PostgreSQL.
//!
//! A connection that is gone is replaced by a new one at the next work. Work that was under way when the database went is
//! told as failed, since it may or may not have been done.

mod approvals;
mod conversations;
mod error;
mod journal;
mod ledger;
mod schema;
mod sessions;
mod tls;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime};

pub use error::PostgresError;
pub use journal::PostgresJournal;
pub use ledger::PostgresLedger;

/// Connections of one server, at most.
const CONNECTIONS: usize = 16;
/// How long a connection may take to come about, and work may wait for one.
const PATIENCE: Duration = Duration::from_secs(5);
/// A statement that runs longer is ended by the database, so that a lock elsewhere holds nobody up for good.
const LONGEST: &str = "-c statement_timeout=10000 -c lock_timeout=5000";

/// A database. Clones share its connections.
#[derive(Clone)]
pub struct Postgres {
    pool: Pool,
    shown: String,
    /// Whoever has opened it, among all that have.
    server: Arc<str>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("database", &self.shown).finish_non_exhaustive()
    }
}

impl Postgres {
    /// Connects to `postgres://USER:PASSWORD@HOST/NAME?sslmode=require`, and brings its tables up to date. `ca` is a PEM
    /// file with the authorities that are trusted beside the system's.
    ///
    /// # Errors
    /// The address is none, would send the password in the clear, cannot be reached, or the tables were written by a
    /// newer version.
    pub async fn open(url: &str, ca: Option<&Path>) -> Result<Self, PostgresError> {
        let mut config: tokio_postgres::Config = url.parse().map_err(|_| PostgresError::Address)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(PostgresError::Address);
        }
        let shown = error::shown(&config);
        let tls = tls::needed(&config, &shown)?;
        config.connect_timeout(PATIENCE);
        if config.get_options().is_none() {
            config.options(LONGEST);
        }
        let how = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match tls {
            true => Manager::from_config(config, tls::connector(ca)?, how),
            false => Manager::from_config(config, tokio_postgres::NoTls, how),
        };
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(PATIENCE))
            .build()
            .map_err(|error| PostgresError::Unreachable {
                database: shown.clone(),
                reason: error.to_string(),
            })?;
        let mut database = Self { pool, shown, server: Arc::from("") };
        schema::bring_up_to_date(&database).await?;
        let connection = database.connection().await?;
        let random = connection.query_one("SELECT gen_random_uuid()::text", &[]).await;
        let random: String = random.and_then(|row| row.try_get(0)).map_err(database.failed())?;
        database.server = random.into();
        Ok(database)
    }

    /// Which one it is, without its password.
    pub fn name(&self) -> &str {
        &self.shown
    }

    /// Its confirmation ledger.
    pub fn ledger(&self) -> PostgresLedger {
        PostgresLedger::on(self.clone())
    }

    /// A connection that works.
    pub(crate) async fn connection(&self) -> Result<Object, PostgresError> {
        self.pool.get().await.map_err(|error| match error {
            // It may be there and say no: a wrong password does not get better by waiting.
            PoolError::Backend(source) => PostgresError::of(&self.shown, source),
            PoolError::Timeout(_)
            | PoolError::Closed
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_) => {
                PostgresError::Unreachable { database: self.shown.clone(), reason: error::chain(&error) }
            }
        })
    }

    /// What an error of a statement means.
    pub(crate) fn failed(&self) -> impl Fn(tokio_postgres::Error) -> PostgresError {
        |source| PostgresError::of(&self.shown, source)
    }
}
