//! Dead letters: jobs that failed for good and are kept to be looked at.

use std::sync::Arc;

use axum::extract::State;

use crate::app::App;
use crate::http::{Answer, MaybeInput, ok};
use crate::job_view::{job_answer, job_view};
use crate::object::Object;
use crate::refusal::Refusal;
use crate::store::{Change, JobFilter};
use crate::times::stamp;

use super::page::{Named, Params};

pub(super) async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let owned = |name: &str| params.get(name).map(str::to_owned);
    let filter = JobFilter { queue: owned("queue"), kind: owned("type"), dead: true, ..JobFilter::default() };
    let (jobs, page) = app.store.jobs(filter, params.page()?, app.clock.now()).await?;
    let views: Vec<Object> = jobs.iter().map(job_view).collect();
    ok(&Object::new().with("jobs", &views).with("pagination", &page.view()))
}

pub(super) async fn stats(State(app): State<Arc<App>>) -> Answer {
    let stats = app.store.dead_stats().await?;
    let counts = |pairs: &[(String, u64)]| {
        pairs.iter().fold(Object::new(), |object, (name, count)| object.with(name, count))
    };
    ok(&Object::new()
        .with("total", &stats.total)
        .with("by_queue", &counts(&stats.by_queue))
        .with("by_error_type", &counts(&stats.by_error_type))
        .with("oldest_at", &stats.oldest.map(stamp))
        .with("newest_at", &stats.newest.map(stamp)))
}

pub(super) async fn info(State(app): State<Arc<App>>, Named(id): Named) -> Answer {
    let job = app.store.job(&id.to_ascii_lowercase(), app.clock.now()).await?;
    match job.filter(|job| job.dead) {
        Some(job) => ok(&job_answer(&job)),
        None => Err(Refusal::not_found("dead letter", &id)),
    }
}

pub(super) async fn retry(
    State(app): State<Arc<App>>,
    Named(id): Named,
    MaybeInput(_): MaybeInput,
) -> Answer {
    let changed = app.store.change(&id.to_ascii_lowercase(), Change::Revive, app.clock.now()).await?;
    ok(&job_answer(&changed.job))
}

pub(super) async fn delete(State(app): State<Arc<App>>, Named(id): Named) -> Answer {
    let id = id.to_ascii_lowercase();
    app.store.delete_dead(&id, app.clock.now()).await?;
    ok(&Object::new().with("deleted", &true).with("job_id", &id))
}
