//! One look at a `KronJob`, from what was watched to where nothing more is to be done now.
//!
//! [`pass`] asks `reconcile` and carries out what it says against a [`Cluster`], which is an API server, or a simulation of one
//! that does its worst.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kron_core::Watch;
use kron_zones::Zones;
use kube::ResourceExt;

use crate::api::KronJob;
use crate::definition::{Definition, Flaw, identity};
use crate::job;
use crate::reconcile::{Act, Look, Seen, Sight, Turn, foreign, reconcile};
use crate::release::{CREATE_WITHIN, Holds};
use crate::tell::Tell;

/// How often `reconcile` is asked within one look. A claim, its record, and a few conflicts take half of it.
const ROUNDS_MAX: usize = 12;

/// The first and the longest pause before something that failed is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// A `KronJob` by its namespace and name.
pub type Key = (String, String);

/// What a look needs of an API server.
pub trait Cluster: Sync {
    /// Reads a `KronJob`, as it is now.
    fn read_kronjob(&self, key: &Key) -> impl Future<Output = Result<Option<KronJob>, String>> + Send;
    /// Writes the status of a `KronJob`, if nobody has written it since it was read.
    fn write_status(&self, kronjob: &KronJob) -> impl Future<Output = Result<Written, String>> + Send;
    /// Reads a Job, as it is now.
    fn read_job(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<Job>, String>> + Send;
    /// Creates a Job, unless there is one of its name. It is tried once.
    fn create_job(&self, job: &Job) -> impl Future<Output = Created> + Send;
    /// Deletes a Job, and waits with it for its pods if they go first.
    fn delete_job(
        &self,
        namespace: &str,
        name: &str,
        pods_first: bool,
    ) -> impl Future<Output = Result<(), String>> + Send;
    /// Takes Kron's finalizer off a Job of a `KronJob`, and no other.
    fn release_job(&self, key: &Key, name: &str) -> impl Future<Output = Result<(), String>> + Send;
    /// Tells what happened.
    fn tell(&self, kronjob: &KronJob, definition: &Result<Definition, Vec<Flaw>>, tell: &Tell);
    /// The time of day.
    fn now(&self) -> Timestamp;
    /// A time that is never set, and goes on while the machine sleeps.
    fn awake(&self) -> Duration;
}

/// What came of writing a status.
#[derive(Debug)]
pub enum Written {
    /// It is written, and this is the resource now.
    Done(Box<KronJob>),
    /// Somebody else has written since.
    Conflict,
    /// The resource is gone.
    Gone,
}

/// What came of creating a Job.
#[derive(Debug)]
pub enum Created {
    /// It is there now.
    Made(Box<Job>),
    /// One of its name was there.
    Exists,
    /// It was refused.
    Refused(String),
    /// There was no answer: it may have been created, or may yet be.
    Unknown(String),
}

/// What a process remembers from one look to the next. All of it can be lost.
pub struct Memory {
    /// The name of this process, unlike that of any other.
    pub holder: String,
    zones: Zones,
    watched: Mutex<HashMap<Key, Watched>>,
    tries: Mutex<HashMap<Key, u32>>,
    holds: Mutex<Holds>,
    /// Jobs that are claimed, and that this process tried to create and was refused, every time.
    refused: Mutex<HashMap<Key, BTreeSet<String>>>,
}

/// Since when a `KronJob` has been watched, as it is defined now.
struct Watched {
    uid: String,
    generation: Option<i64>,
    since: Timestamp,
    definition: Arc<Result<Definition, Vec<Flaw>>>,
}

impl Memory {
    /// The memory of a process that has just begun.
    #[must_use]
    pub fn new(holder: String) -> Memory {
        Memory {
            holder,
            zones: Zones::bundled(),
            watched: Mutex::default(),
            tries: Mutex::default(),
            holds: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// Nobody has been watching for a while: what came due meanwhile is overtaken.
    pub fn stalled(&self) {
        lock(&self.watched).clear();
    }

    /// Nobody has been watching this one.
    pub fn unwatched(&self, key: &Key) {
        lock(&self.watched).remove(key);
    }

    /// It is gone.
    pub fn forget(&self, key: &Key) {
        self.unwatched(key);
        lock(&self.tries).remove(key);
        lock(&self.refused).remove(key);
    }

    /// How long to wait before something that failed is tried again.
    pub fn pause(&self, key: &Key) -> Duration {
        let mut tries = lock(&self.tries);
        let tries = tries.entry(key.clone()).or_default();
        *tries = tries.saturating_add(1);
        BACKOFF.0.saturating_mul(1 << (*tries - 1).min(5)).min(BACKOFF.1)
    }

    fn refused(&self, key: &Key) -> BTreeSet<String> {
        lock(&self.refused).get(key).cloned().unwrap_or_default()
    }

    /// From here on until it is answered, a creation may be on its way.
    fn sends(&self, key: &Key, name: &str) {
        if let Some(names) = lock(&self.refused).get_mut(key) {
            names.remove(name);
        }
    }

    fn is_refused(&self, key: &Key, name: &str) {
        lock(&self.refused).entry(key.clone()).or_default().insert(name.to_owned());
    }

    /// What is not claimed any more is not created any more.
    fn keep_refused(&self, key: &Key, kronjob: &KronJob) {
        let mut refused = lock(&self.refused);
        let Some(names) = refused.get_mut(key) else { return };
        let claims =
            kronjob.status.iter().flat_map(|status| &status.ledger).flat_map(|ledger| &ledger.claims);
        let claimed: BTreeSet<&String> = claims.map(|claim| &claim.job_name).collect();
        names.retain(|name| claimed.contains(name));
        if names.is_empty() {
            refused.remove(key);
        }
    }

    /// It has not failed.
    fn succeeded(&self, key: &Key) {
        lock(&self.tries).remove(key);
    }

    /// The definition, and since when it has been watched. A changed one has been since now.
    fn watched(
        &self,
        key: &Key,
        kronjob: &KronJob,
        now: Timestamp,
    ) -> (Arc<Result<Definition, Vec<Flaw>>>, Timestamp) {
        let mut all = lock(&self.watched);
        let uid = kronjob.uid().unwrap_or_default();
        let generation = kronjob.metadata.generation;
        if let Some(watched) = all.get_mut(key)
            && watched.uid == uid
            && watched.generation == generation
        {
            watched.since = watched.since.min(now); // the clock may have been set back
            return (Arc::clone(&watched.definition), watched.since);
        }
        let definition = Arc::new(Definition::read(&kronjob.spec, &identity(&key.0, &key.1), &self.zones));
        all.insert(key.clone(), Watched { uid, generation, since: now, definition: Arc::clone(&definition) });
        (definition, now)
    }
}

/// A panic elsewhere leaves nothing half done that matters here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at a `KronJob` as it was watched, with its Jobs as they were watched, and everything due evaluated with one second.
/// Says when to look again.
///
/// # Errors
///
/// If the API server does not answer, or does not let it.
pub async fn pass<C: Cluster>(
    cluster: &C,
    memory: &Memory,
    watched: &KronJob,
    jobs: BTreeMap<String, Sight>,
    stamp: Timestamp,
) -> Result<Option<Timestamp>, String> {
    let key = (watched.namespace().unwrap_or_default(), watched.name_any());
    let uid = watched.uid().unwrap_or_default();
    let mut kronjob = watched.clone();
    let mut jobs = jobs;
    let mut failures = BTreeMap::new();
    for _ in 0..ROUNDS_MAX {
        let (definition, since) = memory.watched(&key, &kronjob, stamp);
        let look = Look { holder: &memory.holder, watch: Watch { since, now: stamp }, clock: cluster.now() };
        let refused = memory.refused(&key);
        let seen = Seen {
            kronjob: &kronjob,
            definition: &definition,
            jobs: &jobs,
            failures: &failures,
            refused: &refused,
        };
        let act = match reconcile(seen, look) {
            Turn::Look(names) => {
                for name in names {
                    let sight = read_job(cluster, &key.0, &name, &uid).await?;
                    jobs.insert(name, sight);
                }
                continue;
            }
            Turn::Act(act) => *act,
        };
        let claimed = cluster.awake();
        if let Some(status) = &act.status {
            let mut next = kronjob.clone();
            next.status = Some(status.clone());
            match cluster.write_status(&next).await? {
                Written::Done(written) => kronjob = *written,
                Written::Gone => return Ok(None),
                Written::Conflict => {
                    match cluster.read_kronjob(&key).await? {
                        Some(fresh) if fresh.uid().as_deref() == Some(&uid) => kronjob = fresh,
                        _ => return Ok(None), // another of the same name, perhaps: the watch will tell
                    }
                    continue;
                }
            }
        }
        for tell in &act.tells {
            cluster.tell(&kronjob, &definition, tell);
        }
        for name in &act.terminate {
            cluster.delete_job(&key.0, name, true).await?;
        }
        let (Ok(definition), false) = (&*definition, act.create.is_empty()) else {
            return finish(cluster, memory, &key, &kronjob, act, &failures).await;
        };
        for creation in &act.create {
            let name = &creation.job_name;
            // Too long ago, somebody else may hold the claim by now.
            if cluster.awake().saturating_sub(claimed) > CREATE_WITHIN {
                match cluster.read_kronjob(&key).await? {
                    Some(fresh) if fresh.uid().as_deref() == Some(&uid) => kronjob = fresh,
                    _ => return Ok(None),
                }
                break;
            }
            memory.sends(&key, name);
            match cluster.create_job(&job::of_period(&kronjob, &definition.template, creation)).await {
                Created::Made(made) => {
                    jobs.insert(name.clone(), Sight::Present(job::seen(&made, &uid)));
                }
                Created::Exists => {
                    // From the API server, not from what was watched.
                    let sight = read_job(cluster, &key.0, name, &uid).await?;
                    let is_it = matches!(&sight, Sight::Present(job) if job.is_ours && job.period == Some(creation.period));
                    if !is_it {
                        memory.is_refused(&key, name);
                        failures.insert(name.clone(), foreign(name));
                    }
                    jobs.insert(name.clone(), sight);
                }
                Created::Refused(why) => {
                    memory.is_refused(&key, name);
                    failures.insert(name.clone(), why);
                }
                Created::Unknown(why) => {
                    failures.insert(name.clone(), why);
                }
            }
        }
    }
    // So many conflicts are no reason to give up, but one to let others go first.
    Ok(cluster.now().checked_add(SignedDuration::from_secs(1)).ok())
}

/// What is left once nothing is to be created: names are released, and old Jobs deleted.
async fn finish<C: Cluster>(
    cluster: &C,
    memory: &Memory,
    key: &Key,
    kronjob: &KronJob,
    act: Act,
    failures: &BTreeMap<String, String>,
) -> Result<Option<Timestamp>, String> {
    let uid = kronjob.uid().unwrap_or_default();
    let mut wakes: Vec<Timestamp> = act.wake_at.into_iter().collect();
    let after = |pause: Duration| cluster.now().checked_add(pause).unwrap_or(Timestamp::MAX);
    let is_deleting = kronjob.metadata.deletion_timestamp.is_some();
    for name in &act.release {
        let is_clean = is_deleting || act.clean.contains(name);
        let wait = lock(&memory.holds).wait(&uid, name, is_clean, cluster.awake());
        if wait.is_zero() {
            cluster.release_job(key, name).await?;
            lock(&memory.holds).forget(&uid, name);
        } else {
            wakes.push(after(wait));
        }
    }
    for name in &act.prune {
        cluster.delete_job(&key.0, name, false).await?;
    }
    memory.keep_refused(key, kronjob);
    if failures.is_empty() {
        memory.succeeded(key);
    } else {
        wakes.push(after(memory.pause(key)));
    }
    Ok(wakes.into_iter().min())
}

async fn read_job<C: Cluster>(cluster: &C, namespace: &str, name: &str, uid: &str) -> Result<Sight, String> {
    let found = cluster.read_job(namespace, name).await?;
    Ok(found.map_or(Sight::Absent, |job| Sight::Present(job::seen(&job, uid))))
}
