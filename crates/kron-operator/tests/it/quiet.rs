//! What an operator does while nothing is in its way: policies, outcomes, and what they cost.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kron_core::Watch;
use kron_operator::api::{HistoryEntry, KronJobSpec, KronJobStatus};
use kron_operator::definition::Definition;
use kron_operator::reconcile::{self, Seen, Turn, reconcile};
use kron_zones::Zones;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::world::{Operator, Rng, START, Shared, World, second, template};

#[test]
fn a_name_of_a_second_is_the_same_for_whoever_asks() {
    let name = |second| reconcile::job_name("x", Timestamp::from_second(START + second).unwrap().into());
    let names: BTreeSet<String> = (0..100).map(name).collect();
    assert_eq!(names.len(), 100);
    assert_eq!(names.first().unwrap(), "x-1800000000");
}

/// A world without faults, second by second.
struct Quiet {
    shared: Shared,
    operators: Vec<Operator>,
}

impl Quiet {
    fn new(spec: Value) -> Quiet {
        let mut spec = spec;
        spec["jobTemplate"] = serde_json::to_value(template()).unwrap();
        let spec = serde_json::from_value(spec).unwrap();
        let shared = World::new(Rng(7), START + 1, false, None, spec);
        let operators = vec![Operator::new(&shared, 1)];
        Quiet { shared, operators }
    }

    fn run(&mut self, seconds: i64) -> &mut Quiet {
        for _ in 0..seconds {
            second(&self.shared, &mut self.operators, &mut Rng(3));
        }
        assert_eq!(self.shared.lock().unwrap().trouble, Vec::<String>::new());
        self
    }

    /// Time passes, and nobody is there.
    fn away(&mut self, seconds: i64) -> &mut Quiet {
        self.operators.clear();
        self.run(seconds);
        self.operators.push(Operator::new(&self.shared, 2));
        self
    }

    fn edit(&mut self, change: impl FnOnce(&mut KronJobSpec)) -> &mut Quiet {
        let mut world = self.shared.lock().unwrap();
        let version = world.bump();
        let kronjob = world.kronjob.as_mut().unwrap();
        change(&mut kronjob.spec);
        kronjob.metadata.generation = kronjob.metadata.generation.map(|generation| generation + 1);
        kronjob.metadata.resource_version = version;
        drop(world);
        self
    }

    fn finish(&mut self) -> &mut Quiet {
        let mut world = self.shared.lock().unwrap();
        let active: Vec<String> =
            world.jobs.iter().filter(|(_, job)| job.status.is_none()).map(|(name, _)| name.clone()).collect();
        for name in active {
            world.finish(&name, "Complete");
        }
        drop(world);
        self
    }

    fn jobs(&self) -> usize {
        self.shared.lock().unwrap().jobs.len()
    }

    /// How many names are kept taken.
    fn held(&self) -> usize {
        self.shared.lock().unwrap().jobs.values().filter(|job| !job.finalizers().is_empty()).count()
    }

    fn created(&self) -> usize {
        self.shared.lock().unwrap().created.len()
    }

    fn writes(&self) -> u64 {
        self.shared.lock().unwrap().writes
    }

    fn status(&self) -> KronJobStatus {
        self.shared.lock().unwrap().kronjob.clone().unwrap().status.unwrap_or_default()
    }

    /// The history, the oldest first: what became of what, and why.
    fn told(&self) -> Vec<String> {
        let entry = |entry: &HistoryEntry| match &entry.count {
            Some(count) => format!("{count} {} {}", entry.outcome, entry.reason),
            None => format!("{} {}", entry.outcome, entry.reason),
        };
        self.status().history.iter().rev().map(entry).collect()
    }
}

#[test]
fn a_claim_is_written_before_every_creation() {
    let quiet = Quiet::new(json!({"schedule": "@every 100s"}));
    let mut kronjob = quiet.shared.lock().unwrap().kronjob.clone().unwrap();
    let definition = Definition::read(&kronjob.spec, "n/x", &Zones::bundled());
    let at = |second| Timestamp::from_second(START + second).unwrap();
    let look = reconcile::Look { holder: "me", watch: Watch { since: at(1), now: at(100) }, clock: at(100) };
    // Nothing comes of the creation, and it is tried again within the same second.
    for _ in 0..3 {
        let (jobs, failures, refused) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let seen = Seen {
            kronjob: &kronjob,
            definition: &definition,
            jobs: &jobs,
            failures: &failures,
            refused: &refused,
        };
        let Turn::Act(act) = reconcile(seen, look) else { panic!("no Job is looked for") };
        assert_eq!(act.create.len(), 1);
        assert!(act.status.is_some(), "it is created by a claim that may be gone");
        kronjob.status = act.status;
    }
}

