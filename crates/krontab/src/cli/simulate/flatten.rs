//! Which windows would lower the peaks.
//!
//! Only jobs without a window are given one: whoever wrote `@win`, even `@win(after,0s)`, has decided. A
//! window stays shorter than the time to the job's next period, so that order is kept, and every
//! minute of it is one that the job's constraints allow. Windows grow only as far as they help: in every round
//! the jobs that start in the hottest minutes get the next longer one.

use kron_core::{Job, WindowMode};
use kron_schedule::Duration;

use super::count::{count_job, each_period};
use crate::cli::span::{Span, timestamp};

/// The windows that are tried, in seconds. Between them comes the longest that a job can have.
const LADDER: [i64; 9] = [60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400];

/// The most rounds: each job climbs the ladder once, and some wait for others.
const ROUNDS_MAX: usize = 24;

/// A minute is hot if it has at least so many of a hundred of the highest.
const HOT_PERCENT: u64 = 80;

/// Windows are looked for in a stretch around the highest peak: two weeks have every weekday twice, and
/// one look at all of them takes a second or so for ten thousand jobs.
const MINUTES_MAX: usize = 14 * 24 * 60;

/// The most periods that are looked at to find out how close a job's periods are.
const DISTANCES_MAX: usize = 2_000;

/// A window for a job that has none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Widening {
    /// The job's number.
    pub(crate) job: usize,
    pub(crate) window: Duration,
}

/// The windows that lower the peak of a span, none longer than `window_max` seconds. `highest` is the minute
/// of the peak, and `is_free` says whether a job may be given a window.
pub(crate) fn windows(
    jobs: &[&Job],
    span: Span,
    highest: usize,
    window_max: i64,
    is_free: impl Fn(usize) -> bool,
) -> Vec<Widening> {
    let span = around(span, highest);
    let mut counts = vec![0; span.minutes()];
    let mut nothing = vec![0; span.minutes()];
    let mut climbers = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let found = count_job(job, span, &mut nothing, &mut counts);
        let steps =
            if is_free(number) && found.starts > 0 { ladder(job, span, window_max) } else { Vec::new() };
        if !steps.is_empty() {
            climbers.push(Climber {
                number,
                job: (*job).clone(),
                steps,
                climbed: 0,
                unschedulable: found.unschedulable,
            });
        }
    }
    let mut best = (peak(&counts), Vec::new());
    for _ in 0..ROUNDS_MAX {
        let hot = u64::from(peak(&counts)) * HOT_PERCENT / 100;
        let hot: Vec<bool> = counts.iter().map(|count| u64::from(*count) >= hot).collect();
        let mut moved = false;
        for climber in &mut climbers {
            moved |= climber.climb(span, &hot, &mut counts);
        }
        if !moved {
            break;
        }
        if peak(&counts) < best.0 {
            best = (peak(&counts), climbers.iter().filter_map(Climber::widening).collect());
        }
    }
    best.1
}

fn peak(counts: &[u32]) -> u32 {
    counts.iter().copied().max().unwrap_or(0)
}

/// As much of a span around a minute as is looked at.
fn around(span: Span, minute: usize) -> Span {
    let middle = span.instant(minute).as_second();
    let half = 60 * i64::try_from(MINUTES_MAX / 2).unwrap_or(0);
    let from = (middle - half).clamp(span.from, (span.to - 2 * half).max(span.from));
    Span { from, to: (from + 2 * half).min(span.to) }
}

/// The windows that a job can have: shorter than the distance of its periods.
fn ladder(job: &Job, span: Span, window_max: i64) -> Vec<i64> {
    let mut last = None;
    let mut distance = i64::MAX;
    let near = job.schedule().occurrences_after(timestamp(span.from)).take(DISTANCES_MAX);
    for at in near.map(|at| at.as_second()) {
        distance = distance.min(last.map_or(i64::MAX, |last| at - last));
        last = Some(at);
    }
    // A minute before the next period is early enough.
    let longest = (distance.saturating_sub(60)).min(window_max) / 60 * 60;
    let mut steps: Vec<i64> = LADDER.into_iter().filter(|step| *step < longest).collect();
    steps.extend(Some(longest).filter(|longest| *longest > 0));
    steps
}

/// A job that may be given a window.
struct Climber {
    number: usize,
    /// With the window it has now.
    job: Job,
    steps: Vec<i64>,
    /// How many steps it has taken.
    climbed: usize,
    /// How many of its periods had no time to begin with.
    unschedulable: u64,
}

