//! `krontab next`: when a job runs next.

use std::fmt;

use clap::Args;
use jiff::Timestamp;
use kron_core::decide;
use krontab::{Entry, Zones};
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{AtArg, CountArg, FormatArg, JobArgs};
use crate::cli::exit::Failure;
use crate::cli::view::{DecisionView, ScheduleView, SkippedView};
use crate::cli::{load, time};

/// Show the next periods of a job, and when in their windows they run
///
/// Periods are counted by their nominal times, strictly after --at. Local times that a change of
/// clocks leaves out are told below them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Next {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    at: AtArg,
    #[command(flatten)]
    count: CountArg,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab next backup --file jobs.kron
  krontab next backup --file jobs.kron --count 10 --at 2026-03-01T00:00:00Z
  krontab next backup --file draft --as /etc/krond.d/jobs --format json

Exit codes: 0 shown, 1 job not found, 2 anything else.";

impl Next {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let count = self.count.get()?;
        let at = self.at.or_now();
        let entry = load::job(&self.job, zones)?.entry;
        let nominals: Vec<Timestamp> = entry.job.schedule().occurrences_after(at).take(count).collect();
        let last = nominals.last().copied().unwrap_or(at);
        Ok(Answer::of(&Periods::new(&entry, at, &nominals, (at, last)), self.format.format))
    }
}

/// Some periods of a job.
#[derive(Debug, Serialize)]
pub(crate) struct Periods {
    job: String,
    identity: String,
    schedule: ScheduleView,
    timezone: String,
    suspended: bool,
    count: usize,
    anchor: String,
    decisions: Vec<DecisionView>,
    skipped: Vec<SkippedView>,
}

impl Periods {
    /// The periods with those nominal times, and what was left out in that range of time.
    pub(crate) fn new(
        entry: &Entry,
        anchor: Timestamp,
        nominals: &[Timestamp],
        (after, through): (Timestamp, Timestamp),
    ) -> Periods {
        let job = &entry.job;
        let view = |nominal: &Timestamp| DecisionView::new(&entry.name, job, &decide(job, *nominal));
        Periods {
            job: entry.name.clone(),
            identity: entry.identity().to_owned(),
            schedule: ScheduleView::from(&entry.schedule),
            timezone: entry.zone_name().to_owned(),
            suspended: job.policy().suspend,
            count: nominals.len(),
            anchor: time::utc(anchor),
            decisions: nominals.iter().map(view).collect(),
            skipped: SkippedView::between(job.schedule(), job.zone(), after, through),
        }
    }
}

impl fmt::Display for Periods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "job: {}", self.job)?;
        writeln!(f, "identity: {}", self.identity)?;
        writeln!(f, "schedule: {}", self.schedule)?;
        writeln!(f, "timezone: {}", self.timezone)?;
        if self.suspended {
            writeln!(f, "suspended: it does not run until `suspend=true` is taken away")?;
        }
        writeln!(f, "anchor: {}", self.anchor)?;
        for (decision, number) in self.decisions.iter().zip(1..) {
            writeln!(f, "{number}. {}", decision.line())?;
        }
        if self.decisions.is_empty() {
            writeln!(f, "there are no such periods")?;
        }
        for skipped in &self.skipped {
            writeln!(f, "skipped: {skipped}")?;
        }
        Ok(())
    }
}
