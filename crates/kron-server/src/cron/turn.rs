//! What to do about a cron job now: pure, and told the time.
//!
//! kron-core's `evaluate` decides. Here its steps become what Open Job Spec has: jobs, cancellations, events
//! and entries in the record of occurrences.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kron_core::{Decision, Ledger, PeriodId, Policy, Record, RunId, Step, Watch, decide, evaluate};
use kron_schedule::Count;
use serde_json::json;

use crate::clock::floor_second;
use crate::event::Event;
use crate::job::Job;
use crate::times::stamp;

use super::Cron;
use super::definition::{Compiled, Overlap};
use super::occurrence::{Kind, Occurrence, Reason};

/// A job of a cron job that counts for overlap.
#[derive(Clone, Debug)]
pub struct Active {
    /// The job.
    pub job_id: String,
    /// The occurrence it was made for; none for a run by hand.
    pub scheduled: Option<Timestamp>,
}

/// Which of its jobs stand in the way of a cron job's next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Counting {
    /// Those in state `active`, as the specification says.
    #[default]
    Active,
    /// All that have not ended.
    Unfinished,
}

/// Everything that one look at a cron job brings about. It is carried out as a whole or not at all.
#[derive(Debug, Default)]
pub struct Turn {
    /// Jobs that are made.
    pub fires: Vec<Fire>,
    /// Jobs that are cancelled first.
    pub cancels: Vec<String>,
    /// What became of occurrences for which no job was made.
    pub occurrences: Vec<Occurrence>,
    /// What is told of those.
    pub events: Vec<Event>,
}

/// An occurrence and its job.
#[derive(Debug)]
pub struct Fire {
    /// The entry in the record. There can be only one for its time.
    pub occurrence: Occurrence,
    /// The job that is made.
    pub job: Job,
    /// What is told of it.
    pub event: Event,
}

/// The most local times that one gap tells of.
const CIVIL_MAX: usize = 100;

/// The most periods looked at for the time of the next run. Only constraints that allow almost nothing, or
/// thousands of windows at once, come to so many.
const AHEAD_MAX: usize = 10_000;

