//! `krontab lint`: is this file valid, and what about it is surely a mistake?

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use krontab::security::Trust;
use krontab::{Directory, Loaded, SourceError, Zones};
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{AtArg, Format, FormatArg, IdentityArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::view::{ProblemView, shown};
use crate::cli::{config, load, periods};

/// Check krontab files, and point at every mistake
///
/// The text is checked by the code that krond uses. So is, of a directory, who can change it and its
/// files, and that none of them is a link; whoever asks is taken for the user of krond. A file named by
/// itself is a draft, of which only this is checked: that not everybody can write it. Warnings do not make
/// a file invalid; one about dates lists those that come next after --at, and whether constraints leave
/// anything to run is looked at from there on.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Lint {
    /// A krontab file, or a directory of them; `-` is standard input. May be repeated
    #[arg(long = "file", value_name = "PATH", required = true)]
    files: Vec<PathBuf>,
    /// Check the file, or the files of the directory, as if installed at this path: which phrases fall
    /// together depends on it
    #[arg(long = "as", value_name = "PATH")]
    installed_as: Option<PathBuf>,
    #[command(flatten)]
    at: AtArg,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab lint --file jobs.kron
  krontab lint --file /etc/krond.d --format json
  krontab lint --file draft --as /etc/krond.d
  krontab lint --file - --as /etc/krond.d/jobs < jobs.kron

Exit codes: 0 valid, 1 invalid, 2 wrong arguments, or a PATH that cannot be read.";

impl Lint {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        if self.installed_as.is_some() && self.files.len() > 1 {
            let message = "--as is about one file or directory: write one --file PATH";
            return Err(Failure::Usage(message.into()));
        }
        let at = self.at.or_now();
        let mut reports = Vec::new();
        for path in &self.files {
            match path.is_dir() {
                true => self.check_directory(path, at, zones, &mut reports)?,
                false => {
                    let identity = IdentityArgs { installed_as: self.installed_as.clone(), identity: None };
                    let source = load::source(path, &identity)?;
                    let loaded = load::file(path, &source, zones)?;
                    let patience = periods::patience(loaded.parsed.entries.len());
                    reports.push(Report::new(loaded, at, patience));
                }
            }
        }
        let valid = reports.iter().all(|report| report.valid);
        let answer = match (self.format.format, reports.as_slice()) {
            // Who asks about one file gets its report; who asks about several gets a list.
            (format, [report]) if self.files.len() == 1 && !self.files[0].is_dir() => {
                Answer::of(report, format)
            }
            (Format::Text, []) => Answer::text("no krontab files there\n"),
            (format, _) => Answer::of(&Reports { valid, files: reports }, format),
        };
        Ok(answer.ending(if valid { Exit::Success } else { Exit::No }))
    }

    /// Reports on a directory, if there is something to say about it, and on each of its files.
    fn check_directory(
        &self,
        path: &Path,
        at: Timestamp,
        zones: &Zones,
        reports: &mut Vec<Report>,
    ) -> Result<(), Failure> {
        let path = load::absolute(path)?;
        let failed = |error: io::Error| config::unreadable(&path, &error);
        let mut directory = Directory::open(&path, Trust::current()).map_err(failed)?;
        if let Some(installed) = &self.installed_as {
            let unfit = |error: SourceError| Failure::Usage(format!("--as: {error}"));
            directory = directory.installed_as(installed).map_err(unfit)?;
        }
        if !directory.findings().is_empty() {
            let errors = directory.findings().iter().map(ProblemView::from).collect();
            reports.push(Report::without_jobs(&path, errors));
        }
        let mut files: Vec<_> = directory.krontabs(zones).map_err(failed)?.collect();
        let mut readable: Vec<&mut Loaded> =
            files.iter_mut().filter_map(|(_, loaded)| loaded.as_mut().ok()).collect();
        krontab::join_clusters(&mut readable);
        let patience = periods::patience(readable.iter().map(|loaded| loaded.parsed.entries.len()).sum());
        for (path, loaded) in files {
            reports.push(match loaded {
                Ok(loaded) => Report::new(loaded, at, patience),
                Err(error) => Report::without_jobs(&path, vec![ProblemView::unreadable(&path, &error)]),
            });
        }
        Ok(())
    }
}

/// What is wrong with one file, or with a directory itself.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    valid: bool,
    jobs: usize,
    errors: Vec<ProblemView>,
    warnings: Vec<ProblemView>,
}

#[derive(Debug, Serialize)]
struct Reports {
    valid: bool,
    files: Vec<Report>,
}

impl Report {
    /// Looks at as many windows without a run of every job as there is patience for.
    fn new(mut loaded: Loaded, at: Timestamp, patience: usize) -> Report {
        load::warn_unschedulable(&mut loaded, at, patience);
        let (errors, warnings) = ProblemView::of(&loaded);
        let entries = &loaded.parsed.entries;
        Report {
            file: shown(&loaded.path),
            valid: errors.is_empty(),
            jobs: entries.len(),
            errors,
            warnings: warnings.into_iter().map(|warning| warning.with_dates(entries, at)).collect(),
        }
    }

    fn without_jobs(path: &Path, errors: Vec<ProblemView>) -> Report {
        Report { file: shown(path), valid: false, jobs: 0, errors, warnings: Vec::new() }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", if self.valid { "OK" } else { "INVALID" }, self.file)?;
        for error in &self.errors {
            writeln!(f, "{}", error.line())?;
        }
        for problem in self.errors.iter().chain(&self.warnings) {
            writeln!(f, "\n{}", problem.rendered)?;
        }
        Ok(())
    }
}

impl fmt::Display for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, report) in self.files.iter().enumerate() {
            let after_details = index > 0 && !self.files[index - 1].is_clean();
            write!(f, "{}{report}", if after_details { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl Report {
    fn is_clean(&self) -> bool {
        self.errors.is_empty() && self.warnings.is_empty()
    }
}
