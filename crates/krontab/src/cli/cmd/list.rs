//! `krontab list`: what is installed, and when it runs next.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use krontab::Zones;
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{AtArg, FormatArg};
use crate::cli::exit::{Exit, Failure};
use crate::cli::view::JobView;
use crate::cli::{config, periods, time};

/// List the installed jobs, and when each runs next
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct List {
    /// The directory [default: /etc/krond.d for root, otherwise ~/.config/krond]
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

Exit codes: 0 listed, 1 listed but a file is invalid, 2 anything else.";

impl List {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let directory = config::directory(self.config.as_deref())?;
        let at = self.at.or_now();
        let (krontabs, unreadable) = config::krontabs(&directory, zones)?;
        let mut jobs = Vec::new();
        let mut remarks =
            unreadable.into_iter().map(|message| format!("warning: {message}")).collect::<Vec<_>>();
        for krontab in &krontabs {
            let file = krontab.path.to_string_lossy();
            for entry in &krontab.parsed.entries {
                let suspended = entry.job.policy().suspend;
                let next = (!suspended).then(|| periods::next_run(&entry.job, at)).flatten();
                jobs.push(JobView::new(&file, entry, next.and_then(|next| next.chosen())));
            }
            let errors = krontab.parsed.error_count();
            if errors > 0 {
                let plural = if errors == 1 { "" } else { "s" };
                remarks.push(format!(
                    "warning: {file} is invalid: {errors} error{plural}, so none of it runs; see `krontab lint --file {file}`"
                ));
            }
        }
        let valid = remarks.is_empty();
        let listing =
            Listing { directory: directory.to_string_lossy().into_owned(), at: time::utc(at), valid, jobs };
        let mut answer = Answer::of(&listing, self.format.format);
        for remark in remarks {
            answer = answer.remark(remark);
        }
        Ok(answer.ending(if valid { Exit::Success } else { Exit::No }))
    }
}

#[derive(Debug, Serialize)]
struct Listing {
    directory: String,
    at: String,
    valid: bool,
    jobs: Vec<JobView>,
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.jobs.is_empty() {
            return writeln!(f, "no jobs in {}", self.directory);
        }
        let row = |job: &JobView| {
            let next = match (&job.next, job.suspended) {
                (_, true) => "suspended".to_owned(),
                (Some(next), false) => next.utc.clone(),
                (None, false) => "never".to_owned(),
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
            [job.name.clone(), next, schedule, sentence]
        };
        let mut rows = vec![["JOB", "NEXT RUN", "SCHEDULE", "DESCRIPTION"].map(str::to_owned)];
        rows.extend(self.jobs.iter().map(row));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let (first, second, third) = (width(0), width(1), width(2));
        for [name, next, schedule, sentence] in &rows {
            writeln!(f, "{name:first$}  {next:second$}  {schedule:third$}  {sentence}")?;
        }
        Ok(())
    }
}
