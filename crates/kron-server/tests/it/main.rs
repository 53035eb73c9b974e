//! kron-server, tested from outside: a real process, spoken to over HTTP. Each file asks one question.

/// What the other files stand on.
mod server;

/// What may a cron job say, and what does it then mean? (CRON-01 to 15.)
mod cron_definition;

/// When does it fire, when not, and what is said about it? (CRON-16 to 30.)
mod cron_firing;

/// Are jobs what level 0 says? (L0-…)
mod level_0;

/// Are failures handled as level 1 says? (L1-…)
mod level_1;

/// Are delays, expiries and the suite's cron as level 2 says? (L2-…)
mod level_2;

/// Is the wire as it should be, whoever is at the other end?
mod wire;

/// Do lists come in pages?
mod pages;

/// Can events be polled, streamed and resumed?
mod events;

/// Are occurrences, previews, windows and manual runs what Kron promises?
mod kron_api;

/// Are events told to webhooks, and is nobody else called?
mod webhooks;

/// Does it hold when many ask at once?
mod concurrency;

/// Do servers that share a database know of each other?
mod cluster;

/// Does the process start, end and keep others out as it should?
mod process;

/// Can it be killed at any moment?
mod kill9;

/// Can it be watched, and looked after while it runs?
mod operations;

/// What becomes of it when the disk is full?
mod full_disk;

/// Does a collector hear of what it does?
#[cfg(feature = "otel")]
mod traces;

/// Do commands run for jobs?
mod worker;

/// Who may do what, and by which name may it be called?
mod gate;

/// Does it hold against clients that are slow, silent, large or lying?
mod hostile;

/// Does it speak TLS, and do workers over it?
mod tls;