#[test]
fn forbid_skips_while_one_runs() {
    let mut quiet = Quiet::new(json!({"schedule": "@every 10s"}));
    quiet.run(32);
    assert_eq!(quiet.told(), ["executed started", "skipped still-running", "skipped still-running"]);
    assert_eq!((quiet.jobs(), quiet.status().active_count), (1, 1));
    quiet.finish().run(10);
    assert_eq!(quiet.told().last().unwrap(), "executed started");
    assert_eq!(quiet.status().history[3].result.as_deref(), Some("succeeded"));
}

#[test]
fn allow_starts_beside_and_replace_instead() {
    let mut allow = Quiet::new(json!({"schedule": "@every 10s", "policy": {"concurrency": "allow"}}));
    allow.run(32);
    assert_eq!((allow.told().len(), allow.jobs(), allow.status().active_count), (3, 3, 3));
    let mut replace = Quiet::new(json!({"schedule": "@every 10s", "policy": {"concurrency": "replace"}}));
    replace.run(36);
    assert_eq!(replace.told(), ["executed started"; 3]);
    assert_eq!((replace.created(), replace.jobs(), replace.status().active_count), (3, 1, 1));
}

#[test]
fn a_replacement_waits_for_what_runs_however_long_and_for_nothing_else() {
    let mut quiet = Quiet::new(json!({"schedule": "@every 10s", "policy": {"concurrency": "replace"}}));
    quiet.run(12);
    // Its pods do not end.
    let stubborn = {
        let mut world = quiet.shared.lock().unwrap();
        let mut job = world.jobs.first_entry().unwrap();
        job.get_mut().finalizers_mut().push("foregroundDeletion".to_owned());
        job.key().clone()
    };
    quiet.run(200);
    let claims = quiet.status().ledger.unwrap().claims;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].replaces, [stubborn.as_str()], "the Job that runs, once, and none that never was");
    assert_eq!(quiet.told(), ["skipped superseded"; 10]);
    assert_eq!((quiet.created(), quiet.jobs()), (1, 1));
    quiet.shared.lock().unwrap().jobs.remove(&stubborn);
    quiet.run(10);
    assert_eq!(quiet.told().last().unwrap(), "executed started");
    assert_eq!((quiet.created(), quiet.jobs()), (2, 1));
}

#[test]
fn what_passes_while_suspended_is_counted_and_one_is_made_up_for() {
    let mut quiet = Quiet::new(
        json!({"schedule": "@every 10s", "policy": {"suspend": true, "deadline": "1h", "concurrency": "allow"}}),
    );
    quiet.run(65);
    assert_eq!((quiet.told().len(), quiet.created(), quiet.status().next_chosen_time), (0, 0, None));
    quiet.edit(|spec| spec.policy.suspend = false).run(2);
    assert_eq!(quiet.told(), ["5 skipped superseded", "executed started"]);
}

#[test]
fn after_a_downtime_there_is_one_run_and_no_cliff() {
    let mut quiet =
        Quiet::new(json!({"schedule": "@every 10s", "policy": {"deadline": "2h", "concurrency": "allow"}}));
    quiet.run(12).away(100_000).run(2);
    assert_eq!(quiet.created(), 2);
    let told = quiet.told();
    assert!(told.iter().any(|line| line.contains("missed deadline-passed")), "{told:?}");
    let mut strict = Quiet::new(json!({"schedule": "@every 10s"}));
    strict.run(12).away(64).run(2);
    assert_eq!(strict.told()[1..], ["5 missed deadline-passed", "missed deadline-passed"]);
}

