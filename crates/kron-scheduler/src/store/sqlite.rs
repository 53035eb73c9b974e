//! Records in an `SQLite` database: one row each, for others to look at.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Row, params};
use serde_json::{Map, Value, json};

use super::{Change, ChangeKind, Record, Store, Stored};
use crate::error::Error;
use crate::record::{VERSION, instant, unsupported};

/// Records in an `SQLite` database, for one scheduler at a time. Every transaction is flushed to disk.
///
/// While a scheduler is active it has the database for itself. The table `kron_tasks` has a row for each
/// task, with instants in RFC 3339.
///
/// ```no_run
/// use kron_scheduler::{Scheduler, store::SqliteStore};
///
/// let scheduler = Scheduler::new(SqliteStore::new("/var/lib/shop/schedule.db"));
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    connection: Connection,
    identifier: Arc<str>,
}

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS kron_tasks (
        id INTEGER PRIMARY KEY,
        name, cron_expression, retry_delay_ms, registered_at,
        last_attempt_at, last_success_at, last_failure_at, pending_retry_until,
        running_identifier, running_since
    )";

const COLUMNS: &str = "name, cron_expression, retry_delay_ms, registered_at, last_attempt_at, last_success_at, \
    last_failure_at, pending_retry_until, running_identifier, running_since";

impl SqliteStore {
    /// A store in that database. File and table are made when a scheduler is initialized.
    pub fn new(path: impl Into<PathBuf>) -> SqliteStore {
        SqliteStore { path: path.into(), opened: None }
    }

    /// Where the database is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, error: rusqlite::Error) -> Error {
        let place = self.path.display().to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::locked(&place),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Error::corrupted(&place, &error).because(error)
            }
            _ => Error::store(format!("Could not use {place}"), error),
        }
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.path)?;
        // The lock is taken with the first write and kept until the connection is closed.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")?;
        Ok(connection)
    }

    fn transact(
        &mut self,
        work: impl FnOnce(&rusqlite::Transaction<'_>, &mut Arc<str>) -> rusqlite::Result<()>,
    ) -> Result<(), Error> {
        let Some(Opened { connection, identifier }) = &mut self.opened else {
            return Err(Error::store(
                format!("Could not use {}", self.path.display()),
                std::io::Error::other("it is not open"),
            ));
        };
        let run = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            work(&transaction, identifier)?;
            transaction.commit()
        };
        run(connection).map_err(|error| self.failed(error))
    }
}

impl Store for SqliteStore {
    fn open(&mut self) -> Result<Vec<Stored>, Error> {
        if self.opened.is_none() {
            let connection = self.connect().map_err(|error| self.failed(error))?;
            self.opened = Some(Opened { connection, identifier: "".into() });
        }
        let Some(opened) = &self.opened else { return Ok(Vec::new()) };
        let version = opened.connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
        match version.map(i64::unsigned_abs) {
            Ok(0) => return Ok(Vec::new()),
            Ok(VERSION) => {}
            Ok(found) => return Err(unsupported(found)),
            Err(error) => return Err(self.failed(error)),
        }
        let read = || {
            let mut rows =
                opened.connection.prepare(&format!("SELECT {COLUMNS} FROM kron_tasks ORDER BY id"))?;
            let tasks = rows.query_map([], |row| Ok(Stored::from_json(to_json(row)?)))?;
            tasks.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.failed(error))
    }

    fn replace(&mut self, identifier: &Arc<str>, records: &[&Record]) -> Result<(), Error> {
        self.transact(|transaction, present| {
            transaction.execute_batch(SCHEMA)?;
            transaction.execute("DELETE FROM kron_tasks", [])?;
            transaction.pragma_update(None, "user_version", VERSION.cast_signed())?;
            for (at, record) in records.iter().enumerate() {
                put(transaction, at as u64, record)?;
            }
            *present = Arc::clone(identifier);
            Ok(())
        })
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Error> {
        self.transact(|transaction, identifier| {
            let mut started = transaction.prepare_cached(
                "UPDATE kron_tasks SET last_attempt_at = ?2, pending_retry_until = NULL, running_identifier = ?3, \
                 running_since = ?2 WHERE id = ?1",
            )?;
            let mut succeeded = transaction.prepare_cached(
                "UPDATE kron_tasks SET last_success_at = ?2, running_identifier = NULL, running_since = NULL \
                 WHERE id = ?1",
            )?;
            let mut failed = transaction.prepare_cached(
                "UPDATE kron_tasks SET last_failure_at = ?2, pending_retry_until = ?3, running_identifier = NULL, \
                 running_since = NULL WHERE id = ?1",
            )?;
            // Those that start together share an instant, so it is written out once.
            let mut known: Option<(Timestamp, String)> = None;
            let mut text = |at: Timestamp| match &known {
                Some((same, text)) if *same == at => text.clone(),
                _ => known.insert((at, instant(at))).1.clone(),
            };
            for Change { task, kind } in changes {
                match kind {
                    ChangeKind::Started { at } => started.execute(params![task, text(*at), &**identifier])?,
                    ChangeKind::Succeeded { at } => succeeded.execute(params![task, text(*at)])?,
                    ChangeKind::Failed { at, retry_at } => {
                        failed.execute(params![task, text(*at), instant(*retry_at)])?
                    }
                    ChangeKind::Put(record) => {
                        put(transaction, u64::from(*task), record)?;
                        1
                    }
                };
            }
            Ok(())
        })
    }

    fn close(&mut self) {
        self.opened = None;
    }
}

fn put(connection: &Connection, id: u64, record: &Record) -> rusqlite::Result<()> {
    let at = |at: Option<Timestamp>| at.map(instant);
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO kron_tasks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    insert.execute(params![
        id.cast_signed(),
        &*record.name,
        &*record.cron_expression,
        record.retry_delay_ms.cast_signed(),
        instant(record.registered_at),
        at(record.last_attempt_at),
        at(record.last_success_at),
        at(record.last_failure_at),
        at(record.pending_retry_until),
        record.running.as_ref().map(|running| running.scheduler_identifier.to_string()),
        at(record.running.as_ref().map(|running| running.started_at)),
    ])?;
    Ok(())
}

/// A row as the JSON of a record, whatever is in it: reading that is where mistakes are named.
fn to_json(row: &Row<'_>) -> rusqlite::Result<Value> {
    let fields = [
        "name",
        "cronExpression",
        "retryDelayMs",
        "registeredAt",
        "lastAttemptAt",
        "lastSuccessAt",
        "lastFailureAt",
        "pendingRetryUntil",
    ];
    let mut object = Map::new();
    let value = |at: usize| {
        Ok::<_, rusqlite::Error>(match row.get_ref(at)? {
            ValueRef::Null => None,
            ValueRef::Integer(number) => Some(json!(number)),
            ValueRef::Real(number) => Some(json!(number)),
            ValueRef::Text(text) => Some(json!(String::from_utf8_lossy(text))),
            ValueRef::Blob(bytes) => Some(json!(bytes)),
        })
    };
    for (at, field) in fields.into_iter().enumerate() {
        if let Some(value) = value(at)? {
            object.insert(field.to_owned(), value);
        }
    }
    let (identifier, since) = (value(8)?, value(9)?);
    if identifier.is_some() || since.is_some() {
        let mut running = Map::new();
        identifier.map(|identifier| running.insert("schedulerIdentifier".into(), identifier));
        since.map(|since| running.insert("startedAt".into(), since));
        object.insert("running".into(), Value::Object(running));
    }
    Ok(Value::Object(object))
}
