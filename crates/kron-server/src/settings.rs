//! The settings file. `kron-server.toml` beside this file is its reference, and the default.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use serde::Deserialize;

use crate::cron::Counting;
use crate::job::Defaults;
use crate::limits::{self, Limits};
use crate::store::{PostgresPlace, Retention};
use crate::webhook::guard::Guard;
use crate::{hosts, tls};

/// The settings file with every setting and its default.
pub const REFERENCE: &str = include_str!("kron-server.toml");

/// How a server is set up.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// By which names clients may call it, beside those that are its host's own.
    pub hosts: Vec<String>,
    /// The certificate by which it is known, if it speaks TLS.
    pub tls: Option<tls::Files>,
    /// What clients are held to.
    pub limits: Limits,
    /// Where its SQLite database is.
    pub data: PathBuf,
    /// The PostgreSQL database that it uses instead.
    pub postgres: Option<PostgresPlace>,
    /// Whether tests may reset it and set its clock. No file can say so.
    pub test_mode: bool,
    /// What counts as overlap.
    pub counting: Counting,
    /// For jobs that do not say otherwise.
    pub defaults: Defaults,
    /// For how long things are kept.
    pub retention: Retention,
    /// Whom webhooks may call.
    pub webhooks: Webhooks,
    /// How the log is written.
    pub log_format: LogFormat,
    /// Where time zones are; none for where the host has them.
    pub zoneinfo: Option<PathBuf>,
}

/// Whom webhooks may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhooks {
    /// At which addresses and ports.
    pub guard: Guard,
    /// Whose certificates count beside those of the host's.
    pub ca: Option<PathBuf>,
    /// For how long everything may fail before one is disabled.
    pub patience: SignedDuration,
}

/// How a log is written.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A JSON object a line.
    Json,
    /// For people.
    Text,
}

impl Settings {
    /// The settings of a file, or the defaults.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or says something that the server does not understand.
    pub fn load(path: Option<&Path>) -> Result<Settings, String> {
        let Some(path) = path else { return Settings::read("") };
        let wrong =
            |why: String| format!("could not use the settings in {}: {}", path.display(), why.trim_end());
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Settings::read(&text).map_err(wrong)
    }

    fn read(text: &str) -> Result<Settings, String> {
        let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
        let default: Written = toml::from_str(REFERENCE).map_err(|error| error.to_string())?;
        let or = |given: Option<String>, default: Option<String>| given.or(default).unwrap_or_default();
        let keep = written.retention.unwrap_or_default();
        let usual = Retention::default();
        let listen = or(written.listen, default.listen);
        let webhooks =
            read_webhooks(written.webhooks.unwrap_or_default(), default.webhooks.unwrap_or_default())?;
        let counting = or(written.overlap_counts, default.overlap_counts);
        let postgres = match (written.database, &written.database_direct) {
            (Some(url), _) => Some(PostgresPlace {
                url: postgres_url("database", url)?,
                direct: written
                    .database_direct
                    .map(|url| postgres_url("database_direct", url))
                    .transpose()?,
                pooler: written.database_pooler.unwrap_or(false),
                connections: match written.database_connections.unwrap_or(CONNECTIONS) {
                    n @ 2..=1_000 => n,
                    n => return Err(format!("`database_connections`: expected 2 to 1000, but found {n}")),
                },
            }),
            (None, Some(_)) => return Err("`database_direct`: expected a `database` beside it".into()),
            (None, None) => None,
        };
        Ok(Settings {
            listen: listen.parse().map_err(|_| {
                format!("`listen`: expected an address such as \"127.0.0.1:8080\", but found {listen:?}")
            })?,
            hosts: read_hosts(written.hosts.unwrap_or_default())?,
            tls: read_tls(written.tls.unwrap_or_default())?,
            limits: Limits::read(written.limits.unwrap_or_default())?,
            data: written.data.or(default.data).unwrap_or_default(),
            postgres,
            test_mode: false,
            counting: match counting.as_str() {
                "active" => Counting::Active,
                "unfinished" => Counting::Unfinished,
                other => {
                    return Err(format!(
                        "`overlap_counts`: expected \"active\" or \"unfinished\", but found {other:?}"
                    ));
                }
            },
            defaults: Defaults {
                timeout_ms: millis("timeout", &or(written.timeout, default.timeout))?,
                visibility_ms: millis(
                    "visibility_timeout",
                    &or(written.visibility_timeout, default.visibility_timeout),
                )?,
            },
            retention: Retention {
                jobs_days: keep.jobs_days.unwrap_or(usual.jobs_days),
                dead_days: keep.dead_letters_days.unwrap_or(usual.dead_days),
                dead_max: keep.dead_letters_max.map_or(usual.dead_max, u64::from),
                events_days: keep.events_days.unwrap_or(usual.events_days),
                events_max: keep.events_max.map_or(usual.events_max, u64::from),
                occurrences_days: keep.occurrences_days.unwrap_or(usual.occurrences_days),
            },
            webhooks,
            log_format: written.log_format.unwrap_or(LogFormat::Text),
            zoneinfo: written.zoneinfo,
        })
    }
}

fn read_hosts(names: Vec<String>) -> Result<Vec<String>, String> {
    names.iter().try_for_each(|name| hosts::check_name(name).map_err(|why| format!("`hosts`: {why}")))?;
    Ok(names)
}

