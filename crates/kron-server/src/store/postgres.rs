//! Everything in one PostgreSQL database, which many nodes share.
//!
//! Every verb is one transaction, and whoever changes things takes locks in one order: cron jobs, what holds the jobs of a
//! cron job together, jobs, workers. The leader's row stands outside that order: whoever takes the lease locks it and
//! nothing that the others lock. Nothing is kept in a session.

mod batch;
mod crons;
mod desk;
mod jobs;
mod lease;
mod lists;
mod look;
mod migrate;
mod pool;
mod prune;
#[cfg(test)]
pub(super) mod server;
#[cfg(test)]
mod tests;
mod tokens;
mod trouble;
mod webhooks;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kron_zones::Zones;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Executor, Row};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::bell::Bell;
use crate::clock::instant;
use crate::cron::{Compiled, Cron, Occurrence, Registration};
use crate::job::{Job, State};
use crate::job_view::Page;
use crate::members::Members;
use crate::metrics::Metrics;
use crate::note::Note;
use crate::refusal::{Code, Refusal};
use crate::webhook::{self, Delivery, Webhook};

use super::verbs::{ADVANCE_MAX, TAKE_BACK_MAX, TURNS_MAX};
use super::{
    Answer, Beat, Beaten, Change, Changed, Cluster, DeadStats, Due, EventQuery, Events, Fetch, JobFilter,
    Leading, Node, PageRequest, Queue, Retention, Rules, Span, Store, Worker, WorkerState,
};
use batch::Batch;
use desk::{Committed, Desk, Mark, earliest};
use lease::{Lease, Nudge};
use pool::Pool;
use trouble::{Outcome, Trouble};

pub use tokens::PostgresTokens;

/// Which database, and how to reach it.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The database.
    pub url: String,
    /// The same around any pooler, to hear what other nodes call.
    pub direct: Option<String>,
    /// Whether a transaction pooler stands in between.
    pub pooler: bool,
    /// How many connections at most.
    pub connections: u32,
}

/// A store in a PostgreSQL database. Any number of nodes can have it.
#[derive(Debug)]
pub struct Postgres {
    core: Arc<Core>,
    rules: Rules,
    zones: Arc<Zones>,
    /// After which job to look next for some that were set aside and can be read again.
    aside: Mutex<String>,
    tasks: Vec<JoinHandle<()>>,
}

/// What the verbs and the tasks beside them share.
struct Core {
    pool: Pool,
    /// For the lease alone: however many requests there are, it is renewed in time.
    lease_pool: Pool,
    /// For the loops alone: however many requests there are, what is due is seen and done.
    loop_pool: Pool,
    direct: Option<PgConnectOptions>,
    /// For commits that nobody answered, which are read back over connections of their own.
    read_backs: Semaphore,
    /// This process, among others that may have the same address one after the other.
    node: String,
    address: String,
    source: Arc<str>,
    metrics: Arc<Metrics>,
    due: watch::Sender<Due>,
    /// How often something was written here that is due at a time. It changes with `due`.
    written: AtomicU64,
    last_event: watch::Sender<u64>,
    /// The last event that was seen, settled or not.
    heard: AtomicI64,
    lease: watch::Receiver<Option<Lease>>,
    /// The number of that reign, which a renewal leaves as it is.
    reign: watch::Sender<Option<u64>>,
    nudge: mpsc::Sender<Nudge>,
    /// How many jobs time changes in one transaction, and how many cron jobs are settled in one.
    advancing: Batch,
    turning: Batch,
    /// What wakes whoever waits for work at this node.
    bell: Arc<Bell>,
    /// Something happened here.
    kick: Notify,
    /// Something happened elsewhere.
    called: Notify,
    /// Whether that is heard now.
    hears: AtomicBool,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("node", &self.node).finish_non_exhaustive()
    }
}

/// How many loops there are that work while nobody asks: one for jobs, one for cron jobs, and one that looks.
const LOOPS: u32 = 3;

/// How often a transaction is tried that others stood in the way of.
const TRIES_MAX: u32 = 4;

/// How long to wait before that, times the number of tries.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// How long to find out whether a transaction was committed. The database ends one that nobody goes on with before.
const READ_BACK_MAX: Duration = Duration::from_secs(8);

