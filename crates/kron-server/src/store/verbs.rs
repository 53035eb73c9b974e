//! What the verbs of every store decide alike.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::job::{Job, State};
use crate::members::Members;
use crate::refusal::Refusal;

use super::{Answer, Beat, Rules, Worker, WorkerState};

/// The most jobs that one transaction changes because their time has come.
pub(super) const ADVANCE_MAX: usize = 500;

/// The most rows of each table that one transaction forgets.
pub(super) const PRUNE_MAX: u32 = 5_000;

/// How long a worker that has sent heartbeats may be silent before it counts as dead.
pub(super) const WORKER_SILENCE: SignedDuration = SignedDuration::from_secs(30);

/// The most workers that one transaction finds dead.
pub(super) const DEATHS_MAX: usize = 50;

/// The most cron jobs that one transaction settles.
pub(super) const TURNS_MAX: usize = 500;

/// How many jobs of one cron job may wait before the log warns.
pub(super) const WAITING_UNREMARKABLE: u64 = 2;

/// When a cron job whose zone cannot be read any more is looked at again.
pub(super) const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// The most events that one query looks at, however few of them it wants.
pub(super) const SCAN_MAX: i64 = 20_000;

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

/// The id of an event, if it can be one.
pub(super) fn event_id(id: &str) -> Answer<&str> {
    if id.strip_prefix("evt_").is_some_and(crate::envelope::is_id) {
        return Ok(id);
    }
    let message =
        format!("expected the id of an event in `after`, but found {}", crate::members::excerpt(id));
    Err(Refusal::request(message).field("after"))
}
