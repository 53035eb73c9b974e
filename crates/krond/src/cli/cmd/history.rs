//! `krond history`.

use std::fmt::Write as _;

use jiff::Timestamp;
use krond::directory::Directory;
use krond::outcomes;
use krond::view::{RecordView, WhatView};

use crate::cli::Format;
use crate::cli::answer::{Answer, Failure};
use crate::cli::place::{Place, find_job};

/// Lists what became of a job's periods and runs, the latest last. It reads the records, so krond need not run.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  krond history backup\n  krond history backup --count 100 --format json\n\n\
                        Exit codes: 0 done; 1 job not found; 2 anything else."
)]
pub(crate) struct Args {
    /// The name or the identity of the job. One that is no longer configured is found by its identity
    job: String,
    /// How many lines, the latest
    #[arg(long, default_value_t = 20, value_name = "N")]
    count: usize,
    #[command(flatten)]
    place: Place,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let settings = self.place.settings()?;
        let found = find_job(&settings, &self.job);
        let identity = found.as_ref().map_or(self.job.as_str(), |entry| entry.identity());
        let records = records(&settings.state_dir, identity)?;
        if records.is_empty() {
            // Nobody knows it, or nothing has happened to it yet.
            found?;
        }
        let latest = &records[records.len().saturating_sub(self.count)..];
        Ok(Answer::of(&latest, self.format, || text(latest)))
    }
}

/// All records of a job, the oldest first.
pub(crate) fn records(state_dir: &std::path::Path, identity: &str) -> Result<Vec<RecordView>, Failure> {
    let directory = Directory::open(state_dir).map_err(|error| Failure::Usage(error.to_string()))?;
    let read = directory.inner(outcomes::DIRECTORY).and_then(|inner| outcomes::read(&inner, identity));
    read.map_err(|error| Failure::Usage(format!("could not read the records: {error}")))
}

fn text(records: &[RecordView]) -> String {
    let mut text = String::new();
    for record in records {
        let _ = writeln!(text, "{}  {}", second(record.at), sentence(&record.what));
    }
    text
}

/// What happened, in a line.
pub(crate) fn sentence(what: &WhatView) -> String {
    match what {
        WhatView::Outcome { period, outcome, reason, chosen, pid, .. } => {
            let chosen = chosen.map_or_else(String::new, |chosen| format!(", chosen {chosen}"));
            let pid = pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
            format!("{period}: {outcome} ({reason}{chosen}{pid})")
        }
        WhatView::Passed { outcome, reason, first, last, count, at_least } => {
            let at_least = if *at_least { "at least " } else { "" };
            format!("{first} to {last}: {at_least}{count} periods {outcome} ({reason})")
        }
        WhatView::Manual { run, pid } => format!("{run}: started by hand (pid {pid})"),
        WhatView::Completed { run, exit, started_at, ended_at, .. } => {
            let took = ended_at.duration_since(*started_at).as_secs_f64();
            match exit {
                Some(code) => format!("{run}: ended with exit code {code} after {took:.3} s"),
                None => format!("{run}: ended, and nobody saw how"),
            }
        }
    }
}

fn second(at: Timestamp) -> String {
    kron_core::PeriodId::new(at).to_string()
}