/// How long to wait between two tries of that.
const READ_BACK_EVERY: Duration = Duration::from_millis(200);

/// How many commits are read back at once. The others wait for that, and each takes a moment once the database answers.
const READ_BACKS_MAX: u32 = 4;

/// How many batches a read catches up with at most. The rest is left to the loop that does only that.
const CATCH_UP_MAX: usize = 4;

/// How often a fetch looks for jobs that others have in hand and may leave.
const FETCH_TRIES: u32 = 4;

/// How long to leave what is due to another node that has it in hand.
const CROWDED: Duration = Duration::from_millis(100);

/// How long an event may wait to be read for what began before it and has not ended, and how often to look.
const SETTLE_MAX: Duration = Duration::from_secs(1);
const SETTLE_EVERY: Duration = Duration::from_millis(5);

/// How long a test waits for this node to lead.
const LEAD_MAX: Duration = Duration::from_secs(40);

/// How long the lease may take to be given back.
const RELEASE_MAX: Duration = Duration::from_secs(3);

/// Does something in a transaction, as often as others stand in its way.
macro_rules! write {
    ($core:expr, |$desk:ident| $work:expr) => {
        $crate::store::postgres::write!($core, $core.pool, |$desk| $work)
    };
    ($core:expr, $pool:expr, |$desk:ident| $work:expr) => {
        $crate::store::postgres::attempt!($core, $pool, |$desk| $work)
            .map_err($crate::store::postgres::trouble::Trouble::refusal)
    };
}

/// The same for some at a time, whose number learns from what came of it.
macro_rules! write_some {
    ($core:expr, $pool:expr, $batch:expr, |$desk:ident, $most:ident| $work:expr) => {{
        let ($most, began) = ($batch.size(), instant());
        let outcome = $crate::store::postgres::attempt!($core, $pool, |$desk| $work);
        $batch.tried($most, began.elapsed(), &outcome);
        outcome.map_err(Trouble::refusal)
    }};
}

/// What either does. Its trouble is not yet put into words.
macro_rules! attempt {
    ($core:expr, $pool:expr, |$desk:ident| $work:expr) => {{
        let mut tries = 0;
        loop {
            let mut $desk = match $core.begin(&$pool).await {
                Ok(desk) => desk,
                Err(refusal) => break Err($crate::store::postgres::trouble::Trouble::from(refusal)),
            };
            let outcome = $work.await;
            if let Some(answer) = $core.end($desk, outcome, &mut tries).await {
                break answer;
            }
        }
    }};
}

/// Reads something in a transaction.
macro_rules! read {
    ($core:expr, |$desk:ident| $work:expr) => {
        $crate::store::postgres::read!($core, $core.pool, |$desk| $work)
    };
    ($core:expr, $pool:expr, |$desk:ident| $work:expr) => {{
        match $core.begin(&$pool).await {
            Ok(mut $desk) => {
                let outcome = $work.await;
                $core.leave($desk, outcome).await
            }
            Err(refusal) => Err(refusal),
        }
    }};
}

use {attempt, read, write};

/// What only the one who keeps the lease has.
type Keeping = (Arc<Core>, watch::Sender<Option<Lease>>, mpsc::Receiver<Nudge>);

impl Core {
    async fn open(
        place: &Place,
        source: Arc<str>,
        metrics: Arc<Metrics>,
        address: String,
    ) -> Result<Keeping, String> {
        let options = connect_options(&place.url)?;
        let direct = place.direct.as_deref().map(connect_options).transpose()?;
        let pool = Pool::new(options, place.connections, !place.pooler);
        migrate::migrate(&pool).await?;
        let (lease, lease_seen) = watch::channel(None);
        let (nudge, nudges) = mpsc::channel(16);
        let core = Arc::new(Core {
            lease_pool: pool.aside(1),
            loop_pool: pool.aside(LOOPS),
            pool,
            direct,
            read_backs: Semaphore::new(READ_BACKS_MAX as usize),
            node: uuid::Uuid::now_v7().to_string(),
            address,
            source,
            metrics,
            due: watch::Sender::new(Due::default()),
            written: AtomicU64::new(0),
            last_event: watch::Sender::new(0),
            heard: AtomicI64::new(0),
            lease: lease_seen,
            reign: watch::Sender::new(None),
            nudge,
            advancing: Batch::new(ADVANCE_MAX),
            turning: Batch::new(TURNS_MAX),
            bell: Arc::default(),
            kick: Notify::new(),
            called: Notify::new(),
            hears: AtomicBool::new(false),
        });
        Ok((core, lease, nudges))
    }

