-- Step 1. Steps are never edited once released: a change is a step more.
-- Names are compared byte by byte, so that pages have the same order everywhere.
CREATE TABLE jobs (
    id         TEXT COLLATE "C" PRIMARY KEY,
    state      TEXT NOT NULL,
    queue      TEXT COLLATE "C" NOT NULL,
    type       TEXT NOT NULL,
    priority   INTEGER NOT NULL,
    -- The order within a queue and a priority; a new one whenever the job becomes available.
    seq        BIGINT NOT NULL,
    -- When time alone changes it, in milliseconds.
    due_at     BIGINT,
    worker     TEXT,
    cron       TEXT,
    -- Whether it waits for other jobs of its cron job; in play it is blocked unless none other is there unblocked.
    serial     BOOLEAN NOT NULL,
    blocked    BOOLEAN NOT NULL,
    dead_at    BIGINT,
    ended_at   BIGINT,
    -- The kind of the failure that it ended with.
    error_type TEXT COLLATE "C",
    body       TEXT NOT NULL
);
CREATE SEQUENCE job_order;
CREATE INDEX jobs_ready ON jobs (queue, priority DESC, seq) WHERE state = 'available' AND NOT blocked;
CREATE INDEX jobs_due ON jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_open_of_cron ON jobs (cron, state, blocked) WHERE cron IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_of_worker ON jobs (worker) WHERE worker IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX jobs_dead_in_order ON jobs (id) WHERE dead_at IS NOT NULL;
CREATE INDEX jobs_of_cron ON jobs (cron, id) WHERE cron IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
-- Lists are read in the order of an index, whatever they are restricted to.
CREATE INDEX jobs_in_queue ON jobs (queue, state, id);
CREATE INDEX jobs_in_state ON jobs (state, id);
CREATE INDEX jobs_of_type ON jobs (type, id);

CREATE TABLE queues (
    name       TEXT COLLATE "C" PRIMARY KEY,
    paused     BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE workers (
    id         TEXT COLLATE "C" PRIMARY KEY,
    -- When it counts as dead unless it is heard of before, in milliseconds.
    dies_at    BIGINT,
    seen_at    BIGINT NOT NULL,
    body       TEXT NOT NULL
);
CREATE INDEX workers_dying ON workers (dies_at) WHERE dies_at IS NOT NULL;

CREATE TABLE crons (
    name       TEXT COLLATE "C" PRIMARY KEY,
    enabled    BOOLEAN NOT NULL,
    -- When to look at it, in seconds.
    next_look  BIGINT,
    body       TEXT NOT NULL
);
CREATE INDEX crons_in_order ON crons (enabled, name);
CREATE INDEX crons_due ON crons (next_look, name) WHERE next_look IS NOT NULL;

-- An occurrence can be recorded once only: this key is what makes two fires of one impossible.
CREATE TABLE occurrences (
    cron       TEXT COLLATE "C" NOT NULL,
    scheduled  BIGINT NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    last       BIGINT NOT NULL,
    actual     BIGINT NOT NULL,
    -- The epoch that was current when it was written.
    epoch      BIGINT NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (cron, scheduled, kind)
);
CREATE INDEX occurrences_by_age ON occurrences (actual);
-- Several in a row are looked for by a time that they may have begun long before.
CREATE INDEX occurrences_in_a_row ON occurrences (cron, last) WHERE kind = 'range';

-- An event's number is made of its transaction's and its place in it. Below the oldest transaction that is still
-- going on no event can appear any more, so that whoever reads up to there misses nothing.
CREATE TABLE events (
    seq        BIGINT PRIMARY KEY,
    id         TEXT COLLATE "C" NOT NULL UNIQUE,
    type       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    queue      TEXT,
    job_type   TEXT,
    at         BIGINT NOT NULL,
    body       TEXT NOT NULL
);
-- What is added to the numbers of transactions, which begin anew where a dump is restored.
CREATE TABLE event_base (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    base       BIGINT NOT NULL
);
INSERT INTO event_base VALUES (1, 0);

-- Who evaluates cron jobs. The key is the fence: a fire locks it against a change of the epoch (FOR KEY SHARE), and a
-- renewal, which leaves the epoch alone, does not wait for that.
CREATE TABLE leader (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    epoch      BIGINT NOT NULL UNIQUE,
    holder     TEXT,
    since      TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
INSERT INTO leader VALUES (1, 0, NULL, clock_timestamp(), '-infinity');

CREATE TABLE nodes (
    id         TEXT COLLATE "C" PRIMARY KEY,
    address    TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    seen_at    TIMESTAMPTZ NOT NULL
);

CREATE TABLE tokens (
    name         TEXT COLLATE "C" PRIMARY KEY,
    -- A hash of the secret, which itself is kept nowhere.
    hash         BYTEA NOT NULL UNIQUE,
    scopes       TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT
);
