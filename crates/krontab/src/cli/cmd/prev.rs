//! `krontab prev`: when a job ran last, if it ran.

use clap::Args;
use jiff::Timestamp;
use krontab::Zones;

use super::next::Periods;
use crate::cli::answer::Answer;
use crate::cli::args::{AtArg, CountArg, FormatArg, JobArgs};
use crate::cli::exit::Failure;
use crate::cli::load;

/// Show the last periods of a job, the newest first
///
/// Periods are counted by their nominal times, at or before --at. What was done about them is in the
/// state of krond, and not asked for here.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Prev {
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
  krontab prev backup --file jobs.kron
  krontab prev backup --file jobs.kron --count 10 --at 2026-03-01T00:00:00Z

Exit codes: 0 shown, 1 job not found, 2 anything else.";

impl Prev {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let count = self.count.get()?;
        let at = self.at.or_now();
        let entry = load::job(&self.job, zones)?.entry;
        let nominals: Vec<Timestamp> = entry.job.schedule().occurrences_before(at).take(count).collect();
        let first = nominals.last().copied().unwrap_or(at);
        Ok(Answer::of(&Periods::new(&entry, at, &nominals, (first, at)), self.format.format))
    }
}
