-- Step 4: webhooks, and the last deliveries of each.
CREATE TABLE webhooks (
    id         TEXT PRIMARY KEY,
    body       TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE deliveries (
    webhook    TEXT NOT NULL,
    -- The event's place in the order.
    number     INTEGER NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (webhook, number)
) WITHOUT ROWID;