    async fn begin(&self, pool: &Pool) -> Answer<Desk> {
        let unavailable = |error: sqlx::Error| Trouble::from(error).refusal();
        loop {
            let seat = pool.acquire().await.map_err(unavailable)?;
            let mut desk = Desk::new(seat, pool.keeps_statements, Arc::clone(&self.source));
            match desk.begin().await {
                Ok(()) => return Ok(desk),
                // The database has closed it in the meantime. Nothing was done, and the others may be closed too.
                Err(_) if desk.is_used() => pool.forget_idle(),
                Err(trouble) => return Err(trouble.refusal()),
            }
        }
    }

    /// Ends a transaction that wrote. None if it should be tried again.
    async fn end<T>(&self, mut desk: Desk, outcome: Outcome<T>, tries: &mut u32) -> Option<Outcome<T>> {
        let trouble = match outcome {
            Ok(done) => {
                let (noted, has_told, began) = (desk.noted, desk.has_told(), instant());
                let notes = std::mem::take(&mut desk.notes);
                let committed = desk.commit().await;
                match committed {
                    Committed::Done(seat) => {
                        seat.put_back();
                        self.happened(noted, has_told, notes, began.elapsed());
                        return Some(Ok(done));
                    }
                    Committed::Not(trouble) => trouble,
                    Committed::Unknown(mark) => match self.read_back(mark).await {
                        Ok(true) => {
                            self.happened(noted, has_told, notes, began.elapsed());
                            return Some(Ok(done));
                        }
                        Ok(false) => Trouble::Undone,
                        Err(refusal) => return Some(Err(refusal.into())),
                    },
                }
            }
            Err(trouble) => {
                if !matches!(trouble, Trouble::Silence)
                    && let Some(seat) = desk.undo().await
                {
                    seat.put_back();
                }
                trouble
            }
        };
        *tries += 1;
        if trouble.is_passing() && *tries < TRIES_MAX {
            tokio::time::sleep(TRY_AGAIN * *tries).await;
            return None;
        }
        if !matches!(trouble, Trouble::Refused(_)) {
            self.metrics.commit_failed();
        }
        Some(Err(trouble))
    }

    /// Ends a transaction that only read.
    async fn leave<T>(&self, desk: Desk, outcome: Outcome<T>) -> Answer<T> {
        self.metrics.read();
        match outcome {
            Ok(read) => {
                if let Committed::Done(seat) = desk.commit().await {
                    seat.put_back();
                }
                Ok(read)
            }
            Err(trouble) => {
                if !matches!(trouble, Trouble::Silence)
                    && let Some(seat) = desk.undo().await
                {
                    seat.put_back();
                }
                Err(trouble.refusal())
            }
        }
    }

    /// Finds out whether a transaction was committed whose commit nobody answered.
    async fn read_back(&self, mark: Option<Mark>) -> Answer<bool> {
        let unknown = |why: &str| {
            let message = format!("the database was lost in the middle of a commit, and {why}");
            tracing::warn!(message);
            Err(Refusal::new(Code::BackendUnavailable, message)
                .hint("look whether it was done before sending it again"))
        };
        let Some(mark) = mark else { return unknown("nothing tells whether it was done") };
        let read = async {
            loop {
                match self.look_for(&mark).await {
                    Ok(Some(is_committed)) => return is_committed,
                    Ok(None) => {}
                    Err(error) => tracing::debug!(%error, "could not read back"),
                }
                tokio::time::sleep(READ_BACK_EVERY).await;
            }
        };
        match tokio::time::timeout(READ_BACK_MAX, read).await {
            Ok(is_committed) => {
                tracing::info!(
                    is_committed,
                    transaction = mark.transaction,
                    "read back a commit that was not answered"
                );
                Ok(is_committed)
            }
            Err(_) => unknown("it could not be found out in time whether it was done"),
        }
    }

