//! Whatever happens, no period of a `KronJob` has two Jobs: histories of up to three operators on a server that does its worst,
//! which die between any two requests. The verdict asks nothing but what the server was made to create.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kron_operator::api::{FINALIZER, KronJobSpec, PolicySpec, WindowSpec};
use kron_operator::release::HOLD;
use kube::ResourceExt;
use serde_json::json;

use crate::world::{Operator, Plant, Rng, START, STOPPED, Shared, World, kronjob, second, template};

/// A spec that is drawn.
fn spec(rng: &mut Rng) -> KronJobSpec {
    let concurrency = ["allow", "forbid", "replace"][usize::try_from(rng.below(3)).unwrap()];
    let deadline = ["0s", "5s", "45s", "10m"][usize::try_from(rng.below(4)).unwrap()];
    let window = match rng.below(4) {
        0 => None,
        1 => Some(json!({"mode": "after", "duration": "50s"})),
        2 => Some(json!({"mode": "around", "duration": "100s"})),
        _ => Some(json!({"mode": "after", "duration": "4m"})),
    };
    KronJobSpec {
        schedule: ["* * * * *", "*/2 * * * *", "@every 45s"][usize::try_from(rng.below(3)).unwrap()]
            .to_owned(),
        window: window.map(|window| serde_json::from_value::<WindowSpec>(window).unwrap()),
        policy: serde_json::from_value::<PolicySpec>(
            json!({"concurrency": concurrency, "deadline": deadline, "suspend": rng.one_in(12)}),
        )
        .unwrap(),
        job_template: template(),
        ..KronJobSpec::default()
    }
}

/// How long faults last, and how long there is peace after them.
const TROUBLED: i64 = 900;
const PEACE: i64 = 1_200;

/// Lives through one history. What went wrong is returned; and how many Jobs there were.
fn live(seed: u64, plant: Option<Plant>) -> (Vec<String>, usize) {
    let mut rng = Rng(seed);
    let world = Rng(rng.next());
    let now = START + i64::try_from(rng.below(200)).unwrap();
    let shared = World::new(world, now, true, plant, spec(&mut rng));
    let mut numbers = 0_u64;
    let mut operators = Vec::new();
    let end = shared.lock().unwrap().now + TROUBLED;
    while shared.lock().unwrap().now < end {
        // Up to three at once: nobody relies on a Lease here.
        if operators.len() < 3 && (operators.is_empty() && rng.one_in(10) || rng.one_in(150)) {
            numbers += 1;
            operators.push(Operator::new(&shared, numbers));
        }
        if !operators.is_empty() && rng.one_in(100) {
            let at = usize::try_from(rng.below(operators.len() as u64)).unwrap();
            operators.remove(at); // and whatever it was doing
        }
        meddle(&shared, &mut rng);
        second(&shared, &mut operators, &mut rng);
    }
    peace(&shared, &mut operators, numbers)
}

/// What people, kubelets and controllers do.
fn meddle(shared: &Shared, rng: &mut Rng) {
    let mut world = shared.lock().unwrap();
    let names: Vec<String> = world.jobs.keys().cloned().collect();
    for name in names {
        let job = &world.jobs[&name];
        let is_done = job.status.is_some();
        if !is_done && rng.one_in(40) {
            world.finish(&name, if rng.one_in(3) { "Failed" } else { "Complete" });
        } else if rng.one_in(if is_done { 15 } else { 300 }) {
            world.delete(&name);
        }
    }
    if rng.one_in(200) {
        let version = world.bump();
        let spec = spec(rng);
        if let Some(kronjob) = &mut world.kronjob {
            kronjob.spec = spec;
            kronjob.metadata.generation = kronjob.metadata.generation.map(|generation| generation + 1);
            kronjob.metadata.resource_version = version;
        }
    }
    if rng.one_in(600) {
        // Another of the same name. The old one's Jobs are collected once their names are released.
        let gone = world.kronjob.take().unwrap().uid().unwrap();
        let old: Vec<String> = world
            .jobs
            .iter()
            .filter(|(_, job)| job.owner_references()[0].uid == gone)
            .map(|(name, _)| name.clone())
            .collect();
        for name in old {
            world.release(&name);
            world.delete(&name);
        }
        let next = kronjob(&mut world, spec(rng));
        world.kronjob = Some(next);
    }
}

