//! Files change at once or not at all, also when the power fails.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use krontab::security::{self, Trust};

use super::exit::Failure;
use super::load::reason;

/// What becomes of a file that is already there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Existing {
    Keep,
    Replace,
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

/// Writes a file under a name of its own, makes it durable, and only then gives it its name.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32, existing: Existing) -> Result<(), Failure> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::Write(format!("`{}` is already there; --force replaces it", path.display()))
        }
        _ => Failure::Write(format!("could not write `{}`: {}", path.display(), reason(&error))),
    };
    let draft = Draft::new(path, bytes, mode).map_err(failed)?;
    draft.check()?;
    draft.publish(path, existing).map_err(failed)
}

/// Writes a file that is there anew, with the owner and the rights that it has.
pub(crate) fn rewrite(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::Write(format!("could not write `{}`: {}", path.display(), reason(&error)))
    };
    // What a link points to is written, and the link stays.
    let path = path.canonicalize().map_err(failed)?;
    let there = fs::metadata(&path).map_err(failed)?;
    let draft = Draft::new(&path, bytes, there.permissions().mode() & 0o7777).map_err(failed)?;
    if (there.uid(), there.gid()) != draft.owner().map_err(failed)? {
        std::os::unix::fs::chown(&draft.path, Some(there.uid()), Some(there.gid())).map_err(failed)?;
    }
    draft.publish(&path, Existing::Replace).map_err(failed)
}

/// Removes a file, durably.
pub(crate) fn remove(path: &Path) -> Result<(), Failure> {
    fs::remove_file(path)
        .and_then(|()| sync_directory_of(path))
        .map_err(|error| Failure::Write(format!("could not remove `{}`: {}", path.display(), reason(&error))))
}

/// The most names tried for a draft.
const ATTEMPTS_MAX: u32 = 100;

/// A complete and durable file that does not have its name yet. It is gone when this is dropped.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn new(target: &Path, bytes: &[u8], mode: u32) -> io::Result<Draft> {
        let (path, mut file) = Draft::create(target)?;
        let draft = Draft { path };
        file.write_all(bytes)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        Ok(draft)
    }

    /// An empty file beside the target, with a name that is free and that krond does not read.
    fn create(target: &Path) -> io::Result<(PathBuf, File)> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let mut number = 0;
        loop {
            let path = target.with_file_name(format!(".{name}.{}-{number}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                // A process of the same number may have been killed here before.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < ATTEMPTS_MAX => {
                    number += 1;
                }
                opened => return opened.map(|file| (path, file)),
            }
        }
    }

    /// Refuses a directory that others can write: they could replace the file.
    fn check(&self) -> Result<(), Failure> {
        let opened = security::open(&self.path, &Trust::current())
            .map_err(|error| Failure::Write(format!("could not check `{}`: {error}", self.path.display())))?;
        match opened.findings.first() {
            None => Ok(()),
            Some(finding) => Err(Failure::Write(format!(
                "krond would refuse it: {} `{}`; {}",
                finding.message,
                finding.path.display(),
                finding.help
            ))),
        }
    }

    fn owner(&self) -> io::Result<(u32, u32)> {
        let metadata = fs::metadata(&self.path)?;
        Ok((metadata.uid(), metadata.gid()))
    }

    fn publish(self, target: &Path, existing: Existing) -> io::Result<()> {
        match existing {
            Existing::Replace => fs::rename(&self.path, target)?,
            // Unlike a rename, a link never takes the place of another file.
            Existing::Keep => fs::hard_link(&self.path, target)?,
        }
        drop(self);
        sync_directory_of(target)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        let _ = fs::remove_file(&self.path);
    }
}

fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
