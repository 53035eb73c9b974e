//! A job and its life: pure transitions that are told the time.
//!
//! Every transition of Open Job Spec is a method here, and what it changes is the job alone. Each says what
//! happened as events. Nothing here waits, stores or sends.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event::Event;
use crate::members::{Members, Raw};
use crate::refusal::Refusal;
use crate::retry::{Exhaustion, Retry};
use crate::times::{Stamp, stamp};

/// A job.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Job {
    /// Its name, a UUID of version 7.
    pub id: String,
    /// What is to be done, for whoever does it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it waits.
    pub queue: String,
    /// What it is done with, as it was written.
    pub args: Raw,
    /// What else was said about it.
    #[serde(default, skip_serializing_if = "Members::is_empty")]
    pub meta: Members,
    /// The higher, the sooner; from -100 to 100.
    pub priority: i32,
    /// When it is tried again.
    pub retry: Retry,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// For how long a worker may be silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility_ms: Option<u64>,
    /// Not before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Stamp>,
    /// Not started after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Stamp>,
    /// Members that mean nothing to this server and are given back as they came.
    #[serde(default, skip_serializing_if = "Members::is_empty")]
    pub carried: Members,
    /// The cron job that made it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<Origin>,
    /// Where in its life it is.
    pub state: State,
    /// How often it was fetched.
    pub attempt: u32,
    /// The number of the last time that it was handed out. Unlike that of the attempt it only grows, so a worker that
    /// names it cannot be taken for another, nor for itself in a later attempt.
    #[serde(default)]
    pub fence: u64,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Until when the worker may be silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_until: Option<Timestamp>,
    /// Until when the attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_out_at: Option<Timestamp>,
    /// When it was received.
    pub created_at: Timestamp,
    /// When it last became available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueued_at: Option<Timestamp>,
    /// When it was last fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended by itself: done, or failed for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// When it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_at: Option<Timestamp>,
    /// When it was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded_at: Option<Timestamp>,
    /// When it was activated by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activated_at: Option<Timestamp>,
    /// When it was taken back out of the dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub re_enqueued_at: Option<Timestamp>,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// The wait that was computed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_delay_ms: Option<u64>,
    /// What it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Raw>,
    /// Its most recent failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Its failures, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Failure>,
    /// How far it says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Whether it lies among the dead letters.
    #[serde(default)]
    pub dead: bool,
    /// The state that was told of last; none before the first.
    #[serde(skip)]
    pub told: Option<State>,
}

/// Where a job came from.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Origin {
    /// The cron job's name.
    pub name: String,
    /// The nominal time of the occurrence; none for a run by hand.
    pub scheduled: Option<Timestamp>,
    /// Whether two jobs of that cron job must never be active at once.
    pub serial: bool,
}

/// The eight states of a job.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A worker has it.
    Active,
    /// It waits for a worker.
    Available,
    /// Somebody did not want it any more.
    Cancelled,
    /// It is done.
    Completed,
    /// It failed for good, or expired.
    Discarded,
    /// It waits to be activated.
    Pending,
    /// It failed and waits to be tried again.
    Retryable,
    /// It waits for its time.
    Scheduled,
}

impl State {
    /// All of them.
    pub const ALL: [State; 8] = [
        State::Active,
        State::Available,
        State::Cancelled,
        State::Completed,
        State::Discarded,
        State::Pending,
        State::Retryable,
        State::Scheduled,
    ];

    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            State::Active => "active",
            State::Available => "available",
            State::Cancelled => "cancelled",
            State::Completed => "completed",
            State::Discarded => "discarded",
            State::Pending => "pending",
            State::Retryable => "retryable",
            State::Scheduled => "scheduled",
        }
    }

    /// Whether nothing comes after it.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, State::Cancelled | State::Completed | State::Discarded)
    }
}

/// How an attempt failed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Failure {
    /// The kind of failure.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its code.
    pub code: String,
    /// What is said about it.
    pub message: String,
    /// Which attempt it was.
    pub attempt: u32,
    /// When.
    pub at: Timestamp,
    /// Whether the worker thinks that another attempt may succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Whatever else the worker said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Raw>,
    /// Where in the program it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backtrace: Option<Raw>,
}

/// How far a job says it is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Progress {
    /// From 0 to 1.
    pub value: f64,
    /// Whatever else it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it said so.
    pub at: Timestamp,
}

