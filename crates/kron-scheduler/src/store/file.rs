//! Records in one file: a snapshot, and a line for every transaction since.
//!
//! ```text
//! 5f1d0c3a {"version":1,"identifier":"3b…","tasks":2}                 how many records follow
//! 9e33b1f0 {"name":"backup","cronExpression":"0 3 * * *",…}           the snapshot, a record a line
//! 02c7aa41 {"name":"report",…}
//! c1d2e3f4 [["started",1763251200000,[[0,1]]]]                        a transaction: 0 to 1 start
//! 77aa0b1c [["succeeded",1763251201044,[0]],["failed",[[1,1763251202000,1763251502000]]]]
//! ```
//!
//! Every line begins with the CRC-32 of the rest. A transaction is one line, appended and flushed with one
//! `fdatasync`, so it is there as a whole or not at all: what a crash leaves of the last line is passed over. A snapshot
//! is written beside the file, flushed, and renamed over it. A lock file beside it keeps others away. Until a snapshot is
//! known to be durable, the file before it has a second name, by which it can be put back.

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

    fn write_snapshot(&self, text: &str) -> Result<File, Error> {
        let temporary = self.beside(".tmp");
        let write = || {
            trip("create")?;
            let mut file = File::create(&temporary)?;
            trip("write")?;
            file.write_all(text.as_bytes())?;
            trip("sync")?;
            file.sync_all()?;
            // Opened now, so that after the rename there is only one thing that can fail.
            let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directory = File::open(parent.unwrap_or(Path::new(".")))?;
            let before = self.keep()?;
            trip("rename")?;
            std::fs::rename(&temporary, &self.path)?;
            trip("sync directory")
                .and_then(|()| directory.sync_all())
                .inspect_err(|_| self.put_back(&before, &directory))?;
            if let Before::Kept(old) = &before {
                std::fs::remove_file(old).ok();
            }
            Ok(file)
        };
        write().map_err(|error| failed("write", &self.path, error))
    }

    /// Gives the file a second name, under which it outlives the next rename.
    fn keep(&self) -> io::Result<Before> {
        let old = self.beside(".old");
        match std::fs::remove_file(&old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match std::fs::hard_link(&self.path, &old) {
            Ok(()) => Ok(Before::Kept(old)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Before::Nothing),
            // There are file systems without second names.
            Err(_) => Ok(Before::Lost),
        }
    }

    /// The file is again what it was. This takes no space, and happens at once or not at all.
    fn put_back(&self, before: &Before, directory: &File) {
        let put_back = trip("put back").and_then(|()| match before {
            Before::Kept(old) => std::fs::rename(old, &self.path),
            Before::Nothing => std::fs::remove_file(&self.path),
            Before::Lost => Err(io::ErrorKind::Unsupported.into()),
        });
        match put_back {
            Ok(()) => directory.sync_all().unwrap_or_default(),
            Err(error) => {
                let path = self.path.display();
                tracing::error!(%path, %error, "what was written may or may not last, and could not be taken back");
            }
        }
    }
}

/// What was there before a snapshot.
enum Before {
    Nothing,
    /// A file, which has this name as well.
    Kept(PathBuf),
    /// A file of which nothing is left.
    Lost,
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
        self.opened = Some(Opened { _lock: lock, log: None, snapshot_bytes: 0, log_bytes: 0 });
        Ok(tasks)
    }

    fn replace(&mut self, identifier: &Arc<str>, records: &[&Record]) -> Result<(), Error> {
        let text = snapshot(identifier, records);
        let Some(opened) = &mut self.opened else { return Err(not_open(&self.path)) };
        opened.log = None;
        let log = self.write_snapshot(&text)?;
        let Some(opened) = &mut self.opened else { return Err(not_open(&self.path)) };
        opened.log = Some(log);
        opened.snapshot_bytes = text.len();
        opened.log_bytes = 0;
        Ok(())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Error> {
        let opened = self.opened.as_mut();
        let Some((opened, mut log)) = opened.and_then(|opened| opened.log.take().map(|log| (opened, log)))
        else {
            return Err(not_open(&self.path));
        };
        let line = line(&transaction(changes));
        let append = || {
            trip("append")?;
            log.write_all(line.as_bytes())?;
            trip("flush")?;
            log.sync_data()?;
            Ok(log)
        };
        opened.log = Some(append().map_err(|error| failed("write", &self.path, error))?);
        opened.log_bytes += line.len();
        Ok(())
    }

    fn wants_rewrite(&self) -> bool {
        let is_long = |opened: &Opened| opened.log_bytes > LOG_BYTES_MIN.max(2 * opened.snapshot_bytes);
        self.opened.as_ref().is_some_and(is_long)
    }

    fn close(&mut self) {
        self.opened = None;
    }
}

