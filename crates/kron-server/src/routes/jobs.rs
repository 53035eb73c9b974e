//! Jobs: push, look, cancel, activate, progress.

use std::sync::Arc;

use axum::extract::State;

use crate::app::App;
use crate::envelope::{self, ENVELOPE_BYTES_MAX};
use crate::http::{Answer, Input, MaybeInput, Reply, ok};
use crate::job::{Job, Progress, State as JobState};
use crate::job_view::{job_answer, job_view, progress_view};
use crate::members::{Members, Raw, wrong};
use crate::object::Object;
use crate::refusal::{Code, Refusal};
use crate::store::{Change, JobFilter};

use super::page::{self, Named, Params};

/// The most jobs of one batch.
const BATCH_MAX: usize = 10_000;

pub(super) async fn push(State(app): State<Arc<App>>, Input(given): Input) -> Answer {
    let job = envelope::read(given, app.clock.now())?;
    let mut jobs = app.store.push(vec![job]).await?;
    let job = jobs.pop().ok_or_else(|| Refusal::backend(&"the job was lost"))?;
    Ok(Reply::created(&Object::new().with("job", &job_view(&job))).at(format!("/ojs/v1/jobs/{}", job.id)))
}

pub(super) async fn push_batch(State(app): State<Arc<App>>, Input(mut given): Input) -> Answer {
    let expected = "an array of jobs";
    let Some(raw) = given.take("jobs") else {
        return Err(
            Refusal::request(format!("expected {expected} in `jobs`, but it is missing")).field("jobs")
        );
    };
    let items: Vec<Raw> = serde_json::from_str(raw.get()).map_err(|_| wrong("jobs", expected, &raw))?;
    if items.is_empty() || items.len() > BATCH_MAX {
        let message = format!("expected 1 to {BATCH_MAX} jobs in `jobs`, but found {}", items.len());
        return Err(Refusal::request(message).field("jobs"));
    }
    let now = app.clock.now();
    let jobs = items.iter().enumerate().map(|(at, item)| {
        let read = || -> Result<Job, Refusal> {
            if item.get().len() > ENVELOPE_BYTES_MAX {
                let message =
                    format!("expected at most {ENVELOPE_BYTES_MAX} bytes, but found {}", item.get().len());
                return Err(Refusal::new(Code::EnvelopeTooLarge, message));
            }
            envelope::read(Members::of(item, "jobs")?, now)
        };
        read().map_err(|refusal| {
            Refusal { message: format!("jobs[{at}]: {}", refusal.message), ..refusal }
                .detail("index", at.into())
        })
    });
    let jobs = jobs.collect::<Result<Vec<Job>, Refusal>>()?;
    let jobs = app.store.push(jobs).await?;
    let views: Vec<Object> = jobs.iter().map(job_view).collect();
    Ok(Reply::created(&Object::new().with("jobs", &views).with("count", &views.len())))
}

pub(super) async fn info(State(app): State<Arc<App>>, Named(id): Named) -> Answer {
    ok(&job_answer(&find(&app, &id).await?))
}

pub(super) async fn cancel(State(app): State<Arc<App>>, Named(id): Named) -> Answer {
    changed(&app, &id, Change::Cancel).await
}

pub(super) async fn activate(
    State(app): State<Arc<App>>,
    Named(id): Named,
    MaybeInput(_): MaybeInput,
) -> Answer {
    changed(&app, &id, Change::Activate).await
}

async fn changed(app: &App, id: &str, change: Change) -> Answer {
    let changed = app.store.change(&id.to_ascii_lowercase(), change, app.clock.now()).await?;
    let view = job_view(&changed.job).with("previous_state", &changed.before);
    ok(&Object::new().with("job", &view).and(&view))
}

pub(super) async fn progress(State(app): State<Arc<App>>, Named(id): Named) -> Answer {
    ok(&progress_view(&find(&app, &id).await?))
}

pub(super) async fn report(State(app): State<Arc<App>>, Named(id): Named, Input(mut given): Input) -> Answer {
    let now = app.clock.now();
    let value: Option<f64> = given.take_as("progress", "a number from 0 to 1")?;
    let progress = Progress {
        value: value.unwrap_or(0.0),
        data: given.take("data"),
        message: given.take_as("message", "a text")?,
        at: now,
    };
    let changed = app.store.change(&id.to_ascii_lowercase(), Change::Report(progress), now).await?;
    ok(&progress_view(&changed.job))
}

pub(super) async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let state = params
        .get("state")
        .map(|word| {
            let found = JobState::ALL.into_iter().find(|state| state.name() == word);
            found.ok_or_else(|| page::wrong("state", "the state of a job such as active", word))
        })
        .transpose()?;
    let owned = |name: &str| params.get(name).map(str::to_owned);
    let filter =
        JobFilter { state, queue: owned("queue"), kind: owned("type"), cron: owned("cron"), dead: false };
    let (jobs, page) = app.store.jobs(filter, params.page()?, app.clock.now()).await?;
    let views: Vec<Object> = jobs.iter().map(job_view).collect();
    ok(&Object::new().with("jobs", &views).with("pagination", &page.view()))
}

async fn find(app: &App, id: &str) -> Result<Job, Refusal> {
    let found = app.store.job(&id.to_ascii_lowercase(), app.clock.now()).await?;
    found.ok_or_else(|| Refusal::not_found("job", id))
}
