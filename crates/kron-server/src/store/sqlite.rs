//! Everything in one SQLite database: one thread writes, a few connections read.

mod crons;
mod desk;
mod jobs;
mod lists;
mod tokens;
mod webhooks;
mod writer;

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kron_zones::Zones;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::watch;

use crate::bell::Bell;
use crate::cron::{Compiled, Cron, Occurrence, Registration};
use crate::job::{Job, State};
use crate::job_view::Page;
use crate::members::Members;
use crate::refusal::Refusal;
use crate::token::Token;
use crate::webhook::{self, Delivery, Webhook};

use super::{
    Answer, Beat, Beaten, Change, Changed, Cluster, DeadStats, Due, EventQuery, Events, Fetch, JobFilter,
    PageRequest, Queue, Retention, Rules, Span, Store, Tokens, Worker, WorkerState,
};
use desk::{Desk, Memory, body, failed, one};
use writer::Writer;

pub use tokens::SqliteTokens;

/// A store in an SQLite database. One process at a time can have it.
#[derive(Debug)]
pub struct Sqlite {
    writer: Writer,
    bell: Arc<Bell>,
    readers: Readers,
    rules: Rules,
    zones: Arc<Zones>,
    /// After which job to look next for some that were set aside and can be read again.
    aside: Mutex<String>,
    /// It never ends.
    reign: watch::Sender<Option<u64>>,
    /// Held for as long as the store is.
    _lock: File,
}

/// How the tables came to be, from nothing. A step is never edited once released: a change is a step more.
const STEPS: [&str; 4] = [
    include_str!("sqlite/schema.sql"),
    include_str!("sqlite/tokens.sql"),
    include_str!("sqlite/lists.sql"),
    include_str!("sqlite/webhooks.sql"),
];

/// The version of the tables that this program writes: how many steps were taken.
const SCHEMA_VERSION: usize = STEPS.len();

/// For how long a statement waits for another to end. Readers and the writer hardly ever wait at all.
const BUSY: Duration = Duration::from_secs(10);

impl Sqlite {
    /// Opens the database of a directory, which is made if there is none.
    ///
    /// # Errors
    ///
    /// If another process has it, or it cannot be read, or it is of a later version.
    pub fn open(directory: &Path, rules: Rules, zones: Arc<Zones>) -> Result<Sqlite, String> {
        make_directory(directory)?;
        let lock = lock(directory)?;
        let path = directory.join(FILE);
        let mut connection = open_file(&path)?;
        migrate(&mut connection, &path)?;
        let in_file = |error: rusqlite::Error| format!("could not read {}: {error}", path.display());
        let highest = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        let memory = Memory {
            seq: highest("SELECT max(seq) FROM jobs").map_err(in_file)?.unwrap_or(0),
            last_event: highest("SELECT max(seq) FROM sqlite_sequence WHERE name = 'events'")
                .map_err(in_file)?
                .map_or(0, i64::unsigned_abs),
            source: rules.source.as_str().into(),
        };
        let bell = Arc::new(Bell::default());
        let writer = Writer::start(connection, memory, Arc::clone(&rules.metrics), Arc::clone(&bell))
            .map_err(|refusal| refusal.message)?;
        let (readers, reign) = (Readers::new(&path), watch::Sender::new(Some(1)));
        Ok(Sqlite { writer, bell, readers, rules, zones, aside: Mutex::default(), reign, _lock: lock })
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk<'_>) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        self.writer.write(work).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        self.rules.metrics.read();
        self.readers.read(work).await
    }

    /// Takes back some of the jobs that were set aside. Says whether there are more to look at.
    async fn take_back(&self, now: Timestamp) -> Answer<bool> {
        let after = self.aside.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let next = self.write(move |desk| desk.take_back(&after, now)).await?;
        let more = next.is_some();
        *self.aside.lock().unwrap_or_else(PoisonError::into_inner) = next.unwrap_or_default();
        Ok(more)
    }