fn snapshot(identifier: &str, records: &[&Record]) -> String {
    let header = json!({ "version": VERSION, "identifier": identifier, "tasks": records.len() });
    let mut text = line(&header.to_string());
    text.reserve(records.len() * 200);
    for record in records {
        text.push_str(&line(&record.to_json().to_string()));
    }
    text
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
    let same = |a: &Change, b: &Change| match (&a.kind, &b.kind) {
        (ChangeKind::Started { at: a }, ChangeKind::Started { at: b })
        | (ChangeKind::Succeeded { at: a }, ChangeKind::Succeeded { at: b }) => a == b,
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    let mut text = String::from("[");
    for (nth, group) in changes.chunk_by(same).enumerate() {
        text.push_str(if nth == 0 { "[" } else { ",[" });
        match &group[0].kind {
            ChangeKind::Started { at } => write!(text, "\"started\",{},[", at.as_millisecond()),
            ChangeKind::Succeeded { at } => write!(text, "\"succeeded\",{},[", at.as_millisecond()),
            ChangeKind::Failed { .. } => write!(text, "\"failed\",["),
            ChangeKind::Put(_) => write!(text, "\"put\",["),
        }
        .ok();
        // Those whose numbers follow each other are written as the first and the last.
        let follows = |a: &Change, b: &Change| {
            let is_plain = matches!(a.kind, ChangeKind::Started { .. } | ChangeKind::Succeeded { .. });
            is_plain && a.task.checked_add(1) == Some(b.task)
        };
        for (nth, range) in group.chunk_by(follows).enumerate() {
            let Change { task, kind } = &range[0];
            text.push_str(if nth == 0 { "" } else { "," });
            match kind {
                ChangeKind::Failed { at, retry_at } => {
                    write!(text, "[{task},{},{}]", at.as_millisecond(), retry_at.as_millisecond())
                }
                ChangeKind::Put(record) => write!(text, "[{task},{}]", record.to_json()),
                _ if range.len() == 1 => write!(text, "{task}"),
                _ => write!(text, "[{task},{}]", range[range.len() - 1].task),
            }
            .ok();
        }
        text.push_str("]]");
    }
    text.push(']');
    text
}

/// The changes of a line about one of so many tasks.
fn changes_of(line: &Value, tasks: usize) -> Option<Vec<Change>> {
    let number = |value: &Value| {
        value.as_u64().filter(|task| *task < tasks as u64).and_then(|task| u32::try_from(task).ok())
    };
    let instant = |value: &Value| Timestamp::from_millisecond(value.as_i64()?).ok();
    let mut changes = Vec::new();
    for group in line.as_array()? {
        match group.as_array()?.as_slice() {
            [Value::String(kind), at, Value::Array(ranges)] => {
                let at = instant(at)?;
                let kind = match kind.as_str() {
                    "started" => ChangeKind::Started { at },
                    "succeeded" => ChangeKind::Succeeded { at },
                    _ => return None,
                };
                for range in ranges {
                    let (first, last) = match range.as_array().map(Vec::as_slice) {
                        None => (number(range)?, number(range)?),
                        Some([first, last]) => (number(first)?, number(last)?),
                        Some(_) => return None,
                    };
                    changes.extend((first..=last).map(|task| Change { task, kind: kind.clone() }));
                }
            }
            [Value::String(kind), Value::Array(entries)] => {
                for entry in entries {
                    let (task, kind) = match (kind.as_str(), entry.as_array()?.as_slice()) {
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
    let corrupted = |nth: usize, reason: &str| {
        let cause = Error::invalid_structure(&Value::Null, reason);
        Error::corrupted(&format!("{}, line {nth}", path.display()), reason).because(cause)
    };
    let mut end = 0;
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate().map(|(at, line)| {
        let begin = end;
        end += line.len();
        (at + 1, begin, line.strip_suffix(b"\n").and_then(checked))
    });
    let header =
        lines.next().and_then(|(.., text)| text).ok_or_else(|| corrupted(1, "there is no header"))?;
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
        let Some((nth, _, Some(text))) = lines.next() else {
            let reason = format!("expected {count} records, but found {} that are whole", tasks.len());
            return Err(corrupted(tasks.len() + 2, &reason));
        };
        let value = serde_json::from_str(text).map_err(|_| corrupted(nth, "a record is not JSON"))?;
        tasks.push(Stored::from_json(value));
    }
    for (nth, begin, text) in lines {
        let Some(text) = text else {
            if holds_transaction(&bytes[begin + 1..]) {
                // It was written later, and is whole: this was no crash in the middle of the last write.
                return Err(corrupted(nth, "the checksum is wrong"));
            }
            tracing::warn!(path = %path.display(), line = nth, "the last transaction was cut off, and is passed over");
            break;
        };
        let value: Value =
            serde_json::from_str(text).map_err(|_| corrupted(nth, "a transaction is not JSON"))?;
        let changes = changes_of(&value, tasks.len());
        for change in changes.ok_or_else(|| corrupted(nth, "a transaction is not one"))? {
            carry_out(&mut tasks[change.task as usize], &change.kind, &identifier);
        }
    }
    Ok(tasks)
}

/// Whether there is a transaction in these bytes that is whole, be it that the line break before it is not.
fn holds_transaction(bytes: &[u8]) -> bool {
    let begins = |line: &[u8], at: usize| {
        line[at..].get(8..10) == Some(b" [".as_slice()) && checked(&line[at..]).is_some()
    };
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    lines.any(|line| (0..line.len()).any(|at| begins(line, at)))
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
