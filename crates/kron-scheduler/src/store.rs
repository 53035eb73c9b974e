//! Where records are kept, behind one trait whose every verb is a whole transaction.
//!
//! | store | for |
//! | --- | --- |
//! | [`FileStore`] | one file, nothing else needed; the quickest that survives a crash |
//! | `SqliteStore` (feature `sqlite`) | a database that others can look into |
//! | [`MemoryStore`] | tests, and programs that keep the state somewhere themselves |
//!
//! A store of your own implements [`Store`], and shows with `testing::conformance` that it is one.

mod file;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::fmt;
use std::sync::Arc;

pub use file::FileStore;
pub use memory::MemoryStore;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

use crate::error::Error;
pub use crate::record::{Change, ChangeKind, Record, RunningMark, Stored};

/// A place for the records of one scheduler.
///
/// Every verb does all of what it is asked, durably, or nothing that anyone could see. The scheduler calls them one at a
/// time, from a thread where blocking is allowed. After an error of `apply` it gives the store everything again, with
/// `replace`, because nobody knows what a write that failed has left behind.
pub trait Store: fmt::Debug + Send + 'static {
    /// Takes the store for one scheduler alone, and reads everything. A store that is open already is read again.
    ///
    /// # Errors
    ///
    /// [`Error::locked`] if another scheduler has it; or whatever keeps it from being read. What cannot be read as a
    /// record is no error here.
    fn open(&mut self) -> Result<Vec<Stored>, Error>;

    /// Makes these the records, all of them. `identifier` is the one that marks carry from now on, and changes name
    /// records by their position in this list.
    ///
    /// # Errors
    ///
    /// If they could not be made durable. Then the records are what they were.
    fn replace(&mut self, identifier: &Arc<str>, records: &[&Record]) -> Result<(), Error>;

    /// Carries out changes, in order.
    ///
    /// # Errors
    ///
    /// If they could not be made durable. Then none of them is.
    fn apply(&mut self, changes: &[Change]) -> Result<(), Error>;

    /// Whether it wants to be given everything again with `replace`, to be rid of what it has gathered. The scheduler
    /// does that when nothing is about to start.
    fn wants_rewrite(&self) -> bool {
        false
    }

    /// Lets others have the store.
    fn close(&mut self);

    /// Whether the verbs wait for a disk. If not, they are called where the scheduler is, without a thread.
    fn blocks(&self) -> bool {
        true
    }
}
