//! The directory that krond reads, and the krontabs in it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use krontab::{Krontab, Parsed, Source, Zones};

use super::exit::Failure;
use super::load::{absolute, reason, text};

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

/// One krontab of the directory.
pub(crate) struct Installed {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) parsed: Parsed,
}

/// All krontabs of a directory, in the order of their names, and what cannot be read.
///
/// A directory that does not exist has none.
pub(crate) fn krontabs(directory: &Path, zones: &Zones) -> Result<(Vec<Installed>, Vec<String>), Failure> {
    let mut installed = Vec::new();
    let mut unreadable = Vec::new();
    for path in files(directory)? {
        let source = Source::new(&path).map_err(|error| Failure::Read(error.to_string()))?;
        match text(&path, &source) {
            Ok(text) => {
                let parsed = Krontab::parse(&text, &source, zones);
                installed.push(Installed { path, text, parsed });
            }
            Err(Failure::Read(message)) => unreadable.push(message),
            Err(failure) => return Err(failure),
        }
    }
    Ok((installed, unreadable))
}

/// The files of a directory that krond reads, in the order of their names.
pub(crate) fn files(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotADirectory => {
            Failure::Read(format!("expected a directory, but `{}` is none", directory.display()))
        }
        _ => Failure::Read(format!("could not read `{}`: {}", directory.display(), reason(&error))),
    };
    let entries = match directory.read_dir() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && entry.file_name().to_str().is_some_and(is_krontab_name) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Whether krond reads a file of that name: not what editors and packagers leave behind.
pub(crate) fn is_krontab_name(name: &str) -> bool {
    let left_behind = ["~", ".bak", ".tmp"].iter().any(|end| name.ends_with(end))
        || [".dpkg-", ".rpm"].iter().any(|part| name.contains(part));
    !name.is_empty() && !name.starts_with('.') && !left_behind && !name.contains(['/', '\0', '\n', ':'])
}

#[cfg(test)]
mod tests {
    use super::is_krontab_name;

    #[test]
    fn what_editors_leave_behind_is_not_read() {
        for name in ["backup", "jobs.kron", "10-base"] {
            assert!(is_krontab_name(name), "{name}");
        }
        for name in ["", ".hidden", "a~", "a.bak", "a.tmp", "a.dpkg-old", "a.rpmsave", "a/b", "a:b"] {
            assert!(!is_krontab_name(name), "{name}");
        }
    }
}
