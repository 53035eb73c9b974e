//! A job as it is shown: the wire names of everything in it.

use serde_json::json;

use crate::job::{Failure, Job, State};
use crate::object::Object;
use crate::times::{Stamp, stamp};

/// The job as clients see it.
#[must_use]
pub fn job_view(job: &Job) -> Object {
    let at = |at: Option<jiff::Timestamp>| at.map(stamp);
    let given = |at: &Option<Stamp>| at.as_ref().map(|at| at.text.clone());
    let errors: Vec<Object> = job.errors.iter().map(failure_view).collect();
    Object::new()
        .with("specversion", &"1.0")
        .with("id", &job.id)
        .with("type", &job.kind)
        .with("queue", &job.queue)
        .with("args", &job.args)
        .with("meta", &job.meta)
        .with("priority", &job.priority)
        .with("state", &job.state)
        .with("attempt", &job.attempt)
        .maybe("fence", (job.fence > 0).then_some(&job.fence))
        .with("max_attempts", &job.retry.max_attempts)
        .with("retry", &job.retry.view())
        .maybe("timeout_ms", job.timeout_ms.as_ref())
        .maybe("visibility_timeout_ms", job.visibility_ms.as_ref())
        .maybe("scheduled_at", given(&job.scheduled_at).as_ref())
        .maybe("expires_at", given(&job.expires_at).as_ref())
        .with("created_at", &stamp(job.created_at))
        .maybe("enqueued_at", at(job.enqueued_at).as_ref())
        .maybe("activated_at", at(job.activated_at).as_ref())
        .maybe("re_enqueued_at", at(job.re_enqueued_at).as_ref())
        .maybe("started_at", at(job.started_at).as_ref())
        .maybe("completed_at", at(job.completed_at).as_ref())
        .maybe("cancelled_at", at(job.cancelled_at).as_ref())
        .maybe("discarded_at", at(job.discarded_at).as_ref())
        .maybe("worker_id", job.worker_id.as_ref())
        .maybe("result", job.result.as_ref())
        .maybe("error", job.error.as_ref().map(failure_view).as_ref())
        .maybe("errors", (!errors.is_empty()).then_some(&errors))
        .maybe("retry_delay_ms", job.retry_delay_ms.as_ref())
        .maybe("next_attempt_at", at(job.next_attempt_at).as_ref())
        .maybe("next_retry_at", at(job.next_attempt_at).as_ref())
        .maybe("progress", job.progress.as_ref().map(|progress| progress.value).as_ref())
        .carrying(&job.carried)
}

/// `{"job": …}` with the same members beside it, because clients look for them in either place.
#[must_use]
pub fn job_answer(job: &Job) -> Object {
    let view = job_view(job);
    Object::new().with("job", &view).and(&view)
}

/// What a worker is told about the attempt it has ended.
#[must_use]
pub fn verdict(job: &Job, attempt: u32) -> Object {
    let at = |at: Option<jiff::Timestamp>| at.map(stamp);
    Object::new()
        .with("id", &job.id)
        .with("job_id", &job.id)
        .with("state", &job.state)
        .with("attempt", &attempt)
        .with("max_attempts", &job.retry.max_attempts)
        .maybe("next_attempt_at", at(job.next_attempt_at).as_ref())
        .maybe("retry_delay_ms", job.retry_delay_ms.filter(|_| job.state == State::Retryable).as_ref())
        .maybe("discarded_at", at(job.discarded_at).as_ref())
        .maybe("completed_at", at(job.completed_at).as_ref())
        .with("job", &job_view(job))
}

/// How far a job is.
#[must_use]
pub fn progress_view(job: &Job) -> Object {
    let progress = job.progress.as_ref();
    Object::new()
        .with("job_id", &job.id)
        .with("state", &job.state)
        .with("progress", &progress.map(|progress| progress.value))
        .with("data", &progress.and_then(|progress| progress.data.as_ref()))
        .with("message", &progress.and_then(|progress| progress.message.as_ref()))
        .with("updated_at", &progress.map(|progress| stamp(progress.at)))
}

fn failure_view(failure: &Failure) -> Object {
    let at = stamp(failure.at);
    Object::new()
        .with("type", &failure.kind)
        .with("code", &failure.code)
        .with("message", &failure.message)
        .with("attempt", &failure.attempt)
        .with("occurred_at", &at)
        .with("timestamp", &at)
        .maybe("retryable", failure.retryable.as_ref())
        .maybe("details", failure.details.as_ref())
        .maybe("backtrace", failure.backtrace.as_ref())
}

/// A place in a list as clients see it: nothing to be read, only to be given back.
#[must_use]
pub fn cursor(key: &str) -> String {
    key.bytes().fold(String::from("c"), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}

/// The place that a cursor stands for, if it is one.
#[must_use]
pub fn read_cursor(text: &str) -> Option<String> {
    let digits = text.strip_prefix('c')?;
    if !digits.is_ascii() || digits.len() % 2 != 0 {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    let bytes = (0..digits.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()?;
    String::from_utf8(bytes).ok()
}

/// Where one page of a list ends and the next begins.
#[derive(Clone, Debug)]
pub struct Page {
    /// How many there are in all.
    pub total: u64,
    /// How many a page has at most.
    pub limit: u64,
    /// How many were left out before it.
    pub offset: u64,
    /// Where the next begins, if there is one.
    pub next: Option<String>,
}

impl Page {
    /// As it is shown.
    #[must_use]
    pub fn view(&self) -> Object {
        Object::new()
            .with("total", &self.total)
            .with("limit", &self.limit)
            .with("offset", &self.offset)
            .with("has_more", &json!(self.next.is_some()))
            .maybe("next_cursor", self.next.as_deref().map(cursor).as_ref())
    }
}
