//! Operators against an API server that does its worst: it loses requests and answers, delays both, shows what was long
//! ago, and has rivals; operators stop for minutes and die at any point. Whatever happens, no period of a `KronJob` has two Jobs.
//!
//! The code that looks at a `KronJob` is the product's own, `pass`. The server is a map with versions, and the verdict asks nothing but what
//! the server was made to create.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kron_core::Watch;
use kron_operator::api::{
    FINALIZER, HistoryEntry, JobTemplate, KronJob, KronJobSpec, KronJobStatus, PolicySpec, WindowSpec,
};
use kron_operator::definition::{Definition, Flaw};
use kron_operator::job;
use kron_operator::pass::{Cluster, Created, Key, Memory, Written, pass};
use kron_operator::reconcile::{self, Seen, Sight, Turn, reconcile};
use kron_operator::release::HOLD;
use kron_operator::tell::Tell;
use kron_zones::Zones;
use kube::ResourceExt;
use serde_json::{Value, json};

/// Bugs that the checker must find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Plant {
    /// The name of a Job is free as soon as it is deleted.
    NoFinalizer,
    /// The name is released when the Job is created, whoever else may be about to.
    EarlyRelease,
    /// A status is written over whatever is there.
    BlindStatus,
    /// Jobs have names of their own.
    RandomNames,
    /// A claim is not written before the Job is created.
    NoClaim,
    /// The name is released when the outcome is recorded, though another may still be about to create the Job.
    NoHold,
}

/// A stream of random numbers (`SplitMix64`).
#[derive(Clone, Debug)]
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The server, its clock, and what has happened.
struct World {
    rng: Rng,
    /// Seconds.
    now: i64,
    version: u64,
    kronjob: Option<KronJob>,
    jobs: BTreeMap<String, Job>,
    /// Creations that will arrive, whatever became of who sent them.
    on_the_way: Vec<(i64, Job)>,
    /// Every Job that was ever created: the UID of its owner and its period.
    created: Vec<(String, String)>,
    /// What was said of a period.
    outcomes: BTreeMap<(String, String), String>,
    faults: bool,
    plant: Option<Plant>,
    trouble: Vec<String>,
    writes: u64,
}

type Shared = Arc<Mutex<World>>;

const START: i64 = 1_800_000_000;

impl World {
    fn time(&self) -> Timestamp {
        Timestamp::from_second(self.now).unwrap()
    }

    fn bump(&mut self) -> Option<String> {
        self.version += 1;
        Some(self.version.to_string())
    }

    fn create(&mut self, mut job: Job) -> Created {
        if self.plant == Some(Plant::RandomNames) {
            job.metadata.name = Some(format!("{}-{}", job.name_any(), self.rng.below(1 << 30)));
        }
        if self.plant == Some(Plant::NoFinalizer) {
            job.metadata.finalizers = None;
        }
        if self.jobs.contains_key(&job.name_any()) {
            return Created::Exists;
        }
        let owner = job.owner_references()[0].uid.clone();
        let period = job.annotations()["kron.io/period-id"].clone();
        if self.kronjob.as_ref().and_then(ResourceExt::uid) != Some(owner.clone()) {
            // Its KronJob is gone, which the server does not ask for: it is made, and collected. Nothing can hold its name.
            return Created::Made(Box::new(job));
        }
        if self.created.contains(&(owner.clone(), period.clone())) {
            self.trouble.push(format!("two Jobs for {period} of {owner}"));
        }
        self.created.push((owner, period));
        job.metadata.resource_version = self.bump();
        job.metadata.uid = Some(format!("job-{}", self.version));
        job.metadata.creation_timestamp = Some(Time(self.time()));
        if self.plant == Some(Plant::EarlyRelease) {
            job.metadata.finalizers = None;
        }
        self.jobs.insert(job.name_any(), job.clone());
        Created::Made(Box::new(job))
    }

    fn delete(&mut self, name: &str) {
        let version = self.bump();
        let time = Time(self.time());
        let Some(job) = self.jobs.get_mut(name) else { return };
        job.metadata.resource_version = version;
        if job.finalizers().is_empty() {
            self.jobs.remove(name);
        } else {
            job.metadata.deletion_timestamp.get_or_insert(time);
        }
    }

    fn finish(&mut self, name: &str, how: &str) {
        let (version, time) = (self.bump(), Time(self.time()));
        let Some(job) = self.jobs.get_mut(name) else { return };
        job.metadata.resource_version = version;
        let condition = JobCondition {
            type_: how.into(),
            status: "True".into(),
            last_transition_time: Some(time),
            ..JobCondition::default()
        };
        job.status = Some(JobStatus { conditions: Some(vec![condition]), ..JobStatus::default() });
    }

