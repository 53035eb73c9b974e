//! What the verbs of every store decide alike.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::cron::{Cron, Occurrence};
use crate::envelope::ENVELOPE_BYTES_MAX;
use crate::event::Event;
use crate::job::{Job, State};
use crate::members::Members;
use crate::refusal::Refusal;

use super::{Answer, Beat, Change, Rules, Worker, WorkerState};

/// The most jobs that one transaction changes because their time has come.
pub(super) const ADVANCE_MAX: usize = 500;

/// How many bytes of jobs or cron jobs one transaction reads before it leaves the rest to the next: a few of the largest. So
/// what it does takes little room, and is done within the time of a statement on a slow database too.
pub(super) const BYTES_MAX: usize = 4 * ENVELOPE_BYTES_MAX;

/// The most rows of each table that one transaction forgets.
pub(super) const PRUNE_MAX: u32 = 5_000;

/// The most jobs that one transaction looks at to take back what was set aside.
pub(super) const TAKE_BACK_MAX: usize = 500;

/// How long a worker that has sent heartbeats may be silent before it counts as dead.
pub(super) const WORKER_SILENCE: SignedDuration = SignedDuration::from_secs(30);

/// The most workers that one transaction finds dead.
pub(super) const DEATHS_MAX: usize = 50;

/// The most cron jobs that one transaction settles.
pub(super) const TURNS_MAX: usize = 500;

/// The most jobs of one cron job that a look at it reads. Where more of them are to be cancelled, the next look goes on.
pub(super) const ACTIVE_MAX: usize = 1_000;

/// How many jobs of one cron job that wait are counted.
pub(super) const WAITING_MAX: usize = 1_000;

/// How many jobs of one cron job may wait before the log warns.
pub(super) const WAITING_UNREMARKABLE: u64 = 2;

/// When a cron job whose zone cannot be read any more is looked at again.
pub(super) const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// The most events that one query looks at, however few of them it wants.
pub(super) const SCAN_MAX: i64 = 20_000;

/// How many of those that come first one transaction reads, by the lengths of all, and how many bytes they come to.
pub(super) fn within_bytes(lengths: impl IntoIterator<Item = usize>) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    for length in lengths {
        if bytes >= BYTES_MAX {
            break;
        }
        (count, bytes) = (count + 1, bytes + length);
    }
    (count, bytes)
}

/// A number from 0 to 1.
pub(super) fn luck() -> f64 {
    getrandom::u32().map_or(0.5, |n| f64::from(n) / f64::from(u32::MAX))
}

/// What a job of a conformance test wants its worker to be told, where such jobs are heard.
pub(super) fn directive(rules: &Rules, job: &Job) -> Option<WorkerState> {
    match job.meta.value("test_directive").filter(|_| rules.directives) {
        Some(Value::String(word)) if word == "quiet" => Some(WorkerState::Quiet),
        Some(Value::String(word)) if word == "terminate" => Some(WorkerState::Terminate),
        _ => None,
    }
}

/// A worker that was heard of, known or not.
pub(super) fn heard(known: Option<Worker>, beat: &Beat, now: Timestamp) -> Worker {
    let mut worker = known.unwrap_or_else(|| Worker {
        worker_id: beat.worker_id.clone(),
        state: WorkerState::Running,
        first_seen: now,
        last_seen: now,
        dead: false,
        active_jobs: Vec::new(),
        about: beat.about.clone(),
    });
    worker.dead = false;
    worker.last_seen = now;
    worker.active_jobs.clone_from(&beat.jobs);
    worker.about.0.extend(beat.about.0.clone());
    worker
}

/// A change of a cron job in either shape, in the shape of what it is laid over.
pub(super) fn lay_over(mut change: Members) -> Answer<Members> {
    if let Some(template) = change.take_members("job_template")? {
        for (name, value) in template.0 {
            change.0.entry(name).or_insert(value);
        }
    }
    if let Some(expression) = change.take("expression") {
        change.0.entry("cron".into()).or_insert(expression);
    }
    Ok(change)
}

/// How many jobs are in which state, of the queues that come first and of all others together, under no name. The
/// rows are in the order of their queues.
pub(super) fn census_of(
    rows: Vec<(String, String, u64)>,
    queues_max: usize,
) -> Vec<(Option<String>, State, u64)> {
    let mut counted: Vec<(Option<String>, State, u64)> = Vec::new();
    let (mut named, mut others): (Vec<String>, _) = (Vec::new(), State::ALL.map(|state| (state, 0)));
    for (queue, state, count) in rows {
        let Some(state) = State::ALL.into_iter().find(|it| it.name() == state) else { continue };
        if named.last() != Some(&queue) && named.len() < queues_max {
            named.push(queue.clone());
        }
        if named.last() == Some(&queue) {
            counted.push((Some(queue), state, count));
        } else if let Some(other) = others.iter_mut().find(|(it, _)| *it == state) {
            other.1 += count;
        }
    }
    counted.extend(
        others.into_iter().filter(|(_, count)| *count > 0).map(|(state, count)| (None, state, count)),
    );
    counted
}

