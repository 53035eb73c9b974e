//! Files change at once or not at all, also when the power fails.
//!
//! A directory is opened once, and everything happens in what was opened: it cannot be exchanged for
//! another between the checks and the writing.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use krontab::Directory;
use krontab::security::{Finding, Opened, Trust};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::clock;
use super::exit::Failure;
use super::load::reason;

/// What becomes of a file that is already there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Existing {
    Keep,
    Replace,
    /// It is replaced if it is still the one that was looked at.
    ReplaceThis(Seen),
}

/// Which file it was, and when it last changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Seen {
    device: u64,
    inode: u64,
    bytes: i64,
    modified: i64,
    changed: (i64, i64),
}

impl Seen {
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the types differ between systems")]
    fn new(stat: &Stat) -> Seen {
        Seen {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            bytes: stat.st_size as i64,
            modified: stat.st_mtime as i64,
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}

/// A file as it lies there.
#[derive(Debug)]
pub(crate) struct There {
    /// How it was opened and what speaks against it. Nothing if it may not be read.
    pub(crate) opened: Option<Opened>,
    /// What is in it; of one that is too long, as much as tells that it is. Nothing if it is no file of
    /// text or may not be read.
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) seen: Option<Seen>,
}

/// Makes the directory and those above it, where there are none, and tells which. Only their owner can
/// write them.
pub(crate) fn make_directory(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let mut made: Vec<PathBuf> = path.ancestors().take_while(is_new).map(Path::to_owned).collect();
    made.reverse();
    let failed = |error| Failure::Write(format!("could not make `{}`: {}", path.display(), reason(&error)));
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(failed)?;
    Ok(made)
}

/// Refuses what krond would not trust.
pub(crate) fn check(findings: &[Finding]) -> Result<(), Failure> {
    match findings.iter().find(|finding| finding.is_error()) {
        None => Ok(()),
        Some(finding) => Err(Failure::Write(format!(
            "krond would refuse it: {} `{}`; {}",
            finding.message,
            finding.path.display(),
            finding.help
        ))),
    }
}

/// How long it is waited for another krontab that changes the directory: 10 seconds, though a change takes
/// milliseconds. But anybody who can read the directory can keep others waiting, so there is an end.
const LOCK_ATTEMPTS: u32 = 1_000;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Has the directory to itself, among all krontabs, as long as this is kept: between looking at a file and
/// replacing it nobody else replaces it. Editors do not know of it; what they change is noticed where that
/// can be.
#[derive(Debug)]
#[must_use]
pub(crate) struct Lock {
    /// Nothing where the file system has no locks.
    _held: Option<OwnedFd>,
}

/// Waits until no other krontab changes the directory.
pub(crate) fn lock(directory: &Directory) -> Result<Lock, Failure> {
    let handle = readable(directory).map_err(|error| unwritten(directory.path(), &error))?;
    for _ in 0..LOCK_ATTEMPTS {
        match rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock { _held: Some(handle) }),
            Err(Errno::WOULDBLOCK | Errno::INTR) => clock::pause(LOCK_PAUSE),
            Err(_) => return Ok(Lock { _held: None }),
        }
    }
    Err(Failure::Write(format!(
        "could not write `{}`: another krontab is at work there; try again",
        directory.path().display()
    )))
}

/// Looks at a file of a directory, if there is one. Nothing is followed or waited for.
pub(crate) fn look(directory: &Directory, name: &OsStr) -> Result<Option<There>, Failure> {
    let failed = |error| unwritten(&directory.path().join(name), &error);
    let opened = match directory.open_file(name) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Some(There { opened: None, bytes: None, seen: None }));
        }
        Err(error) => return Err(failed(error)),
    };
    // First when it changed, and then what is in it: a change between the two is noticed.
    let seen =
        opened.file.as_ref().map(rustix::fs::fstat).transpose().map_err(|errno| failed(errno.into()))?;
    let bytes = opened.file.as_ref().map(krontab::read).transpose().map_err(failed)?;
    Ok(Some(There { opened: Some(opened), bytes, seen: seen.as_ref().map(Seen::new) }))
}

/// Writes a file under a name of its own, makes it durable, and only then gives it its name.
pub(crate) fn write(
    directory: &Directory,
    name: &OsStr,
    bytes: &[u8],
    mode: u32,
    existing: Existing,
) -> Result<(), Failure> {
    let path = directory.path().join(name);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::Write(format!("`{}` is already there; --force replaces it", path.display()))
        }
        _ => unwritten(&path, &error),
    };
    let draft = Draft::new(directory, name, bytes, mode).map_err(failed)?;
    check(&directory.open_file(&draft.name).map_err(failed)?.findings)?;
    draft.publish(name, existing).map_err(failed)
}

