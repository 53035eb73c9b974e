//! What every store must do, whatever it keeps things in.

mod set_aside;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kron_zones::Zones;
use proptest::prelude::*;
use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor};

use super::verbs::{ADVANCE_MAX, TAKE_BACK_MAX};
use super::{
    After, Beat, Beaten, Change, EventQuery, Fetch, JobFilter, PageRequest, Postgres, Retention, Rules, Span,
    Sqlite, Store, WorkerState,
};
use crate::cron::{self, Counting, Registration};
use crate::job::{Defaults, Job, Nack, State};
use crate::members::Members;
use crate::metrics::{Gauges, Metrics};
use crate::refusal::Code;
use crate::token::{Hash, Scope, Token};
use crate::webhook::{self, Attempt, DELIVERIES_KEPT, Edit, Outcome, Secret, WEBHOOKS_MAX, Webhook};

/// A store with a clock beside it.
struct World {
    store: Arc<dyn Store>,
    database: Database,
    metrics: Arc<Metrics>,
    zones: Arc<Zones>,
    now: Timestamp,
}

/// Where a store keeps its rows, for whoever damages and mends them behind its back.
enum Database {
    File(PathBuf),
    Url(String),
}

impl Database {
    /// Changes rows. Says how many.
    async fn execute(&self, sql: &str) -> u64 {
        match self {
            Database::File(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.busy_timeout(PATIENCE).unwrap();
                connection.execute(sql, []).unwrap() as u64
            }
            Database::Url(url) => {
                let mut connection = PgConnection::connect(url).await.unwrap();
                connection.execute(sql).await.unwrap().rows_affected()
            }
        }
    }
}

/// The longest that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

impl World {
    fn read(&self, job: &Value) -> Job {
        crate::envelope::read(Members::read(job.to_string().as_bytes()).unwrap(), self.now).unwrap()
    }

    async fn push(&self, options: Value) -> String {
        let job = self.read(&json!({"type": "test.job", "args": [], "options": options}));
        self.store.push(vec![job]).await.unwrap().remove(0).id
    }

    async fn fetch(&self, count: usize) -> Vec<String> {
        self.fetch_as("w", count).await
    }

    async fn fetch_as(&self, worker: &str, count: usize) -> Vec<String> {
        let fetch = Fetch {
            queues: vec!["first".into(), "default".into()],
            count,
            worker_id: Some(worker.into()),
            visibility_ms: None,
        };
        self.store.fetch(fetch, self.now).await.unwrap().into_iter().map(|job| job.id).collect()
    }

    async fn ack(&self, id: &str) {
        let ack = Change::Ack { worker_id: None, fence: None, result: None };
        self.store.change(id, ack, self.now).await.unwrap();
    }

    async fn fail(&self, id: &str) {
        self.store.change(id, Change::Nack(nack()), self.now).await.unwrap();
    }

    async fn state(&self, id: &str) -> State {
        self.store.job(id, self.now).await.unwrap().unwrap().state
    }

    async fn register(&self, mut definition: Value) {
        definition["type"] = json!("test.cron");
        let given = Members::read(definition.to_string().as_bytes()).unwrap();
        let registration = Registration::read(given, &self.zones, self.now).unwrap();
        self.store.register(registration, self.now).await.unwrap();
    }

    async fn turn(&mut self, seconds: i64) {
        self.wait(seconds);
        while self.store.turn(self.now, self.now).await.unwrap() {}
    }

    fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    async fn of_cron(&self, name: &str, state: Option<State>) -> Vec<Job> {
        let filter = JobFilter { cron: Some(name.into()), state, ..JobFilter::default() };
        self.store.jobs(filter, all(), self.now).await.unwrap().0
    }

    /// Makes the rows of jobs such that they cannot be read.
    async fn damage(&self, ids: &[&str]) {
        let sql = format!("UPDATE jobs SET body = '!' || body WHERE id IN ('{}')", ids.join("', '"));
        assert_eq!(self.database.execute(&sql).await, ids.len() as u64);
    }

    /// Makes them what they were.
    async fn mend(&self, ids: &[&str]) {
        let sql = format!("UPDATE jobs SET body = substr(body, 2) WHERE id IN ('{}')", ids.join("', '"));
        assert_eq!(self.database.execute(&sql).await, ids.len() as u64);
    }

    async fn beat(&self, worker: &str, ids: &[&str]) -> Beaten {
        let jobs = ids.iter().map(|id| (*id).to_owned()).collect();
        let beat = Beat { worker_id: worker.into(), jobs, visibility_ms: None, about: Members::default() };
        self.store.beat(beat, self.now).await.unwrap()
    }

    /// Has jobs looked at, which sets aside what cannot be read.
    async fn look_at(&self, ids: &[&str]) {
        assert_eq!(self.beat("looks", ids).await.lost, ids);
    }

    async fn prune(&self) -> bool {
        self.store.prune(Retention::default(), self.now).await.unwrap()
    }

