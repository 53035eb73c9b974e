//! What is remembered of a task, how it is written down, and what can change about it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::error::Error;

/// What is remembered of one task.
///
/// This is all that survives the process. There is no history in it that did not happen: a task that
/// has never run has no attempt, and [`registered_at`](Record::registered_at) says from when on
/// occurrences count.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// The task's name, which is its identity.
    pub name: Arc<str>,
    /// The cron expression, letter by letter as it was registered.
    pub cron_expression: Arc<str>,
    /// The retry delay in milliseconds.
    pub retry_delay_ms: u64,
    /// The beginning of the local minute in which the name first appeared. No occurrence before it counts.
    pub registered_at: Timestamp,
    /// When the last run was started.
    pub last_attempt_at: Option<Timestamp>,
    /// When a run last ended well. Failures leave it alone.
    pub last_success_at: Option<Timestamp>,
    /// When a run last failed.
    pub last_failure_at: Option<Timestamp>,
    /// When the task may be tried again, if its last run failed.
    pub pending_retry_until: Option<Timestamp>,
    /// Who is running it. Under any identifier but the present one, the run was cut off.
    pub running: Option<RunningMark>,
}

/// A run that was started and has not been seen to end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunningMark {
    /// The activation that started it.
    pub scheduler_identifier: Arc<str>,
    /// When.
    pub started_at: Timestamp,
}

/// One change of one record. Applying it again changes nothing more.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The position of the record in what was last given to [`Store::replace`](crate::store::Store::replace).
    pub task: u32,
    /// What happens to it.
    pub kind: ChangeKind,
}

/// What happens to a record.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeKind {
    /// A run begins: the attempt is recorded, a pending retry is over.
    Started {
        /// When.
        at: Timestamp,
    },
    /// The run ended well.
    Succeeded {
        /// When.
        at: Timestamp,
    },
    /// The run failed.
    Failed {
        /// When.
        at: Timestamp,
        /// When it may be tried again.
        retry_at: Timestamp,
    },
    /// The record is this, whatever it was.
    Put(Box<Record>),
}

impl Record {
    /// Carries out a change. `identifier` is the present activation's.
    pub fn apply(&mut self, kind: &ChangeKind, identifier: &Arc<str>) {
        match kind {
            ChangeKind::Started { at } => {
                self.last_attempt_at = Some(*at);
                self.pending_retry_until = None;
                self.running =
                    Some(RunningMark { scheduler_identifier: Arc::clone(identifier), started_at: *at });
            }
            ChangeKind::Succeeded { at } => {
                self.last_success_at = Some(*at);
                self.running = None;
            }
            ChangeKind::Failed { at, retry_at } => {
                self.last_failure_at = Some(*at);
                self.pending_retry_until = Some(*retry_at);
                self.running = None;
            }
            ChangeKind::Put(record) => self.clone_from(record),
        }
    }

    /// The record as JSON. Unset members are left out.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("name".into(), (*self.name).into());
        object.insert("cronExpression".into(), (*self.cron_expression).into());
        object.insert("retryDelayMs".into(), self.retry_delay_ms.into());
        object.insert("registeredAt".into(), instant(self.registered_at).into());
        let optional = [
            ("lastAttemptAt", self.last_attempt_at),
            ("lastSuccessAt", self.last_success_at),
            ("lastFailureAt", self.last_failure_at),
            ("pendingRetryUntil", self.pending_retry_until),
        ];
        for (field, at) in optional {
            if let Some(at) = at {
                object.insert(field.into(), instant(at).into());
            }
        }
        if let Some(running) = &self.running {
            object.insert(
                "running".into(),
                json!({
                    "schedulerIdentifier": &*running.scheduler_identifier,
                    "startedAt": instant(running.started_at),
                }),
            );
        }
        Value::Object(object)
    }

    /// Reads a record strictly: the first member that is not as it should be is the error.
    ///
    /// # Errors
    ///
    /// One of the specification's five, in the order name, expression, delay, timestamps, identifier.
    ///
    /// ```
    /// use kron_scheduler::store::Record;
    /// use serde_json::json;
    ///
    /// let error = Record::from_json(&json!({ "name": "backup", "cronExpression": 5 })).unwrap_err();
    /// assert_eq!(error.kind().name(), "TaskInvalidTypeError");
    /// assert_eq!(error.to_string(), "Invalid type for field 'cronExpression': expected string, got number");
    /// ```
    pub fn from_json(value: &Value) -> Result<Record, Error> {
        let Value::Object(object) = value else {
            return Err(Error::invalid_structure(value, "Task state must be an object"));
        };
        let name = required_text(object, "name")?;
        if name.is_empty() {
            return Err(Error::invalid_value("name", &object["name"], "must not be empty"));
        }
        let cron_expression = required_text(object, "cronExpression")?;
        let delay = object.get("retryDelayMs").ok_or_else(|| Error::missing_field("retryDelayMs"))?;
        let retry_delay_ms = delay
            .as_u64()
            .ok_or_else(|| Error::invalid_type("retryDelayMs", delay, "non-negative integer"))?;
        let registered_at =
            timestamp(object, "registeredAt")?.ok_or_else(|| Error::missing_field("registeredAt"))?;
        Ok(Record {
            name: name.into(),
            cron_expression: cron_expression.into(),
            retry_delay_ms,
            registered_at,
            last_attempt_at: timestamp(object, "lastAttemptAt")?,
            last_success_at: timestamp(object, "lastSuccessAt")?,
            last_failure_at: timestamp(object, "lastFailureAt")?,
            pending_retry_until: timestamp(object, "pendingRetryUntil")?,
            running: match object.get("running") {
                None => None,
                Some(Value::Object(running)) => Some(RunningMark {
                    scheduler_identifier: required_text(running, "schedulerIdentifier")?.into(),
                    started_at: timestamp(running, "startedAt")?
                        .ok_or_else(|| Error::missing_field("startedAt"))?,
                }),
                Some(other) => return Err(Error::invalid_type("running", other, "object")),
            },
        })
    }
}

