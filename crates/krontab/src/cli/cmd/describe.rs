//! `krontab describe`: what an expression means, in words and in dates.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};
use jiff::Timestamp;
use kron_schedule::fuzzy::{Extensions, Phrase};
use kron_schedule::{Dialect, Expr, Schedule, Warning, WarningKind, Zone};
use krontab::{Severity, Zones};
use serde::Serialize;

use super::explain::zone;
use crate::cli::answer::Answer;
use crate::cli::args::{self, AtArg, FormatArg, IdentityArgs, JobArgs};
use crate::cli::exit::Failure;
use crate::cli::view::{Instant, ProblemView, SkippedView};
use crate::cli::{load, time};

/// Say in a sentence what a cron expression means, and when it occurs next
///
/// Without --file it is about an expression; with --file, about the job of that name. Times are
/// nominal: where in its window a job runs is for `krontab next` to say.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Describe {
    /// A cron expression of at most 1024 bytes, in quotes so that the shell leaves its asterisks alone, or
    /// the name of a job
    #[arg(value_name = "EXPR|JOB", required = true)]
    words: Vec<String>,
    /// The cron dialect of the expression
    #[arg(long, default_value = "kron", value_parser = dialects(), conflicts_with = "file")]
    dialect: Dialect,
    /// The time zone of the expression, such as Europe/Paris [default: UTC]
    #[arg(long, value_name = "ZONE", conflicts_with = "file")]
    tz: Option<String>,
    /// How many occurrences to list, at most 10080
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true)]
    next: i64,
    #[command(flatten)]
    at: AtArg,
    /// A krontab file to look for a job in; `-` is standard input
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    #[command(flatten)]
    identity: IdentityArgs,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab describe '30 9 * * MON-FRI'
  krontab describe '30 2 * * *' --tz America/New_York --next 5 --at 2026-03-06T00:00:00Z
  krontab describe '0 0 12 L * *' --dialect ojs
  krontab describe backup --file jobs.kron

Exit codes: 0 described, 1 job not found, 2 anything else.";

impl Describe {
    pub(crate) fn run(self, zones: &Zones) -> Result<Answer, Failure> {
        let format = self.format.format;
        let description = match self.file {
            Some(_) => self.of_job(zones)?,
            None => self.of_expression(zones)?,
        };
        Ok(Answer::of(&description, format))
    }

    fn of_expression(self, zones: &Zones) -> Result<Description, Failure> {
        self.identity.need_file()?;
        let text = self.words.join(" ");
        let zone = zone(zones, self.tz.as_deref(), self.dialect)?;
        let dst = self.dialect.default_dst();
        let expr = Expr::parse(&text, self.dialect)
            .map_err(|error| Failure::Expression(with_hint(error.render(&text), &self.words)))?;
        let schedule = expr.compile(&zone, dst).map_err(|error| Failure::Expression(error.render(&text)))?;
        let warnings: Vec<ProblemView> =
            expr.warnings().iter().map(|warning| remark(warning, &text)).collect();
        let upcoming = Upcoming::new(&schedule, &zone, self.at.or_now(), self.next)?;
        Ok(Description {
            job: None,
            identity: None,
            placeholder: None,
            description: expr.describe(),
            expression: text,
            canonical: expr.to_string(),
            dialect: self.dialect.name(),
            timezone: zone.name().to_owned(),
            dst: dst.to_string(),
            warnings,
            upcoming,
        })
    }

    fn of_job(self, zones: &Zones) -> Result<Description, Failure> {
        let Describe { words, file, identity, at, next, .. } = self;
        let args = JobArgs { job: words.join(" "), file: file.unwrap_or_default(), identity };
        let job = load::job(&args, zones)?;
        let warnings = job.warnings(at.or_now());
        let entry = job.entry;
        let upcoming = Upcoming::new(entry.job.schedule(), entry.job.zone(), at.or_now(), next)?;
        Ok(Description {
            description: entry.schedule.describe(),
            expression: entry.schedule.text().to_owned(),
            canonical: entry.schedule.resolved(),
            dialect: Dialect::Kron.name(),
            timezone: entry.zone_name().to_owned(),
            dst: entry.dst.to_string(),
            warnings,
            upcoming,
            identity: Some(entry.identity().to_owned()),
            placeholder: entry.schedule.placeholder(),
            job: Some(entry.name),
        })
    }
}