#[test]
fn a_window_that_was_open_before_it_existed_is_none_of_its_own() {
    let around = json!({"schedule": "@every 10m", "window": {"mode": "around", "duration": "10m"}, "policy": {"concurrency": "allow", "deadline": "1h"}});
    let mut quiet = Quiet::new(around);
    quiet.run(1_200);
    let first = quiet.shared.lock().unwrap().created[0].1.parse::<Timestamp>().unwrap().as_second();
    assert_eq!(first, START + 600);
}

#[test]
fn an_edit_repeats_nothing() {
    let mut quiet =
        Quiet::new(json!({"schedule": "@every 10s", "policy": {"deadline": "1h", "concurrency": "allow"}}));
    quiet.run(25);
    assert_eq!(quiet.created(), 2);
    quiet.edit(|spec| spec.schedule = "@every 5s".to_owned()).run(1);
    quiet.edit(|spec| spec.seed = serde_json::from_value(json!({"salt": "x"})).unwrap()).run(1);
    quiet.edit(|spec| spec.window = serde_json::from_value(json!({"duration": "4s"})).unwrap()).run(20);
    let world = quiet.shared.lock().unwrap();
    let periods: BTreeSet<_> = world.created.iter().collect();
    assert_eq!(periods.len(), world.created.len());
}

#[test]
fn a_period_costs_two_writes_and_its_end_one() {
    let mut quiet = Quiet::new(json!({"schedule": "@every 100s"}));
    quiet.run(2);
    assert_eq!(quiet.writes(), 1, "the first status");
    quiet.run(95);
    assert_eq!(quiet.writes(), 1, "nothing is due");
    quiet.run(5);
    assert_eq!(quiet.writes(), 3, "a claim and a record");
    quiet.finish().run(5);
    assert_eq!(quiet.writes(), 4, "the end");
    assert_eq!(quiet.held(), 0, "its name is released");
}

#[test]
fn finished_jobs_are_kept_as_many_as_asked_for() {
    let mut quiet = Quiet::new(json!({"schedule": "@every 10s", "history": {"successful": 2, "failed": 0}}));
    for _ in 0..8 {
        quiet.run(10).finish();
    }
    quiet.run(5);
    assert_eq!((quiet.created(), quiet.jobs()), (8, 2));
}

#[test]
fn a_spec_with_mistakes_is_told_once_and_nothing_runs() {
    let mut quiet = Quiet::new(json!({"schedule": "61 * * * *"}));
    quiet.run(200);
    assert_eq!((quiet.writes(), quiet.created()), (1, 0));
    let conditions = quiet.status().conditions;
    let invalid = conditions.iter().find(|condition| condition.type_ == "InvalidSpec").unwrap();
    assert!(
        invalid.status == "True" && invalid.message.starts_with("spec.schedule: "),
        "{}",
        invalid.message
    );
    quiet.edit(|spec| spec.schedule = "@every 10s".to_owned()).run(12);
    assert_eq!(quiet.created(), 1);
}

#[test]
fn a_deleted_job_is_not_created_again() {
    let mut quiet = Quiet::new(json!({"schedule": "@every 100s", "policy": {"deadline": "1h"}}));
    quiet.run(102);
    assert_eq!(quiet.jobs(), 1);
    let name = quiet.shared.lock().unwrap().jobs.keys().next().unwrap().clone();
    quiet.shared.lock().unwrap().delete(&name);
    quiet.run(50);
    assert_eq!((quiet.jobs(), quiet.created()), (0, 1));
    assert_eq!(quiet.status().history[0].result.as_deref(), Some("unknown"));
}

#[test]
fn a_job_that_is_refused_is_missed_when_its_deadline_passes() {
    let mut quiet = Quiet::new(json!({"schedule": "@every 100s", "policy": {"deadline": "20s"}}));
    quiet.run(50);
    quiet.shared.lock().unwrap().is_full = true;
    quiet.run(69);
    assert_eq!(quiet.told(), [""; 0], "it is tried until then");
    quiet.run(2);
    assert_eq!(quiet.told(), ["missed deadline-passed"]);
    let message = quiet.status().history[0].message.clone().unwrap();
    assert!(message.ends_with("no room"), "{message}");
    // The next one gets in at its third try, and nobody else can have tried: its name is not held.
    quiet.run(80);
    quiet.shared.lock().unwrap().is_full = false;
    quiet.run(10);
    assert_eq!(quiet.told().last().unwrap(), "executed started");
    assert_eq!(quiet.held(), 0);
}
