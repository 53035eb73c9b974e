//! Whether a file may be trusted to say what runs.
//!
//! Whoever can write a krontab, or replace it in its directory, decides what the daemon runs. What is
//! checked is the opened file and not its path, so that it cannot be exchanged in between.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Serialize, Serializer};

use crate::code::Severity;
use crate::entry::Entry;

/// Who may own and write files that are trusted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trust {
    /// The user that the daemon runs as. Root is always trusted too.
    pub user: u32,
    /// The group that the daemon runs as: it may write.
    pub group: u32,
    /// Whether symbolic links are followed.
    pub follow_links: bool,
}

impl Trust {
    /// The user and group of this process, and no symbolic links.
    #[must_use]
    pub fn current() -> Trust {
        Trust {
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
            follow_links: false,
        }
    }
}

/// A file that was opened and checked.
#[derive(Debug)]
pub struct Opened {
    /// The file, unless it is none that can be read: a link, a directory, a device.
    pub file: Option<File>,
    /// Everything that speaks against trusting it. Empty if it may be trusted.
    pub findings: Vec<Finding>,
    /// Whether everybody can read it.
    pub is_public: bool,
}

/// Something that speaks against trusting a file.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is; never changes.
    pub code: FindingCode,
    /// Whether it is about the file or its directory.
    pub subject: Subject,
    /// Which file or directory it is about.
    pub path: PathBuf,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The directory that the file is in: who can write it can replace the file.
    Directory,
    /// The file itself.
    File,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FindingCode {
    /// The group can write it, and is not the daemon's.
    GroupWritable,
    /// Everybody can read it, and it sets environment variables.
    PublicEnvironment,
    /// It is not a regular file.
    NotRegular,
    /// It belongs to neither root nor the daemon's user.
    Owner,
    /// It is a symbolic link.
    SymbolicLink,
    /// Everybody can write it.
    WorldWritable,
}

/// Opens a file for reading, and checks it and its directory.
///
/// # Errors
///
/// If it cannot be opened at all. What speaks against trusting it is no error but a finding: all of
/// them are returned.
pub fn open(path: &Path, trust: &Trust) -> io::Result<Opened> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (directory, mut findings) = open_directory(parent, trust)?;
    let mut opened = open_file(&directory, name, path, trust)?;
    findings.append(&mut opened.findings);
    Ok(Opened { findings, ..opened })
}

/// Opens a directory, and checks it alone.
pub(crate) fn open_directory(path: &Path, trust: &Trust) -> io::Result<(OwnedFd, Vec<Finding>)> {
    let mut checks = Checks { trust, findings: Vec::new() };
    let directory = checks.open_directory(path)?;
    Ok((directory, checks.findings))
}

/// Opens a file of a directory, and checks it alone. The path is what findings name it by.
pub(crate) fn open_file(directory: &OwnedFd, name: &OsStr, path: &Path, trust: &Trust) -> io::Result<Opened> {
    let mut checks = Checks { trust, findings: Vec::new() };
    let (file, is_public) = checks.open_file(directory, name, path)?;
    Ok(Opened { file, findings: checks.findings, is_public })
}

impl Opened {
    /// Whether nothing speaks against trusting it.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.file.is_some() && !self.findings.iter().any(Finding::is_error)
    }

    /// A warning if everybody can read the environment variables of these entries: they may be secrets.
    #[must_use]
    pub fn public_environment(&self, path: &Path, entries: &[Entry]) -> Option<Finding> {
        let entry = entries.iter().find(|entry| !entry.command.env.is_empty()).filter(|_| self.is_public)?;
        Some(Finding {
            severity: Severity::Warning,
            code: FindingCode::PublicEnvironment,
            subject: Subject::File,
            path: path.to_owned(),
            message: format!("everybody can read the environment variables of `{}`", entry.name),
            help: "if they are secrets, take the right away: `chmod o-r`".into(),
        })
    }
}

struct Checks<'t> {
    trust: &'t Trust,
    findings: Vec<Finding>,
}

/// Opens a directory for nothing but looking at it and at names in it.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = OFlags::RDONLY;