/// A record as a store found it: one that can be read, or whatever is there in its place.
///
/// What cannot be read is kept until it is known whether a registration has its name: only then does it matter.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// A record.
    Record(Record),
    /// Something else.
    Raw(Value),
}

impl Stored {
    /// A record if the value is one, and else the value.
    #[must_use]
    pub fn from_json(value: Value) -> Stored {
        match Record::from_json(&value) {
            Ok(record) => Stored::Record(record),
            Err(_) => Stored::Raw(value),
        }
    }

    /// What is there, as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Stored::Record(record) => record.to_json(),
            Stored::Raw(value) => value.clone(),
        }
    }

    /// Its name, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Stored::Record(record) => Some(&record.name),
            Stored::Raw(value) => value.get("name").and_then(Value::as_str),
        }
    }
}

/// Reads a whole state document: `{"version": 1, "tasks": [...]}`.
///
/// # Errors
///
/// If it is no such document, or one of a later version. Single records are not judged here.
pub(crate) fn document_from_json(document: Value) -> Result<Vec<Stored>, Error> {
    let Value::Object(mut object) = document else {
        return Err(Error::invalid_structure(&document, "State must be an object"));
    };
    match object.get("version") {
        None => return Err(Error::missing_field("version")),
        Some(version) => match version.as_u64() {
            Some(VERSION) => {}
            Some(found) => return Err(unsupported(found)),
            None => return Err(Error::invalid_type("version", version, "integer")),
        },
    }
    match object.remove("tasks") {
        None => Ok(Vec::new()),
        Some(Value::Array(tasks)) => Ok(tasks.into_iter().map(Stored::from_json).collect()),
        Some(other) => Err(Error::invalid_structure(&other, "Tasks of the state must be an array")),
    }
}

pub(crate) fn document_to_json(tasks: &[Stored]) -> Value {
    json!({ "version": VERSION, "tasks": tasks.iter().map(Stored::to_json).collect::<Vec<_>>() })
}

/// The version of what is written. There has been no other.
pub(crate) const VERSION: u64 = 1;

pub(crate) fn unsupported(found: u64) -> Error {
    Error::new(
        crate::ErrorKind::UnsupportedVersion,
        format!("State version {found} is not supported: this scheduler reads version {VERSION}"),
        json!({ "found": found, "supported": VERSION }),
    )
}

/// As it is written: UTC, in milliseconds.
pub(crate) fn instant(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// The millisecond an instant lies in: no more of it is written down.
pub(crate) fn whole_millis(at: Timestamp) -> Timestamp {
    let down = i64::from(at.subsec_nanosecond().rem_euclid(1_000_000));
    at.checked_sub(SignedDuration::from_nanos(down)).unwrap_or(at)
}

fn required_text<'v>(object: &'v Map<String, Value>, field: &str) -> Result<&'v str, Error> {
    let value = object.get(field).ok_or_else(|| Error::missing_field(field))?;
    value.as_str().ok_or_else(|| Error::invalid_type(field, value, "string"))
}

fn timestamp(object: &Map<String, Value>, field: &str) -> Result<Option<Timestamp>, Error> {
    let Some(value) = object.get(field) else { return Ok(None) };
    let at = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    at.map(|at| Some(whole_millis(at))).ok_or_else(|| Error::invalid_type(field, value, "ISO 8601 timestamp"))
}