impl Cron {
    /// Settles what is due at `now`, a whole second.
    pub fn turn(
        &mut self,
        compiled: &Compiled,
        active: &[Active],
        now: Timestamp,
        actual: Timestamp,
    ) -> Turn {
        let now = floor_second(now);
        let mut turn = Turn::default();
        self.tell_gaps(compiled, now, actual, &mut turn);

        let plan = self.plan(compiled);
        let runs: Vec<RunId> = active.iter().zip(0..).map(|(run, n)| run_id(run, n)).collect();
        let mut ledger = self.ledger();
        // Of what came due before this second only the latest is caught up with.
        let (steps, _) = evaluate(&plan, &ledger, &runs, Watch { since: now, now });
        let mut missed: BTreeMap<Reason, Occurrence> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Terminate(run) => {
                    let ended = active.iter().zip(&runs).find(|(_, id)| **id == run);
                    turn.cancels.extend(ended.map(|(active, _)| active.job_id.clone()));
                }
                Step::Start(_) => {}
                Step::Record(record) => {
                    self.note(&record, active, actual, &mut missed, &mut turn);
                    ledger.apply(&record);
                }
            }
        }
        for (_, occurrence) in missed {
            turn.events.push(self.event("cron.missed", actual, &occurrence));
            turn.occurrences.push(occurrence);
        }
        self.watermark = ledger.watermark().map_or(self.watermark, PeriodId::nominal);
        self.pending = ledger.pending().iter().map(|period| period.nominal()).collect();
        self.look_ahead(compiled, now);
        turn
    }

    /// Finds out when it runs next, and when to look at it next.
    pub(super) fn look_ahead(&mut self, compiled: &Compiled, now: Timestamp) {
        let now = floor_second(now);
        let plan = self.plan(compiled);
        let ledger = self.ledger();
        let (steps, wake_at) = evaluate(&plan, &ledger, &[], Watch { since: now, now });
        let look = if steps.is_empty() { wake_at } else { Some(now) };
        let gap = look.and_then(|look| {
            plan.schedule().skipped_between(self.gaps_told, look).next().map(|gap| gap.at())
        });
        self.next_look = gap.or(look);
        self.next_run_at = if self.enabled { next_run(&plan, &ledger, now) } else { None };
    }

    /// The planned times from now on, in order of their nominal times.
    pub fn planned<'c>(&'c self, compiled: &'c Compiled) -> impl Iterator<Item = Decision> + 'c {
        let pending = self.pending.iter().map(|nominal| decide(&compiled.plan, *nominal));
        pending.chain(periods_after(&compiled.plan, self.watermark).map(|at| decide(&compiled.plan, at)))
    }

    fn plan(&self, compiled: &Compiled) -> kron_core::Job {
        if self.enabled {
            return compiled.plan.clone();
        }
        // A disabled cron job is looked at all the same: each of its occurrences is told to be skipped.
        let policy = Policy { overlap: kron_core::Overlap::Allow, deadline: None, suspend: false };
        compiled.plan.clone().with_policy(policy).unwrap_or_else(|_| compiled.plan.clone())
    }

    fn note(
        &mut self,
        record: &Record,
        active: &[Active],
        actual: Timestamp,
        missed: &mut BTreeMap<Reason, Occurrence>,
        turn: &mut Turn,
    ) {
        match record {
            Record::Settled(settled) => {
                let reason = self.reason(settled.reason);
                let occurrence = of_decision(&settled.decision, reason, actual);
                match reason {
                    Reason::Triggered => turn.fires.push(self.fire(occurrence, actual)),
                    Reason::OverlapSkip | Reason::Disabled => {
                        let active_job_id = match reason {
                            Reason::OverlapSkip => active.first().map(|run| run.job_id.clone()),
                            _ => None,
                        };
                        let occurrence = Occurrence { active_job_id, ..occurrence };
                        turn.events.push(self.event("cron.skipped", actual, &occurrence));
                        turn.occurrences.push(occurrence);
                    }
                    _ => add(missed, occurrence),
                }
            }
            Record::Passed(passed) => {
                for tally in &passed.tallies {
                    let reason = self.reason(tally.reason);
                    let (count, at_least) = match tally.count {
                        Count::Exactly(count) => (count, false),
                        Count::AtLeast(count) => (count, true),
                    };
                    let one = count == 1 && !at_least;
                    let occurrence = Occurrence {
                        kind: if one { Kind::One } else { Kind::Range },
                        last: (!one).then(|| tally.last.nominal()),
                        count,
                        at_least,
                        ..entry(tally.first.nominal(), reason, actual)
                    };
                    add(missed, occurrence);
                }
            }
            Record::Manual(_) | Record::Ended(_) => {}
        }
    }

    fn reason(&self, reason: kron_core::Reason) -> Reason {
        match reason {
            kron_core::Reason::Started if self.enabled => Reason::Triggered,
            kron_core::Reason::Started => Reason::Disabled,
            kron_core::Reason::StillRunning | kron_core::Reason::FoundRunning => Reason::OverlapSkip,
            kron_core::Reason::DeadlinePassed => Reason::DeadlinePassed,
            kron_core::Reason::NoCandidate => Reason::Unschedulable,
            kron_core::Reason::Rescheduled => Reason::Rescheduled,
            kron_core::Reason::Superseded => Reason::PassedOver,
        }
    }

    fn fire(&mut self, mut occurrence: Occurrence, actual: Timestamp) -> Fire {
        let job = self.definition.marked_job(Some(occurrence.scheduled), actual);
        self.run_count += 1;
        self.last_run_at = Some(actual);
        occurrence.job_id = Some(job.id.clone());
        let event = self
            .event("cron.triggered", actual, &occurrence)
            .with("run_count", self.run_count)
            .with("actual_time", stamp(actual));
        Fire { occurrence, job, event }
    }

    /// Tells of local times that clocks have skipped since the last time.
    fn tell_gaps(&mut self, compiled: &Compiled, now: Timestamp, actual: Timestamp, turn: &mut Turn) {
        for gap in compiled.plan.schedule().skipped_between(self.gaps_told, now) {
            let mut civil: Vec<String> =
                gap.times().take(CIVIL_MAX + 1).map(|time| time.to_string()).collect();
            let at_least = civil.len() > CIVIL_MAX;
            civil.truncate(CIVIL_MAX);
            let occurrence = Occurrence {
                kind: Kind::Gap,
                count: civil.len() as u64,
                at_least,
                civil,
                ..entry(gap.at(), Reason::DstSkip, actual)
            };
            turn.events.push(self.event("cron.skipped", actual, &occurrence));
            turn.occurrences.push(occurrence);
        }
        self.gaps_told = self.gaps_told.max(now);
    }

    fn event(&self, kind: &'static str, actual: Timestamp, occurrence: &Occurrence) -> Event {
        let scheduled = stamp(occurrence.scheduled);
        let mut event = Event::new(kind, self.definition.name.clone(), actual)
            .with("cron_name", self.definition.name.clone())
            .with("cron_expression", self.definition.cron.clone())
            .with("cron_expr", self.definition.cron.clone())
            .with("timezone", self.definition.timezone.clone())
            .with("job_type", self.definition.kind.clone())
            .with("scheduled_time", scheduled.clone())
            .with("scheduled_at", scheduled);
        event.job_type = Some(self.definition.kind.clone());
        if kind != "cron.triggered" {
            event = event.with("reason", occurrence.reason.name());
        }
        if let Some(job) = &occurrence.job_id {
            event = event.with("job_id", job.clone());
        }
        if let Some(job) = &occurrence.active_job_id {
            event = event.with("active_job_id", job.clone()).with("existing_job_id", job.clone());
        }
        if kind == "cron.missed" {
            let last = stamp(occurrence.last.unwrap_or(occurrence.scheduled));
            event = event
                .with("first", stamp(occurrence.scheduled))
                .with("last", last)
                .with("count", occurrence.count)
                .with("at_least", occurrence.at_least);
        }
        if !occurrence.civil.is_empty() {
            event = event.with("civil_times", json!(occurrence.civil)).with("count", occurrence.count);
        }
        event
    }

    /// Whether its jobs wait for each other.
    #[must_use]
    pub fn is_serial(&self) -> bool {
        self.definition.overlap == Overlap::Enqueue
    }
}

