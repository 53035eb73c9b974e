//! What goes wrong: one type, with the specification's names, messages and details.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kron_schedule::{ErrorKind as CronKind, ParseError};
use serde_json::{Value, json};

/// Why something was refused or failed.
///
/// It prints the message that the specification fixes, [`kind`](Error::kind) has the specification's
/// name for it, and [`details`](Error::details) the same facts as data. What caused it is its
/// [`source`](StdError::source), and is not repeated in the message.
///
/// ```
/// use kron_scheduler::{ErrorKind, Registration, Registrations};
/// use serde_json::json;
///
/// let error = Registrations::from_json(&json!("nightly"), &Default::default()).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::RegistrationsNotArray);
/// assert_eq!(error.kind().name(), "RegistrationsNotArrayError");
/// assert_eq!(error.to_string(), "Registrations must be an array");
/// ```
#[derive(Clone, Debug)]
pub struct Error(Box<Body>);

#[derive(Clone, Debug)]
struct Body {
    kind: ErrorKind,
    message: String,
    details: Value,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $name:literal,)*) => {
        /// What is wrong, for programs to branch on. Its name is the specification's.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)*
        }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &[ErrorKind] = &[$(ErrorKind::$kind,)*];

            /// The name, as a binding to another language would call it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(ErrorKind::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    // The caller's.
    /// What was given for registrations is no array.
    RegistrationsNotArray => "RegistrationsNotArrayError",
    /// A registration has a wrong length, or a member of a wrong type.
    RegistrationShape => "RegistrationShapeError",
    /// A registration has the right shape and impossible data, such as an empty name.
    InvalidRegistration => "InvalidRegistrationError",
    /// Two registrations have the same name.
    ScheduleDuplicateTask => "ScheduleDuplicateTaskError",
    /// The scheduler is initializing or running already.
    SchedulerAlreadyActive => "SchedulerAlreadyActiveError",
    /// A registration's cron expression is not one.
    CronExpressionInvalid => "CronExpressionInvalidError",
    /// A retry delay is below zero.
    NegativeRetryDelay => "NegativeRetryDelayError",
    /// A text is no cron expression: the source of [`CronExpressionInvalid`](ErrorKind::CronExpressionInvalid).
    InvalidCronExpression => "InvalidCronExpressionError",
    /// A field of a cron expression is wrong: the innermost source.
    FieldParse => "FieldParseError",
    /// A cron expression has no next occurrence.
    CronCalculation => "CronCalculationError",
    /// `stop` was awaited by one of the callbacks it would have to wait for.
    StopFromCallback => "StopFromCallbackError",
    /// `initialize` was awaited outside a tokio runtime.
    NoRuntime => "NoRuntimeError",
    /// The future of `initialize` was dropped before it was done.
    InitializationCancelled => "InitializationCancelledError",
    // The store's.
    /// A record cannot be read, for a reason that no other kind names.
    TaskTryDeserialize => "TaskTryDeserializeError",
    /// A record lacks a field.
    TaskMissingField => "TaskMissingFieldError",
    /// A record has a field of a wrong type.
    TaskInvalidType => "TaskInvalidTypeError",
    /// A record has a field with an impossible value.
    TaskInvalidValue => "TaskInvalidValueError",
    /// A record is no record at all.
    TaskInvalidStructure => "TaskInvalidStructureError",
    /// The store could not be read or written.
    Store => "StoreError",
    /// The store holds something that no scheduler has written.
    StateCorrupted => "StateCorruptedError",
    /// The store was written by a newer version.
    UnsupportedVersion => "UnsupportedVersionError",
    /// Another scheduler is using the store.
    StoreLocked => "StoreLockedError",
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ErrorKind {
    /// Whether it is one of the errors of reading a record: the specification's base class
    /// `TaskTryDeserializeError`.
    #[must_use]
    pub fn is_deserialize(self) -> bool {
        use ErrorKind::{
            TaskInvalidStructure, TaskInvalidType, TaskInvalidValue, TaskMissingField, TaskTryDeserialize,
        };
        matches!(
            self,
            TaskTryDeserialize | TaskMissingField | TaskInvalidType | TaskInvalidValue | TaskInvalidStructure
        )
    }
}

impl Error {
    /// What is wrong. Its [`name`](ErrorKind::name) is the specification's.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The facts as data, with the specification's names; null where it has none.
    #[must_use]
    pub fn details(&self) -> &Value {
        &self.0.details
    }