/// How many cron jobs are looked at to find those that fire next.
pub(super) const SOONEST_MAX: usize = 1_000;

/// The cron jobs that fire next, found among those that are looked at next: none fires before it is looked at, so the
/// order of looks tells when to stop.
pub(super) struct Soonest {
    most: usize,
    found: Vec<Cron>,
}

impl Soonest {
    pub(super) fn new(most: usize) -> Soonest {
        Soonest { most, found: Vec::new() }
    }

    /// Whether all are found, since whatever else there is is looked at from that second on.
    pub(super) fn is_found(&self, look: i64) -> bool {
        let last = self.found.get(self.most.saturating_sub(1)).and_then(|cron| cron.next_run_at);
        last.is_some_and(|last| last.as_second() < look)
    }

    /// Takes the cron job that is looked at next.
    pub(super) fn take(&mut self, cron: Cron) {
        if cron.next_run_at.is_some() {
            let place = self.found.partition_point(|other| other.next_run_at <= cron.next_run_at);
            self.found.insert(place, cron);
        }
    }

    pub(super) fn found(mut self) -> Vec<Cron> {
        self.found.truncate(self.most);
        self.found
    }
}

/// The newest part of a record, the newest first: what lies in it, and what began before it, which are several in a row.
pub(super) fn newest(
    mut within: Vec<Occurrence>,
    mut begun: Vec<Occurrence>,
    most: usize,
) -> Vec<Occurrence> {
    begun.sort_by_key(|occurrence| std::cmp::Reverse(occurrence.place()));
    within.extend(begun);
    within.truncate(most);
    within
}

/// Does something to a job after what time has done to it by now. Says what happened.
pub(super) fn apply(
    job: &mut Job,
    change: Change,
    rules: &Rules,
    now: Timestamp,
) -> Answer<(Vec<Event>, State, u32)> {
    let mut events = job.advance(luck(), now);
    let (before, attempt) = (job.state, job.attempt);
    let changed = match change {
        Change::Activate => job.activate(now),
        Change::Ack { worker_id, fence, result } => job.ack(worker_id.as_deref(), fence, result, now),
        Change::Cancel => job.cancel(None, now),
        Change::Nack(nack) => job.nack(nack, luck(), now),
        Change::Report(progress) => {
            job.report(progress, rules.defaults);
            Ok(Vec::new())
        }
        Change::Revive => job.revive(now),
        Change::TakeBack { attempt } => job.take_back(attempt, now),
    };
    events.extend(changed?);
    Ok((events, before, attempt))
}

/// A change of a job that is not there.
pub(super) fn no_job(change: &Change, id: &str) -> Refusal {
    Refusal::not_found(if matches!(change, Change::Revive) { "dead letter" } else { "job" }, id)
}

/// Tells a worker what to do, unless it has been told to end. Says what happened, and when it counts as dead.
pub(super) fn directed(
    known: Option<Worker>,
    id: &str,
    state: WorkerState,
    now: Timestamp,
) -> Answer<(Worker, Event, Option<Timestamp>)> {
    let Some(mut worker) = known else { return Err(Refusal::not_found("worker", id)) };
    if worker.state == WorkerState::Terminate && state != WorkerState::Terminate {
        let message = format!("worker {id} has been told to terminate and cannot be told otherwise");
        return Err(Refusal::conflict(message));
    }
    worker.state = state;
    let kind = match state {
        WorkerState::Quiet => "worker.quiet",
        WorkerState::Running => "worker.started",
        WorkerState::Terminate => "worker.stopped",
    };
    let dies_at = if worker.dead { None } else { worker.last_seen.checked_add(WORKER_SILENCE).ok() };
    Ok((worker, Event::new(kind, id, now).with("worker_id", id), dies_at))
}

/// What is told of a queue that is stopped or resumed.
pub(super) fn paused(queue: &str, paused: bool, now: Timestamp) -> Event {
    let kind = if paused { "queue.paused" } else { "queue.resumed" };
    let mut event = Event::new(kind, queue, now).with("queue", queue);
    event.queue = Some(queue.to_owned());
    event
}

/// What is told of a dead letter that is removed for good.
pub(super) fn deleted(job: Job, now: Timestamp) -> Event {
    let event = Event::new("dead_letter.deleted", job.id.clone(), now).with("job_id", job.id);
    event.with("job_type", job.kind).with("queue", job.queue)
}

/// The id of an event, if it can be one.
pub(super) fn event_id(id: &str) -> Answer<&str> {
    if id.strip_prefix("evt_").is_some_and(crate::envelope::is_id) {
        return Ok(id);
    }
    let message =
        format!("expected the id of an event in `after`, but found {}", crate::members::excerpt(id));
    Err(Refusal::request(message).field("after"))
}