impl Climber {
    /// Takes the next step if it starts in a hot minute. Whether it did.
    fn climb(&mut self, span: Span, hot: &[bool], counts: &mut [u32]) -> bool {
        let Some(step) = self.steps.get(self.climbed) else { return false };
        let mut starts = Vec::new();
        each_period(&self.job, span, |_, chosen| starts.extend(chosen.and_then(|at| span.minute(at))));
        if !starts.iter().any(|minute| hot.get(*minute) == Some(&true)) {
            return false;
        }
        let Some(job) = widened(&self.job, Duration::from_seconds(*step)) else {
            self.steps.truncate(self.climbed);
            return false;
        };
        let (mut after, mut unschedulable) = (Vec::new(), 0);
        let mut is_whole = true;
        each_period(&job, span, |nominal, chosen| {
            after.extend(chosen.and_then(|at| span.minute(at)));
            unschedulable += u64::from(chosen.is_none() && span.contains(nominal));
            is_whole &= chosen.is_none() || allows_all(&job, nominal, *step);
        });
        // Neither may a period lose its time, nor one that was left out be given one.
        if unschedulable != self.unschedulable || !is_whole {
            self.steps.truncate(self.climbed);
            return false;
        }
        for minute in starts {
            counts[minute] = counts[minute].saturating_sub(1);
        }
        for minute in after {
            counts[minute] = counts[minute].saturating_add(1);
        }
        self.job = job;
        self.climbed += 1;
        true
    }

    fn widening(&self) -> Option<Widening> {
        let step = self.climbed.checked_sub(1).and_then(|step| self.steps.get(step))?;
        Some(Widening { job: self.number, window: Duration::from_seconds(*step) })
    }
}

/// Whether the constraints of a job allow every minute of a window. If they allowed only some, a period
/// could one day be unlucky and find none.
fn allows_all(job: &Job, nominal: i64, length: i64) -> bool {
    let is_allowed = |second: i64| job.constraints().allow(job.zone().to_civil(timestamp(second)));
    job.constraints().is_empty()
        || (0..=length / 60).all(|minute| is_allowed(nominal + 60 * minute)) && is_allowed(nominal + length)
}

/// The same job with that window after its nominal times.
pub(crate) fn widened(job: &Job, window: Duration) -> Option<Job> {
    Job::builder(job.identity(), job.schedule().clone(), job.zone().clone())
        .window(WindowMode::After, window)
        .distribution(*job.distribution())
        .seed(job.seed_strategy(), job.salt())
        .constraints(job.constraints().clone())
        .policy(*job.policy())
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::simulate::count::tests::{jobs, span};

    fn found(text: &str, is_free: impl Fn(usize) -> bool) -> Vec<(usize, String)> {
        let jobs = jobs(text);
        let span = span("2026-03-02T00:00:00Z", "2026-03-04T00:00:00Z");
        let windows = windows(&jobs.iter().collect::<Vec<_>>(), span, 0, 3_600, is_free);
        windows.iter().map(|widening| (widening.job, widening.window.to_string())).collect()
    }

    #[test]
    fn a_window_is_shorter_than_the_time_to_the_next_period() {
        let span = span("2026-03-02T00:00:00Z", "2026-03-04T00:00:00Z");
        for (schedule, expected) in [
            ("* * * * *", &[][..]),
            ("*/5 * * * *", &[60, 120, 240]),
            ("0 * * * *", &[60, 120, 300, 600, 900, 1_800, 3_540]),
            ("0 3 * * *", &[60, 120, 300, 600, 900, 1_800, 3_600]),
            ("0,2 3 * * *", &[60]),
        ] {
            let jobs = jobs(&format!("{schedule} name=a command=/bin/true"));
            assert_eq!(ladder(&jobs[0], span, 3_600), expected, "{schedule}");
        }
    }

    #[test]
    fn a_herd_is_spread_and_what_is_pinned_stays() {
        let herd: String = (0..60).map(|n| format!("0 * * * * name=j{n} command=/bin/true\n")).collect();
        let all = found(&herd, |_| true);
        assert!(all.len() > 50 && all.iter().any(|(_, window)| window == "59m"), "{all:?}");
        assert_eq!(found(&herd, |_| false), []);
        // Nothing is hotter than the rest.
        assert_eq!(found("0 3 * * * name=a command=/bin/true", |_| true), []);
    }

    #[test]
    fn a_constraint_is_kept() {
        let herd = |constraint: &str| -> Vec<(usize, String)> {
            let line = |n| format!("0 3 * * * {constraint} name=j{n} command=/bin/true\n");
            found(&(0..9).map(line).collect::<String>(), |_| true)
        };
        assert_eq!(herd("@only(between=03:00-03:01)"), []);
        let windows = herd("@only(between=03:00-03:12)");
        assert!(!windows.is_empty() && windows.iter().all(|(_, window)| window != "15m"), "{windows:?}");
    }
}