fn read_tls(written: Certificate) -> Result<Option<tls::Files>, String> {
    match (written.cert, written.key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some(tls::Files { cert, key })),
        _ => Err("`tls`: expected both `cert` and `key`, but found only one of them".into()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    listen: Option<String>,
    hosts: Option<Vec<String>>,
    tls: Option<Certificate>,
    limits: Option<limits::Written>,
    data: Option<PathBuf>,
    database: Option<String>,
    database_direct: Option<String>,
    database_pooler: Option<bool>,
    database_connections: Option<u32>,
    overlap_counts: Option<String>,
    timeout: Option<String>,
    visibility_timeout: Option<String>,
    log_format: Option<LogFormat>,
    zoneinfo: Option<PathBuf>,
    retention: Option<Kept>,
    webhooks: Option<Called>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    ports: Option<Vec<u16>>,
    http: Option<bool>,
    allow: Option<Vec<String>>,
    ca: Option<PathBuf>,
    disable_after_days: Option<u32>,
}

fn read_webhooks(written: Called, default: Called) -> Result<Webhooks, String> {
    let allow = written.allow.or(default.allow).unwrap_or_default();
    let openings = allow.iter().map(|text| text.parse()).collect::<Result<_, String>>();
    let days = written.disable_after_days.or(default.disable_after_days).unwrap_or_default();
    if days == 0 {
        return Err("`webhooks.disable_after_days`: expected at least 1, but found 0".into());
    }
    Ok(Webhooks {
        guard: Guard {
            ports: written.ports.or(default.ports).unwrap_or_default(),
            http: written.http.or(default.http).unwrap_or_default(),
            openings: openings.map_err(|why| format!("`webhooks.allow`: {why}"))?,
        },
        ca: written.ca,
        patience: SignedDuration::from_hours(24 * i64::from(days)),
    })
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Certificate {
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    jobs_days: Option<u32>,
    dead_letters_days: Option<u32>,
    dead_letters_max: Option<u32>,
    events_days: Option<u32>,
    events_max: Option<u32>,
    occurrences_days: Option<u32>,
}

/// How many connections to PostgreSQL a server has at most.
pub const CONNECTIONS: u32 = 16;

/// The URL of a PostgreSQL database. It may hold a password and is not repeated.
fn postgres_url(key: &str, url: String) -> Result<String, String> {
    if is_postgres(&url) {
        return Ok(url);
    }
    Err(format!("`{key}`: expected a URL that begins with \"postgres://\", but found another"))
}

/// Whether a URL leads to a PostgreSQL database.
#[must_use]
pub fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

fn millis(key: &str, text: &str) -> Result<u64, String> {
    let duration: kron_schedule::Duration =
        text.parse().map_err(|error| format!("`{key}`: {error} (such as \"30m\")"))?;
    match u64::try_from(duration.as_nanos() / 1_000_000) {
        Ok(ms) if ms > 0 => Ok(ms),
        _ => Err(format!("`{key}`: expected more than nothing, but found {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_says_the_defaults() {
        assert_eq!(Settings::read(REFERENCE).unwrap(), Settings::read("").unwrap());
        assert_eq!(Settings::read("").unwrap().retention, Retention::default());
        assert_eq!(Settings::read("").unwrap().limits, Limits::default());
        assert_eq!(Settings::read("").unwrap().defaults, Defaults::default());
    }

    #[test]
    fn mistakes_are_told() {
        for (text, message) in [
            (
                "listen = \"here\"",
                "`listen`: expected an address such as \"127.0.0.1:8080\", but found \"here\"",
            ),
            (
                "overlap_counts = \"all\"",
                "`overlap_counts`: expected \"active\" or \"unfinished\", but found \"all\"",
            ),
            ("tls.cert = \"c.pem\"", "`tls`: expected both `cert` and `key`, but found only one of them"),
            (
                "hosts = [\"https://kron.lan\"]",
                "`hosts`: expected a name as clients send it in Host, such as \"kron.example.org\" or \"kron.lan:8080\", \
                 but found `https://kron.lan`",
            ),
            ("limits.connections = 0", "`limits.connections`: expected 1 to 100000, but found 0"),
            (
                "database = \"mysql://secret\"",
                "`database`: expected a URL that begins with \"postgres://\", but found another",
            ),
            (
                "database = \"postgres://h/d\"\ndatabase_connections = 1",
                "`database_connections`: expected 2 to 1000, but found 1",
            ),
            ("database_direct = \"postgres://h/d\"", "`database_direct`: expected a `database` beside it"),
            (
                "[webhooks]\nallow = [\"localhost:80\"]",
                "`webhooks.allow`: expected addresses and a port such as \"10.1.0.0/16:8443\", \
                 \"127.0.0.1:9000\" or \"[fd00::/8]:443\", but found \"localhost:80\"",
            ),
            (
                "[webhooks]\ndisable_after_days = 0",
                "`webhooks.disable_after_days`: expected at least 1, but found 0",
            ),
            ("timeout = \"0s\"", "`timeout`: expected more than nothing, but found \"0s\""),
        ] {
            assert_eq!(Settings::read(text).unwrap_err(), message);
        }
        assert!(Settings::read("lisen = \"x\"").unwrap_err().contains("unknown field `lisen`"));
    }
}
