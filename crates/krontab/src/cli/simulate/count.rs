//! Jobs become counts: how many start in every minute.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use jiff::Timestamp;
use kron_core::{Job, WindowMode, decide};
use kron_schedule::Duration;

use crate::cli::span::{Span, timestamp};

/// The most threads. Each has arrays of its own, and a host with more processors has other things to do.
const THREADS_MAX: usize = 8;

/// The most periods that a simulation looks at: a few minutes of work.
const PERIODS_MAX: u64 = 5_000_000_000;

/// Starts in every minute of a span, and of every job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// By nominal times: what would start if nothing were spread.
    pub(crate) before: Vec<u32>,
    /// By the times that were chosen.
    pub(crate) after: Vec<u32>,
    pub(crate) jobs: Vec<JobCount>,
}

/// What one job does in a span.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct JobCount {
    /// Periods whose nominal times are in the span.
    pub(crate) periods: u64,
    /// Chosen times that are in the span.
    pub(crate) starts: u64,
    /// Periods of the span for which the constraints left no time.
    pub(crate) unschedulable: u64,
}

/// How far a simulation is, in the periods that its jobs may have at the most.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) done: AtomicU64,
    pub(crate) total: AtomicU64,
}

/// How many periods the jobs may have at the most, in a span.
pub(crate) fn most_periods(jobs: &[&Job], span: Span) -> u64 {
    jobs.iter().map(|job| most(job, span)).fold(0, u64::saturating_add)
}

fn most(job: &Job, span: Span) -> u64 {
    let length = span.to - span.from + job.window().duration().as_seconds();
    job.schedule().most_within(Duration::from_seconds(length))
}

/// Refuses what would take too long, before it begins.
pub(crate) fn check(jobs: &[&Job], span: Span) -> Result<(), String> {
    match most_periods(jobs, span) {
        most if most > PERIODS_MAX => Err(format!(
            "these jobs may have {most} periods there, and at most {PERIODS_MAX} are looked at; choose an earlier --to"
        )),
        _ => Ok(()),
    }
}

/// Counts the starts of all jobs, on all processors. Suspended jobs have none.
pub(crate) fn count(jobs: &[&Job], span: Span, progress: &Progress) -> Counts {
    progress.total.store(most_periods(jobs, span), Ordering::Relaxed);
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
    let next = AtomicUsize::new(0);
    // Jobs differ by a factor of half a million, so each thread takes the next one when it is free.
    let work = || {
        let mut counts =
            Counts { before: vec![0; span.minutes()], after: vec![0; span.minutes()], jobs: vec![] };
        let mut counted = Vec::new();
        while let Some((number, job)) = {
            let number = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(number).map(|job| (number, job))
        } {
            counted.push((number, count_job(job, span, &mut counts.before, &mut counts.after)));
            progress.done.fetch_add(most(job, span), Ordering::Relaxed);
        }
        (counts, counted)
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let mut parts = parts.into_iter();
    let Some((mut all, mut counted)) = parts.next() else {
        return Counts::default();
    };
    for (part, more) in parts {
        add(&mut all.before, &part.before);
        add(&mut all.after, &part.after);
        counted.extend(more);
    }
    counted.sort_unstable_by_key(|(number, _)| *number);
    all.jobs = counted.into_iter().map(|(_, count)| count).collect();
    all
}

fn add(sums: &mut [u32], counts: &[u32]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(*count);
    }
}

/// Counts the starts of one job.
pub(crate) fn count_job(job: &Job, span: Span, before: &mut [u32], after: &mut [u32]) -> JobCount {
    let mut found = JobCount::default();
    let bump = |counts: &mut [u32], second| {
        if let Some(minute) = span.minute(second).and_then(|minute| counts.get_mut(minute)) {
            *minute = minute.saturating_add(1);
        }
    };
    // Where a window does not reach into the next minute and nothing is refused, the minute is known
    // without the second, and the second takes a hash.
    let length = job.window().duration().as_seconds() + 1;
    let is_short = job.constraints().is_empty() && job.window().mode() == WindowMode::After && length < 60;
    each_nominal(job, span, |nominal| {
        let second = nominal.as_second();
        let chosen = match is_short && second.rem_euclid(60) + length < 60 {
            true => Some(second),
            false => chosen(job, nominal),
        };
        if span.contains(second) {
            found.periods += 1;
            found.unschedulable += u64::from(chosen.is_none());
            bump(before, second);
        }
        if let Some(chosen) = chosen.filter(|chosen| span.contains(*chosen)) {
            found.starts += 1;
            bump(after, chosen);
        }
    });
    found
}

/// Visits every period that has its nominal time in a span or may have its chosen time there: both, in
/// seconds. A suspended job has none.
///
/// While krond watches, it judges every period by its own deadline, so a chosen time is a start. It knows
/// nothing of how long runs take, so none is left out because another is under way.
pub(crate) fn each_period(job: &Job, span: Span, mut visit: impl FnMut(i64, Option<i64>)) {
    each_nominal(job, span, |nominal| visit(nominal.as_second(), chosen(job, nominal)));
}

