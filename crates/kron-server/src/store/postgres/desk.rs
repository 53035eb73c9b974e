//! Rows of the tables, within one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Executor, Postgres, Row};

use crate::cron::{Active, Counting, Cron, Kind, Occurrence};
use crate::envelope::new_id;
use crate::event::Event;
use crate::job::{Job, State};
use crate::note::Note;
use crate::refusal::{Code, Refusal};
use crate::store::verbs::{ACTIVE_MAX, TAKE_BACK_MAX, WAITING_MAX};
use crate::store::{Due, Worker};

use super::pool::Seat;
use super::trouble::{Outcome, Trouble};

/// How a transaction begins. A node that is stopped or cut off in the middle of one holds its locks no longer than
/// this, and nothing is set for longer than the transaction. While the database waits for room to send, none of its own
/// limits counts: only the connection's does.
pub(super) const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = '3s'; SET LOCAL lock_timeout = '2s'; \
                                SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL tcp_user_timeout = '5s'";

/// How long to wait for an answer of the database, which itself gives up before.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The most events of one transaction: so many numbers each has.
const EVENTS_MAX: usize = (1 << 20) - 1;

/// A transaction, and what belongs to it.
pub(super) struct Desk {
    seat: Seat,
    keeps_statements: bool,
    source: Arc<str>,
    /// The epoch that is current until it ends, once that was asked for.
    epoch: Option<i64>,
    /// What is told when it ends: ids and events.
    events: Vec<(String, Event)>,
    /// The earliest times that it wrote.
    pub(super) noted: Due,
    /// What is to be counted and logged once all of it is durable.
    pub(super) notes: Vec<Note>,
}

/// A job as it was read, and what its row says beside it.
pub(super) struct Kept {
    /// To be changed and saved.
    pub(super) job: Job,
    /// Its state when it was read; none if it had been set aside.
    state: Option<State>,
    blocked: bool,
}

/// A question to the database. It is boxed, so that its lifetimes need not be known by whoever waits for it.
type Asking<'d, T> = BoxFuture<'d, Outcome<T>>;

/// How to find out later whether a transaction was committed.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    /// Its number.
    pub(super) transaction: String,
    /// The last event that it told.
    pub(super) event: String,
}

/// What came of a commit.
pub(super) enum Committed {
    /// It is durable.
    Done(Seat),
    /// Nothing of it was done.
    Not(Trouble),
    /// It was sent, and nobody answered. Without a mark nothing can tell.
    Unknown(Option<Mark>),
}

impl Desk {
    pub(super) fn new(seat: Seat, keeps_statements: bool, source: Arc<str>) -> Desk {
        Desk {
            seat,
            keeps_statements,
            source,
            epoch: None,
            events: Vec::new(),
            noted: Due::default(),
            notes: Vec::new(),
        }
    }

    pub(super) async fn begin(&mut self) -> Outcome<()> {
        self.run(BEGIN).await
    }

    /// Ends it and makes it durable.
    pub(super) async fn commit(mut self) -> Committed {
        let mark = match self.write_events().await {
            Ok(mark) => mark,
            Err(trouble) => return Committed::Not(trouble),
        };
        match self.run("COMMIT").await {
            Ok(()) => Committed::Done(self.seat),
            Err(_) => Committed::Unknown(mark),
        }
    }

    /// Ends it and undoes it. The connection is there again unless it is lost.
    pub(super) async fn undo(mut self) -> Option<Seat> {
        self.run("ROLLBACK").await.is_ok().then_some(self.seat)
    }

    /// Whether its connection had been used before.
    pub(super) fn is_used(&self) -> bool {
        self.seat.is_used
    }

    pub(super) fn has_told(&self) -> bool {
        !self.events.is_empty()
    }

    /// Statements without values, as one message.
    fn run<'d>(&'d mut self, sql: &'static str) -> Asking<'d, ()> {
        Box::pin(async move { answered((&mut self.seat.connection).execute(sql)).await.map(drop) })
    }

    pub(super) fn execute<'d>(&'d mut self, query: Query<'d, Postgres, PgArguments>) -> Asking<'d, u64> {
        let query = query.persistent(self.keeps_statements);
        Box::pin(async move { Ok(answered(query.execute(&mut self.seat.connection)).await?.rows_affected()) })
    }

