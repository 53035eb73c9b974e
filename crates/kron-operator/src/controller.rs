//! Carries out what `reconcile` says, against an API server.
//!
//! One timer wakes for every second in which something is due, stamps all of it with that second, and queues it; so nothing is
//! late because of how much is due with it. A `KronJob` is looked at by one worker at a time. Whatever fails is tried again, later
//! each time, and while it fails nobody is said to have been watching.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use tokio::sync::{Notify, Semaphore, mpsc};

use crate::api::{FINALIZER, KronJob, NAME_KEY};
use crate::clock;
use crate::definition::{Definition, Flaw};
use crate::fault::{told, told_of_watch};
use crate::job;
use crate::metrics::Metrics;
use crate::pass::{Cluster, Created, Key, Memory, Written, pass};
use crate::reconcile::Sight;
use crate::tell::Tell;

/// How many `KronJob`s are looked at at the same time.
const WORKERS: usize = 32;

/// How long a request may take. A creation that has no answer by then may still happen.
const REQUEST: Duration = Duration::from_secs(10);

/// A pause of the timer that nobody can have watched through.
const STALL: Duration = Duration::from_secs(5);

/// How many Events wait to be written. What is beyond is in the log only.
const EVENTS_MAX: usize = 10_000;

/// Looks after every `KronJob` of a namespace, or of all of them.
pub struct Controller {
    client: Client,
    /// The one namespace that is looked at; all of them if there is none.
    namespace: Option<String>,
    memory: Memory,
    state: Mutex<State>,
    changed: Notify,
    events: mpsc::Sender<(KronJob, Tell)>,
    metrics: Arc<Metrics>,
}

/// What is known, and what is to be done.
#[derive(Default)]
struct State {
    kronjobs: HashMap<Key, Arc<KronJob>>,
    /// Jobs by the `KronJob` that they say they belong to, then by their name. Their specs are left out.
    jobs: HashMap<Key, HashMap<String, Arc<Job>>>,
    /// What a watch lists anew, until the list is complete: `KronJob`s, and Jobs by their namespaces and names.
    listing: (HashSet<Key>, HashSet<Key>),
    synced: (bool, bool),
    /// When to look at what.
    timers: BTreeSet<(i64, Key)>,
    timer_of: HashMap<Key, i64>,
    /// What is to be looked at, each with the second it is evaluated with.
    ready: VecDeque<Key>,
    stamps: HashMap<Key, Timestamp>,
    running: HashSet<Key>,
}

impl Controller {
    /// A controller, and its task that writes Events.
    #[must_use]
    pub fn new(
        client: Client,
        holder: String,
        namespace: Option<String>,
        metrics: Arc<Metrics>,
    ) -> Arc<Controller> {
        let (events, told) = mpsc::channel(EVENTS_MAX);
        tokio::spawn(crate::event::write_all(client.clone(), holder.clone(), told, Arc::clone(&metrics)));
        Arc::new(Controller {
            client,
            namespace,
            memory: Memory::new(holder),
            state: Mutex::default(),
            changed: Notify::new(),
            events,
            metrics,
        })
    }

    /// Works until it is dropped. What is under way when `stop` is notified is finished first.
    pub async fn run(self: Arc<Self>, stop: Arc<Notify>) {
        let tasks = [
            tokio::spawn(Arc::clone(&self).watch_kronjobs()),
            tokio::spawn(Arc::clone(&self).watch_jobs()),
            tokio::spawn(Arc::clone(&self).time()),
        ];
        let permits = Arc::new(Semaphore::new(WORKERS));
        loop {
            let next = self.state().take();
            let Some((key, stamp)) = next else {
                tokio::select! {
                    () = self.changed.notified() => continue,
                    () = stop.notified() => break,
                }
            };
            let permit = tokio::select! {
                permit = Arc::clone(&permits).acquire_owned() => permit,
                () = stop.notified() => break,
            };
            let controller = Arc::clone(&self);
            tokio::spawn(async move {
                controller.look(key, stamp).await;
                drop(permit);
            });
        }
        for task in tasks {
            task.abort();
        }
        let _ = permits.acquire_many(u32::try_from(WORKERS).unwrap_or(1)).await;
    }

