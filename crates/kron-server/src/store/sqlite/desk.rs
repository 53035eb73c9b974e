//! Rows of the tables, within one transaction.

use jiff::Timestamp;
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cron::{Active, Counting, Cron, Occurrence};
use crate::envelope::new_id;
use crate::event::Event;
use crate::job::{Job, State};
use crate::note::Note;
use crate::refusal::{Code, Refusal};
use crate::store::Worker;
use crate::store::verbs::{ACTIVE_MAX, TAKE_BACK_MAX, WAITING_MAX};

/// What is remembered between transactions. After one that failed it is as it was before.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// The last place that was given in a queue.
    pub(super) seq: i64,
    /// The number of the last event.
    pub(super) last_event: u64,
    /// Who is said to have sent events.
    pub(super) source: std::sync::Arc<str>,
}

/// A transaction, and what belongs to it.
pub(super) struct Desk<'t> {
    transaction: &'t Transaction<'t>,
    memory: &'t mut Memory,
    /// What is to be counted and logged once all of it is durable.
    notes: &'t mut Vec<Note>,
    /// A queue that is there, so that many jobs of one ask for it once.
    opened: Option<String>,
}

/// A job as it was read, and what its row says beside it.
pub(super) struct Kept {
    /// To be changed and saved.
    pub(super) job: Job,
    /// Its state when it was read; none if it had been set aside.
    state: Option<State>,
    blocked: bool,
}

/// Jobs that were looked for.
pub(super) struct Found {
    /// Those that can be read.
    pub(super) jobs: Vec<Kept>,
    /// How many there were.
    pub(super) looked_at: usize,
    /// How many bytes their bodies came to.
    pub(super) bytes: usize,
}

type Answer<T> = Result<T, Refusal>;