/// Writes a file that is there anew, with the owner and the rights that it has, if there is still in it
/// what was read.
pub(crate) fn rewrite(
    directory: &Directory,
    name: &OsStr,
    before: &[u8],
    bytes: &[u8],
) -> Result<(), Failure> {
    let failed = |error: io::Error| unwritten(&directory.path().join(name), &error);
    let (file, seen) = still(directory, name, before).map_err(failed)?;
    let there = file.metadata().map_err(failed)?;
    let draft = Draft::new(directory, name, bytes, there.mode() & 0o7777).map_err(failed)?;
    draft.belong_to(there.uid(), there.gid()).map_err(failed)?;
    draft.publish(name, Existing::ReplaceThis(seen)).map_err(failed)
}

/// The same by a path, of a file that need not lie where krond reads. What a link points to is written,
/// and the link stays.
pub(crate) fn rewrite_path(path: &Path, before: &[u8], bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: io::Error| unwritten(path, &error);
    let real = path.canonicalize().map_err(failed)?;
    let directory = Directory::open(real.parent().unwrap_or(&real), Trust::current()).map_err(failed)?;
    let _lock = lock(&directory)?;
    rewrite(&directory, real.file_name().unwrap_or_default(), before, bytes)
}

/// Removes a file, durably; if it was read, only if there is still in it what was read.
pub(crate) fn remove(directory: &Directory, name: &OsStr, before: Option<&[u8]>) -> Result<(), Failure> {
    let seen = || before.map(|before| still(directory, name, before).map(|(_, seen)| seen)).transpose();
    let removed = || {
        if let Some(seen) = seen()? {
            check_unchanged(directory, name, seen)?;
        }
        rustix::fs::unlinkat(directory, name, AtFlags::empty())?;
        sync(directory)
    };
    removed().map_err(|error: io::Error| {
        let path = directory.path().join(name);
        Failure::Write(format!("could not remove `{}`: {}", path.display(), reason(&error)))
    })
}

/// Removes drafts that somebody left behind who was killed. It is nothing that was asked for, so it fails
/// in silence.
pub(crate) fn clear_drafts(directory: &Directory) {
    let is_stale = |name: &OsStr| {
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                && Seen::new(&stat).modified < (clock::now() - DRAFT_AGE_MAX).as_second()
        })
    };
    let names = readable(directory).and_then(|handle| Ok(Dir::new(handle)?));
    for entry in names.into_iter().flatten().flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if is_draft(name) && is_stale(name) {
            let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        }
    }
}

/// `.NAME.PROCESS-NUMBER.tmp`
fn is_draft(name: &OsStr) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.'));
    parts.is_some_and(|(target, number)| {
        let numbers = number.split_once('-');
        Directory::reads(target.as_ref())
            && numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
    })
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::Write(format!("could not write `{}`: {}", path.display(), reason(error)))
}

/// Opens a file that was read before, if there is still in it what was read.
fn still(directory: &Directory, name: &OsStr, before: &[u8]) -> io::Result<(File, Seen)> {
    let file = directory.open_file(name)?.file.ok_or_else(has_changed)?;
    let seen = Seen::new(&rustix::fs::fstat(&file)?);
    match krontab::read(&file)? == before {
        true => Ok((file, seen)),
        false => Err(has_changed()),
    }
}

fn check_unchanged(directory: &Directory, name: &OsStr, seen: Seen) -> io::Result<()> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    match stat.is_ok_and(|stat| Seen::new(&stat) == seen) {
        true => Ok(()),
        false => Err(has_changed()),
    }
}

fn has_changed() -> io::Error {
    io::Error::other("somebody else has changed it meanwhile; try again")
}

/// The most names tried for a draft.
const ATTEMPTS_MAX: u32 = 100;

/// How long a draft lies there at most before it has its name: a megabyte takes no minutes.
const DRAFT_AGE_MAX: SignedDuration = SignedDuration::from_mins(10);

/// A complete and durable file that does not have its name yet. It is gone when this is dropped.
struct Draft<'d> {
    directory: &'d Directory,
    name: OsString,
    file: File,
}