    /// Whether everything there is has been listed once.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.state().synced == (true, true)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done that matters: whatever is lost is listed and looked at again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn everywhere<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        match &self.namespace {
            Some(namespace) => self.api(namespace),
            None => Api::all(self.client.clone()),
        }
    }

    async fn watch_kronjobs(self: Arc<Self>) {
        let mut stream =
            watcher(self.everywhere::<KronJob>(), watcher::Config::default()).default_backoff().boxed();
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => self.on_kronjob(event),
                Err(error) => tracing::warn!(
                    event = "watch_failed",
                    resource = "kronjobs",
                    error = told_of_watch(&error)
                ),
            }
        }
    }

    fn on_kronjob(&self, event: watcher::Event<KronJob>) {
        let mut state = self.state();
        let now = clock::now();
        match event {
            watcher::Event::Init => state.listing.0.clear(),
            watcher::Event::InitApply(kronjob) => {
                state.listing.0.insert(key(&kronjob));
                state.put(kronjob, now);
            }
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut state.listing.0);
                let gone: Vec<Key> =
                    state.kronjobs.keys().filter(|key| !listed.contains(*key)).cloned().collect();
                for key in gone {
                    self.memory.forget(&key);
                    state.drop_kronjob(&key, now);
                }
                state.synced.0 = true;
            }
            watcher::Event::Apply(kronjob) => state.put(kronjob, now),
            watcher::Event::Delete(kronjob) => {
                self.memory.forget(&key(&kronjob));
                state.drop_kronjob(&key(&kronjob), now);
            }
        }
        self.metrics.kronjobs(state.kronjobs.len());
        drop(state);
        self.changed.notify_one();
    }

    async fn watch_jobs(self: Arc<Self>) {
        let config = watcher::Config::default().labels(NAME_KEY);
        let mut stream = watcher(self.everywhere::<Job>(), config).default_backoff().boxed();
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => self.on_job(event),
                Err(error) => {
                    tracing::warn!(event = "watch_failed", resource = "jobs", error = told_of_watch(&error));
                }
            }
        }
    }

    fn on_job(&self, event: watcher::Event<Job>) {
        let mut state = self.state();
        let now = clock::now();
        match event {
            watcher::Event::Init => state.listing.1.clear(),
            watcher::Event::InitApply(job) => {
                state.listing.1.insert((job.namespace().unwrap_or_default(), job.name_any()));
                state.put_job(job, now);
            }
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut state.listing.1);
                for ((namespace, _), jobs) in &mut state.jobs {
                    jobs.retain(|name, _| listed.contains(&(namespace.clone(), name.clone())));
                }
                state.jobs.retain(|_, jobs| !jobs.is_empty());
                state.synced.1 = true;
                let keys: Vec<Key> = state.kronjobs.keys().chain(state.jobs.keys()).cloned().collect();
                for key in keys {
                    state.enqueue(key, now);
                }
            }
            watcher::Event::Apply(job) => state.put_job(job, now),
            watcher::Event::Delete(job) => state.drop_job(&job, now),
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Queues what is due, second by second.
    async fn time(self: Arc<Self>) {
        let mut before = clock::awake();
        loop {
            let now = clock::now();
            let awake = clock::awake();
            {
                let mut state = self.state();
                if awake.saturating_sub(before) > STALL {
                    tracing::warn!(event = "stalled", seconds = (awake - before).as_secs());
                    self.memory.stalled();
                }
                state.ring(now);
            }
            before = awake;
            self.metrics.tick();
            self.changed.notify_one();
            // To the next whole second, by a clock that may have been set meanwhile.
            let fraction = u64::try_from(now.subsec_nanosecond()).unwrap_or(0);
            tokio::time::sleep(Duration::from_nanos(1_000_000_000 - fraction.min(999_999_999))).await;
        }
    }

    async fn look(self: &Arc<Self>, key: Key, stamp: Timestamp) {
        let started = clock::awake();
        let outcome = self.look_at(&key, stamp).await;
        self.metrics.pass(clock::awake().saturating_sub(started), outcome.is_ok());
        let wake_at = outcome.unwrap_or_else(|error| {
            let pause = self.memory.pause(&key);
            tracing::warn!(event = "look_failed", namespace = key.0, name = key.1, error, again_in = ?pause);
            // Nobody knows what came due while the API server did not answer.
            self.memory.unwatched(&key);
            clock::now().checked_add(pause).ok()
        });
        let mut state = self.state();
        state.running.remove(&key);
        if let Some(wake_at) = wake_at {
            state.set_timer(key.clone(), wake_at);
        }
        if state.stamps.contains_key(&key) {
            state.ready.push_back(key); // it changed meanwhile
        }
        drop(state);
        self.changed.notify_one();
    }

    async fn look_at(&self, key: &Key, stamp: Timestamp) -> Result<Option<Timestamp>, String> {
        let (kronjob, jobs) = {
            let state = self.state();
            (state.kronjobs.get(key).cloned(), state.jobs.get(key).cloned().unwrap_or_default())
        };
        let uid = kronjob.as_ref().and_then(|kronjob| kronjob.uid());
        let is_orphan = |job: &Job| owner(job).is_some_and(|owner| Some(owner.uid) != uid) && is_held(job);
        let orphans: Vec<&Arc<Job>> = jobs.values().filter(|job| is_orphan(job)).collect();
        if !orphans.is_empty() {
            self.release_orphans(key, &orphans).await?;
        }
        let (Some(kronjob), Some(uid)) = (kronjob, uid) else { return Ok(None) };
        let sight = |job: &Job| Sight::Present(job::seen(job, &uid));
        let sights: BTreeMap<String, Sight> =
            jobs.iter().map(|(name, job)| (name.clone(), sight(job))).collect();
        pass(self, &self.memory, &kronjob, sights, stamp).await
    }

    /// Jobs whose `KronJob` is gone keep no name: nothing stands in the way of their deletion.
    async fn release_orphans(&self, key: &Key, orphans: &[&Arc<Job>]) -> Result<(), String> {
        let living = self.read_kronjob(key).await?.and_then(|kronjob| kronjob.uid());
        for job in orphans {
            if owner(job).is_some_and(|owner| Some(owner.uid) != living) {
                self.release_job(key, &job.name_any()).await?;
            }
        }
        Ok(())
    }
}

