//! `krontab simulate`: how many jobs start when, before and after spreading.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use kron_core::Job;
use kron_schedule::{Dialect, Zone};
use krontab::{Entry, Zones, with_window};
use serde::Serialize;

use super::explain::zone;
use crate::cli::answer::Answer;
use crate::cli::args::{Format, FormatArg};
use crate::cli::exit::Failure;
use crate::cli::fleet::Fleet;
use crate::cli::load::reason;
use crate::cli::simulate::chart;
use crate::cli::simulate::count::{self, Counts, Progress};
use crate::cli::simulate::flatten::{self, Widening, widened};
use crate::cli::simulate::load::{Buckets, Load, hours};
use crate::cli::simulate::page::Page;
use crate::cli::simulate::patch;
use crate::cli::simulate::peaks::{self, Peak};
use crate::cli::span::{Span, SpanArgs};
use crate::cli::view::{SkippedView, shown};
use crate::cli::{clock, time};

/// Show how many jobs start in every minute or hour, before and after spreading
///
/// Every period of every job is decided by the engine that krond uses. "Before" counts nominal times, as
/// if nothing were spread, and "after" the times that Kron chooses. How long runs take is not known, so
/// none is left out because another is under way. Suspended jobs do not start.
///
/// With --propose, jobs without a window that start in the highest minutes are given one, and the change
/// of the files is written as a patch. No window reaches the job's next period, every minute of it is one
/// that the job's constraints allow, and a job that has a window keeps it: `@win(after,0s)` keeps a job
/// where it is.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Simulate {
    /// A krontab file, or a directory of them; `-` is standard input
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    span: SpanArgs,
    /// What starts are counted in
    #[arg(long, value_enum, default_value_t, value_name = "UNIT")]
    per: Per,
    /// The time zone of the hours of the day and of the week that are shown
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// Answer as if the file, or the directory, were installed at this path: chosen times depend on it
    #[arg(long = "as", value_name = "PATH")]
    installed_as: Option<PathBuf>,
    /// Also write the load curve into this file, as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write a page into this file: the load curve, a week of hours, and who makes the peaks
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Look for windows that lower the peak, and print them as a patch, or write it into this file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    propose: Option<PathBuf>,
    /// The longest window that is proposed, in whole minutes
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = minutes)]
    window_max: i64,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab simulate jobs.kron
  krontab simulate /etc/krond.d --from 2026-01-01T00:00:00Z --to 2027-01-01T00:00:00Z --per hour
  krontab simulate jobs.kron --html load.html --tz Europe/Paris
  krontab simulate jobs.kron --propose=flat.patch && patch -p0 < flat.patch

Exit codes: 0 shown, 2 anything else.";

/// What starts are counted in.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum Per {
    #[default]
    Minute,
    Hour,
}

impl Per {
    fn name(self) -> &'static str {
        match self {
            Per::Minute => "minute",
            Per::Hour => "hour",
        }
    }

    fn minutes(self) -> usize {
        match self {
            Per::Minute => 1,
            Per::Hour => 60,
        }
    }
}

/// The longest window that can be asked for: a day.
const WINDOW_MINUTES_MAX: i64 = 24 * 60;

fn minutes(text: &str) -> Result<i64, String> {
    let expected = "expected whole minutes from `1m` to `24h`";
    let duration: kron_schedule::Duration = text.parse().map_err(|_| expected.to_owned())?;
    let seconds = duration.as_seconds();
    let is_whole = duration.subsec_nanos() == 0 && seconds % 60 == 0;
    match is_whole && (60..=60 * WINDOW_MINUTES_MAX).contains(&seconds) {
        true => Ok(seconds),
        false => Err(expected.to_owned()),
    }
}