    /// What a metric says, once everything up to now is counted.
    async fn counted(&self, metric: &str) -> u64 {
        let value = |metric: &str| {
            let text = self.metrics.render(&Gauges::default());
            let line = text.lines().find_map(|line| line.strip_prefix(metric));
            line.map_or(0, |value| value.trim().parse().unwrap())
        };
        // What is done is counted in its order, but nobody waits for that.
        let mark = "kron_events_total{type=\"queue.paused\"}";
        let before = value(mark);
        self.store.pause("mark", true, self.now).await.unwrap();
        self.store.pause("mark", false, self.now).await.unwrap();
        let counted = async {
            while value(mark) == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, counted).await.unwrap();
        value(metric)
    }

    async fn told(&self, kind: &str) -> usize {
        let query = EventQuery { types: vec![kind.into()], limit: 1_000, ..EventQuery::default() };
        self.store.events(query).await.unwrap().events.len()
    }
}

fn all() -> PageRequest {
    PageRequest { limit: None, cursor: None, offset: 0 }
}

fn nack() -> Nack {
    Nack::of("oops", "oops")
}

fn rules() -> Rules {
    Rules {
        defaults: Defaults::default(),
        counting: Counting::Active,
        directives: false,
        source: "ojs://test".into(),
        metrics: Arc::default(),
    }
}