impl Cluster for Controller {
    async fn read_kronjob(&self, key: &Key) -> Result<Option<KronJob>, String> {
        timed(self.api::<KronJob>(&key.0).get_opt(&key.1)).await.map_err(|error| told(&error))
    }

    async fn write_status(&self, kronjob: &KronJob) -> Result<Written, String> {
        let kronjobs: Api<KronJob> = self.api(&kronjob.namespace().unwrap_or_default());
        let (name, params) = (kronjob.name_any(), PostParams::default());
        match timed(kronjobs.replace_status(&name, &params, kronjob)).await {
            Ok(written) => {
                self.metrics.write("status");
                self.state().know(written.clone());
                Ok(Written::Done(Box::new(written)))
            }
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.metrics.write("status-conflict");
                Ok(Written::Conflict)
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.state().kronjobs.remove(&key(kronjob));
                Ok(Written::Gone)
            }
            Err(error) => Err(told(&error)),
        }
    }

    async fn read_job(&self, namespace: &str, name: &str) -> Result<Option<Job>, String> {
        timed(self.api::<Job>(namespace).get_opt(name)).await.map_err(|error| told(&error))
    }

    async fn create_job(&self, job: &Job) -> Created {
        let jobs: Api<Job> = self.api(&job.namespace().unwrap_or_default());
        match timed(jobs.create(&PostParams::default(), job)).await {
            Ok(made) => {
                let chosen = job::chosen(&made).unwrap_or_else(clock::now);
                self.metrics.created(clock::now().duration_since(chosen));
                self.state().know_job(made.clone());
                Created::Made(Box::new(made))
            }
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                self.metrics.write("create-exists");
                Created::Exists
            }
            // A way station that gave up waiting has not refused it.
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 408 => {
                self.metrics.write("create-refused");
                Created::Refused(format!("the API server refused it: {} ({})", status.message, status.code))
            }
            Err(error) => {
                self.metrics.write("create-unknown");
                Created::Unknown(told(&error))
            }
        }
    }

    async fn delete_job(&self, namespace: &str, name: &str, pods_first: bool) -> Result<(), String> {
        let params = if pods_first { DeleteParams::foreground() } else { DeleteParams::background() };
        match timed(self.api::<Job>(namespace).delete(name, &params)).await {
            Ok(_) => self.metrics.write("delete"),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(told(&error)),
        }
        Ok(())
    }

    async fn release_job(&self, key: &Key, name: &str) -> Result<(), String> {
        let jobs: Api<Job> = self.api(&key.0);
        let place = |job: &Job| {
            Some((job.uid()?, job.finalizers().iter().position(|finalizer| finalizer == FINALIZER)?))
        };
        // As it was watched, it is mostly still; the patch says if not.
        let mut known = self.state().jobs.get(key).and_then(|jobs| place(jobs.get(name)?));
        let meant = known.as_ref().map(|(uid, _)| uid.clone());
        for _ in 0..RELEASES_MAX {
            let found = match known.take() {
                Some(known) => Some(known),
                None => {
                    timed(jobs.get_opt(name)).await.map_err(|error| told(&error))?.as_ref().and_then(place)
                }
            };
            let Some((uid, at)) = found else { return Ok(()) };
            if meant.as_ref().is_some_and(|meant| *meant != uid) {
                return Ok(()); // that one is gone, and its name is another's
            }
            let place = format!("/metadata/finalizers/{at}");
            let patch = json!([
                {"op": "test", "path": "/metadata/uid", "value": uid},
                {"op": "test", "path": place, "value": FINALIZER},
                {"op": "remove", "path": place},
            ]);
            let patch = serde_json::from_value(patch).map_err(|error| error.to_string())?;
            let patch: Patch<Job> = Patch::Json(patch);
            match timed(jobs.patch(name, &PatchParams::default(), &patch)).await {
                Ok(released) => {
                    self.metrics.write("release");
                    self.state().know_job(released);
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
                // Another finalizer came or went.
                Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) => {}
                Err(error) => return Err(told(&error)),
            }
        }
        Err(format!("the finalizers of Job {name} change all the time"))
    }

    fn tell(&self, kronjob: &KronJob, definition: &Result<Definition, Vec<Flaw>>, tell: &Tell) {
        let (namespace, name) = (kronjob.namespace().unwrap_or_default(), kronjob.name_any());
        let job = definition.as_ref().ok().map(|definition| &definition.job);
        tell.log(&namespace, &name, &kronjob.uid().unwrap_or_default(), job, clock::now());
        self.metrics.tell(tell);
        if tell.event().is_some() && self.events.try_send((kronjob.clone(), tell.clone())).is_err() {
            self.metrics.write("event-dropped");
        }
    }

    fn now(&self) -> Timestamp {
        clock::now()
    }

    fn awake(&self) -> Duration {
        clock::awake()
    }
}

