//! What the store asks of a file system, and no more: the simulator answers the same questions.

use std::io;

use jiff::Timestamp;

/// The largest file there can be. Whoever writes more could not read it again.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// One directory of plain files. Every name is that of an entry, never a path.
pub trait Files {
    /// The names of all entries, in order.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Reads a whole file.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none, `InvalidData` if it is larger than [`FILE_BYTES_MAX`], and whatever else stands in
    /// the way.
    fn read(&self, name: &str) -> io::Result<Contents>;

    /// Creates a file that was not there, writes to it and sets its time of modification. Nothing of that is durable.
    ///
    /// # Errors
    ///
    /// If any of it fails. The file may be left behind.
    fn create(&self, name: &str, bytes: &[u8], modified: Timestamp) -> io::Result<()>;

    /// Writes a file anew, in its place, and sets its time of modification. Nothing of that is durable, and until it
    /// is, a power cut may leave the old content, the new, or some of each. `false` if the file has another name as
    /// well, under which somebody keeps what is in it: then it is left as it is.
    ///
    /// # Errors
    ///
    /// If any of it fails. Nobody knows what is in the file then.
    fn overwrite(&self, name: &str, bytes: &[u8], modified: Timestamp) -> io::Result<bool>;

    /// Makes what was written to these files durable, though not their names. An error is one of all of them,
    /// and it is final: the kernel drops what it could not write, so to ask again would be to be lied to.
    ///
    /// # Errors
    ///
    /// If anything of it is not durable.
    fn sync(&self, names: &[String]) -> io::Result<()>;

    /// Gives a file another name, in place of what had it.
    ///
    /// # Errors
    ///
    /// If it keeps its name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Gives each of two files the other's name, both at once. `false` if there is no second one, or if this file
    /// system cannot do it: then nothing has changed.
    ///
    /// # Errors
    ///
    /// If both keep their names.
    fn exchange(&self, one: &str, other: &str) -> io::Result<bool>;

    /// Gives a file a second name.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the name is taken, and whatever else stands in the way.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;

    /// Takes a name away.
    ///
    /// # Errors
    ///
    /// If the name stays.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names durable.
    ///
    /// # Errors
    ///
    /// If any of them is not.
    fn sync_directory(&self) -> io::Result<()>;
}

/// What is in a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Contents {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// When it was modified, or said to be.
    pub modified: Timestamp,
}