/// What a text is pinned by.
pub(super) fn fingerprint(text: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs a case against every kind of store there is.
fn in_every_store<F: Future<Output = ()>>(case: impl Fn(World) -> F) {
    in_sqlite(&case);
    in_postgres(&case);
}

fn in_sqlite<F: Future<Output = ()>>(case: impl Fn(World) -> F) {
    let directory = tempfile::tempdir().unwrap();
    let zones = Arc::new(Zones::bundled());
    let rules = rules();
    let metrics = Arc::clone(&rules.metrics);
    let store = Sqlite::open(directory.path(), rules, Arc::clone(&zones)).unwrap();
    let database = Database::File(directory.path().join(super::sqlite::FILE));
    runtime().block_on(case(World { store: Arc::new(store), database, metrics, zones, now: start() }));
}

/// PostgreSQL has to be installed, unless `KRON_WITHOUT_POSTGRES` says that the tests can do without.
fn in_postgres<F: Future<Output = ()>>(case: impl Fn(World) -> F) {
    let Some(place) = super::postgres::server::database() else {
        let without = std::env::var_os("KRON_WITHOUT_POSTGRES").is_some();
        assert!(
            without,
            "PostgreSQL is not installed: apt-get install postgresql, or set KRON_WITHOUT_POSTGRES"
        );
        return;
    };
    let zones = Arc::new(Zones::bundled());
    runtime().block_on(async {
        // In a test that sets the time, a turn waits until the node leads.
        let rules = Rules { directives: true, ..rules() };
        let metrics = Arc::clone(&rules.metrics);
        let store = Postgres::open(&place, rules, "test".into(), Arc::clone(&zones)).await.unwrap();
        let (store, database) = (Arc::new(store), Database::Url(place.url));
        let now = start();
        case(World { store: Arc::clone(&store) as Arc<dyn Store>, database, metrics, zones, now }).await;
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_batch_is_taken_in_whole_or_not_at_all() {
    in_every_store(|world| async move {
        let taken = world.push(json!({})).await;
        let good = world.read(&json!({"type": "a.b", "args": []}));
        let mut bad = world.read(&json!({"type": "a.b", "args": []}));
        bad.id.clone_from(&taken);
        let refusal = world.store.push(vec![good.clone(), bad]).await.unwrap_err();
        assert_eq!(refusal.code, Code::Duplicate);
        assert!(world.store.job(&good.id, world.now).await.unwrap().is_none());
        assert_eq!(world.told("job.enqueued").await, 1, "nothing is told of what did not happen");
    });
}

#[test]
fn queues_go_by_priority_and_then_by_age() {
    in_every_store(|mut world| async move {
        let old = world.push(json!({})).await;
        let young = world.push(json!({})).await;
        let urgent = world.push(json!({"priority": 10})).await;
        let other = world.push(json!({"queue": "first"})).await;
        assert_eq!(world.fetch(2).await, [other.clone(), urgent.clone()]);
        assert_eq!(world.fetch(9).await, [old.clone(), young.clone()]);
        assert!(world.fetch(9).await.is_empty());
        // What comes back stands behind what was there.
        let fresh = world.push(json!({})).await;
        world.store.change(&old, Change::Nack(Nack { requeue: true, ..nack() }), world.now).await.unwrap();
        world.wait(1);
        assert_eq!(world.fetch(9).await, [fresh, old]);
    });
}

#[test]
fn a_fetch_hands_out_so_many_bytes_and_leaves_the_rest_to_the_next() {
    in_every_store(|world| async move {
        let large = "x".repeat(250_000);
        let mut pushed = Vec::new();
        for number in 0..20 {
            let queue = if number < 10 { "first" } else { "default" };
            let job = json!({"type": "a.b", "args": [&large], "options": {"queue": queue}});
            pushed.push(world.store.push(vec![world.read(&job)]).await.unwrap().remove(0).id);
        }
        // The one that passes the bound is the last.
        let first = world.fetch(1_000).await;
        assert_eq!(first, pushed[..17]);
        assert_eq!(world.fetch(1_000).await, pushed[17..]);
    });
}

#[test]
fn what_is_due_is_done_some_bytes_at_a_time() {
    in_every_store(|mut world| async move {
        let large = "x".repeat(250_000);
        for number in 0..20 {
            let options = json!({"scheduled_at": "+PT5S"});
            let job = json!({"type": "a.b", "args": [&large], "options": options});
            world.store.push(vec![world.read(&job)]).await.unwrap();
            let name = format!("large-{number}");
            world.register(json!({"name": name, "cron": "* * * * *", "args": [&large]})).await;
        }
        let available = async |world: &World| {
            let census = world.store.census(1).await.unwrap();
            census.iter().find(|(_, state, _)| *state == State::Available).map_or(0, |(.., count)| *count)
        };
        world.wait(5);
        assert!(world.store.advance(world.now).await.unwrap());
        assert_eq!(available(&world).await, 17, "those that become available");
        assert!(!world.store.advance(world.now).await.unwrap());
        assert_eq!(available(&world).await, 20);
        assert_eq!(world.fetch(20).await.len() + world.fetch(20).await.len(), 20);
        world.beat("w", &[]).await;
        world.wait(31);
        assert!(world.store.advance(world.now).await.unwrap());
        assert_eq!(available(&world).await, 17, "those of a worker that is silent");
        assert!(!world.store.advance(world.now).await.unwrap());
        assert_eq!(available(&world).await, 20);
        world.wait(60);
        assert!(world.store.turn(world.now, world.now).await.unwrap());
        assert!((30..40).contains(&available(&world).await), "those of cron jobs");
        assert!(!world.store.turn(world.now, world.now).await.unwrap());
        assert_eq!(available(&world).await, 40);
    });
}

#[test]
fn a_paused_queue_takes_in_and_hands_out_nothing() {
    in_every_store(|world| async move {
        world.store.pause("default", true, world.now).await.unwrap();
        let id = world.push(json!({})).await;
        assert!(world.fetch(1).await.is_empty());
        world.store.pause("default", false, world.now).await.unwrap();
        assert_eq!(world.fetch(1).await, [id]);
        assert_eq!((world.told("queue.paused").await, world.told("queue.resumed").await), (1, 1));
    });
}

#[test]
fn time_alone_changes_jobs() {
    in_every_store(|mut world| async move {
        let later = world.push(json!({"scheduled_at": "+PT10S"})).await;
        let brief = world.push(json!({"expires_at": "+PT5S", "priority": -1})).await;
        let silent = world.push(json!({"visibility_timeout_ms": 3_000})).await;
        assert_eq!(world.fetch(1).await, [silent.as_str()]);
        assert_eq!(world.store.due().borrow().jobs, Some(start() + SignedDuration::from_secs(3)));
        world.wait(3);
        assert_eq!(world.state(&silent).await, State::Available);
        world.wait(2);
        assert_eq!(world.state(&brief).await, State::Discarded);
        assert_eq!(world.state(&later).await, State::Scheduled);
        world.wait(5);
        assert_eq!(world.fetch(9).await, [silent, later]);
    });
}

#[test]
fn a_worker_that_falls_silent_loses_its_jobs_and_one_that_never_spoke_does_not() {
    in_every_store(|mut world| async move {
        let (one, two) = (world.push(json!({})).await, world.push(json!({})).await);
        assert_eq!(world.fetch_as("beats", 1).await, [one.as_str()]);
        assert_eq!(world.fetch_as("mute", 1).await, [two.as_str()]);
        let beat = Beat {
            worker_id: "beats".into(),
            jobs: vec![one.clone()],
            visibility_ms: None,
            about: Members::default(),
        };
        let beaten = world.store.beat(beat.clone(), world.now).await.unwrap();
        assert_eq!((beaten.state, beaten.extended), (WorkerState::Running, 1));
        world.wait(31);
        assert_eq!(world.state(&one).await, State::Available);
        assert_eq!(world.state(&two).await, State::Active);
        let beaten = world.store.beat(beat, world.now).await.unwrap();
        assert_eq!((beaten.extended, beaten.lost), (0, vec![one.clone()]));
        // A worker that is told to be quiet gets nothing more.
        world.store.direct("beats", WorkerState::Quiet, world.now).await.unwrap();
        assert!(world.fetch_as("beats", 9).await.is_empty());
        assert_eq!(world.fetch_as("mute", 9).await, [one]);
    });
}

#[test]
fn the_jobs_of_a_worker_that_falls_silent_go_back_in_steps_and_with_the_last_it_is_dead() {
    in_every_store(|mut world| async move {
        let count = 2 * ADVANCE_MAX + 1;
        let jobs = (0..count).map(|_| world.read(&json!({"type": "a.b", "args": []}))).collect();
        world.store.push(jobs).await.unwrap();
        assert_eq!(world.fetch_as("many", count).await.len(), count);
        world.beat("many", &[]).await;
        world.wait(31);
        for (more, back) in [(true, ADVANCE_MAX), (true, 2 * ADVANCE_MAX), (false, count)] {
            assert_eq!(world.store.advance(world.now).await.unwrap(), more, "{back}");
            let census = world.store.census(1).await.unwrap();
            let available = census.iter().find(|(_, state, _)| *state == State::Available);
            assert_eq!(available.map(|(.., count)| *count), Some(back as u64));
            assert_eq!(world.store.workers(all()).await.unwrap().0[0].dead, !more, "{back}");
            assert_eq!(world.told("worker.stopped").await, usize::from(!more), "{back}");
        }
    });
}

#[test]
fn dead_letters_are_kept_revived_and_deleted() {
    in_every_store(|world| async move {
        let policy = json!({"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}});
        let (one, two) = (world.push(policy.clone()).await, world.push(policy).await);
        for id in world.fetch(2).await {
            world.fail(&id).await;
        }
        let stats = world.store.dead_stats().await.unwrap();
        assert_eq!((stats.total, stats.by_error_type), (2, vec![("oops".into(), 2)]));
        let revived = world.store.change(&one, Change::Revive, world.now).await.unwrap().job;
        assert_eq!((revived.state, revived.attempt, revived.errors.len()), (State::Available, 0, 1));
        assert_eq!(
            world.store.change(&one, Change::Revive, world.now).await.unwrap_err().code,
            Code::NotFound
        );
        world.store.delete_dead(&two, world.now).await.unwrap();
        assert!(world.store.job(&two, world.now).await.unwrap().is_none());
        assert_eq!(world.store.delete_dead(&two, world.now).await.unwrap_err().code, Code::NotFound);
    });
}

#[test]
fn a_fire_is_a_job_an_occurrence_and_an_event() {
    in_every_store(|mut world| async move {
        world.register(json!({"name": "minutely", "cron": "* * * * *"})).await;
        world.turn(60).await;
        world.turn(0).await;
        let jobs = world.of_cron("minutely", None).await;
        assert_eq!(jobs.len(), 1);
        let span = Span { from: start(), to: world.now, after: None, limit: 10 };
        let record = world.store.occurrences("minutely", span).await.unwrap();
        assert_eq!(record.len(), 1);
        assert_eq!(
            (record[0].outcome, record[0].job_id.as_ref()),
            (cron::Outcome::Executed, Some(&jobs[0].id))
        );
        assert_eq!(world.told("cron.triggered").await, 1);
        let cron = world.store.cron("minutely").await.unwrap().unwrap();
        assert_eq!((cron.run_count, cron.last_run_at), (1, Some(world.now)));
        assert_eq!(world.store.due().borrow().crons, Some(start() + SignedDuration::from_secs(120)));
        // Removing it leaves its jobs alone, and the record too.
        world.store.unregister("minutely").await.unwrap().unwrap();
        assert!(world.store.unregister("minutely").await.unwrap().is_none());
        assert_eq!(world.of_cron("minutely", None).await.len(), 1);
        assert_eq!(world.store.due().borrow().crons, None);
    });
}

#[test]
fn an_occurrence_that_is_recorded_never_fires_again() {
    in_every_store(|mut world| async move {
        let definition = json!({"name": "minutely", "cron": "* * * * *"});
        world.register(definition.clone()).await;
        world.turn(60).await;
        world.store.unregister("minutely").await.unwrap();
        // The clock is set back, and it is registered anew: the time comes again, its run does not.
        world.wait(-30);
        world.register(definition).await;
        world.turn(30).await;
        assert_eq!(world.of_cron("minutely", None).await.len(), 1);
        let cron = world.store.cron("minutely").await.unwrap().unwrap();
        assert_eq!((cron.run_count, cron.last_run_at), (0, None));
    });
}

#[test]
fn cancel_previous_cancels_what_is_active() {
    in_every_store(|mut world| async move {
        world
            .register(json!({"name": "latest", "cron": "* * * * *", "overlap_policy": "cancel_previous"}))
            .await;
        world.turn(60).await;
        let first = world.fetch(1).await.remove(0);
        world.turn(60).await;
        assert_eq!(world.state(&first).await, State::Cancelled);
        assert_eq!(world.fetch(9).await.len(), 1);
    });
}

#[test]
fn jobs_of_another_policy_are_waited_for() {
    in_every_store(|mut world| async move {
        let cron = |policy: &str| json!({"name": "c", "cron": "* * * * *", "overlap_policy": policy});
        world.register(cron("allow")).await;
        world.turn(60).await;
        world.turn(60).await;
        let running = world.fetch(10).await;
        assert_eq!(running.len(), 2);
        world.register(cron("enqueue")).await;
        world.turn(60).await;
        assert!(world.fetch(10).await.is_empty(), "enqueue: never beside another");
        world.ack(&running[0]).await;
        assert!(world.fetch(10).await.is_empty(), "one of them still runs");
        world.ack(&running[1]).await;
        assert_eq!(world.fetch(10).await.len(), 1);
    });
}

#[test]
fn many_due_at_once_all_fire_with_the_same_stamp() {
    in_every_store(|mut world| async move {
        for n in 0..1_201 {
            world.register(json!({"name": format!("job-{n}"), "cron": "* * * * *"})).await;
        }
        world.turn(60).await;
        let (jobs, page) = world.store.jobs(JobFilter::default(), all(), world.now).await.unwrap();
        assert_eq!((jobs.len(), page.total), (1_201, 1_201));
    });
}

#[test]
fn events_are_read_in_order_and_resumed() {
    in_every_store(|world| async move {
        for _ in 0..25 {
            world.push(json!({})).await;
        }
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let query = EventQuery { after: after.clone(), limit: 10, ..EventQuery::default() };
            let events = world.store.events(query).await.unwrap();
            seen.extend(events.events.iter().map(|event| event.number));
            after = events.cursor.map(After::Id);
            if !events.has_more {
                break;
            }
        }
        assert_eq!(seen.len(), 25);
        assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
        let bad = EventQuery { after: Some(After::Id("nonsense".into())), limit: 1, ..EventQuery::default() };
        assert_eq!(world.store.events(bad).await.unwrap_err().code, Code::InvalidRequest);
    });
}

#[test]
fn old_things_are_forgotten_and_what_is_unfinished_is_not() {
    in_every_store(|mut world| async move {
        let (done, waiting) = (world.push(json!({})).await, world.push(json!({})).await);
        world.fetch(1).await;
        world.ack(&done).await;
        world.wait(8 * 86_400);
        while world.store.prune(Retention::default(), world.now).await.unwrap() {}
        assert!(world.store.job(&done, world.now).await.unwrap().is_none());
        assert_eq!(world.state(&waiting).await, State::Available);
        assert_eq!(world.told("*").await, 0);
        // Numbers of events are never used twice, or readers would miss some.
        world.push(json!({})).await;
        let mut last = world.store.last_event();
        let grows = last.wait_for(|last| *last > 3);
        tokio::time::timeout(std::time::Duration::from_secs(60), grows).await.unwrap().unwrap();
    });
}

#[test]
fn a_registration_that_changes_no_plan_leaves_what_is_due_to_whoever_looks() {
    in_every_store(|mut world| async move {
        let nine = |more: Value| {
            let mut nine = json!({"name": "nine", "cron": "0 9 * * *", "kron": {"deadline": "1h"}});
            nine.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            nine
        };
        world.register(nine(json!({}))).await;
        let plans = async |world: &World| {
            let cron = world.store.cron("nine").await.unwrap().unwrap();
            (cron.run_count, cron.watermark, cron.next_look, cron.next_run_at, cron.anchor)
        };
        let before = plans(&world).await;
        world.wait(9 * 3_600 + 30);
        world.register(nine(json!({"args": ["new"], "cron": "0  9 * * *"}))).await;
        assert_eq!(plans(&world).await, before);
        let mut change = Members::default();
        change.put("description", &"at nine");
        world.store.patch("nine", change, world.now).await.unwrap();
        assert_eq!(plans(&world).await, before);
        world.turn(0).await;
        let jobs = world.of_cron("nine", None).await;
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].args.get(), "[\"new\"]", "it fires under the new definition");

        // Where a plan changes, what is due is settled first.
        world.wait(86_400);
        world.register(nine(json!({"kron": {"deadline": "2h"}}))).await;
        assert_eq!(plans(&world).await.0, 2);
    });
}

#[test]
fn of_too_many_dead_letters_the_newest_are_kept_however_many_came_at_once() {
    in_every_store(|mut world| async move {
        let mut dead = Vec::new();
        for seconds in [1, 0, 0, 1, 0] {
            world.wait(seconds);
            let id = world.push(json!({"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}})).await;
            world.fetch(1).await;
            world.fail(&id).await;
            dead.push(id);
        }
        let left = async |dead_max| {
            let keep = Retention { dead_max, ..Retention::default() };
            while world.store.prune(keep, world.now).await.unwrap() {}
            let filter = JobFilter { dead: true, ..JobFilter::default() };
            world.store.jobs(filter, all(), world.now).await.unwrap().0.into_iter().map(|job| job.id)
        };
        assert_eq!(left(5).await.count(), 5);
        let four: Vec<String> = left(4).await.collect();
        let has_the_newest = |left: &[String]| dead[3..].iter().all(|id| left.contains(id));
        assert!(four.len() == 4 && has_the_newest(&four), "one of the old ones is gone");
        let two: Vec<String> = left(2).await.collect();
        assert!(two.len() == 2 && has_the_newest(&two));
        assert_eq!(left(0).await.count(), 0);
    });
}

#[test]
fn of_too_many_events_the_newest_are_kept_and_webhooks_know_how_many_they_missed() {
    in_every_store(|world| async move {
        let new =
            |through| Webhook::new("https://example.com/".into(), through, Secret::new().unwrap(), world.now);
        let (ahead, behind) = (new(u64::MAX), new(0));
        for webhook in [&ahead, &behind] {
            world.store.add_webhook(webhook.clone()).await.unwrap();
        }
        for _ in 0..7 {
            world.push(json!({})).await;
        }
        let keep = Retention { events_max: 3, ..Retention::default() };
        while world.store.prune(keep, world.now).await.unwrap() {}
        assert_eq!(world.told("*").await, 3);
        let missed = async |id: &str| world.store.webhook(id).await.unwrap().unwrap().forgotten;
        assert_eq!((missed(&ahead.id).await, missed(&behind.id).await), (0, 4));
        let through = world.store.webhook(&behind.id).await.unwrap().unwrap().through;
        let after = Some(After::Number(through));
        let left = world.store.events(EventQuery { after, limit: 9, ..EventQuery::default() }).await.unwrap();
        assert_eq!(left.events.len(), 3, "it goes on with the first that is left");
        while world.store.prune(keep, world.now).await.unwrap() {}
        assert_eq!(missed(&behind.id).await, 4, "gaps between numbers are no events");
    });
}

#[test]
fn whoever_waits_for_work_is_woken_by_work_in_its_queues_and_by_nothing_else() {
    in_every_store(|mut world| async move {
        let own = world.store.bell().listen(&["own".into()]);
        let other = world.store.bell().listen(&["other".into()]);
        let woken = async || {
            let patience = std::time::Duration::from_secs(60);
            tokio::time::timeout(patience, own.wait()).await.expect("it is woken");
        };
        world.push(json!({"queue": "own"})).await;
        woken().await;
        world.push(json!({"queue": "own", "scheduled_at": "+PT5S"})).await;
        world.wait(5);
        while world.store.advance(world.now).await.unwrap() {}
        woken().await;
        world.store.pause("own", true, world.now).await.unwrap();
        world.store.pause("own", false, world.now).await.unwrap();
        woken().await;
        let cron = json!({"name": "c", "cron": "* * * * *", "overlap_policy": "enqueue", "options": {"queue": "own"}});
        world.register(cron).await;
        world.turn(60).await;
        woken().await;
        world.turn(60).await;
        let fetch = Fetch { queues: vec!["own".into()], count: 10, worker_id: None, visibility_ms: None };
        for job in world.store.fetch(fetch, world.now).await.unwrap() {
            world.ack(&job.id).await;
        }
        woken().await;
        let is_woken = |waiter: &crate::bell::Waiter| {
            let waits = std::pin::pin!(waiter.wait());
            waits.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
        };
        assert!(!is_woken(&other), "nothing happened in the other queue");
        // One that was told to take no more may be told to go on, whatever it waits for.
        let beat =
            Beat { worker_id: "w".into(), jobs: Vec::new(), visibility_ms: None, about: Members::default() };
        world.store.beat(beat, world.now).await.unwrap();
        world.store.direct("w", WorkerState::Quiet, world.now).await.unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(60), other.wait()).await.unwrap();
    });
}

#[test]
fn cron_jobs_are_found_by_name_and_by_when_they_fire_next() {
    in_every_store(|world| async move {
        for (name, cron) in [
            ("b-late", "0 5 * * *"),
            ("a-soon", "1 0 * * *"),
            ("c-soon", "2 0 * * *"),
            ("d-late", "0 6 * * *"),
        ] {
            let kron = if name == "b-late" { json!({"window": {"duration": "2h"}}) } else { json!({}) };
            world.register(json!({"name": name, "cron": cron, "kron": kron})).await;
        }
        world.register(json!({"name": "z-never", "cron": "* * * * *", "enabled": false})).await;
        let names = |crons: Vec<crate::cron::Cron>| {
            crons.into_iter().map(|cron| cron.definition.name).collect::<Vec<_>>()
        };
        let page = PageRequest { limit: Some(1), cursor: None, offset: 1 };
        let (found, page) = world.store.find_crons("soon", page).await.unwrap();
        assert_eq!((names(found), page.total), (vec!["c-soon".to_owned()], 2));
        assert_eq!(names(world.store.soonest_crons(2).await.unwrap()), ["a-soon", "c-soon"]);
        let mut all = world.store.soonest_crons(10).await.unwrap();
        assert!(all.is_sorted_by_key(|cron| cron.next_run_at));
        all.sort_by(|a, b| a.definition.name.cmp(&b.definition.name));
        assert_eq!(names(all), ["a-soon", "b-late", "c-soon", "d-late"]);
    });
}

#[test]
fn the_latest_job_of_each_cron_job_is_found() {
    in_every_store(|mut world| async move {
        for name in ["a", "b", "never"] {
            let enabled = name != "never";
            let cron =
                json!({"name": name, "cron": "* * * * *", "overlap_policy": "allow", "enabled": enabled});
            world.register(cron).await;
        }
        for _ in 0..3 {
            world.turn(60).await;
        }
        let wanted = ["b", "a", "never", "unknown", "a\0b"].map(str::to_owned).to_vec();
        let mut found: Vec<(String, String)> = Vec::new();
        for job in world.store.latest_jobs(wanted).await.unwrap() {
            found.push((job.cron.unwrap().name, job.id));
        }
        found.sort();
        let mut expected = Vec::new();
        for name in ["a", "b"] {
            let filter = JobFilter { cron: Some(name.into()), ..JobFilter::default() };
            let (jobs, page) = world.store.jobs(filter, all(), world.now).await.unwrap();
            assert!(page.total >= 3, "{}", page.total);
            expected.push((name.to_owned(), jobs[0].id.clone()));
        }
        assert_eq!(found, expected);
    });
}

#[test]
fn the_newest_of_a_record_is_its_end_backwards() {
    in_every_store(|mut world| async move {
        world.register(json!({"name": "often", "cron": "* * * * *", "overlap_policy": "allow"})).await;
        for _ in 0..5 {
            world.turn(60).await;
        }
        // Nobody looked for a while: several in a row, and one that was caught up with.
        world.turn(600).await;
        let span = |from: Timestamp, to: Timestamp, limit: usize| Span { from, to, after: None, limit };
        let all = world.store.occurrences("often", span(Timestamp::MIN, Timestamp::MAX, 100)).await.unwrap();
        let places =
            |record: &[crate::cron::Occurrence]| record.iter().map(|it| it.place()).collect::<Vec<_>>();
        let mut expected = places(&all);
        expected.reverse();
        assert!(expected.len() >= 7, "{expected:?}");
        let latest =
            world.store.latest_occurrences("often", span(Timestamp::MIN, Timestamp::MAX, 100)).await.unwrap();
        assert_eq!(places(&latest), expected);
        let some =
            world.store.latest_occurrences("often", span(Timestamp::MIN, Timestamp::MAX, 3)).await.unwrap();
        assert_eq!(places(&some), expected[..3]);
        // Several in a row are found by any time among them.
        let among = start() + SignedDuration::from_mins(9);
        let found = world.store.latest_occurrences("often", span(among, among, 10)).await.unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].scheduled < among && found[0].last > Some(among));
    });
}

#[test]
fn pages_of_a_list_miss_nothing_and_repeat_nothing() {
    in_every_store(|world| async move {
        for n in 0..23 {
            world
                .register(json!({"name": format!("job-{n:02}"), "cron": "@daily", "enabled": n % 2 == 0}))
                .await;
        }
        let mut names = Vec::new();
        let mut cursor = None;
        loop {
            let page = PageRequest { limit: Some(5), cursor, offset: 0 };
            let (crons, page) = world.store.crons(None, page).await.unwrap();
            assert!(crons.len() <= 5);
            assert_eq!(page.total, 23);
            names.extend(crons.into_iter().map(|cron| cron.definition.name));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(names, (0..23).map(|n| format!("job-{n:02}")).collect::<Vec<_>>());
        assert_eq!(world.store.crons(Some(true), all()).await.unwrap().0.len(), 12);
    });
}

#[test]
fn a_token_is_kept_until_it_is_revoked_and_its_name_is_free_once_it_allows_nothing() {
    in_every_store(|world| async move {
        let (store, now) = (&world.store, world.now);
        let later = now + SignedDuration::from_secs(60);
        let token = |name: &str, byte: u8| Token {
            name: name.into(),
            hash: Hash([byte; 32]),
            scopes: vec![Scope::Enqueue, Scope::Read],
            created_at: now,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        };
        let short = Token { expires_at: Some(later), ..token("short", 1) };
        store.add_token(token("web", 2)).await.unwrap();
        store.add_token(short.clone()).await.unwrap();
        assert_eq!(store.tokens().await.unwrap(), [short, token("web", 2)]);

        let taken = store.add_token(token("web", 3)).await.unwrap_err();
        assert_eq!((taken.code, &*taken.message), (Code::Conflict, "a token named `web` exists"));
        assert_eq!(store.add_token(token("short", 3)).await.unwrap_err().code, Code::Conflict);
        store.add_token(Token { created_at: later, ..token("short", 4) }).await.unwrap();

        store.note_use(vec!["web".into(), "nobody".into()], later).await.unwrap();
        let revoked = store.revoke_token("web", now).await.unwrap().unwrap();
        assert_eq!((revoked.revoked_at, revoked.last_used_at), (Some(now), Some(later)));
        let again = store.revoke_token("web", later).await.unwrap().unwrap();
        assert_eq!(again.revoked_at, Some(now), "it ended when it ended");
        assert!(store.revoke_token("nobody", now).await.unwrap().is_none());
        store.reset().await.unwrap();
        assert_eq!(store.tokens().await.unwrap().len(), 2, "who may do what is no work that could be reset");

        store.add_token(token("web", 5)).await.unwrap();
        assert_eq!(store.tokens().await.unwrap()[1], token("web", 5), "nothing is left of the one before");
    });
}

/// Something that happens around a cron job whose jobs wait for each other.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Ack,
    Cancel(prop::sample::Index),
    Fail,
    Fetch(usize),
    Run,
    Tick,
    Wait(i64),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        2 => Just(Deed::Ack),
        1 => any::<prop::sample::Index>().prop_map(Deed::Cancel),
        2 => Just(Deed::Fail),
        4 => (1..4_usize).prop_map(Deed::Fetch),
        1 => Just(Deed::Run),
        4 => Just(Deed::Tick),
        1 => (1..4_000_i64).prop_map(Deed::Wait),
    ];
    proptest::collection::vec(deed, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Of a cron job whose jobs wait for each other, two are never active at once; and as long as one is
    /// available and none is active, a worker gets one.
    #[test]
    fn jobs_that_wait_for_each_other_do_and_none_is_forgotten(deeds in deeds()) {
        in_every_store(|mut world| {
            let deeds = deeds.clone();
            async move {
                world.register(json!({"name": "serial", "cron": "* * * * *", "overlap_policy": "enqueue"})).await;
                for deed in deeds {
                    let active = world.of_cron("serial", Some(State::Active)).await;
                    match deed {
                        Deed::Ack => if let Some(job) = active.first() { world.ack(&job.id).await },
                        Deed::Fail => if let Some(job) = active.first() { world.fail(&job.id).await },
                        Deed::Cancel(index) => {
                            let jobs = world.of_cron("serial", None).await;
                            if !jobs.is_empty() {
                                let _ = world.store.change(&index.get(&jobs).id, Change::Cancel, world.now).await;
                            }
                        }
                        Deed::Fetch(count) => drop(world.fetch(count).await),
                        Deed::Run => drop(world.store.run("serial", world.now).await.unwrap()),
                        Deed::Tick => world.turn(60).await,
                        Deed::Wait(seconds) => world.wait(seconds),
                    }
                    let active = world.of_cron("serial", Some(State::Active)).await.len();
                    assert!(active <= 1, "{active} are active at once");
                    let available = world.of_cron("serial", Some(State::Available)).await.len();
                    if active == 0 && available > 0 {
                        assert_eq!(world.fetch(9).await.len(), 1, "{available} wait and nobody gets one");
                    }
                }
            }
        });
    }
}

fn attempt(from: u64, number: u64, outcome: Outcome) -> webhook::Change {
    webhook::Change::Attempted(Attempt {
        from,
        number,
        event_id: format!("evt_{number}"),
        event_type: "job.enqueued".into(),
        began: start(),
        duration_ms: 1,
        outcome,
        luck: 0.5,
        patience: SignedDuration::from_hours(24),
    })
}

#[test]
fn a_webhook_keeps_its_place_and_its_last_deliveries() {
    in_every_store(|world| async move {
        let new = |through| {
            let secret = Secret::new().unwrap();
            Webhook::new("https://example.com/".into(), through, secret, world.now)
        };
        let (first, other) = (new(7), new(0));
        world.store.add_webhook(first.clone()).await.unwrap();
        world.store.add_webhook(other.clone()).await.unwrap();
        let id = first.id.as_str();
        let failed = Outcome::Failed { status: Some(500), error: "no".into() };
        let kept = world.store.change_webhook(id, attempt(7, 9, failed), world.now).await.unwrap();
        assert_eq!((kept.through, kept.next_attempt(9)), (7, 2), "a failure keeps it where it is");
        for number in 9..9 + DELIVERIES_KEPT as u64 + 5 {
            let from = if number == 9 { 7 } else { number - 1 };
            let delivered = attempt(from, number, Outcome::Delivered(200));
            world.store.change_webhook(id, delivered, world.now).await.unwrap();
        }
        let kept = world.store.webhook(id).await.unwrap().unwrap();
        assert_eq!((kept.through, kept.secret), (DELIVERIES_KEPT as u64 + 13, first.secret.clone()));
        let deliveries = world.store.deliveries(id).await.unwrap();
        let numbers: Vec<u64> = deliveries.iter().map(|delivery| delivery.number).collect();
        let expected: Vec<u64> = (14..DELIVERIES_KEPT as u64 + 14).rev().collect();
        assert_eq!(numbers, expected, "the last ones are kept, the newest first");
        assert!(world.store.deliveries(&other.id).await.unwrap().is_empty());

        let gone = Outcome::Failed { status: Some(410), error: "gone".into() };
        let kept = world.store.change_webhook(&other.id, attempt(0, 1, gone), world.now).await.unwrap();
        assert!(!kept.enabled && kept.disabled.is_some());
        assert_eq!(world.told("webhook.disabled").await, 1, "in the same transaction it is told");

        assert!(world.store.remove_webhook(id).await.unwrap().is_some());
        assert!(world.store.remove_webhook(id).await.unwrap().is_none());
        assert!(world.store.deliveries(id).await.unwrap().is_empty());
        let edit = webhook::Change::Edited(Edit::default());
        assert_eq!(world.store.change_webhook(id, edit, world.now).await.unwrap_err().code, Code::NotFound);
        assert_eq!(world.store.webhooks().await.unwrap().len(), 1);
        for _ in 1..WEBHOOKS_MAX {
            world.store.add_webhook(new(0)).await.unwrap();
        }
        assert_eq!(world.store.add_webhook(new(0)).await.unwrap_err().code, Code::Conflict);
    });
}
