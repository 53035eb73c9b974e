//! `krontab list`: what is installed, and when it runs next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use krontab::{Directory, Zones};
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{AtArg, FormatArg};
use crate::cli::exit::{Exit, Failure};
use crate::cli::view::{JobView, ProblemView, shown};
use crate::cli::{config, periods, time};

/// List the installed jobs, and when each runs next
///
/// Files are read and checked as krond does, which refuses a whole file for one error in it, or because
/// others could have written it. What it refuses is told, and whoever asks is taken for its user.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct List {
    /// The directory [default: /etc/krond.d for root, otherwise krond in `XDG_CONFIG_HOME` or ~/.config]
    #[arg(long, value_name = "DIR")]
    config: Option<PathBuf>,
    #[command(flatten)]
    at: AtArg,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab list
  krontab list --config /etc/krond.d --at 2026-03-01T00:00:00Z --format json

Exit codes: 0 listed, 1 listed but a file or the directory is invalid, 2 anything else.";

impl List {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let (path, directory) = config::open(self.config.as_deref())?;
        let at = self.at.or_now();
        let mut listing = Listing::new(&path, at);
        if let Some(directory) = directory {
            listing.directory_exists = true;
            listing.read(&directory, at, zones).map_err(|error| config::unreadable(&path, &error))?;
        }
        listing.valid = listing.invalid.is_empty();
        let exit = if listing.valid { Exit::Success } else { Exit::No };
        let answer = Answer::of(&listing, self.format.format).ending(exit);
        let remarks = listing.invalid.iter().map(|invalid| invalid.remark(&listing.directory));
        Ok(remarks.fold(answer, Answer::remark))
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    directory: String,
    directory_exists: bool,
    at: String,
    /// Whether krond would run all of it.
    valid: bool,
    jobs: Vec<JobView>,
    /// The files that krond refuses, and why; the directory itself, if it refuses that.
    invalid: Vec<InvalidView>,
}

#[derive(Debug, Serialize)]
struct InvalidView {
    file: String,
    errors: Vec<ProblemView>,
}

impl Listing {
    fn new(directory: &Path, at: Timestamp) -> Listing {
        Listing {
            directory: directory.to_string_lossy().into_owned(),
            directory_exists: false,
            at: time::utc(at),
            valid: true,
            jobs: Vec::new(),
            invalid: Vec::new(),
        }
    }

    fn read(&mut self, directory: &Directory, at: Timestamp, zones: &Zones) -> io::Result<()> {
        let findings = directory.findings().iter().map(ProblemView::from).collect();
        self.refuse(directory.path(), findings);
        let mut krontabs = Vec::new();
        for (path, loaded) in directory.krontabs(zones)? {
            match loaded {
                Ok(loaded) => {
                    self.refuse(&path, ProblemView::of(&loaded).0);
                    krontabs.push((path, loaded.parsed.entries));
                }
                Err(error) => self.refuse(&path, vec![ProblemView::unreadable(&path, &error)]),
            }
        }
        let patience = periods::patience(krontabs.iter().map(|(_, entries)| entries.len()).sum());
        for (path, entries) in &krontabs {
            let file = path.to_string_lossy();
            let refused = self.is_refused(&file);
            for entry in entries {
                let runs = !refused && !entry.job.policy().suspend;
                let next = runs.then(|| periods::next_run(&entry.job, at, patience));
                self.jobs.push(JobView::new(&file, entry, next));
            }
        }
        Ok(())
    }

    /// Whether nothing of that file runs, for its own sake or for its directory's.
    fn is_refused(&self, file: &str) -> bool {
        self.invalid.iter().any(|invalid| invalid.file == file || invalid.file == self.directory)
    }

    fn refuse(&mut self, file: &Path, errors: Vec<ProblemView>) {
        if !errors.is_empty() {
            self.invalid.push(InvalidView { file: shown(file), errors });
        }
    }
}

impl InvalidView {
    /// `warning: FILE is invalid, so none of it runs: line 2: message, and 3 more errors; see …`
    fn remark(&self, directory: &str) -> String {
        let count: u32 = self.errors.iter().map(|error| error.count).sum();
        let more = match count.saturating_sub(1) {
            0 => String::new(),
            1 => ", and 1 more error".to_owned(),
            more => format!(", and {more} more errors"),
        };
        let first = self.errors.first().map(ProblemView::line).unwrap_or_default();
        let first = first.trim_start_matches("- ");
        let file = &self.file;
        format!(
            "warning: {file} is invalid, so none of it runs: {first}{more}; see `krontab lint --file {directory}`"
        )
    }
}

/// The day of an instant in UTC.
fn day(utc: &str) -> &str {
    utc.split('T').next().unwrap_or(utc)
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.directory_exists {
            return writeln!(f, "no jobs: there is no directory {}", self.directory);
        }
        if self.jobs.is_empty() {
            return writeln!(f, "no jobs in {}", self.directory);
        }
        let row = |job: &JobView| {
            let next = match &job.next {
                Some(next) => next.utc.clone(),
                None if self.is_refused(&job.file) => "refused".to_owned(),
                None if job.suspended => "suspended".to_owned(),
                None => match &job.none_until {
                    Some(until) => format!("none found until {}", day(until)),
                    None => "never".to_owned(),
                },
            };
            let zone = match job.timezone.as_str() {
                "UTC" => String::new(),
                zone => format!(", {zone}"),
            };
            let sentence = format!("{}{zone}", job.schedule.description);
            let schedule = match job.schedule.kind {
                "phrase" => format!("\"{}\"", job.schedule.text),
                _ => job.schedule.text.clone(),
            };
            let file = Path::new(&job.file).file_name().unwrap_or_default().to_string_lossy().into_owned();
            [job.name.clone(), file, next, schedule, sentence]
        };
        let mut rows = vec![["JOB", "FILE", "NEXT RUN", "SCHEDULE", "DESCRIPTION"].map(str::to_owned)];
        rows.extend(self.jobs.iter().map(row));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let (names, files, nexts, schedules) = (width(0), width(1), width(2), width(3));
        for [name, file, next, schedule, sentence] in &rows {
            writeln!(f, "{name:names$}  {file:files$}  {next:nexts$}  {schedule:schedules$}  {sentence}")?;
        }
        Ok(())
    }
}
