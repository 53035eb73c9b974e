//! Verbs about jobs, queues and workers.

use jiff::{SignedDuration, Timestamp};

use crate::event::Event;
use crate::job::{Job, State};
use crate::note::Note;
use crate::refusal::Refusal;
use crate::store::verbs::{
    self, ADVANCE_MAX, BYTES_MAX, DEATHS_MAX, PRUNE_MAX, WORKER_SILENCE, apply, directed, directive, heard,
    luck, no_job,
};
use crate::store::{
    Answer, Beat, Beaten, Change, Changed, Fetch, Queue, Retention, Rules, Worker, WorkerState,
};

use super::desk::{Desk, body, left_out};
use super::webhooks;

pub(super) fn change(
    desk: &mut Desk<'_>,
    rules: &Rules,
    id: &str,
    change: Change,
    now: Timestamp,
) -> Answer<Changed> {
    let Some(mut kept) = desk.job(id)? else { return Err(no_job(&change, id)) };
    let (events, before, attempt) = apply(&mut kept.job, change, rules, now)?;
    desk.save(&kept)?;
    desk.tell(events)?;
    Ok(Changed { job: kept.job, before, attempt })
}

pub(super) fn fetch(desk: &mut Desk<'_>, rules: &Rules, fetch: &Fetch, now: Timestamp) -> Answer<Vec<Job>> {
    if let Some(id) = &fetch.worker_id
        && worker(desk, id)?.is_some_and(|worker| !worker.takes_jobs())
    {
        return Ok(Vec::new());
    }
    let (mut claimed, mut bytes) = (Vec::new(), BYTES_MAX);
    for queue in &fetch.queues {
        let paused = desk.one("SELECT paused FROM queues WHERE name = ?1", &[queue], |row| row.get(0))?;
        if paused == Some(true) {
            continue;
        }
        let sql = "SELECT body, blocked, id FROM jobs WHERE queue = ?1 AND state = 'available' AND blocked = 0 \
                   ORDER BY priority DESC, seq LIMIT ?2";
        for _ in 0..LOOKS_MAX {
            let left = fetch.count.saturating_sub(claimed.len());
            if left == 0 || bytes == 0 {
                return Ok(claimed);
            }
            let found = desk.jobs_within(bytes, sql, &[queue, &(left as u64)])?;
            bytes = bytes.saturating_sub(found.bytes);
            let stood_in_the_way = found.looked_at - found.jobs.len();
            for mut kept in found.jobs {
                // It may have expired a moment ago.
                let mut events = kept.job.advance(luck(), now);
                if kept.job.state == State::Available {
                    let worker = fetch.worker_id.as_deref();
                    events.extend(kept.job.claim(worker, fetch.visibility_ms, rules.defaults, now));
                }
                desk.save(&kept)?;
                desk.tell(events)?;
                if kept.job.state == State::Active {
                    claimed.push(kept.job);
                }
            }
            if stood_in_the_way == 0 {
                break;
            }
        }
    }
    Ok(claimed)
}

/// How often a fetch looks at a queue for what stands behind jobs that are set aside. The next fetch goes on.
const LOOKS_MAX: usize = 4;

/// A worker that was heard of. One whose row cannot be read is as good as unknown: its next heartbeat says all anew.
fn worker(desk: &Desk<'_>, id: &str) -> Answer<Option<Worker>> {
    let found = desk.one("SELECT body FROM workers WHERE id = ?1", &[&id], |row| Ok(body(row)))?;
    Ok(found.and_then(|worker| worker.inspect_err(left_out).ok()))
}

