//! `krontab fuzzy`: what a phrase such as `daily around 14:00` becomes.

use std::fmt;

use clap::Args;
use jiff::civil::Time;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use kron_schedule::fuzzy::conformance::{self, TestResult};
use kron_schedule::fuzzy::{ALGORITHM, Extensions, FuzzyError, FuzzyWarning, FuzzyWarningKind};
use kron_schedule::fuzzy::{Phrase, Placeholder, Scattered, identifier};
use kron_schedule::{Dialect, Dst, Schedule, Zone};
use krontab::Zones;
use serde::Serialize;

use super::describe::Upcoming;
use super::explain::zone;
use crate::cli::answer::Answer;
use crate::cli::args::{AtArg, FormatArg};
use crate::cli::exit::{Exit, Failure};

/// Compile a phrase such as `daily around 14:00` for an identifier
///
/// A phrase says about when. The identifier chooses the exact time, always the same one, so that not
/// everybody starts at once. In a krontab, the identifier is the job's identity. Intervals such as
/// `every 5 minutes` are the same for everybody and need none.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fuzzy {
    /// The phrase
    #[arg(value_name = "PHRASE", required_unless_present = "conformance")]
    words: Vec<String>,
    /// Whose schedule it is, such as /etc/krond.d/jobs:report
    #[arg(long, value_name = "ID", conflicts_with_all = ["repo", "path"])]
    identifier: Option<String>,
    /// The repository of a file whose schedule it is, such as github/gh-aw
    #[arg(long, value_name = "SLUG", requires = "path")]
    repo: Option<String>,
    /// The path of that file in its repository
    #[arg(long, value_name = "PATH", requires = "repo")]
    path: Option<String>,
    /// Understand Kron's own additions, such as `bi-weekly exactly` and `daily on weekdays`
    #[arg(long)]
    extensions: bool,
    /// The time zone that the phrase is in [default: UTC]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// How many occurrences to list
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true)]
    next: i64,
    #[command(flatten)]
    at: AtArg,
    /// Run the tests of the specification, and say which level is reached
    #[arg(long, conflicts_with_all = ["words", "identifier", "repo", "path", "extensions", "tz"])]
    conformance: bool,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab fuzzy 'daily around 14:00'
  krontab fuzzy 'weekly on friday around 5pm' --identifier /etc/krond.d/jobs:report --tz Europe/Paris
  krontab fuzzy daily --repo github/gh-aw --path .github/workflows/report.md
  krontab fuzzy --conformance

Exit codes: 0 compiled, or all tests passed; 1 a test failed; 2 anything else.";

