//! A directory on a real disk, opened once and never looked up again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::files::{Contents, FILE_BYTES_MAX, Files};

/// From so many files on, flushing the whole file system once is cheaper than flushing each of them.
const SYNC_ALL_MIN: usize = 8;

/// The file that the daemon holds a lock on.
const LOCK: &str = "lock";

/// A directory that nobody but its owner can read or write.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    /// Files that were created and are not flushed. The error of a flush is told to who has the file open.
    open: RefCell<BTreeMap<String, File>>,
}

/// The lock on a state directory. It lasts as long as this value, and no child inherits it.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Directory {
    /// Opens a directory for state, and creates it if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, is a symbolic link, belongs to somebody else, or lets others in.
    pub fn open(path: &Path) -> Result<Directory, DirectoryError> {
        let error = |why: Why| DirectoryError { path: path.to_owned(), why };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|io| error(Why::Io(io)))?;
        }
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(error(Why::Io(errno.into()))),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(error(Why::NotADirectory)),
            Err(errno) => return Err(error(Why::Io(errno.into()))),
        };
        let stat = rustix::fs::fstat(&handle).map_err(|errno| error(Why::Io(errno.into())))?;
        let mode = Mode::from_raw_mode(stat.st_mode);
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(error(Why::Owner(stat.st_uid)));
        }
        if mode.intersects(Mode::RWXG | Mode::RWXO) {
            return Err(error(Why::Mode(mode.as_raw_mode() & 0o777)));
        }
        Ok(Directory::at(handle))
    }

    fn at(handle: OwnedFd) -> Directory {
        Directory { handle, open: RefCell::default() }
    }

    /// Takes the lock that only one daemon can have.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if another process has it, and whatever else stands in the way.
    pub fn lock(&self) -> io::Result<Lock> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.handle, LOCK, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut file = File::from(file);
        file.set_len(0)?;
        writeln!(file, "{}", rustix::process::getpid())?;
        Ok(Lock { _file: file })
    }

    /// Who has the lock, as they said.
    #[must_use]
    pub fn lock_holder(&self) -> Option<u32> {
        let holder = self.read(LOCK).ok()?;
        String::from_utf8_lossy(&holder.bytes).trim().parse().ok()
    }

    /// Opens a directory in this one, and creates it if it is not there.
    ///
    /// # Errors
    ///
    /// If there is none that can be opened.
    pub fn inner(&self, name: &str) -> io::Result<Directory> {
        match rustix::fs::mkdirat(&self.handle, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        Ok(Directory::at(handle))
    }

    /// Opens a file to write at its end, and creates it if it is not there.
    ///
    /// # Errors
    ///
    /// If there is none that can be opened.
    pub fn append(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Opens a regular file to read it, whatever its size.
    ///
    /// # Errors
    ///
    /// If there is none that can be opened.
    pub fn reader(&self, name: &str) -> io::Result<File> {
        // Opening a FIFO would wait for somebody to write to it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        if kind != FileType::RegularFile {
            return Err(io::Error::new(ErrorKind::InvalidData, "it is not a regular file"));
        }
        Ok(file.into())
    }
}

impl Directory {
    /// Writes a file that is open, and keeps it open until it is flushed.
    fn fill(&self, name: &str, mut file: File, bytes: &[u8], modified: Timestamp) -> io::Result<()> {
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)?;
        let time = Timespec { tv_sec: modified.as_second(), tv_nsec: modified.subsec_nanosecond().into() };
        rustix::fs::futimens(&file, &Timestamps { last_access: time, last_modification: time })?;
        self.open.borrow_mut().insert(name.to_owned(), file);
        Ok(())
    }
}

impl Files for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            // Whatever is not UTF-8 is no file of krond's.
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        names.retain(|name| name != "." && name != "..");
        names.sort();
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Contents> {
        let file = self.reader(name)?;
        let stat = rustix::fs::fstat(&file)?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > FILE_BYTES_MAX {
            let message = format!("it has more than {FILE_BYTES_MAX} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, message));
        }
        let fraction = i32::try_from(stat.st_mtime_nsec).unwrap_or_default();
        let modified = Timestamp::new(stat.st_mtime, fraction).unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(Contents { bytes, modified })
    }

    fn create(&self, name: &str, bytes: &[u8], modified: Timestamp) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?;
        self.fill(name, file.into(), bytes, modified)
    }

    fn overwrite(&self, name: &str, bytes: &[u8], modified: Timestamp) -> io::Result<bool> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_regular || stat.st_nlink != 1 {
            return Ok(false);
        }
        self.fill(name, file.into(), bytes, modified)?;
        Ok(true)
    }

    fn sync(&self, names: &[String]) -> io::Result<()> {
        let mut open = self.open.borrow_mut();
        let files: Vec<File> = names.iter().filter_map(|name| open.remove(name)).collect();
        if files.len() >= SYNC_ALL_MIN {
            rustix::fs::syncfs(&self.handle)?;
            return Ok(());
        }
        files.iter().try_for_each(File::sync_all)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    fn exchange(&self, one: &str, other: &str) -> io::Result<bool> {
        match rustix::fs::renameat_with(&self.handle, one, &self.handle, other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.handle, from, &self.handle, to, AtFlags::empty())?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.open.borrow_mut().remove(name);
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.handle.as_fd())?)
    }
}

/// Why a directory cannot hold state.
#[derive(Debug)]
pub struct DirectoryError {
    path: PathBuf,
    why: Why,
}

impl DirectoryError {
    /// Whether the system could not open it, rather than that it may not be used.
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(self.why, Why::Io(_))
    }
}

#[derive(Debug)]
enum Why {
    Io(io::Error),
    Mode(u32),
    NotADirectory,
    Owner(u32),
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.why {
            Why::Io(error) => write!(f, "could not open the state directory {path}: {error}"),
            Why::Mode(mode) => write!(
                f,
                "expected {path} to be closed to all but its owner (0700), but its mode is {mode:04o}: \
                 run `chmod 700 {path}`"
            ),
            Why::NotADirectory => write!(f, "expected {path} to be a directory, and no symbolic link"),
            Why::Owner(owner) => write!(
                f,
                "expected {path} to belong to the user that runs krond, but it belongs to user {owner}"
            ),
        }
    }
}

impl std::error::Error for DirectoryError {}
