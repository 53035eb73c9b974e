-- Step 2. Webhooks, and the last deliveries of each. Servers that do not know them are not disturbed.
CREATE TABLE webhooks (
    id         TEXT COLLATE "C" PRIMARY KEY,
    body       TEXT NOT NULL
);

CREATE TABLE deliveries (
    webhook    TEXT COLLATE "C" NOT NULL,
    -- The event's place in the order.
    number     BIGINT NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (webhook, number)
);
