//! Files become text, and a name in a file becomes a job.

use std::io;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use krontab::security::{self, Finding, FindingCode, Subject, Trust};
use krontab::{Entry, Loaded, Problem, Source, Zones};

use super::args::{IdentityArgs, JobArgs};
use super::exit::{Failure, Invalid};
use super::periods::{self, NextRun};
use super::view::ProblemView;

/// The name of standard input.
pub(crate) const STDIN: &str = "-";

/// A job, and what is legal about its line and perhaps a surprise.
#[derive(Debug)]
pub(crate) struct LoadedJob {
    pub(crate) entry: Entry,
    warnings: Vec<Problem>,
}

impl LoadedJob {
    /// The warnings, with dates after an instant where they are about dates.
    pub(crate) fn warnings(&self, after: Timestamp) -> Vec<ProblemView> {
        let views = self.warnings.iter().map(ProblemView::from);
        views.map(|view| view.with_dates([&self.entry], after)).collect()
    }
}

/// Finds a job in a file that has no errors.
pub(crate) fn job(args: &JobArgs, zones: &Zones) -> Result<LoadedJob, Failure> {
    let loaded = file(&args.file, &source(&args.file, &args.identity)?, zones)?;
    if !loaded.is_valid() {
        return Err(Failure::Invalid(Invalid::new(&loaded)));
    }
    let parsed = loaded.parsed;
    let entry = parsed.entry(&args.job).cloned();
    let entry = entry.ok_or_else(|| Failure::JobNotFound(args.job.clone()))?;
    let warnings = parsed.warnings(&entry).cloned().collect();
    Ok(LoadedJob { entry, warnings })
}

/// Warns of the jobs for which no run is found after an instant, because of their constraints.
pub(crate) fn warn_unschedulable(loaded: &mut Loaded, after: Timestamp, patience: usize) {
    loaded.warn_unschedulable(|entry| match periods::next_run(&entry.job, after, patience) {
        NextRun::NoneUntil(until) => Some(format!("before {}", entry.job.zone().to_civil(until).date())),
        // Unless it is the schedule that has come to its end.
        NextRun::Never => entry.job.schedule().next_after(after).map(|_| "at all".to_owned()),
        NextRun::At(_) => None,
    });
}

/// How a file is named in messages, and which identities its jobs have.
pub(crate) fn source(path: &Path, identity: &IdentityArgs) -> Result<Source, Failure> {
    identity.check()?;
    let unfit = |error: krontab::SourceError| Failure::Usage(error.to_string());
    let source = if is_stdin(path) {
        Source::stdin()
    } else {
        Source::new(absolute(path)?).map_err(unfit)?.shown_as(&path.to_string_lossy())
    };
    Ok(match (&identity.installed_as, &identity.identity) {
        (_, Some(text)) => source.with_identity(text),
        (Some(path), None) => {
            source.installed_as(path).map_err(|error| Failure::Usage(format!("--as: {error}")))?
        }
        (None, None) => source,
    })
}

/// Loads a file that was named by its path, or standard input.
///
/// It is a draft, and its author's business: it may be a link in a checkout, belong to a group, or lie in
/// `/tmp`. Only one that everybody can write is refused, because nobody knows whose words it has. The files
/// of a directory that krond reads are loaded by [`config`](super::config), with all checks.
pub(crate) fn file(path: &Path, source: &Source, zones: &Zones) -> Result<Loaded, Failure> {
    let shown = path.display();
    let failed = |error: io::Error| unreadable(path, &error);
    if is_stdin(path) {
        let bytes = krontab::read(io::stdin().lock()).map_err(failed)?;
        return Ok(Loaded::parse(path, bytes, source, zones));
    }
    if path.is_dir() {
        return Err(Failure::Read(format!("expected a file, but `{shown}` is a directory")));
    }
    let trust = Trust { follow_links: true, ..Trust::current() };
    let mut opened = security::open(path, &trust).map_err(failed)?;
    if opened.file.is_none() {
        let what = opened.findings.last().map_or("it is no file", |finding| &finding.message);
        return Err(Failure::Read(format!("could not read `{shown}`: {what}")));
    }
    opened.findings.retain(speaks_against_a_draft);
    Loaded::read(path, opened, source, zones).map_err(failed)
}

/// Why a file cannot be read.
fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::Read(format!("could not read `{}`: {}", path.display(), reason(error)))
}

fn speaks_against_a_draft(finding: &Finding) -> bool {
    finding.subject == Subject::File && finding.code == FindingCode::WorldWritable
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

/// The absolute path of a file. One that goes up with `..` is looked up, because what is above a
/// link is not what is above its name.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let failed =
        |error: &io::Error| Failure::Read(format!("could not find `{}`: {}", path.display(), reason(error)));
    if path.components().any(|part| part == Component::ParentDir) {
        return path.canonicalize().map_err(|error| failed(&error));
    }
    std::path::absolute(path).map_err(|error| failed(&error))
}

/// Why the system refused, without the numbers.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::NotADirectory => "it is not in a directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}
