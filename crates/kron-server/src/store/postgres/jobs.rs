//! Verbs about jobs, queues and workers.

use jiff::Timestamp;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::event::Event;
use crate::job::{Job, State};
use crate::note::Note;
use crate::refusal::Refusal;
use crate::store::verbs::{
    self, BYTES_MAX, DEATHS_MAX, WORKER_SILENCE, apply, directed, directive, heard, luck, no_job,
    within_bytes,
};
use crate::store::{Beat, Beaten, Change, Changed, Fetch, Queue, Rules, Worker, WorkerState};

use super::desk::{Desk, Kept, text};
use super::trouble::Outcome;

pub(super) async fn push(desk: &mut Desk, jobs: &[Job]) -> Outcome<Vec<Job>> {
    let mut jobs = jobs.to_vec();
    desk.insert(&jobs).await?;
    for job in &mut jobs {
        desk.tell(job.received());
    }
    Ok(jobs)
}

pub(super) async fn change(
    desk: &mut Desk,
    rules: &Rules,
    id: &str,
    change: Change,
    now: Timestamp,
) -> Outcome<Changed> {
    let Some(mut kept) = desk.job(id).await? else { return Err(no_job(&change, id).into()) };
    let (events, before, attempt) = apply(&mut kept.job, change, rules, now)?;
    desk.save(&kept).await?;
    desk.tell(events);
    Ok(Changed { job: kept.job, before, attempt })
}

pub(super) async fn fetch(desk: &mut Desk, rules: &Rules, fetch: &Fetch, now: Timestamp) -> Outcome<Fetched> {
    let sql = "SELECT (SELECT body FROM workers WHERE id = $1), \
               ARRAY(SELECT name FROM queues WHERE name = ANY($2) AND paused)";
    let row = desk.row(sqlx::query(sql).bind(&fetch.worker_id).bind(&fetch.queues)).await?;
    let (worker, paused): (Option<String>, Vec<String>) = match row {
        Some(row) => (row.try_get(0)?, row.try_get(1)?),
        None => (None, Vec::new()),
    };
    let worker: Option<Worker> = worker.and_then(|body| serde_json::from_str(&body).ok());
    if worker.is_some_and(|worker| !worker.takes_jobs()) {
        return Ok(Fetched::default());
    }
    let mut claimed: Vec<Kept> = Vec::new();
    let mut bytes = BYTES_MAX;
    for queue in fetch.queues.iter().filter(|queue| !paused.contains(queue)) {
        let left = fetch.count.saturating_sub(claimed.len());
        if left == 0 || bytes == 0 {
            break;
        }
        // What another hands out just now is passed over, and what has expired is left to be advanced. How long a body is
        // is known without reading it.
        let sql = "SELECT body, blocked, id FROM (SELECT *, sum(octet_length(body)) OVER (ORDER BY priority DESC, seq \
                   ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before FROM (SELECT body, blocked, id, priority, seq \
                   FROM jobs WHERE queue = $1 AND state = 'available' AND NOT blocked AND (due_at IS NULL OR due_at > $2) \
                   ORDER BY priority DESC, seq LIMIT $3 FOR UPDATE SKIP LOCKED) AS next) AS next \
                   WHERE before < $4 ORDER BY priority DESC, seq";
        let query = sqlx::query(sql).bind(queue).bind(now.as_millisecond());
        let query = query.bind(i64::try_from(left).unwrap_or(i64::MAX)).bind(bytes as i64);
        let rows = desk.rows(query).await?;
        for row in &rows {
            bytes = bytes.saturating_sub(row.try_get::<&str, _>(0)?.len());
        }
        for mut kept in desk.take_in(&rows).await? {
            let worker = fetch.worker_id.as_deref();
            let events = kept.job.claim(worker, fetch.visibility_ms, rules.defaults, now);
            desk.tell(events);
            claimed.push(kept);
        }
    }
    if claimed.is_empty() {
        let sql = "SELECT 1 FROM jobs WHERE queue = ANY($1) AND NOT queue = ANY($2) AND state = 'available' \
                   AND NOT blocked AND (due_at IS NULL OR due_at > $3) LIMIT 1";
        let query = sqlx::query(sql).bind(&fetch.queues).bind(&paused).bind(now.as_millisecond());
        return Ok(Fetched { jobs: Vec::new(), is_crowded: desk.row(query).await?.is_some() });
    }
    desk.save_all(&claimed).await?;
    Ok(Fetched { jobs: claimed.into_iter().map(|kept| kept.job).collect(), is_crowded: false })
}

