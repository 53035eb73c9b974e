//! HTTP around the routes: what every request may bring and every answer carries.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use hyper::body::{Frame, SizeHint};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument as _;

use crate::app::App;
use crate::clock::instant;
use crate::envelope::new_id;
use crate::gate::{AUDIT, Failures, Gate, Need, Who, challenge};
use crate::hosts::Hosts;
use crate::listen::Arrival;
use crate::members::{Members, excerpt};
use crate::metrics;
use crate::object::Object;
use crate::refusal::{Code, Refusal};
use crate::token::Scope;

/// The media type of every answer, to the letter.
pub const MEDIA_TYPE: &str = "application/openjobspec+json";

/// The version that is spoken.
const VERSION: &str = "1.0";

/// The longest request id that is taken over.
const REQUEST_ID_CHARS_MAX: usize = 200;

/// What every request passes on its way in.
#[derive(Debug)]
pub struct Door {
    /// Where it leads.
    pub app: Arc<App>,
    /// Who may pass.
    pub gate: Arc<Gate>,
    /// The names by which the server may be called.
    pub hosts: Hosts,
    /// Those who may not, in the log.
    pub failures: Failures,
}

/// What a handler answers.
pub type Answer = Result<Reply, Refusal>;

/// An answer.
pub struct Reply {
    status: StatusCode,
    body: String,
    location: Option<String>,
    cargo: Option<Box<dyn Cargo>>,
}

/// Something that an answer brings, and that hears of it when the answer has left. If it never does, it is dropped.
pub trait Cargo: Send + 'static {
    /// The answer is on its way to the client.
    fn sent(&mut self);
}

impl Reply {
    /// 200 with a body.
    pub fn ok(body: &impl Serialize) -> Reply {
        Reply::new(StatusCode::OK, body)
    }

    /// 201 with a body.
    pub fn created(body: &impl Serialize) -> Reply {
        Reply::new(StatusCode::CREATED, body)
    }

    /// Any status with a body.
    pub fn new(status: StatusCode, body: &impl Serialize) -> Reply {
        let body = serde_json::to_string(body).expect("strings, numbers and maps of them are JSON");
        Reply { status, body, location: None, cargo: None }
    }

    /// The same, with something that must know whether it was sent.
    #[must_use]
    pub fn unless_lost(mut self, cargo: impl Cargo) -> Reply {
        self.cargo = Some(Box::new(cargo));
        self
    }