    pub(super) fn rows<'d>(&'d mut self, query: Query<'d, Postgres, PgArguments>) -> Asking<'d, Vec<PgRow>> {
        let query = query.persistent(self.keeps_statements);
        Box::pin(async move { answered(query.fetch_all(&mut self.seat.connection)).await })
    }

    pub(super) async fn row<'d>(
        &'d mut self,
        query: Query<'d, Postgres, PgArguments>,
    ) -> Outcome<Option<PgRow>> {
        Ok(self.rows(query).await?.into_iter().next())
    }

    /// The same, without what cannot be read.
    pub(super) async fn readable<'d, T: DeserializeOwned>(
        &'d mut self,
        query: Query<'d, Postgres, PgArguments>,
    ) -> Outcome<Vec<T>> {
        let read = |row: &PgRow| body(row).inspect_err(left_out).ok();
        Ok(self.rows(query).await?.iter().filter_map(read).collect())
    }

    /// What the first column has, which is JSON.
    pub(super) async fn bodies<'d, T: DeserializeOwned>(
        &'d mut self,
        query: Query<'d, Postgres, PgArguments>,
    ) -> Outcome<Vec<T>> {
        self.rows(query).await?.iter().map(body).collect()
    }
}

// Jobs.
impl Desk {
    /// Takes jobs in.
    pub(super) async fn insert(&mut self, jobs: &[Job]) -> Outcome<()> {
        let serial = jobs.iter().filter_map(|job| job.cron.as_ref().filter(|cron| cron.serial));
        self.hold_crons(&serial.map(|cron| cron.name.clone()).collect()).await?;
        let mut rows = Rows::default();
        let mut ahead = BTreeSet::new();
        for job in jobs {
            let mut blocked = self.must_wait(job, None).await?;
            if let Some(cron) = job.cron.as_ref().filter(|cron| cron.serial && is_in_play(job.state)) {
                // Those that come together wait for each other too.
                blocked |= !ahead.insert(cron.name.clone());
            }
            rows.add(job, blocked, true);
        }
        self.note_jobs(&rows);
        let sql = "WITH given AS (SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::int[], \
                   $6::bigint[], $7::text[], $8::text[], $9::bool[], $10::bool[], $11::bigint[], $12::bigint[], \
                   $13::text[], $14::text[], $15::bigint[]) WITH ORDINALITY AS given(id, state, queue, type, priority, \
                   due_at, worker, cron, serial, blocked, dead_at, ended_at, error_type, body, created_at, n) ORDER BY n), \
                   opened AS (INSERT INTO queues (name, paused, created_at) \
                   SELECT DISTINCT ON (queue) queue, false, created_at FROM given \
                   WHERE NOT EXISTS (SELECT 1 FROM queues WHERE name = queue) ORDER BY queue ON CONFLICT DO NOTHING) \
                   INSERT INTO jobs (id, state, queue, type, priority, seq, due_at, worker, cron, serial, blocked, \
                   dead_at, ended_at, error_type, body) SELECT id, state, queue, type, priority, nextval('job_order'), \
                   due_at, worker, cron, serial, blocked, dead_at, ended_at, error_type, body FROM given \
                   ON CONFLICT (id) DO NOTHING RETURNING id";
        let created: Vec<i64> = jobs.iter().map(|job| job.created_at.as_millisecond()).collect();
        let query = rows.bound(sqlx::query(sql)).bind(&created);
        let taken: Vec<String> = self.rows(query).await?.iter().map(text).collect::<Outcome<_>>()?;
        if taken.len() < jobs.len() {
            let mut free: BTreeSet<&str> = taken.iter().map(String::as_str).collect();
            let refused = jobs.iter().find(|job| !free.remove(job.id.as_str()));
            let id = refused.map_or("", |job| &job.id);
            let refusal = Refusal::new(Code::Duplicate, format!("a job with the id {id} exists"));
            return Err(refusal.detail("existing_job_id", id.into()).into());
        }
        Ok(())
    }

    /// Jobs as they are, to be changed, without those that cannot be read.
    pub(super) async fn kept(&mut self, ids: &[String]) -> Outcome<Vec<Kept>> {
        let rows = self.held(ids).await?;
        self.take_in(&rows).await
    }