    /// Whether trying again may help: the store's trouble, and neither the caller's nor the data's.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Store | ErrorKind::StoreLocked)
    }

    /// The store could not do what was asked: for stores of your own.
    pub fn store(what: impl Into<String>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        let source = source.into();
        Error::new(ErrorKind::Store, what, json!({ "cause": shortened(&source.to_string()) })).because(source)
    }

    /// The store holds what no scheduler has written there: for stores of your own.
    pub fn corrupted(place: &str, reason: impl fmt::Display) -> Error {
        Error::new(
            ErrorKind::StateCorrupted,
            format!("State is corrupted: {place}: {reason}"),
            json!({ "location": place, "reason": reason.to_string() }),
        )
    }

    /// Another scheduler has the store: for stores of your own.
    pub fn locked(place: &str) -> Error {
        Error::new(
            ErrorKind::StoreLocked,
            format!("Another scheduler is using {place}"),
            json!({ "location": place }),
        )
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>, details: Value) -> Error {
        Error(Box::new(Body { kind, message: message.into(), details, source: None }))
    }

    pub(crate) fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// The same error, with one more detail.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Error {
        if self.0.details.is_null() {
            self.0.details = json!({});
        }
        if let Some(details) = self.0.details.as_object_mut() {
            details.insert(name.to_owned(), value);
        }
        self
    }

    pub(crate) fn not_array() -> Error {
        Error::new(ErrorKind::RegistrationsNotArray, "Registrations must be an array", Value::Null)
    }

    pub(crate) fn shape(index: usize, received: &Value) -> Error {
        Error::new(
            ErrorKind::RegistrationShape,
            "Invalid registration shape: expected [string, string, function, Duration]",
            json!({ "registrationIndex": index, "received": echo(received) }),
        )
    }

    pub(crate) fn invalid(field: &str, value: &Value, reason: &str) -> Error {
        Error::new(
            ErrorKind::InvalidRegistration,
            format!("Invalid registration: {field} {reason}"),
            json!({ "field": field, "value": echo(value), "reason": reason }),
        )
    }

    pub(crate) fn duplicate(name: &str) -> Error {
        let name = shortened(name);
        Error::new(
            ErrorKind::ScheduleDuplicateTask,
            format!("Task with name \"{name}\" is already scheduled"),
            json!({ "taskName": name }),
        )
    }

    pub(crate) fn already_active(state: &str) -> Error {
        Error::new(
            ErrorKind::SchedulerAlreadyActive,
            format!("Cannot initialize scheduler: scheduler is already {state}"),
            json!({ "currentState": state }),
        )
    }

    pub(crate) fn negative_delay(delay: &Value) -> Error {
        Error::new(
            ErrorKind::NegativeRetryDelay,
            "Retry delay must be non-negative",
            json!({ "retryDelayMs": delay }),
        )
    }

    /// The three errors of a bad expression, each the source of the one before.
    pub(crate) fn cron(text: &str, error: &ParseError, now: Timestamp) -> Error {
        let field = error.field().map_or("expression", |field| field.name());
        let (expression, reason) = (shortened(text), error.reason());
        let message = format!("Invalid cron expression \"{expression}\": {field} field {reason}");
        let details = json!({ "expression": expression, "field": field, "reason": reason });
        let innermost = match error.kind() {
            CronKind::Never => Error::new(
                ErrorKind::CronCalculation,
                format!("Failed to calculate next occurrence: {error}"),
                json!({ "expression": expression, "currentTime": now.to_string(), "cause": error.to_string() }),
            ),
            _ => Error::new(
                ErrorKind::FieldParse,
                error.to_string(),
                json!({ "fieldValue": shortened(field_value(text, error)), "fieldName": field }),
            ),
        };
        let inner = Error::new(ErrorKind::InvalidCronExpression, message.clone(), details.clone())
            .because(innermost.because(error.clone()));
        Error::new(ErrorKind::CronExpressionInvalid, message, details).because(inner)
    }

    pub(crate) fn missing_field(field: &str) -> Error {
        Error::new(
            ErrorKind::TaskMissingField,
            format!("Missing required field: {field}"),
            json!({ "field": field }),
        )
    }

    pub(crate) fn invalid_type(field: &str, value: &Value, expected: &str) -> Error {
        let actual = type_name(value);
        Error::new(
            ErrorKind::TaskInvalidType,
            format!("Invalid type for field '{field}': expected {expected}, got {actual}"),
            json!({ "field": field, "value": echo(value), "expectedType": expected, "actualType": actual }),
        )
    }

    pub(crate) fn invalid_value(field: &str, value: &Value, reason: &str) -> Error {
        Error::new(
            ErrorKind::TaskInvalidValue,
            format!("Invalid value for field '{field}': {reason}"),
            json!({ "field": field, "value": echo(value), "reason": reason }),
        )
    }

    pub(crate) fn invalid_structure(value: &Value, reason: &str) -> Error {
        Error::new(ErrorKind::TaskInvalidStructure, reason, json!({ "value": echo(value) }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// The field of the text that the error is about; all of it where there is no such field.
fn field_value<'t>(text: &'t str, error: &ParseError) -> &'t str {
    let at = error.field().and_then(|field| {
        ["minute", "hour", "day", "month", "weekday"].iter().position(|name| *name == field.name())
    });
    at.and_then(|at| text.split([' ', '\t']).filter(|token| !token.is_empty()).nth(at)).unwrap_or(text)
}

/// The longest text repeated in a message or in details, in characters.
const ECHO_CHARS_MAX: usize = 200;

pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A value as it was received, or the beginning of its text where that is long.
fn echo(value: &Value) -> Value {
    let text = value.to_string();
    if text.chars().nth(ECHO_CHARS_MAX).is_some() { Value::String(shortened(&text)) } else { value.clone() }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