impl Fuzzy {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        if self.conformance {
            let report = Conformance::new();
            let exit = if report.failed == 0 { Exit::Success } else { Exit::No };
            return Ok(Answer::of(&report, self.format.format).ending(exit));
        }
        let text = self.words.join(" ");
        let extensions = if self.extensions { Extensions::On } else { Extensions::Off };
        let phrase = Phrase::parse(&text, extensions).map_err(|error| refused(&error, &text))?;
        if phrase.has_offset() && self.tz.is_some() {
            let message = "this phrase has a UTC offset, so it cannot have --tz as well; keep one of them";
            return Err(Failure::Usage(message.into()));
        }
        let zone = zone(zones, self.tz.as_deref(), Dialect::Kron)?;
        // So that every list begins at the same instant.
        let at = self.at.or_now();
        let identifier = self.whose()?;
        let scattered = match &identifier {
            Some(identifier) => {
                Some(phrase.placeholder().scatter(identifier).map_err(|error| unfit(&error))?)
            }
            None => phrase.placeholder().fixed(),
        };
        let schedule = scattered.as_ref().map(|scattered| compile(scattered, &zone)).transpose()?;
        let dates = match &schedule {
            Some(schedule) => dates(schedule, &zone, at),
            None => anybodys_dates(phrase.placeholder(), &zone, at),
        };
        let note = scattered.as_ref().and_then(Scattered::note);
        let warnings = phrase.warnings().iter().chain(note);
        let warnings = warnings.map(|warning| Remark::new(warning, &text, &dates)).collect();
        let own = scattered.zip(schedule).map(|(scattered, schedule)| {
            let (cron, description) = match scattered {
                Scattered::Cron(cron) => (Some(cron.text().to_owned()), cron.expr().describe()),
                // Cron cannot say it, so it must not look as if it could.
                Scattered::EveryDays(days) => (None, days.to_string()),
            };
            let timezone = zone.name().to_owned();
            let upcoming = Upcoming::new(&schedule, &zone, at, self.next)?;
            Ok(OwnSchedule { identifier, cron, description, timezone, upcoming })
        });
        let compiled = Compiled {
            phrase: phrase.to_string(),
            placeholder: phrase.placeholder().to_string(),
            algorithm: ALGORITHM,
            schedule: own.transpose()?,
            warnings,
        };
        Ok(Answer::of(&compiled, self.format.format))
    }

    fn whose(&self) -> Result<Option<String>, Failure> {
        match (&self.identifier, &self.repo, &self.path) {
            (Some(identifier), _, _) if identifier.contains(char::is_control) => {
                let shown = identifier.escape_debug();
                Err(Failure::Usage(format!(
                    "--identifier: expected a name without control characters, but found `{shown}`"
                )))
            }
            (Some(identifier), _, _) => Ok(Some(identifier.clone())),
            (None, Some(repo), Some(path)) => identifier(repo, path).map(Some).map_err(|error| unfit(&error)),
            _ => Ok(None),
        }
    }
}

/// The identifier cannot be one.
fn unfit(error: &FuzzyError) -> Failure {
    Failure::Usage(format!("{}\n{}", error.message(), error.code()))
}

fn compile(scattered: &Scattered, zone: &Zone) -> Result<Schedule, Failure> {
    scattered.compile(zone, Dst::KRON).map_err(|error| Failure::Usage(format!("{scattered}: {error}")))
}

/// How many dates stand beside the warning that a step starts again every month.
const DATES: usize = 5;

/// The local days of the next occurrences.
fn dates(schedule: &Schedule, zone: &Zone, at: Timestamp) -> Vec<String> {
    let next = schedule.occurrences_after(at).take(DATES);
    next.map(|next| zone.to_civil(next).date().to_string()).collect()
}

/// The next days of a step through the month, which are the same for everybody. Today is one of them as
/// long as it is not known at what time. Nothing for other phrases.
fn anybodys_dates(placeholder: &Placeholder, zone: &Zone, at: Timestamp) -> Vec<String> {
    let Some(days) = placeholder.month_days() else {
        return Vec::new();
    };
    // Days are counted in UTC, where each of them has a midnight.
    let utc = Zone::utc();
    let today = zone.to_civil(at).date().to_datetime(Time::midnight());
    let before = Offset::UTC.to_timestamp(today).ok();
    let before = before.and_then(|midnight| midnight.checked_sub(SignedDuration::from_secs(1)).ok());
    let schedule = days.compile(&utc, Dst::KRON).expect("every month has a first day");
    dates(&schedule, &utc, before.unwrap_or(at))
}

/// The message as the specification words it, without its label: ours stands before it.
fn refused(error: &FuzzyError, text: &str) -> Failure {
    let rendered = error.render(text);
    let message = rendered.strip_prefix("Error: ").unwrap_or(&rendered);
    Failure::Expression(match message.rsplit_once('\n') {
        // The code stays the last line.
        Some((message, code)) if Phrase::parse(text, Extensions::On).is_ok() => {
            format!("{message}\n  = help: write --extensions to have it understood\n{code}")
        }
        _ => message.to_owned(),
    })
}

/// A phrase, and what it stands for.
#[derive(Debug, Serialize)]
struct Compiled {
    phrase: String,
    placeholder: String,
    algorithm: &'static str,
    /// Absent where it depends on an identifier, and there is none.
    #[serde(flatten)]
    schedule: Option<OwnSchedule>,
    warnings: Vec<Remark>,
}

