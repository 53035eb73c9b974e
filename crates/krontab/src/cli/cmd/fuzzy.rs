//! `krontab fuzzy`: what a phrase such as `daily around 14:00` becomes.

use std::fmt;

use clap::Args;
use kron_schedule::Dst;
use kron_schedule::fuzzy::conformance::{self, TestResult};
use kron_schedule::fuzzy::{ALGORITHM, Extensions, FuzzyError, FuzzyWarning, Phrase, Scattered, identifier};
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
/// everybody starts at once. In a krontab, the identifier is the job's identity.
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
        let mut compiled = Compiled {
            phrase: phrase.to_string(),
            placeholder: phrase.placeholder().to_string(),
            algorithm: ALGORITHM,
            warnings: phrase.warnings().iter().map(|warning| Remark::new(warning, &text)).collect(),
            schedule: None,
        };
        if let Some(identifier) = self.whose()? {
            let unfit = |error: FuzzyError| Failure::Usage(error.headline().to_owned());
            let scattered = phrase.placeholder().scatter(&identifier).map_err(unfit)?;
            compiled.warnings.extend(scattered.note().map(|note| Remark::new(note, &text)));
            compiled.schedule = Some(self.schedule(identifier, &scattered, zones)?);
        }
        Ok(Answer::of(&compiled, self.format.format))
    }

    fn whose(&self) -> Result<Option<String>, Failure> {
        match (&self.identifier, &self.repo, &self.path) {
            (Some(identifier), _, _) => Ok(Some(identifier.clone())),
            (None, Some(repo), Some(path)) => {
                let identifier = identifier(repo, path);
                identifier.map(Some).map_err(|error| Failure::Usage(error.headline().to_owned()))
            }
            _ => Ok(None),
        }
    }

    fn schedule(
        &self,
        identifier: String,
        scattered: &Scattered,
        zones: &Zones,
    ) -> Result<OwnSchedule, Failure> {
        let zone = zone(zones, self.tz.as_deref())?;
        let schedule = scattered
            .compile(&zone, Dst::KRON)
            .map_err(|error| Failure::Usage(format!("{scattered}: {error}")))?;
        let (cron, description) = match scattered {
            Scattered::Cron(cron) => (Some(cron.text().to_owned()), cron.expr().describe()),
            // Cron cannot say it, so it must not look as if it could.
            Scattered::EveryDays(days) => (None, days.to_string()),
        };
        Ok(OwnSchedule {
            identifier,
            cron,
            description,
            timezone: zone.name().to_owned(),
            upcoming: Upcoming::new(&schedule, &zone, &self.at, self.next)?,
        })
    }
}

/// The message as the specification words it, without its label: ours stands before it.
fn refused(error: &FuzzyError, text: &str) -> Failure {
    let rendered = error.render(text);
    let mut message = rendered.strip_prefix("Error: ").unwrap_or(&rendered).to_owned();
    if Phrase::parse(text, Extensions::On).is_ok() {
        message.push_str("\n  = help: write --extensions to have it understood");
    }
    Failure::Expression(message)
}

/// A phrase, and what it stands for.
#[derive(Debug, Serialize)]
struct Compiled {
    phrase: String,
    placeholder: String,
    algorithm: &'static str,
    /// Absent without an identifier.
    #[serde(flatten)]
    schedule: Option<OwnSchedule>,
    warnings: Vec<Remark>,
}

/// What the phrase becomes for one identifier.
#[derive(Debug, Serialize)]
struct OwnSchedule {
    identifier: String,
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
    #[serde(skip)]
    rendered: String,
}

impl Remark {
    fn new(warning: &FuzzyWarning, text: &str) -> Remark {
        Remark {
            code: warning.kind().name(),
            message: warning.headline().to_owned(),
            help: warning.guidance().to_owned(),
            rendered: warning.render(text),
        }
    }
}

impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "phrase: {}", self.phrase)?;
        writeln!(f, "placeholder: {}", self.placeholder)?;
        writeln!(f, "algorithm: {}", self.algorithm)?;
        match &self.schedule {
            Some(OwnSchedule { identifier, cron, description, timezone, upcoming }) => {
                writeln!(f, "identifier: {identifier}")?;
                writeln!(f, "cron: {}", cron.as_deref().unwrap_or("cannot say it"))?;
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
