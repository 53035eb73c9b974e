//! `krontab ical`: the future schedule as a calendar file.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use kron_calendar::Calendar;
use kron_core::Job;
use krontab::{Entry, Zones};

use crate::cli::answer::Answer;
use crate::cli::args::CountArg;
use crate::cli::exit::Failure;
use crate::cli::fleet::Fleet;
use crate::cli::simulate::count;
use crate::cli::span::{Span, SpanArgs, timestamp};
use crate::cli::time;

/// Print the future schedule as a calendar (iCalendar, RFC 5545), one event for each start
///
/// Events are at the times that Kron chooses, in UTC, in order, and only the first --count of them. An
/// event keeps its UID as long as its job and its period are the same, so that a calendar which is read
/// again moves it. Suspended jobs and periods that find no time have none.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ical {
    /// A krontab file, or a directory of them; `-` is standard input
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    span: SpanArgs,
    /// The most events, at most 10080
    #[arg(long, value_name = "N", default_value_t = 1_000, allow_negative_numbers = true)]
    count: i64,
    /// Only this job. May be repeated
    #[arg(long = "job", value_name = "JOB")]
    jobs: Vec<String>,
    /// Answer as if the file, or the directory, were installed at this path: chosen times depend on it
    #[arg(long = "as", value_name = "PATH")]
    installed_as: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  krontab ical jobs.kron > jobs.ics
  krontab ical /etc/krond.d --from 2026-03-01T00:00:00Z --to 2026-04-01T00:00:00Z --count 500
  krontab ical jobs.kron --job backup --job report

Exit codes: 0 printed, 1 job not found, 2 anything else.";

impl Ical {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let most = CountArg { count: self.count }.get()?;
        let span = self.span.get()?;
        let fleet = Fleet::load(&self.path, self.installed_as.as_deref(), zones)?;
        let mut entries = fleet.entries();
        if let Some(unknown) =
            self.jobs.iter().find(|job| entries.iter().all(|(_, entry)| entry.name != **job))
        {
            return Err(Failure::JobNotFound(unknown.clone()));
        }
        entries.retain(|(_, entry)| self.jobs.is_empty() || self.jobs.contains(&entry.name));
        let jobs: Vec<&Job> = entries.iter().map(|(_, entry)| &entry.job).collect();
        count::check(&jobs, span).map_err(Failure::Usage)?;
        let (events, left) = events(&entries, span, most);
        let answer = Answer::text(calendar(&events, span));
        Ok(match left {
            0 => answer,
            left => {
                answer.remark(format!("{left} more starts are left out; --count says how many are printed"))
            }
        })
    }
}

/// A start of a job.
struct Event<'e> {
    at: i64,
    nominal: i64,
    entry: &'e Entry,
}

/// The first starts of all jobs in order, and how many more there are.
fn events<'e>(entries: &[(usize, &'e Entry)], span: Span, most: usize) -> (Vec<Event<'e>>, usize) {
    let (mut found, mut all) = (Vec::new(), 0);
    for (_, entry) in entries {
        count::each_period(&entry.job, span, |nominal, chosen| {
            if let Some(at) = chosen.filter(|chosen| span.contains(*chosen)) {
                all += 1;
                found.push(Event { at, nominal, entry });
            }
            // What cannot be among the first is let go, so that a year of every minute needs no more room.
            if found.len() > 2 * most {
                first(&mut found, most);
            }
        });
    }
    first(&mut found, most);
    let left = all - found.len();
    (found, left)
}

fn first(events: &mut Vec<Event<'_>>, most: usize) {
    events.sort_by(|a, b| (a.at, a.nominal, &a.entry.name).cmp(&(b.at, b.nominal, &b.entry.name)));
    events.truncate(most);
}

/// The calendar. The clock is asked only where nobody says --from.
fn calendar(events: &[Event<'_>], span: Span) -> String {
    let mut calendar = Calendar::new(concat!("krontab ", env!("CARGO_PKG_VERSION")), span.start());
    for Event { at, nominal, entry } in events {
        let mut about = String::new();
        if let Some(description) = &entry.description {
            let _ = writeln!(about, "{description}");
        }
        let schedule = entry.schedule.describe();
        let _ = write!(about, "{schedule}, {}\nperiod {}", entry.zone_name(), time::utc(timestamp(*nominal)));
        if entry.job.window().duration() != kron_schedule::Duration::ZERO {
            let _ = write!(about, ", window {}", entry.job.window());
        }
        calendar.add(&kron_calendar::Event {
            identity: entry.identity(),
            nominal: timestamp(*nominal),
            at: timestamp(*at),
            summary: &entry.name,
            description: &about,
        });
    }
    calendar.text()
}
