//! Conditions of a `KronJob`, in the shape that Kubernetes has for them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The conditions there are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// Its spec is valid, and it is looked after.
    Ready,
    /// Its spec has mistakes.
    InvalidSpec,
    /// A Job could not be created.
    SchedulingError,
    /// Its last period had no time that its constraints allow.
    Unschedulable,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Ready => "Ready",
            Kind::InvalidSpec => "InvalidSpec",
            Kind::SchedulingError => "SchedulingError",
            Kind::Unschedulable => "Unschedulable",
        }
    }
}

/// The longest message. The API server refuses one of more than 32768 bytes.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// Sets a condition. The time of its last change stays, unless it has changed.
pub(crate) fn set(
    conditions: &mut Vec<Condition>,
    kind: Kind,
    is: bool,
    reason: &str,
    message: String,
    generation: Option<i64>,
    now: Timestamp,
) {
    let status = if is { "True" } else { "False" };
    let message = match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    };
    let before = conditions.iter().find(|condition| condition.type_ == kind.name());
    let since = match before {
        Some(before) if before.status == status => before.last_transition_time.clone(),
        _ => Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
    };
    let condition = Condition {
        type_: kind.name().to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: since,
    };
    match conditions.iter_mut().find(|condition| condition.type_ == kind.name()) {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
}

/// What a condition that holds says.
pub(crate) fn message(conditions: &[Condition], kind: Kind) -> Option<String> {
    let found =
        conditions.iter().find(|condition| condition.type_ == kind.name() && condition.status == "True");
    found.map(|condition| condition.message.clone())
}