impl<'t> Desk<'t> {
    pub(super) fn new(
        transaction: &'t Transaction<'t>,
        memory: &'t mut Memory,
        notes: &'t mut Vec<Note>,
    ) -> Desk<'t> {
        Desk { transaction, memory, notes, opened: None }
    }

    pub(super) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Jobs of a queue can be fetched once the transaction is durable.
    pub(super) fn ready(&mut self, queue: &str) {
        self.notes.push(Note::Ready(Some(queue.to_owned())));
    }

    /// Does something as a whole or not at all, whatever becomes of the rest of the transaction.
    pub(super) fn in_savepoint<T>(&mut self, work: impl FnOnce(&mut Desk<'_>) -> Answer<T>) -> Answer<T> {
        self.check_open()?;
        let (before, noted) = (self.memory.clone(), self.notes.len());
        self.command("SAVEPOINT work")?;
        match work(self) {
            Ok(done) => self.command("RELEASE work").map(|()| done),
            Err(refusal) => {
                *self.memory = before;
                self.notes.truncate(noted);
                self.opened = None;
                // A failure that has undone the whole transaction has undone this too.
                self.check_open().map_err(|_| refusal.clone())?;
                self.transaction.execute_batch("ROLLBACK TO work; RELEASE work").map_err(failed)?;
                Err(refusal)
            }
        }
    }

    /// A statement without values, which is the same every time.
    fn command(&self, sql: &str) -> Answer<()> {
        self.transaction.prepare_cached(sql).and_then(|mut it| it.raw_execute()).map(drop).map_err(failed)
    }

    pub(super) fn connection(&self) -> &Connection {
        self.transaction
    }

    /// A full disk undoes a whole transaction. What came after would be committed statement by statement, and
    /// told to have failed.
    fn check_open(&self) -> Answer<()> {
        if self.transaction.is_autocommit() {
            return Err(Refusal::backend(&"a failure has undone the transaction"));
        }
        Ok(())
    }

    pub(super) fn execute(&self, sql: &str, values: &[&dyn ToSql]) -> Answer<usize> {
        self.check_open()?;
        self.transaction.prepare_cached(sql).and_then(|mut it| it.execute(values)).map_err(failed)
    }

    /// Takes a job in.
    pub(super) fn insert(&mut self, job: &Job) -> Answer<()> {
        self.open_queue(&job.queue, job.created_at)?;
        let blocked = self.must_wait(job, None)?;
        let sql = "INSERT INTO jobs (id, state, queue, type, priority, seq, due_at, worker, cron, serial, blocked, \
                   dead_at, ended_at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let seq = self.next_seq();
        if job.state == State::Available && !blocked {
            self.ready(&job.queue);
        }
        match self.write_row(sql, job, seq, blocked) {
            Err(error) if is_duplicate(&error) => {
                let message = format!("a job with the id {} exists", job.id);
                Err(Refusal::new(Code::Duplicate, message).detail("existing_job_id", job.id.clone().into()))
            }
            written => written.map_err(failed),
        }
    }

    /// Writes a job back after something happened to it.
    pub(super) fn save(&mut self, kept: &Kept) -> Answer<()> {
        self.check_open()?;
        let job = &kept.job;
        let blocked = self.must_wait(job, Some(kept))?;
        let became_available = job.state == State::Available && kept.state != Some(State::Available);
        // A job keeps its place unless it comes back to the queue.
        let seq = if became_available { self.next_seq() } else { -1 };
        if became_available && !blocked {
            self.ready(&job.queue);
        }
        let sql = "UPDATE jobs SET state = ?2, queue = ?3, type = ?4, priority = ?5, \
                   seq = CASE WHEN ?6 < 0 THEN seq ELSE ?6 END, due_at = ?7, worker = ?8, cron = ?9, serial = ?10, \
                   blocked = ?11, dead_at = ?12, ended_at = ?13, body = ?14 WHERE id = ?1";
        self.write_row(sql, job, seq, blocked).map_err(failed)?;
        if kept.held_the_turn()
            && (blocked || !is_in_play(job.state))
            && let Some(cron) = &job.cron
        {
            self.pass_the_turn(&cron.name)?;
        }
        Ok(())
    }

    fn write_row(&self, sql: &str, job: &Job, seq: i64, blocked: bool) -> rusqlite::Result<()> {
        let ms = |at: Option<Timestamp>| at.map(Timestamp::as_millisecond);
        let ended = job
            .state
            .is_terminal()
            .then(|| job.completed_at.or(job.cancelled_at).or(job.discarded_at).unwrap_or(job.created_at));
        let body = json(job);
        let values = params![
            job.id,
            job.state.name(),
            job.queue,
            job.kind,
            job.priority,
            seq,
            ms(job.due_at()),
            job.worker_id,
            job.cron.as_ref().map(|cron| cron.name.as_str()),
            job.cron.as_ref().is_some_and(|cron| cron.serial),
            blocked,
            ms(job.discarded_at.filter(|_| job.dead)),
            ms(ended),
            body,
        ];
        self.transaction.prepare_cached(sql)?.execute(values).map(drop)
    }

    /// Whether a job that waits for others of its cron job has to: one of them has its turn already.
    fn must_wait(&self, job: &Job, before: Option<&Kept>) -> Answer<bool> {
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
        let sql = "SELECT EXISTS (SELECT 1 FROM jobs WHERE cron = ?1 AND ended_at IS NULL AND blocked = 0 \
                   AND state IN ('available', 'active') AND id <> ?2)";
        self.one(sql, &[&cron.name, &job.id], |row| row.get(0)).map(|found| found.unwrap_or(false))
    }

    /// Lets the next job of its cron job have its turn, unless another has it: jobs that were made under another
    /// policy wait for nobody.
    fn pass_the_turn(&mut self, cron: &str) -> Answer<()> {
        let sql = "UPDATE jobs SET blocked = 0 WHERE id = (SELECT id FROM jobs WHERE cron = ?1 AND ended_at IS NULL \
                   AND blocked = 1 AND state = 'available' ORDER BY priority DESC, seq LIMIT 1) \
                   AND NOT EXISTS (SELECT 1 FROM jobs WHERE cron = ?1 AND ended_at IS NULL AND blocked = 0 \
                   AND state IN ('available', 'active')) RETURNING queue";
        self.check_open()?;
        for queue in self.many(sql, &[&cron], |row| row.get::<_, String>(0))? {
            self.ready(&queue);
        }
        Ok(())
    }

    pub(super) fn job(&self, id: &str) -> Answer<Option<Kept>> {
        self.one("SELECT body, blocked FROM jobs WHERE id = ?1", &[&id], kept)
    }

    /// Jobs by their bodies, whether they are blocked, and their ids. Those that cannot be read are set aside: one job's
    /// trouble is not another's.
    pub(super) fn jobs(&mut self, sql: &str, values: &[&dyn ToSql]) -> Answer<Found> {
        self.jobs_within(usize::MAX, sql, values)
    }

    /// The same until their bodies come to so many bytes.
    pub(super) fn jobs_within(
        &mut self,
        bytes_max: usize,
        sql: &str,
        values: &[&dyn ToSql],
    ) -> Answer<Found> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.transaction.prepare_cached(sql)?;
            let mut rows = statement.query(values)?;
            while bytes < bytes_max
                && let Some(row) = rows.next()?
            {
                bytes += row.get_ref(0)?.as_bytes().map_or(0, <[u8]>::len);
                found.push((row.get::<_, String>(2)?, kept(row)));
            }
            Ok(())
        };
        read().map_err(failed)?;
        let looked_at = found.len();
        let mut jobs = Vec::with_capacity(looked_at);
        for (id, job) in found {
            match job {
                Ok(kept) => jobs.push(kept),
                Err(error) => self.set_aside(&id, &error)?,
            }
        }
        Ok(Found { jobs, looked_at, bytes })
    }

    /// Takes a job out of everybody's way, unless it is or has ended. What it was stays in its body.
    fn set_aside(&mut self, id: &str, error: &rusqlite::Error) -> Answer<()> {
        let sql = "UPDATE jobs SET state = 'unreadable', due_at = NULL, worker = NULL WHERE id = ?1 \
                   AND state <> 'unreadable' AND ended_at IS NULL RETURNING cron, queue";
        self.check_open()?;
        let read = |row: &Row<'_>| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, String>(1)?));
        for (cron, queue) in self.many(sql, &[&id], read)? {
            if let Some(cron) = cron {
                self.pass_the_turn(&cron)?;
            }
            // Whoever found nothing else may find what stood behind it.
            self.ready(&queue);
            self.notes.push(Note::SetAside { job: id.to_owned(), error: error.to_string() });
        }
        Ok(())
    }

    /// Takes back some of the jobs that were set aside, after an id: those that can be read again. Says where to go on.
    pub(super) fn take_back(&mut self, after: &str, now: Timestamp) -> Answer<Option<String>> {
        let sql =
            "SELECT body, blocked, id FROM jobs WHERE state = 'unreadable' AND id > ?1 ORDER BY id LIMIT ?2";
        let aside = self
            .many(sql, &[&after, &(TAKE_BACK_MAX as u64)], |row| Ok((row.get::<_, String>(2)?, kept(row))))?;
        let next = aside.last().filter(|_| aside.len() == TAKE_BACK_MAX).map(|(id, _)| id.clone());
        // A body of another job would be written over that one.
        let mends = aside.into_iter().filter_map(|(id, kept)| kept.ok().filter(|kept| kept.job.id == id));
        let mut mended: Vec<Kept> = mends.map(|kept| Kept { state: None, ..kept }).collect();
        // What workers have comes first: the others wait for it.
        mended.sort_by_key(|kept| kept.job.state != State::Active);
        for mut kept in mended {
            self.save(&kept)?;
            self.tell(kept.job.comes_back(now))?;
            self.notes.push(Note::TakenBack { job: kept.job.id });
        }
        Ok(next)
    }

    pub(super) fn delete_job(&self, id: &str) -> Answer<()> {
        self.execute("DELETE FROM jobs WHERE id = ?1", &[&id]).map(drop)
    }

    /// The jobs of a cron job that count for overlap, as far as they are read.
    pub(super) fn active(&mut self, cron: &str, counting: Counting) -> Answer<Vec<Active>> {
        let sql = match counting {
            Counting::Active => {
                "SELECT body, blocked, id FROM jobs WHERE cron = ?1 AND ended_at IS NULL AND state = 'active' LIMIT ?2"
            }
            Counting::Unfinished => {
                "SELECT body, blocked, id FROM jobs WHERE cron = ?1 AND ended_at IS NULL \
                 AND state <> 'unreadable' LIMIT ?2"
            }
        };
        let of = |kept: Kept| Active {
            job_id: kept.job.id,
            scheduled: kept.job.cron.and_then(|cron| cron.scheduled),
        };
        Ok(self.jobs(sql, &[&cron, &(ACTIVE_MAX as u64)])?.jobs.into_iter().map(of).collect())
    }

    /// How many jobs of a cron job wait for a worker, as far as they are counted.
    pub(super) fn waiting(&self, cron: &str) -> Answer<u64> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE cron = ?1 AND ended_at IS NULL \
                   AND state = 'available' LIMIT ?2)";
        self.one(sql, &[&cron, &(WAITING_MAX as u64)], |row| row.get(0)).map(|count| count.unwrap_or(0))
    }

    pub(super) fn open_queue(&mut self, name: &str, now: Timestamp) -> Answer<()> {
        if self.opened.as_deref() != Some(name) {
            let sql = "INSERT OR IGNORE INTO queues (name, paused, created_at) VALUES (?1, 0, ?2)";
            self.execute(sql, &[&name, &now.as_millisecond()])?;
            self.opened = Some(name.to_owned());
        }
        Ok(())
    }

    /// Queues are no longer there.
    pub(super) fn forget_queue(&mut self) {
        self.opened = None;
    }

    pub(super) fn save_cron(&self, cron: &Cron) -> Answer<()> {
        let sql = "INSERT INTO crons (name, enabled, next_look, body) VALUES (?1, ?2, ?3, ?4) \
                   ON CONFLICT (name) DO UPDATE SET enabled = ?2, next_look = ?3, body = ?4";
        let look = cron.next_look.map(Timestamp::as_second);
        self.execute(sql, &[&cron.definition.name, &cron.enabled, &look, &json(cron)]).map(drop)
    }

    pub(super) fn cron(&self, name: &str) -> Answer<Option<Cron>> {
        self.one("SELECT body FROM crons WHERE name = ?1", &[&name], body)
    }

    /// Writes an occurrence into the record, unless it is there already.
    pub(super) fn record(&self, cron: &str, occurrence: &Occurrence) -> Answer<bool> {
        let sql = "INSERT OR IGNORE INTO occurrences (cron, scheduled, kind, last, actual, body) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let last = occurrence.last.unwrap_or(occurrence.scheduled).as_second();
        let (scheduled, actual) = (occurrence.scheduled.as_second(), occurrence.actual.as_millisecond());
        let kind = occurrence.kind.name();
        self.execute(sql, &[&cron, &scheduled, &kind, &last, &actual, &json(occurrence)])
            .map(|rows| rows == 1)
    }

    pub(super) fn tell(&mut self, events: impl IntoIterator<Item = Event>) -> Answer<()> {
        let sql = "INSERT INTO events (seq, id, type, subject, queue, job_type, at, body) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        for event in events {
            self.notes.push(Note::Told(event.kind));
            let id = format!("evt_{}", new_id(event.time));
            let body = json(&event.view(&id, &self.memory.source));
            self.memory.last_event += 1;
            let (seq, at) = (self.memory.last_event, event.time.as_millisecond());
            let (queue, job_type) = (event.queue, event.job_type);
            self.execute(sql, &[&seq, &id, &event.kind, &event.subject, &queue, &job_type, &at, &body])?;
        }
        Ok(())
    }

    pub(super) fn save_worker(&self, worker: &Worker, dies_at: Option<Timestamp>) -> Answer<()> {
        let sql = "INSERT INTO workers (id, dies_at, body) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (id) DO UPDATE SET dies_at = ?2, body = ?3";
        let dies_at = dies_at.map(Timestamp::as_millisecond);
        self.execute(sql, &[&worker.worker_id, &dies_at, &json(worker)]).map(drop)
    }

    pub(super) fn one<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Answer<Option<T>> {
        one(self.transaction, sql, values, read)
    }

    pub(super) fn many<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Answer<Vec<T>> {
        many(self.transaction, sql, values, read)
    }

    fn next_seq(&mut self) -> i64 {
        self.memory.seq += 1;
        self.memory.seq
    }
}

