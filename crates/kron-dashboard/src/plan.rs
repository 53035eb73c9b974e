//! What the engine says of a job: its next runs, and how a time came about.

use jiff::{SignedDuration, Timestamp};
use kron_core::{CANDIDATES_MAX, Decision, decide};
use kron_schedule::Zone;
use serde::Serialize;

use crate::board::{Job, Mark};

/// How many runs are foretold.
pub const NEXT_MAX: usize = 10;

/// How many periods are looked at for them. Constraints may allow few, and windows overlap.
const LOOKED_AT_MAX: usize = 2_000;

/// The periods of a job that have no outcome yet and whose nominal time is not before another, in order.
pub(crate) fn coming<'j>(
    job: &'j Job,
    plan: &'j kron_core::Job,
    from: Timestamp,
) -> impl Iterator<Item = Decision> + 'j {
    let pending = job.pending.iter().copied().filter(move |nominal| *nominal >= from);
    let before = from.checked_sub(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MIN);
    let open = plan.schedule().occurrences_after(job.handled.max(before));
    pending.chain(open).map(|nominal| decide(plan, nominal))
}

/// How far from its nominal time a period's window reaches, before and after.
pub(crate) fn reach(plan: &kron_core::Job) -> (SignedDuration, SignedDuration) {
    let before = plan.window().opens_before().as_seconds();
    let after = plan.window().duration().as_seconds() - before;
    (SignedDuration::from_secs(before), SignedDuration::from_secs(after))
}

/// The next runs of a job, in order.
#[must_use]
pub fn next_runs(job: &Job, now: Timestamp, most: usize) -> Vec<Decision> {
    let Some(plan) = &job.plan else { return Vec::new() };
    let (_, after) = reach(plan);
    let from = now.checked_sub(after).unwrap_or(Timestamp::MIN);
    let mut runs: Vec<Decision> = coming(job, plan, from)
        .take(LOOKED_AT_MAX.max(most * 2))
        .filter(|decision| decision.chosen().is_some_and(|chosen| chosen >= now))
        // Windows that overlap may change the order, but not by more than a few.
        .take(most * 2 + 20)
        .collect();
    runs.sort_by_key(Decision::chosen);
    runs.truncate(most);
    runs
}

/// What clocks of a zone show.
#[must_use]
pub fn local(zone: &Zone, at: Timestamp) -> String {
    zone.to_civil(at).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A run to come, as it is shown.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Planned {
    nominal: Timestamp,
    chosen: Option<Timestamp>,
    /// The chosen time on the clocks of the job's zone.
    local: Option<String>,
    window_start: Timestamp,
    window_end: Timestamp,
    mark: Mark,
}

impl Planned {
    pub(crate) fn of(job: &Job, zone: &Zone, decision: &Decision) -> Planned {
        Planned {
            nominal: decision.nominal(),
            chosen: decision.chosen(),
            local: decision.chosen().map(|chosen| local(zone, chosen)),
            window_start: decision.window_start(),
            window_end: decision.window_end(),
            mark: mark_of(job, decision),
        }
    }
}

/// How a period to come is shown.
pub(crate) fn mark_of(job: &Job, decision: &Decision) -> Mark {
    match decision.chosen() {
        None => Mark::Unschedulable,
        Some(_) if job.paused => Mark::Paused,
        Some(_) => Mark::Planned,
    }
}

/// How a time came about.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explained {
    nominal: Timestamp,
    chosen: Option<Timestamp>,
    window: String,
    window_start: Timestamp,
    window_end: Timestamp,
    distribution: String,
    seed_strategy: String,
    seed_material: String,
    seed_hash: String,
    /// Where in the window the chosen time lies, from 0 to 1; none if there is nothing to choose.
    share: Option<f64>,
    /// The number from 0 to 1 that it was made of.
    unit: Option<f64>,
    attempts: u32,
    attempts_max: u32,
    constraints: String,
    /// The same, a line each, under the names of the specification.
    text: String,
}

/// Explains the decision about a period.
pub(crate) fn explain(plan: &kron_core::Job, decision: &Decision) -> Explained {
    let explanation = decision.explain(plan);
    let width = decision.window_end().as_second() - decision.window_start().as_second();
    let share = decision.chosen().filter(|_| width > 0).map(|chosen| {
        let offset = chosen.as_second() - decision.window_start().as_second();
        // A window has at most some days of seconds, which a float holds exactly.
        #[expect(clippy::cast_precision_loss, reason = "windows are short")]
        let share = offset as f64 / width as f64;
        share
    });
    Explained {
        nominal: decision.nominal(),
        chosen: decision.chosen(),
        window: plan.window().to_string(),
        window_start: decision.window_start(),
        window_end: decision.window_end(),
        distribution: plan.distribution().to_string(),
        seed_strategy: plan.seed_strategy().to_string(),
        seed_material: explanation.seed_material(),
        seed_hash: decision.seed_hash().to_string(),
        share,
        unit: decision.unit(),
        attempts: decision.attempts(),
        attempts_max: CANDIDATES_MAX,
        constraints: plan.constraints().to_string(),
        text: explanation.to_string(),
    }
}

/// The most periods that one time is about. Windows that overlap can be many.
const ABOUT_MAX: usize = 2_000;

/// The period that a time is about: the one of that time, else the one that runs then, else the latest in whose
/// window it lies.
pub(crate) fn about(plan: &kron_core::Job, at: Timestamp) -> Option<Decision> {
    let (before, after) = reach(plan);
    let first = at.checked_sub(after).unwrap_or(Timestamp::MIN);
    let last = at.checked_add(before).unwrap_or(Timestamp::MAX);
    let from = first.checked_sub(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MIN);
    plan.schedule()
        .occurrences_after(from)
        .take_while(|nominal| *nominal <= last)
        .take(ABOUT_MAX)
        .map(|nominal| decide(plan, nominal))
        .filter(|decision| decision.window_start() <= at && at <= decision.window_end())
        .max_by_key(|decision| (decision.nominal() == at, decision.chosen() == Some(at), decision.nominal()))
}