impl Draft<'_> {
    fn new<'d>(directory: &'d Directory, target: &OsStr, bytes: &[u8], mode: u32) -> io::Result<Draft<'d>> {
        let mut draft = Draft::create(directory, target)?;
        draft.file.write_all(bytes)?;
        draft.file.set_permissions(fs::Permissions::from_mode(mode))?;
        draft.file.sync_all()?;
        Ok(draft)
    }

    /// An empty file beside the target, with a name that is free and that krond does not read.
    fn create<'d>(directory: &'d Directory, target: &OsStr) -> io::Result<Draft<'d>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut number = 0;
        loop {
            let mut name = OsString::from(".");
            name.push(target);
            name.push(format!(".{}-{number}.tmp", std::process::id()));
            match rustix::fs::openat(directory, &name, flags, Mode::RUSR | Mode::WUSR) {
                // A process of the same number may have been killed here before.
                Err(Errno::EXIST) if number < ATTEMPTS_MAX => number += 1,
                opened => return Ok(Draft { directory, name, file: File::from(opened?) }),
            }
        }
    }

    fn belong_to(&self, user: u32, group: u32) -> io::Result<()> {
        let own = self.file.metadata()?;
        match (own.uid(), own.gid()) == (user, group) {
            true => Ok(()),
            false => {
                // To give a file away takes some of its rights.
                let permissions = own.permissions();
                std::os::unix::fs::fchown(&self.file, Some(user), Some(group))?;
                self.file.set_permissions(permissions)
            }
        }
    }

    fn publish(self, target: &OsStr, existing: Existing) -> io::Result<()> {
        let directory = self.directory;
        if let Existing::ReplaceThis(seen) = existing {
            check_unchanged(directory, target, seen)?;
        }
        match existing {
            Existing::Replace | Existing::ReplaceThis(_) => {
                rustix::fs::renameat(directory, &self.name, directory, target)?;
            }
            // Unlike a rename, a link never takes the place of another file.
            Existing::Keep => {
                rustix::fs::linkat(directory, &self.name, directory, target, AtFlags::empty())?;
            }
        }
        drop(self);
        sync(directory)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
    }
}

/// The directory, opened for more than naming files in it.
fn readable(directory: &Directory) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, ".", flags, Mode::empty())?)
}

fn sync(directory: &Directory) -> io::Result<()> {
    Ok(rustix::fs::fsync(readable(directory)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> (tempfile::TempDir, Directory) {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::open(root.path(), Trust::current()).unwrap();
        fs::write(root.path().join("a"), "one\n").unwrap();
        (root, directory)
    }

    #[test]
    fn what_somebody_else_has_changed_meanwhile_is_left_alone() {
        let (root, directory) = directory();
        let (path, name) = (root.path().join("a"), OsStr::new("a"));
        let there = look(&directory, name).unwrap().unwrap();
        assert_eq!(there.bytes.as_deref(), Some(&b"one\n"[..]));
        fs::write(&path, "one and more\n").unwrap();
        let replaced = write(&directory, name, b"two\n", 0o644, Existing::ReplaceThis(there.seen.unwrap()));
        for failed in [
            replaced,
            rewrite(&directory, name, b"one\n", b"two\n"),
            remove(&directory, name, Some(b"one\n")),
            rewrite_path(&path, b"one\n", b"two\n"),
        ] {
            let Err(Failure::Write(message)) = failed else { panic!("{failed:?}") };
            assert!(message.ends_with("somebody else has changed it meanwhile; try again"), "{message}");
        }
        assert_eq!(fs::read(&path).unwrap(), b"one and more\n");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "nothing is left behind");
        rewrite(&directory, name, b"one and more\n", b"two\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two\n");
        remove(&directory, name, Some(b"two\n")).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_is_exchanged_is_still_the_one_that_was_checked() {
        let (root, _) = directory();
        let (checked, moved) = (root.path().join("checked"), root.path().join("moved"));
        fs::create_dir(&checked).unwrap();
        let directory = Directory::open(&checked, Trust::current()).unwrap();
        fs::rename(&checked, &moved).unwrap();
        fs::create_dir(&checked).unwrap();
        write(&directory, OsStr::new("a"), b"one\n", 0o644, Existing::Keep).unwrap();
        assert!(moved.join("a").exists() && !checked.join("a").exists());
    }

    #[test]
    fn drafts_have_names_of_their_own() {
        for (name, expected) in [
            (".jobs.4242-0.tmp", true),
            (".jobs.kron.1-12.tmp", true),
            (".jobs.tmp", false),
            (".jobs.4242.tmp", false),
            (".jobs.a-0.tmp", false),
            ("jobs.4242-0.tmp", false),
            (".jobs.4242-0", false),
            (".4242-0.tmp", false),
        ] {
            assert_eq!(is_draft(name.as_ref()), expected, "{name}");
        }
    }
}