impl Simulate {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let span = self.span.get()?;
        let zone = zone(zones, Some(&self.tz), Dialect::Kron)?;
        let fleet = Fleet::load(&self.path, self.installed_as.as_deref(), zones)?;
        let entries = fleet.entries();
        let jobs: Vec<&Job> = entries.iter().map(|(_, entry)| &entry.job).collect();
        count::check(&jobs, span).map_err(Failure::Usage)?;
        let counts = counted(&jobs, span);
        let proposal = match self.propose {
            Some(_) => Some(propose(&fleet, &entries, &counts, span, self.window_max)?),
            None => None,
        };
        let found =
            Found { fleet: &fleet, entries: &entries, jobs: &jobs, counts: &counts, span, zone: &zone };
        let simulation = found.simulation(self.per, proposal);
        let mut written = Vec::new();
        if let Some(path) = &self.svg {
            let (before, after) = found.buckets(self.per);
            write(path, &chart::curve(&before, &after, self.per.name()))?;
            written.push(path);
        }
        if let Some(path) = &self.html {
            write(path, &found.page(self.per, &simulation))?;
            written.push(path);
        }
        let elsewhere = self.propose.as_ref().filter(|path| *path != Path::new("-"));
        if let (Some(path), Some(proposal)) = (elsewhere, &simulation.proposal) {
            write(path, &proposal.patch)?;
            written.push(path);
        }
        let answer = match self.format.format {
            Format::Json => Answer::of(&simulation, Format::Json),
            Format::Text => {
                let patch = simulation.proposal.as_ref().map(|proposal| proposal.patch.as_str());
                let patch = patch.filter(|patch| elsewhere.is_none() && !patch.is_empty());
                let below = patch.map(|patch| format!("\n{patch}")).unwrap_or_default();
                Answer::text(format!("{simulation}{below}"))
            }
        };
        Ok(written.into_iter().fold(answer, |answer, path| answer.remark(format!("wrote {}", shown(path)))))
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let why = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such directory".to_owned(),
        _ => reason(&error),
    };
    let failed = |error| Failure::Write(format!("could not write `{}`: {}", path.display(), why(error)));
    std::fs::write(path, text).map_err(failed)
}

/// How often a progress bar moves.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Counts, and shows on a terminal how far it is. Who reads standard error elsewhere does not see it.
fn counted(jobs: &[&Job], span: Span) -> Counts {
    let progress = Progress::default();
    if !io::stderr().is_terminal() {
        return count::count(jobs, span, &progress);
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut shown = false;
            while !is_done.load(Ordering::Relaxed) {
                clock::pause(PROGRESS_EVERY);
                shown |= bar(&progress).is_some();
            }
            if shown {
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
        });
        let counts = count::count(jobs, span, &progress);
        is_done.store(true, Ordering::Relaxed);
        counts
    })
}

/// Draws the bar, once there is something to be told.
fn bar(progress: &Progress) -> Option<()> {
    let (done, total) = (progress.done.load(Ordering::Relaxed), progress.total.load(Ordering::Relaxed));
    let percent = usize::try_from(done.saturating_mul(100).checked_div(total)?).ok()?.min(100);
    let filled = percent * 30 / 100;
    let bar = format!("{}{}", "#".repeat(filled), ".".repeat(30 - filled));
    write!(io::stderr(), "\rsimulating [{bar}] {percent} %").ok()
}

