//! An API server, simulated, and operators on it. The code that looks at a `KronJob` is the product's own, `pass`; the server is a
//! map with versions. If there are faults it does its worst: it loses requests and answers, delays both, and shows what was
//! long ago; operators stop for minutes within a request.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kron_operator::api::{FINALIZER, JobTemplate, KronJob, KronJobSpec};
use kron_operator::definition::{Definition, Flaw};
use kron_operator::job;
use kron_operator::pass::{Cluster, Created, Key, Memory, Written, pass};
use kron_operator::reconcile::Sight;
use kron_operator::tell::Tell;
use kube::ResourceExt;
use serde_json::json;

/// Bugs that the checker must find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Plant {
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
    /// A creation that has no answer is taken for one that was refused.
    LostIsRefused,
}

/// A stream of random numbers (`SplitMix64`).
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The server, its clock, and what has happened.
pub(crate) struct World {
    rng: Rng,
    /// Seconds.
    pub(crate) now: i64,
    pub(crate) version: u64,
    pub(crate) kronjob: Option<KronJob>,
    pub(crate) jobs: BTreeMap<String, Job>,
    /// Creations that will arrive, whatever became of who sent them.
    on_the_way: Vec<(i64, Job)>,
    /// Every Job that was ever created: the UID of its owner and its period.
    pub(crate) created: Vec<(String, String)>,
    /// What was said of a period.
    outcomes: BTreeMap<(String, String), String>,
    pub(crate) faults: bool,
    /// Whether no Job is let in.
    pub(crate) is_full: bool,
    plant: Option<Plant>,
    pub(crate) trouble: Vec<String>,
    pub(crate) writes: u64,
}

pub(crate) type Shared = Arc<Mutex<World>>;

pub(crate) const START: i64 = 1_800_000_000;

impl World {
    /// A world with one `KronJob`, and no operator.
    pub(crate) fn new(rng: Rng, now: i64, faults: bool, plant: Option<Plant>, spec: KronJobSpec) -> Shared {
        let mut world = World {
            rng,
            now,
            version: 0,
            kronjob: None,
            jobs: BTreeMap::new(),
            on_the_way: Vec::new(),
            created: Vec::new(),
            outcomes: BTreeMap::new(),
            faults,
            is_full: false,
            plant,
            trouble: Vec::new(),
            writes: 0,
        };
        let first = kronjob(&mut world, spec);
        world.kronjob = Some(first);
        Arc::new(Mutex::new(world))
    }

    pub(crate) fn time(&self) -> Timestamp {
        Timestamp::from_second(self.now).unwrap()
    }

    pub(crate) fn bump(&mut self) -> Option<String> {
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

    pub(crate) fn delete(&mut self, name: &str) {
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

    pub(crate) fn finish(&mut self, name: &str, how: &str) {
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

    pub(crate) fn release(&mut self, name: &str) {
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

/// The longest that an operator is stopped within a request: longer than a Lease, and shorter than `HOLD`.
pub(crate) const STOPPED: u64 = 400;

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
            return match self.0.lock().unwrap().plant {
                Some(Plant::LostIsRefused) => Created::Refused(LOST.into()),
                _ => Created::Unknown(LOST.into()),
            };
        }
        let fate = self.send().await;
        if matches!(fate, Fate::Lost) {
            return Created::Unknown(LOST.into());
        }
        let created = {
            let mut world = self.0.lock().unwrap();
            if world.is_full || world.faults && world.rng.one_in(20) {
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

    async fn release_job(&self, _: &Key, name: &str) -> Result<(), String> {
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
pub(crate) struct Operator {
    memory: Arc<Memory>,
    server: Server,
    cache: (Option<KronJob>, BTreeMap<String, Job>),
    /// The version of the world that it has watched.
    watched: u64,
    look: Option<Look>,
    wake_at: i64,
}

impl Operator {
    pub(crate) fn new(shared: &Shared, number: u64) -> Operator {
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

pub(crate) fn template() -> JobTemplate {
    serde_json::from_value(json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "example.test/x"}],
    }}}}))
    .unwrap()
}

pub(crate) fn kronjob(world: &mut World, spec: KronJobSpec) -> KronJob {
    let mut kronjob = KronJob::new("job", spec);
    kronjob.metadata.namespace = Some("ns".to_owned());
    kronjob.metadata.resource_version = world.bump();
    kronjob.metadata.uid = Some(format!("uid-{}", world.version));
    kronjob.metadata.generation = Some(1);
    kronjob.metadata.creation_timestamp = Some(Time(world.time()));
    kronjob
}

/// One second for everyone.
pub(crate) fn second(shared: &Shared, operators: &mut [Operator], rng: &mut Rng) {
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