/// How often the finalizer of one Job is tried to be taken off, at once.
const RELEASES_MAX: usize = 5;

async fn timed<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    tokio::time::timeout(REQUEST, request).await.unwrap_or_else(|_| {
        let late = std::io::Error::new(std::io::ErrorKind::TimedOut, "there was no answer within 10 s");
        Err(kube::Error::Service(Box::new(late)))
    })
}

impl State {
    /// Takes note of a `KronJob`, unless something newer is known, and says whether it is news.
    fn know(&mut self, mut kronjob: KronJob) -> bool {
        let key = key(&kronjob);
        let is_news = self.kronjobs.get(&key).is_none_or(|known| is_newer(&kronjob, &**known));
        if is_news {
            // Who wrote what is most of its size. To the API server an update without it leaves it as it is.
            kronjob.metadata.managed_fields = None;
            self.kronjobs.insert(key, Arc::new(kronjob));
        }
        is_news
    }

    fn put(&mut self, kronjob: KronJob, now: Timestamp) {
        let key = key(&kronjob);
        if self.know(kronjob) {
            self.enqueue(key, now);
        }
    }

    fn drop_kronjob(&mut self, key: &Key, now: Timestamp) {
        self.kronjobs.remove(key);
        self.enqueue(key.clone(), now); // for the Jobs it leaves
    }

    /// The same for a Job.
    fn know_job(&mut self, mut job: Job) -> bool {
        let Some(owner) = owner(&job) else { return false };
        // There may be many thousands, and these are most of their size.
        job.spec = None;
        job.metadata.managed_fields = None;
        let jobs = self.jobs.entry((job.namespace().unwrap_or_default(), owner.name)).or_default();
        let is_news = jobs.get(&job.name_any()).is_none_or(|known| is_newer(&job, &**known));
        if is_news {
            jobs.insert(job.name_any(), Arc::new(job));
        }
        is_news
    }

    fn put_job(&mut self, job: Job, now: Timestamp) {
        let Some(owner) = owner(&job) else { return };
        let key = (job.namespace().unwrap_or_default(), owner.name);
        if self.know_job(job) {
            self.enqueue(key, now);
        }
    }

