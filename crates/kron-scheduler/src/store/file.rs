//! Records in one file: a snapshot, and a line for every transaction since.
//!
//! ```text
//! 5f1d0c3a {"version":1,"identifier":"3b…","tasks":2}                 how many records follow
//! 9e33b1f0 {"name":"backup","cronExpression":"0 3 * * *",…}           the snapshot, a record a line
//! 02c7aa41 {"name":"report",…}
//! c1d2e3f4 [["started",1763251200000,[0,1]]]                          a transaction: both start
//! 77aa0b1c [["succeeded",[[0,1763251201044]]],["failed",[[1,1763251202000,1763251502000]]]]
//! ```
//!
//! Every line begins with the CRC-32 of the rest. A transaction is one line, appended and flushed with one
//! `fdatasync`, so it is there as a whole or not at all: what a crash leaves of the last line is passed over. A snapshot
//! is written beside the file, flushed, and renamed over it. A lock file beside it keeps others away.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use super::{Change, ChangeKind, Record, Store, Stored};
use crate::error::Error;
use crate::record::{VERSION, unsupported};

/// Records in one file, for one scheduler at a time.
///
/// ```no_run
/// use kron_scheduler::{Scheduler, store::FileStore};
///
/// let scheduler = Scheduler::new(FileStore::new("/var/lib/shop/schedule.kron"));
/// ```
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    /// Holds the lock for as long as it is open.
    _lock: File,
    identifier: Arc<str>,
    /// What the file says, so that a new snapshot can be written at any time.
    tasks: Vec<Stored>,
    /// Where transactions go. `None` before the first snapshot, and after an error: nobody knows what a write that
    /// failed has left behind, so the next one is a snapshot.
    log: Option<File>,
    snapshot_bytes: usize,
    log_bytes: usize,
}

/// A log shorter than this is not worth a new snapshot.
const LOG_BYTES_MIN: usize = 4 << 20;

impl FileStore {
    /// A store in that file. It is made when a scheduler is initialized; its directory must exist.
    pub fn new(path: impl Into<PathBuf>) -> FileStore {
        FileStore { path: path.into(), opened: None }
    }

    /// Where the records are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    fn lock(&self) -> Result<File, Error> {
        let path = self.beside(".lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| failed("open", &path, error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::locked(&self.path.display().to_string())),
            Err(error) => Err(failed("lock", &path, error.into())),
        }
    }

    /// Writes a snapshot and goes on with it.
    fn snapshot(&mut self) -> Result<(), Error> {
        let Some(opened) = &self.opened else { return Err(not_open(&self.path)) };
        let text = opened.to_text();
        let written = self.write_snapshot(&text);
        let Some(opened) = &mut self.opened else { return Err(not_open(&self.path)) };
        opened.log = None;
        opened.log = Some(written?);
        opened.snapshot_bytes = text.len();
        opened.log_bytes = 0;
        Ok(())
    }

    fn write_snapshot(&self, text: &str) -> Result<File, Error> {
        let temporary = self.beside(".tmp");
        let write = || {
            trip("create")?;
            let mut file = File::create(&temporary)?;
            trip("write")?;
            file.write_all(text.as_bytes())?;
            trip("sync")?;
            file.sync_all()?;
            trip("rename")?;
            std::fs::rename(&temporary, &self.path)?;
            trip("sync directory")?;
            let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
            Ok(file)
        };
        write().map_err(|error| failed("write", &self.path, error))
    }
}

impl Store for FileStore {
    fn open(&mut self) -> Result<Vec<Stored>, Error> {
        let lock = match self.opened.take() {
            Some(opened) => opened._lock,
            None => self.lock()?,
        };
        let tasks = match std::fs::read(&self.path) {
            Ok(bytes) => read(&bytes, &self.path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed("read", &self.path, error)),
        };
        self.opened = Some(Opened {
            _lock: lock,
            identifier: "".into(),
            tasks: tasks.clone(),
            log: None,
            snapshot_bytes: 0,
            log_bytes: 0,
        });
        Ok(tasks)
    }

