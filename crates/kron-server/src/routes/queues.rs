//! Queues: list, count, pause, resume.

use std::sync::Arc;

use axum::extract::State;

use crate::app::App;
use crate::envelope::check_queue;
use crate::http::{Answer, MaybeInput, ok};
use crate::object::Object;
use crate::store::Queue;
use crate::times::stamp;

use super::page::{Named, Params};

pub(super) async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let (queues, page) = app.store.queues(params.page()?).await?;
    let views: Vec<Object> = queues.iter().map(view).collect();
    ok(&Object::new().with("queues", &views).with("pagination", &page.view()))
}

pub(super) async fn stats(State(app): State<Arc<App>>, Named(name): Named) -> Answer {
    check_queue(&name)?;
    let now = app.clock.now();
    let (queue, states) = app.store.queue_stats(&name, now).await?;
    let mut counts = Object::new();
    for (state, count) in states {
        counts = counts.with(state.name(), &count);
    }
    let view = view(&queue).and(&counts).with("paused", &queue.paused);
    ok(&Object::new().with("queue", &view).with("stats", &counts).with("computed_at", &stamp(now)))
}

pub(super) async fn pause(
    State(app): State<Arc<App>>,
    Named(name): Named,
    MaybeInput(_): MaybeInput,
) -> Answer {
    set_paused(&app, &name, true).await
}

pub(super) async fn resume(
    State(app): State<Arc<App>>,
    Named(name): Named,
    MaybeInput(_): MaybeInput,
) -> Answer {
    set_paused(&app, &name, false).await
}

async fn set_paused(app: &App, name: &str, paused: bool) -> Answer {
    check_queue(name)?;
    let queue = app.store.pause(name, paused, app.clock.now()).await?;
    ok(&Object::new().with("queue", &view(&queue).with("paused", &queue.paused)))
}

fn view(queue: &Queue) -> Object {
    Object::new()
        .with("name", &queue.name)
        .with("status", &if queue.paused { "paused" } else { "active" })
        .with("created_at", &stamp(queue.created_at))
}