/// The earliest chosen time of what has no outcome yet.
fn next_run(plan: &kron_core::Job, ledger: &Ledger, now: Timestamp) -> Option<Timestamp> {
    let pending = ledger.pending().iter().map(|period| period.nominal());
    let watermark = ledger.watermark().map_or(now, PeriodId::nominal);
    let lead = SignedDuration::from_secs(plan.window().opens_before().as_seconds());
    let mut earliest: Option<Timestamp> = None;
    for nominal in pending.chain(periods_after(plan, watermark)).take(AHEAD_MAX) {
        // No later window opens before this one.
        if earliest.is_some_and(|earliest| nominal.checked_sub(lead).is_ok_and(|opens| opens > earliest)) {
            break;
        }
        let chosen = decide(plan, nominal).chosen();
        earliest = match (earliest, chosen) {
            (Some(earliest), Some(chosen)) => Some(earliest.min(chosen)),
            (earliest, chosen) => earliest.or(chosen),
        };
    }
    earliest
}

/// The nominal times of periods after one, each a whole second.
fn periods_after(plan: &kron_core::Job, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
    let mut last = after;
    std::iter::from_fn(move || {
        let at = plan.schedule().next_after(last)?;
        let floor = floor_second(at);
        let whole = if at == floor { Some(at) } else { floor.checked_add(SignedDuration::from_secs(1)).ok() };
        last = whole?;
        whole
    })
}

fn run_id(run: &Active, n: u64) -> RunId {
    run.scheduled.map_or(RunId::Manual(n), |scheduled| RunId::Period(PeriodId::new(scheduled)))
}

fn of_decision(decision: &Decision, reason: Reason, actual: Timestamp) -> Occurrence {
    Occurrence {
        chosen: decision.chosen(),
        seed_hash: Some(decision.seed_hash().to_string()),
        ..entry(decision.nominal(), reason, actual)
    }
}

fn entry(scheduled: Timestamp, reason: Reason, actual: Timestamp) -> Occurrence {
    Occurrence {
        scheduled,
        kind: Kind::One,
        outcome: reason.outcome(),
        reason,
        actual,
        chosen: None,
        job_id: None,
        active_job_id: None,
        seed_hash: None,
        last: None,
        count: 1,
        at_least: false,
        civil: Vec::new(),
    }
}

/// Joins what was missed for one reason.
fn add(missed: &mut BTreeMap<Reason, Occurrence>, more: Occurrence) {
    let Some(so_far) = missed.get_mut(&more.reason) else {
        missed.insert(more.reason, more);
        return;
    };
    let last = |occurrence: &Occurrence| occurrence.last.unwrap_or(occurrence.scheduled);
    so_far.last = Some(last(so_far).max(last(&more)));
    so_far.scheduled = so_far.scheduled.min(more.scheduled);
    so_far.kind = Kind::Range;
    so_far.count += more.count;
    so_far.at_least |= more.at_least;
    (so_far.chosen, so_far.seed_hash) = (None, None);
}
