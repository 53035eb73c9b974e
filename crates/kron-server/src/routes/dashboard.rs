//! The web page, and the stream that tells it when something has changed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request as Asked, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream;
use kron_dashboard::{MOUNT, Refused, Reply, Request, frame};
use tokio::runtime::Handle;

use crate::app::App;
use crate::board::{Access, ServerBoard};
use crate::gate::Need;
use crate::http::Door;
use crate::refusal::Refusal;
use crate::token::Scope;

/// The largest body: a definition with its arguments.
const BODY_BYTES_MAX: usize = 1 << 20;

/// How often a page is told at most, and at least.
const PAUSE: Duration = Duration::from_millis(400);
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) fn router(door: Arc<Door>) -> Router<Arc<App>> {
    let below = format!("{MOUNT}{{*path}}");
    Router::new()
        .route(MOUNT.trim_end_matches('/'), any(answer))
        .route(MOUNT, any(answer))
        .route(&below, any(answer))
        .with_state(door)
}

/// What a caller may do, by the scopes of the token that they show.
async fn access(door: &Door, headers: &HeaderMap) -> Result<Access, Refusal> {
    let now = door.app.clock.now();
    door.gate.admit(Need::Scope(Scope::Read), headers, now).await?;
    let run = door.gate.admit(Need::Scope(Scope::Enqueue), headers, now).await.is_ok();
    let change = door.gate.admit(Need::Scope(Scope::Admin), headers, now).await.is_ok();
    Ok(Access { see: true, run, change })
}

async fn answer(State(door): State<Arc<Door>>, asked: Asked) -> Response {
    let app = Arc::clone(&door.app);
    let (parts, body) = asked.into_parts();
    let Ok(body) = axum::body::to_bytes(body, BODY_BYTES_MAX).await else {
        let message = format!("expected at most {BODY_BYTES_MAX} bytes");
        return whole(&kron_dashboard::Response::refused(&Refused::new(413, "too_large", message)));
    };
    let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let mut request = Request {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers.iter().map(header).collect(),
        body: body.to_vec(),
    };
    // A request may name its host in its first line instead.
    if let Some(authority) = parts.uri.authority() {
        request.headers.retain(|(name, _)| name != "host");
        request.headers.push(("host".into(), authority.to_string()));
    }
    // The page itself says nothing that is not public; what it asks for does.
    let access = match access(&door, &parts.headers).await {
        Ok(access) => access,
        Err(refusal) if request.path.contains("/api/") => {
            return whole(&kron_dashboard::Response::refused(&refusal.into()));
        }
        Err(_) => Access { see: false, run: false, change: false },
    };
    let answering = tokio::task::spawn_blocking({
        let app = Arc::clone(&app);
        // It may count the starts of very many cron jobs, which is no work for the threads that serve.
        let board = ServerBoard::new(Arc::clone(&app), access, Handle::current());
        move || app.dashboard.answer(&board, &request)
    });
    match answering.await {
        Ok(Reply::Whole(response)) => whole(&response),
        Ok(Reply::Live) => live(&app),
        Err(error) => {
            tracing::error!(%error, "the dashboard failed");
            let refused = Refused::new(500, "failed", "the server failed").hint("its log says why");
            whole(&kron_dashboard::Response::refused(&refused))
        }
    }
}

fn whole(answer: &kron_dashboard::Response) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Body::from(Bytes::from(answer.body.to_vec()))).into_response();
    response.headers_mut().clear();
    for (name, value) in answer.headers() {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Tells the number of the last event whenever there is a new one.
fn live(app: &App) -> Response {
    let told = app.store.last_event();
    let ending = app.ending.clone();
    let frames = stream::unfold((told, ending, true), |(mut told, mut ending, is_first)| async move {
        if is_first {
            let revision = *told.borrow_and_update();
            return Some((Ok::<_, Infallible>(frame(revision)), (told, ending, false)));
        }
        tokio::time::sleep(PAUSE).await;
        let sent = tokio::select! {
            changed = told.changed() => {
                changed.ok()?;
                frame(*told.borrow_and_update())
            }
            () = tokio::time::sleep(KEEP_ALIVE) => ": still here\n\n".to_owned(),
            _ = ending.wait_for(|ending| *ending) => return None,
        };
        Some((Ok(sent), (told, ending, false)))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, axum::http::HeaderValue::from_static(value));
    }
    response
}