/// What a worker says about an attempt that failed.
#[derive(Clone, Debug)]
pub struct Nack {
    /// Who says so.
    pub worker_id: Option<String>,
    /// Of which time that it was handed out, if that is said.
    pub fence: Option<u64>,
    /// Whether the attempt does not count: the worker only gives the job back.
    pub requeue: bool,
    /// The kind of failure.
    pub kind: String,
    /// Its code.
    pub code: String,
    /// What is said about it.
    pub message: String,
    /// Another name of its kind.
    pub class: Option<String>,
    /// Whether another attempt may succeed.
    pub retryable: Option<bool>,
    /// Whatever else is said.
    pub details: Option<Raw>,
    /// Where in the program it happened.
    pub backtrace: Option<Raw>,
}

impl Nack {
    /// A failure of that kind, of which nothing else is said.
    pub fn of(kind: impl Into<String>, message: impl Into<String>) -> Nack {
        Nack {
            worker_id: None,
            fence: None,
            requeue: false,
            kind: kind.into(),
            code: "handler_error".into(),
            message: message.into(),
            class: None,
            retryable: None,
            details: None,
            backtrace: None,
        }
    }
}

/// What holds for every job that does not say otherwise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Defaults {
    /// How long one attempt may take.
    pub timeout_ms: u64,
    /// For how long a worker may be silent.
    pub visibility_ms: u64,
}

impl Default for Defaults {
    fn default() -> Defaults {
        const HALF_AN_HOUR: u64 = 30 * 60 * 1_000;
        Defaults { timeout_ms: HALF_AN_HOUR, visibility_ms: HALF_AN_HOUR }
    }
}

/// The most failures of a job that are remembered.
pub const FAILURES_MAX: usize = 10;

/// The most transitions that one moment can bring to a job: it becomes available, and expires.
const ADVANCES_MAX: usize = 4;

impl Job {
    /// What happens when a job is received.
    #[must_use]
    pub fn received(&mut self) -> Vec<Event> {
        match self.state {
            State::Scheduled => {
                let at = self.scheduled_at.as_ref().map(|at| at.text.clone());
                vec![self.event("job.scheduled", self.created_at).with("scheduled_at", at)]
            }
            State::Available => vec![self.enqueued(self.created_at)],
            _ => Vec::new(),
        }
    }

    /// A worker takes the job.
    pub fn claim(
        &mut self,
        worker_id: Option<&str>,
        visibility_ms: Option<u64>,
        defaults: Defaults,
        now: Timestamp,
    ) -> Vec<Event> {
        self.state = State::Active;
        self.attempt = self.attempt.saturating_add(1);
        self.fence += 1;
        self.started_at = Some(now);
        self.worker_id = worker_id.map(str::to_owned);
        let visibility = visibility_ms.or(self.visibility_ms).unwrap_or(defaults.visibility_ms);
        self.visible_until = Some(after(now, visibility));
        self.times_out_at = Some(after(now, self.timeout_ms.unwrap_or(defaults.timeout_ms)));
        self.next_attempt_at = None;
        self.progress = None;
        let started = self
            .event("job.started", now)
            .with("worker_id", worker_id.map(str::to_owned))
            .with("attempt", self.attempt);
        vec![started]
    }

    /// The worker has done it.
    ///
    /// # Errors
    ///
    /// If nobody has it, or somebody else, or it was handed out anew since.
    pub fn ack(
        &mut self,
        worker_id: Option<&str>,
        fence: Option<u64>,
        result: Option<Raw>,
        now: Timestamp,
    ) -> Result<Vec<Event>, Refusal> {
        self.check_held("acknowledged", worker_id, fence)?;
        self.state = State::Completed;
        self.completed_at = Some(now);
        self.result = result;
        self.error = None;
        if let Some(progress) = &mut self.progress {
            progress.value = 1.0;
        }
        self.release();
        let done = self
            .event("job.completed", now)
            .with("duration_ms", self.duration_ms(now))
            .with("attempt", self.attempt);
        Ok(vec![done])
    }

    /// What is told of a job that was set aside and is back: whoever waits for work, wherever that is, hears of it by that.
    pub fn comes_back(&mut self, now: Timestamp) -> Option<Event> {
        (self.state == State::Available).then(|| self.enqueued(now))
    }

