//! Workers: fetch, ack, nack, heartbeat.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use serde_json::json;

use crate::app::App;
use crate::envelope::check_queue;
use crate::http::{Answer, Input, ok};
use crate::job::Nack;
use crate::job_view::{job_view, verdict};
use crate::members::{Members, Raw, read_as, wrong};
use crate::object::Object;
use crate::refusal::Refusal;
use crate::store::{Beat, Change, Fetch, Worker, WorkerState};
use crate::times::stamp;

use super::page::{Named, Params};

/// The most jobs of one fetch.
const FETCH_MAX: usize = 1_000;

/// The most queues of one fetch.
const QUEUES_MAX: usize = 256;

/// The most jobs that one heartbeat names.
const BEAT_MAX: usize = 10_000;

/// The longest that a fetch waits for work.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The longest name of a worker.
const WORKER_ID_CHARS_MAX: usize = 255;

/// The most characters of a failure's message that are kept.
const MESSAGE_CHARS_MAX: usize = 10_000;

/// The largest backtrace or details that are kept.
const DETAILS_BYTES_MAX: usize = 64 * 1024;

pub(super) async fn fetch(State(app): State<Arc<App>>, Input(mut given): Input) -> Answer {
    let expected = "a list of queues";
    let queues = match given.take("queues") {
        None => {
            return Err(Refusal::request(format!("expected {expected} in `queues`, but it is missing"))
                .field("queues"));
        }
        Some(raw) => {
            let queues: Vec<String> = read_as(&raw, "queues", expected)?;
            if queues.is_empty() || queues.len() > QUEUES_MAX {
                return Err(wrong("queues", &format!("1 to {QUEUES_MAX} queues"), &raw));
            }
            queues
        }
    };
    queues.iter().try_for_each(|queue| check_queue(queue))?;
    let (count, max_jobs) = (given.take("count"), given.take("max_jobs"));
    let count: u32 = match count.or(max_jobs) {
        None => 1,
        Some(raw) => read_as(&raw, "count", "a whole number of at least 1")?,
    };
    let worker_id = read_worker(&mut given)?;
    let visibility_ms = visibility(&mut given)?;
    let wait: Option<u32> = given.take_as("wait_ms", "a number of milliseconds")?;
    let fetch = Fetch { queues, count: (count as usize).clamp(1, FETCH_MAX), worker_id, visibility_ms };

    let until =
        tokio::time::Instant::now() + WAIT_MAX.min(Duration::from_millis(u64::from(wait.unwrap_or(0))));
    let mut told = app.store.last_event();
    let mut ending = app.ending.clone();
    let jobs = loop {
        told.borrow_and_update();
        let jobs = app.store.fetch(fetch.clone(), app.clock.now()).await?;
        if !jobs.is_empty() || wait.is_none() || *ending.borrow() {
            break jobs;
        }
        tokio::select! {
            () = tokio::time::sleep_until(until) => break jobs,
            _ = told.changed() => {}
            _ = ending.changed() => {}
        }
    };
    let views: Vec<Object> = jobs.iter().map(job_view).collect();
    ok(&Object::new().with("jobs", &views).maybe("job", views.first()))
}

pub(super) async fn ack(State(app): State<Arc<App>>, Input(mut given): Input) -> Answer {
    let id = job_id(&mut given)?;
    let worker_id = read_worker(&mut given)?;
    let result = given.0.remove("result");
    let changed = app.store.change(&id, Change::Ack { worker_id, result }, app.clock.now()).await?;
    ok(&Object::new().with("acknowledged", &true).and(&verdict(&changed.job, changed.attempt)))
}

pub(super) async fn nack(State(app): State<Arc<App>>, Input(mut given): Input) -> Answer {
    let id = job_id(&mut given)?;
    let worker_id = read_worker(&mut given)?;
    let requeue = given.take_as("requeue", "true or false")?.unwrap_or(false);
    let error = given.take_members("error")?;
    let Some(error) = error.or(requeue.then(Members::default)) else {
        return Err(Refusal::request("expected an `error`, but it is missing").field("error"));
    };
    let nack = read_failure(error, worker_id, requeue)?;
    let changed = app.store.change(&id, Change::Nack(nack), app.clock.now()).await?;
    ok(&verdict(&changed.job, changed.attempt))
}

