//! Which periods concern an instant.

use jiff::{SignedDuration, Timestamp};
use kron_core::{Decision, Job, decide};

/// The most periods looked at. More windows than this cannot be open at once: such a job is refused.
const PERIODS_MAX: usize = 10_000;

/// The periods whose windows are open at an instant, in order.
pub(crate) fn open_at(job: &Job, at: Timestamp) -> Vec<Decision> {
    from(job, at)
        .take_while(|decision| decision.nominal() <= latest(job, at))
        .filter(|decision| decision.window_start() <= at && at <= decision.window_end())
        .collect()
}

/// When a job runs next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NextRun {
    At(Timestamp),
    /// Nothing is chosen before this instant, and nobody has looked further.
    NoneUntil(Timestamp),
    /// The schedule has come to its end.
    Never,
}

/// The most periods without a chosen time that are looked at for one answer, of all its jobs together.
/// Each of them has tried every candidate, so they are what takes time: a microsecond or so.
const FRUITLESS_MAX: usize = 2_000_000;

/// The fewest periods without a chosen time that are looked at for a job, however many jobs there are.
const FRUITLESS_MIN: usize = 100;

/// How many periods without a chosen time are looked at for each of so many jobs, before it is said that
/// none was found. It is the same for all of them, so that the same job has the same answer.
pub(crate) fn patience(jobs: usize) -> usize {
    (FRUITLESS_MAX / jobs.max(1)).clamp(FRUITLESS_MIN, PERIODS_MAX)
}

/// The first chosen time after an instant.
///
/// Windows may overlap, so it need not be that of the period with the first nominal time. The patience is
/// how many periods may have none before the search ends.
pub(crate) fn next_run(job: &Job, after: Timestamp, patience: usize) -> NextRun {
    let mut best: Option<Timestamp> = None;
    let (mut looked, mut fruitless) = (0, 0);
    let mut until = after;
    for decision in from(job, after) {
        // No later window opens earlier.
        if best.is_some_and(|best| decision.window_start() > best) {
            break;
        }
        looked += 1;
        until = decision.window_start().max(after);
        match decision.chosen() {
            Some(chosen) if chosen > after && best.is_none_or(|best| chosen < best) => best = Some(chosen),
            None if best.is_none() => fruitless += 1,
            _ => {}
        }
        if fruitless >= patience {
            break;
        }
    }
    match best {
        Some(best) => NextRun::At(best),
        None if looked == PERIODS_MAX || fruitless >= patience => NextRun::NoneUntil(until),
        None => NextRun::Never,
    }
}

/// Periods in order, from the first whose window may be open at an instant.
fn from(job: &Job, at: Timestamp) -> impl Iterator<Item = Decision> + '_ {
    // One second more for the rounding of the window's ends.
    let length = SignedDuration::from_secs(job.window().duration().as_seconds() + 1);
    let start = at.checked_sub(length).unwrap_or(Timestamp::MIN);
    job.schedule().occurrences_after(start).map(|nominal| decide(job, nominal)).take(PERIODS_MAX)
}

/// The latest nominal time whose window can be open at an instant.
fn latest(job: &Job, at: Timestamp) -> Timestamp {
    let lead = SignedDuration::from_secs(job.window().opens_before().as_seconds() + 1);
    at.checked_add(lead).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use kron_core::WindowMode;
    use kron_schedule::{Dialect, Dst, Expr, Zone};

    use super::*;

    #[test]
    fn windows_that_overlap_are_all_looked_at() {
        for mode in [WindowMode::After, WindowMode::Around, WindowMode::Before] {
            let zone = Zone::utc();
            let schedule =
                Expr::parse("*/10 * * * *", Dialect::Kron).unwrap().compile(&zone, Dst::KRON).unwrap();
            let window = "1h".parse().unwrap();
            let job = Job::builder("x", schedule, zone).window(mode, window).build().unwrap();
            let at: Timestamp = "2026-03-07T12:00:00Z".parse().unwrap();
            let day = SignedDuration::from_hours(24);
            let all: Vec<Decision> = job
                .schedule()
                .occurrences_after(at - day)
                .take_while(|nominal| *nominal <= at + day)
                .map(|nominal| decide(&job, nominal))
                .collect();
            let first = all.iter().filter_map(Decision::chosen).filter(|chosen| *chosen > at).min();
            assert_eq!(next_run(&job, at, 1), NextRun::At(first.unwrap()), "{mode}");
            let is_open = |decision: &&Decision| decision.window_start() <= at && at <= decision.window_end();
            let open: Vec<Decision> = all.iter().filter(is_open).copied().collect();
            assert_eq!(open_at(&job, at), open, "{mode}");
            assert_eq!(open.len(), 7, "{mode}");
        }
    }

    #[test]
    fn a_search_ends_where_its_patience_does() {
        let zone = Zone::utc();
        let schedule = Expr::parse("0 0 29 2 *", Dialect::Kron).unwrap();
        let schedule = schedule.compile(&zone, Dst::KRON).unwrap();
        let mut constraints = kron_core::Constraints::default();
        constraints.add_only("hours=5").unwrap();
        let job = Job::builder("x", schedule, zone)
            .window(WindowMode::After, "1h".parse().unwrap())
            .constraints(constraints)
            .build()
            .unwrap();
        let at: Timestamp = "2026-03-07T12:00:00Z".parse().unwrap();
        assert_eq!(next_run(&job, at, 3), NextRun::NoneUntil("2036-02-29T00:00:00Z".parse().unwrap()));
        assert_eq!(next_run(&job, at, PERIODS_MAX), NextRun::Never);
        assert_eq!([patience(0), patience(1), patience(5_000)], [10_000, 10_000, 400]);
        assert_eq!(patience(1_000_000), 100);
    }
}