    /// Reads jobs that were found, by their bodies, whether they are blocked, and their ids. Those that cannot be read are
    /// set aside: one job's trouble is not another's.
    pub(super) async fn take_in(&mut self, rows: &[PgRow]) -> Outcome<Vec<Kept>> {
        let (mut read, mut unreadable) = (Vec::with_capacity(rows.len()), BTreeMap::new());
        for row in rows {
            match kept(row) {
                Ok(kept) => read.push(kept),
                Err(trouble) => drop(unreadable.insert(row.try_get("id")?, trouble)),
            }
        }
        self.set_aside(unreadable).await?;
        Ok(read)
    }

    /// Takes jobs out of everybody's way, but for those that are or have ended. What they were stays in their bodies.
    async fn set_aside(&mut self, mut unreadable: BTreeMap<String, Trouble>) -> Outcome<()> {
        if unreadable.is_empty() {
            return Ok(());
        }
        let ids: Vec<&String> = unreadable.keys().collect();
        let sql = "UPDATE jobs SET state = 'unreadable', due_at = NULL, worker = NULL WHERE id = ANY($1) \
                   AND state <> 'unreadable' AND ended_at IS NULL RETURNING id, cron, queue";
        let rows = self.rows(sqlx::query(sql).bind(ids)).await?;
        let mut crons = BTreeSet::new();
        for row in &rows {
            crons.extend(row.try_get::<Option<String>, _>(1)?);
            // Whoever found nothing else may find what stood behind it.
            self.notes.push(Note::Ready(Some(row.try_get(2)?)));
            if let Some((job, trouble)) = unreadable.remove_entry(row.try_get::<&str, _>(0)?) {
                self.notes.push(Note::SetAside { job, error: trouble.refusal().message });
            }
        }
        self.hold_crons(&crons).await?;
        for cron in &crons {
            self.pass_the_turn(cron).await?;
        }
        Ok(())
    }

    /// Some of the jobs that were set aside, after an id.
    pub(super) async fn aside(&mut self, after: &str) -> Outcome<Vec<String>> {
        let sql = "SELECT id FROM jobs WHERE state = 'unreadable' AND id > $1 ORDER BY id LIMIT $2";
        let query = sqlx::query(sql).bind(after).bind(TAKE_BACK_MAX as i64);
        self.rows(query).await?.iter().map(text).collect()
    }

    /// Takes back those of them that can be read again.
    pub(super) async fn take_back(&mut self, ids: &[String], now: Timestamp) -> Outcome<()> {
        let sql = holding("AND jobs.state = 'unreadable'", "SKIP LOCKED");
        let mut mended = Vec::new();
        for row in self.rows(sqlx::query(&sql).bind(ids)).await? {
            let id: &str = row.try_get(2)?;
            // A body of another job would be written over that one.
            mended.extend(kept(&row).ok().filter(|kept| kept.job.id == id));
        }
        let mended = mended.into_iter().map(|kept| Kept { state: None, ..kept });
        // What workers have comes first: the others wait for it.
        let (active, others): (Vec<Kept>, _) = mended.partition(|kept| kept.job.state == State::Active);
        for some in [active, others] {
            self.save_all(&some).await?;
            for mut kept in some {
                self.tell(kept.job.comes_back(now));
                self.notes.push(Note::TakenBack { job: kept.job.id });
            }
        }
        Ok(())
    }

    /// The rows of jobs, locked.
    async fn held(&mut self, ids: &[String]) -> Outcome<Vec<PgRow>> {
        let ids: Vec<&String> = ids.iter().filter(|id| can_be(id)).collect();
        self.rows(sqlx::query(&holding("", "")).bind(ids)).await
    }

    /// The same, of those that are still due. What another node has in hand is left to it.
    pub(super) async fn due(&mut self, ids: &[String], now: Timestamp) -> Outcome<Vec<Kept>> {
        let sql = holding("AND jobs.due_at <= $2", "SKIP LOCKED");
        let rows = self.rows(sqlx::query(&sql).bind(ids).bind(now.as_millisecond())).await?;
        self.take_in(&rows).await
    }

    /// A job that somebody asks for by its id: one that cannot be read is told to be so.
    pub(super) async fn job(&mut self, id: &str) -> Outcome<Option<Kept>> {
        self.held(&[id.to_owned()]).await?.first().map(kept).transpose()
    }