    /// Carries out what time has changed, so that nobody reads a state that has already ended.
    async fn catch_up(&self, now: Timestamp) -> Answer<()> {
        for _ in 0..CATCH_UP_MAX {
            if self.writer.due.borrow().jobs.is_none_or(|due| due > now) || !self.advance(now).await? {
                break;
            }
        }
        Ok(())
    }
}

/// How many batches a read catches up with at most. The rest is left to the loop that does only that.
const CATCH_UP_MAX: usize = 4;

#[async_trait]
impl Store for Sqlite {
    async fn push(&self, jobs: Vec<Job>) -> Answer<Vec<Job>> {
        self.write(move |desk| {
            let mut jobs = jobs;
            for job in &mut jobs {
                desk.insert(job)?;
                desk.tell(job.received())?;
            }
            Ok(jobs)
        })
        .await
    }

    async fn job(&self, id: &str, now: Timestamp) -> Answer<Option<Job>> {
        self.catch_up(now).await?;
        let id = id.to_owned();
        self.read(move |connection| one(connection, "SELECT body FROM jobs WHERE id = ?1", &[&id], body))
            .await
    }

    async fn change(&self, id: &str, change: Change, now: Timestamp) -> Answer<Changed> {
        let (id, rules) = (id.to_owned(), self.rules.clone());
        self.write(move |desk| jobs::change(desk, &rules, &id, change, now)).await
    }

    async fn fetch(&self, fetch: Fetch, now: Timestamp) -> Answer<Vec<Job>> {
        self.catch_up(now).await?;
        let rules = self.rules.clone();
        self.write(move |desk| jobs::fetch(desk, &rules, &fetch, now)).await
    }

    async fn beat(&self, beat: Beat, now: Timestamp) -> Answer<Beaten> {
        let rules = self.rules.clone();
        self.write(move |desk| jobs::beat(desk, &rules, &beat, now)).await
    }

    async fn advance(&self, now: Timestamp) -> Answer<bool> {
        self.write(move |desk| jobs::advance(desk, now)).await
    }

    async fn jobs(&self, filter: JobFilter, page: PageRequest, now: Timestamp) -> Answer<(Vec<Job>, Page)> {
        self.catch_up(now).await?;
        self.read(move |connection| lists::jobs(connection, &filter, &page)).await
    }

    async fn latest_jobs(&self, crons: Vec<String>) -> Answer<Vec<Job>> {
        self.read(move |connection| lists::latest_jobs(connection, &crons)).await
    }

    async fn dead_stats(&self) -> Answer<DeadStats> {
        self.read(lists::dead_stats).await
    }

    async fn delete_dead(&self, id: &str, now: Timestamp) -> Answer<()> {
        let id = id.to_owned();
        self.write(move |desk| jobs::delete_dead(desk, &id, now)).await
    }

    async fn queues(&self, page: PageRequest) -> Answer<(Vec<Queue>, Page)> {
        self.read(move |connection| lists::queues(connection, &page)).await
    }

    async fn pause(&self, queue: &str, paused: bool, now: Timestamp) -> Answer<Queue> {
        let queue = queue.to_owned();
        self.write(move |desk| jobs::pause(desk, queue, paused, now)).await
    }

    async fn census(&self, queues_max: usize) -> Answer<Vec<(Option<String>, State, u64)>> {
        self.read(move |connection| lists::census(connection, queues_max)).await
    }

    async fn queue_stats(&self, queue: &str, now: Timestamp) -> Answer<(Queue, Vec<(State, u64)>)> {
        self.catch_up(now).await?;
        let queue = queue.to_owned();
        self.read(move |connection| lists::queue_stats(connection, queue, now)).await
    }

    async fn workers(&self, page: PageRequest) -> Answer<(Vec<Worker>, Page)> {
        self.read(move |connection| lists::workers(connection, &page)).await
    }

    async fn direct(&self, worker_id: &str, state: WorkerState, now: Timestamp) -> Answer<Worker> {
        let id = worker_id.to_owned();
        self.write(move |desk| jobs::direct(desk, &id, state, now)).await
    }

