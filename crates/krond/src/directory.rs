//! A directory on a real disk, opened once and never looked up again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    Advice, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps,
};
use rustix::io::Errno;

use crate::children;
use crate::files::{Contents, FILE_BYTES_MAX, Files};
use crate::process::BootId;

/// From so many files on, flushing the whole file system once is cheaper than flushing each of them.
const SYNC_ALL_MIN: usize = 8;

/// How many bytes of everybody's may not be on a disk yet for that: they are waited for as well, and a backup leaves gigabytes. A slow
/// disk takes 200 ms for so many.
const UNWRITTEN_MAX: u64 = 16 << 20;

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

/// Who has a lock.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// The boot that it lives in, if it said so.
    pub boot: Option<BootId>,
    /// The name of its host; empty if it did not say.
    pub host: String,
}

impl Holder {
    fn own() -> Holder {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Holder { pid: std::process::id(), boot: children::boot_id().ok(), host: host.trim().to_owned() }
    }
}

/// `pid 7 on web1`, and whether its number means anything here.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)?;
        if !self.host.is_empty() {
            write!(f, " on {}", self.host)?;
        }
        if self.boot.is_some() && self.boot != Holder::own().boot {
            f.write_str(", which is another machine")?;
        }
        Ok(())
    }
}

/// The name of a network file system. A lock there may not keep others out, and what is flushed may not be: two
/// daemons on two machines would run everything twice.
fn network(magic: rustix::fs::FsWord) -> Option<&'static str> {
    // See `statfs(2)`. Only the lower half of the number counts: some systems extend its sign.
    match u32::try_from(magic & 0xffff_ffff).ok()? {
        0x6969 => Some("NFS"),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => Some("SMB"),
        0x0102_1997 => Some("9P"),
        0x00c3_6400 => Some("Ceph"),
        0x0bd0_0bd0 => Some("Lustre"),
        0x5346_414f | 0x6b41_4653 => Some("AFS"),
        0x7375_7245 => Some("Coda"),
        0x564c => Some("NCP"),
        0x7461_636f => Some("OCFS2"),
        0x0116_1970 => Some("GFS2"),
        _ => None,
    }
}

/// Whether so many files are flushed sooner with everything else on the file system than one by one.
fn is_cheap_together(files: usize, unwritten: impl FnOnce() -> Option<u64>) -> bool {
    files >= SYNC_ALL_MIN && unwritten().is_some_and(|bytes| bytes <= UNWRITTEN_MAX)
}

/// How many bytes that somebody has written are not on a disk yet; `None` if the kernel does not say.
fn unwritten() -> Option<u64> {
    unwritten_of(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn unwritten_of(meminfo: &str) -> Option<u64> {
    let kilobytes = |name: &str| {
        let said = meminfo.lines().find_map(|line| line.strip_prefix(name));
        said?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some(1024 * (kilobytes("Dirty:")? + kilobytes("Writeback:")?))
}

impl Directory {
    /// Opens a directory for state, and creates it if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, is a symbolic link, belongs to somebody else, lets others in, or is on a network file
    /// system.
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
        let system = rustix::fs::fstatfs(&handle).map_err(|errno| error(Why::Io(errno.into())))?;
        if let Some(name) = network(system.f_type) {
            return Err(error(Why::Network(name)));
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
        let own = Holder::own();
        let boot = own.boot.map(|boot| boot.to_string()).unwrap_or_default();
        write!(file, "{}\n{boot}\n{}\n", own.pid, own.host)?;
        Ok(Lock { _file: file })
    }

    /// Who has the lock, as they said.
    #[must_use]
    pub fn lock_holder(&self) -> Option<Holder> {
        let said = self.read(LOCK).ok()?.bytes;
        let said = String::from_utf8_lossy(&said);
        let mut lines = said.lines();
        let pid = lines.next()?.parse().ok()?;
        let boot = lines.next().and_then(|boot| boot.parse().ok());
        Some(Holder { pid, boot, host: lines.next().unwrap_or_default().to_owned() })
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
        if is_cheap_together(files.len(), unwritten) {
            rustix::fs::syncfs(&self.handle)?;
            return Ok(());
        }
        // All are on their way before one is waited for. It is a hint: whether they are on the disk, only a flush tells.
        for file in files.iter().filter(|_| files.len() > 1) {
            let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
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
    Network(&'static str),
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
            Why::Network(name) => write!(
                f,
                "expected {path} to be on a disk of this machine, but it is on {name}, where a lock and a flush may \
                 not hold: name another --state-dir"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_lock_says_who_it_is() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(&place.path().join("state")).unwrap();
        assert_eq!(directory.lock_holder(), None);
        let _lock = directory.lock().unwrap();
        let holder = directory.lock_holder().unwrap();
        assert_eq!(holder, Holder::own());
        assert_eq!(holder.to_string(), format!("pid {} on {}", std::process::id(), holder.host));
        let other = Holder { boot: Some(BootId::new(1)), ..holder };
        assert!(other.to_string().ends_with(", which is another machine"), "{other}");
        // A lock of an older krond has nothing but a number.
        std::fs::write(place.path().join("state/lock"), "77\n").unwrap();
        assert_eq!(directory.lock_holder().unwrap().to_string(), "pid 77");
    }

    #[test]
    fn a_wave_waits_for_nobody_elses_gigabytes() {
        let meminfo = |dirty: u64| {
            format!("MemFree: 7 kB\nDirty: {dirty} kB\nWriteback:     84 kB\nWritebackTmp: 5 kB\n")
        };
        assert_eq!(unwritten_of(&meminfo(16)), Some(100 * 1024));
        assert_eq!(unwritten_of("Dirty: many kB\nWriteback: 0 kB\n"), None);
        assert!(unwritten().is_some());
        let is_cheap = |files, dirty| is_cheap_together(files, || unwritten_of(&meminfo(dirty)));
        assert!(is_cheap(256, 1_000) && is_cheap(SYNC_ALL_MIN, 1_000));
        assert!(!is_cheap(256, 2_000_000), "a backup");
        assert!(!is_cheap(SYNC_ALL_MIN - 1, 0), "few are cheaper one by one");
        assert!(!is_cheap_together(256, || None), "nobody knows");
    }

    #[test]
    fn disks_of_this_machine_are_no_network() {
        // ext4, xfs, btrfs, tmpfs, zfs, overlay, f2fs, FUSE
        for magic in [
            0xef53,
            0x5846_5342,
            0x9123_683e,
            0x0102_1994,
            0x2fc1_2fc1,
            0x794c_7630,
            0xf2f5_2010,
            0x6573_5546,
        ] {
            assert_eq!(network(magic), None, "{magic:x}");
        }
        assert_eq!(network(0x6969), Some("NFS"));
    }
}
