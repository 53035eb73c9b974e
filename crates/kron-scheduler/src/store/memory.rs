//! Records in memory: for tests, and for programs that keep them somewhere themselves.

use std::sync::Arc;

use serde_json::Value;

use super::{Change, ChangeKind, Record, Store, Stored};
use crate::error::Error;
use crate::record;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Records in memory. Clones share them, so that a clone can look at what a scheduler has stored, and a new scheduler
/// can go on where another was dropped.
///
/// ```
/// use kron_scheduler::store::MemoryStore;
/// use serde_json::json;
///
/// // From a document, and back to one.
/// let document = json!({ "version": 1, "tasks": [] });
/// let store = MemoryStore::from_json(document.clone())?;
/// assert_eq!(store.to_json(), document);
/// # Ok::<(), kron_scheduler::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
    /// Whether this clone is the one that has it open.
    is_open: bool,
}

#[derive(Debug, Default)]
struct Shared {
    tasks: Vec<Stored>,
    identifier: Option<Arc<str>>,
    is_open: bool,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// A store with the records of a document, `{"version": 1, "tasks": […]}`.
    ///
    /// # Errors
    ///
    /// If it is no such document. Single records are judged when a scheduler is initialized with them.
    pub fn from_json(document: Value) -> Result<MemoryStore, Error> {
        let store = MemoryStore::new();
        store.shared().tasks = record::document_from_json(document)?;
        Ok(store)
    }

    /// Everything as a document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        record::document_to_json(&self.shared().tasks)
    }

    /// The record of a name, if there is one that can be read.
    #[must_use]
    pub fn record(&self, name: &str) -> Option<Record> {
        self.shared().tasks.iter().find_map(|task| match task {
            Stored::Record(record) if *record.name == *name => Some(record.clone()),
            _ => None,
        })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for MemoryStore {
    fn clone(&self) -> MemoryStore {
        MemoryStore { shared: Arc::clone(&self.shared), is_open: false }
    }
}

impl Store for MemoryStore {
    fn open(&mut self) -> Result<Vec<Stored>, Error> {
        let mut shared = self.shared();
        if shared.is_open && !self.is_open {
            return Err(Error::locked("the memory store"));
        }
        shared.is_open = true;
        let tasks = shared.tasks.clone();
        drop(shared);
        self.is_open = true;
        Ok(tasks)
    }

    fn replace(&mut self, identifier: &Arc<str>, records: &[&Record]) -> Result<(), Error> {
        let mut shared = self.shared();
        shared.tasks = records.iter().map(|record| Stored::Record((*record).clone())).collect();
        shared.identifier = Some(Arc::clone(identifier));
        Ok(())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Error> {
        let mut shared = self.shared();
        let identifier = shared.identifier.clone().unwrap_or_else(|| "".into());
        for Change { task, kind } in changes {
            match (shared.tasks.get_mut(*task as usize), kind) {
                (Some(Stored::Record(record)), kind) => record.apply(kind, &identifier),
                (Some(raw), ChangeKind::Put(record)) => *raw = Stored::Record((**record).clone()),
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        if self.is_open {
            self.shared().is_open = false;
            self.is_open = false;
        }
    }

    fn blocks(&self) -> bool {
        false
    }
}

/// A scheduler that is dropped lets go of its store, as a process does that dies.
impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.close();
    }
}