    async fn register(&self, registration: Registration, now: Timestamp) -> Answer<(Cron, Compiled, bool)> {
        let (rules, zones) = (self.rules.clone(), Arc::clone(&self.zones));
        self.write(move |desk| crons::register(desk, &rules, &zones, registration, now)).await
    }

    async fn patch(&self, name: &str, change: Members, now: Timestamp) -> Answer<(Cron, Compiled)> {
        let (name, rules, zones) = (name.to_owned(), self.rules.clone(), Arc::clone(&self.zones));
        self.write(move |desk| crons::patch(desk, &rules, &zones, &name, change, now)).await
    }

    async fn unregister(&self, name: &str) -> Answer<Option<Cron>> {
        let name = name.to_owned();
        self.write(move |desk| {
            let cron = desk.cron(&name)?;
            desk.execute("DELETE FROM crons WHERE name = ?1", &[&name])?;
            Ok(cron)
        })
        .await
    }

    async fn cron(&self, name: &str) -> Answer<Option<Cron>> {
        let name = name.to_owned();
        self.read(move |connection| one(connection, "SELECT body FROM crons WHERE name = ?1", &[&name], body))
            .await
    }

    async fn crons(&self, enabled: Option<bool>, page: PageRequest) -> Answer<(Vec<Cron>, Page)> {
        self.read(move |connection| lists::crons(connection, enabled, &page)).await
    }

    async fn crons_after(&self, name: Option<String>, most: usize) -> Answer<(Vec<Cron>, Option<String>)> {
        self.read(move |connection| lists::crons_after(connection, name.as_deref(), most)).await
    }

    async fn replan(&self, names: Vec<String>, now: Timestamp) -> Answer<Option<Vec<(Cron, Cron)>>> {
        let zones = Arc::clone(&self.zones);
        self.write(move |desk| crons::replan(desk, &zones, &names, now)).await.map(Some)
    }

    async fn find_crons(&self, text: &str, page: PageRequest) -> Answer<(Vec<Cron>, Page)> {
        let text = text.to_owned();
        self.read(move |connection| lists::find_crons(connection, &text, &page)).await
    }

    async fn soonest_crons(&self, most: usize) -> Answer<Vec<Cron>> {
        self.read(move |connection| lists::soonest_crons(connection, most)).await
    }

    async fn turn(&self, stamp: Timestamp, actual: Timestamp) -> Answer<bool> {
        let (rules, zones) = (self.rules.clone(), Arc::clone(&self.zones));
        self.write(move |desk| crons::turn_due(desk, &rules, &zones, stamp, actual)).await
    }

    async fn run(&self, name: &str, now: Timestamp) -> Answer<Option<Job>> {
        let (name, zones) = (name.to_owned(), Arc::clone(&self.zones));
        self.write(move |desk| crons::run(desk, &zones, &name, now)).await
    }

    async fn occurrences(&self, name: &str, span: Span) -> Answer<Vec<Occurrence>> {
        let name = name.to_owned();
        self.read(move |connection| lists::occurrences(connection, &name, &span)).await
    }

    async fn latest_occurrences(&self, name: &str, span: Span) -> Answer<Vec<Occurrence>> {
        let name = name.to_owned();
        self.read(move |connection| lists::latest_occurrences(connection, &name, &span)).await
    }

    async fn occurrence_at(&self, name: &str, at: Timestamp) -> Answer<Option<Occurrence>> {
        let name = name.to_owned();
        self.read(move |connection| lists::occurrence_at(connection, &name, at)).await
    }

    async fn events(&self, query: EventQuery) -> Answer<Events> {
        self.read(move |connection| lists::events(connection, &query)).await
    }

    async fn add_webhook(&self, webhook: Webhook) -> Answer<()> {
        self.write(move |desk| webhooks::add(desk, &webhook)).await
    }

    async fn webhook(&self, id: &str) -> Answer<Option<Webhook>> {
        let id = id.to_owned();
        self.read(move |connection| one(connection, "SELECT body FROM webhooks WHERE id = ?1", &[&id], body))
            .await
    }