pub(super) fn beat(desk: &mut Desk<'_>, rules: &Rules, beat: &Beat, now: Timestamp) -> Answer<Beaten> {
    let known = worker(desk, &beat.worker_id)?;
    let is_new = known.as_ref().is_none_or(|worker| worker.dead);
    let took_none = known.as_ref().is_some_and(|worker| !worker.takes_jobs());
    let worker = heard(known, beat, now);
    if took_none && worker.takes_jobs() {
        desk.note(Note::Ready(None));
    }
    let mut beaten = Beaten { state: worker.state, extended: 0, cancelled: Vec::new(), lost: Vec::new() };
    for id in &beat.jobs {
        let sql = "SELECT body, blocked, id FROM jobs WHERE id = ?1";
        let Some(mut kept) = desk.jobs(sql, &[id])?.jobs.pop() else {
            beaten.lost.push(id.clone());
            continue;
        };
        let late = kept.job.advance(luck(), now);
        let told = kept.job.beat(&beat.worker_id, beat.visibility_ms, rules.defaults, now);
        match told {
            Some(event) => {
                beaten.extended += 1;
                desk.tell(late.into_iter().chain([event]))?;
                desk.save(&kept)?;
            }
            None => {
                if !late.is_empty() {
                    desk.tell(late)?;
                    desk.save(&kept)?;
                }
                let list =
                    if kept.job.state == State::Cancelled { &mut beaten.cancelled } else { &mut beaten.lost };
                list.push(id.clone());
            }
        }
        beaten.state = directive(rules, &kept.job).unwrap_or(beaten.state);
    }
    if is_new {
        desk.tell([Event::new("worker.started", beat.worker_id.clone(), now)
            .with("worker_id", beat.worker_id.clone())])?;
    }
    desk.save_worker(&worker, now.checked_add(WORKER_SILENCE).ok())?;
    Ok(beaten)
}

pub(super) fn direct(desk: &mut Desk<'_>, id: &str, state: WorkerState, now: Timestamp) -> Answer<Worker> {
    let (worker, event, dies_at) = directed(worker(desk, id)?, id, state, now)?;
    desk.tell([event])?;
    desk.note(Note::Ready(None));
    desk.save_worker(&worker, dies_at)?;
    Ok(worker)
}

/// Carries out what time alone has changed about jobs and workers.
pub(super) fn advance(desk: &mut Desk<'_>, now: Timestamp) -> Answer<bool> {
    let sql = "SELECT body, blocked, id FROM jobs WHERE due_at <= ?1 ORDER BY due_at LIMIT ?2";
    let due = desk.jobs_within(BYTES_MAX, sql, &[&now.as_millisecond(), &(ADVANCE_MAX as u64)])?;
    let more = due.looked_at == ADVANCE_MAX || due.bytes >= BYTES_MAX;
    for mut kept in due.jobs {
        let events = kept.job.advance(luck(), now);
        desk.save(&kept)?;
        desk.tell(events)?;
    }
    let sql = "SELECT body, id FROM workers WHERE dies_at <= ?1 LIMIT ?2";
    let silent = desk.many(sql, &[&now.as_millisecond(), &(DEATHS_MAX as u64)], |row| {
        Ok((row.get::<_, String>(1)?, body(row)))
    })?;
    let mut more = more || silent.len() == DEATHS_MAX;
    let (mut room, mut bytes) = (ADVANCE_MAX, BYTES_MAX);
    for (id, worker) in silent {
        match worker {
            Ok(worker) => {
                let (jobs, length) = bury(desk, worker, room, bytes, now)?;
                (room, bytes) = (room - jobs, bytes.saturating_sub(length));
            }
            // Its jobs come back by their visibility timeouts.
            Err(error) => {
                tracing::error!(worker = id, %error, "a worker cannot be read and is forgotten");
                desk.execute("DELETE FROM workers WHERE id = ?1", &[&id])?;
            }
        }
        if room == 0 || bytes == 0 {
            more = true;
            break;
        }
    }
    Ok(more)
}

/// A worker has been silent for too long: its jobs go back, some at a time, and with the last of them it is dead. Says
/// how many were looked at, and how many bytes they came to.
fn bury(
    desk: &mut Desk<'_>,
    mut worker: Worker,
    most: usize,
    bytes: usize,
    now: Timestamp,
) -> Answer<(usize, usize)> {
    let sql = "SELECT body, blocked, id FROM jobs WHERE worker = ?1 LIMIT ?2";
    let lost = desk.jobs_within(bytes, sql, &[&worker.worker_id, &(most as u64)])?;
    for mut kept in lost.jobs {
        let events = kept.job.lose_worker(luck(), now);
        desk.save(&kept)?;
        desk.tell(events)?;
    }
    if lost.looked_at == most || lost.bytes >= bytes {
        return Ok((lost.looked_at, lost.bytes));
    }
    worker.dead = true;
    worker.active_jobs.clear();
    let id = worker.worker_id.clone();
    desk.tell([Event::new("worker.stopped", id.clone(), now)
        .with("worker_id", id)
        .with("reason", "silence")])?;
    desk.save_worker(&worker, None)?;
    Ok((lost.looked_at, lost.bytes))
}