    /// Undoes a claim of which its worker was never told.
    ///
    /// # Errors
    ///
    /// If that attempt is not under way any more.
    pub fn take_back(&mut self, attempt: u32, now: Timestamp) -> Result<Vec<Event>, Refusal> {
        if self.state != State::Active || self.attempt != attempt {
            return Err(self.conflict("taken back"));
        }
        self.release();
        self.attempt = self.attempt.saturating_sub(1);
        self.started_at = None;
        Ok(vec![self.make_available(now)])
    }

    /// The worker could not do it. `spread` from 0 to 1 is the luck in the wait.
    ///
    /// # Errors
    ///
    /// If nobody has it, or somebody else, or it was handed out anew since.
    pub fn nack(&mut self, nack: Nack, spread: f64, now: Timestamp) -> Result<Vec<Event>, Refusal> {
        self.check_held("failed", nack.worker_id.as_deref(), nack.fence)?;
        if nack.requeue {
            self.release();
            self.started_at = None;
            return Ok(vec![self.make_available(now)]);
        }
        let names = [nack.kind.as_str(), nack.code.as_str(), nack.class.as_deref().unwrap_or("")];
        let end = match nack.code.as_str() {
            "RETRY" => self.end_if_used_up(),
            "DISCARD" | "FAIL" => Some(Exhaustion::Discard),
            "DEAD_LETTER" => Some(Exhaustion::DeadLetter),
            _ if nack.retryable == Some(false) || self.retry.is_final(names) => {
                Some(self.retry.on_exhaustion)
            }
            _ => self.end_if_used_up(),
        };
        let failure = Failure {
            kind: nack.kind,
            code: nack.code,
            message: nack.message,
            attempt: self.attempt,
            at: now,
            retryable: nack.retryable,
            details: nack.details,
            backtrace: nack.backtrace,
        };
        Ok(self.fail(failure, end, spread, now))
    }

