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

/// The period whose chosen time is the first after an instant.
///
/// Windows may overlap, so it need not be the period with the first nominal time.
pub(crate) fn next_run(job: &Job, after: Timestamp) -> Option<Decision> {
    let mut best: Option<Decision> = None;
    for decision in from(job, after) {
        let best_time = best.and_then(|best| best.chosen());
        // No later window opens earlier.
        if best_time.is_some_and(|best| decision.window_start() > best) {
            break;
        }
        let is_better = |chosen: Timestamp| chosen > after && best_time.is_none_or(|best| chosen < best);
        if decision.chosen().is_some_and(is_better) {
            best = Some(decision);
        }
    }
    best
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
            assert_eq!(next_run(&job, at).and_then(|next| next.chosen()), first, "{mode}");
            let is_open = |decision: &&Decision| decision.window_start() <= at && at <= decision.window_end();
            let open: Vec<Decision> = all.iter().filter(is_open).copied().collect();
            assert_eq!(open_at(&job, at), open, "{mode}");
            assert_eq!(open.len(), 7, "{mode}");
        }
    }
}