    /// The same, saying where the new thing is.
    #[must_use]
    pub fn at(mut self, path: String) -> Reply {
        self.location = Some(path);
        self
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let body = match self.cargo {
            None => Body::from(self.body),
            Some(cargo) => Body::new(Freight { body: Some(self.body.into()), cargo }),
        };
        let mut response = (self.status, body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(location) = self.location.and_then(|path| HeaderValue::from_str(&path).ok()) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}

/// The body of an answer that brings something.
struct Freight {
    /// None once it is sent.
    body: Option<Bytes>,
    cargo: Box<dyn Cargo>,
}

impl hyper::body::Body for Freight {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let body = self.body.take();
        if body.is_some() {
            self.cargo.sent();
        }
        Poll::Ready(body.map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.as_ref().map_or(0, |body| body.len() as u64))
    }
}

/// A refusal is written into its answer by [`finish`], which knows the id of the request.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The body of a request: an object, of which nothing is lost.
#[derive(Debug)]
pub struct Input(pub Members);

/// The body of a request that may have none.
#[derive(Debug)]
pub struct MaybeInput(pub Members);

impl<S: Sync> FromRequest<S> for Input {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Input, Refusal> {
        Members::read(&read_body(request).await?).map(Input)
    }
}

impl<S: Sync> FromRequest<S> for MaybeInput {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<MaybeInput, Refusal> {
        let body = read_body(request).await?;
        if body.is_empty() {
            return Ok(MaybeInput(Members::default()));
        }
        Members::read(&body).map(MaybeInput)
    }
}

async fn read_body(request: Request) -> Result<Bytes, Refusal> {
    let (parts, body) = request.into_parts();
    let limits = &arrival(&parts.extensions)?.limits;
    let most = if parts.uri.path().ends_with("/batch") { limits.batch_bytes } else { limits.body_bytes };
    let body = whole_body(&parts, body, most).await?;
    let is_json = |value: &HeaderValue| {
        let kind = value.to_str().unwrap_or("").split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        kind == MEDIA_TYPE || kind == "application/json"
    };
    match parts.headers.get(header::CONTENT_TYPE) {
        Some(value) if !body.is_empty() && !is_json(value) => Err(Refusal::request(format!(
            "expected the content type {MEDIA_TYPE}, but found {}",
            excerpt(value.to_str().unwrap_or("something unreadable"))
        ))
        .field("Content-Type")
        .hint("curl: add -H 'Content-Type: application/json'")),
        _ => Ok(body),
    }
}

/// All of a body, unless it is too large or too slow.
pub(crate) async fn whole_body(parts: &Parts, body: Body, most: usize) -> Result<Bytes, Refusal> {
    let (arrival, room) = (arrival(&parts.extensions)?, parts.extensions.get::<Room>());
    let limits = &arrival.limits;
    let length =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if let Some(length) = length.filter(|length: &usize| *length > most) {
        return Err(too_large(most, &length.to_string()).detail("actual_bytes", length.into()));
    }
    tokio::time::timeout(limits.body, gather(body, most, room)).await.map_err(|_| {
        let message = format!("expected the whole body within {} s", limits.body.as_secs_f64());
        Refusal::new(Code::Slow, message)
    })?
}

async fn gather(body: Body, most: usize, room: Option<&Room>) -> Result<Bytes, Refusal> {
    let mut parts = body.into_data_stream();
    let mut gathered = Vec::new();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| Refusal::payload(format!("the body broke off: {error}")))?;
        if gathered.len() + part.len() > most {
            return Err(too_large(most, "more"));
        }
        if let Some(room) = room {
            room.take(part.len())?;
        }
        gathered.extend_from_slice(&part);
    }
    Ok(gathered.into())
}

fn too_large(most: usize, found: &str) -> Refusal {
    Refusal::new(Code::EnvelopeTooLarge, format!("expected at most {most} bytes, but found {found}"))
        .detail("max_bytes", most.into())
}

/// The room that the body of a request takes up until it has been answered.
#[derive(Clone, Debug)]
struct Room {
    all: Arc<Semaphore>,
    own: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Room {
    fn take(&self, bytes: usize) -> Result<(), Refusal> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        // Whoever waited for room while holding some could wait for ever.
        let more = Arc::clone(&self.all).try_acquire_many_owned(bytes).map_err(|_| {
            Refusal::new(Code::BackendUnavailable, "too many large requests are being handled at once")
        })?;
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        match own.as_mut() {
            Some(own) => own.merge(more),
            None => *own = Some(more),
        }
        Ok(())
    }
}

/// The name of a request, in answers and in the log.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

/// An answer that is no Open Job Spec: its body, its kind and its refusals are its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign;

pub(crate) fn arrival(extensions: &axum::http::Extensions) -> Result<&Arrival, Refusal> {
    extensions.get().ok_or_else(|| Refusal::new(Code::BackendError, "the request came in by no connection"))
}

