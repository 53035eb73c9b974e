-- Step 2. Tokens, of which only a hash is kept. Times are in milliseconds.
CREATE TABLE tokens (
    name         TEXT PRIMARY KEY,
    hash         BLOB NOT NULL UNIQUE,
    -- Words with a blank in between.
    scopes       TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) WITHOUT ROWID;
