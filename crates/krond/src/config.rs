//! The krontabs become jobs: all of them, or none.

use std::io;
use std::path::Path;
use std::sync::Arc;

use krontab::security::{self, Finding, Trust};
use krontab::{Directory, Entry, Loaded, Problem, Source, Zones};
use nix::unistd::User;

/// Reads a directory of krontabs, or one file.
///
/// # Errors
///
/// Everything that is wrong, each ready to be printed. Then none of it counts.
pub fn read(path: &Path, zones: &Zones) -> Result<Vec<Arc<Entry>>, Vec<String>> {
    let failed = |error: io::Error| vec![unreadable(path, &error)];
    let mut errors = Vec::new();
    let mut entries = Vec::new();
    let mut take = |path: &Path, loaded: io::Result<Loaded>| match loaded {
        Ok(loaded) if loaded.is_valid() => {
            errors.extend(loaded.parsed.entries.iter().filter_map(|entry| foreign_user(path, entry)));
            entries.extend(loaded.parsed.entries.into_iter().map(Arc::new));
        }
        Ok(loaded) => {
            errors.extend(loaded.findings.iter().filter(|finding| finding.is_error()).map(Finding::render));
            let problems = loaded.parsed.problems.iter().filter(|problem| problem.is_error());
            errors.extend(problems.map(Problem::render));
        }
        Err(error) => errors.push(unreadable(path, &error)),
    };
    if path.metadata().map_err(failed)?.is_dir() {
        let directory = Directory::open(path, Trust::current()).map_err(failed)?;
        let distrust: Vec<String> =
            directory.findings().iter().filter(|finding| finding.is_error()).map(Finding::render).collect();
        if !distrust.is_empty() {
            return Err(distrust);
        }
        for (path, loaded) in directory.krontabs(zones).map_err(failed)? {
            take(&path, loaded);
        }
    } else {
        take(path, read_file(path, zones));
    }
    if errors.is_empty() { Ok(entries) } else { Err(errors) }
}

fn read_file(path: &Path, zones: &Zones) -> io::Result<Loaded> {
    let source = Source::new(path).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Loaded::read(path, security::open(path, &Trust::current())?, &source, zones)
}

/// Errors for people to read: one as it is, and of several how many, and then each of them.
#[must_use]
pub fn listed(errors: &[String]) -> String {
    match errors {
        [error] if !error.contains('\n') => error.clone(),
        errors => {
            let s = if errors.len() == 1 { "" } else { "s" };
            format!("{} error{s} in the krontabs\n\n{}", errors.len(), errors.join("\n\n"))
        }
    }
}

/// Why nobody but root can have that entry, if it names somebody else.
fn foreign_user(path: &Path, entry: &Entry) -> Option<String> {
    let own = rustix::process::geteuid();
    let name = entry.command.user.as_deref().filter(|_| !own.is_root())?;
    let uid = User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
    if uid == Some(own.as_raw()) {
        return None;
    }
    let own =
        User::from_uid(own.as_raw().into()).ok().flatten().map_or_else(|| own.to_string(), |user| user.name);
    Some(format!(
        "error[user]: only root can run a job as `{name}`, and krond runs as `{own}`\n  --> {}:{}\n  \
         = help: leave `user=` out of `{}`, or run krond as root",
        path.display(),
        entry.line,
        entry.name
    ))
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    let help = match error.kind() {
        io::ErrorKind::NotFound => ": create it, or name another place with --config",
        _ => "",
    };
    format!("could not read {}: {error}{help}", path.display())
}
