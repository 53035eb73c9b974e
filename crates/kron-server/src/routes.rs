//! Paths and what they lead to. Each file holds one kind of thing.

mod cron;
mod dead_letter;
mod events;
mod jobs;
mod meta;
mod page;
mod queues;
mod test_mode;
mod workers;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post, put};

use crate::app::App;
use crate::http;

/// Everything that the server answers.
pub fn router(app: Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/ojs/manifest", get(meta::manifest))
        .route("/ojs/v1/health", get(meta::health))
        .route("/healthz", get(meta::health))
        .route("/readyz", get(meta::health))
        .route("/ojs/v1/jobs", post(jobs::push))
        .route("/ojs/v1/jobs/batch", post(jobs::push_batch))
        .route("/ojs/v1/jobs/{id}", get(jobs::info).delete(jobs::cancel))
        .route("/ojs/v1/jobs/{id}/activate", post(jobs::activate))
        .route("/ojs/v1/jobs/{id}/progress", get(jobs::progress).put(jobs::report))
        .route("/ojs/v1/jobs/{id}/events", get(events::of_job))
        .route("/ojs/v1/workers/fetch", post(workers::fetch))
        .route("/ojs/v1/workers/ack", post(workers::ack))
        .route("/ojs/v1/workers/nack", post(workers::nack))
        .route("/ojs/v1/workers/heartbeat", post(workers::beat))
        .route("/ojs/v1/queues", get(queues::list))
        .route("/ojs/v1/queues/{name}/stats", get(queues::stats))
        .route("/ojs/v1/queues/{name}/pause", post(queues::pause))
        .route("/ojs/v1/queues/{name}/resume", post(queues::resume))
        .route("/ojs/v1/queues/{name}/events", get(events::of_queue))
        .route("/ojs/v1/dead-letter", get(dead_letter::list))
        .route("/ojs/v1/dead-letter/stats", get(dead_letter::stats))
        .route("/ojs/v1/dead-letter/{id}", get(dead_letter::info).delete(dead_letter::delete))
        .route("/ojs/v1/dead-letter/{id}/retry", post(dead_letter::retry))
        .route("/ojs/v1/cron", get(cron::list).post(cron::register))
        .route("/ojs/v1/cron/{name}", get(cron::info).delete(cron::unregister).patch(cron::patch))
        .route("/ojs/v1/events", get(events::poll))
        .route("/ojs/v1/events/stream", get(events::stream))
        .route("/kron/v1/cron/preview", post(cron::preview))
        .route("/kron/v1/cron/{name}/occurrences", get(cron::occurrences))
        .route("/kron/v1/cron/{name}/why", get(cron::why))
        .route("/kron/v1/cron/{name}/run", post(cron::run))
        .route("/kron/v1/jobs", get(jobs::list))
        .route("/kron/v1/workers", get(workers::list))
        .route("/kron/v1/workers/{id}", put(workers::direct));
    if app.test_mode {
        router = router
            .route("/ojs/v1/admin/reset", post(test_mode::reset))
            .route("/kron/v1/test/clock", get(test_mode::clock).put(test_mode::set_clock));
    }
    router
        .fallback(|| async { http::no_such_path() })
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), http::finish))
        .with_state(app)
}
