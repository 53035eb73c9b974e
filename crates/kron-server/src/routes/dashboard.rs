//! The web page, and the stream that tells it when something has changed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request as Asked, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream;
use kron_dashboard::{Act, Draft, MOUNT, Reply, Request, frame};
use tokio::runtime::Handle;

use crate::app::App;
use crate::board::{Access, ServerBoard};
use crate::gate::{AUDIT, Need, Who, challenge};
use crate::http::{self, Door, Foreign, RequestId};
use crate::refusal::{Code, Refusal};
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

/// The path of the calendar, which programs read that cannot sign in.
const CALENDAR: &str = "/dashboard/api/schedule.ics";

/// What a caller may do, by the scopes of the token that they show, and who they are.
async fn access(door: &Door, request: &Request, headers: &HeaderMap) -> Result<(Access, Who), Refusal> {
    let now = door.app.clock.now();
    if let Some(token) = request.param("token").filter(|_| request.path == CALENDAR) {
        return calendar_access(door, &token).await;
    }
    let who = door.gate.admit(Need::Scope(Scope::Read), headers, now).await?;
    let run = door.gate.admit(Need::Scope(Scope::Enqueue), headers, now).await.is_ok();
    let change = door.gate.admit(Need::Scope(Scope::Admin), headers, now).await.is_ok();
    Ok((Access { see: true, run, change }, who))
}

/// What an address allows that has a token in it: one that is for nothing else, since addresses are kept in histories,
/// logs of others and calendars.
async fn calendar_access(door: &Door, token: &str) -> Result<(Access, Who), Refusal> {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    headers.insert(header::AUTHORIZATION, value.unwrap_or_else(|_| HeaderValue::from_static("Bearer")));
    let wanted = "a token with the scope `calendar` and no other";
    let Some(token) = door.gate.owner(wanted, &headers, door.app.clock.now()).await? else {
        return Ok((Access::SEE, Who::Anybody));
    };
    if token.scopes != [Scope::Calendar] {
        let message = format!("expected {wanted} in the address, but `{}` is for more", token.name);
        return Err(Refusal::new(Code::PermissionDenied, message)
            .hint("make one with `kron-server token create --scope calendar`, and revoke the one that was shown here"));
    }
    Ok((Access::SEE, Who::Owner { name: token.name, hash: token.hash }))
}

async fn answer(State(door): State<Arc<Door>>, asked: Asked) -> Response {
    let is_head = asked.method() == Method::HEAD;
    let mut response = answered(door, asked).await.unwrap_or_else(|refusal| {
        // The log is told of it, and the page in its own words.
        let mut response = whole(&kron_dashboard::Response::refused(&refusal.clone().into()));
        if let Some(challenge) = challenge(&refusal).and_then(|text| HeaderValue::from_str(&text).ok()) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response.extensions_mut().insert(refusal);
        response
    });
    let code = match response.status() {
        StatusCode::FORBIDDEN => Some(Code::PermissionDenied),
        StatusCode::MISDIRECTED_REQUEST => Some(Code::Misdirected),
        _ => None,
    };
    if let Some(code) = code.filter(|_| response.extensions().get::<Refusal>().is_none()) {
        response.extensions_mut().insert(Refusal::new(code, "the dashboard refused it"));
    }
    if is_head {
        *response.body_mut() = Body::empty();
    }
    response.extensions_mut().insert(Foreign);
    response
}

async fn answered(door: Arc<Door>, asked: Asked) -> Result<Response, Refusal> {
    let app = Arc::clone(&door.app);
    let (parts, body) = asked.into_parts();
    let arrival = http::arrival(&parts.extensions)?;
    if arrival.glance {
        return Err(Refusal::new(Code::BackendUnavailable, "there are too many connections"));
    }
    let peer = arrival.peer;
    let body = http::whole_body(&parts, body, BODY_BYTES_MAX).await?;
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
    let is_api = request.path.contains("/api/");
    let (access, who) = match access(&door, &request, &parts.headers).await {
        Ok(known) => known,
        Err(refusal) if is_api => return Err(refusal),
        Err(_) => (Access::NONE, Who::Anybody),
    };
    let act = (parts.method == Method::POST).then(|| act_of(&request)).flatten();
    let answering = tokio::task::spawn_blocking({
        let app = Arc::clone(&app);
        // It may count the starts of very many cron jobs, which is no work for the threads that serve.
        let board = ServerBoard::new(Arc::clone(&app), access, Handle::current());
        move || app.dashboard.answer(&board, &request)
    });
    let response = match answering.await {
        Ok(Reply::Whole(response)) => whole(&response),
        Ok(Reply::Live) => http::until_shut(door, who.clone(), live(&app)),
        Err(error) => {
            tracing::error!(%error, "the dashboard failed");
            return Err(Refusal::new(Code::BackendError, "the server failed").hint("its log says why"));
        }
    };
    if let Some(what) = act {
        let (by, status, path) = (who.name(), response.status().as_u16(), http::seen(parts.uri.path()));
        let id = parts.extensions.get::<RequestId>().map(|id| Arc::clone(&id.0)).unwrap_or_default();
        let method = &parts.method;
        tracing::info!(target: AUDIT, by, %peer, %method, path, what, status, request_id = &*id, "an admin act");
    }
    Ok(response)
}

/// What a request would change, for the log: which act and of which job, but nothing else that was sent.
fn act_of(request: &Request) -> Option<String> {
    let unreadable = || "something unreadable".to_owned();
    let what = match request.path.rsplit('/').next()? {
        "act" => {
            serde_json::from_slice(&request.body).map_or_else(|_| unreadable(), |act: Act| format!("{act:?}"))
        }
        "save" => serde_json::from_slice(&request.body).map_or_else(
            |_| unreadable(),
            |draft: Draft| format!("Save {}", draft.fields.get("name").unwrap_or(&serde_json::Value::Null)),
        ),
        _ => return None,
    };
    Some(http::seen(&what))
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
