//! The directory that krond reads.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use krontab::Directory;
use krontab::security::Trust;

use super::exit::Failure;
use super::load::{absolute, reason};

/// Where jobs of the system are.
const SYSTEM: &str = "/etc/krond.d";

/// The directory that was given, or the one of whoever asks: the system's for root.
pub(crate) fn directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        return absolute(path);
    }
    if rustix::process::geteuid().is_root() {
        return Ok(SYSTEM.into());
    }
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("XDG_CONFIG_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".config")))
        .map(|config| config.join("krond"))
        .ok_or_else(|| Failure::Usage("neither XDG_CONFIG_HOME nor HOME is set; write --config DIR".into()))
}

/// Opens the directory that was given, or the one of whoever asks. One that was given must exist; in the
/// place of the other there may be none yet.
pub(crate) fn open(given: Option<&Path>) -> Result<(PathBuf, Option<Directory>), Failure> {
    let path = directory(given)?;
    match Directory::open(&path, Trust::current()) {
        Ok(directory) => Ok((path, Some(directory))),
        Err(error) if error.kind() == ErrorKind::NotFound && given.is_none() => Ok((path, None)),
        Err(error) => Err(unreadable(&path, &error)),
    }
}

/// Why a directory cannot be read.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::Read(match error.kind() {
        ErrorKind::NotFound => format!("could not read `{path}`: there is no such directory"),
        ErrorKind::NotADirectory => format!("expected a directory, but `{path}` is none"),
        _ => format!("could not read `{path}`: {}", reason(error)),
    })
}