    fn drop_job(&mut self, job: &Job, now: Timestamp) {
        let Some(owner) = owner(job) else { return };
        let key = (job.namespace().unwrap_or_default(), owner.name);
        if let Some(jobs) = self.jobs.get_mut(&key) {
            let is_it = jobs.get(&job.name_any()).is_some_and(|known| known.uid() == job.uid());
            if is_it {
                jobs.remove(&job.name_any());
            }
            if jobs.is_empty() {
                self.jobs.remove(&key);
            }
        }
        self.enqueue(key, now);
    }

    /// Queues a `KronJob` to be evaluated with that second, or with an earlier one that it was queued with.
    fn enqueue(&mut self, key: Key, stamp: Timestamp) {
        if self.stamps.contains_key(&key) {
            return;
        }
        self.stamps.insert(key.clone(), floor(stamp));
        if !self.running.contains(&key) {
            self.ready.push_back(key);
        }
    }

    fn take(&mut self) -> Option<(Key, Timestamp)> {
        if self.synced != (true, true) {
            return None;
        }
        while let Some(key) = self.ready.pop_front() {
            if self.running.contains(&key) {
                continue;
            }
            if let Some(stamp) = self.stamps.remove(&key) {
                self.running.insert(key.clone());
                return Some((key, stamp));
            }
        }
        None
    }

    fn set_timer(&mut self, key: Key, at: Timestamp) {
        let second = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
        if let Some(old) = self.timer_of.insert(key.clone(), second) {
            self.timers.remove(&(old, key.clone()));
        }
        self.timers.insert((second, key));
    }

    fn ring(&mut self, now: Timestamp) {
        while let Some((second, key)) = self.timers.first() {
            if *second > now.as_second() {
                break;
            }
            let (second, key) = (*second, key.clone());
            self.timers.remove(&(second, key.clone()));
            self.timer_of.remove(&key);
            self.enqueue(key, now);
        }
    }
}

fn key(kronjob: &KronJob) -> Key {
    (kronjob.namespace().unwrap_or_default(), kronjob.name_any())
}

/// The `KronJob` that a Job says it belongs to.
fn owner(job: &Job) -> Option<OwnerReference> {
    let is_kronjob = |owner: &&OwnerReference| {
        owner.controller == Some(true)
            && owner.kind == KronJob::kind(&())
            && owner.api_version == KronJob::api_version(&())
    };
    job.owner_references().iter().find(is_kronjob).cloned()
}

fn is_held(job: &Job) -> bool {
    job.finalizers().iter().any(|name| name == FINALIZER)
}

/// Whether one version of a resource is later than another, or of another resource. Versions of one resource are numbers that
/// grow, and whoever cannot read them takes what comes.
fn is_newer<K: ResourceExt>(new: &K, known: &K) -> bool {
    let version = |thing: &K| thing.resource_version().and_then(|text| text.parse::<u64>().ok());
    new.uid() != known.uid() || version(new).is_none() || version(new) > version(known)
}

fn floor(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_watched_only_what_is_needed_is_kept() {
        let mut state = State::default();
        let written = json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]);
        let metadata = |name: &str| json!({"name": name, "namespace": "a", "uid": name, "resourceVersion": "1", "managedFields": written});
        let kronjob = json!({
            "apiVersion": "kron.io/v1alpha1", "kind": "KronJob", "metadata": metadata("x"),
            "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}}},
        });
        let kronjob: KronJob = serde_json::from_value(kronjob).unwrap();
        let template = kronjob.spec.job_template.clone();
        assert!(state.know(kronjob));
        let kept = &state.kronjobs[&("a".to_owned(), "x".to_owned())];
        assert_eq!(kept.metadata.managed_fields, None);
        assert_eq!(kept.spec.job_template, template);

        let mut job = json!({
            "metadata": metadata("x-1"), "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}},
            "status": {"conditions": [{"type": "Complete", "status": "True"}]},
        });
        job["metadata"]["finalizers"] = json!([FINALIZER]);
        job["metadata"]["annotations"] = json!({crate::api::PERIOD_KEY: "2027-01-15T08:00:00Z"});
        job["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "kron.io/v1alpha1", "kind": "KronJob", "name": "x", "uid": "x", "controller": true},
        ]);
        let job: Job = serde_json::from_value(job).unwrap();
        assert!(state.know_job(job.clone()));
        let kept = &state.jobs[&("a".to_owned(), "x".to_owned())]["x-1"];
        assert_eq!((&kept.spec, &kept.metadata.managed_fields), (&None, &None));
        assert_eq!(job::seen(kept, "x"), job::seen(&job, "x"));
        assert!(is_held(kept));
    }
}