impl Checks<'_> {
    fn open_directory(&mut self, path: &Path) -> io::Result<OwnedFd> {
        // With a slash at its end, a link is followed whatever the flags say.
        let path = path.components().as_path();
        let flags = LOOK | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty()) {
            // A link to a directory is no directory, or a loop, depending on the system.
            Err(Errno::NOTDIR | Errno::LOOP) if is_link(path) => {
                self.found_link(Subject::Directory, path);
                rustix::fs::open(path, flags, Mode::empty())?
            }
            opened => opened?,
        };
        let stat = rustix::fs::fstat(&directory)?;
        self.check(Subject::Directory, path, &stat);
        Ok(directory)
    }

    fn open_file(
        &mut self,
        directory: &OwnedFd,
        name: &OsStr,
        path: &Path,
    ) -> io::Result<(Option<File>, bool)> {
        let follow = self.trust.follow_links;
        let at_flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        // To open some devices is to do something to them, so the name is looked at first. What is
        // opened then is looked at again, and that look is the one that counts.
        let named = rustix::fs::statat(directory.as_fd(), name, at_flags)?;
        match FileType::from_raw_mode(named.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => {
                self.found_link(Subject::File, path);
                return Ok((None, false));
            }
            other => {
                self.found_type(path, other);
                return Ok((None, false));
            }
        }
        let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        flags.set(OFlags::NOFOLLOW, !follow);
        let file = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
            Err(Errno::LOOP) if !follow => {
                self.found_link(Subject::File, path);
                return Ok((None, false));
            }
            opened => opened?,
        };
        let stat = rustix::fs::fstat(&file)?;
        let file_type = FileType::from_raw_mode(stat.st_mode);
        if file_type != FileType::RegularFile {
            self.found_type(path, file_type);
            return Ok((None, false));
        }
        self.check(Subject::File, path, &stat);
        let is_public = Mode::from_raw_mode(stat.st_mode).contains(Mode::ROTH);
        Ok((Some(File::from(file)), is_public))
    }

    /// Owner and permissions.
    fn check(&mut self, subject: Subject, path: &Path, stat: &Stat) {
        let (owner, group) = (stat.st_uid, stat.st_gid);
        let mode = Mode::from_raw_mode(stat.st_mode);
        if owner != ROOT && owner != self.trust.user {
            let expected = match self.trust.user {
                ROOT => "root".to_owned(),
                user => format!("root or user {user}"),
            };
            self.found(
                FindingCode::Owner,
                subject,
                path,
                format!("expected {expected} to own the {subject}, but found user {owner}"),
                "who owns it decides what runs: `chown` it",
            );
        }
        if mode.contains(Mode::WOTH) {
            self.found(
                FindingCode::WorldWritable,
                subject,
                path,
                format!("everybody can write the {subject}"),
                "take the right away: `chmod o-w`",
            );
        }
        if mode.contains(Mode::WGRP) && group != self.trust.group {
            self.found(
                FindingCode::GroupWritable,
                subject,
                path,
                format!("group {group} can write the {subject}"),
                "take the right away: `chmod g-w`",
            );
        }
    }

    fn found_link(&mut self, subject: Subject, path: &Path) {
        if !self.trust.follow_links {
            self.found(
                FindingCode::SymbolicLink,
                subject,
                path,
                format!("the {subject} is a symbolic link"),
                match subject {
                    Subject::Directory => "name what it points to",
                    Subject::File => "put the file itself there; `krontab add` copies what a link points to",
                },
            );
        }
    }

    fn found_type(&mut self, path: &Path, found: FileType) {
        let found = match found {
            FileType::Directory => "a directory",
            FileType::Fifo => "a pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            _ => "something else",
        };
        self.found(
            FindingCode::NotRegular,
            Subject::File,
            path,
            format!("expected a regular file, but found {found}"),
            "a krontab is a file of text",
        );
    }

    fn found(&mut self, code: FindingCode, subject: Subject, path: &Path, message: String, help: &str) {
        self.findings.push(Finding {
            severity: Severity::Error,
            code,
            subject,
            path: path.to_owned(),
            message,
            help: help.to_owned(),
        });
    }
}

/// The user who may do everything anyway.
const ROOT: u32 = 0;

fn is_link(path: &Path) -> bool {
    rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Subject::Directory => "directory",
            Subject::File => "file",
        })
    }
}

impl FindingCode {
    /// The name, in lower case with hyphens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FindingCode::GroupWritable => "group-writable",
            FindingCode::NotRegular => "not-regular",
            FindingCode::Owner => "owner",
            FindingCode::PublicEnvironment => "public-environment",
            FindingCode::SymbolicLink => "symbolic-link",
            FindingCode::WorldWritable => "world-writable",
        }
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for FindingCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Finding {
    /// Whether it is an error, and not only a warning.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The message, and below it the place and what to do.
    #[must_use]
    pub fn render(&self) -> String {
        let Finding { severity, code, path, message, help, .. } = self;
        format!("{severity}[{code}]: {message}\n  --> {}\n  = help: {help}", path.display())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { severity, path, message, help, .. } = self;
        write!(f, "{}: {severity}: {message}; {help}", path.display())
    }
}