/// What a fetch comes to.
#[derive(Default)]
pub(super) struct Fetched {
    /// The jobs that were handed out.
    pub(super) jobs: Vec<Job>,
    /// Whether there was none because others had them in hand just then. They may leave them.
    pub(super) is_crowded: bool,
}

/// A worker that was heard of. One whose row cannot be read is as good as unknown: its next heartbeat says all anew.
async fn worker(desk: &mut Desk, id: &str) -> Outcome<Option<Worker>> {
    let sql = "SELECT body FROM workers WHERE id = $1 FOR UPDATE";
    Ok(desk.readable(sqlx::query(sql).bind(id)).await?.pop())
}

pub(super) async fn beat(desk: &mut Desk, rules: &Rules, beat: &Beat, now: Timestamp) -> Outcome<Beaten> {
    let mut known = desk.kept(&beat.jobs).await?;
    let worker = worker(desk, &beat.worker_id).await?;
    let is_new = worker.as_ref().is_none_or(|worker| worker.dead);
    let took_none = worker.as_ref().is_some_and(|worker| !worker.takes_jobs());
    let worker = heard(worker, beat, now);
    if took_none && worker.takes_jobs() {
        desk.notes.push(Note::Ready(None));
    }
    let mut beaten = Beaten { state: worker.state, extended: 0, cancelled: Vec::new(), lost: Vec::new() };
    let mut changed = Vec::new();
    for id in &beat.jobs {
        let Some(at) = known.iter().position(|kept| kept.job.id == *id) else {
            beaten.lost.push(id.clone());
            continue;
        };
        let mut kept = known.swap_remove(at);
        let late = kept.job.advance(luck(), now);
        let told = kept.job.beat(&beat.worker_id, beat.visibility_ms, rules.defaults, now);
        beaten.state = directive(rules, &kept.job).unwrap_or(beaten.state);
        let is_changed = told.is_some() || !late.is_empty();
        match &told {
            Some(_) => beaten.extended += 1,
            None if kept.job.state == State::Cancelled => beaten.cancelled.push(id.clone()),
            None => beaten.lost.push(id.clone()),
        }
        desk.tell(late.into_iter().chain(told));
        if is_changed {
            changed.push(kept);
        }
    }
    desk.save_all(&changed).await?;
    if is_new {
        desk.tell([Event::new("worker.started", beat.worker_id.clone(), now)
            .with("worker_id", beat.worker_id.clone())]);
    }
    desk.save_worker(&worker, now.checked_add(WORKER_SILENCE).ok()).await?;
    Ok(beaten)
}

pub(super) async fn direct(desk: &mut Desk, id: &str, state: WorkerState, now: Timestamp) -> Outcome<Worker> {
    let (worker, event, dies_at) = directed(worker(desk, id).await?, id, state, now)?;
    desk.tell([event]);
    desk.notes.push(Note::Ready(None));
    desk.save_worker(&worker, dies_at).await?;
    Ok(worker)
}

/// Carries out what time alone has changed about jobs and workers: of so many jobs that are due, and of as many whose
/// workers are dead. Says how much there was.
pub(super) async fn advance(desk: &mut Desk, most: usize, now: Timestamp) -> Outcome<Advanced> {
    let sql = "SELECT id, octet_length(body) FROM jobs WHERE due_at <= $1 ORDER BY due_at LIMIT $2";
    let query = sqlx::query(sql).bind(now.as_millisecond()).bind(most as i64);
    let due = First::of(&desk.rows(query).await?, most)?;
    let mut more = due.more;
    let mut changed = Vec::new();
    if !due.ids.is_empty() {
        for mut kept in desk.due(&due.ids, now).await? {
            // Another node may have been faster.
            if kept.job.due_at().is_some_and(|due| due <= now) {
                let events = kept.job.advance(luck(), now);
                desk.tell(events);
                changed.push(kept);
            }
        }
        desk.save_all(&changed).await?;
    }
    let sql = "SELECT id FROM workers WHERE dies_at <= $1 ORDER BY id LIMIT $2";
    let query = sqlx::query(sql).bind(now.as_millisecond()).bind(DEATHS_MAX as i64);
    let silent: Vec<String> = desk.rows(query).await?.iter().map(text).collect::<Outcome<_>>()?;
    more |= silent.len() == DEATHS_MAX;
    let (mut done, mut room, mut bytes) = (changed.len(), most, 0);
    for worker in silent {
        let buried = bury(desk, &worker, room, now).await?;
        done += buried.jobs + usize::from(buried.is_through);
        (room, bytes) = (room - buried.jobs, bytes + buried.bytes);
        if room == 0 || bytes >= BYTES_MAX {
            more = true;
            break;
        }
    }
    Ok(Advanced { done, more })
}

