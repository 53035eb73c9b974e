//! HTTP around the routes: what every request may bring and every answer carries.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::app::App;
use crate::envelope::{ENVELOPE_BYTES_MAX, new_id};
use crate::members::{Members, excerpt};
use crate::object::Object;
use crate::refusal::{Code, Refusal};

/// The media type of every answer, to the letter.
pub const MEDIA_TYPE: &str = "application/openjobspec+json";

/// The largest body: a batch of many jobs.
pub const BODY_BYTES_MAX: usize = 16 * ENVELOPE_BYTES_MAX;

/// The version that is spoken.
const VERSION: &str = "1.0";

/// The longest request id that is taken over.
const REQUEST_ID_CHARS_MAX: usize = 200;

/// What a handler answers.
pub type Answer = Result<Reply, Refusal>;

/// An answer.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    body: String,
    location: Option<String>,
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
        Reply { status, body, location: None }
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
        let mut response = (self.status, self.body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(location) = self.location.and_then(|path| HeaderValue::from_str(&path).ok()) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
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
    let declared = request.headers().get(header::CONTENT_TYPE).cloned();
    let most = if request.uri().path().ends_with("/batch") { BODY_BYTES_MAX } else { ENVELOPE_BYTES_MAX };
    let too_large = |found: String| {
        Refusal::new(Code::EnvelopeTooLarge, format!("expected at most {most} bytes, but found {found}"))
            .detail("max_bytes", most.into())
    };
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if let Some(length) = length.filter(|length: &usize| *length > most) {
        return Err(too_large(length.to_string()).detail("actual_bytes", length.into()));
    }
    let body = axum::body::to_bytes(request.into_body(), most).await.map_err(|error| {
        let limited = std::error::Error::source(&error)
            .is_some_and(|source| source.to_string().contains("length limit"));
        if limited {
            too_large("more".into())
        } else {
            Refusal::payload(format!("the body broke off: {error}"))
        }
    })?;
    let is_json = |value: &HeaderValue| {
        let kind = value.to_str().unwrap_or("").split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        kind == MEDIA_TYPE || kind == "application/json"
    };
    match declared {
        Some(value) if !body.is_empty() && !is_json(&value) => Err(Refusal::request(format!(
            "expected the content type {MEDIA_TYPE}, but found {}",
            excerpt(value.to_str().unwrap_or("something unreadable"))
        ))
        .field("Content-Type")
        .hint("curl: add -H 'Content-Type: application/json'")),
        _ => Ok(body),
    }
}

/// What every request goes through on its way in, and every answer on its way out.
pub async fn finish(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let request_id = request_id(&request, &app);
    let is_head = request.method() == Method::HEAD;
    let mut response = match check_version(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    let refusal = response.extensions_mut().remove::<Refusal>().or_else(|| of_status(response.status()));
    if let Some(refusal) = refusal {
        let retry_later = refusal.code == Code::BackendUnavailable;
        if refusal.code == Code::BackendError {
            tracing::error!(request_id, error = refusal.message, "a request failed");
        }
        let body = refusal.body(&request_id).to_string();
        let allow = response.headers_mut().remove(header::ALLOW);
        response =
            (response.status(), if is_head { Body::empty() } else { Body::from(body) }).into_response();
        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, allow);
        }
        if retry_later {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
    }
    let headers = response.headers_mut();
    let kept = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream") || kind == MEDIA_TYPE);
    if !kept {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    }
    headers.insert("ojs-version", HeaderValue::from_static(VERSION));
    if let Ok(id) = HeaderValue::from_str(&request_id) {
        headers.insert("x-request-id", id);
    }
    response
}

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

fn check_version(request: &Request) -> Result<(), Refusal> {
    let Some(version) = request.headers().get("ojs-version") else { return Ok(()) };
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