/// What the phrase becomes for one identifier, or for everybody.
#[derive(Debug, Serialize)]
struct OwnSchedule {
    #[serde(skip_serializing_if = "Option::is_none")]
    identifier: Option<String>,
    /// Nothing for a schedule that cron fields cannot say.
    cron: Option<String>,
    description: String,
    timezone: String,
    #[serde(flatten)]
    upcoming: Upcoming,
}

#[derive(Debug, Serialize)]
struct Remark {
    code: &'static str,
    message: String,
    help: String,
    /// When the next runs are, where that says more than words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dates: Vec<String>,
    #[serde(skip)]
    rendered: String,
}

impl Remark {
    fn new(warning: &FuzzyWarning, text: &str, dates: &[String]) -> Remark {
        let kind = warning.kind();
        let dates = if kind == FuzzyWarningKind::DayStep { dates.to_vec() } else { Vec::new() };
        let mut rendered = warning.render(text);
        if !dates.is_empty() {
            rendered = format!("{rendered}\n  = next dates: {}", dates.join(", "));
        }
        let (message, help) = (warning.headline().to_owned(), warning.guidance().to_owned());
        Remark { code: kind.name(), message, help, dates, rendered }
    }
}

impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "phrase: {}", self.phrase)?;
        writeln!(f, "placeholder: {}", self.placeholder)?;
        writeln!(f, "algorithm: {}", self.algorithm)?;
        match &self.schedule {
            Some(OwnSchedule { identifier, cron, description, timezone, upcoming }) => {
                if let Some(identifier) = identifier {
                    writeln!(f, "identifier: {identifier}")?;
                }
                writeln!(f, "cron: {}", cron.as_deref().unwrap_or("none, for cron has no exact distances"))?;
                writeln!(f, "description: {description}")?;
                writeln!(f, "timezone: {timezone}")?;
                upcoming.fmt(f)?;
            }
            None => writeln!(f, "cron: depends on whose it is; write --identifier ID")?,
        }
        for warning in &self.warnings {
            writeln!(f, "\n{}", warning.rendered)?;
        }
        Ok(())
    }
}

/// How the tests of the specification came out.
#[derive(Debug, Serialize)]
struct Conformance {
    specification: &'static str,
    algorithm: &'static str,
    /// The level that all tests up to it allow to claim.
    level: Option<u8>,
    passed: usize,
    failed: usize,
    tests: Vec<TestView>,
}

#[derive(Debug, Serialize)]
struct TestView {
    id: &'static str,
    level: u8,
    passed: bool,
    title: &'static str,
    detail: String,
}

impl Conformance {
    fn new() -> Conformance {
        let results = conformance::report();
        let level = conformance::level(&results);
        let passed = results.iter().filter(|result| result.passed).count();
        Conformance {
            specification: "Fuzzy Schedule Time Syntax 1.1.0",
            algorithm: ALGORITHM,
            level,
            passed,
            failed: results.len() - passed,
            tests: results.into_iter().map(TestView::from).collect(),
        }
    }
}

impl From<TestResult> for TestView {
    fn from(result: TestResult) -> TestView {
        let TestResult { id, title, level, passed, detail } = result;
        TestView { id, level, passed, title, detail }
    }
}

impl fmt::Display for Conformance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.tests.iter().map(|test| test.id.len()).max().unwrap_or(0);
        for TestView { id, level, passed, title, detail } in &self.tests {
            let outcome = if *passed { "pass" } else { "FAIL" };
            writeln!(f, "{outcome}  {id:ids$}  level {level}  {title}")?;
            if !passed {
                writeln!(f, "      {detail}")?;
            }
        }
        writeln!(f, "\n{}: {} passed, {} failed", self.specification, self.passed, self.failed)?;
        match self.level {
            Some(level) => writeln!(f, "conformance: level {level}"),
            None => writeln!(f, "conformance: none"),
        }
    }
}
