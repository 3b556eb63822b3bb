//! The confirmation ledger in a database: the same statements for SQLite and PostgreSQL, so that both decide alike.
//!
//! Whether something may be used is decided by one statement that changes a row if it is free: of any number of callers
//! one changes it.

pub(crate) mod sql;
mod sqlite;
pub(crate) mod tables;

use std::collections::BTreeMap;

use sayback_runtime::ledger::{Actor, Digest, Entry, EntryId, Kind, LedgerFault, Moment, Want, Yes};

use crate::rows::Columns;

pub use sqlite::SqliteLedger;

/// How long a reference is remembered: longer than any job is tried again.
const REMEMBERED_MS: u64 = 30 * 86_400_000;

/// The oldest moment of a reference that is still remembered.
pub(crate) fn remembered(now: Moment) -> i64 {
    number(now.0.saturating_sub(REMEMBERED_MS))
}

/// A number as databases have it.
pub(crate) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The columns that a claim sets.
pub(crate) fn claimed(want: Want) -> (&'static str, i64) {
    match want {
        Want::Use => ("used", 0),
        Want::Reserve { until } => ("reserved", number(until.0)),
    }
}

/// A yes as columns: hash, and the hashes of its fields as JSON.
pub(crate) fn digest_columns(yes: &Yes) -> (Option<String>, Option<String>) {
    let fields = yes.digest.as_ref().and_then(|digest| digest.fields.as_ref());
    let fields = fields.and_then(|fields| serde_json::to_string(fields).ok());
    (yes.digest.as_ref().map(|digest| digest.hash.clone()), fields)
}

/// An entry's row.
pub(crate) struct EntryRow {
    pub(crate) id: i64,
    pub(crate) tool: String,
    pub(crate) hash: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) kind: String,
    pub(crate) actor: String,
    pub(crate) at: i64,
}

impl EntryRow {
    /// The columns of [`sql::OFFERS`], in its order.
    pub(crate) fn of<R: Columns>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.number(0)?,
            tool: row.text(1)?,
            hash: row.text_or_none(2)?,
            fields: row.text_or_none(3)?,
            kind: row.text(4)?,
            actor: row.text(5)?,
            at: row.number(6)?,
        })
    }

    pub(crate) fn read(self) -> Result<Entry, LedgerFault> {
        let broken =
            |what: &str| LedgerFault::Failed(format!("the entry {} has no {what} that is one", self.id));
        let fields: Option<BTreeMap<String, String>> = match &self.fields {
            Some(fields) => Some(serde_json::from_str(fields).map_err(|_| broken("list of fields"))?),
            None => None,
        };
        let kind = Kind::named(&self.kind).ok_or_else(|| broken("kind"))?;
        let by = Actor::named(&self.actor).ok_or_else(|| broken("actor"))?;
        let at = Moment(u64::try_from(self.at).map_err(|_| broken("time"))?);
        let digest = self.hash.map(|hash| Digest { hash, fields });
        Ok(Entry { id: EntryId(self.id), yes: Yes { tool: self.tool, digest, kind, by, at } })
    }
}