/// Windows for the jobs that make the peaks, what comes of them over the whole span, and the patch.
fn propose(
    fleet: &Fleet,
    entries: &[(usize, &Entry)],
    counts: &Counts,
    span: Span,
    window_max: i64,
) -> Result<Proposal, Failure> {
    let jobs: Vec<&Job> = entries.iter().map(|(_, entry)| &entry.job).collect();
    let texts: Vec<String> =
        fleet.files.iter().map(|file| String::from_utf8_lossy(&file.bytes).into_owned()).collect();
    let lines: Vec<Vec<&str>> = texts.iter().map(|text| text.lines().collect()).collect();
    let line = |number: usize| {
        let (file, entry) = entries.get(number)?;
        lines.get(*file)?.get(entry.line - 1).copied()
    };
    let widen = |number: usize, window: &kron_schedule::Duration| with_window(line(number)?, window);
    let minute = kron_schedule::Duration::from_seconds(60);
    let peak = counts.after.iter().copied().max().unwrap_or(0);
    let highest = counts.after.iter().position(|count| *count == peak).unwrap_or(0);
    let found = flatten::windows(&jobs, span, highest, window_max, |number| widen(number, &minute).is_some());
    let mut changes: BTreeMap<usize, BTreeMap<usize, String>> = BTreeMap::new();
    let mut spread: Vec<Job> = Vec::new();
    let mut changed: Vec<usize> = Vec::new();
    for Widening { job, window } in &found {
        let (file, entry) = entries[*job];
        if let (Some(line), Some(wide)) = (widen(*job, window), widened(&entry.job, *window)) {
            changes.entry(file).or_default().insert(entry.line, line);
            spread.push(wide);
            changed.push(*job);
        }
    }
    let mut after = jobs.clone();
    for (number, job) in changed.iter().zip(&spread) {
        after[*number] = job;
    }
    count::check(&after, span).map_err(Failure::Usage)?;
    let flat = if spread.is_empty() { counts.clone() } else { counted(&after, span) };
    let new_peak = flat.after.iter().copied().max().unwrap_or(0);
    let unschedulable = |counts: &Counts| counts.jobs.iter().map(|job| job.unschedulable).sum::<u64>();
    // The search looked at some weeks; what does not hold for all of the span is not proposed.
    let helps = new_peak < peak && unschedulable(&flat) <= unschedulable(counts);
    let mut patch = String::new();
    if helps {
        for (file, changes) in &changes {
            patch.push_str(&patch::unified(&fleet.path_of(*file).to_string_lossy(), &texts[*file], changes));
        }
    }
    let jobs = found.iter().filter(|_| helps).map(|widening| {
        let (file, entry) = entries[widening.job];
        WindowView { job: fleet.label(file, entry), window: widening.window.to_string() }
    });
    Ok(Proposal {
        peak_before: peak,
        peak_after: if helps { new_peak } else { peak },
        windows: jobs.collect(),
        patch,
    })
}

/// Everything that a simulation has found.
struct Found<'a> {
    fleet: &'a Fleet,
    entries: &'a [(usize, &'a Entry)],
    jobs: &'a [&'a Job],
    counts: &'a Counts,
    span: Span,
    zone: &'a Zone,
}

/// The most gaps that are told one by one.
const SKIPPED_MAX: usize = 100;

/// The most jobs that are named for having periods without a time.
const UNSCHEDULABLE_MAX: usize = 10;

/// The most steps of the series in JSON: every minute of a week.
const SERIES_MAX: usize = 10_080;

