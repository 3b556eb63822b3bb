//! Conversations: listed, looked at, and opened again.

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use crate::{ConversationJournal, Store, StoreError};

/// A conversation in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// The agent's name; empty if it was stored before names were.
    pub agent: String,
    /// When it was last changed, in UTC.
    pub changed: String,
    /// Confirmed runs in it.
    pub runs: u32,
    /// How many of them have no known outcome.
    pub unknown: u32,
}

/// A stored conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its text.
    pub body: String,
    /// Its confirmed runs, in the order in which they began.
    pub runs: Vec<StoredRun>,
}

/// A confirmed run as it was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
    /// The hold's number.
    pub hold: u32,
    /// Which run of it, from 1.
    pub attempt: u32,
    /// The key that the handler was given.
    pub idempotency_key: String,
    /// The model's call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The words or the digit that said yes.
    pub confirmed_by: String,
    /// `started`, `executed`, `failed` or `outcome_unknown`.
    pub state: String,
    /// What the handler answered; empty while that is not known.
    pub message: String,
}

impl Store {
    /// All conversations, latest first.
    ///
    /// # Errors
    /// The database said no.
    pub fn conversations(&self) -> Result<Vec<Listed>, StoreError> {
        let connection = self.connection();
        let mut query = connection
            .prepare(
                "SELECT id, agent, changed, count(run.hold),
                        count(run.hold) FILTER (WHERE run.state IN ('started', 'outcome_unknown'))
                 FROM conversation LEFT JOIN run ON run.conversation = conversation.id
                 GROUP BY id ORDER BY changed DESC, id DESC",
            )
            .map_err(self.failed())?;
        let listed = |row: &Row<'_>| {
            Ok(Listed {
                id: row.get(0)?,
                agent: row.get(1)?,
                changed: row.get(2)?,
                runs: row.get(3)?,
                unknown: row.get(4)?,
            })
        };
        let rows = query.query_map([], listed).map_err(self.failed())?;
        rows.collect::<Result<_, _>>().map_err(self.failed())
    }

    /// A conversation to look at; it is left as it is.
    ///
    /// # Errors
    /// The database said no.
    pub fn conversation(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        stored(&self.connection(), id).map_err(self.failed())
    }

    /// A journal for a new conversation. Nothing is stored until something is written to it.
    pub fn begin_conversation(&self, id: &str, agent: &str) -> ConversationJournal {
        ConversationJournal::new(self.clone(), (id.to_owned(), agent.to_owned()), 1)
    }

    /// Opens a conversation to go on with it, and gives the journal to go on in. From here on only this journal may
    /// write to it, whoever else has it open. A run that has begun and has no outcome yet is from now on one whose
    /// outcome is unknown; should its handler still answer, that is written as a late result.
    ///
    /// # Errors
    /// The database said no.
    pub fn reopen(&self, id: &str, agent: &str) -> Result<Option<(Stored, ConversationJournal)>, StoreError> {
        let opened = self.claim(id).map_err(self.failed())?;
        Ok(opened.map(|(stored, opened)| {
            (stored, ConversationJournal::new(self.clone(), (id.to_owned(), agent.to_owned()), opened))
        }))
    }

    fn claim(&self, id: &str) -> rusqlite::Result<Option<(Stored, i64)>> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let opened: Option<i64> = transaction
            .query_row(
                "UPDATE conversation SET opened = max(opened, 1) + 1, saved = 0 WHERE id = ?1 RETURNING opened",
                [id],
                |row| row.get(0),
            )
            .optional()?;
        let Some(opened) = opened else { return Ok(None) };
        transaction.execute(
            "UPDATE run SET state = 'outcome_unknown' WHERE conversation = ?1 AND state = 'started'",
            [id],
        )?;
        let stored = stored(&transaction, id)?;
        transaction.commit()?;
        Ok(stored.map(|stored| (stored, opened)))
    }

    /// Stores a conversation under its id, in place of what was there; for conversations that nothing runs in.
    ///
    /// # Errors
    /// The database said no.
    pub fn save_conversation(&self, id: &str, body: &str) -> Result<(), StoreError> {
        self.connection()
            .execute(
                "INSERT INTO conversation (id, body) VALUES (?1, ?2)
                 ON CONFLICT (id) DO UPDATE SET body = ?2, changed = CURRENT_TIMESTAMP",
                params![id, body],
            )
            .map(|_| ())
            .map_err(self.failed())
    }
}

fn stored(connection: &Connection, id: &str) -> rusqlite::Result<Option<Stored>> {
    let body = connection
        .query_row("SELECT body FROM conversation WHERE id = ?1", [id], |row| row.get(0))
        .optional()?;
    let Some(body) = body else { return Ok(None) };
    let mut query = connection.prepare(
        "SELECT hold, attempt, idempotency_key, call, tool, confirmed_by, state, message
         FROM run WHERE conversation = ?1 ORDER BY rowid",
    )?;
    let rows = query.query_map([id], |row| {
        Ok(StoredRun {
            hold: row.get(0)?,
            attempt: row.get(1)?,
            idempotency_key: row.get(2)?,
            call: row.get(3)?,
            tool: row.get(4)?,
            confirmed_by: row.get(5)?,
            state: row.get(6)?,
            message: row.get(7)?,
        })
    })?;
    Ok(Some(Stored { body, runs: rows.collect::<Result<_, _>>()? }))
}