    fn release(&mut self, name: &str) {
        let version = self.bump();
        let Some(job) = self.jobs.get_mut(name) else { return };
        job.metadata.resource_version = version;
        job.finalizers_mut().retain(|finalizer| finalizer != FINALIZER);
        if job.metadata.deletion_timestamp.is_some() && job.finalizers().is_empty() {
            self.jobs.remove(name);
        }
    }

    fn write(&mut self, wanted: &KronJob) -> Written {
        let version = self.bump();
        self.writes += 1;
        let plant = self.plant;
        let Some(kept) = self.kronjob.as_mut().filter(|kept| kept.uid() == wanted.uid()) else {
            return Written::Gone;
        };
        if kept.resource_version() != wanted.resource_version() && plant != Some(Plant::BlindStatus) {
            return Written::Conflict;
        }
        let claims = wanted
            .status
            .iter()
            .flat_map(|status| &status.ledger)
            .map(|ledger| ledger.claims.len())
            .sum::<usize>();
        if plant == Some(Plant::NoClaim) && claims > 0 {
            return Written::Done(Box::new(wanted.clone()));
        }
        kept.status.clone_from(&wanted.status);
        kept.metadata.resource_version = version;
        let kept = kept.clone();
        self.check_outcomes(&kept);
        if plant == Some(Plant::NoHold) {
            let claims =
                kept.status.iter().flat_map(|status| &status.ledger).flat_map(|ledger| &ledger.claims);
            let claimed: BTreeSet<&String> = claims.map(|claim| &claim.job_name).collect();
            let recorded: Vec<String> =
                self.jobs.keys().filter(|name| !claimed.contains(name)).cloned().collect();
            for name in recorded {
                self.release(&name);
            }
        }
        Written::Done(Box::new(kept))
    }

    /// An outcome that was told once is never told differently.
    fn check_outcomes(&mut self, kronjob: &KronJob) {
        let uid = kronjob.uid().unwrap();
        for entry in &kronjob.status.as_ref().unwrap().history {
            if entry.count.is_some() {
                continue;
            }
            let key = (uid.clone(), entry.period_id.clone());
            let told = self.outcomes.entry(key.clone()).or_insert_with(|| entry.outcome.clone());
            if *told != entry.outcome {
                self.trouble.push(format!("{} was {told}, and is {}", entry.period_id, entry.outcome));
            }
            if entry.outcome == "executed" && !self.created.contains(&key) {
                self.trouble.push(format!("{} is executed without a Job", entry.period_id));
            }
        }
    }
}

/// The server as one operator sees it.
#[derive(Clone)]
struct Server(Shared);

/// Waits until a time of the simulation.
struct Until(Shared, i64);

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.lock().unwrap().now >= self.1 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// What becomes of a request.
enum Fate {
    /// It is lost.
    Lost,
    /// It is carried out, and its answer is lost.
    Mute,
    /// It is carried out, and answered.
    Fine,
}

impl Server {
    /// The time a request takes, and what becomes of it.
    async fn send(&self) -> Fate {
        let (until, fate) = {
            let mut world = self.0.lock().unwrap();
            if !world.faults {
                return Fate::Fine;
            }
            let pause = match world.rng.below(60) {
                0 => world.rng.below(STOPPED), // or stuck on the way
                1..=6 => world.rng.below(20),
                _ => 0,
            };
            let fate = match world.rng.below(20) {
                0 => Fate::Lost,
                1 => Fate::Mute,
                _ => Fate::Fine,
            };
            (world.now + i64::try_from(pause).unwrap(), fate)
        };
        Until(Arc::clone(&self.0), until).await;
        fate
    }

    /// The time an answer takes.
    async fn receive(&self) {
        let until = {
            let mut world = self.0.lock().unwrap();
            let pause = if world.faults && world.rng.one_in(40) { world.rng.below(30) } else { 0 };
            world.now + i64::try_from(pause).unwrap()
        };
        Until(Arc::clone(&self.0), until).await;
    }
}

const LOST: &str = "no answer";

impl Cluster for Server {
    async fn read_kronjob(&self, _: &Key) -> Result<Option<KronJob>, String> {
        if !matches!(self.send().await, Fate::Fine) {
            return Err(LOST.into());
        }
        let found = self.0.lock().unwrap().kronjob.clone();
        self.receive().await;
        Ok(found)
    }

