//! What commands find out, as values: serialized they are the JSON, printed they are the text.
//!
//! Names are in camel case, instants are RFC 3339 in UTC, and nothing that is optional changes its
//! meaning when it is absent. These are an interface: add to them, and change nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use kron_core::{CANDIDATES_MAX, Decision};
use kron_schedule::{Schedule, Zone};
use krontab::security::Finding;
use krontab::{Code, Entry, Loaded, PhraseCode, Problem, Severity, Written};
use serde::Serialize;

use super::load::reason;
use super::periods::NextRun;
use super::time;

/// An instant, in UTC and as clocks show it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Instant {
    pub(crate) utc: String,
    pub(crate) local: String,
    #[serde(skip)]
    shown: String,
}

impl Instant {
    pub(crate) fn new(instant: Timestamp, zone: &Zone) -> Instant {
        Instant {
            utc: time::utc(instant),
            local: time::zoned(instant, zone),
            shown: time::local(instant, zone),
        }
    }
}

/// `2026-03-02T08:30:00Z  Mon 2026-03-02 09:30:00 +01:00`
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.utc, self.shown)
    }
}

/// A schedule: as it was written, what it comes to, and in words.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScheduleView {
    pub(crate) text: String,
    /// `cron`, `alias`, `every` or `phrase`.
    pub(crate) kind: &'static str,
    /// The one spelling; of a phrase, the cron fields that the job's identity gives it.
    pub(crate) canonical: String,
    pub(crate) description: String,
}

impl From<&Written> for ScheduleView {
    fn from(written: &Written) -> ScheduleView {
        ScheduleView {
            text: written.text().to_owned(),
            kind: written.kind_name(),
            canonical: written.resolved(),
            description: written.describe(),
        }
    }
}

/// `30 9 * * MON-FRI (At 09:30 on weekdays)`
impl fmt::Display for ScheduleView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            // What cron fields cannot say comes to the sentence itself.
            "phrase" if self.canonical == self.description => {
                write!(f, "\"{}\" ({})", self.text, self.description)
            }
            "phrase" => write!(f, "\"{}\" is {} here ({})", self.text, self.canonical, self.description),
            _ => write!(f, "{} ({})", self.text, self.description),
        }
    }
}

/// When a period runs, and everything that follows from.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionView {
    pub(crate) job: String,
    pub(crate) identity: String,
    pub(crate) period_id: String,
    pub(crate) nominal_time: String,
    pub(crate) period_start: String,
    pub(crate) window_start: String,
    pub(crate) window_end: String,
    /// Never: both ends of a window belong to it.
    pub(crate) window_end_is_open: bool,
    pub(crate) timezone: String,
    pub(crate) mode: &'static str,
    pub(crate) distribution: &'static str,
    pub(crate) distribution_params: BTreeMap<String, String>,
    pub(crate) seed_strategy: &'static str,
    pub(crate) salt: String,
    pub(crate) period_key: String,
    pub(crate) seed_material: String,
    pub(crate) seed_hash: String,
    pub(crate) constraints: String,
    /// Empty if the period is unschedulable.
    pub(crate) chosen_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chosen_local: Option<String>,
    pub(crate) unschedulable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    pub(crate) attempt_count: u32,
    pub(crate) max_attempts: u32,
    #[serde(skip)]
    shown_distribution: String,
    #[serde(skip)]
    shown_chosen: Option<String>,
}

impl DecisionView {
    pub(crate) fn new(name: &str, job: &kron_core::Job, decision: &Decision) -> DecisionView {
        let nominal = time::utc(decision.nominal());
        let distribution = job.distribution();
        let chosen = decision.chosen();
        DecisionView {
            job: name.to_owned(),
            identity: job.identity().to_owned(),
            period_id: nominal.clone(),
            nominal_time: nominal.clone(),
            period_start: nominal,
            window_start: time::utc(decision.window_start()),
            window_end: time::utc(decision.window_end()),
            window_end_is_open: false,
            timezone: job.zone().name().to_owned(),
            mode: job.window().mode().name(),
            distribution: distribution.name(),
            distribution_params: parameters(&distribution.parameters().to_string()),
            seed_strategy: job.seed_strategy().name(),
            salt: job.salt().to_owned(),
            period_key: decision.period_key().to_string(),
            seed_material: decision.explain(job).seed_material(),
            seed_hash: decision.seed_hash().to_string(),
            constraints: job.constraints().to_string(),
            chosen_time: chosen.map(time::utc).unwrap_or_default(),
            chosen_local: chosen.map(|chosen| time::zoned(chosen, job.zone())),
            unschedulable: decision.is_unschedulable(),
            reason: decision.reason(),
            attempt_count: decision.attempts(),
            max_attempts: CANDIDATES_MAX,
            shown_distribution: distribution.to_string(),
            shown_chosen: chosen.map(|chosen| time::local(chosen, job.zone())),
        }
    }