    async fn webhooks(&self) -> Answer<Vec<Webhook>> {
        self.read(webhooks::all).await
    }

    async fn change_webhook(&self, id: &str, change: webhook::Change, now: Timestamp) -> Answer<Webhook> {
        let id = id.to_owned();
        self.write(move |desk| webhooks::change(desk, &id, change, now)).await
    }

    async fn remove_webhook(&self, id: &str) -> Answer<Option<Webhook>> {
        let id = id.to_owned();
        self.write(move |desk| webhooks::remove(desk, &id)).await
    }

    async fn deliveries(&self, webhook_id: &str) -> Answer<Vec<Delivery>> {
        let id = webhook_id.to_owned();
        self.read(move |connection| webhooks::deliveries(connection, &id)).await
    }

    async fn prune(&self, retention: Retention, now: Timestamp) -> Answer<bool> {
        let taken_back = self.take_back(now).await;
        let pruned = self.write(move |desk| jobs::prune(desk, &retention, now)).await;
        Ok(taken_back? | pruned?)
    }

    async fn reset(&self) -> Answer<()> {
        self.write(|desk| {
            desk.forget_queue();
            let tables = "DELETE FROM jobs; DELETE FROM queues; DELETE FROM workers; DELETE FROM crons; \
                          DELETE FROM occurrences; DELETE FROM events; DELETE FROM webhooks; \
                          DELETE FROM deliveries;";
            desk.connection().execute_batch(tables).map_err(failed)
        })
        .await
    }

    async fn ping(&self) -> Answer<()> {
        if *self.writer.is_failing.borrow() {
            // Only a write can tell whether writes succeed again.
            let mark = format!("PRAGMA user_version = {SCHEMA_VERSION}");
            self.write(move |desk| desk.connection().execute_batch(&mark).map_err(failed)).await?;
        }
        self.read(|connection| one(connection, "SELECT 1", &[], |_| Ok(())).map(drop)).await
    }

    async fn cluster(&self) -> Answer<Cluster> {
        let next_look = self.writer.due.borrow().crons;
        // Only one process can have the database: there is nobody to share the work with, and no reign to count.
        Ok(Cluster { node: self.rules.source.clone(), leader: None, nodes: Vec::new(), next_look })
    }

    async fn retire(&self) {}

    fn leads(&self) -> bool {
        true
    }

    fn reign(&self) -> watch::Receiver<Option<u64>> {
        self.reign.subscribe()
    }

    fn due(&self) -> watch::Receiver<Due> {
        self.writer.due.clone()
    }

    fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    fn last_event(&self) -> watch::Receiver<u64> {
        self.writer.last_event.clone()
    }

    fn backend(&self) -> &'static str {
        "sqlite"
    }
}

#[async_trait]
impl Tokens for Sqlite {
    async fn tokens(&self) -> Answer<Vec<Token>> {
        self.read(tokens::all).await
    }

    async fn add_token(&self, token: Token) -> Answer<()> {
        self.write(move |desk| tokens::add(desk.connection(), &token)).await
    }

    async fn revoke_token(&self, name: &str, now: Timestamp) -> Answer<Option<Token>> {
        let name = name.to_owned();
        self.write(move |desk| tokens::revoke(desk.connection(), &name, now)).await
    }

    async fn note_use(&self, names: Vec<String>, now: Timestamp) -> Answer<()> {
        self.write(move |desk| tokens::note_use(desk.connection(), &names, now)).await
    }
}

/// Connections that only read. Each is used by one reader at a time and then put back.
#[derive(Debug)]
struct Readers {
    path: std::path::PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    /// Not more at once than there is use for.
    seats: Arc<tokio::sync::Semaphore>,
}

/// How many read at once.
const READERS_MAX: usize = 8;