fn each_nominal(job: &Job, span: Span, mut visit: impl FnMut(Timestamp)) {
    if job.policy().suspend {
        return;
    }
    // A window opens before its nominal time, or closes after it, by no more than its length.
    let reach = if is_fixed(job) { 0 } else { job.window().duration().as_seconds() + 1 };
    let last = span.to + reach;
    for nominal in job.schedule().occurrences_after(timestamp(span.from - reach - 1)) {
        if nominal.as_second() >= last {
            break;
        }
        visit(nominal);
    }
}

/// Whether nothing can be chosen and nothing refused: then the seed makes no difference and need not be hashed.
fn is_fixed(job: &Job) -> bool {
    job.window().duration() == Duration::ZERO && job.constraints().is_empty()
}

/// The second that the engine chooses.
fn chosen(job: &Job, nominal: Timestamp) -> Option<i64> {
    match is_fixed(job) {
        true => Some(nominal.as_second()),
        false => decide(job, nominal).chosen().map(|chosen| chosen.as_second()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use kron_core::{Ledger, PeriodId, Policy, Step, Watch, evaluate};
    use krontab::{Krontab, Source, Zones};

    use super::*;

    pub(crate) fn jobs(text: &str) -> Vec<Job> {
        let source = Source::new("/etc/krond.d/fleet").unwrap();
        let parsed = Krontab::parse(text, &source, &Zones::bundled());
        assert!(!parsed.has_errors(), "{:?}", parsed.problems);
        parsed.entries.into_iter().map(|entry| entry.job).collect()
    }

    pub(crate) fn span(from: &str, to: &str) -> Span {
        Span::new(from.parse().unwrap(), to.parse().unwrap()).unwrap()
    }

    const FLEET: &str = "\
*/10 * * * * @win(around,40m) name=around command=/bin/true
0 3 * * * @tz(America/New_York) @win(before,2h) name=before command=/bin/true
30 2 * * * @tz(America/New_York) name=gone command=/bin/true
0 * * * * @only(hours=8-12) @win(after,30m) name=only command=/bin/true
0 * * * * @only(hours=8-12) name=fixed command=/bin/true
@every 7m name=every command=/bin/true
@every 20s @win(after,30s) name=short command=/bin/true
* * * * * @policy(suspend=true) name=off command=/bin/true
";

    #[test]
    fn what_is_counted_is_what_is_decided() {
        let jobs = jobs(FLEET);
        let span = span("2026-03-07T11:00:00Z", "2026-03-09T13:00:00Z");
        let counts = count(&jobs.iter().collect::<Vec<_>>(), span, &Progress::default());
        // Every period near the span, by the function that krond asks.
        let (mut before, mut after) = (vec![0; span.minutes()], vec![0; span.minutes()]);
        for job in jobs.iter().filter(|job| !job.policy().suspend) {
            let near = job.schedule().occurrences_after(timestamp(span.from - 86_400));
            for nominal in near.take_while(|nominal| nominal.as_second() < span.to + 86_400) {
                let chosen = decide(job, nominal).chosen().map(|chosen| chosen.as_second());
                span.minute(nominal.as_second()).into_iter().for_each(|minute| before[minute] += 1);
                chosen
                    .and_then(|chosen| span.minute(chosen))
                    .into_iter()
                    .for_each(|minute| after[minute] += 1);
            }
        }
        assert!(counts.before == before && counts.after == after);
        let [around, _, gone, only, fixed, _, _, off] = counts.jobs[..] else { panic!() };
        assert_eq!((around.periods, gone.periods, off), (300, 1, JobCount::default()));
        assert_eq!((only.unschedulable, fixed.unschedulable), (38, 38));
    }

    /// Runs that take no time, in a daemon that is always there.
    #[test]
    fn what_is_counted_is_what_krond_starts() {
        let span = span("2026-03-07T11:00:00Z", "2026-03-08T13:00:00Z");
        for job in jobs(FLEET) {
            let policy = Policy { overlap: kron_core::Overlap::Allow, ..*job.policy() };
            let job = job.with_policy(policy).unwrap();
            let mut expected = vec![0; span.minutes()];
            count_job(&job, span, &mut vec![0; span.minutes()], &mut expected);
            let mut started = vec![0; span.minutes()];
            // Long enough before for every window to open while somebody looks.
            let since = timestamp(span.from - 2 * 86_400);
            let (mut ledger, mut now) = (Ledger::fenced(PeriodId::new(since)), since);
            while now < span.end() {
                let (steps, wake) = evaluate(&job, &ledger, &[], Watch { since, now });
                for step in steps {
                    match step {
                        Step::Record(record) => ledger.apply(&record),
                        Step::Start(_) => {
                            span.minute(now.as_second()).into_iter().for_each(|minute| started[minute] += 1);
                        }
                        Step::Terminate(_) => {}
                    }
                }
                let Some(wake) = wake else { break };
                now = wake;
            }
            assert!(started == expected, "{}", job.identity());
        }
    }
}
