//! The statements. Parameters are `$1`, `$2`, …; SQLite has them as `?1`, `?2`, ….

pub(crate) const ADD_SESSION: &str =
    "INSERT INTO ledger_session (app, scope, used) VALUES ($1, $2, $3) ON CONFLICT (app, scope) DO NOTHING";

pub(crate) const TOUCH_SESSION: &str =
    "UPDATE ledger_session SET used = $3 WHERE app = $1 AND scope = $2 AND used < $3";

pub(crate) const TRIM_SESSIONS: &str = "DELETE FROM ledger_session WHERE app = $1 AND scope IN
         (SELECT scope FROM ledger_session WHERE app = $1 ORDER BY used DESC, scope DESC LIMIT 1000000 OFFSET $2)
     RETURNING scope";

pub(crate) const DROP_ENTRIES: &str =
    "DELETE FROM ledger_entry WHERE app = $1 AND scope = $2 AND state <> 'used'";

pub(crate) const ADD_ENTRY: &str =
    "INSERT INTO ledger_entry (app, scope, tool, hash, fields, kind, actor, at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id";

pub(crate) const TRIM_ENTRIES: &str = "DELETE FROM ledger_entry WHERE id IN
         (SELECT id FROM ledger_entry WHERE app = $1 AND scope = $2 AND state <> 'used'
          ORDER BY at DESC, id DESC LIMIT 1000000 OFFSET $3)";

pub(crate) const OFFERS: &str = "SELECT id, tool, hash, fields, kind, actor, at FROM ledger_entry
     WHERE app = $1 AND scope = $2 AND tool = $3 AND at >= $4 AND at <= $5
           AND (state = 'open' OR (state = 'reserved' AND until <= $6))
     ORDER BY CASE WHEN hash = $7 THEN 0 ELSE 1 END, at DESC, id DESC LIMIT $8";

pub(crate) const CLAIM_ENTRY: &str = "UPDATE ledger_entry SET state = $3, lease = lease + 1, until = $4
     WHERE id = $1 AND app = $2 AND (state = 'open' OR (state = 'reserved' AND until <= $5)) RETURNING lease";

pub(crate) const CLAIM_REFERENCE: &str =
    "INSERT INTO ledger_reference (app, reference, tool, hash, kind, actor, at, state, lease, until)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9)
     ON CONFLICT (app, reference) DO UPDATE
     SET state = excluded.state, lease = ledger_reference.lease + 1, until = excluded.until, at = excluded.at
     WHERE ledger_reference.state = 'open' OR (ledger_reference.state = 'reserved' AND ledger_reference.until <= $7)
     RETURNING lease";

pub(crate) const SETTLE_ENTRY: &str = "UPDATE ledger_entry SET state = $4
     WHERE app = $1 AND id = $2 AND lease = $3 AND state = 'reserved'";

pub(crate) const SETTLE_REFERENCE: &str = "UPDATE ledger_reference SET state = $4
     WHERE app = $1 AND reference = $2 AND lease = $3 AND state = 'reserved'";

pub(crate) const FORGET_ENTRIES: &str = "DELETE FROM ledger_entry WHERE at < $1";
pub(crate) const FORGET_SESSIONS: &str = "DELETE FROM ledger_session WHERE used < $1";
pub(crate) const FORGET_REFERENCES: &str = "DELETE FROM ledger_reference WHERE at < $1";
