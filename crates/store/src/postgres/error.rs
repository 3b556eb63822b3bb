//! Why a database could not be used.

use std::fmt::Write;

use sayback_runtime::journal::JournalError;
use sayback_runtime::ledger::LedgerFault;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;

/// Why a database could not be used. No message holds a password.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The address is none.
    #[error("this is no address of a PostgreSQL database; write postgres://USER@HOST/NAME?sslmode=require")]
    Address,
    /// What is stored would go over the network for everybody to read.
    #[error(
        "{database}: it is on another machine, and nothing says how the way to it is protected; \
         add ?sslmode=require, or ?sslmode=disable if the network is yours alone"
    )]
    InTheClear {
        /// The database.
        database: String,
    },
    /// The authorities that are to be trusted cannot be read.
    #[error("{path}: no certificates can be read from it: {reason}")]
    Authorities {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// It is not there, at the moment or at all.
    #[error("{database}: the database cannot be reached: {reason}")]
    Unreachable {
        /// The database.
        database: String,
        /// What was said.
        reason: String,
    },
    /// It said no.
    #[error("{database}: {reason}")]
    Refused {
        /// The database.
        database: String,
        /// What it said.
        reason: String,
    },
    /// Its tables were written by a newer version.
    #[error(
        "{database}: its format {found} is newer than this program's ({known}); use the newer program for it"
    )]
    Newer {
        /// The database.
        database: String,
        /// Its format.
        found: i32,
        /// Ours.
        known: i32,
    },
}

impl PostgresError {
    pub(super) fn of(database: &str, source: tokio_postgres::Error) -> Self {
        let (database, reason) = (database.to_owned(), chain(&source));
        let going = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
        ];
        let gone = source.is_closed() || source.code().is_none_or(|code| going.contains(code));
        if gone { Self::Unreachable { database, reason } } else { Self::Refused { database, reason } }
    }
}

impl From<PostgresError> for LedgerFault {
    fn from(error: PostgresError) -> Self {
        match error {
            PostgresError::Unreachable { .. } => Self::Unreachable(error.to_string()),
            PostgresError::Address
            | PostgresError::InTheClear { .. }
            | PostgresError::Authorities { .. }
            | PostgresError::Refused { .. }
            | PostgresError::Newer { .. } => Self::Failed(error.to_string()),
        }
    }
}

impl From<PostgresError> for JournalError {
    fn from(error: PostgresError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A database as messages name it: where and what, and no password.
pub(super) fn shown(config: &tokio_postgres::Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    format!("postgres://{host}:{port}/{}", config.get_dbname().unwrap_or_default())
}

/// An error with what caused it, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            // Writing into a string cannot fail.
            let _ = write!(text, ": {said}");
        }
        cause = next.source();
    }
    text.replace('\n', ", ")
}
