//! A request to push a job becomes a job.

use jiff::Timestamp;
use serde_json::value::RawValue;

use crate::job::{Job, Origin, State};
use crate::members::{Members, Raw, excerpt, read_as, wrong};
use crate::refusal::{Code, Refusal};
use crate::retry::Retry;
use crate::times::{Stamp, read_duration};

/// The largest job that is taken, as it is written.
pub const ENVELOPE_BYTES_MAX: usize = 1024 * 1024;

/// The longest name of a type or a queue.
const NAME_CHARS_MAX: usize = 255;

/// Members that only the server sets. A client's values for them are ignored.
const SERVER_OWNED: [&str; 26] = [
    "activated_at",
    "attempt",
    "cancelled_at",
    "completed_at",
    "created_at",
    "discarded_at",
    "enqueued_at",
    "error",
    "errors",
    "fence",
    "job",
    "max_attempts",
    "metadata",
    "next_attempt_at",
    "next_retry_at",
    "options",
    "parent_results",
    "previous_state",
    "progress",
    "re_enqueued_at",
    "result",
    "retry_delay_ms",
    "started_at",
    "state",
    "worker_id",
    "workflow_id",
];

/// Reads what a client wants done. The checks are made in an order that its tests rely on.
///
/// # Errors
///
/// The first member that is wrong.
pub fn read(mut given: Members, now: Timestamp) -> Result<Job, Refusal> {
    check_version(given.take("specversion").as_deref())?;
    let kind = read_type(given.take("type").as_deref())?;
    let args = read_args(given.take("args"))?;
    let id = given.0.remove("id").map(|raw| read_id(&raw)).transpose()?;
    let mut options = given.take_members("options")?.unwrap_or_default();
    let mut meta = given.take_members("meta")?.unwrap_or_default();
    for alias in ["metadata", "meta"] {
        if let Some(more) = options.take_members(alias)? {
            meta.0.extend(more.0);
        }
    }
    // What stands in `options` counts, and else what stands beside it.
    let mut either = |name: &str| {
        let beside = given.take(name);
        options.take(name).or(beside)
    };

    let queue = match either("queue") {
        None => "default".to_owned(),
        Some(raw) => read_queue(&raw)?,
    };
    let priority = either("priority").map_or(Ok(0), |raw| read_priority(&raw))?;
    let scheduled = either("scheduled_at");
    let delayed = either("delay_until");
    let scheduled_at = match (scheduled, delayed) {
        (Some(raw), _) => Some(Stamp::read(&raw, "scheduled_at", now)?),
        (None, Some(raw)) => Some(Stamp::read(&raw, "delay_until", now)?),
        (None, None) => None,
    };
    let expires_at = either("expires_at").map(|raw| Stamp::read(&raw, "expires_at", now)).transpose()?;
    let (retry, retry_policy) = (either("retry"), either("retry_policy"));
    let retry = Retry::read(retry.or(retry_policy).as_ref())?;
    let timeout_ms = read_wait(either("timeout_ms"), either("timeout"), "timeout")?;
    let visibility_ms =
        read_wait(either("visibility_timeout_ms"), either("visibility_timeout"), "visibility_timeout")?;
    let pending = match either("pending") {
        None => false,
        Some(raw) => read_as(&raw, "pending", "true or false")?,
    };
    let mut carried = Members::default();
    for name in ["unique", "schema", "tags", "rate_limit"] {
        if let Some(raw) = either(name) {
            carried.0.insert(name.to_owned(), raw);
        }
    }
    if let Some(tags) = carried.0.get("tags") {
        read_as::<Vec<String>>(tags, "tags", "an array of strings")?;
    }
    given.0.retain(|name, _| !SERVER_OWNED.contains(&name.as_str()));
    carried.0.append(&mut given.0);

    let waits = scheduled_at.as_ref().is_some_and(|at| at.at > now);
    let state = match (pending, waits) {
        (true, _) => State::Pending,
        (false, true) => State::Scheduled,
        (false, false) => State::Available,
    };
    Ok(Job {
        id: id.unwrap_or_else(|| new_id(now)),
        kind,
        queue,
        args,
        meta,
        priority,
        retry,
        timeout_ms,
        visibility_ms,
        scheduled_at,
        expires_at,
        carried,
        cron: None,
        state,
        attempt: 0,
        fence: 0,
        worker_id: None,
        visible_until: None,
        times_out_at: None,
        created_at: now,
        enqueued_at: (state == State::Available).then_some(now),
        started_at: None,
        completed_at: None,
        cancelled_at: None,
        discarded_at: None,
        activated_at: None,
        re_enqueued_at: None,
        next_attempt_at: None,
        retry_delay_ms: None,
        result: None,
        error: None,
        errors: Vec::new(),
        progress: None,
        dead: false,
        told: None,
    })
}

/// A job of a cron job says which one made it, and for when.
pub fn mark(job: &mut Job, origin: Origin, triggered_at: Timestamp) {
    let mut metadata = Members::default();
    metadata.put("cron_name", &origin.name);
    metadata.put("cron_triggered_at", &crate::times::stamp(triggered_at));
    job.meta.0.extend(metadata.0.clone());
    job.carried.put("metadata", &metadata);
    job.cron = Some(origin);
}