fn read_failure(mut error: Members, worker_id: Option<String>, requeue: bool) -> Result<Nack, Refusal> {
    let code: String = error.take_as("code", "a text")?.unwrap_or_else(|| "handler_error".into());
    let message: String =
        error.take_as("message", "a text")?.unwrap_or_else(|| "no message was given".into());
    let details = error.take("details").filter(|raw| raw.get().len() <= DETAILS_BYTES_MAX);
    let class = details
        .as_ref()
        .and_then(|raw| Members::of(raw, "details").ok())
        .and_then(|details| details.value("error_class").and_then(|class| class.as_str().map(str::to_owned)));
    let kind: Option<String> = error.take_as("type", "a text")?;
    Ok(Nack {
        worker_id,
        requeue,
        kind: kind.or_else(|| class.clone()).unwrap_or_else(|| code.clone()),
        code,
        message: message.chars().take(MESSAGE_CHARS_MAX).collect(),
        class,
        retryable: error.take_as("retryable", "true or false")?,
        details,
        backtrace: error.take("backtrace").filter(|raw| raw.get().len() <= DETAILS_BYTES_MAX),
    })
}

pub(super) async fn beat(State(app): State<Arc<App>>, Input(mut given): Input) -> Answer {
    let Some(worker_id) = read_worker(&mut given)? else {
        return Err(Refusal::request("expected a `worker_id`, but it is missing").field("worker_id"));
    };
    // Some send ids here, and some a number with the ids elsewhere.
    let expected = "a list of job ids";
    let mut jobs: Vec<String> = Vec::new();
    if let Some(raw) = given.take("active_jobs").filter(|raw| raw.get().starts_with('[')) {
        jobs.extend(read_as::<Vec<String>>(&raw, "active_jobs", expected)?);
    }
    jobs.extend(given.take_as::<Vec<String>>("active_job_ids", expected)?.unwrap_or_default());
    jobs.extend(given.take_as::<String>("job_id", "a job id")?);
    if jobs.len() > BEAT_MAX {
        let message = format!("expected at most {BEAT_MAX} jobs in `active_jobs`, but found {}", jobs.len());
        return Err(Refusal::request(message).field("active_jobs"));
    }
    let visibility_ms = visibility(&mut given)?;
    let mut about = Members::default();
    for name in ["hostname", "pid", "queues", "concurrency", "labels", "started_at", "state"] {
        if let Some(raw) = given.take(name).filter(|raw| raw.get().len() <= DETAILS_BYTES_MAX) {
            about.0.insert(name.to_owned(), raw);
        }
    }
    let now = app.clock.now();
    let beaten = app.store.beat(Beat { worker_id, jobs, visibility_ms, about }, now).await?;
    ok(&Object::new()
        .with("state", &beaten.state)
        .with("directive", &beaten.state)
        .with("jobs_extended", &beaten.extended)
        .with("cancelled_jobs", &beaten.cancelled)
        .with("lost_jobs", &beaten.lost)
        .with("server_time", &stamp(now)))
}

pub(super) async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let (workers, page) = app.store.workers(params.page()?).await?;
    let views: Vec<Object> = workers.iter().map(worker_view).collect();
    ok(&Object::new().with("workers", &views).with("pagination", &page.view()))
}

pub(super) async fn direct(State(app): State<Arc<App>>, Named(id): Named, Input(mut given): Input) -> Answer {
    let expected = "\"running\", \"quiet\" or \"terminate\"";
    let Some(state) = given.take_as::<WorkerState>("state", expected)? else {
        return Err(
            Refusal::request(format!("expected {expected} in `state`, but it is missing")).field("state")
        );
    };
    let worker = app.store.direct(&id, state, app.clock.now()).await?;
    ok(&Object::new().with("worker", &worker_view(&worker)))
}

fn worker_view(worker: &Worker) -> Object {
    Object::new()
        .with("worker_id", &worker.worker_id)
        .with("state", &worker.state)
        .with("alive", &json!(!worker.dead))
        .with("first_seen_at", &stamp(worker.first_seen))
        .with("last_heartbeat_at", &stamp(worker.last_seen))
        .with("active_jobs", &worker.active_jobs)
        .with("about", &worker.about)
}

fn job_id(given: &mut Members) -> Result<String, Refusal> {
    let (job_id, id) = (given.take("job_id"), given.take("id"));
    let Some(raw) = job_id.or(id) else {
        return Err(Refusal::request("expected a `job_id`, but it is missing").field("job_id"));
    };
    read_as(&raw, "job_id", "the id of a job")
}

fn read_worker(given: &mut Members) -> Result<Option<String>, Refusal> {
    let Some(raw) = given.take("worker_id") else { return Ok(None) };
    let expected = "the name of a worker, of 1 to 255 characters";
    let id: String = read_as(&raw, "worker_id", expected)?;
    if id.is_empty() || id.chars().count() > WORKER_ID_CHARS_MAX {
        return Err(wrong("worker_id", expected, &raw));
    }
    Ok(Some(id))
}

fn visibility(given: &mut Members) -> Result<Option<u64>, Refusal> {
    let raw: Option<Raw> = given.take("visibility_timeout_ms");
    let read = |raw: Raw| read_as::<u32>(&raw, "visibility_timeout_ms", "a number of milliseconds");
    Ok(raw.map(read).transpose()?.map(u64::from).filter(|ms| *ms > 0))
}