    /// Writes a job back after something happened to it.
    pub(super) async fn save(&mut self, kept: &Kept) -> Outcome<()> {
        self.save_all(std::slice::from_ref(kept)).await
    }

    /// The same for many, in their order.
    pub(super) async fn save_all(&mut self, many: &[Kept]) -> Outcome<()> {
        if many.is_empty() {
            return Ok(());
        }
        let mut rows = Rows::default();
        let mut ahead = BTreeSet::new();
        for kept in many {
            let mut blocked = self.must_wait(&kept.job, Some(kept)).await?;
            if let Some(cron) = kept.comes_into_play() {
                blocked |= !ahead.insert(cron.to_owned());
            }
            // A job keeps its place unless it comes back to the queue.
            let anew = kept.job.state == State::Available && kept.state != Some(State::Available);
            rows.add(&kept.job, blocked, anew);
        }
        self.note_jobs(&rows);
        let sql = "UPDATE jobs SET state = given.state, queue = given.queue, type = given.type, \
                   priority = given.priority, seq = CASE WHEN given.anew THEN nextval('job_order') ELSE jobs.seq END, \
                   due_at = given.due_at, worker = given.worker, cron = given.cron, serial = given.serial, \
                   blocked = given.blocked, dead_at = given.dead_at, ended_at = given.ended_at, \
                   error_type = given.error_type, body = given.body FROM (SELECT * FROM UNNEST($1::text[], $2::text[], \
                   $3::text[], $4::text[], $5::int[], $6::bigint[], $7::text[], $8::text[], $9::bool[], $10::bool[], \
                   $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::bool[]) WITH ORDINALITY AS given(id, \
                   state, queue, type, priority, due_at, worker, cron, serial, blocked, dead_at, ended_at, error_type, \
                   body, anew, n) ORDER BY n) AS given WHERE jobs.id = given.id";
        let anew = rows.anew.clone();
        self.execute(rows.bound(sqlx::query(sql)).bind(&anew)).await?;
        for (kept, blocked) in many.iter().zip(rows.blocked) {
            if kept.held_the_turn()
                && (blocked || !is_in_play(kept.job.state))
                && let Some(cron) = &kept.job.cron
            {
                self.pass_the_turn(&cron.name).await?;
            }
        }
        Ok(())
    }

    fn note_jobs(&mut self, rows: &Rows<'_>) {
        let first = rows.due_at.iter().flatten().min().and_then(|ms| Timestamp::from_millisecond(*ms).ok());
        self.noted.jobs = earliest(self.noted.jobs, first);
        self.notes.extend(rows.ready().map(|queue| Note::Ready(Some(queue.to_owned()))));
    }

    /// Waits until nobody else changes jobs of these cron jobs.
    pub(super) async fn hold_crons(&mut self, names: &BTreeSet<String>) -> Outcome<()> {
        if names.is_empty() {
            return Ok(());
        }
        let names: Vec<&String> = names.iter().collect();
        let sql = "SELECT pg_advisory_xact_lock(key) FROM (SELECT DISTINCT hashtextextended(name, 6171) AS key \
                   FROM UNNEST($1::text[]) AS name ORDER BY key) AS keys";
        self.rows(sqlx::query(sql).bind(names)).await.map(drop)
    }

    /// Whether a job that waits for others of its cron job has to: one of them has its turn already.
    async fn must_wait(&mut self, job: &Job, before: Option<&Kept>) -> Outcome<bool> {
        let Some(cron) = job.cron.as_ref().filter(|cron| cron.serial && is_in_play(job.state)) else {
            return Ok(false);
        };
        if job.state == State::Active {
            // A worker has it, and so it has its turn, whoever else got one while it was set aside.
            return Ok(false);
        }
        if let Some(before) = before.filter(|before| before.state == Some(State::Available)) {
            return Ok(before.blocked);
        }
        // The others may have been made while another policy held.
        let sql = "SELECT 1 FROM jobs WHERE cron = $1 AND ended_at IS NULL AND NOT blocked \
                   AND state IN ('available', 'active') AND id <> $2 LIMIT 1";
        Ok(self.row(sqlx::query(sql).bind(&cron.name).bind(&job.id)).await?.is_some())
    }

