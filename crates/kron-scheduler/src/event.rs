//! What the scheduler tells: the specification's thirteen events.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::error::Error;
use crate::machine::Reason;

/// What has happened. [`name`](Event::name) is the specification's word for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// `initialize` was called while nothing was active.
    SchedulerInitializationStarted,
    /// The list is stored, and the tasks are scheduled.
    SchedulerInitializationCompleted {
        /// How many tasks there are.
        tasks: usize,
        /// Whether `stop` was called meanwhile: then nothing will run.
        interrupted: bool,
    },
    /// The list was refused, the store failed, or the future was dropped. Nothing has changed.
    SchedulerInitializationFailed {
        /// Why.
        error: Error,
    },
    /// `stop` was called.
    SchedulerStopRequested,
    /// Everything that ran has ended, and the store is released.
    SchedulerStopped,
    /// A callback is invoked, for an occurrence or because its last run was cut off.
    TaskRunStarted {
        /// The task.
        task: Arc<str>,
        /// Why: never [`Reason::Retry`].
        reason: Reason,
        /// When it was decided; this is the task's last attempt.
        at: Timestamp,
        /// How long after it was due.
        lateness: Duration,
    },
    /// A callback ended well.
    TaskRunCompleted {
        /// The task.
        task: Arc<str>,
        /// When.
        at: Timestamp,
    },
    /// A callback failed or panicked.
    TaskRunFailed {
        /// The task.
        task: Arc<str>,
        /// When.
        at: Timestamp,
        /// When it is tried again.
        retry_at: Timestamp,
        /// What the callback said.
        error: Arc<str>,
    },
    /// A callback is invoked again after a failure.
    TaskRetryStarted {
        /// The task.
        task: Arc<str>,
        /// When.
        at: Timestamp,
        /// How long after the end of the delay.
        lateness: Duration,
    },
    /// An occurrence came while a retry was waited for: the run that starts now takes its place.
    TaskRetryPreempted {
        /// The task.
        task: Arc<str>,
        /// When.
        at: Timestamp,
    },
    /// There are tasks, and they are looked at from now on.
    PollingStarted,
    /// `stop` was called: nothing more is started.
    PollingStopRequested,
    /// Everything that ran has ended.
    PollingStopped,
}

impl Event {
    /// The specification's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Event::SchedulerInitializationStarted => "SchedulerInitializationStarted",
            Event::SchedulerInitializationCompleted { .. } => "SchedulerInitializationCompleted",
            Event::SchedulerInitializationFailed { .. } => "SchedulerInitializationFailed",
            Event::SchedulerStopRequested => "SchedulerStopRequested",
            Event::SchedulerStopped => "SchedulerStopped",
            Event::TaskRunStarted { .. } => "TaskRunStarted",
            Event::TaskRunCompleted { .. } => "TaskRunCompleted",
            Event::TaskRunFailed { .. } => "TaskRunFailed",
            Event::TaskRetryStarted { .. } => "TaskRetryStarted",
            Event::TaskRetryPreempted { .. } => "TaskRetryPreempted",
            Event::PollingStarted => "PollingStarted",
            Event::PollingStopRequested => "PollingStopRequested",
            Event::PollingStopped => "PollingStopped",
        }
    }

    /// The task it is about, if it is about one.
    #[must_use]
    pub fn task(&self) -> Option<&str> {
        match self {
            Event::TaskRunStarted { task, .. }
            | Event::TaskRunCompleted { task, .. }
            | Event::TaskRunFailed { task, .. }
            | Event::TaskRetryStarted { task, .. }
            | Event::TaskRetryPreempted { task, .. } => Some(task),
            _ => None,
        }
    }

    /// Tells it to `tracing`: failures as warnings, single runs for debugging, the rest as information.
    pub(crate) fn trace(&self) {
        let name = self.name();
        match self {
            Event::SchedulerInitializationFailed { error } => {
                tracing::error!(kind = %error.kind(), %error, "{name}");
            }
            Event::SchedulerInitializationCompleted { tasks, interrupted } => {
                tracing::info!(tasks, interrupted, "{name}");
            }
            Event::TaskRunStarted { task, reason: Reason::Orphan, .. } => {
                tracing::info!(%task, "{name}: its last run was cut off");
            }
            Event::TaskRunStarted { task, lateness, .. } | Event::TaskRetryStarted { task, lateness, .. } => {
                tracing::debug!(%task, ?lateness, "{name}");
            }
            Event::TaskRunFailed { task, retry_at, error, .. } => {
                tracing::warn!(%task, %retry_at, %error, "{name}");
            }
            Event::TaskRunCompleted { task, .. } | Event::TaskRetryPreempted { task, .. } => {
                tracing::debug!(%task, "{name}");
            }
            _ => tracing::info!("{name}"),
        }
    }
}

/// Someone who is told of every event, in the place where it happens. It should be quick; a panic is caught.
pub(crate) type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// How late runs have started, since the scheduler was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Lateness {
    /// How many runs have started.
    pub starts: u64,
    /// How many of them later than the bound that the specification recommends: a minute, or 6 ms for each task
    /// where that is more.
    pub over_bound: u64,
    /// The latest of them.
    pub worst: Duration,
}

/// The counters behind [`Lateness`].
#[derive(Debug, Default)]
pub(crate) struct LatenessMeter {
    starts: AtomicU64,
    over_bound: AtomicU64,
    worst_ms: AtomicU64,
}

impl LatenessMeter {
    /// Counts a start, and says whether it was later than it should be.
    pub(crate) fn count(&self, lateness: Duration, tasks: usize) -> bool {
        let millis = u64::try_from(lateness.as_millis()).unwrap_or(u64::MAX);
        let over = lateness > lateness_bound(tasks);
        self.starts.fetch_add(1, Ordering::Relaxed);
        self.over_bound.fetch_add(u64::from(over), Ordering::Relaxed);
        self.worst_ms.fetch_max(millis, Ordering::Relaxed);
        over
    }

    pub(crate) fn read(&self) -> Lateness {
        Lateness {
            starts: self.starts.load(Ordering::Relaxed),
            over_bound: self.over_bound.load(Ordering::Relaxed),
            worst: Duration::from_millis(self.worst_ms.load(Ordering::Relaxed)),
        }
    }
}

/// The specification's targets R1 and R2: a minute, and ten minutes for 100,000 tasks.
#[must_use]
pub fn lateness_bound(tasks: usize) -> Duration {
    let by_number = u64::try_from(tasks).unwrap_or(u64::MAX).saturating_mul(6);
    Duration::from_millis(by_number).max(Duration::from_secs(60))
}

/// How long after `due_at` it is, and nothing if it is before.
pub(crate) fn late_by(due_at: Timestamp, now: Timestamp) -> Duration {
    let late: SignedDuration = now.duration_since(due_at);
    Duration::try_from(late).unwrap_or_default()
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task() {
            Some(task) => write!(f, "{} {task}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}
