//! The servers that share a database.

use std::sync::Arc;

use axum::extract::State;
use serde_json::{Value, json};

use crate::app::App;
use crate::http::{Answer, Reply};
use crate::store::Cluster;
use crate::times::stamp;

pub(super) async fn info(State(app): State<Arc<App>>) -> Answer {
    let Cluster { node, leader, nodes, next_look } = app.store.cluster().await?;
    let now = app.clock.now();
    // How long something has been due that nobody has looked at.
    let lag = next_look.map_or(0, |look| now.duration_since(look).as_millis().max(0));
    let leads = |id: &str| leader.as_ref().is_some_and(|leader| leader.node == id);
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|it| {
            json!({
                "id": it.id, "address": it.address, "version": it.version, "started_at": stamp(it.started_at),
                "seen_at": stamp(it.seen_at), "state": if it.is_silent { "silent" } else { "alive" },
                "leads": leads(&it.id),
            })
        })
        .collect();
    let leader = leader.as_ref().map(|it| {
        json!({
            "node": it.node, "epoch": it.epoch, "since": stamp(it.since), "expires_in_ms": it.expires_in_ms,
        })
    });
    Ok(Reply::ok(&json!({
        "backend": app.store.backend(), "node": node, "leader": leader, "nodes": nodes, "lag_ms": lag,
    })))
}