impl Kept {
    /// Whether others waited for it when it was read.
    fn held_the_turn(&self) -> bool {
        self.job.cron.is_some() && self.state.is_some_and(is_in_play) && !self.blocked
    }
}

fn is_in_play(state: State) -> bool {
    matches!(state, State::Active | State::Available)
}

pub(super) fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let mut job: Job = body(row)?;
    job.told = Some(job.state);
    Ok(Kept { state: Some(job.state), blocked: row.get(1)?, job })
}

/// A row that cannot be read is left out of a list, which says so in the log only.
pub(super) fn left_out(error: &rusqlite::Error) {
    tracing::warn!(%error, "a row was left out of a list");
}

/// The first column, which is JSON.
pub(super) fn body<T: DeserializeOwned>(row: &Row<'_>) -> rusqlite::Result<T> {
    let text = row.get_ref(0)?.as_str()?;
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}

pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Answer<Option<T>> {
    let found = connection.prepare_cached(sql).and_then(|mut it| it.query_row(values, read).optional());
    found.map_err(failed)
}

pub(super) fn many<T>(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Answer<Vec<T>> {
    let found = connection.prepare_cached(sql).and_then(|mut it| it.query_map(values, read)?.collect());
    found.map_err(failed)
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and maps of them are JSON")
}

fn is_duplicate(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}

#[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
pub(super) fn failed(error: rusqlite::Error) -> Refusal {
    Refusal::backend(&error)
}
