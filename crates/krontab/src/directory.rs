//! A directory of krontabs, read and checked as the daemon does.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use crate::loaded::Loaded;
use crate::security::{self, Finding, Opened, Trust};
use crate::source::{Source, SourceError};
use kron_zones::Zones;

/// A directory of krontabs.
///
/// It is opened once, and its files are opened in what was opened, so that nobody can exchange it
/// between the checks and the reading.
///
/// ```no_run
/// use krontab::security::Trust;
/// use krontab::{Directory, Zones};
///
/// let zones = Zones::system();
/// let directory = Directory::open("/etc/krond.d", Trust::current())?;
/// let is_trusted = !directory.findings().iter().any(|finding| finding.is_error());
/// for (path, loaded) in directory.krontabs(&zones)? {
///     if is_trusted && loaded?.is_valid() {
///         println!("{} may run", path.display());
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Where the files will be, if that is another directory: their jobs' identities begin with it.
    installed: Option<PathBuf>,
    handle: OwnedFd,
    trust: Trust,
    findings: Vec<Finding>,
}

impl Directory {
    /// Opens a directory by its absolute path, and checks it.
    ///
    /// # Errors
    ///
    /// If it cannot be opened. What speaks against trusting it is no error but a finding.
    pub fn open(path: impl Into<PathBuf>, trust: Trust) -> io::Result<Directory> {
        let path = path.into();
        let (handle, findings) = security::open_directory(&path, &trust)?;
        Ok(Directory { path, installed: None, handle, trust, findings })
    }

    /// The same directory, with the identities that its jobs have once its files are in that one.
    ///
    /// # Errors
    ///
    /// If the path is none that files can be installed in.
    pub fn installed_as(self, path: impl Into<PathBuf>) -> Result<Directory, SourceError> {
        let path = path.into();
        Source::new(&path)?;
        Ok(Directory { installed: Some(path), ..self })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything that speaks against trusting the directory itself, and so any file in it.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether a file of that name is read: not what editors and packagers leave behind.
    #[must_use]
    pub fn reads(name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        let left_behind = ["~", ".bak", ".tmp"].iter().any(|end| name.ends_with(end))
            || [".dpkg-", ".rpm"].iter().any(|part| name.contains(part));
        !name.is_empty() && !name.starts_with('.') && !left_behind && !name.contains(['/', '\0', '\n', ':'])
    }

    /// The names of its krontabs, in order. Directories are none, but links and devices are among them:
    /// they are refused when they are loaded, and not passed over in silence.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = rustix::fs::openat(&self.handle, ".", flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::new(readable)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if Directory::reads(name) && !self.is_directory(name, entry.file_type()) {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn is_directory(&self, name: &OsStr, file_type: FileType) -> bool {
        match file_type {
            // Some file systems do not tell.
            FileType::Unknown => rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
            known => known == FileType::Directory,
        }
    }

    /// Loads its krontabs, in the order of their names. One that cannot be read is an error in its place.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    pub fn krontabs<'d>(
        &'d self,
        zones: &'d Zones,
    ) -> io::Result<impl Iterator<Item = (PathBuf, io::Result<Loaded>)> + 'd> {
        let names = self.names()?.into_iter();
        Ok(names.map(|name| (self.path.join(&name), self.load(&name, zones))))
    }

    fn load(&self, name: &OsStr, zones: &Zones) -> io::Result<Loaded> {
        let path = self.path.join(name);
        let source = Source::new(&path).and_then(|source| match &self.installed {
            Some(installed) => source.installed_as(installed.join(name)),
            None => Ok(source),
        });
        let source = source.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Loaded::read(&path, self.open_file(name)?, &source, zones)
    }

    /// Opens one of its files for reading, and checks it. Neither a link nor a pipe is waited for or
    /// followed.
    ///
    /// # Errors
    ///
    /// If it cannot be opened at all. What speaks against trusting it is no error but a finding.
    pub fn open_file(&self, name: &OsStr) -> io::Result<Opened> {
        security::open_file(&self.handle, name, &self.path.join(name), &self.trust)
    }
}

/// What was opened, to name files in: whatever becomes of its path, it stays the same directory.
impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_editors_leave_behind_is_not_read() {
        for name in ["backup", "jobs.kron", "10-base"] {
            assert!(Directory::reads(name.as_ref()), "{name}");
        }
        for name in ["", ".hidden", "a~", "a.bak", "a.tmp", "a.dpkg-old", "a.rpmsave", "a/b", "a:b"] {
            assert!(!Directory::reads(name.as_ref()), "{name}");
        }
    }
}
