//! The tables. A step of the format: never changed once released.

/// `used` entries are kept until they are too old, so that a late retry finds them used and not gone. `lease` grows with
/// each reservation: one that has lapsed cannot settle the next.
pub(crate) const SQLITE: &str = "CREATE TABLE ledger_session (
         app TEXT NOT NULL,
         scope TEXT NOT NULL,
         used INTEGER NOT NULL,
         PRIMARY KEY (app, scope)
     ) STRICT;
     CREATE INDEX ledger_session_used ON ledger_session (app, used);
     CREATE TABLE ledger_entry (
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         app TEXT NOT NULL,
         scope TEXT NOT NULL,
         tool TEXT NOT NULL,
         hash TEXT,
         fields TEXT,
         kind TEXT NOT NULL,
         actor TEXT NOT NULL,
         at INTEGER NOT NULL,
         state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'reserved', 'used')),
         lease INTEGER NOT NULL DEFAULT 0,
         until INTEGER NOT NULL DEFAULT 0
     ) STRICT;
     CREATE INDEX ledger_entry_of ON ledger_entry (app, scope, tool);
     CREATE INDEX ledger_entry_at ON ledger_entry (at);
     CREATE TABLE ledger_reference (
         app TEXT NOT NULL,
         reference TEXT NOT NULL,
         tool TEXT NOT NULL,
         hash TEXT,
         kind TEXT NOT NULL,
         actor TEXT NOT NULL,
         at INTEGER NOT NULL,
         state TEXT NOT NULL CHECK (state IN ('open', 'reserved', 'used')),
         lease INTEGER NOT NULL,
         until INTEGER NOT NULL,
         PRIMARY KEY (app, reference)
     ) STRICT;
     CREATE INDEX ledger_reference_at ON ledger_reference (at);";

/// The same tables in PostgreSQL.
#[cfg(feature = "postgres")]
pub(crate) const POSTGRES: &str = "CREATE TABLE ledger_session (
         app TEXT NOT NULL,
         scope TEXT NOT NULL,
         used BIGINT NOT NULL,
         PRIMARY KEY (app, scope)
     );
     CREATE INDEX ledger_session_used ON ledger_session (app, used);
     CREATE TABLE ledger_entry (
         id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
         app TEXT NOT NULL,
         scope TEXT NOT NULL,
         tool TEXT NOT NULL,
         hash TEXT,
         fields TEXT,
         kind TEXT NOT NULL,
         actor TEXT NOT NULL,
         at BIGINT NOT NULL,
         state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'reserved', 'used')),
         lease BIGINT NOT NULL DEFAULT 0,
         until BIGINT NOT NULL DEFAULT 0
     );
     CREATE INDEX ledger_entry_of ON ledger_entry (app, scope, tool);
     CREATE INDEX ledger_entry_at ON ledger_entry (at);
     CREATE TABLE ledger_reference (
         app TEXT NOT NULL,
         reference TEXT NOT NULL,
         tool TEXT NOT NULL,
         hash TEXT,
         kind TEXT NOT NULL,
         actor TEXT NOT NULL,
         at BIGINT NOT NULL,
         state TEXT NOT NULL CHECK (state IN ('open', 'reserved', 'used')),
         lease BIGINT NOT NULL,
         until BIGINT NOT NULL,
         PRIMARY KEY (app, reference)
     );
     CREATE INDEX ledger_reference_at ON ledger_reference (at);";