impl Found<'_> {
    fn buckets(&self, per: Per) -> (Buckets, Buckets) {
        let of = |counts| Buckets::new(counts, self.span, per.minutes());
        (of(&self.counts.before), of(&self.counts.after))
    }

    fn simulation(&self, per: Per, proposal: Option<Proposal>) -> Simulation {
        let (before, after) = self.buckets(per);
        let (neighbours, series_before) = before.highest(SERIES_MAX);
        let (_, series_after) = after.highest(SERIES_MAX);
        let label = |number: usize| {
            let (file, entry) = self.entries[number];
            self.fleet.label(file, entry)
        };
        let unlucky = self.counts.jobs.iter().enumerate().filter(|(_, count)| count.unschedulable > 0);
        let mut unschedulable: Vec<UnschedulableView> = unlucky
            .map(|(number, count)| UnschedulableView {
                job: label(number),
                periods: count.unschedulable,
                of: count.periods,
            })
            .collect();
        unschedulable.sort_by_key(|view| std::cmp::Reverse(view.periods));
        let (skipped_times, skipped) = self.skipped();
        Simulation {
            path: shown(&self.fleet.path),
            from: time::utc(self.span.start()),
            to: time::utc(self.span.end()),
            per: per.name(),
            timezone: self.zone.name().to_owned(),
            jobs: self.jobs.len(),
            suspended: self.jobs.iter().filter(|job| job.policy().suspend).count(),
            periods: self.counts.jobs.iter().map(|count| count.periods).sum(),
            starts: self.counts.jobs.iter().map(|count| count.starts).sum(),
            unschedulable_periods: unschedulable.iter().map(|view| view.periods).sum(),
            unschedulable_jobs: unschedulable.len(),
            unschedulable: unschedulable.into_iter().take(UNSCHEDULABLE_MAX).collect(),
            skipped_times,
            skipped,
            before: Load::new(&before),
            after: Load::new(&after),
            peaks: peaks::highest(&after, self.jobs, label),
            series: Series {
                step_seconds: 60 * per.minutes() * neighbours,
                before: series_before,
                after: series_after,
            },
            rows: self.rows(&before, &after),
            proposal,
        }
    }

    /// Local times that do not exist: how many, and the first gaps with the jobs they are of.
    fn skipped(&self) -> (usize, Vec<SkippedJobView>) {
        let (mut count, mut views) = (0, Vec::new());
        for (file, entry) in self.entries.iter().filter(|(_, entry)| !entry.job.policy().suspend) {
            let job = &entry.job;
            let before = crate::cli::span::timestamp(self.span.from - 1);
            let through = crate::cli::span::timestamp(self.span.to - 1);
            for skipped in job.schedule().skipped_between(before, through) {
                let view = SkippedView::new(&skipped, job.zone());
                count += view.count;
                if views.len() < SKIPPED_MAX {
                    views.push(SkippedJobView { job: self.fleet.label(*file, entry), skipped: view });
                }
            }
        }
        (count, views)
    }

    /// What the histogram shows: stretches of a short span, and of a longer one the hours of the day.
    fn rows(&self, before_buckets: &Buckets, after: &Buckets) -> Vec<Row> {
        if self.span.minutes() > 2 * 24 * 60 {
            let (before, after) = (hours(&before_buckets.week(self.zone)), hours(&after.week(self.zone)));
            let rows = before.iter().zip(&after).zip(0..);
            return rows
                .filter_map(|((before, after), hour)| {
                    Some(Row { label: format!("{hour:02}:00"), before: (*before)?, after: (*after)? })
                })
                .collect();
        }
        let (neighbours, highest) = before_buckets.highest(24);
        let (_, spread) = after.highest(24);
        let row = |((bucket, before), after): ((usize, &u32), &u32)| {
            let at = time::zoned(before_buckets.start_of(bucket * neighbours), self.zone);
            Row { label: at.get(5..16).unwrap_or(&at).replace('T', " "), before: *before, after: *after }
        };
        highest.iter().enumerate().zip(&spread).map(row).collect()
    }

    fn page(&self, per: Per, simulation: &Simulation) -> String {
        let (before, after) = self.buckets(per);
        let (week_before, week_after) = (before.week(self.zone), after.week(self.zone));
        Page {
            title: format!("When the jobs of {} start", simulation.path),
            about: simulation.head().lines().map(str::to_owned).collect(),
            unit: per.name(),
            zone: self.zone.name(),
            before: (&before, &simulation.before, &week_before),
            after: (&after, &simulation.after, &week_after),
            peaks: &simulation.peaks,
            patch: simulation.proposal.as_ref().map(|it| it.patch.as_str()).filter(|patch| !patch.is_empty()),
        }
        .html()
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Simulation {
    path: String,
    from: String,
    /// The minute after the last.
    to: String,
    per: &'static str,
    timezone: String,
    jobs: usize,
    suspended: usize,
    /// Periods by their nominal times, and starts by their chosen times: at the ends of the span they differ.
    periods: u64,
    starts: u64,
    unschedulable_periods: u64,
    unschedulable_jobs: usize,
    /// The jobs with the most of them.
    unschedulable: Vec<UnschedulableView>,
    /// Local times that do not exist, so that no period is lost.
    skipped_times: usize,
    skipped: Vec<SkippedJobView>,
    before: Load,
    after: Load,
    peaks: Vec<Peak>,
    series: Series,
    #[serde(skip)]
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal: Option<Proposal>,
}

#[derive(Debug, Serialize)]
struct UnschedulableView {
    job: String,
    periods: u64,
    of: u64,
}

#[derive(Debug, Serialize)]
struct SkippedJobView {
    job: String,
    #[serde(flatten)]
    skipped: SkippedView,
}

/// Counts from `from` on. Where there are too many, each is the highest of its neighbours.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Series {
    step_seconds: usize,
    before: Vec<u32>,
    after: Vec<u32>,
}

#[derive(Debug)]
struct Row {
    label: String,
    before: u32,
    after: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Proposal {
    peak_before: u32,
    peak_after: u32,
    windows: Vec<WindowView>,
    /// A unified diff; empty if nothing is proposed.
    patch: String,
}

#[derive(Debug, Serialize)]
struct WindowView {
    job: String,
    window: String,
}

/// How long the longest bar is.
const BAR: u64 = 50;

/// The most gaps that the text tells one by one.
const SKIPPED_SHOWN: usize = 5;

/// `1 job`, `2 jobs`.
fn plural(count: impl fmt::Display, what: &str) -> String {
    let count = count.to_string();
    let ending = if count == "1" { "" } else { "s" };
    format!("{count} {what}{ending}")
}

impl Simulation {
    /// `a minute`, `an hour`.
    fn article(&self) -> String {
        let article = if self.per == Per::Hour.name() { "an" } else { "a" };
        format!("{article} {}", self.per)
    }