    /// The chosen time, or `-` and why there is none.
    pub(crate) fn chosen(&self) -> String {
        match (&self.shown_chosen, self.reason) {
            (Some(local), _) => format!("{} ({local})", self.chosen_time),
            (None, reason) => format!("- ({})", reason.unwrap_or_default()),
        }
    }

    /// One line: what `next` and `prev` show.
    pub(crate) fn line(&self) -> String {
        let chosen = if self.unschedulable { "-" } else { &self.chosen_time };
        let remark = match (&self.shown_chosen, self.reason) {
            (Some(local), _) => format!(" ({local})"),
            (None, Some(reason)) => format!(" ({reason})"),
            (None, None) => String::new(),
        };
        format!(
            "period_start={} chosen_time={chosen}{remark} window=[{}, {}] mode={} dist={}",
            self.period_start, self.window_start, self.window_end, self.mode, self.shown_distribution
        )
    }
}

/// `shape=2` and the like, by name.
fn parameters(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

impl fmt::Display for DecisionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "period_start: {}", self.period_start)?;
        writeln!(f, "window: [{}, {}]", self.window_start, self.window_end)?;
        writeln!(f, "mode: {}", self.mode)?;
        writeln!(f, "distribution: {}", self.shown_distribution)?;
        writeln!(f, "seed_strategy: {}", self.seed_strategy)?;
        if !self.salt.is_empty() {
            writeln!(f, "salt: {}", self.salt.escape_debug())?;
        }
        writeln!(f, "period_key: {}", self.period_key)?;
        writeln!(f, "seed_hash: {}", self.seed_hash)?;
        writeln!(f, "constraints: {}", self.constraints)?;
        writeln!(f, "attempts: {} of {}", self.attempt_count, self.max_attempts)?;
        writeln!(f, "chosen_time: {}", self.chosen())
    }
}

/// Local times that a change of clocks left out.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkippedView {
    /// When the clocks change.
    pub(crate) at: String,
    /// The times that do not exist, such as `2026-03-08T02:30[America/New_York]`.
    pub(crate) times: Vec<String>,
    /// There may be more than are listed.
    pub(crate) count: usize,
}

/// The most times listed of one gap; a schedule of every minute has sixty or more.
const SKIPPED_TIMES_MAX: usize = 10;

impl SkippedView {
    /// The gaps after one instant, up to and including another.
    pub(crate) fn between(
        schedule: &Schedule,
        zone: &Zone,
        after: Timestamp,
        through: Timestamp,
    ) -> Vec<SkippedView> {
        schedule.skipped_between(after, through).map(|skipped| SkippedView::new(&skipped, zone)).collect()
    }

    pub(crate) fn new(skipped: &kron_schedule::Skipped<'_>, zone: &Zone) -> SkippedView {
        SkippedView {
            at: time::utc(skipped.at()),
            times: skipped.times().take(SKIPPED_TIMES_MAX).map(|civil| time::label(civil, zone)).collect(),
            count: skipped.times().count(),
        }
    }
}

/// `2026-03-08T02:30[America/New_York] does not exist: clocks go forward at 2026-03-08T07:00:00Z`
impl fmt::Display for SkippedView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.times.first(), self.times.last());
        let first = first.map_or("", String::as_str);
        match self.count {
            1 => write!(f, "{first} does not exist")?,
            2 => write!(f, "{first} and {} do not exist", last.map_or("", String::as_str))?,
            count => write!(f, "{first} and {} more local times do not exist", count - 1)?,
        }
        write!(f, ": clocks go forward at {}", self.at)
    }
}

/// A problem of a file, or of how it lies there, or of an expression.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProblemView {
    pub(crate) severity: Severity,
    pub(crate) code: String,
    /// The file or directory; null if it is about an expression.
    pub(crate) file: Option<String>,
    /// Null if it is about the file as a whole.
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    pub(crate) end_column: Option<usize>,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) help: Option<String>,
    /// What stands beside the message: dates, or codes.
    #[serde(flatten)]
    pub(crate) beside: Option<Beside>,
    /// How many problems it stands for.
    #[serde(skip)]
    pub(crate) count: u32,
    #[serde(skip)]
    pub(crate) rendered: String,
}

