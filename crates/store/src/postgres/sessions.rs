//! Text sessions of several servers: shown by any of them, gone on with at one at a time.

use async_trait::async_trait;
use sayback_runtime::journal::JournalError;
use sayback_runtime::sessions::{SessionKey, SessionStore, StoredSession};
use tokio_postgres::types::ToSql;

use super::Postgres;
use super::conversations::is_id;
use super::journal::storable;
use crate::rows;

/// The table. A step of the format: never changed once released. `opened` is the fence; `changed` is in milliseconds
/// since 1970, by the database's own clock.
pub(super) const TABLE: &str = "CREATE TABLE session (
         app TEXT NOT NULL,
         owner TEXT NOT NULL,
         id TEXT NOT NULL,
         conversation TEXT NOT NULL,
         opened BIGINT NOT NULL,
         changed BIGINT NOT NULL,
         body TEXT NOT NULL,
         PRIMARY KEY (app, owner, id)
     );
     CREATE INDEX session_changed ON session (changed);";
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

impl Postgres {
    async fn one_session(
        &self,
        key: &SessionKey,
        statement: &str,
    ) -> Result<Option<StoredSession>, JournalError> {
        if !is_key(key) {
            return Ok(None);
        }
        let connection = self.connection().await?;
        let row = connection.query_opt(statement, &[&key.app, &key.user, &key.id]).await;
        let row = row.map_err(self.failed())?;
        Ok(row.as_ref().map(rows::session).transpose().map_err(self.failed())?)
    }

    async fn change_session(
        &self,
        key: &SessionKey,
        statement: &str,
        with: &[&(dyn ToSql + Sync)],
    ) -> Result<bool, JournalError> {
        if !is_key(key) {
            return Ok(false);
        }
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&key.app, &key.user, &key.id];
        all.extend(with);
        let connection = self.connection().await?;
        Ok(connection.execute(statement, &all).await.map_err(self.failed())? == 1)
    }
}

#[async_trait]
impl SessionStore for Postgres {
    async fn make(&self, key: &SessionKey, conversation: &str, body: &str) -> Result<bool, JournalError> {
        let make = format!(
            "INSERT INTO session (app, owner, id, conversation, opened, changed, body)
             VALUES ($1, $2, $3, $4, 1, {NOW}, $5) ON CONFLICT DO NOTHING"
        );
        self.change_session(key, &make, &[&conversation, &storable(body)]).await
    }

    async fn look(&self, key: &SessionKey) -> Result<Option<StoredSession>, JournalError> {
        let look = format!("SELECT {} FROM session WHERE app = $1 AND owner = $2 AND id = $3", rows::SESSION);
        self.one_session(key, &look).await
    }

    async fn claim(&self, key: &SessionKey) -> Result<Option<StoredSession>, JournalError> {
        let claim = format!(
            "UPDATE session SET opened = opened + 1 WHERE app = $1 AND owner = $2 AND id = $3 RETURNING {}",
            rows::SESSION
        );
        self.one_session(key, &claim).await
    }

    async fn save(&self, key: &SessionKey, opened: i64, body: &str) -> Result<(), JournalError> {
        let save = format!(
            "UPDATE session SET body = $5, changed = {NOW}
             WHERE app = $1 AND owner = $2 AND id = $3 AND opened = $4"
        );
        let saved = self.change_session(key, &save, &[&opened, &storable(body)]).await?;
        if saved { Ok(()) } else { Err(JournalError::OpenedElsewhere) }
    }

    async fn of_user(&self, app: &str, user: &str, most: u32) -> Result<Vec<StoredSession>, JournalError> {
        if !is_id(app) || !is_id(user) {
            return Ok(Vec::new());
        }
        let list = format!(
            "SELECT {} FROM session WHERE app = $1 AND owner = $2 ORDER BY changed DESC, id DESC LIMIT $3",
            rows::SESSION
        );
        let connection = self.connection().await?;
        let found = connection.query(&list, &[&app, &user, &i64::from(most)]).await.map_err(self.failed())?;
        Ok(found.iter().map(rows::session).collect::<Result<_, _>>().map_err(self.failed())?)
    }

    async fn remove(&self, key: &SessionKey) -> Result<(), JournalError> {
        let remove = "DELETE FROM session WHERE app = $1 AND owner = $2 AND id = $3";
        self.change_session(key, remove, &[]).await.map(drop)
    }
}

fn is_key(key: &SessionKey) -> bool {
    [&key.app, &key.user, &key.id].into_iter().all(|name| is_id(name))
}
