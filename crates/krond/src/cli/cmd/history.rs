//! `krond history`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;

use kron_core::PeriodId;
use krond::console::exit_words;
use krond::directory::Directory;
use krond::outcomes;
use krond::view::{RecordView, WhatView};

use super::why::words;
use crate::cli::Format;
use crate::cli::answer::{Answer, Failure};
use crate::cli::place::{Krontabs, Place, ambiguous};

/// Lists what became of a job's periods and runs, the latest last. It reads the records, so krond need not run.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  krond history backup\n  krond history backup --count 100 --format json\n\n\
                        Exit codes: 0 done; 1 job not found; 2 anything else."
)]
pub(crate) struct Args {
    /// The name or the identity of the job. One that is no longer configured is found by its records
    job: String,
    /// How many lines, the latest
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    #[command(flatten)]
    krontabs: Krontabs,
    #[command(flatten)]
    place: Place,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let settings = self.place.settings()?;
        let job = self.job.as_str();
        let found = self.krontabs.find_all(job, &settings);
        let configured: Vec<&str> = found.iter().flatten().map(|entry| entry.identity()).collect();
        // One that is no longer configured is known by its records.
        let of_name = |identity: &str| identity.rsplit_once(':').is_some_and(|(_, name)| name == job);
        let records = records(&settings.state_dir, |identity| match configured.as_slice() {
            [] => identity == job || of_name(identity),
            configured => configured.contains(&identity),
        })?;
        let recorded = records.iter().map(|record| record.identity.as_str());
        let identities: BTreeSet<&str> = recorded.chain(configured.iter().copied()).collect();
        if identities.len() > 1 {
            return Err(ambiguous(job, identities.into_iter()));
        }
        if identities.is_empty() {
            found?;
            return Err(Failure::No(format!("job not found: {job}")));
        }
        let latest = &records[records.len().saturating_sub(self.count as usize)..];
        Ok(Answer::of(&latest, self.format, || text(latest)))
    }
}

/// All records of the wanted jobs, the oldest first. Where no krond has ever been, there are none.
pub(crate) fn records(
    state_dir: &Path,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<RecordView>, Failure> {
    match state_dir.join(outcomes::DIRECTORY).metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        _ => {}
    }
    let directory = Directory::open(state_dir).map_err(|error| Failure::Usage(error.to_string()))?;
    let read = directory.inner(outcomes::DIRECTORY).and_then(|inner| outcomes::read(&inner, is_wanted));
    read.map_err(|error| Failure::Usage(format!("could not read the records: {error}")))
}

fn text(records: &[RecordView]) -> String {
    if records.is_empty() {
        return "nothing is recorded of it yet\n".into();
    }
    let mut text = format!("{:20}  {:21}  WHAT\n", "AT (UTC)", "PERIOD OR RUN");
    for record in records {
        let (run, what, how) = cells(&record.what);
        let at = PeriodId::new(record.at).to_string();
        let _ = writeln!(text, "{}", format!("{at:20}  {run:21}  {what:13}  {how}").trim_end());
    }
    text
}

/// What happened, in a line.
pub(crate) fn sentence(what: &WhatView) -> String {
    let (_, what, how) = cells(what);
    format!("{what:13}  {how}").trim_end().to_owned()
}

/// To what it happened, what, and how.
fn cells(what: &WhatView) -> (&str, &str, String) {
    match what {
        WhatView::Outcome { period, outcome, reason, chosen, pid, .. } => {
            let chosen = chosen.map(|chosen| chosen.to_string()).filter(|chosen| chosen != period);
            let chosen = chosen.map(|chosen| format!("chosen {chosen}"));
            let pid = pid.map(|pid| format!("pid {pid}"));
            let why = (reason != "started").then(|| words(reason).to_owned());
            let how: Vec<String> = [why, pid, chosen].into_iter().flatten().collect();
            (period, outcome, how.join(", "))
        }
        WhatView::Passed { outcome, reason, first, last, count, at_least } => {
            let at_least = if *at_least { "at least " } else { "" };
            let periods = if *count == 1 { "period" } else { "periods" };
            (first, outcome, format!("{at_least}{count} {periods} up to {last}: {}", words(reason)))
        }
        WhatView::Manual { run, pid } => (run, "started", format!("by hand, pid {pid}")),
        WhatView::Completed { run, exit, started_at, ended_at, .. } => {
            let took = ended_at.duration_since(*started_at).as_secs_f64();
            match exit {
                Some(code) => (run, "ended", format!("{} after {took:.3} s", exit_words(*code))),
                None => (run, "ended", "nobody saw how".into()),
            }
        }
    }
}
