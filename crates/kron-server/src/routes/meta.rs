//! What this server is, and how it does.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::app::App;
use crate::clock::instant;
use crate::http::{Answer, MaybeInput, Reply, ok};
use crate::metrics::{self, Gauges};
use crate::refusal::{Code, Refusal};
use crate::store::PageRequest;

pub(super) async fn manifest(State(app): State<Arc<App>>) -> Answer {
    Ok(Reply::ok(&json!({
        "specversion": "1.0",
        "ojs_version": "1.0",
        "implementation": {
            "name": "kron-server",
            "version": env!("CARGO_PKG_VERSION"),
            "language": "rust",
        },
        "conformance_level": 2,
        "conformance_tier": "runtime",
        "protocols": ["http"],
        "backend": app.store.backend(),
        "capabilities": {
            "batch_enqueue": true,
            "cron_jobs": true,
            "dead_letter": true,
            "delayed_jobs": true,
            "job_ttl": true,
            "pause_resume": true,
            "priority_queues": true,
            "rate_limiting": false,
            "schema_validation": false,
            "unique_jobs": false,
            "workflows": false,
        },
        "extensions": ["urn:ojs:ext:progress", "urn:kron:ext:spread"],
        "endpoints": {"base_url": "/ojs/v1", "manifest": "/ojs/manifest", "health": "/ojs/v1/health"},
        "time_zones": app.zones.database().to_string(),
    })))
}

pub(super) async fn health(State(app): State<Arc<App>>) -> Answer {
    let asked = instant();
    let backend = app.store.ping().await;
    let latency = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (status, word) = match &backend {
        Ok(()) => (StatusCode::OK, "ok"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "degraded"),
    };
    let error = backend.err().map(|refusal| refusal.message);
    let body = json!({
        "status": word,
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": app.started.elapsed().as_secs(),
        "backend": {
            "type": app.store.backend(),
            "status": if error.is_none() { "ok" } else { "unhealthy" },
            "latency_ms": latency,
            "error": error,
        },
    });
    Ok(Reply::new(status, &body))
}

/// Everything that is counted, as Prometheus reads it.
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Refusal> {
    let one = || PageRequest { limit: Some(1), cursor: None, offset: 0 };
    let (_, enabled) = app.store.crons(Some(true), one()).await?;
    let (_, disabled) = app.store.crons(Some(false), one()).await?;
    let gauges = Gauges {
        jobs: app.store.census(metrics::QUEUES_MAX).await?,
        crons: [enabled.total, disabled.total],
        streams: app.feed.followers() as u64,
        uptime: app.started.elapsed().as_secs_f64(),
        backend: app.store.backend(),
        zones: app.zones.database().to_string(),
    };
    let kind = [(header::CONTENT_TYPE, metrics::MEDIA_TYPE)];
    Ok((kind, app.metrics.render(&gauges)).into_response())
}

/// Reads time zones again, and tells which cron jobs now run at another time. A client that goes away stops it nowhere.
pub(super) async fn refresh_zones(State(app): State<Arc<App>>, MaybeInput(_): MaybeInput) -> Answer {
    let refresh = tokio::spawn(async move { app.refresh_zones().await });
    ok(&refresh.await.map_err(|error| Refusal::backend(&error))??.view())
}

/// The catalogue that errors point to.
pub(super) async fn errors() -> Answer {
    let of = |code: &Code| {
        json!({
            "code": code.name(), "status": code.status(), "retryable": code.is_retryable(), "hint": code.hint(),
        })
    };
    Ok(Reply::ok(&json!({"errors": Code::ALL.iter().map(of).collect::<Vec<_>>()})))
}

pub(super) async fn openapi() -> Answer {
    Ok(Reply::ok(&crate::openapi::document()))
}