impl Readers {
    fn new(path: &Path) -> Readers {
        let seats = Arc::new(tokio::sync::Semaphore::new(READERS_MAX));
        Readers { path: path.to_owned(), idle: Arc::default(), seats }
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let seat = Arc::clone(&self.seats).acquire_owned().await.map_err(|error| Refusal::backend(&error))?;
        let (path, idle) = (self.path.clone(), Arc::clone(&self.idle));
        let reading = tokio::task::spawn_blocking(move || {
            let _seat = seat;
            let connection = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = connection.map_or_else(|| reader(&path), Ok).map_err(failed)?;
            let answer = work(&connection);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            answer
        });
        reading.await.map_err(|error| Refusal::backend(&error))?
    }
}

fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// After how many pages of 4 KiB the log is folded into the database.
const LOG_PAGES: i64 = 4_096;

/// How much of the database the thread that writes has in memory at most.
const CACHE_KIB: i64 = 32 * 1_024;
/// The database, in its directory.
pub(super) const FILE: &str = "kron.db";

fn make_directory(directory: &Path) -> Result<(), String> {
    // What jobs are about is nobody else's business.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| format!("could not make the directory {}: {error}", directory.display()))
}

fn open_file(path: &Path) -> Result<Connection, String> {
    let failed = |error: &dyn std::fmt::Display| format!("could not open {}: {error}", path.display());
    let private = File::options().create(true).append(true).mode(0o600).open(path);
    private.map_err(|error| failed(&error))?;
    connect(path).map_err(|error| failed(&error))
}

/// More prepared statements than this store has.
const STATEMENTS_MAX: usize = 128;

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.pragma_update(None, "journal_mode", "wal")?;
    // What was answered with success has reached the disk.
    connection.pragma_update(None, "synchronous", "full")?;
    // A burst is folded into the database a few times, and not after every transaction.
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // What a savepoint may have to restore is kept in memory: as files it is half of all that is written.
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(connection)
}

/// Takes the steps that are missing, each wholly or not at all.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), String> {
    let place = path.display();
    let said = |error: rusqlite::Error| format!("could not read {place}: {error}");
    for _ in 0..=SCHEMA_VERSION {
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(said)?;
        let version = version(&transaction).map_err(said)?;
        let Some(step) = STEPS.get(version) else {
            return check_version(version, path);
        };
        let next = version + 1;
        let step = format!("{step} PRAGMA user_version = {next};");
        transaction.execute_batch(&step).and_then(|()| transaction.commit()).map_err(said)?;
    }
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn check_version(version: usize, path: &Path) -> Result<(), String> {
    if version == SCHEMA_VERSION {
        return Ok(());
    }
    Err(format!(
        "expected {} to be of version {SCHEMA_VERSION}, but found version {version}: \
         it was written by another kron-server; use that one, or another directory",
        path.display()
    ))
}