    async fn write_status(&self, kronjob: &KronJob) -> Result<Written, String> {
        let fate = self.send().await;
        if matches!(fate, Fate::Lost) {
            return Err(LOST.into());
        }
        let written = self.0.lock().unwrap().write(kronjob);
        self.receive().await;
        if matches!(fate, Fate::Mute) { Err(LOST.into()) } else { Ok(written) }
    }

    async fn read_job(&self, _: &str, name: &str) -> Result<Option<Job>, String> {
        if !matches!(self.send().await, Fate::Fine) {
            return Err(LOST.into());
        }
        let found = self.0.lock().unwrap().jobs.get(name).cloned();
        self.receive().await;
        Ok(found)
    }

    async fn create_job(&self, job: &Job) -> Created {
        let late = {
            let mut world = self.0.lock().unwrap();
            let late = world.faults && world.rng.one_in(12);
            if late {
                // Whoever sent it stops waiting, or dies; it arrives nevertheless.
                let at = world.now + i64::try_from(world.rng.below(500)).unwrap();
                world.on_the_way.push((at, job.clone()));
            }
            late
        };
        if late {
            self.receive().await;
            return Created::Unknown(LOST.into());
        }
        let fate = self.send().await;
        if matches!(fate, Fate::Lost) {
            return Created::Unknown(LOST.into());
        }
        let created = {
            let mut world = self.0.lock().unwrap();
            if world.faults && world.rng.one_in(20) {
                return Created::Refused("no room".into());
            }
            world.create(job.clone())
        };
        self.receive().await;
        if matches!(fate, Fate::Mute) { Created::Unknown(LOST.into()) } else { created }
    }

    async fn delete_job(&self, _: &str, name: &str, _: bool) -> Result<(), String> {
        let fate = self.send().await;
        if !matches!(fate, Fate::Lost) {
            self.0.lock().unwrap().delete(name);
        }
        if matches!(fate, Fate::Fine) { Ok(()) } else { Err(LOST.into()) }
    }

    async fn release_job(&self, _: &str, name: &str) -> Result<(), String> {
        let fate = self.send().await;
        if !matches!(fate, Fate::Lost) {
            self.0.lock().unwrap().release(name);
        }
        if matches!(fate, Fate::Fine) { Ok(()) } else { Err(LOST.into()) }
    }

    fn tell(&self, _: &KronJob, _: &Result<Definition, Vec<Flaw>>, _: &Tell) {}

    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().time()
    }

    fn awake(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.0.lock().unwrap().now - START + 10_000).unwrap())
    }
}

type Look = Pin<Box<dyn Future<Output = Result<Option<Timestamp>, String>>>>;

/// A process, with what it has watched and what it remembers.
struct Operator {
    memory: Arc<Memory>,
    server: Server,
    cache: (Option<KronJob>, BTreeMap<String, Job>),
    /// The version of the world that it has watched.
    watched: u64,
    look: Option<Look>,
    wake_at: i64,
}

impl Operator {
    fn new(shared: &Shared, number: u64) -> Operator {
        let world = shared.lock().unwrap();
        Operator {
            memory: Arc::new(Memory::new(format!("operator-{number}"))),
            server: Server(Arc::clone(shared)),
            cache: (world.kronjob.clone(), world.jobs.clone()),
            watched: world.version,
            look: None,
            wake_at: 0,
        }
    }

    /// A second of its life.
    fn live(&mut self) {
        let now = {
            let mut world = self.server.0.lock().unwrap();
            let is_stale = world.faults && world.rng.one_in(3);
            if !is_stale && self.look.is_none() && self.watched != world.version {
                self.cache = (world.kronjob.clone(), world.jobs.clone());
                self.watched = world.version;
                self.wake_at = 0;
            }
            world.now
        };
        if self.look.is_none() && self.wake_at <= now {
            self.wake_at = i64::MAX;
            let Some(kronjob) = self.cache.0.clone() else { return };
            let uid = kronjob.uid().unwrap();
            let mine = |job: &&Job| job.owner_references()[0].uid == uid;
            let jobs = self.cache.1.values().filter(mine);
            let jobs = jobs.map(|job| (job.name_any(), Sight::Present(job::seen(job, &uid)))).collect();
            let (server, memory) = (self.server.clone(), Arc::clone(&self.memory));
            let stamp = Timestamp::from_second(now).unwrap();
            self.look = Some(Box::pin(async move { pass(&server, &memory, &kronjob, jobs, stamp).await }));
        }
        if let Some(look) = &mut self.look
            && let Poll::Ready(end) = look.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.look = None;
            let key = ("ns".to_owned(), "job".to_owned());
            self.wake_at = match end {
                Ok(wake_at) => wake_at.map_or(i64::MAX, Timestamp::as_second).min(self.wake_at),
                Err(_) => {
                    self.memory.unwatched(&key);
                    now + i64::try_from(self.memory.pause(&key).as_secs()).unwrap()
                }
            };
        }
    }
}

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