    /// What was simulated, a line each.
    fn head(&self) -> String {
        let mut out =
            format!("{} of {}, from {} to {}\n", plural(self.jobs, "job"), self.path, self.from, self.to);
        out.push_str(&format!("{}, {}\n", plural(self.periods, "period"), plural(self.starts, "start")));
        if self.suspended > 0 {
            out.push_str(&format!("suspended: {}, not started\n", plural(self.suspended, "job")));
        }
        if self.unschedulable_periods > 0 {
            let worst = self
                .unschedulable
                .iter()
                .map(|view| format!("{} ({} of {})", view.job, view.periods, view.of));
            let worst: Vec<String> = worst.collect();
            let more = match self.unschedulable_jobs - worst.len() {
                0 => String::new(),
                more => format!(" and {more} more jobs"),
            };
            let periods = plural(self.unschedulable_periods, "period");
            out.push_str(&format!("unschedulable: {periods}: {}{more}\n", worst.join(", ")));
        }
        for skipped in self.skipped.iter().take(SKIPPED_SHOWN) {
            out.push_str(&format!("skipped: {}: {}\n", skipped.job, skipped.skipped));
        }
        let shown: usize = self.skipped.iter().take(SKIPPED_SHOWN).map(|view| view.skipped.count).sum();
        if self.skipped_times > shown {
            out.push_str(&format!("skipped: {}\n", plural(self.skipped_times - shown, "more local time")));
        }
        out
    }
}

impl fmt::Display for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head())?;
        let (before, after, per) = (&self.before, &self.after, self.per);
        writeln!(f, "\n{:<18} {:>10} {:>10}", format!("starts {}", self.article()), "before", "after")?;
        writeln!(f, "{:<18} {:>10} {:>10}", "mean", before.mean, after.mean)?;
        for (name, before, after) in [
            ("median", before.median, after.median),
            ("90 of 100 at most", before.p90, after.p90),
            ("99 of 100 at most", before.p99, after.p99),
            ("peak", before.peak, after.peak),
        ] {
            writeln!(f, "{name:<18} {before:>10} {after:>10}")?;
        }
        let times = |load: &Load| match load.peak_count {
            1 => String::new(),
            count => format!(" and {}", plural(count - 1, &format!("more {per}"))),
        };
        writeln!(f, "peak before: {}{}", before.peak_at, times(before))?;
        writeln!(f, "peak after: {}{}", after.peak_at, times(after))?;
        let top = self.rows.iter().map(|row| row.before.max(row.after)).max().unwrap_or(0).max(1);
        writeln!(f, "\nthe highest {per} (`#` after, `.` before spreading), {}", self.timezone)?;
        for Row { label, before, after } in &self.rows {
            let length =
                |count: u32| usize::try_from((u64::from(count) * BAR).div_ceil(u64::from(top))).unwrap_or(0);
            let filled = "#".repeat(length(*after));
            let rest = ".".repeat(length(*before).saturating_sub(filled.len()));
            writeln!(f, "{label:>11}  {:<50}  {before} -> {after}", format!("{filled}{rest}"))?;
        }
        if !self.peaks.is_empty() {
            writeln!(f, "\nwho makes the highest {per}s, after spreading")?;
        }
        for Peak { at, starts, jobs, names } in &self.peaks {
            let more = match jobs - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            writeln!(f, "{at}  {starts} starts: {}{more}", names.join(", "))?;
        }
        if let Some(proposal) = &self.proposal {
            write!(f, "\n{proposal}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.windows.is_empty() {
            return writeln!(
                f,
                "proposal: none; no window for a job that has none would lower the peak of {} starts a minute",
                self.peak_before
            );
        }
        writeln!(
            f,
            "proposal: windows for {} lower the peak from {} to {} starts a minute",
            plural(self.windows.len(), "job"),
            self.peak_before,
            self.peak_after
        )
    }
}
