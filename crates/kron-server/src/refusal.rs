//! What is refused, and how that is told: the catalogue of Open Job Spec's errors.

use serde_json::{Map, Value, json};

/// Where the catalogue can be read.
pub const DOCS: &str = "/docs/errors";

/// A request that is not carried out, written for the person who sent it.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// What kind of refusal it is.
    pub code: Code,
    /// What was expected and what was found.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where, and whatever else a program may want to know.
    pub details: Map<String, Value>,
}

/// The kinds of refusals. Each has its word and its HTTP status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Code {
    /// The store failed.
    BackendError,
    /// The store cannot be reached just now.
    BackendUnavailable,
    /// The state of things does not allow it.
    Conflict,
    /// The id is taken.
    Duplicate,
    /// The body is larger than is taken.
    EnvelopeTooLarge,
    /// The body is packed in a way that is not unpacked.
    Encoded,
    /// The body cannot be read.
    InvalidPayload,
    /// A member or parameter is wrong.
    InvalidRequest,
    /// No such method on that path.
    MethodNotAllowed,
    /// Meant for another host.
    Misdirected,
    /// No such thing.
    NotFound,
    /// Somebody who may not do this.
    PermissionDenied,
    /// The body took too long to come.
    Slow,
    /// Nobody knows who asks.
    Unauthenticated,
    /// Something that this server does not do.
    Unsupported,
    /// A retry policy is wrong.
    ValidationError,
}

impl Code {
    /// All of them.
    pub const ALL: [Code; 16] = [
        Code::BackendError,
        Code::BackendUnavailable,
        Code::Conflict,
        Code::Duplicate,
        Code::EnvelopeTooLarge,
        Code::Encoded,
        Code::InvalidPayload,
        Code::InvalidRequest,
        Code::MethodNotAllowed,
        Code::Misdirected,
        Code::NotFound,
        Code::PermissionDenied,
        Code::Slow,
        Code::Unauthenticated,
        Code::Unsupported,
        Code::ValidationError,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Code::BackendError => "backend_error",
            Code::BackendUnavailable => "backend_unavailable",
            Code::Conflict => "conflict",
            Code::Duplicate => "duplicate",
            Code::EnvelopeTooLarge => "envelope_too_large",
            Code::InvalidPayload | Code::Slow => "invalid_payload",
            Code::InvalidRequest | Code::MethodNotAllowed | Code::Misdirected => "invalid_request",
            Code::NotFound => "not_found",
            Code::PermissionDenied => "permission_denied",
            Code::Unauthenticated => "unauthenticated",
            Code::Encoded | Code::Unsupported => "unsupported",
            Code::ValidationError => "validation_error",
        }
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Code::BackendError => 500,
            Code::BackendUnavailable => 503,
            Code::Conflict | Code::Duplicate => 409,
            Code::EnvelopeTooLarge => 413,
            Code::Encoded => 415,
            Code::Misdirected => 421,
            Code::PermissionDenied => 403,
            Code::Slow => 408,
            Code::Unauthenticated => 401,
            Code::InvalidPayload | Code::InvalidRequest => 400,
            Code::MethodNotAllowed => 405,
            Code::NotFound => 404,
            Code::Unsupported | Code::ValidationError => 422,
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Code::BackendError | Code::BackendUnavailable)
    }

    /// What to do, where the refusal itself does not say.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Code::BackendError => "the server's log says why; the request may be sent again",
            Code::BackendUnavailable => "send the request again after a moment",
            Code::Conflict => "look at the resource's current state before trying again",
            Code::Duplicate => "leave `id` out to have one made, or read the job that has it",
            Code::EnvelopeTooLarge => "keep large data elsewhere and pass a reference to it",
            Code::InvalidPayload => "send a JSON object in UTF-8",
            Code::InvalidRequest | Code::ValidationError => "correct the member that the message names",
            Code::MethodNotAllowed => "the Allow header lists the methods of this path",
            Code::Encoded => "send the body as it is, without a Content-Encoding",
            Code::Misdirected => {
                "the setting `hosts` (or --host) lists the names by which the server may be called"
            }
            Code::PermissionDenied => {
                "use a token that has the scope; kron-server token list shows what each may do"
            }
            Code::Slow => "send the body without pauses",
            Code::Unauthenticated => {
                "send Authorization: Bearer and a token; kron-server token create --name N --scope S makes one"
            }
            Code::NotFound => "check the id or the name; GET /ojs/manifest lists what this server offers",
            Code::Unsupported => "GET /ojs/manifest lists what this server offers",
        }
    }
}

impl Refusal {
    /// A refusal of that kind.
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), hint: None, details: Map::new() }
    }

    /// The body cannot be read.
    pub fn payload(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::InvalidPayload, message)
    }

    /// A member or parameter is wrong.
    pub fn request(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::InvalidRequest, message)
    }

    /// The state of things does not allow it.
    pub fn conflict(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::Conflict, message)
    }

    /// There is no such thing.
    pub fn not_found(what: &str, id: &str) -> Refusal {
        Refusal::new(Code::NotFound, format!("{what} {} does not exist", crate::members::excerpt(id)))
            .detail("resource_type", json!(what))
            .detail("resource_id", json!(id))
    }

    /// The store failed.
    pub fn backend(error: &dyn std::fmt::Display) -> Refusal {
        Refusal::new(Code::BackendError, format!("the store failed: {error}"))
    }

    /// The same, naming the member it is about.
    #[must_use]
    pub fn field(self, name: &str) -> Refusal {
        self.detail("field", json!(name))
    }

    /// The same, with a detail for programs.
    #[must_use]
    pub fn detail(mut self, name: &str, value: Value) -> Refusal {
        self.details.insert(name.to_owned(), value);
        self
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }

    /// The body of the answer.
    #[must_use]
    pub fn body(&self, request_id: &str) -> Value {
        let code = self.code.name();
        json!({"error": {
            "code": code,
            "type": code,
            "message": self.message,
            "retryable": self.code.is_retryable(),
            "hint": self.hint.as_deref().unwrap_or(self.code.hint()),
            "docs_url": format!("{DOCS}#{code}"),
            "details": self.details,
            "request_id": request_id,
        }})
    }
}