/// The first of some jobs, as many as one transaction reads.
struct First {
    ids: Vec<String>,
    bytes: usize,
    /// Whether there are others.
    more: bool,
}

impl First {
    /// By their ids and the lengths of their bodies, of which so many were asked for.
    fn of(rows: &[PgRow], most: usize) -> Outcome<First> {
        let mut lengths = Vec::with_capacity(rows.len());
        for row in rows {
            lengths.push(row.try_get::<i32, _>(1)?.unsigned_abs() as usize);
        }
        let (count, bytes) = within_bytes(lengths);
        let ids = rows.iter().take(count).map(text).collect::<Outcome<_>>()?;
        Ok(First { ids, bytes, more: count < rows.len() || rows.len() == most })
    }
}

/// What time alone has changed.
pub(super) struct Advanced {
    /// How many jobs and workers.
    pub(super) done: usize,
    /// Whether there is more.
    pub(super) more: bool,
}

/// A worker has been silent for too long: its jobs go back, some at a time, and with the last of them it is dead. Not if
/// it was heard of in the meantime.
async fn bury(desk: &mut Desk, id: &str, most: usize, now: Timestamp) -> Outcome<Buried> {
    let sql = "SELECT id, octet_length(body) FROM jobs WHERE worker = $1 LIMIT $2";
    let its = First::of(&desk.rows(sqlx::query(sql).bind(id).bind(most as i64)).await?, most)?;
    let mut lost = desk.kept(&its.ids).await?;
    let Some(mut worker) = worker(desk, id).await? else {
        // Gone by now, or a row that cannot be read. Its jobs come back by their visibility timeouts.
        let sql = "DELETE FROM workers WHERE id = $1 AND dies_at <= $2";
        let is_through = desk.execute(sqlx::query(sql).bind(id).bind(now.as_millisecond())).await? > 0;
        return Ok(Buried { is_through, ..Buried::default() });
    };
    let is_silent = worker.last_seen.checked_add(WORKER_SILENCE).is_ok_and(|dies| dies <= now);
    if worker.dead || !is_silent {
        return Ok(Buried::default());
    }
    lost.retain(|kept| kept.job.worker_id.as_deref() == Some(id));
    for kept in &mut lost {
        let events = kept.job.lose_worker(luck(), now);
        desk.tell(events);
    }
    desk.save_all(&lost).await?;
    let is_through = !its.more;
    if is_through {
        worker.dead = true;
        worker.active_jobs.clear();
        desk.tell([Event::new("worker.stopped", id, now).with("worker_id", id).with("reason", "silence")]);
        desk.save_worker(&worker, None).await?;
    }
    Ok(Buried { jobs: its.ids.len(), bytes: its.bytes, is_through })
}

/// What a step of that came to.
#[derive(Default)]
struct Buried {
    /// How many jobs were looked at, and how many bytes they came to.
    jobs: usize,
    bytes: usize,
    /// Whether the worker has none any more.
    is_through: bool,
}

pub(super) async fn delete_dead(desk: &mut Desk, id: &str, now: Timestamp) -> Outcome<()> {
    match desk.job(id).await? {
        Some(kept) if kept.job.dead => {
            desk.delete_job(id).await?;
            desk.tell([verbs::deleted(kept.job, now)]);
            Ok(())
        }
        _ => Err(Refusal::not_found("dead letter", id).into()),
    }
}

pub(super) async fn pause(desk: &mut Desk, name: &str, paused: bool, now: Timestamp) -> Outcome<Queue> {
    desk.open_queue(name, now).await?;
    let sql = "UPDATE queues SET paused = $2 WHERE name = $1 AND paused <> $2";
    if desk.execute(sqlx::query(sql).bind(name).bind(paused)).await? > 0 {
        desk.tell([verbs::paused(name, paused, now)]);
        if !paused {
            desk.notes.push(Note::Ready(Some(name.to_owned())));
        }
    }
    let row = desk.row(sqlx::query("SELECT created_at FROM queues WHERE name = $1").bind(name)).await?;
    let created: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
    let created_at = created.and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(now);
    Ok(Queue { name: name.to_owned(), paused, created_at })
}