/// What a problem has besides its message, as members of its own.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Beside {
    /// Of a phrase that is none, the codes of its language.
    Codes(PhraseCode),
    /// The next dates of the job, where it is they that surprise.
    Dates { dates: Vec<String> },
}

/// How many dates are shown: enough to see what happens at the end of a month, and of the next.
const DATES_SHOWN: usize = 5;

impl From<&Problem> for ProblemView {
    fn from(problem: &Problem) -> ProblemView {
        ProblemView {
            severity: problem.severity(),
            code: problem.code().to_string(),
            file: Some(problem.file().to_owned()),
            line: Some(problem.line()),
            column: Some(problem.column()),
            end_column: Some(problem.end_column()),
            message: problem.message().to_owned(),
            help: problem.help().map(str::to_owned),
            beside: problem.phrase().map(Beside::Codes),
            count: problem.count(),
            rendered: problem.render(),
        }
    }
}

impl From<&Finding> for ProblemView {
    fn from(finding: &Finding) -> ProblemView {
        ProblemView {
            severity: finding.severity,
            code: finding.code.to_string(),
            file: Some(finding.path.to_string_lossy().into_owned()),
            line: None,
            column: None,
            end_column: None,
            message: finding.message.clone(),
            help: Some(finding.help.clone()),
            beside: None,
            count: 1,
            rendered: finding.render(),
        }
    }
}

impl ProblemView {
    /// A file that the system does not let us read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> ProblemView {
        let message = format!("it cannot be read: {}", reason(error));
        let file = shown(path);
        ProblemView {
            severity: Severity::Error,
            code: "unreadable".to_owned(),
            rendered: format!("error[unreadable]: {message}\n  --> {file}"),
            file: Some(file),
            line: None,
            column: None,
            end_column: None,
            message,
            help: None,
            beside: None,
            count: 1,
        }
    }

    /// The warning that a job steps through the days of the month, with the dates that come of it after
    /// an instant: a sentence does not show how uneven they are. Any other problem as it is.
    pub(crate) fn with_dates<'e>(
        mut self,
        entries: impl IntoIterator<Item = &'e Entry>,
        after: Timestamp,
    ) -> ProblemView {
        let is_meant = |entry: &&Entry| Some(entry.line) == self.line && self.code == Code::DayStep.name();
        let Some(entry) = entries.into_iter().find(is_meant) else {
            return self;
        };
        let next = entry.job.schedule().occurrences_after(after).take(DATES_SHOWN);
        let dates: Vec<String> = next.map(|at| entry.job.zone().to_civil(at).date().to_string()).collect();
        self.rendered.push_str("\n  = next dates: ");
        self.rendered.push_str(&dates.join(", "));
        self.beside = Some(Beside::Dates { dates });
        self
    }

    /// The errors of a file, and its warnings: first how it lies there, then what is in it.
    pub(crate) fn of(loaded: &Loaded) -> (Vec<ProblemView>, Vec<ProblemView>) {
        let findings = loaded.findings.iter().map(ProblemView::from);
        let problems = loaded.parsed.problems.iter().map(ProblemView::from);
        findings.chain(problems).partition(|problem| problem.severity == Severity::Error)
    }
}

impl ProblemView {
    /// `- line 3: message`
    pub(crate) fn line(&self) -> String {
        match self.line {
            Some(line) => format!("- line {line}: {}", self.message),
            None => format!("- {}", self.message),
        }
    }
}

/// A path as it may be printed: a name of a file can have characters that do something to a terminal.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// An installed or loaded job, in short.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobView {
    pub(crate) name: String,
    pub(crate) identity: String,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) schedule: ScheduleView,
    pub(crate) timezone: String,
    pub(crate) suspended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// The next time it is to run at. Absent where nobody asked, and where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<Instant>,
    /// Where the search for the next time ended without one: there is none before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) none_until: Option<String>,
}

impl JobView {
    pub(crate) fn new(file: &str, entry: &Entry, next: Option<NextRun>) -> JobView {
        let (next, none_until) = match next {
            Some(NextRun::At(next)) => (Some(next), None),
            Some(NextRun::NoneUntil(until)) => (None, Some(until)),
            Some(NextRun::Never) | None => (None, None),
        };
        JobView {
            name: entry.name.clone(),
            identity: entry.identity().to_owned(),
            file: file.to_owned(),
            line: entry.line,
            schedule: ScheduleView::from(&entry.schedule),
            timezone: entry.zone_name().to_owned(),
            suspended: entry.job.policy().suspend,
            description: entry.description.clone(),
            next: next.map(|next| Instant::new(next, entry.job.zone())),
            none_until: none_until.map(time::utc),
        }
    }
}