    /// Lets the next job of its cron job have its turn, unless another has it: jobs that were made under another
    /// policy wait for nobody.
    async fn pass_the_turn(&mut self, cron: &str) -> Outcome<()> {
        let sql = "UPDATE jobs SET blocked = false WHERE id = (SELECT id FROM jobs WHERE cron = $1 \
                   AND ended_at IS NULL AND blocked AND state = 'available' ORDER BY priority DESC, seq LIMIT 1) \
                   AND NOT EXISTS (SELECT 1 FROM jobs WHERE cron = $1 AND ended_at IS NULL AND NOT blocked \
                   AND state IN ('available', 'active')) RETURNING queue";
        for row in self.rows(sqlx::query(sql).bind(cron)).await? {
            self.notes.push(Note::Ready(Some(text(&row)?)));
        }
        Ok(())
    }

    pub(super) async fn delete_job(&mut self, id: &str) -> Outcome<()> {
        self.execute(sqlx::query("DELETE FROM jobs WHERE id = $1").bind(id)).await.map(drop)
    }

    pub(super) async fn open_queue(&mut self, name: &str, now: Timestamp) -> Outcome<()> {
        let sql =
            "INSERT INTO queues (name, paused, created_at) VALUES ($1, false, $2) ON CONFLICT DO NOTHING";
        self.execute(sqlx::query(sql).bind(name).bind(now.as_millisecond())).await.map(drop)
    }

    pub(super) async fn save_worker(&mut self, worker: &Worker, dies_at: Option<Timestamp>) -> Outcome<()> {
        self.noted.jobs = earliest(self.noted.jobs, dies_at);
        let sql = "INSERT INTO workers (id, dies_at, seen_at, body) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (id) DO UPDATE SET dies_at = $2, seen_at = $3, body = $4";
        let query = sqlx::query(sql).bind(&worker.worker_id).bind(dies_at.map(Timestamp::as_millisecond));
        self.execute(query.bind(worker.last_seen.as_millisecond()).bind(json(worker))).await.map(drop)
    }
}

// Cron jobs.
impl Desk {
    pub(super) async fn cron(&mut self, name: &str) -> Outcome<Option<Cron>> {
        if !can_be(name) {
            return Ok(None);
        }
        let sql = "SELECT body FROM crons WHERE name = $1 FOR UPDATE";
        Ok(self.bodies(sqlx::query(sql).bind(name)).await?.pop())
    }

    pub(super) async fn save_crons(&mut self, crons: &[&Cron]) -> Outcome<()> {
        if crons.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = crons.iter().map(|cron| cron.definition.name.as_str()).collect();
        let enabled: Vec<bool> = crons.iter().map(|cron| cron.enabled).collect();
        let looks: Vec<Option<i64>> =
            crons.iter().map(|cron| cron.next_look.map(Timestamp::as_second)).collect();
        let bodies: Vec<String> = crons.iter().map(json).collect();
        let sql = "INSERT INTO crons (name, enabled, next_look, body) SELECT * FROM UNNEST($1::text[], $2::bool[], \
                   $3::bigint[], $4::text[]) ON CONFLICT (name) DO UPDATE SET enabled = excluded.enabled, \
                   next_look = excluded.next_look, body = excluded.body";
        let query = sqlx::query(sql).bind(&names).bind(&enabled).bind(&looks).bind(&bodies);
        self.execute(query).await.map(drop)
    }

    /// The jobs of cron jobs that count for overlap, each with the name of its cron job; of each cron job a bounded number.
    pub(super) async fn active(
        &mut self,
        crons: &[&str],
        counting: Counting,
    ) -> Outcome<Vec<(String, Active)>> {
        let sql = match counting {
            Counting::Active => {
                "SELECT open.* FROM UNNEST($1::text[]) AS wanted (name) CROSS JOIN LATERAL (SELECT body, blocked, id \
                 FROM jobs WHERE cron = wanted.name AND ended_at IS NULL AND state = 'active' LIMIT $2) AS open ORDER BY id"
            }
            Counting::Unfinished => {
                "SELECT open.* FROM UNNEST($1::text[]) AS wanted (name) CROSS JOIN LATERAL (SELECT body, blocked, id \
                 FROM jobs WHERE cron = wanted.name AND ended_at IS NULL AND state <> 'unreadable' LIMIT $2) AS open \
                 ORDER BY id"
            }
        };
        let rows = self.rows(sqlx::query(sql).bind(crons).bind(ACTIVE_MAX as i64)).await?;
        let of = |kept: Kept| {
            let cron = kept.job.cron?;
            Some((cron.name, Active { job_id: kept.job.id, scheduled: cron.scheduled }))
        };
        Ok(self.take_in(&rows).await?.into_iter().filter_map(of).collect())
    }