    /// Whether the last event of a transaction is there. None while the transaction is still going on.
    ///
    /// The number of the transaction alone does not do: after a crash it may be given again.
    async fn look_for(&self, mark: &Mark) -> Result<Option<bool>, sqlx::Error> {
        let _turn = self.read_backs.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let mut connection = self.pool.connect().await?;
        // A pooler keeps to one connection within a transaction only.
        connection.execute(desk::BEGIN).await?;
        let sql = "SELECT pg_xact_status($1::xid8)";
        let status: Result<Option<String>, sqlx::Error> = sqlx::query_scalar(sql)
            .persistent(false)
            .bind(&mark.transaction)
            .fetch_one(&mut connection)
            .await;
        match status {
            Ok(Some(status)) if status == "in progress" => return Ok(None),
            // One that the database has not heard of is in its future.
            Ok(_) => {}
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("22023") => {
                connection.execute("ROLLBACK").await?;
                connection.execute(desk::BEGIN).await?;
            }
            Err(error) => return Err(error),
        }
        let sql = "SELECT EXISTS (SELECT 1 FROM events WHERE id = $1)";
        sqlx::query_scalar(sql).persistent(false).bind(&mark.event).fetch_one(&mut connection).await.map(Some)
    }

    /// What a transaction wrote is known here at once, and soon to the others.
    fn happened(&self, noted: Due, has_told: bool, notes: Vec<Note>, took: Duration) {
        self.metrics.committed(1, took);
        notes.iter().for_each(|note| note.wake(&self.bell));
        notes.into_iter().for_each(|note| note.take(&self.metrics, took));
        self.due.send_if_modified(|due| {
            self.written.fetch_add(u64::from(noted.jobs.is_some()), Ordering::AcqRel);
            let jobs = earliest(due.jobs, noted.jobs);
            std::mem::replace(&mut due.jobs, jobs) != jobs
        });
        if has_told || noted != Due::default() {
            self.kick.notify_one();
        }
    }
}

impl Postgres {
    /// Opens a database. Its tables are made or changed if they have to be.
    ///
    /// # Errors
    ///
    /// If it cannot be reached, or is of a later version.
    pub async fn open(
        place: &Place,
        rules: Rules,
        address: String,
        zones: Arc<Zones>,
    ) -> Result<Postgres, String> {
        let (core, lease, nudges) =
            Core::open(place, rules.source.as_str().into(), Arc::clone(&rules.metrics), address).await?;
        look::look(&core, &core.pool, false).await.map_err(|refusal| refusal.message)?;
        let tasks = vec![
            tokio::spawn(lease::keep(Arc::clone(&core), lease, nudges)),
            tokio::spawn(look::keep(Arc::clone(&core))),
            tokio::spawn(look::listen(Arc::clone(&core))),
        ];
        Ok(Postgres { core, rules, zones, aside: Mutex::default(), tasks })
    }