    /// Somebody does not want it any more.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn cancel(&mut self, reason: Option<&str>, now: Timestamp) -> Result<Vec<Event>, Refusal> {
        if self.state.is_terminal() {
            return Err(self.conflict("cancelled"));
        }
        self.state = State::Cancelled;
        self.cancelled_at = Some(now);
        self.release();
        let mut cancelled = self.event("job.cancelled", now);
        if let Some(reason) = reason {
            cancelled = cancelled.with("reason", reason);
        }
        Ok(vec![cancelled])
    }

    /// Somebody says that it need not wait for them any longer.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub fn activate(&mut self, now: Timestamp) -> Result<Vec<Event>, Refusal> {
        if self.state != State::Pending {
            return Err(self.conflict("activated"));
        }
        self.activated_at = Some(now);
        Ok(vec![self.make_available(now)])
    }

    /// The worker is still at it. Says whether it has it at all.
    pub fn beat(
        &mut self,
        worker_id: &str,
        visibility_ms: Option<u64>,
        defaults: Defaults,
        now: Timestamp,
    ) -> Option<Event> {
        let held =
            self.state == State::Active && self.worker_id.as_deref().is_none_or(|held| held == worker_id);
        if !held {
            return None;
        }
        let visibility = visibility_ms.or(self.visibility_ms).unwrap_or(defaults.visibility_ms);
        let until = after(now, visibility);
        self.visible_until = Some(until);
        Some(
            self.event("job.heartbeat", now)
                .with("worker_id", worker_id)
                .with("attempt", self.attempt)
                .with("visible_until", stamp(until)),
        )
    }

    /// The job says how far it is. That is ignored unless somebody has it, and it never goes back.
    pub fn report(&mut self, progress: Progress, defaults: Defaults) {
        if self.state != State::Active {
            return;
        }
        let now = progress.at;
        let so_far = self.progress.as_ref().map_or(0.0, |progress| progress.value);
        self.progress = Some(Progress { value: progress.value.clamp(0.0, 1.0).max(so_far), ..progress });
        self.visible_until = Some(after(now, self.visibility_ms.unwrap_or(defaults.visibility_ms)));
    }

    /// It is taken out of the dead letters and tried anew.
    ///
    /// # Errors
    ///
    /// If it does not lie there.
    pub fn revive(&mut self, now: Timestamp) -> Result<Vec<Event>, Refusal> {
        if !self.dead {
            return Err(Refusal::not_found("dead letter", &self.id));
        }
        self.dead = false;
        self.attempt = 0;
        self.error = None;
        self.completed_at = None;
        self.discarded_at = None;
        self.re_enqueued_at = Some(now);
        let retried = self.event("dead_letter.retried", now);
        Ok(vec![retried, self.make_available(now)])
    }

    /// The worker that had it is gone.
    pub fn lose_worker(&mut self, spread: f64, now: Timestamp) -> Vec<Event> {
        self.lapse("worker_death", "the worker that had it stopped sending heartbeats", spread, now)
    }

    /// When time alone will next change something about it.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        let expires = self.expires_at.as_ref().map(|at| at.at);
        let (first, second) = match self.state {
            State::Scheduled => (self.scheduled_at.as_ref().map(|at| at.at), expires),
            State::Retryable => (self.next_attempt_at, expires),
            State::Available | State::Pending => (None, expires),
            State::Active => (self.visible_until, self.times_out_at),
            State::Cancelled | State::Completed | State::Discarded => (None, None),
        };
        match (first, second) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        }
    }

    /// What time alone has changed by now.
    pub fn advance(&mut self, spread: f64, now: Timestamp) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..ADVANCES_MAX {
            if self.due_at().is_none_or(|due| due > now) {
                break;
            }
            events.extend(self.advance_once(spread, now));
        }
        events
    }

    fn advance_once(&mut self, spread: f64, now: Timestamp) -> Vec<Event> {
        if self.state == State::Active {
            let timed_out = self.times_out_at.is_some_and(|at| at <= now);
            return if timed_out {
                self.time_out(spread, now)
            } else {
                self.lapse(
                    "visibility_timeout",
                    "the worker that had it was silent for too long",
                    spread,
                    now,
                )
            };
        }
        match self.expires_at.as_ref().map(|expires| expires.at) {
            Some(expires) if expires <= now => vec![self.expire(expires, now)],
            _ => vec![self.make_available(now)],
        }
    }

    fn expire(&mut self, expires: Timestamp, now: Timestamp) -> Event {
        self.state = State::Discarded;
        self.discarded_at = Some(now);
        self.release();
        self.event("job.expired", now)
            .with("created_at", stamp(self.created_at))
            .with("expired_at", stamp(expires))
            .with("ttl_ms", millis(self.created_at, expires))
    }

    /// The attempt took too long.
    fn time_out(&mut self, spread: f64, now: Timestamp) -> Vec<Event> {
        let started = self.started_at.unwrap_or(now);
        let limit = millis(started, self.times_out_at.unwrap_or(now));
        let details = json!({
            "timeout_kind": "execution", "limit_ms": limit, "elapsed_ms": millis(started, now),
        });
        let failure = self.own_failure("timeout", format!("the attempt took longer than {limit} ms"), now);
        let failure = Failure { details: Some(crate::members::raw(&details)), ..failure };
        let is_final = self.retry.is_final(["timeout"]);
        let end = if is_final { Some(self.retry.on_exhaustion) } else { self.end_if_used_up() };
        self.fail(failure, end, spread, now)
    }

    /// The worker gave no sign of life: the job is available again at once, unless its attempts are used up.
    fn lapse(&mut self, kind: &str, message: &str, spread: f64, now: Timestamp) -> Vec<Event> {
        let failure = self.own_failure(kind, message.to_owned(), now);
        if let end @ Some(_) = self.end_if_used_up() {
            return self.fail(failure, end, spread, now);
        }
        let failed = self.note(failure, now);
        self.release();
        self.started_at = None;
        vec![failed, self.make_available(now)]
    }

    fn own_failure(&self, kind: &str, message: String, now: Timestamp) -> Failure {
        Failure {
            kind: kind.to_owned(),
            code: kind.to_owned(),
            message,
            attempt: self.attempt,
            at: now,
            retryable: Some(true),
            details: None,
            backtrace: None,
        }
    }

    fn end_if_used_up(&self) -> Option<Exhaustion> {
        (self.attempt >= self.retry.max_attempts.max(1)).then_some(self.retry.on_exhaustion)
    }

    /// An attempt failed: for good, or until the next.
    fn fail(&mut self, failure: Failure, end: Option<Exhaustion>, spread: f64, now: Timestamp) -> Vec<Event> {
        let last = json!({"code": failure.code, "message": failure.message});
        let mut events = vec![self.note(failure, now)];
        self.release();
        match end {
            None => {
                let delay = self.retry.delay_ms(self.attempt, spread);
                let at = after(now, delay);
                self.state = State::Retryable;
                self.retry_delay_ms = Some(delay);
                self.next_attempt_at = Some(at);
                events.push(
                    self.event("job.retrying", now)
                        .with("attempt", self.attempt)
                        .with("max_attempts", self.retry.max_attempts)
                        .with("next_retry_at", stamp(at))
                        .with("error", last),
                );
            }
            Some(exhaustion) => {
                self.state = State::Discarded;
                self.completed_at = Some(now);
                self.discarded_at = Some(now);
                self.dead = exhaustion == Exhaustion::DeadLetter;
                events.push(
                    self.event("job.discarded", now)
                        .with("total_attempts", self.attempt)
                        .with("last_error", last),
                );
                if self.dead {
                    events.push(self.event("dead_letter.added", now));
                }
            }
        }
        events
    }

    /// Remembers a failure.
    fn note(&mut self, failure: Failure, now: Timestamp) -> Event {
        let event = self
            .event("job.failed", now)
            .with("attempt", failure.attempt)
            .with("duration_ms", self.duration_ms(now))
            .with(
                "error",
                json!({
                    "type": failure.kind, "code": failure.code, "message": failure.message,
                    "retryable": failure.retryable.unwrap_or(true),
                }),
            );
        if self.errors.len() == FAILURES_MAX {
            self.errors.remove(0);
        }
        self.errors.push(failure.clone());
        self.error = Some(failure);
        event
    }

    fn make_available(&mut self, now: Timestamp) -> Event {
        self.state = State::Available;
        self.enqueued_at = Some(now);
        self.next_attempt_at = None;
        self.enqueued(now)
    }

    /// Nobody has it any more.
    fn release(&mut self) {
        self.worker_id = None;
        self.visible_until = None;
        self.times_out_at = None;
        self.next_attempt_at = None;
    }

    fn check_held(&self, what: &str, worker_id: Option<&str>, fence: Option<u64>) -> Result<(), Refusal> {
        if self.state != State::Active {
            return Err(self.conflict(what));
        }
        if let Some(fence) = fence.filter(|fence| *fence != self.fence) {
            return Err(Refusal::conflict(format!(
                "job {} was handed out anew since (fence {}, and not {fence}), so it cannot be {what} by that attempt",
                self.id, self.fence
            ))
            .detail("current_state", json!(self.state.name())));
        }
        match (worker_id, self.worker_id.as_deref()) {
            (Some(asking), Some(holding)) if asking != holding => Err(Refusal::conflict(format!(
                "job {} is held by another worker and cannot be {what} by {}",
                self.id,
                crate::members::excerpt(asking)
            ))
            .detail("current_state", json!(self.state.name()))),
            _ => Ok(()),
        }
    }

    fn conflict(&self, what: &str) -> Refusal {
        let state = self.state.name();
        Refusal::conflict(format!("job {} is {state} and cannot be {what}", self.id))
            .detail("current_state", json!(state))
            .detail("job_id", json!(self.id))
    }

    fn duration_ms(&self, now: Timestamp) -> u64 {
        self.started_at.map_or(0, |started| millis(started, now))
    }

    fn enqueued(&mut self, now: Timestamp) -> Event {
        self.event("job.enqueued", now).with("priority", self.priority)
    }

    fn event(&mut self, kind: &'static str, now: Timestamp) -> Event {
        let mut event = Event::new(kind, self.id.clone(), now)
            .with("job_id", self.id.clone())
            .with("job_type", self.kind.clone())
            .with("queue", self.queue.clone())
            .with("state", self.state.name())
            .with("timestamp", stamp(now));
        if let Some(trace @ Value::String(_)) = self.meta.value("trace_id") {
            event = event.with("trace_id", trace);
        }
        // The first event after a change of state says which it was.
        if self.told != Some(self.state) {
            event = event.with("from", self.told.map(State::name)).with("to", self.state.name());
            self.told = Some(self.state);
        }
        event.queue = Some(self.queue.clone());
        event.job_type = Some(self.kind.clone());
        event
    }
}

fn after(now: Timestamp, ms: u64) -> Timestamp {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    now.checked_add(jiff::SignedDuration::from_millis(ms)).unwrap_or(Timestamp::MAX)
}

/// From one instant to another in milliseconds; never less than none.
fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