/// What every request goes through on its way in, and every answer on its way out.
pub async fn finish(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response {
    let request_id = request_id(&request, &door.app);
    let (method, path) = (request.method().clone(), seen(request.uri().path()));
    let peer = request.extensions().get::<Arrival>().map(|arrival| arrival.peer);
    let mut response = match check(&door, &request) {
        Ok(room) => {
            request.extensions_mut().insert(RequestId(request_id.as_str().into()));
            request.extensions_mut().insert(room.clone());
            let response = next.run(request).await;
            drop(room);
            response
        }
        Err(refusal) => refusal.into_response(),
    };
    let is_foreign = response.extensions().get::<Foreign>().is_some();
    let refusal = response.extensions_mut().remove::<Refusal>();
    let refusal = refusal.or_else(|| if is_foreign { None } else { of_status(response.status()) });
    if let Some(refusal) = refusal {
        if refusal.code == Code::BackendError {
            tracing::error!(request_id, error = refusal.message, "a request failed");
        }
        let is_forbidden =
            matches!(refusal.code, Code::Misdirected | Code::PermissionDenied | Code::Unauthenticated);
        if is_forbidden && let Some(left_out) = door.failures.next(instant()) {
            let (why, peer) = (&refusal.message, peer.map(|peer| peer.to_string()).unwrap_or_default());
            tracing::warn!(target: AUDIT, peer, %method, path, request_id, why, left_out, "refused");
        }
        if !is_foreign {
            response = told(&refusal, response, &request_id, method == Method::HEAD);
        }
    }
    let headers = response.headers_mut();
    let kept = headers.get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.as_bytes().starts_with(b"text/event-stream") || kind == MEDIA_TYPE || kind == metrics::MEDIA_TYPE
    });
    if !kept && !is_foreign {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    }
    if !is_foreign {
        headers.insert("ojs-version", HeaderValue::from_static(VERSION));
    }
    if let Ok(id) = HeaderValue::from_str(&request_id) {
        headers.insert("x-request-id", id);
    }
    protect(headers);
    response
}