/// What a text is and what it means.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// The identity of the job that was used: chosen times and phrases depend on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    expression: String,
    /// What a phrase stands for before the identity gives it a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    placeholder: Option<String>,
    description: String,
    canonical: String,
    dialect: &'static str,
    timezone: String,
    dst: String,
    warnings: Vec<ProblemView>,
    #[serde(flatten)]
    upcoming: Upcoming,
}

/// Occurrences after an instant.
#[derive(Debug, Serialize)]
pub(crate) struct Upcoming {
    anchor: String,
    next: Vec<Instant>,
    skipped: Vec<SkippedView>,
}

impl Upcoming {
    pub(crate) fn new(
        schedule: &Schedule,
        zone: &Zone,
        at: Timestamp,
        count: i64,
    ) -> Result<Upcoming, Failure> {
        let count = args::count("--next", count)?;
        let next: Vec<_> = schedule.occurrences_after(at).take(count).collect();
        let last = next.last().copied().unwrap_or(at);
        Ok(Upcoming {
            anchor: time::utc(at),
            next: next.into_iter().map(|next| Instant::new(next, zone)).collect(),
            skipped: SkippedView::between(schedule, zone, at, last),
        })
    }
}

impl fmt::Display for Upcoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.next.is_empty() {
            true => writeln!(f, "nothing comes after {}", self.anchor)?,
            false => writeln!(f, "next after {}:", self.anchor)?,
        }
        for instant in &self.next {
            writeln!(f, "  {instant}")?;
        }
        for skipped in &self.skipped {
            writeln!(f, "skipped: {skipped}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.description)?;
        if let Some(job) = &self.job {
            writeln!(f, "job: {job}")?;
        }
        if let Some(identity) = &self.identity {
            writeln!(f, "identity: {identity}")?;
        }
        match &self.placeholder {
            Some(placeholder) => {
                writeln!(f, "phrase: {}", self.expression)?;
                writeln!(f, "placeholder: {placeholder}")?;
            }
            None => writeln!(f, "expression: {}", self.expression)?,
        }
        // Of an exact phrase it is the sentence that stands above.
        if self.canonical != self.expression && self.canonical != self.description {
            writeln!(f, "canonical: {}", self.canonical)?;
        }
        writeln!(f, "dialect: {}", self.dialect)?;
        writeln!(f, "timezone: {}", self.timezone)?;
        if self.timezone != "UTC" {
            writeln!(f, "dst: {}", self.dst)?;
        }
        self.upcoming.fmt(f)?;
        for warning in &self.warnings {
            writeln!(f, "\n{}", warning.rendered)?;
        }
        Ok(())
    }
}

fn remark(warning: &Warning, text: &str) -> ProblemView {
    let code = match warning.kind() {
        WarningKind::EitherDay => "either-day",
        WarningKind::EveryMinute => "every-minute",
        WarningKind::MissingDay => "missing-day",
        WarningKind::StepTooLong => "step-too-long",
        WarningKind::SubSecond => "sub-second",
        WarningKind::UnevenStep => "uneven-step",
        _ => "note",
    };
    let column = |at: usize| text[..at.min(text.len())].chars().count() + 1;
    ProblemView {
        severity: Severity::Warning,
        code: code.to_owned(),
        file: None,
        line: None,
        column: Some(column(warning.span().start)),
        end_column: Some(column(warning.span().end)),
        message: warning.to_string(),
        help: warning.help().map(str::to_owned),
        beside: None,
        count: 1,
        rendered: format!("warning: {}", warning.render(text)),
    }
}

/// The message, and where else the text would be understood.
fn with_hint(rendered: String, words: &[String]) -> String {
    let text = &*words.join(" ");
    if Phrase::parse(text, Extensions::On).is_ok() {
        return format!(
            "{rendered}\n  = help: this is a phrase: `krontab fuzzy \"{text}\" --identifier JOB`"
        );
    }
    let other = Dialect::ALL.into_iter().find(|dialect| Expr::parse(text, *dialect).is_ok());
    match other {
        Some(dialect) => format!("{rendered}\n  = help: it is valid with `--dialect {dialect}`"),
        // Names of files in the place of fields are the work of a shell.
        None if words.len() > 1 => {
            format!("{rendered}\n  = help: put it in quotes, so that the shell leaves its asterisks alone")
        }
        None => rendered,
    }
}

fn dialects() -> impl TypedValueParser<Value = Dialect> {
    args::one_of(Dialect::ALL.map(|dialect| (PossibleValue::new(dialect.name()), dialect)))
}
