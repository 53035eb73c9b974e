-- Step 1. Steps are never edited once released: a change is a step more.
CREATE TABLE jobs (
    id         TEXT PRIMARY KEY,
    state      TEXT NOT NULL,
    queue      TEXT NOT NULL,
    type       TEXT NOT NULL,
    priority   INTEGER NOT NULL,
    -- The order within a queue and a priority; a new one whenever the job becomes available.
    seq        INTEGER NOT NULL,
    -- When time alone changes it, in milliseconds.
    due_at     INTEGER,
    worker     TEXT,
    cron       TEXT,
    -- Whether it waits for other jobs of its cron job; in play it is blocked unless none other is there unblocked.
    serial     INTEGER NOT NULL,
    blocked    INTEGER NOT NULL,
    dead_at    INTEGER,
    ended_at   INTEGER,
    body       TEXT NOT NULL
);
CREATE INDEX jobs_ready ON jobs (queue, priority DESC, seq) WHERE state = 'available' AND blocked = 0;
CREATE INDEX jobs_due ON jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_open_of_cron ON jobs (cron, state, blocked) WHERE cron IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_of_worker ON jobs (worker) WHERE worker IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX jobs_dead_in_order ON jobs (id) WHERE dead_at IS NOT NULL;
CREATE INDEX jobs_of_cron ON jobs (cron, id) WHERE cron IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_in_queue ON jobs (queue, state);

CREATE TABLE queues (
    name       TEXT PRIMARY KEY,
    paused     INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE workers (
    id         TEXT PRIMARY KEY,
    -- When it counts as dead unless it is heard of before, in milliseconds.
    dies_at    INTEGER,
    body       TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX workers_dying ON workers (dies_at) WHERE dies_at IS NOT NULL;

CREATE TABLE crons (
    name       TEXT PRIMARY KEY,
    enabled    INTEGER NOT NULL,
    -- When to look at it, in seconds.
    next_look  INTEGER,
    body       TEXT NOT NULL
);
CREATE INDEX crons_due ON crons (next_look) WHERE next_look IS NOT NULL;

-- An occurrence can be recorded once only: this key is what makes two fires of one impossible.
CREATE TABLE occurrences (
    cron       TEXT NOT NULL,
    scheduled  INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    last       INTEGER NOT NULL,
    actual     INTEGER NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (cron, scheduled, kind)
) WITHOUT ROWID;
CREATE INDEX occurrences_by_age ON occurrences (actual);
-- Several in a row are looked for by a time that they may have begun long before.
CREATE INDEX occurrences_in_a_row ON occurrences (cron, last) WHERE kind = 'range';

CREATE TABLE events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    type       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    queue      TEXT,
    job_type   TEXT,
    at         INTEGER NOT NULL,
    body       TEXT NOT NULL
);
