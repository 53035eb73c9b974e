//! Workers: fetch, ack, nack, heartbeat.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use serde_json::json;

use crate::app::App;
use crate::envelope::check_queue;
use crate::http::{Answer, Cargo, Input, Reply, ok};
use crate::job::{Job, Nack};
use crate::job_view::{job_view, verdict};
use crate::members::{Members, Raw, read_as, wrong};
use crate::object::Object;
use crate::refusal::{Code, Refusal};
use crate::store::{Beat, Change, Changed, Fetch, Worker, WorkerState};
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
    // Listened to before the first look, so that nothing falls in between.
    let bell = app.store.bell().listen(&fetch.queues);
    let mut ending = app.ending.clone();
    let jobs = loop {
        let jobs = claim(&app, fetch.clone()).await?;
        if !jobs.is_empty() || wait.is_none() || *ending.borrow() {
            break jobs;
        }
        tokio::select! {
            () = tokio::time::sleep_until(until) => break jobs,
            () = bell.wait() => {}
            _ = ending.changed() => {}
        }
    };
    let views: Vec<Object> = jobs.iter().map(job_view).collect();
    let reply = Reply::ok(&Object::new().with("jobs", &views).maybe("job", views.first()));
    Ok(reply.unless_lost(jobs))
}

/// Claims jobs. They are claimed by the store whether anybody still waits for them or not, so somebody always does.
async fn claim(app: &Arc<App>, fetch: Fetch) -> Result<Claimed, Refusal> {
    let app = Arc::clone(app);
    let claim = tokio::spawn(async move {
        let jobs = app.store.fetch(fetch, app.clock.now()).await?;
        Ok(Claimed { app, jobs })
    });
    claim.await.map_err(|error| Refusal::backend(&error))?
}

/// Jobs on the way to their worker. Dropped before they are sent, they are given back: a worker that is gone would
/// only keep them from others until its silence is noticed.
struct Claimed {
    app: Arc<App>,
    jobs: Vec<Job>,
}

impl std::ops::Deref for Claimed {
    type Target = [Job];

    fn deref(&self) -> &[Job] {
        &self.jobs
    }
}

impl Cargo for Claimed {
    fn sent(&mut self) {
        self.jobs.clear();
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let claims: Vec<(String, u32)> = self.jobs.drain(..).map(|job| (job.id, job.attempt)).collect();
        let (false, Ok(runtime)) = (claims.is_empty(), tokio::runtime::Handle::try_current()) else { return };
        let app = Arc::clone(&self.app);
        runtime.spawn(async move {
            for (id, attempt) in claims {
                match app.store.change(&id, Change::TakeBack { attempt }, app.clock.now()).await {
                    Ok(_) => {
                        tracing::info!(job = id, "given back, since its worker was gone before it was told");
                    }
                    Err(refusal) => {
                        tracing::warn!(job = id, error = refusal.message, "could not be given back");
                    }
                }
            }
        });
    }
}

pub(super) async fn ack(State(app): State<Arc<App>>, Input(mut given): Input) -> Answer {
    let id = job_id(&mut given)?;
    let worker_id = read_worker(&mut given)?;
    let fence = given.take_as("fence", "the fence of an attempt")?;
    let result = given.0.remove("result");
    let changed = settle(&app, &id, Change::Ack { worker_id, fence, result }).await?;
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
    let fence = given.take_as("fence", "the fence of an attempt")?;
    let nack = Nack { worker_id, fence, requeue, ..read_failure(error)? };
    let changed = settle(&app, &id, Change::Nack(nack)).await?;
    ok(&verdict(&changed.job, changed.attempt))
}

/// Ends an attempt. What is said of one that is over leaves no trace but this line of the log.
async fn settle(app: &App, id: &str, change: Change) -> Result<Changed, Refusal> {
    let changed = app.store.change(id, change, app.clock.now()).await;
    if let Err(refusal) = &changed
        && refusal.code == Code::Conflict
    {
        tracing::warn!(job = id, reason = refusal.message, "what was said of a job was rejected");
    }
    changed
}

