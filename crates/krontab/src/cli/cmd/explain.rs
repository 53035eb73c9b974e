//! `krontab explain`: how the time of one period came about.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};
use jiff::Timestamp;
use kron_core::{Distribution, Job, SeedStrategy, WindowMode, decide};
use kron_schedule::{Dialect, Dst, Duration, Expr, Zone};
use krontab::Zones;
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{self, FormatArg, IdentityArgs, JobArgs};
use crate::cli::exit::Failure;
use crate::cli::view::{DecisionView, ProblemView, ScheduleView};
use crate::cli::{load, time};

/// Show how the time of a period was chosen: its window, its seed, its constraints
///
/// With --file, the period is the last one at or before --at. Without, there is no schedule: --at is
/// the nominal time itself, the job's name is its identity, and the flags say the rest.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// The name of the job
    #[arg(value_name = "JOB")]
    job: String,
    /// An instant, such as 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time::instant)]
    at: Timestamp,
    /// The krontab file that has the job; `-` is standard input
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    #[command(flatten)]
    identity: IdentityArgs,
    /// The length of the window, without a file
    #[arg(long, value_name = "DURATION", default_value = "1h", conflicts_with = "file")]
    #[arg(allow_hyphen_values = true)]
    window: Duration,
    /// Where the window lies, without a file
    #[arg(long, default_value = "after", value_parser = modes(), conflicts_with = "file")]
    mode: WindowMode,
    /// The distribution, without a file: uniform, or such as skewLate,shape=3
    #[arg(long, value_name = "DIST", default_value = "uniform", value_parser = distribution)]
    #[arg(conflicts_with = "file")]
    dist: Distribution,
    /// The seed strategy, without a file
    #[arg(long, value_name = "STRATEGY", default_value = "stable", value_parser = strategies())]
    #[arg(conflicts_with = "file")]
    seed: SeedStrategy,
    /// The salt, without a file
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, conflicts_with = "file")]
    salt: String,
    /// The time zone, without a file
    #[arg(long, value_name = "ZONE", conflicts_with = "file")]
    tz: Option<String>,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab explain backup --file jobs.kron --at 2026-03-01T12:00:00Z
  krontab explain backup --file jobs.kron --as /etc/krond.d/jobs --at 2026-03-01T12:00:00Z
  krontab explain prod/db-backup --at 2026-03-01T00:00:00Z --window 1h --dist skewEarly,shape=3

Exit codes: 0 explained, 1 job not found, 2 anything else.";

impl Explain {
    pub(crate) fn run(self, zones: &Zones) -> Result<Answer, Failure> {
        let format = self.format.format;
        let explained = match self.file {
            Some(_) => self.of_file(zones)?,
            None => self.of_flags(zones)?,
        };
        Ok(Answer::of(&explained, format))
    }

    fn of_file(self, zones: &Zones) -> Result<Explained, Failure> {
        let Explain { job, at, file, identity, .. } = self;
        let file = file.unwrap_or_default();
        let job = load::job(&JobArgs { job, file, identity }, zones)?;
        let warnings = job.warnings(at);
        let entry = job.entry;
        let nominal = entry.job.schedule().prev_at_or_before(at).ok_or_else(|| {
            Failure::Usage(format!("`{}` has no period at or before {}", entry.name, time::utc(at)))
        })?;
        let decision = decide(&entry.job, nominal);
        Ok(Explained {
            schedule: Some(ScheduleView::from(&entry.schedule)),
            decision: DecisionView::new(&entry.name, &entry.job, &decision),
            warnings,
        })
    }

    fn of_flags(self, zones: &Zones) -> Result<Explained, Failure> {
        // The identity can be said without a file, but where a file is cannot.
        IdentityArgs { identity: None, ..self.identity.clone() }.need_file()?;
        self.identity.check()?;
        let zone = zone(zones, self.tz.as_deref(), Dialect::Kron)?;
        // Some schedule is part of a job, but a decision does not ask for it.
        let schedule = Expr::parse("* * * * *", Dialect::Kron)
            .and_then(|expr| expr.compile(&zone, Dst::KRON))
            .expect("every minute is a schedule");
        let job = Job::builder(self.identity.identity.as_ref().unwrap_or(&self.job), schedule, zone)
            .window(self.mode, self.window)
            .distribution(self.dist)
            .seed(self.seed, self.salt)
            .build()
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let decision = DecisionView::new(&self.job, &job, &decide(&job, self.at));
        Ok(Explained { schedule: None, decision, warnings: Vec::new() })
    }
}

/// The zone of that name; UTC without one.
pub(crate) fn zone(zones: &Zones, name: Option<&str>, dialect: Dialect) -> Result<Zone, Failure> {
    let Some(name) = name else {
        return Ok(Zone::utc());
    };
    zones.find_in(name, dialect).map_err(|error| match error.help() {
        Some(help) => Failure::Usage(format!("{error}; {help}")),
        None => Failure::Usage(error.to_string()),
    })
}

fn modes() -> impl TypedValueParser<Value = WindowMode> {
    args::one_of([WindowMode::After, WindowMode::Around, WindowMode::Before].map(|mode| {
        let value = PossibleValue::new(mode.name());
        (if mode == WindowMode::Around { value.alias("center") } else { value }, mode)
    }))
}

fn strategies() -> impl TypedValueParser<Value = SeedStrategy> {
    let all = [SeedStrategy::Stable, SeedStrategy::Daily, SeedStrategy::Weekly];
    args::one_of(all.map(|strategy| (PossibleValue::new(strategy.name()), strategy)))
}

fn distribution(text: &str) -> Result<Distribution, String> {
    let mut pieces = text.split(',');
    let name = pieces.next().unwrap_or_default();
    let parameters: Option<Vec<(&str, &str)>> = pieces.map(|piece| piece.split_once('=')).collect();
    let parameters = parameters.ok_or("expected parameters such as `shape=3`")?;
    Distribution::parse(name, &parameters).map_err(|error| match error.help() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    })
}

/// A decision, and the schedule it belongs to, if there is one.
#[derive(Debug, Serialize)]
struct Explained {
    #[serde(flatten)]
    decision: DecisionView,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<ScheduleView>,
    /// What is legal about the job and perhaps a surprise.
    warnings: Vec<ProblemView>,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "job: {}", self.decision.job)?;
        writeln!(f, "identity: {}", self.decision.identity)?;
        if let Some(schedule) = &self.schedule {
            writeln!(f, "schedule: {schedule}")?;
        }
        writeln!(f, "timezone: {}", self.decision.timezone)?;
        self.decision.fmt(f)?;
        self.warnings.iter().try_for_each(|warning| writeln!(f, "\n{}", warning.rendered))
    }
}