    /// How many jobs of a cron job wait for a worker, as far as they are counted.
    pub(super) async fn waiting(&mut self, cron: &str) -> Outcome<u64> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE cron = $1 AND ended_at IS NULL \
                   AND state = 'available' LIMIT $2) AS waiting";
        let row = self.row(sqlx::query(sql).bind(cron).bind(WAITING_MAX as i64)).await?;
        let waiting: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
        Ok(waiting.map_or(0, i64::unsigned_abs))
    }

    /// Writes occurrences into the record under the current epoch, unless they are there already. Says which single ones
    /// were not.
    pub(super) async fn record(
        &mut self,
        occurrences: &[(&str, &Occurrence)],
    ) -> Outcome<BTreeSet<(String, i64)>> {
        if occurrences.is_empty() {
            return Ok(BTreeSet::new());
        }
        let epoch = self.epoch().await?;
        let columns = Recorded::of(occurrences);
        let sql = "INSERT INTO occurrences (cron, scheduled, kind, last, actual, epoch, body) SELECT cron, scheduled, \
                   kind, last, actual, $7, body FROM UNNEST($1::text[], $2::bigint[], $3::text[], $4::bigint[], \
                   $5::bigint[], $6::text[]) AS given(cron, scheduled, kind, last, actual, body) \
                   ON CONFLICT DO NOTHING RETURNING cron, scheduled, kind";
        let Recorded { crons, scheduled, kinds, lasts, actual, bodies } = &columns;
        let query = sqlx::query(sql).bind(crons).bind(scheduled).bind(kinds).bind(lasts).bind(actual);
        let rows = self.rows(query.bind(bodies).bind(epoch)).await?;
        let one = |row: &&PgRow| row.try_get(2).is_ok_and(|kind: &str| kind == Kind::One.name());
        rows.iter().filter(one).map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// The current epoch, which stays so until the transaction ends. Whoever has nothing to record does not ask: many that
    /// ask at once, one after the other, would keep everybody from taking the lease, since each of them shares the lock
    /// with those before it, and whoever wants it alone waits for all.
    async fn epoch(&mut self) -> Outcome<i64> {
        if let Some(epoch) = self.epoch {
            return Ok(epoch);
        }
        let row = self.row(sqlx::query("SELECT epoch FROM leader WHERE id = 1 FOR KEY SHARE")).await?;
        let missing = || Trouble::from(Refusal::backend(&"the row of the leader is missing"));
        let epoch = row.ok_or_else(missing)?.try_get(0)?;
        self.epoch = Some(epoch);
        Ok(epoch)
    }

    /// Whether an epoch is the current one and this node's. If so, it stays so until the transaction ends.
    pub(super) async fn is_current(&mut self, epoch: i64, node: &str) -> Outcome<bool> {
        let sql = "SELECT 1 FROM leader WHERE id = 1 AND epoch = $1 AND holder = $2 FOR KEY SHARE";
        let is_current = self.row(sqlx::query(sql).bind(epoch).bind(node)).await?.is_some();
        self.epoch = is_current.then_some(epoch);
        Ok(is_current)
    }
}