pub(super) fn delete_dead(desk: &mut Desk<'_>, id: &str, now: Timestamp) -> Answer<()> {
    match desk.job(id)? {
        Some(kept) if kept.job.dead => {
            desk.delete_job(id)?;
            desk.tell([verbs::deleted(kept.job, now)])
        }
        _ => Err(Refusal::not_found("dead letter", id)),
    }
}

pub(super) fn pause(desk: &mut Desk<'_>, name: String, paused: bool, now: Timestamp) -> Answer<Queue> {
    desk.open_queue(&name, now)?;
    let changed =
        desk.execute("UPDATE queues SET paused = ?2 WHERE name = ?1 AND paused <> ?2", &[&name, &paused])?;
    if changed > 0 {
        desk.tell([verbs::paused(&name, paused, now)])?;
        if !paused {
            desk.ready(&name);
        }
    }
    let created: Option<i64> =
        desk.one("SELECT created_at FROM queues WHERE name = ?1", &[&name], |row| row.get(0))?;
    let created_at = created.and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(now);
    Ok(Queue { name, paused, created_at })
}

/// Forgets what is older than is kept, some at a time.
pub(super) fn prune(desk: &mut Desk<'_>, keep: &Retention, now: Timestamp) -> Answer<bool> {
    let before = |days: u32| {
        let age = SignedDuration::from_hours(24 * i64::from(days));
        now.checked_sub(age).unwrap_or(Timestamp::MIN).as_millisecond()
    };
    let most = PRUNE_MAX;
    let ended = desk.execute(
        "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE ended_at < ?1 AND dead_at IS NULL LIMIT ?2)",
        &[&before(keep.jobs_days), &most],
    )?;
    let dead = desk.execute(
        "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE dead_at < ?1 LIMIT ?2)",
        &[&before(keep.dead_days), &most],
    )?;
    let too_many_dead = desk.execute(
        "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE dead_at IS NOT NULL \
         ORDER BY dead_at DESC LIMIT ?2 OFFSET ?1)",
        &[&keep.dead_max, &most],
    )?;
    let number = |row: &rusqlite::Row<'_>| row.get::<_, u64>(0);
    let events = desk.many(
        // The oldest come first: once one is young enough, so are all.
        "DELETE FROM events WHERE seq IN (SELECT seq FROM (SELECT seq, at FROM events ORDER BY seq LIMIT ?2) \
         WHERE at < ?1) RETURNING seq",
        &[&before(keep.events_days), &most],
        number,
    )?;
    let too_many_events = desk.many(
        "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq <= \
         (SELECT max(seq) FROM events) - ?1 ORDER BY seq LIMIT ?2) RETURNING seq",
        &[&keep.events_max, &most],
        number,
    )?;
    webhooks::forget(desk, &[&events[..], &too_many_events[..]].concat(), now)?;
    let occurrences = desk.execute(
        "DELETE FROM occurrences WHERE (cron, scheduled, kind) IN \
         (SELECT cron, scheduled, kind FROM occurrences WHERE actual < ?1 LIMIT ?2)",
        &[&before(keep.occurrences_days), &most],
    )?;
    let workers = desk.execute(
        // One that cannot be read is forgotten too.
        "DELETE FROM workers WHERE dies_at IS NULL \
         AND coalesce(CASE WHEN json_valid(body) THEN json_extract(body, '$.last_seen') END, '') < ?1",
        &[&crate::times::stamp(Timestamp::from_millisecond(before(keep.events_days)).unwrap_or(now))],
    )?;
    let pruned = [ended, dead, too_many_dead, events.len(), too_many_events.len(), occurrences];
    tracing::debug!(?pruned, workers, "forgot what was old");
    Ok(pruned.contains(&(most as usize)))
}