    /// Carries out what time has changed, so that nobody reads a state that has already ended. Whoever asks is answered
    /// where that fails, too: the loop that does only that tries again, and warns.
    async fn catch_up(&self, now: Timestamp) {
        for _ in 0..CATCH_UP_MAX {
            if self.core.due.borrow().jobs.is_none_or(|due| due > now) {
                return;
            }
            match self.advance_by(&self.core.pool, now).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(refusal) => {
                    tracing::debug!(error = refusal.message, "could not advance jobs before they were read");
                    return;
                }
            }
        }
    }

    /// Carries out some of what time has changed, over seats of the loops or of the requests.
    async fn advance_by(&self, pool: &Pool, now: Timestamp) -> Answer<bool> {
        let core = &self.core;
        let advanced =
            write_some!(core, pool, core.advancing, |desk, most| jobs::advance(&mut desk, most, now))?;
        look::look(core, pool, advanced.done > 0).await?;
        if advanced.done == 0 && core.due.borrow().jobs.is_some_and(|due| due <= now) {
            tokio::time::sleep(CROWDED).await;
        }
        Ok(advanced.more)
    }

    /// Takes back some of the jobs that were set aside. Says whether there are more to look at.
    async fn take_back(&self, now: Timestamp) -> Answer<bool> {
        let after = self.aside.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ids = read!(self.core, |desk| desk.aside(&after))?;
        let next = ids.last().filter(|_| ids.len() == TAKE_BACK_MAX).cloned();
        let more = next.is_some();
        // Whatever comes of these, the next look goes on after them.
        *self.aside.lock().unwrap_or_else(PoisonError::into_inner) = next.unwrap_or_default();
        if !ids.is_empty() {
            write!(self.core, |desk| desk.take_back(&ids, now))?;
        }
        Ok(more)
    }

    /// Forgets events that came before the newest ones that are kept.
    async fn forget_early_events(&self, kept: u64, now: Timestamp) -> Answer<bool> {
        let (mut left, mut first) = (kept.max(1), i64::MAX);
        while left > 0 {
            let most = left.min(prune::COUNT_MAX);
            let (count, earliest) = read!(self.core, |desk| prune::count_events(&mut desk, first, most))?;
            let Some(earliest) = earliest.filter(|_| count == most) else { return Ok(false) };
            (left, first) = (left - count, earliest);
        }
        let sql = prune::EARLY_EVENTS;
        for _ in 0..prune::ROUNDS_MAX {
            if !write!(self.core, |desk| prune::forget_events(&mut desk, sql, first, now))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Forgets dead letters that came before the newest ones that are kept. A bound is found first, in steps, since to walk
    /// over all that are kept may take longer than a statement may.
    async fn forget_early_dead(&self, kept: u64) -> Answer<bool> {
        let (mut left, mut first) = (kept, (i64::MAX, String::new()));
        while left > 0 {
            let count = left.min(prune::COUNT_DEAD_MAX);
            let Some(earliest) = read!(self.core, |desk| prune::dead_before(&mut desk, &first, count))?
            else {
                return Ok(false);
            };
            (left, first) = (left - count, earliest);
        }
        for _ in 0..prune::ROUNDS_MAX {
            if !write!(self.core, |desk| prune::forget_dead(&mut desk, &first))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The lease, if this node has it.
    async fn lease(&self) -> Option<Lease> {
        let mut lease = self.core.lease.clone();
        let now = *lease.borrow();
        // Whoever sets the clock in a test waits for what is due then.
        if now.is_none() && self.rules.directives {
            let leads = lease.wait_for(Option::is_some);
            let leads = tokio::time::timeout(LEAD_MAX, leads).await.ok()?.ok()?;
            return *leads;
        }
        now.filter(|lease| lease.holds())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Reads the URL of a database. What it says may be secret, and is not repeated.
fn connect_options(url: &str) -> Result<PgConnectOptions, String> {
    url.parse().map_err(|error| {
        format!("expected a URL such as postgres://user@host:5432/kron for the database, but it is not one: {error}")
    })
}

#[async_trait]
impl Store for Postgres {
    async fn push(&self, jobs: Vec<Job>) -> Answer<Vec<Job>> {
        write!(self.core, |desk| jobs::push(&mut desk, &jobs))
    }

    async fn job(&self, id: &str, now: Timestamp) -> Answer<Option<Job>> {
        self.catch_up(now).await;
        read!(self.core, |desk| lists::job(&mut desk, id))
    }

    async fn change(&self, id: &str, change: Change, now: Timestamp) -> Answer<Changed> {
        write!(self.core, |desk| jobs::change(&mut desk, &self.rules, id, change.clone(), now))
    }

    async fn fetch(&self, fetch: Fetch, now: Timestamp) -> Answer<Vec<Job>> {
        self.catch_up(now).await;
        for _ in 0..FETCH_TRIES {
            let fetched = write!(self.core, |desk| jobs::fetch(&mut desk, &self.rules, &fetch, now))?;
            if !fetched.is_crowded {
                return Ok(fetched.jobs);
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
        Ok(Vec::new())
    }

    async fn beat(&self, beat: Beat, now: Timestamp) -> Answer<Beaten> {
        write!(self.core, |desk| jobs::beat(&mut desk, &self.rules, &beat, now))
    }

    async fn advance(&self, now: Timestamp) -> Answer<bool> {
        self.advance_by(&self.core.loop_pool, now).await
    }

    async fn jobs(&self, filter: JobFilter, page: PageRequest, now: Timestamp) -> Answer<(Vec<Job>, Page)> {
        self.catch_up(now).await;
        read!(self.core, |desk| lists::jobs(&mut desk, &filter, &page))
    }

    async fn latest_jobs(&self, crons: Vec<String>) -> Answer<Vec<Job>> {
        read!(self.core, |desk| lists::latest_jobs(&mut desk, &crons))
    }

    async fn dead_stats(&self) -> Answer<DeadStats> {
        read!(self.core, |desk| lists::dead_stats(&mut desk))
    }

    async fn delete_dead(&self, id: &str, now: Timestamp) -> Answer<()> {
        write!(self.core, |desk| jobs::delete_dead(&mut desk, id, now))
    }

    async fn queues(&self, page: PageRequest) -> Answer<(Vec<Queue>, Page)> {
        read!(self.core, |desk| lists::queues(&mut desk, &page))
    }

    async fn pause(&self, queue: &str, paused: bool, now: Timestamp) -> Answer<Queue> {
        write!(self.core, |desk| jobs::pause(&mut desk, queue, paused, now))
    }

    async fn census(&self, queues_max: usize) -> Answer<Vec<(Option<String>, State, u64)>> {
        read!(self.core, |desk| lists::census(&mut desk, queues_max))
    }

    async fn queue_stats(&self, queue: &str, now: Timestamp) -> Answer<(Queue, Vec<(State, u64)>)> {
        self.catch_up(now).await;
        read!(self.core, |desk| lists::queue_stats(&mut desk, queue, now))
    }

    async fn workers(&self, page: PageRequest) -> Answer<(Vec<Worker>, Page)> {
        read!(self.core, |desk| lists::workers(&mut desk, &page))
    }

    async fn direct(&self, worker_id: &str, state: WorkerState, now: Timestamp) -> Answer<Worker> {
        write!(self.core, |desk| jobs::direct(&mut desk, worker_id, state, now))
    }

    async fn register(&self, registration: Registration, now: Timestamp) -> Answer<(Cron, Compiled, bool)> {
        let (rules, zones) = (&self.rules, &self.zones);
        let registered =
            write!(self.core, |desk| crons::register(&mut desk, rules, zones, registration.clone(), now))?;
        look::try_to_look(&self.core, &self.core.pool, true).await;
        Ok(registered)
    }

    async fn patch(&self, name: &str, change: Members, now: Timestamp) -> Answer<(Cron, Compiled)> {
        let (rules, zones) = (&self.rules, &self.zones);
        let patched =
            write!(self.core, |desk| crons::patch(&mut desk, rules, zones, name, change.clone(), now))?;
        look::try_to_look(&self.core, &self.core.pool, true).await;
        Ok(patched)
    }

    async fn unregister(&self, name: &str) -> Answer<Option<Cron>> {
        let removed = write!(self.core, |desk| crons::unregister(&mut desk, name))?;
        look::try_to_look(&self.core, &self.core.pool, true).await;
        Ok(removed)
    }

    async fn cron(&self, name: &str) -> Answer<Option<Cron>> {
        read!(self.core, |desk| lists::cron(&mut desk, name))
    }

    async fn crons(&self, enabled: Option<bool>, page: PageRequest) -> Answer<(Vec<Cron>, Page)> {
        read!(self.core, |desk| lists::crons(&mut desk, enabled, &page))
    }

    async fn crons_after(&self, name: Option<String>, most: usize) -> Answer<(Vec<Cron>, Option<String>)> {
        read!(self.core, |desk| lists::crons_after(&mut desk, name.as_deref(), most))
    }

    async fn replan(&self, names: Vec<String>, now: Timestamp) -> Answer<Option<Vec<(Cron, Cron)>>> {
        let Some(lease) = self.lease().await else { return Ok(None) };
        let holder = (lease.epoch, self.core.node.as_str());
        let moved = write!(self.core, |desk| crons::replan(&mut desk, &self.zones, holder, &names, now))?;
        look::try_to_look(&self.core, &self.core.pool, true).await;
        Ok(moved)
    }

    async fn find_crons(&self, text: &str, page: PageRequest) -> Answer<(Vec<Cron>, Page)> {
        read!(self.core, |desk| lists::find_crons(&mut desk, text, &page))
    }

    async fn soonest_crons(&self, most: usize) -> Answer<Vec<Cron>> {
        read!(self.core, |desk| lists::soonest_crons(&mut desk, most))
    }

    async fn turn(&self, stamp: Timestamp, actual: Timestamp) -> Answer<bool> {
        let Some(lease) = self.lease().await else { return Ok(false) };
        let holder = (lease.epoch, self.core.node.as_str());
        let (rules, zones) = (&self.rules, &self.zones);
        let core = &self.core;
        let turned = write_some!(core, core.loop_pool, core.turning, |desk, most| {
            crons::turn_due(&mut desk, rules, zones, holder, most, (stamp, actual))
        })?;
        if turned.is_none() {
            tracing::warn!(epoch = lease.epoch, "another node leads; nothing was fired");
            let _ = self.core.nudge.try_send(Nudge::Lost);
        }
        look::look(core, &core.loop_pool, turned.is_some()).await?;
        Ok(turned.unwrap_or(false))
    }

    async fn run(&self, name: &str, now: Timestamp) -> Answer<Option<Job>> {
        write!(self.core, |desk| crons::run(&mut desk, &self.zones, name, now))
    }

    async fn occurrences(&self, name: &str, span: Span) -> Answer<Vec<Occurrence>> {
        read!(self.core, |desk| lists::occurrences(&mut desk, name, &span))
    }

    async fn latest_occurrences(&self, name: &str, span: Span) -> Answer<Vec<Occurrence>> {
        read!(self.core, |desk| lists::latest_occurrences(&mut desk, name, &span))
    }

    async fn occurrence_at(&self, name: &str, at: Timestamp) -> Answer<Option<Occurrence>> {
        read!(self.core, |desk| lists::occurrence_at(&mut desk, name, at))
    }

    async fn events(&self, query: EventQuery) -> Answer<Events> {
        let asked = instant();
        let mut goal = None;
        loop {
            let (events, ends) = read!(self.core, |desk| lists::events(&mut desk, &query))?;
            // Whoever has been told that something was done can read it here, once all that began before has ended.
            let is_settled = ends.settled >= *goal.get_or_insert(ends.last);
            if is_settled || events.events.len() == query.limit || asked.elapsed() > SETTLE_MAX {
                return Ok(events);
            }
            tokio::time::sleep(SETTLE_EVERY).await;
        }
    }

    async fn prune(&self, retention: Retention, now: Timestamp) -> Answer<bool> {
        let mut pruned = vec![self.take_back(now).await];
        for (sql, bound) in prune::rows(&retention, now) {
            pruned.push(write!(self.core, |desk| prune::forget(&mut desk, sql, bound)));
        }
        pruned.push(self.forget_early_dead(retention.dead_max).await);
        let old = prune::before(retention.events_days, now);
        let sql = prune::OLD_EVENTS;
        pruned.push(write!(self.core, |desk| prune::forget_events(&mut desk, sql, old, now)));
        pruned.push(self.forget_early_events(retention.events_max, now).await);
        // What failed keeps nothing else from being forgotten.
        pruned.into_iter().try_fold(false, |more, one| Ok(one? || more))
    }

    async fn reset(&self) -> Answer<()> {
        write!(self.core, |desk| forget(&mut desk))?;
        look::look(&self.core, &self.core.pool, true).await
    }

    async fn ping(&self) -> Answer<()> {
        read!(self.core, |desk| touch(&mut desk))
    }

    async fn add_webhook(&self, webhook: Webhook) -> Answer<()> {
        write!(self.core, |desk| webhooks::add(&mut desk, &webhook))
    }

    async fn webhook(&self, id: &str) -> Answer<Option<Webhook>> {
        read!(self.core, |desk| webhooks::one(&mut desk, id))
    }

    async fn webhooks(&self) -> Answer<Vec<Webhook>> {
        read!(self.core, |desk| webhooks::all(&mut desk))
    }

    async fn change_webhook(&self, id: &str, change: webhook::Change, now: Timestamp) -> Answer<Webhook> {
        write!(self.core, |desk| webhooks::change(&mut desk, id, change.clone(), now))
    }

    async fn remove_webhook(&self, id: &str) -> Answer<Option<Webhook>> {
        write!(self.core, |desk| webhooks::remove(&mut desk, id))
    }

    async fn deliveries(&self, webhook_id: &str) -> Answer<Vec<Delivery>> {
        read!(self.core, |desk| webhooks::deliveries(&mut desk, webhook_id))
    }

    async fn cluster(&self) -> Answer<Cluster> {
        read!(self.core, |desk| cluster(&mut desk, &self.core.node))
    }

    async fn retire(&self) {
        let (tell, told) = oneshot::channel();
        if self.core.nudge.send(Nudge::End(tell)).await.is_ok() {
            let _ = tokio::time::timeout(RELEASE_MAX, told).await;
        }
    }

    fn leads(&self) -> bool {
        self.core.lease.borrow().is_some_and(Lease::holds)
    }

    fn reign(&self) -> watch::Receiver<Option<u64>> {
        self.core.reign.subscribe()
    }

    fn due(&self) -> watch::Receiver<Due> {
        self.core.due.subscribe()
    }

    fn bell(&self) -> &Arc<Bell> {
        &self.core.bell
    }

    fn last_event(&self) -> watch::Receiver<u64> {
        self.core.last_event.subscribe()
    }

    fn backend(&self) -> &'static str {
        "postgres"
    }
}

async fn forget(desk: &mut Desk) -> Outcome<()> {
    desk.execute(sqlx::query(
        "TRUNCATE jobs, queues, workers, crons, occurrences, events, webhooks, deliveries",
    ))
    .await
    .map(drop)
}

/// Only a row that is locked for writing tells whether writes succeed.
async fn touch(desk: &mut Desk) -> Outcome<()> {
    let sql = "SELECT 1 FROM event_base WHERE id = 1 FOR KEY SHARE";
    desk.row(sqlx::query(sql)).await.map(drop)
}

async fn cluster(desk: &mut Desk, node: &str) -> Outcome<Cluster> {
    let sql = "SELECT holder, epoch, (extract(epoch FROM since) * 1000)::bigint, \
               (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint FROM leader \
               WHERE id = 1 AND holder IS NOT NULL AND expires_at > clock_timestamp()";
    let leading = desk.row(sqlx::query(sql)).await?;
    let at = |ms: i64| Timestamp::from_millisecond(ms).unwrap_or_default();
    let leader = match leading {
        None => None,
        Some(row) => Some(Leading {
            node: row.try_get(0)?,
            epoch: row.try_get::<i64, _>(1)?.unsigned_abs(),
            since: at(row.try_get(2)?),
            expires_in_ms: row.try_get::<i64, _>(3)?.unsigned_abs(),
        }),
    };
    let sql = "SELECT id, address, version, (extract(epoch FROM started_at) * 1000)::bigint, \
               (extract(epoch FROM seen_at) * 1000)::bigint, \
               seen_at NOT BETWEEN clock_timestamp() - interval '15 seconds' AND clock_timestamp() + interval '15 seconds' \
               FROM nodes ORDER BY id";
    let mut nodes = Vec::new();
    for row in desk.rows(sqlx::query(sql)).await? {
        nodes.push(Node {
            id: row.try_get(0)?,
            address: row.try_get(1)?,
            version: row.try_get(2)?,
            started_at: at(row.try_get(3)?),
            seen_at: at(row.try_get(4)?),
            is_silent: row.try_get(5)?,
        });
    }
    let row = desk.row(sqlx::query("SELECT min(next_look) FROM crons WHERE next_look IS NOT NULL")).await?;
    let due: Option<i64> = row.map(|row| row.try_get(0)).transpose()?.flatten();
    let next_look = due.and_then(|second| Timestamp::from_second(second).ok());
    Ok(Cluster { node: node.to_owned(), leader, nodes, next_look })
}