    fn replace(&mut self, identifier: &Arc<str>, records: &[&Record]) -> Result<(), Error> {
        let Some(opened) = &mut self.opened else { return Err(not_open(&self.path)) };
        let tasks = records.iter().map(|record| Stored::Record((*record).clone())).collect();
        let before = std::mem::replace(&mut opened.tasks, tasks);
        opened.identifier = Arc::clone(identifier);
        self.snapshot().inspect_err(|_| {
            // The error may have come after the rename. Then the old records go back, if anything goes at all.
            let Some(opened) = &mut self.opened else { return };
            opened.tasks = before;
            if !opened.tasks.is_empty() || self.path.exists() {
                self.snapshot().ok();
            }
        })
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Error> {
        let Some(opened) = &mut self.opened else { return Err(not_open(&self.path)) };
        let is_long = opened.log_bytes > LOG_BYTES_MIN.max(2 * opened.snapshot_bytes);
        let Some(log) = opened.log.as_mut().filter(|_| !is_long) else {
            opened.log = None;
            let before = opened.carry_out(changes);
            return self.snapshot().inspect_err(|_| {
                if let Some(opened) = &mut self.opened {
                    opened.undo(before);
                }
            });
        };
        let line = line(&transaction(changes));
        let mut append = || {
            trip("append")?;
            log.write_all(line.as_bytes())?;
            trip("flush")?;
            log.sync_data()
        };
        if let Err(error) = append() {
            opened.log = None;
            return Err(failed("write", &self.path, error));
        }
        opened.log_bytes += line.len();
        opened.carry_out(changes);
        Ok(())
    }

    fn close(&mut self) {
        self.opened = None;
    }
}

impl Opened {
    fn to_text(&self) -> String {
        let header =
            json!({ "version": VERSION, "identifier": &*self.identifier, "tasks": self.tasks.len() });
        let mut text = line(&header.to_string());
        text.reserve(self.tasks.len() * 200);
        for task in &self.tasks {
            text.push_str(&line(&task.to_json().to_string()));
        }
        text
    }

    /// Carries out changes, and says what their records were.
    fn carry_out(&mut self, changes: &[Change]) -> Vec<(u32, Stored)> {
        let mut before = Vec::new();
        for change in changes {
            if let Some(task) = self.tasks.get_mut(change.task as usize) {
                if self.log.is_none() {
                    before.push((change.task, task.clone()));
                }
                carry_out(task, &change.kind, &self.identifier);
            }
        }
        before
    }

