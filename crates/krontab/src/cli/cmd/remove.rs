//! `krontab remove`: a job, or a file, is no longer installed.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use krontab::security::FindingCode;
use krontab::{Directory, Loaded, Zones};
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::FormatArg;
use crate::cli::config;
use crate::cli::exit::Failure;
use crate::cli::install;

/// Remove an installed job, or an installed file with all its jobs
///
/// A job's line is taken out of its file; with the last job, the file goes too. What krond remembers
/// of the job is kept, so that a job that comes back does not run a period twice. A file that krond refuses,
/// because others can write it for example, can only be removed as a whole.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Remove {
    /// The name of a job, `FILE:JOB`, or a file of the directory
    #[arg(value_name = "JOB|FILE")]
    target: String,
    /// The directory [default: /etc/krond.d for root, otherwise krond in `XDG_CONFIG_HOME` or ~/.config]
    #[arg(long, value_name = "DIR")]
    config: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab remove backup
  krontab remove jobs.kron:backup
  krontab remove jobs.kron --config /etc/krond.d

Exit codes: 0 removed, 1 not found, 2 anything else.";

impl Remove {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let (_, Some(directory)) = config::open(self.config.as_deref())? else {
            return Err(Failure::NotFound(not_found(&self.target, &[])));
        };
        install::check(directory.findings())?;
        let _lock = install::lock(&directory)?;
        install::clear_drafts(&directory);
        let failed = |error: io::Error| config::unreadable(directory.path(), &error);
        // A file that cannot be read has no jobs to name, but can be removed as a file.
        let krontabs: Vec<Loaded> =
            directory.krontabs(zones).map_err(failed)?.filter_map(|(_, loaded)| loaded.ok()).collect();
        let mut jobs = jobs_meant(&krontabs, &self.target);
        let removal = match (jobs.len(), file_meant(&directory, &self.target).map_err(failed)?) {
            (0, None) => return Err(Failure::NotFound(not_found(&self.target, &krontabs))),
            (0, Some(file)) => remove_file(&directory, &file, &krontabs)?,
            (1, None) => remove_job(&directory, jobs.remove(0))?,
            // A file and a job of the same name: no question, if the one is all there is in the other.
            (1, Some(file)) if jobs[0].0.path == file && jobs[0].0.parsed.entries.len() == 1 => {
                remove_job(&directory, jobs.remove(0))?
            }
            (_, file) => {
                let jobs = jobs.iter().map(|(krontab, line)| spelled(krontab, *line));
                let all: Vec<String> = jobs
                    .chain(file.map(|file| file.display().to_string()))
                    .map(|name| format!("`{name}`"))
                    .collect();
                return Err(Failure::Usage(format!(
                    "`{}` is more than one: write {}",
                    self.target,
                    all.join(" or ")
                )));
            }
        };
        Ok(Answer::of(&removal, self.format.format))
    }
}

/// The jobs that a name can mean: a krontab, and a line of it.
fn jobs_meant<'k>(krontabs: &'k [Loaded], target: &str) -> Vec<(&'k Loaded, usize)> {
    let mut found = Vec::new();
    for krontab in krontabs {
        for entry in &krontab.parsed.entries {
            let spellings = [entry.name.clone(), entry.identity().to_owned(), spelled(krontab, entry.line)];
            if spellings.iter().any(|spelling| spelling == target) {
                found.push((krontab, entry.line));
            }
        }
    }
    found
}

/// `FILE:JOB`
fn spelled(krontab: &Loaded, line: usize) -> String {
    let file = krontab.path.file_name().unwrap_or_default().to_string_lossy();
    let entry = krontab.parsed.entries.iter().find(|entry| entry.line == line);
    format!("{file}:{}", entry.map_or("", |entry| &entry.name))
}

/// The file of the directory that a name means.
fn file_meant(directory: &Directory, target: &str) -> io::Result<Option<PathBuf>> {
    let meant = |file: &PathBuf| *file == directory.path().join(target);
    Ok(directory.names()?.into_iter().map(|name| directory.path().join(name)).find(meant))
}

/// Removes a file as a whole, also one that krond refuses: that is one way to put things right.
fn remove_file(directory: &Directory, file: &Path, krontabs: &[Loaded]) -> Result<Removal, Failure> {
    let krontab = krontabs.iter().find(|krontab| krontab.path == file);
    let entries = krontab.into_iter().flat_map(|krontab| &krontab.parsed.entries);
    let jobs = entries.map(|entry| entry.identity().to_owned()).collect();
    // Of a link or a device nothing was read.
    let is_read = |krontab: &&Loaded| krontab.findings.iter().all(|finding| !is_unread(finding.code));
    let before = krontab.filter(is_read).map(|krontab| krontab.bytes.as_slice());
    install::remove(directory, file.file_name().unwrap_or_default(), before)?;
    Ok(Removal { file: file.to_string_lossy().into_owned(), file_removed: true, removed: jobs })
}

fn is_unread(code: FindingCode) -> bool {
    matches!(code, FindingCode::SymbolicLink | FindingCode::NotRegular)
}

fn remove_job(directory: &Directory, (krontab, line): (&Loaded, usize)) -> Result<Removal, Failure> {
    let Loaded { path, bytes, parsed, .. } = krontab;
    let name = path.file_name().unwrap_or_default();
    check_file(krontab)?;
    let entry = parsed.entries.iter().find(|entry| entry.line == line);
    let identity = entry.map(|entry| entry.identity().to_owned()).unwrap_or_default();
    // A line with an error is somebody's job too, so only a file of this one entry goes.
    let is_last = parsed.entries.len() == 1 && !parsed.has_errors();
    if is_last {
        install::remove(directory, name, Some(bytes))?;
    } else {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').zip(1..);
        let rest: Vec<&[u8]> = lines.filter(|(_, number)| *number != line).map(|(line, _)| line).collect();
        install::rewrite(directory, name, bytes, &rest.concat())?;
    }
    Ok(Removal { file: path.to_string_lossy().into_owned(), file_removed: is_last, removed: vec![identity] })
}

/// Refuses a file that krond refuses: whose words the rest of it are, nobody knows.
fn check_file(krontab: &Loaded) -> Result<(), Failure> {
    let path = krontab.path.display();
    match krontab.findings.iter().find(|finding| finding.is_error()) {
        None => Ok(()),
        Some(finding) => Err(Failure::Write(format!(
            "krond refuses all of `{path}`: {}; {}, or remove it as a whole: `krontab remove {}`",
            finding.message,
            finding.help,
            krontab.path.file_name().unwrap_or_default().to_string_lossy()
        ))),
    }
}

fn not_found(target: &str, krontabs: &[Loaded]) -> String {
    let mut message = format!("job not found: {target}");
    for krontab in krontabs.iter().filter(|krontab| krontab.parsed.has_errors()) {
        let file = krontab.path.display();
        let _ = write!(
            message,
            "\nnote: {file} has lines with errors, which are not looked at; see `krontab lint --file {file}`"
        );
    }
    message
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Removal {
    file: String,
    file_removed: bool,
    /// The identities of the jobs that are gone. Their state is kept.
    removed: Vec<String>,
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for identity in &self.removed {
            writeln!(f, "removed: {identity}")?;
        }
        if self.file_removed {
            writeln!(f, "removed: {}", self.file)?;
        }
        match self.removed.len() {
            0 => Ok(()),
            1 => writeln!(f, "its state is kept"),
            _ => writeln!(f, "their state is kept"),
        }
    }
}