fn read_failure(mut error: Members) -> Result<Nack, Refusal> {
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
        worker_id: None,
        fence: None,
        requeue: false,
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use axum::response::{IntoResponse, Response};
    use futures_util::StreamExt;
    use kron_zones::Zones;
    use tokio::sync::watch;

    use super::*;
    use crate::clock::{Clock, instant};
    use crate::job::State as JobState;
    use crate::store::{Retention, Rules, Sqlite};
    use crate::webhook::deliver::Post;
    use crate::webhook::dial::Dialer;
    use crate::webhook::guard::Guard;

    /// A server with one job in it.
    async fn world(directory: &std::path::Path) -> (Arc<App>, String) {
        let zones = Arc::new(Zones::bundled());
        let rules = Rules {
            defaults: crate::job::Defaults::default(),
            counting: crate::cron::Counting::Active,
            directives: false,
            source: "ojs://test".into(),
            metrics: Arc::default(),
        };
        let store = Sqlite::open(directory, rules, Arc::clone(&zones)).unwrap();
        let app = Arc::new(App {
            store: Arc::new(store),
            clock: Clock::System,
            zones,
            post: Post::new(
                Dialer::new(Guard { ports: Vec::new(), http: false, openings: Vec::new() }, None).unwrap(),
                jiff::SignedDuration::from_hours(24),
                "ojs://test".into(),
            ),
            retention: Retention::default(),
            test_mode: false,
            started: instant(),
            ending: watch::channel(false).1,
            caught_up: tokio::sync::Mutex::new(None),
            behind: tokio::sync::Notify::new(),
            feed: Arc::new(crate::feed::Feed::new(0)),
            metrics: Arc::default(),
            looked: tokio::sync::Mutex::new(None),
            dashboard: kron_dashboard::Dashboard::new(kron_dashboard::Guard::new(0, [])),
        });
        let given = Members::read(br#"{"type":"a.b","args":[]}"#).unwrap();
        let job = crate::envelope::read(given, app.clock.now()).unwrap();
        let id = app.store.push(vec![job]).await.unwrap().remove(0).id;
        (app, id)
    }

    fn wish() -> Fetch {
        Fetch { queues: vec!["default".into()], count: 1, worker_id: Some("w".into()), visibility_ms: None }
    }

    async fn state(app: &App, id: &str) -> (JobState, u32) {
        let job = app.store.job(id, app.clock.now()).await.unwrap().unwrap();
        (job.state, job.attempt)
    }

    async fn is_given_back(app: &App, id: &str) -> bool {
        for _ in 0..6_000 {
            if state(app, id).await == (JobState::Available, 0) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    fn answer(jobs: Claimed) -> Response {
        Reply::ok(&json!({"jobs": ["some"]})).unless_lost(jobs).into_response()
    }

    #[tokio::test]
    async fn jobs_whose_worker_is_gone_before_it_is_told_are_given_back_as_if_nothing_had_been() {
        let home = tempfile::tempdir().unwrap();
        let (app, id) = world(home.path()).await;
        // Gone while the store claims: the claim is under way and nobody waits for it.
        {
            let mut claiming = pin!(claim(&app, wish()));
            let polled = claiming.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending));
        }
        // It must have been claimed before it can be given back; it tells of both.
        let told = app.store.last_event();
        for _ in 0..6_000 {
            if *told.borrow() >= 3 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(*told.borrow() >= 3, "it was enqueued, started and enqueued again");
        assert!(is_given_back(&app, &id).await, "{:?}", state(&app, &id).await);

        // Gone before its answer is written.
        let response = answer(claim(&app, wish()).await.unwrap());
        assert_eq!(state(&app, &id).await, (JobState::Active, 1));
        drop(response);
        assert!(is_given_back(&app, &id).await);

        // An answer that was written stays, whoever reads it.
        let response = answer(claim(&app, wish()).await.unwrap());
        let mut body = response.into_body().into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), r#"{"jobs":["some"]}"#);
        drop(body);
        assert_eq!(state(&app, &id).await, (JobState::Active, 1));

        // What has happened since is not undone.
        let late = Change::TakeBack { attempt: 7 };
        assert!(app.store.change(&id, late, app.clock.now()).await.is_err());
        assert_eq!(state(&app, &id).await, (JobState::Active, 1));
    }
}