/// A new id. Ids that are made later sort later.
#[must_use]
pub fn new_id(now: Timestamp) -> String {
    let seconds = u64::try_from(now.as_second()).unwrap_or(0);
    let nanos = u32::try_from(now.subsec_nanosecond()).unwrap_or(0);
    uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos)).hyphenated().to_string()
}

/// Whether a text is an id: a UUID of version 7 in lower case.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            14 => *byte == b'7',
            19 => b"89ab".contains(byte),
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
        })
}

/// Reads the type of a job: segments of small letters, digits, `_` and `-`, joined by dots.
///
/// # Errors
///
/// If it is missing, or something else.
pub fn read_type(raw: Option<&RawValue>) -> Result<String, Refusal> {
    let expected =
        "a type such as \"email.send\": small letters, digits, `_` and `-`, in parts joined by dots";
    let Some(raw) = raw else {
        return Err(Refusal::request("expected a `type`, but it is missing").field("type"));
    };
    let kind: String = read_as(raw, "type", expected)?;
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
    };
    if kind.len() > NAME_CHARS_MAX || !kind.split('.').all(is_part) {
        return Err(wrong("type", expected, raw));
    }
    Ok(kind)
}

/// Reads the arguments of a job.
///
/// # Errors
///
/// If they are missing, or no array.
pub fn read_args(raw: Option<Raw>) -> Result<Raw, Refusal> {
    match raw {
        Some(raw) if raw.get().trim_start().starts_with('[') => Ok(raw),
        Some(raw) => Err(wrong("args", "an array", &raw)),
        None => Err(Refusal::request("expected an array in `args`, but it is missing").field("args")),
    }
}

fn read_id(raw: &RawValue) -> Result<String, Refusal> {
    let expected = "a UUID of version 7 in lower case";
    let id: String = read_as(raw, "id", expected)?;
    if is_id(&id) { Ok(id) } else { Err(wrong("id", expected, raw)) }
}

/// Reads the name of a queue.
///
/// # Errors
///
/// If it is none.
pub fn read_queue(raw: &RawValue) -> Result<String, Refusal> {
    let queue: String = read_as(raw, "queue", QUEUE)?;
    check_queue(&queue)?;
    Ok(queue)
}

const QUEUE: &str = "a queue such as \"reports\": small letters, digits, `-` and `.`";

/// Checks the name of a queue.
///
/// # Errors
///
/// If it is none.
pub fn check_queue(queue: &str) -> Result<(), Refusal> {
    if is_name(queue) {
        return Ok(());
    }
    let found = excerpt(queue);
    Err(Refusal::request(format!("expected {QUEUE} in `queue`, but found {found}")).field("queue"))
}

/// Whether a text is a name of a queue or a cron job.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= NAME_CHARS_MAX
        && text.bytes().next().is_some_and(is_plain)
        && text.bytes().all(|byte| is_plain(byte) || b"-.".contains(&byte))
}

fn read_priority(raw: &RawValue) -> Result<i32, Refusal> {
    let expected = "a whole number from -100 to 100";
    let priority: i32 = read_as(raw, "priority", expected)?;
    if (-100..=100).contains(&priority) { Ok(priority) } else { Err(wrong("priority", expected, raw)) }
}

/// A wait in milliseconds, or else in seconds or as a duration. None and 0 mean the default.
fn read_wait(in_ms: Option<Raw>, otherwise: Option<Raw>, name: &str) -> Result<Option<u64>, Refusal> {
    let ms = match (in_ms, otherwise) {
        (Some(raw), _) => u64::from(read_as::<u32>(&raw, &format!("{name}_ms"), "a number of milliseconds")?),
        (None, Some(raw)) if raw.get().starts_with('"') => read_duration(&raw, name)?,
        (None, Some(raw)) => u64::from(read_as::<u32>(&raw, name, "a number of seconds")?) * 1_000,
        (None, None) => 0,
    };
    Ok((ms > 0).then_some(ms))
}

fn check_version(raw: Option<&RawValue>) -> Result<(), Refusal> {
    let Some(raw) = raw else { return Ok(()) };
    let version: String = read_as(raw, "specversion", "\"1.0\"")?;
    if version.split('.').next() == Some("1") {
        return Ok(());
    }
    let message = format!("expected version 1.0 in `specversion`, but found {}", excerpt(&version));
    Err(Refusal::new(Code::Unsupported, message).field("specversion"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_of_version_7_in_lower_case() {
        assert!(is_id(&new_id(Timestamp::UNIX_EPOCH)));
        assert!(is_id("019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"));
        for id in [
            "",
            "019461a8-1a2b-4c3d-8e4f-5a6b7c8d9e0f",
            "019461A8-1A2B-7C3D-8E4F-5A6B7C8D9E0F",
            "019461a8-1a2b-7c3d-ce4f-5a6b7c8d9e0f",
            "019461a81a2b7c3d8e4f5a6b7c8d9e0f",
        ] {
            assert!(!is_id(id), "{id}");
        }
    }
}