    fn undo(&mut self, before: Vec<(u32, Stored)>) {
        for (task, stored) in before.into_iter().rev() {
            self.tasks[task as usize] = stored;
        }
    }
}

fn carry_out(task: &mut Stored, kind: &ChangeKind, identifier: &Arc<str>) {
    match (task, kind) {
        (Stored::Record(record), kind) => record.apply(kind, identifier),
        (raw, ChangeKind::Put(record)) => *raw = Stored::Record((**record).clone()),
        // A scheduler begins with a snapshot of records, so there is nothing else to change.
        _ => {}
    }
}

/// A line with its checksum.
fn line(text: &str) -> String {
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
}

/// The text of a line whose checksum is right.
fn checked(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?;
    let (sum, text) = line.split_at_checked(8)?;
    let text = text.strip_prefix(' ')?;
    (u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(text.as_bytes())).then_some(text)
}

/// Changes as one line: neighbours of a kind together, because those that start together share an instant.
fn transaction(changes: &[Change]) -> String {
    let mut text = String::with_capacity(16 + changes.len() * 8);
    let same = |a: &Change, b: &Change| match (&a.kind, &b.kind) {
        (ChangeKind::Started { at: a }, ChangeKind::Started { at: b }) => a == b,
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    text.push('[');
    for (nth, group) in changes.chunk_by(same).enumerate() {
        text.push_str(if nth == 0 { "[" } else { ",[" });
        let mut separator = match &group[0].kind {
            ChangeKind::Started { at } => {
                write!(text, "\"started\",{},", at.as_millisecond()).ok();
                "["
            }
            ChangeKind::Succeeded { .. } => "\"succeeded\",[",
            ChangeKind::Failed { .. } => "\"failed\",[",
            ChangeKind::Put(_) => "\"put\",[",
        };
        for Change { task, kind } in group {
            text.push_str(separator);
            separator = ",";
            match kind {
                ChangeKind::Started { .. } => write!(text, "{task}"),
                ChangeKind::Succeeded { at } => write!(text, "[{task},{}]", at.as_millisecond()),
                ChangeKind::Failed { at, retry_at } => {
                    write!(text, "[{task},{},{}]", at.as_millisecond(), retry_at.as_millisecond())
                }
                ChangeKind::Put(record) => write!(text, "[{task},{}]", record.to_json()),
            }
            .ok();
        }
        text.push_str("]]");
    }
    text.push(']');
    text
}

/// The changes of a line.
fn changes_of(line: &Value) -> Option<Vec<Change>> {
    let number = |value: &Value| value.as_u64().and_then(|task| u32::try_from(task).ok());
    let instant = |value: &Value| Timestamp::from_millisecond(value.as_i64()?).ok();
    let mut changes = Vec::new();
    for group in line.as_array()? {
        match group.as_array()?.as_slice() {
            [Value::String(kind), at, Value::Array(tasks)] if kind == "started" => {
                let at = instant(at)?;
                for task in tasks {
                    changes.push(Change { task: number(task)?, kind: ChangeKind::Started { at } });
                }
            }
            [Value::String(kind), Value::Array(entries)] => {
                for entry in entries {
                    let (task, kind) = match (kind.as_str(), entry.as_array()?.as_slice()) {
                        ("succeeded", [task, at]) => (task, ChangeKind::Succeeded { at: instant(at)? }),
                        ("failed", [task, at, retry]) => {
                            (task, ChangeKind::Failed { at: instant(at)?, retry_at: instant(retry)? })
                        }
                        ("put", [task, record]) => {
                            (task, ChangeKind::Put(Box::new(Record::from_json(record).ok()?)))
                        }
                        _ => return None,
                    };
                    changes.push(Change { task: number(task)?, kind });
                }
            }
            _ => return None,
        }
    }
    Some(changes)
}

/// Reads a file: its snapshot must be whole; of the transactions after it, the last may be torn.
fn read(bytes: &[u8], path: &Path) -> Result<Vec<Stored>, Error> {
    let corrupted =
        |nth: usize, reason: &str| Error::corrupted(&format!("{}, line {nth}", path.display()), reason);
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate().map(|(at, line)| {
        let text = line.strip_suffix(b"\n").and_then(checked);
        (at + 1, text)
    });
    let header = lines.next().and_then(|(_, text)| text).ok_or_else(|| corrupted(1, "there is no header"))?;
    let header: Value = serde_json::from_str(header).map_err(|_| corrupted(1, "the header is not JSON"))?;
    match header["version"].as_u64() {
        Some(VERSION) => {}
        Some(found) => return Err(unsupported(found)),
        None => return Err(Error::invalid_type("version", &header["version"], "integer")),
    }
    let (Some(identifier), Some(count)) = (header["identifier"].as_str(), header["tasks"].as_u64()) else {
        return Err(corrupted(1, "the header is not one"));
    };
    let identifier: Arc<str> = identifier.into();
    let mut tasks = Vec::new();
    for _ in 0..count {
        let Some((nth, Some(text))) = lines.next() else {
            let reason = format!("expected {count} records, but found {} that are whole", tasks.len());
            return Err(corrupted(tasks.len() + 2, &reason));
        };
        let value = serde_json::from_str(text).map_err(|_| corrupted(nth, "a record is not JSON"))?;
        tasks.push(Stored::from_json(value));
    }
    let mut torn = None;
    for (nth, text) in lines {
        match (text, torn) {
            (None, None) => torn = Some(nth),
            (None, Some(_)) => {}
            // What comes after was written later: this was no crash in the middle of the last write.
            (Some(_), Some(torn)) => return Err(corrupted(torn, "the checksum is wrong")),
            (Some(text), None) => {
                let value: Value =
                    serde_json::from_str(text).map_err(|_| corrupted(nth, "a transaction is not JSON"))?;
                let changes = changes_of(&value).ok_or_else(|| corrupted(nth, "a transaction is not one"))?;
                for change in changes {
                    let task = tasks.get_mut(change.task as usize);
                    let task = task.ok_or_else(|| corrupted(nth, "a transaction names no record"))?;
                    carry_out(task, &change.kind, &identifier);
                }
            }
        }
    }
    if let Some(line) = torn {
        tracing::warn!(path = %path.display(), line, "the last transaction was cut off, and is passed over");
    }
    Ok(tasks)
}

fn failed(what: &str, path: &Path, error: io::Error) -> Error {
    Error::store(format!("Could not {what} {}", path.display()), error)
}

fn not_open(path: &Path) -> Error {
    Error::store(format!("Could not write {}", path.display()), io::Error::other("it is not open"))
}

/// Where tests make a step fail.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "in tests it may fail")]
fn trip(_: &str) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use tests::trip;

#[cfg(test)]
mod tests;
