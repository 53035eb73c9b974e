//! `krontab diff`: what two files fire differently.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use clap::Args;
use kron_core::Job;
use krontab::Zones;
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{CountArg, FormatArg};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::Fleet;
use crate::cli::load;
use crate::cli::simulate::count;
use crate::cli::span::{Span, SpanArgs, timestamp};
use crate::cli::time;
use crate::cli::view::shown;

/// Show, job by job, which periods of two krontabs fire differently, and when
///
/// Jobs are compared by their names. Chosen times follow from where a file is installed, so both are taken
/// to be where OLD is, unless --as says otherwise: only what the change of the text does is shown.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Diff {
    /// The krontab file, or the directory of them, as it was; `-` is standard input
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// As it is to be
    #[arg(value_name = "NEW")]
    new: PathBuf,
    #[command(flatten)]
    span: SpanArgs,
    /// Answer as if both were installed at this path: chosen times depend on it
    #[arg(long = "as", value_name = "PATH")]
    installed_as: Option<PathBuf>,
    /// How many differences to list of each job, at most 10080
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    count: i64,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab diff /etc/krond.d/jobs jobs.kron
  krontab diff old.kron new.kron --as /etc/krond.d/jobs --from 2026-03-01T00:00:00Z --to 2027-03-01T00:00:00Z
  krontab diff /etc/krond.d staging --count 3 --format json

Exit codes: 0 they fire at the same times, 1 they do not, 2 anything else.";

/// The most periods of one job that are compared.
const PERIODS_MAX: u64 = 2_000_000;

impl Diff {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let most = CountArg { count: self.count }.get()?;
        let span = self.span.get()?;
        if load::is_stdin(&self.old) && load::is_stdin(&self.new) {
            return Err(Failure::Usage("standard input can be OLD or NEW, and not both".into()));
        }
        let place = match &self.installed_as {
            Some(path) => path.clone(),
            None if load::is_stdin(&self.old) => load::absolute(&self.new)?,
            None => load::absolute(&self.old)?,
        };
        let (old, new) =
            (Fleet::load(&self.old, Some(&place), zones)?, Fleet::load(&self.new, Some(&place), zones)?);
        let (before, after) = (named(&old, span)?, named(&new, span)?);
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let (mut jobs, mut same) = (Vec::new(), 0);
        for name in names {
            let (old, new) = (before.get(name), after.get(name));
            let view = JobDiff::new(name, old.copied(), new.copied(), span, most);
            match view.is_same() {
                true => same += 1,
                false => jobs.push(view),
            }
        }
        let exit = if jobs.is_empty() { Exit::Success } else { Exit::No };
        let difference = Difference {
            old: shown(&self.old),
            new: shown(&self.new),
            installed_as: shown(&place),
            from: time::utc(span.start()),
            to: time::utc(span.end()),
            same,
            jobs,
        };
        Ok(Answer::of(&difference, self.format.format).ending(exit))
    }
}

/// The jobs of files by name, each of a size that can be compared.
fn named(fleet: &Fleet, span: Span) -> Result<BTreeMap<String, &Job>, Failure> {
    let mut jobs = BTreeMap::new();
    for (file, entry) in fleet.entries() {
        let most = count::most_periods(&[&entry.job], span);
        if most > PERIODS_MAX {
            return Err(Failure::Usage(format!(
                "{} may have {most} periods there, and at most {PERIODS_MAX} are compared; choose an earlier --to",
                fleet.label(file, entry)
            )));
        }
        jobs.insert(fleet.label(file, entry), &entry.job);
    }
    count::check(&jobs.values().copied().collect::<Vec<_>>(), span).map_err(Failure::Usage)?;
    Ok(jobs)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Difference {
    old: String,
    new: String,
    installed_as: String,
    from: String,
    to: String,
    /// How many jobs fire at the same times.
    same: usize,
    jobs: Vec<JobDiff>,
}

/// What becomes of a job.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JobDiff {
    job: String,
    /// `added`, `removed` or `changed`.
    status: &'static str,
    /// Starts that are no more, that are new, and that are at another time of the same period.
    removed: usize,
    added: usize,
    moved: usize,
    /// The first of them, in order.
    changes: Vec<Change>,
}

#[derive(Debug, Serialize)]
struct Change {
    /// The period, by its nominal time.
    period: String,
    /// When it started, and when it will; null where it does not.
    old: Option<String>,
    new: Option<String>,
}

impl JobDiff {
    fn new(name: &str, old: Option<&Job>, new: Option<&Job>, span: Span, most: usize) -> JobDiff {
        let (before, after) = (starts(old, span), starts(new, span));
        let mut diff = JobDiff {
            job: name.to_owned(),
            status: match (old, new) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            },
            removed: 0,
            added: 0,
            moved: 0,
            changes: Vec::new(),
        };
        let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
        loop {
            // Both are in the order of their periods.
            let period = match (old.peek(), new.peek()) {
                (None, None) => break,
                (Some((period, _)), None) | (None, Some((period, _))) => *period,
                (Some((first, _)), Some((second, _))) => *first.min(second),
            };
            let old = old.next_if(|(at, _)| *at == period).map(|(_, chosen)| *chosen);
            let new = new.next_if(|(at, _)| *at == period).map(|(_, chosen)| *chosen);
            match (old, new) {
                (Some(old), Some(new)) if old == new => continue,
                (Some(_), Some(_)) => diff.moved += 1,
                (Some(_), None) => diff.removed += 1,
                (None, _) => diff.added += 1,
            }
            if diff.changes.len() < most {
                let utc = |second: i64| time::utc(timestamp(second));
                diff.changes.push(Change { period: utc(period), old: old.map(utc), new: new.map(utc) });
            }
        }
        diff
    }

    fn is_same(&self) -> bool {
        self.status == "changed" && self.removed + self.added + self.moved == 0
    }
}

/// The periods of a job that start in a span: nominal and chosen times.
fn starts(job: Option<&Job>, span: Span) -> Vec<(i64, i64)> {
    let mut found = Vec::new();
    if let Some(job) = job {
        count::each_period(job, span, |nominal, chosen| {
            found.extend(chosen.filter(|chosen| span.contains(*chosen)).map(|chosen| (nominal, chosen)));
        });
    }
    found
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "from {} to {}, as {}", self.from, self.to, self.installed_as)?;
        writeln!(f, "jobs that fire at the same times: {}", self.same)?;
        for job in &self.jobs {
            let JobDiff { status, removed, added, moved, changes, .. } = job;
            writeln!(
                f,
                "\n{} ({status}): {removed} starts less, {added} more, {moved} at another time",
                job.job
            )?;
            for Change { period, old, new } in changes {
                match (old, new) {
                    (Some(old), Some(new)) => writeln!(f, "~ {old} -> {new}  of period {period}")?,
                    (Some(old), None) => writeln!(f, "- {old}")?,
                    (None, new) => writeln!(f, "+ {}", new.as_deref().unwrap_or_default())?,
                }
            }
            match (removed + added + moved).saturating_sub(changes.len()) {
                0 => {}
                more => writeln!(f, "  and {more} more")?,
            }
        }
        Ok(())
    }
}
