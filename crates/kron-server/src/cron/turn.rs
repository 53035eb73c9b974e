//! What to do about a cron job now: pure, and told the time.
//!
//! kron-core's `evaluate` decides. Here its steps become what Open Job Spec has: jobs, cancellations, events
//! and entries in the record of occurrences.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kron_core::{Decision, Ledger, PeriodId, Policy, Record, RunId, Step, Watch, decide, evaluate};
use kron_schedule::Count;
use serde_json::json;

use crate::clock::{ceil_second, floor_second};
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
    /// When the cron job had fired last before it.
    pub ran_before: Option<Timestamp>,
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
        self.follow_zone(compiled);
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
        self.tell_missed(missed, actual, &mut turn);
        let watermark = ledger.watermark().map_or(self.watermark, PeriodId::nominal);
        if watermark > self.watermark {
            self.watermark = watermark;
            self.label = Some(compiled.plan.zone().to_civil(watermark));
        }
        self.pending = ledger.pending().iter().map(|period| period.nominal()).collect();
        self.look_ahead(compiled, now);
        turn
    }

    /// Gives up what has begun and waits for its chosen time: from now on another schedule counts, or none of
    /// what came while it was disabled.
    pub(super) fn give_up(&mut self, compiled: &Compiled, now: Timestamp) -> Turn {
        let (mut turn, mut missed) = (Turn::default(), BTreeMap::new());
        let begun = |decision: &Decision| decision.nominal() <= now;
        let waiting: Vec<Decision> = self.planned(compiled).take_while(begun).collect();
        for decision in waiting {
            if self.enabled {
                add(&mut missed, of_decision(&decision, Reason::Rescheduled, now));
            } else {
                self.skip(of_decision(&decision, Reason::Disabled, now), now, &mut turn);
            }
        }
        self.tell_missed(missed, now, &mut turn);
        turn
    }

    /// Counts from now: what was to run before is none of its occurrences.
    pub(super) fn count_from(&mut self, compiled: &Compiled, now: Timestamp) {
        self.gaps_told = now;
        let now = floor_second(now);
        self.watermark = self.watermark.max(now);
        self.label = None;
        self.pending.clear();
        // A window may have opened before its nominal time, and the time chosen in it may have passed.
        let lead = SignedDuration::from_secs(compiled.plan.window().opens_before().as_seconds());
        let horizon = now.checked_add(lead).unwrap_or(Timestamp::MAX);
        let mut waiting = Vec::new();
        for nominal in periods_after(&compiled.plan, self.watermark).take_while(|nominal| *nominal <= horizon)
        {
            let decision = decide(&compiled.plan, nominal);
            if decision.chosen().unwrap_or(decision.window_start()) <= now {
                self.watermark = nominal;
                self.pending.append(&mut waiting);
            } else {
                waiting.push(nominal);
            }
        }
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
        self.planned_from(compiled, Timestamp::MIN)
    }

    /// The same, for nominal times from a whole second on. What lies before it is not walked through.
    pub fn planned_from<'c>(
        &'c self,
        compiled: &'c Compiled,
        from: Timestamp,
    ) -> impl Iterator<Item = Decision> + 'c {
        let before = from.checked_sub(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MIN);
        let pending = self.pending.iter().copied().filter(move |nominal| *nominal >= from);
        let coming = periods_after(&compiled.plan, self.watermark.max(before));
        pending.chain(coming).map(|nominal| decide(&compiled.plan, nominal))
    }

    /// Whether an occurrence has its outcome.
    pub(super) fn is_settled(&self, nominal: Timestamp) -> bool {
        nominal <= self.watermark && !self.pending.contains(&nominal)
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
                        self.skip(Occurrence { active_job_id, ..occurrence }, actual, turn);
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
        let ran_before = self.last_run_at.replace(actual);
        occurrence.job_id = Some(job.id.clone());
        let event = self
            .event("cron.triggered", actual, &occurrence)
            .with("run_count", self.run_count)
            .with("actual_time", stamp(actual));
        Fire { occurrence, job, event, ran_before }
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
            self.skip(occurrence, actual, turn);
        }
        self.gaps_told = self.gaps_told.max(now);
    }

    fn skip(&self, occurrence: Occurrence, actual: Timestamp, turn: &mut Turn) {
        turn.events.push(self.event("cron.skipped", actual, &occurrence));
        turn.occurrences.push(occurrence);
    }

    fn tell_missed(&self, missed: BTreeMap<Reason, Occurrence>, actual: Timestamp, turn: &mut Turn) {
        for (_, occurrence) in missed {
            turn.events.push(self.event("cron.missed", actual, &occurrence));
            turn.occurrences.push(occurrence);
        }
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

    /// Whether it is asked which of its jobs are active before the next is made.
    #[must_use]
    pub fn minds_active(&self) -> bool {
        self.definition.overlap.minds_active()
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
pub(super) fn periods_after(plan: &kron_core::Job, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
    let mut last = after;
    std::iter::from_fn(move || {
        // In the last second that there is, no whole one follows.
        let next = Some(ceil_second(plan.schedule().next_after(last)?)).filter(|next| *next > last);
        last = next?;
        next
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::definition::Registration;
    use crate::members::Members;
    use kron_zones::Zones;
    use serde_json::Value;

    /// A cron job and its clock.
    struct World {
        cron: Cron,
        compiled: Compiled,
        active: Vec<Active>,
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    impl World {
        fn new(definition: Value, registered: &str) -> World {
            let zones = Zones::bundled();
            let mut definition = definition;
            definition["name"] = json!("job");
            definition["type"] = json!("test.job");
            let now = at(registered);
            let given = Members::read(definition.to_string().as_bytes()).unwrap();
            let registration = Registration::read(given, &zones, now).unwrap();
            let compiled = registration.definition.compile(now, &zones).unwrap();
            let enabled = registration.enabled.unwrap_or(true);
            let cron = Cron::new(registration.definition, &compiled, enabled, now);
            World { cron, compiled, active: Vec::new() }
        }

        /// Looks at a time, and says what came of it: `+T` fired, `-reason T`, `x` cancelled.
        fn look(&mut self, now: &str) -> String {
            let now = at(now);
            let turn = self.cron.turn(&self.compiled, &self.active, now, now);
            let mut told: Vec<String> = turn.cancels.iter().map(|id| format!("x{id}")).collect();
            for occurrence in &turn.occurrences {
                let range = occurrence.last.map(|last| format!("..{last} ({})", occurrence.count));
                let range = range.unwrap_or_default();
                told.push(format!("-{} {}{range}", occurrence.reason.name(), occurrence.scheduled));
            }
            told.extend(turn.fires.iter().map(|fire| format!("+{}", fire.occurrence.scheduled)));
            // Nothing is left over for a second look.
            let again = self.cron.turn(&self.compiled, &self.active, now, now);
            assert!(again.fires.is_empty() && again.occurrences.is_empty() && again.events.is_empty());
            assert!(self.cron.next_look.is_none_or(|look| look > now));
            told.join(" ")
        }

        fn next(&self) -> String {
            self.cron.next_run_at.map_or("never".into(), |at| at.to_string())
        }
    }

    #[test]
    fn the_latest_due_occurrence_is_caught_up_with_and_the_rest_is_told() {
        let mut world = World::new(json!({"cron": "*/10 * * * *"}), "2026-01-01T00:00:00Z");
        assert_eq!(world.next(), "2026-01-01T00:10:00Z");
        assert_eq!(world.look("2026-01-01T00:09:59Z"), "");
        assert_eq!(world.look("2026-01-01T00:10:00Z"), "+2026-01-01T00:10:00Z");
        assert_eq!(
            world.look("2026-01-01T00:55:00Z"),
            "-passed_over 2026-01-01T00:20:00Z..2026-01-01T00:40:00Z (3) +2026-01-01T00:50:00Z"
        );
        assert_eq!((world.cron.run_count, world.next().as_str()), (2, "2026-01-01T01:00:00Z"));
        // Ten years of downtime cost no more than ten minutes.
        assert_eq!(
            world.look("2036-01-01T00:05:00Z"),
            "-passed_over 2026-01-01T01:00:00Z..2035-12-31T23:50:00Z (1000) +2036-01-01T00:00:00Z"
        );
    }

    #[test]
    fn a_time_that_clocks_skip_is_told_at_the_change_and_one_that_comes_twice_fires_once() {
        let new_york = json!({"cron": "30 2 * * *", "timezone": "America/New_York"});
        let mut world = World::new(new_york, "2026-03-07T12:00:00Z");
        assert_eq!(world.cron.next_look, Some(at("2026-03-08T07:00:00Z")));
        assert_eq!(world.next(), "2026-03-09T06:30:00Z");
        assert_eq!(world.look("2026-03-08T07:00:00Z"), "-dst_skip 2026-03-08T07:00:00Z");
        assert_eq!(world.look("2026-03-08T07:30:00Z"), "");

        let twice = json!({"cron": "30 1 * * *", "timezone": "America/New_York"});
        let mut world = World::new(twice, "2026-10-31T12:00:00Z");
        assert_eq!(world.look("2026-11-01T05:30:00Z"), "+2026-11-01T05:30:00Z");
        assert_eq!(world.look("2026-11-01T06:30:00Z"), "");
        assert_eq!(world.next(), "2026-11-02T06:30:00Z");
    }

    #[test]
    fn overlap_is_what_the_policy_says() {
        let run = |id: &str| Active { job_id: id.into(), scheduled: Some(at("2026-01-01T00:00:00Z")) };
        for (policy, told) in [
            ("skip", "-overlap_skip 2026-01-01T00:01:00Z"),
            ("allow", "+2026-01-01T00:01:00Z"),
            ("enqueue", "+2026-01-01T00:01:00Z"),
            ("cancel_previous", "xone xtwo +2026-01-01T00:01:00Z"),
        ] {
            let definition = json!({"cron": "* * * * *", "overlap_policy": policy});
            let mut world = World::new(definition, "2026-01-01T00:00:30Z");
            world.active = vec![run("one"), Active { job_id: "two".into(), scheduled: None }];
            assert_eq!(world.look("2026-01-01T00:01:00Z"), told, "{policy}");
            let fired = u64::from(policy != "skip");
            assert_eq!((world.cron.run_count, world.next().as_str()), (fired, "2026-01-01T00:02:00Z"));
        }
    }

    #[test]
    fn a_disabled_cron_job_tells_each_occurrence_and_has_no_next_run() {
        let mut world = World::new(json!({"cron": "* * * * *", "enabled": false}), "2026-01-01T00:00:30Z");
        assert_eq!(world.next(), "never");
        assert_eq!(world.look("2026-01-01T00:01:00Z"), "-disabled 2026-01-01T00:01:00Z");
        assert_eq!(world.look("2026-01-01T00:02:00Z"), "-disabled 2026-01-01T00:02:00Z");
        assert_eq!((world.cron.run_count, world.cron.last_run_at), (0, None));
    }

    #[test]
    fn an_interval_counts_from_its_registration_and_never_drifts() {
        let mut world = World::new(json!({"cron": "@every 30m"}), "2026-01-01T00:07:00Z");
        assert_eq!(world.next(), "2026-01-01T00:37:00Z");
        assert_eq!(world.look("2026-01-01T00:37:03Z"), "+2026-01-01T00:37:00Z");
        assert_eq!(world.next(), "2026-01-01T01:07:00Z");
        // Beside the grid of seconds, what piles up within one fires once.
        let mut world = World::new(json!({"cron": "@every 400ms"}), "2026-01-01T00:00:00Z");
        assert_eq!(world.look("2026-01-01T00:00:01Z"), "+2026-01-01T00:00:01Z");
        assert_eq!(world.look("2026-01-01T00:00:02Z"), "+2026-01-01T00:00:02Z");
    }

    #[test]
    fn a_window_spreads_and_a_deadline_gives_up() {
        let kron = json!({"window": {"mode": "around", "duration": "1h"}, "deadline": "5m"});
        let mut world = World::new(json!({"cron": "0 6 * * *", "kron": kron}), "2026-01-01T00:00:00Z");
        let chosen = at(&world.next());
        assert!((at("2026-01-01T05:30:00Z")..=at("2026-01-01T06:30:00Z")).contains(&chosen));
        assert_eq!(world.cron.next_look, Some(chosen));
        assert_eq!(world.look(&chosen.to_string()), "+2026-01-01T06:00:00Z");
        let late = at(&world.next()) + SignedDuration::from_secs(301);
        assert_eq!(world.look(&late.to_string()), "-deadline_passed 2026-01-02T06:00:00Z");
        let never = json!({"window": {"duration": "1h"}, "only": ["hours=3-4"]});
        let mut world = World::new(json!({"cron": "0 6 * * *", "kron": never}), "2026-01-01T00:00:00Z");
        assert_eq!(world.next(), "never");
        assert_eq!(world.look("2026-01-01T06:00:00Z"), "-unschedulable 2026-01-01T06:00:00Z");
    }

    #[test]
    fn what_was_chosen_before_the_registration_is_no_occurrence() {
        // Half of these windows have opened by then, and in some the chosen time has passed.
        let kron = json!({"window": {"mode": "around", "duration": "1h"}, "seed": {"strategy": "daily"}});
        let registered = at("2026-01-01T05:50:00Z");
        for salt in 0..20 {
            let mut kron = kron.clone();
            kron["seed"]["salt"] = json!(salt.to_string());
            let definition = json!({"cron": "*/10 * * * *", "kron": kron, "overlap_policy": "allow"});
            let mut world = World::new(definition, "2026-01-01T05:50:00Z");
            assert!(at(&world.next()) > registered, "{salt}: {}", world.next());
            assert!(world.cron.next_look > Some(registered), "{salt}");
            assert_eq!(world.look("2026-01-01T05:50:00Z"), "", "{salt}");
            let planned: Vec<Decision> = world.cron.planned(&world.compiled).take(6).collect();
            assert!(planned.iter().all(|decision| decision.chosen() > Some(registered)), "{salt}");
            assert!(planned.windows(2).all(|two| two[0].nominal() < two[1].nominal()), "{salt}");
            // Each of them fires once, in the second that was chosen.
            let mut chosen: Vec<Timestamp> = planned.iter().filter_map(Decision::chosen).collect();
            chosen.sort_unstable();
            for time in chosen {
                assert!(world.look(&time.to_string()).starts_with('+'), "{salt}: {time}");
            }
        }
    }

    #[test]
    fn what_waits_for_its_chosen_time_when_the_schedule_changes_is_told() {
        let kron = json!({"window": {"duration": "30m"}});
        let definition = json!({"cron": "*/5 * * * *", "kron": kron, "overlap_policy": "allow"});
        let mut world = World::new(definition, "2026-01-01T00:00:00Z");
        for minute in 1..50 {
            world.look(&format!("2026-01-01T00:{minute:02}:00Z"));
        }
        let now = at("2026-01-01T00:50:00Z");
        world.look(&now.to_string());
        let waiting = world.cron.planned(&world.compiled).take_while(|it| it.nominal() <= now).count() as u64;
        assert!(waiting > 1, "{waiting}");
        let mut other = world.cron.definition.clone();
        other.cron = "7 * * * *".into();
        let (mut rescheduled, mut disabled) = (world.cron.clone(), world.cron.clone());
        let (_, turn) = rescheduled.redefine(other, true, &Zones::bundled(), now).unwrap();
        assert!(turn.fires.is_empty() && turn.cancels.is_empty());
        let told: Vec<_> = turn.occurrences.iter().map(|it| (it.reason, it.count)).collect();
        assert_eq!(told, [(Reason::Rescheduled, waiting)]);
        assert_eq!(turn.events[0].kind, "cron.missed");
        assert!(rescheduled.pending.is_empty() && rescheduled.watermark == now);

        disabled.enabled = false;
        let definition = disabled.definition.clone();
        let (_, turn) = disabled.redefine(definition, true, &Zones::bundled(), now).unwrap();
        assert_eq!(turn.occurrences.len() as u64, waiting, "each is told to have been skipped");
        assert!(turn.events.iter().all(|event| event.kind == "cron.skipped"));
        // The same schedule goes on as it was.
        let definition = world.cron.definition.clone();
        let before = (world.cron.watermark, world.cron.pending.clone());
        let (_, turn) = world.cron.redefine(definition, true, &Zones::bundled(), now).unwrap();
        assert!(turn.occurrences.is_empty() && turn.events.is_empty());
        assert_eq!(before, (world.cron.watermark, world.cron.pending));
    }

    #[test]
    fn a_clock_that_is_set_back_repeats_nothing() {
        let mut world = World::new(json!({"cron": "* * * * *"}), "2026-01-01T00:00:30Z");
        assert_eq!(world.look("2026-01-01T05:00:00Z").split(' ').next_back(), Some("+2026-01-01T05:00:00Z"));
        assert_eq!(world.look("2026-01-01T01:00:00Z"), "");
        assert_eq!(world.look("2026-01-01T05:00:59Z"), "");
        assert_eq!(world.look("2026-01-01T05:01:00Z"), "+2026-01-01T05:01:00Z");
    }
}