// Events.
impl Desk {
    /// Tells of something, once the transaction ends.
    pub(super) fn tell(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.notes.push(Note::Told(event.kind));
            self.events.push((format!("evt_{}", new_id(event.time)), event));
        }
    }

    async fn write_events(&mut self) -> Outcome<Option<Mark>> {
        let events = std::mem::take(&mut self.events);
        let Some((last, _)) = events.last() else { return Ok(None) };
        if events.len() > EVENTS_MAX {
            return Err(Refusal::backend(&"too many events for one transaction").into());
        }
        let columns = Told::of(&events, &self.source);
        let sql = "INSERT INTO events (seq, id, type, subject, queue, job_type, at, body) \
                   SELECT (pg_current_xact_id()::text::bigint << 20) + (SELECT base FROM event_base WHERE id = 1) + n, \
                   id, type, subject, queue, job_type, at, body FROM UNNEST($1::text[], $2::text[], $3::text[], \
                   $4::text[], $5::text[], $6::bigint[], $7::text[]) WITH ORDINALITY \
                   AS given(id, type, subject, queue, job_type, at, body, n) RETURNING pg_current_xact_id()::text";
        let Told { ids, kinds, subjects, queues, types, at, bodies } = &columns;
        let query = sqlx::query(sql).bind(ids).bind(kinds).bind(subjects).bind(queues).bind(types);
        let rows = self.rows(query.bind(at).bind(bodies)).await?;
        let transaction = rows.first().map(text).transpose()?;
        Ok(transaction.map(|transaction| Mark { transaction, event: last.clone() }))
    }
}

/// Occurrences as columns.
struct Recorded<'o> {
    crons: Vec<&'o str>,
    scheduled: Vec<i64>,
    kinds: Vec<&'static str>,
    lasts: Vec<i64>,
    actual: Vec<i64>,
    bodies: Vec<String>,
}

impl<'o> Recorded<'o> {
    fn of(occurrences: &[(&'o str, &Occurrence)]) -> Recorded<'o> {
        let each = || occurrences.iter();
        Recorded {
            crons: each().map(|(cron, _)| *cron).collect(),
            scheduled: each().map(|(_, it)| it.scheduled.as_second()).collect(),
            kinds: each().map(|(_, it)| it.kind.name()).collect(),
            lasts: each().map(|(_, it)| it.last.unwrap_or(it.scheduled).as_second()).collect(),
            actual: each().map(|(_, it)| it.actual.as_millisecond()).collect(),
            bodies: each().map(|(_, it)| json(it)).collect(),
        }
    }
}

/// Events as columns.
struct Told<'e> {
    ids: Vec<&'e str>,
    kinds: Vec<&'static str>,
    subjects: Vec<&'e str>,
    queues: Vec<Option<&'e str>>,
    types: Vec<Option<&'e str>>,
    at: Vec<i64>,
    bodies: Vec<String>,
}

impl<'e> Told<'e> {
    fn of(events: &'e [(String, Event)], source: &str) -> Told<'e> {
        let each = || events.iter();
        Told {
            ids: each().map(|(id, _)| id.as_str()).collect(),
            kinds: each().map(|(_, event)| event.kind).collect(),
            subjects: each().map(|(_, event)| event.subject.as_str()).collect(),
            queues: each().map(|(_, event)| event.queue.as_deref()).collect(),
            types: each().map(|(_, event)| event.job_type.as_deref()).collect(),
            at: each().map(|(_, event)| event.time.as_millisecond()).collect(),
            bodies: each().map(|(id, event)| json(&event.view(id, source))).collect(),
        }
    }
}

impl Kept {
    /// Whether others waited for it when it was read.
    fn held_the_turn(&self) -> bool {
        self.job.cron.is_some() && self.state.is_some_and(is_in_play) && !self.blocked
    }

    /// The cron job among whose jobs it takes its place again.
    fn comes_into_play(&self) -> Option<&str> {
        let comes = self.job.state == State::Available && !self.state.is_some_and(is_in_play);
        self.job.cron.as_ref().filter(|cron| comes && cron.serial).map(|cron| cron.name.as_str())
    }
}

/// Jobs as columns.
#[derive(Default)]
struct Rows<'j> {
    ids: Vec<&'j str>,
    states: Vec<&'static str>,
    queues: Vec<&'j str>,
    kinds: Vec<&'j str>,
    priorities: Vec<i32>,
    due_at: Vec<Option<i64>>,
    workers: Vec<Option<&'j str>>,
    crons: Vec<Option<&'j str>>,
    serial: Vec<bool>,
    blocked: Vec<bool>,
    dead_at: Vec<Option<i64>>,
    ended_at: Vec<Option<i64>>,
    error_types: Vec<Option<&'j str>>,
    bodies: Vec<String>,
    anew: Vec<bool>,
}

impl<'j> Rows<'j> {
    fn add(&mut self, job: &'j Job, blocked: bool, anew: bool) {
        let ms = |at: Option<Timestamp>| at.map(Timestamp::as_millisecond);
        let ended = job
            .state
            .is_terminal()
            .then(|| job.completed_at.or(job.cancelled_at).or(job.discarded_at).unwrap_or(job.created_at));
        self.ids.push(&job.id);
        self.states.push(job.state.name());
        self.queues.push(&job.queue);
        self.kinds.push(&job.kind);
        self.priorities.push(job.priority);
        self.due_at.push(ms(job.due_at()));
        self.workers.push(job.worker_id.as_deref());
        self.crons.push(job.cron.as_ref().map(|cron| cron.name.as_str()));
        self.serial.push(job.cron.as_ref().is_some_and(|cron| cron.serial));
        self.blocked.push(blocked);
        self.dead_at.push(ms(job.discarded_at.filter(|_| job.dead)));
        self.ended_at.push(ms(ended));
        self.error_types.push(job.error.as_ref().map(|error| error.kind.as_str()));
        self.bodies.push(json(job));
        self.anew.push(anew);
    }

    /// The queues of those that can be fetched from now on.
    fn ready(&self) -> impl Iterator<Item = &str> {
        let each = self.queues.iter().zip(&self.states).zip(self.blocked.iter().zip(&self.anew));
        let ready = each.filter(|((_, state), (blocked, anew))| {
            **anew && !**blocked && **state == State::Available.name()
        });
        ready.map(|((queue, _), _)| *queue)
    }

    /// The first fourteen values of a statement.
    fn bound<'q>(&'q self, query: Query<'q, Postgres, PgArguments>) -> Query<'q, Postgres, PgArguments> {
        query
            .bind(&self.ids)
            .bind(&self.states)
            .bind(&self.queues)
            .bind(&self.kinds)
            .bind(&self.priorities)
            .bind(&self.due_at)
            .bind(&self.workers)
            .bind(&self.crons)
            .bind(&self.serial)
            .bind(&self.blocked)
            .bind(&self.dead_at)
            .bind(&self.ended_at)
            .bind(&self.error_types)
            .bind(&self.bodies)
    }
}

/// What the database answers, if it does.
async fn answered<T>(asking: impl Future<Output = Result<T, sqlx::Error>>) -> Outcome<T> {
    match tokio::time::timeout(ANSWER_MAX, asking).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Trouble::Silence),
    }
}