/// Makes sure that no other process uses the directory.
fn lock(directory: &Path) -> Result<File, String> {
    let path = directory.join("lock");
    let open = || File::options().create(true).read(true).write(true).truncate(false).mode(0o600).open(&path);
    let file = open().map_err(|error| format!("could not open {}: {error}", path.display()))?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // For people who find the directory locked.
            let _ = fs::write(&path, format!("{}\n", std::process::id()));
            Ok(file)
        }
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            Err(format!(
                "the directory {} is in use by another kron-server (process {}); \
                 stop that one, or choose another directory with --data",
                directory.display(),
                holder.trim()
            ))
        }
        Err(error) => Err(format!("could not lock {}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::Members;
    use serde_json::json;

    fn open(directory: &Path, zones: &Arc<Zones>) -> Sqlite {
        let rules = Rules {
            defaults: crate::job::Defaults::default(),
            counting: crate::cron::Counting::Active,
            directives: false,
            source: "ojs://test".into(),
            metrics: Arc::default(),
        };
        Sqlite::open(directory, rules, Arc::clone(zones)).unwrap()
    }

    /// A step that was taken somewhere is never taken there again: what is edited later would hold in new databases only.
    #[test]
    fn a_step_is_never_edited() {
        let pinned = ["b58c5b4d2d661886", "e057cc65ff860cbc", "4f3422a384774179", "6803347db4f36a99"];
        let steps = STEPS.map(crate::store::conformance::fingerprint);
        assert_eq!(steps, pinned, "make a step more instead, and pin it here");
    }

    #[tokio::test]
    async fn a_job_that_cannot_be_read_is_set_aside_and_keeps_nobody_waiting() {
        let home = tempfile::tempdir().unwrap();
        let store = open(home.path(), &Arc::new(Zones::bundled()));
        let now: Timestamp = "2026-01-01T00:00:30Z".parse().unwrap();
        let job = |options: serde_json::Value| {
            let given = json!({"type": "a.b", "args": [], "options": options});
            crate::envelope::read(Members::read(given.to_string().as_bytes()).unwrap(), now).unwrap()
        };
        let jobs = vec![
            job(json!({"priority": 9})),
            job(json!({})),
            job(json!({"scheduled_at": "+PT5S"})),
            job(json!({"scheduled_at": "+PT6S"})),
        ];
        let ids: Vec<String> = store.push(jobs).await.unwrap().into_iter().map(|job| job.id).collect();
        let connection = Connection::open(home.path().join(FILE)).unwrap();
        for id in [&ids[0], &ids[2]] {
            connection.execute("UPDATE jobs SET body = '{}' WHERE id = ?1", [id]).unwrap();
        }
        let later = now + jiff::SignedDuration::from_secs(30);
        let handed_out = async |now: Timestamp| {
            let queues = vec!["default".into()];
            let fetch = Fetch { queues, count: 1, worker_id: None, visibility_ms: None };
            store.fetch(fetch, now).await.unwrap().into_iter().map(|job| job.id).collect::<Vec<_>>()
        };
        assert_eq!(handed_out(now).await, [ids[1].clone()]);
        assert_eq!(handed_out(later).await, [ids[3].clone()]);
        let all = PageRequest { limit: Some(1), cursor: None, offset: 0 };
        let (_, page) = store.jobs(JobFilter::default(), all, later).await.unwrap();
        assert!(page.next.is_some(), "a list goes on");
        assert!(store.job(&ids[0], later).await.unwrap_err().message.contains("missing field"));
        // Counting is nobody's who waits for an answer, but it is done before the store is gone.
        let metrics = Arc::clone(&store.rules.metrics);
        drop(store);
        let counted = metrics.render(&crate::metrics::Gauges::default());
        assert!(counted.contains("\nkron_store_unreadable_total 2\n"), "each is counted once: {counted}");
    }

    #[tokio::test]
    async fn a_cron_job_whose_zone_is_gone_troubles_nobody_and_can_be_repaired() {
        let home = tempfile::tempdir().unwrap();
        let database = home.path().join("zones");
        fs::create_dir_all(database.join("Test")).unwrap();
        fs::copy("/usr/share/zoneinfo/UTC", database.join("Test/Place")).unwrap();
        let now: Timestamp = "2026-01-01T00:00:30Z".parse().unwrap();
        let zones = Arc::new(Zones::from_directory(&database));
        let register = |name: &str, zone: &str| {
            let given = json!({"name": name, "cron": "* * * * *", "timezone": zone, "type": "a.b"});
            let given = Members::read(given.to_string().as_bytes()).unwrap();
            Registration::read(given, &zones, now).unwrap()
        };
        let store = open(home.path(), &zones);
        store.register(register("gone", "Test/Place"), now).await.unwrap();
        store.register(register("here", "UTC"), now).await.unwrap();
        drop(store);

        let store = open(home.path(), &Arc::new(Zones::bundled()));
        let later = now + jiff::SignedDuration::from_secs(30);
        while store.turn(later, later).await.unwrap() {}
        assert_eq!(store.cron("here").await.unwrap().unwrap().run_count, 1);
        assert_eq!(store.cron("gone").await.unwrap().unwrap().run_count, 0);
        assert!(store.run("gone", later).await.is_err(), "it cannot be run either, and that is told");
        let mut change = Members::default();
        change.put("timezone", &"UTC");
        let (cron, _) = store.patch("gone", change, later).await.unwrap();
        assert_eq!(cron.next_run_at, Some("2026-01-01T00:02:00Z".parse().unwrap()));
    }
}
