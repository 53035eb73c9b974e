//! Paths and what they lead to: one table, from which the router and the OpenAPI document are made.
//!
//! Each file below holds the handlers of one kind of thing.

mod cluster;
mod cron;
mod dashboard;
mod dead_letter;
mod events;
mod jobs;
mod meta;
mod page;
mod queues;
mod test_mode;
mod webhooks;
mod workers;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, patch, post, put};

use crate::app::App;
use crate::gate::Need;
use crate::http::{self, Door};
use crate::token::Scope;

/// One method of one path.
pub struct Route {
    /// What it asks of whoever uses it.
    pub needs: Need,
    /// The method, in small letters.
    pub method: &'static str,
    /// The path, with its variables in braces.
    pub path: &'static str,
    /// Its name for programs.
    pub id: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// The parameters of its query, by their names in the OpenAPI document.
    pub query: &'static [&'static str],
    /// What its body is, if it takes one, by its name in the OpenAPI document.
    pub body: Option<Body>,
    /// What it answers when all is well: the status, and the name of what is in the body.
    pub answers: &'static [(u16, &'static str)],
    /// How else it may refuse, beside what every route may.
    pub refusals: &'static [u16],
    handler: MethodRouter<Arc<App>>,
}

/// What a request's body is.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// An object of that name may be sent.
    Maybe(&'static str),
    /// An object of that name must be sent.
    Needed(&'static str),
}

/// Everything that the server answers.
#[must_use]
#[rustfmt::skip]
pub fn table(test_mode: bool) -> Vec<Route> {
    use Body::{Maybe, Needed};
    let (open, read, enqueue) = (Need::Nothing, Need::Scope(Scope::Read), Need::Scope(Scope::Enqueue));
    let (work, admin) = (Need::Scope(Scope::Work), Need::Scope(Scope::Admin));
    let page: &[&str] = &["limit", "cursor", "offset"];
    let route = |needs, method, path, id, summary, handler: MethodRouter<Arc<App>>| Route {
        needs, method, path, id, summary, query: &[], body: None, answers: &[], refusals: &[], handler,
    };
    let mut table = vec![
        Route { answers: &[(200, "Manifest")],
            ..route(open, "get", "/ojs/manifest", "manifest", "What this server is and can do", get(meta::manifest)) },
        Route { answers: &[(200, "Health")], refusals: &[503],
            ..route(open, "get", "/ojs/v1/health", "health", "How the server does", get(meta::health)) },
        Route { answers: &[(200, "Metrics")],
            ..route(read, "get", "/kron/v1/metrics", "metrics", "Everything that is counted, as Prometheus reads it", get(meta::metrics)) },
        Route { answers: &[(200, "OpenApi")],
            ..route(open, "get", "/openapi.json", "openapi", "This document", get(meta::openapi)) },

        Route { answers: &[(200, "ErrorCatalogue")],
            ..route(open, "get", crate::refusal::DOCS, "errors", "The errors that answers name, and what to do about each", get(meta::errors)) },

        Route { body: Some(Needed("NewJob")), answers: &[(201, "JobAnswer")], refusals: &[409, 413, 422],
            ..route(enqueue, "post", "/ojs/v1/jobs", "push", "Push a job", post(jobs::push)) },
        Route { body: Some(Needed("NewJobs")), answers: &[(201, "JobBatch")], refusals: &[409, 413, 422],
            ..route(enqueue, "post", "/ojs/v1/jobs/batch", "pushBatch", "Push many jobs: all of them, or none", post(jobs::push_batch)) },
        Route { answers: &[(200, "JobAnswer")], refusals: &[404],
            ..route(read, "get", "/ojs/v1/jobs/{id}", "job", "A job", get(jobs::info)) },
        Route { answers: &[(200, "JobAnswer")], refusals: &[404, 409],
            ..route(enqueue, "delete", "/ojs/v1/jobs/{id}", "cancel", "Cancel a job that has not ended", delete(jobs::cancel)) },
        Route { body: Some(Maybe("Anything")), answers: &[(200, "JobAnswer")], refusals: &[404, 409],
            ..route(enqueue, "post", "/ojs/v1/jobs/{id}/activate", "activate", "Make a pending job available", post(jobs::activate)) },
        Route { answers: &[(200, "Progress")], refusals: &[404],
            ..route(read, "get", "/ojs/v1/jobs/{id}/progress", "progress", "How far a job is", get(jobs::progress)) },
        Route { body: Some(Needed("NewProgress")), answers: &[(200, "Progress")], refusals: &[404],
            ..route(work, "put", "/ojs/v1/jobs/{id}/progress", "report", "Say how far a job is", put(jobs::report)) },
        Route { query: &["after", "types"], answers: &[(200, "EventStream")], refusals: &[404],
            ..route(read, "get", "/ojs/v1/jobs/{id}/events", "jobEvents", "Follow what happens to a job", get(events::of_job)) },

        Route { body: Some(Needed("Fetch")), answers: &[(200, "Fetched")],
            ..route(work, "post", "/ojs/v1/workers/fetch", "fetch", "Take jobs to work on", post(workers::fetch)) },
        Route { body: Some(Needed("Ack")), answers: &[(200, "Verdict")], refusals: &[404, 409],
            ..route(work, "post", "/ojs/v1/workers/ack", "ack", "Say that a job is done", post(workers::ack)) },
        Route { body: Some(Needed("Nack")), answers: &[(200, "Verdict")], refusals: &[404, 409],
            ..route(work, "post", "/ojs/v1/workers/nack", "nack", "Say that a job failed", post(workers::nack)) },
        Route { body: Some(Needed("Heartbeat")), answers: &[(200, "HeartbeatAnswer")],
            ..route(work, "post", "/ojs/v1/workers/heartbeat", "heartbeat", "Say that a worker is still there", post(workers::beat)) },

        Route { query: page, answers: &[(200, "Queues")],
            ..route(read, "get", "/ojs/v1/queues", "queues", "Known queues", get(queues::list)) },
        Route { answers: &[(200, "QueueAnswer")],
            ..route(read, "get", "/ojs/v1/queues/{queue}/stats", "queueStats", "How many jobs of a queue are in which state", get(queues::stats)) },
        Route { body: Some(Maybe("Anything")), answers: &[(200, "QueueAnswer")],
            ..route(admin, "post", "/ojs/v1/queues/{queue}/pause", "pauseQueue", "Stop handing out the jobs of a queue", post(queues::pause)) },
        Route { body: Some(Maybe("Anything")), answers: &[(200, "QueueAnswer")],
            ..route(admin, "post", "/ojs/v1/queues/{queue}/resume", "resumeQueue", "Hand out the jobs of a queue again", post(queues::resume)) },
        Route { query: &["after", "types"], answers: &[(200, "EventStream")],
            ..route(read, "get", "/ojs/v1/queues/{queue}/events", "queueEvents", "Follow what happens in a queue", get(events::of_queue)) },

        Route { query: &["queue", "type", "limit", "cursor", "offset"], answers: &[(200, "Jobs")],
            ..route(read, "get", "/ojs/v1/dead-letter", "deadLetters", "Jobs that failed for good and were kept", get(dead_letter::list)) },
        Route { answers: &[(200, "DeadLetterStats")],
            ..route(read, "get", "/ojs/v1/dead-letter/stats", "deadLetterStats", "Dead letters, summed up", get(dead_letter::stats)) },
        Route { answers: &[(200, "JobAnswer")], refusals: &[404],
            ..route(read, "get", "/ojs/v1/dead-letter/{id}", "deadLetter", "A dead letter", get(dead_letter::info)) },
        Route { answers: &[(200, "Deleted")], refusals: &[404],
            ..route(admin, "delete", "/ojs/v1/dead-letter/{id}", "deleteDeadLetter", "Remove a dead letter for good", delete(dead_letter::delete)) },
        Route { body: Some(Maybe("Anything")), answers: &[(200, "JobAnswer")], refusals: &[404],
            ..route(admin, "post", "/ojs/v1/dead-letter/{id}/retry", "retryDeadLetter", "Try a dead letter anew", post(dead_letter::retry)) },

        Route { query: &["enabled", "limit", "cursor", "offset"], answers: &[(200, "CronJobs")],
            ..route(read, "get", "/ojs/v1/cron", "cronJobs", "Cron jobs; all of them unless a page is asked for", get(cron::list)) },
        Route { body: Some(Needed("NewCronJob")), answers: &[(201, "CronAnswer"), (200, "CronAnswer")], refusals: &[413, 422],
            ..route(admin, "post", "/ojs/v1/cron", "registerCron", "Register a cron job, or change the one of that name", post(cron::register)) },
        Route { answers: &[(200, "CronAnswer")], refusals: &[404],
            ..route(read, "get", "/ojs/v1/cron/{name}", "cronJob", "A cron job", get(cron::info)) },
        Route { body: Some(Needed("CronChange")), answers: &[(200, "CronAnswer")], refusals: &[404, 413, 422],
            ..route(admin, "patch", "/ojs/v1/cron/{name}", "changeCron", "Change some members of a cron job, such as enabled", patch(cron::patch)) },
        Route { answers: &[(200, "CronAnswer")], refusals: &[404],
            ..route(admin, "delete", "/ojs/v1/cron/{name}", "unregisterCron", "Remove a cron job; its jobs stay", delete(cron::unregister)) },

        Route { query: &["after", "types", "queues", "job_types", "limit"], answers: &[(200, "Events")],
            ..route(read, "get", "/ojs/v1/events", "events", "What happened, oldest first; as a stream if Accept says text/event-stream", get(events::poll)) },
        Route { query: &["after", "types", "queues", "job_types", "channel"], answers: &[(200, "EventStream")],
            ..route(read, "get", "/ojs/v1/events/stream", "eventStream", "Follow what happens", get(events::stream)) },

        Route { query: &["count"], body: Some(Needed("CronPreview")), answers: &[(200, "Preview")], refusals: &[413, 422],
            ..route(read, "post", "/kron/v1/cron/preview", "previewCron", "What a cron job would do, and what would change", post(cron::preview)) },
        Route { query: &["from", "to", "limit", "cursor"], answers: &[(200, "Occurrences")], refusals: &[404],
            ..route(read, "get", "/kron/v1/cron/{name}/occurrences", "occurrences", "Every due instant, past and future, with its outcome and reason", get(cron::occurrences)) },
        Route { query: &["at"], answers: &[(200, "Why")], refusals: &[404],
            ..route(read, "get", "/kron/v1/cron/{name}/why", "why", "Why a cron job did or did not run at a time", get(cron::why)) },
        Route { body: Some(Maybe("Anything")), answers: &[(201, "JobAnswer")], refusals: &[404],
            ..route(enqueue, "post", "/kron/v1/cron/{name}/run", "runCron", "Run a cron job now, beside its schedule", post(cron::run)) },
        Route { query: &["state", "queue", "type", "cron", "limit", "cursor", "offset"], answers: &[(200, "Jobs")],
            ..route(read, "get", "/kron/v1/jobs", "jobs", "Jobs, the newest first", get(jobs::list)) },
        Route { answers: &[(200, "Cluster")],
            ..route(read, "get", "/kron/v1/cluster", "cluster", "The servers that share the database, and which evaluates cron jobs", get(cluster::info)) },
        Route { query: page, answers: &[(200, "Workers")],
            ..route(read, "get", "/kron/v1/workers", "workers", "Workers that sent heartbeats", get(workers::list)) },
        Route { body: Some(Needed("WorkerDirection")), answers: &[(200, "WorkerAnswer")], refusals: &[404, 409],
            ..route(admin, "put", "/kron/v1/workers/{worker}", "directWorker", "Tell a worker what to do at its next heartbeat", put(workers::direct)) },
        Route { body: Some(Maybe("Anything")), answers: &[(200, "ZonesRefreshed")],
            ..route(admin, "post", "/kron/v1/timezones/refresh", "refreshTimeZones", "Read time zone data again, and tell which cron jobs now run at another time", post(meta::refresh_zones)) },

        Route { answers: &[(200, "Webhooks")],
            ..route(admin, "get", "/kron/v1/webhooks", "webhooks", "Who is told of events", get(webhooks::list)) },
        Route { body: Some(Needed("NewWebhook")), answers: &[(201, "WebhookSecret")], refusals: &[409],
            ..route(admin, "post", "/kron/v1/webhooks", "addWebhook", "Have somebody told of events; the answer alone shows the secret", post(webhooks::add)) },
        Route { answers: &[(200, "WebhookAnswer")], refusals: &[404],
            ..route(admin, "get", "/kron/v1/webhooks/{webhook}", "webhook", "A webhook, and how it does", get(webhooks::info)) },
        Route { body: Some(Needed("WebhookChange")), answers: &[(200, "WebhookAnswer")], refusals: &[404],
            ..route(admin, "patch", "/kron/v1/webhooks/{webhook}", "changeWebhook", "Change some members of a webhook", patch(webhooks::change)) },
        Route { answers: &[(200, "WebhookAnswer")], refusals: &[404],
            ..route(admin, "delete", "/kron/v1/webhooks/{webhook}", "removeWebhook", "Have somebody told no more", delete(webhooks::remove)) },
        Route { answers: &[(200, "Deliveries")], refusals: &[404],
            ..route(admin, "get", "/kron/v1/webhooks/{webhook}/deliveries", "deliveries", "What became of the last events that a webhook was told of", get(webhooks::deliveries)) },
        Route { body: Some(Maybe("Anything")), answers: &[(200, "WebhookSecret")], refusals: &[404],
            ..route(admin, "post", "/kron/v1/webhooks/{webhook}/secret", "renewSecret", "Sign with another secret from now on; the answer alone shows it", post(webhooks::renew_secret)) },
        Route { body: Some(Maybe("Anything")), answers: &[(200, "DeliveryAnswer")], refusals: &[404],
            ..route(admin, "post", "/kron/v1/webhooks/{webhook}/test", "testWebhook", "Send an event that never happened, and say what came of it", post(webhooks::test)) },
    ];
    if test_mode {
        table.extend([
            route(admin, "post", "/ojs/v1/admin/reset", "reset", "Forget everything", post(test_mode::reset)),
            route(admin, "get", "/kron/v1/test/clock", "clock", "The server's clock", get(test_mode::clock)),
            route(admin, "put", "/kron/v1/test/clock", "setClock", "Set the server's clock", put(test_mode::set_clock)),
        ]);
    }
    table
}

/// The table as a service.
pub fn router(door: &Arc<Door>) -> Router {
    let app = Arc::clone(&door.app);
    let mut router = Router::new();
    for route in table(app.test_mode) {
        let admit = from_fn_with_state((Arc::clone(door), route.needs), http::admit);
        router = router.route(route.path, route.handler.route_layer(admit));
    }
    router
        .route("/healthz", get(meta::health))
        .route("/readyz", get(meta::health))
        .merge(dashboard::router(Arc::clone(door)))
        .fallback(|| async { http::no_such_path() })
        .layer(from_fn_with_state(Arc::clone(door), http::finish))
        .layer(from_fn_with_state(Arc::clone(&app), http::count))
        .with_state(app)
}