fn template() -> JobTemplate {
    serde_json::from_value(json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "example.test/x"}],
    }}}}))
    .unwrap()
}

fn kronjob(world: &mut World, spec: KronJobSpec) -> KronJob {
    let mut kronjob = KronJob::new("job", spec);
    kronjob.metadata.namespace = Some("ns".to_owned());
    kronjob.metadata.resource_version = world.bump();
    kronjob.metadata.uid = Some(format!("uid-{}", world.version));
    kronjob.metadata.generation = Some(1);
    kronjob.metadata.creation_timestamp = Some(Time(world.time()));
    kronjob
}

/// How long faults last, and how long there is peace after them.
const TROUBLED: i64 = 900;
const PEACE: i64 = 1_200;

/// The longest that an operator is stopped within a request: longer than a Lease, and shorter than `HOLD`.
const STOPPED: u64 = 400;

/// Lives through one history. What went wrong is returned; and how many Jobs there were.
fn live(seed: u64, plant: Option<Plant>) -> (Vec<String>, usize) {
    let mut rng = Rng(seed);
    let shared: Shared = Arc::new(Mutex::new(World {
        rng: Rng(rng.next()),
        now: START + i64::try_from(rng.below(200)).unwrap(),
        version: 0,
        kronjob: None,
        jobs: BTreeMap::new(),
        on_the_way: Vec::new(),
        created: Vec::new(),
        outcomes: BTreeMap::new(),
        faults: true,
        plant,
        trouble: Vec::new(),
        writes: 0,
    }));
    {
        let mut world = shared.lock().unwrap();
        let first = kronjob(&mut world, spec(&mut rng));
        world.kronjob = Some(first);
    }
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

/// One second for everyone.
fn second(shared: &Shared, operators: &mut [Operator], rng: &mut Rng) {
    {
        let mut world = shared.lock().unwrap();
        world.now += 1;
        let now = world.now;
        let arrived: Vec<(i64, Job)> = world.on_the_way.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, job) in arrived {
            world.create(job);
        }
    }
    for _ in 0..3 {
        let first = if operators.is_empty() {
            0
        } else {
            usize::try_from(rng.below(operators.len() as u64)).unwrap()
        };
        for at in 0..operators.len() {
            let at = (first + at) % operators.len();
            operators[at].live();
        }
    }
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

fn histories() -> u64 {
    std::env::var("KRON_HISTORIES").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

#[test]
fn no_period_has_two_jobs_whatever_happens() {
    let (mut jobs, mut troubled) = (0, String::new());
    for seed in 0..histories() {
        let (trouble, created) = live(seed, None);
        jobs += created;
        for what in trouble {
            let _ = writeln!(troubled, "seed {seed}: {what}");
        }
    }
    println!("{} histories, {jobs} Jobs", histories());
    assert!(troubled.is_empty(), "{troubled}");
    assert!(jobs as u64 > histories() * 5, "only {jobs} Jobs in all");
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
    ] {
        let found = (0..2_000)
            .find(|seed| live(*seed, Some(plant)).0.iter().any(|what| what.starts_with("two Jobs")));
        println!("{plant:?}: found by seed {found:?}");
        assert!(found.is_some(), "{plant:?} was not found");
    }
}

#[test]
fn a_name_of_a_second_is_the_same_for_whoever_asks() {
    let names: BTreeSet<String> = (0..100)
        .map(|second| {
            kron_operator::reconcile::job_name("x", Timestamp::from_second(START + second).unwrap().into())
        })
        .collect();
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
        let shared: Shared = Arc::new(Mutex::new(World {
            rng: Rng(7),
            now: START + 1,
            version: 0,
            kronjob: None,
            jobs: BTreeMap::new(),
            on_the_way: Vec::new(),
            created: Vec::new(),
            outcomes: BTreeMap::new(),
            faults: false,
            plant: None,
            trouble: Vec::new(),
            writes: 0,
        }));
        {
            let mut world = shared.lock().unwrap();
            let made = kronjob(&mut world, serde_json::from_value(spec).unwrap());
            world.kronjob = Some(made);
        }
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
        let (jobs, failures) = (BTreeMap::new(), BTreeMap::new());
        let seen = Seen { kronjob: &kronjob, definition: &definition, jobs: &jobs, failures: &failures };
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
    let held = quiet.shared.lock().unwrap().jobs.values().any(|job| !job.finalizers().is_empty());
    assert!(!held, "its name is released");
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