/// Faults end. Within the time that it takes, everything is as it should be.
fn peace(shared: &Shared, operators: &mut Vec<Operator>, numbers: u64) -> (Vec<String>, usize) {
    let mut rng = Rng(1);
    {
        let mut world = shared.lock().unwrap();
        world.faults = false;
        let version = world.bump();
        let kronjob = world.kronjob.as_mut().unwrap();
        kronjob.spec.policy.suspend = false;
        kronjob.metadata.generation = kronjob.metadata.generation.map(|generation| generation + 1);
        kronjob.metadata.resource_version = version;
    }
    operators.truncate(1);
    if operators.is_empty() {
        operators.push(Operator::new(shared, numbers + 1));
    }
    let begin = shared.lock().unwrap().now;
    let end = begin + PEACE;
    let mut last_jobs = 0;
    while shared.lock().unwrap().now < end {
        {
            let mut world = shared.lock().unwrap();
            let active =
                world.jobs.iter().filter(|(_, job)| job.status.is_none()).map(|(name, _)| name.clone());
            for name in active.collect::<Vec<_>>() {
                world.finish(&name, "Complete");
            }
            if world.now == end - 300 {
                last_jobs = world.created.len();
            }
        }
        second(shared, operators, &mut rng);
    }
    let mut world = shared.lock().unwrap();
    let mut trouble = std::mem::take(&mut world.trouble);
    let kronjob = world.kronjob.clone().unwrap();
    if world.created.len() <= last_jobs {
        trouble.push("nothing runs any more".to_owned());
    }
    let status = kronjob.status.clone().unwrap_or_default();
    let ledger = status.ledger.unwrap_or_default();
    if ledger.claims.iter().any(|claim| {
        claim.claimed_at.parse::<Timestamp>().unwrap() < world.time() - SignedDuration::from_secs(120)
    }) {
        trouble.push(format!("a claim is left: {:?}", ledger.claims));
    }
    if status.observed_generation != kronjob.metadata.generation {
        trouble.push("the last change was not seen".to_owned());
    }
    let held = world.jobs.values().filter(|job| job.finalizers().iter().any(|name| name == FINALIZER));
    // The one that is left may have been stopped when the faults ended, and records only then.
    let woken = begin + i64::try_from(STOPPED).unwrap();
    let hold = i64::try_from(HOLD.as_secs()).unwrap() + 60;
    let is_over = |job: &&Job| {
        let created = job.metadata.creation_timestamp.as_ref().unwrap().0.as_second();
        created.max(woken) + hold < world.now
    };
    for job in held.filter(is_over) {
        let owner = &job.owner_references()[0].uid;
        if Some(owner.clone()) == kronjob.uid() {
            trouble.push(format!("the name of {} is still held", job.name_any()));
        }
    }
    (trouble, world.created.len())
}

/// The seeds of this run: 300, unless a campaign says otherwise.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("KRON_SEED").unwrap_or(0);
    first..first + number("KRON_HISTORIES").unwrap_or(300)
}

#[test]
fn no_period_has_two_jobs_whatever_happens() {
    let (mut jobs, mut troubled, seeds) = (0, String::new(), seeds());
    for seed in seeds.clone() {
        let (trouble, created) = live(seed, None);
        jobs += created as u64;
        for what in trouble {
            let _ = writeln!(troubled, "seed {seed}: {what}");
        }
    }
    let histories = seeds.end - seeds.start;
    println!("{histories} histories from seed {} on, {jobs} Jobs", seeds.start);
    assert!(troubled.is_empty(), "{troubled}");
    assert!(jobs > histories * 5, "only {jobs} Jobs in all");
}

#[test]
fn planted_bugs_are_found() {
    for plant in [
        Plant::NoFinalizer,
        Plant::EarlyRelease,
        Plant::BlindStatus,
        Plant::RandomNames,
        Plant::NoClaim,
        Plant::NoHold,
        Plant::LostIsRefused,
    ] {
        let found = (0..2_000)
            .find(|seed| live(*seed, Some(plant)).0.iter().any(|what| what.starts_with("two Jobs")));
        println!("{plant:?}: found by seed {found:?}");
        assert!(found.is_some(), "{plant:?} was not found");
    }
}
