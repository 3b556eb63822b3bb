//! Text sessions in the file.

use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use sayback_runtime::journal::JournalError;
use sayback_runtime::sessions::{SessionKey, SessionStore, StoredSession};

use crate::approvals::NOW;
use crate::{Store, rows};

/// The table. A step of the format. `opened` is the fence; `changed` is in milliseconds since 1970.
pub(crate) const TABLE: &str = "CREATE TABLE session (
         app TEXT NOT NULL,
         owner TEXT NOT NULL,
         id TEXT NOT NULL,
         conversation TEXT NOT NULL,
         opened INTEGER NOT NULL,
         changed INTEGER NOT NULL,
         body TEXT NOT NULL,
         PRIMARY KEY (app, owner, id)
     ) STRICT;
     CREATE INDEX session_changed ON session (changed);";

#[async_trait]
impl SessionStore for Store {
    async fn make(&self, key: &SessionKey, conversation: &str, body: &str) -> Result<bool, JournalError> {
        let (key, conversation, body) = (key.clone(), conversation.to_owned(), body.to_owned());
        let make = format!(
            "INSERT INTO session (app, owner, id, conversation, opened, changed, body)
             VALUES (?1, ?2, ?3, ?4, 1, {NOW}, ?5) ON CONFLICT DO NOTHING"
        );
        self.aside(move |store| {
            let with = params![key.app, key.user, key.id, conversation, body];
            let made = store.connection().execute(&make, with).map_err(store.failed())?;
            Ok(made == 1)
        })
        .await
    }

    async fn look(&self, key: &SessionKey) -> Result<Option<StoredSession>, JournalError> {
        let look = format!("SELECT {} FROM session WHERE app = ?1 AND owner = ?2 AND id = ?3", rows::SESSION);
        self.one_session(key, look).await
    }

    async fn claim(&self, key: &SessionKey) -> Result<Option<StoredSession>, JournalError> {
        let claim = format!(
            "UPDATE session SET opened = opened + 1 WHERE app = ?1 AND owner = ?2 AND id = ?3 RETURNING {}",
            rows::SESSION
        );
        self.one_session(key, claim).await
    }

    async fn save(&self, key: &SessionKey, opened: i64, body: &str) -> Result<(), JournalError> {
        let (key, body) = (key.clone(), body.to_owned());
        let save = format!(
            "UPDATE session SET body = ?5, changed = {NOW}
             WHERE app = ?1 AND owner = ?2 AND id = ?3 AND opened = ?4"
        );
        let saved = self.aside(move |store| {
            let with = params![key.app, key.user, key.id, opened, body];
            store.connection().execute(&save, with).map_err(store.failed())
        });
        if saved.await? == 1 { Ok(()) } else { Err(JournalError::OpenedElsewhere) }
    }

    async fn of_user(&self, app: &str, user: &str, most: u32) -> Result<Vec<StoredSession>, JournalError> {
        let (app, user) = (app.to_owned(), user.to_owned());
        let list = format!(
            "SELECT {} FROM session WHERE app = ?1 AND owner = ?2 ORDER BY changed DESC, id DESC LIMIT ?3",
            rows::SESSION
        );
        self.aside(move |store| {
            let connection = store.connection();
            let mut query = connection.prepare(&list).map_err(store.failed())?;
            let found = query.query_map(params![app, user, most], |row| rows::session(row));
            found.and_then(Iterator::collect).map_err(store.failed())
        })
        .await
    }

    async fn remove(&self, key: &SessionKey) -> Result<(), JournalError> {
        let key = key.clone();
        let remove = "DELETE FROM session WHERE app = ?1 AND owner = ?2 AND id = ?3";
        self.aside(move |store| {
            let removed = store.connection().execute(remove, params![key.app, key.user, key.id]);
            removed.map(drop).map_err(store.failed())
        })
        .await
    }
}

impl Store {
    async fn one_session(
        &self,
        key: &SessionKey,
        statement: String,
    ) -> Result<Option<StoredSession>, JournalError> {
        let key = key.clone();
        self.aside(move |store| {
            let with = params![key.app, key.user, key.id];
            let found = store.connection().query_row(&statement, with, |row| rows::session(row)).optional();
            found.map_err(store.failed())
        })
        .await
    }
}