/// Tells browsers not to make anything of an answer but what it is.
fn protect(headers: &mut HeaderMap) {
    const PROTECTION: [(HeaderName, &str); 4] = [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in PROTECTION {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// What is checked before anybody looks at what is asked.
fn check(door: &Door, request: &Request) -> Result<Room, Refusal> {
    let arrival = arrival(request.extensions())?;
    let headers = request.headers();
    door.hosts.check(request.uri(), headers, arrival.local)?;
    door.hosts.check_origin(request.method(), headers, arrival.local)?;
    check_version(headers)?;
    // What is not unpacked cannot be larger than it looks.
    for encoding in headers.get_all(header::CONTENT_ENCODING) {
        let encoding = encoding.to_str().unwrap_or("something unreadable");
        if !encoding.trim().eq_ignore_ascii_case("identity") {
            let message =
                format!("expected a body without a Content-Encoding, but found {}", excerpt(encoding));
            return Err(Refusal::new(Code::Encoded, message).field("Content-Encoding"));
        }
    }
    Ok(Room { all: Arc::clone(&arrival.bodies), own: Arc::default() })
}

/// A refusal as an answer.
fn told(refusal: &Refusal, mut response: Response, request_id: &str, is_head: bool) -> Response {
    let body = refusal.body(request_id).to_string();
    let allow = response.headers_mut().remove(header::ALLOW);
    let mut response =
        (response.status(), if is_head { Body::empty() } else { Body::from(body) }).into_response();
    let headers = response.headers_mut();
    if let Some(allow) = allow {
        headers.insert(header::ALLOW, allow);
    }
    if let Some(challenge) = challenge(refusal).and_then(|text| HeaderValue::from_str(&text).ok()) {
        headers.insert(header::WWW_AUTHENTICATE, challenge);
    }
    if refusal.code == Code::BackendUnavailable {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if refusal.code == Code::Slow {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Lets a request through to its route, if whoever sent it may do what it asks for.
pub async fn admit(State((door, need)): State<(Arc<Door>, Need)>, request: Request, next: Next) -> Response {
    let arrival = match arrival(request.extensions()) {
        Ok(arrival) => arrival,
        Err(refusal) => return refusal.into_response(),
    };
    if arrival.glance && need != Need::Nothing {
        return Refusal::new(Code::BackendUnavailable, "there are too many connections").into_response();
    }
    let peer = arrival.peer;
    let who = match door.gate.admit(need, request.headers(), door.app.clock.now()).await {
        Ok(who) => who,
        Err(refusal) => return refusal.into_response(),
    };
    if need == Need::Nothing {
        return next.run(request).await;
    }
    if need != Need::Scope(Scope::Admin) {
        return until_shut(door, who, next.run(request).await);
    }
    let (method, path) = (request.method().clone(), seen(request.uri().path()));
    let request_id = request.extensions().get::<RequestId>().map(|id| Arc::clone(&id.0)).unwrap_or_default();
    let response = next.run(request).await;
    let (by, status) = (who.name(), response.status().as_u16());
    tracing::info!(target: AUDIT, by, %peer, %method, path, status, request_id = &*request_id, "an admin act");
    response
}

/// An answer that goes on and on ends when whoever gets it may not have it any more.
pub(crate) fn until_shut(door: Arc<Door>, who: Who, response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    let shut = async move { door.gate.until_shut(&who, &door.app).await };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(shut))))
}

/// The most characters of a path that go into the log.
const PATH_CHARS_MAX: usize = 200;

pub(crate) fn seen(path: &str) -> String {
    path.chars().take(PATH_CHARS_MAX).collect()
}

/// Counts every answer, by the route that gave it. Paths are as many as clients can think of, and routes are not.
pub async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = instant();
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let method = match request.method() {
        method if METHODS.contains(method) => method.as_str().to_owned(),
        _ => "other".to_owned(),
    };
    let span = tracing::info_span!(
        target: "kron::span", "request", otel.name = format!("{method} {route}"), http.request.method = method,
        http.route = route, http.response.status_code = tracing::field::Empty, traceparent = traceparent(&request),
    );
    let response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", u64::from(response.status().as_u16()));
    app.metrics.answered(&method, &route, response.status().as_u16(), began.elapsed());
    response
}

/// The trace that a client began, as it wrote it.
fn traceparent(request: &Request) -> Option<&str> {
    request.headers().get("traceparent").and_then(|value| value.to_str().ok())
}

/// The methods that are told apart.
const METHODS: [Method; 6] =
    [Method::DELETE, Method::GET, Method::HEAD, Method::PATCH, Method::POST, Method::PUT];

/// What the framework itself refuses.
fn of_status(status: StatusCode) -> Option<Refusal> {
    let code = match status {
        StatusCode::NOT_FOUND => return Some(no_such_path()),
        StatusCode::METHOD_NOT_ALLOWED => {
            return Some(Refusal::new(Code::MethodNotAllowed, "this path does not have that method"));
        }
        status if status.is_client_error() => Code::InvalidRequest,
        status if status.is_server_error() => Code::BackendError,
        _ => return None,
    };
    Some(Refusal::new(code, status.canonical_reason().unwrap_or("refused").to_owned()))
}

/// The answer for paths that there are not.
#[must_use]
pub fn no_such_path() -> Refusal {
    Refusal::new(Code::NotFound, "this path does not exist")
}

fn request_id(request: &Request, app: &App) -> String {
    let given = request.headers().get("x-request-id").and_then(|value| value.to_str().ok());
    match given {
        Some(id) if !id.is_empty() && id.len() <= REQUEST_ID_CHARS_MAX => id.to_owned(),
        _ => format!("req_{}", new_id(app.clock.now())),
    }
}

fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(version) = headers.get("ojs-version") else { return Ok(()) };
    match version.to_str().unwrap_or("") {
        "1" | "1.0" | "1.0.0" | "1.0.0-rc.1" => Ok(()),
        other => Err(Refusal::new(
            Code::Unsupported,
            format!("expected OJS-Version {VERSION}, but found {}", excerpt(other)),
        )),
    }
}

/// An object in a reply of 200.
///
/// # Errors
///
/// Never; it is what handlers end with.
pub fn ok(object: &Object) -> Answer {
    Ok(Reply::ok(object))
}