/// The statement that locks jobs of which more is true, and reads them. Whoever changes a job of a cron job holds that first.
fn holding(such: &str, locked: &str) -> String {
    format!(
        "WITH held AS MATERIALIZED (SELECT pg_advisory_xact_lock(key) FROM (SELECT DISTINCT \
         hashtextextended(cron, 6171) AS key FROM jobs WHERE id = ANY($1) AND cron IS NOT NULL ORDER BY key) \
         AS keys) SELECT jobs.body, jobs.blocked, jobs.id FROM jobs CROSS JOIN (SELECT count(*) FROM held) \
         AS held WHERE jobs.id = ANY($1) {such} ORDER BY jobs.id FOR UPDATE OF jobs {locked}"
    )
}

fn is_in_play(state: State) -> bool {
    matches!(state, State::Active | State::Available)
}

/// The earlier of two times, where none is never.
pub(super) fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    [one, other].into_iter().flatten().min()
}

fn kept(row: &PgRow) -> Outcome<Kept> {
    let mut job: Job = body(row)?;
    job.told = Some(job.state);
    Ok(Kept { state: Some(job.state), blocked: row.try_get(1)?, job })
}

/// Whether something can have that name: no text in PostgreSQL has the character U+0000.
pub(super) fn can_be(name: &str) -> bool {
    !name.contains('\0')
}

/// The first column, which is JSON.
pub(super) fn body<T: DeserializeOwned>(row: &PgRow) -> Outcome<T> {
    let text: &str = row.try_get(0)?;
    serde_json::from_str(text)
        .map_err(|error| Refusal::backend(&format!("a row of the database cannot be read: {error}")).into())
}

/// A row that cannot be read is left out of a list, which says so in the log only.
pub(super) fn left_out(trouble: &Trouble) {
    tracing::warn!(error = ?trouble, "a row was left out of a list");
}

pub(super) fn text(row: &PgRow) -> Outcome<String> {
    Ok(row.try_get(0)?)
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and maps of them are JSON")
}
