//! Files become text, and a name in a file becomes a job.

use std::io;
use std::path::{Component, Path, PathBuf};

use krontab::security::{self, FindingCode, Opened, Subject, Trust};
use krontab::{Entry, Krontab, Problem, Source, Zones};

use super::args::{IdentityArgs, JobArgs};
use super::exit::{Failure, Invalid};

/// The name of standard input.
pub(crate) const STDIN: &str = "-";

/// A job, and what is legal about its line and perhaps a surprise.
#[derive(Debug)]
pub(crate) struct LoadedJob {
    pub(crate) entry: Entry,
    pub(crate) warnings: Vec<Problem>,
}

/// Finds a job in a file that has no errors.
pub(crate) fn job(args: &JobArgs, zones: &Zones) -> Result<LoadedJob, Failure> {
    let source = source(&args.file, &args.identity)?;
    let text = text(&args.file, &source)?;
    let parsed = Krontab::parse(&text, &source, zones);
    if parsed.has_errors() {
        return Err(Failure::Invalid(Invalid::new(&source.shown(), &parsed.problems)));
    }
    let entry = parsed.entry(&args.job).cloned();
    let entry = entry.ok_or_else(|| Failure::JobNotFound(args.job.clone()))?;
    let warnings = parsed.warnings(&entry).cloned().collect();
    Ok(LoadedJob { entry, warnings })
}

/// How a file is named in messages, and which identities its jobs have.
pub(crate) fn source(path: &Path, identity: &IdentityArgs) -> Result<Source, Failure> {
    let unfit = |error: krontab::SourceError| Failure::Usage(error.to_string());
    let source = if is_stdin(path) {
        Source::new("/dev/stdin").map_err(unfit)?
    } else {
        Source::new(absolute(path)?).map_err(unfit)?
    };
    let source = source.shown_as(&path.to_string_lossy());
    Ok(match (&identity.installed_as, &identity.identity) {
        (_, Some(text)) => source.with_identity(text),
        (Some(path), None) => {
            source.installed_as(path).map_err(|error| Failure::Usage(format!("--as: {error}")))?
        }
        (None, None) => source,
    })
}

/// What was read from a file.
pub(crate) struct Contents {
    /// The text, or why the bytes are none.
    pub(crate) text: Result<String, Problem>,
    /// The opened file, unless it is standard input.
    pub(crate) opened: Option<Opened>,
}

impl Contents {
    /// Why the file must not be trusted: everybody could have written it.
    pub(crate) fn distrust(&self) -> Option<&security::Finding> {
        let is_meant = |finding: &&security::Finding| {
            finding.subject == Subject::File && finding.code == FindingCode::WorldWritable
        };
        self.opened.as_ref()?.findings.iter().find(is_meant)
    }
}

/// Reads a file, or standard input.
pub(crate) fn contents(path: &Path, source: &Source) -> Result<Contents, Failure> {
    let shown = path.display();
    let failed = |error: &io::Error| Failure::Read(format!("could not read `{shown}`: {}", reason(error)));
    if is_stdin(path) {
        let text = krontab::read(io::stdin().lock(), source).map_err(|error| failed(&error))?;
        return Ok(Contents { text, opened: None });
    }
    if path.is_dir() {
        return Err(Failure::Read(format!("expected a file, but `{shown}` is a directory")));
    }
    // A draft may be a link; who installs it copies what it points to.
    let trust = Trust { follow_links: true, ..Trust::current() };
    let mut opened = security::open(path, &trust).map_err(|error| failed(&error))?;
    let Some(file) = opened.file.take() else {
        let what = opened.findings.first().map_or("it is no file", |finding| &finding.message);
        return Err(Failure::Read(format!("could not read `{shown}`: {what}")));
    };
    let text = krontab::read(&file, source).map_err(|error| failed(&error))?;
    opened.file = Some(file);
    Ok(Contents { text, opened: Some(opened) })
}

/// Reads the text of a file that may be trusted.
pub(crate) fn text(path: &Path, source: &Source) -> Result<String, Failure> {
    let contents = contents(path, source)?;
    if let Some(finding) = contents.distrust() {
        return Err(Failure::Read(format!("{}: {}; {}", path.display(), finding.message, finding.help)));
    }
    contents.text.map_err(|problem| Failure::Read(format!("{}: {}", path.display(), problem.message())))
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
