//! What is told of a `KronJob`: to people as Events, and as lines of the log from which every decision can be made again.

use jiff::Timestamp;
use kron_core::{Decision, Job, PeriodId, Reason, Tally};
use kron_schedule::Count;
use kube::runtime::events::{Event, EventType};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Tell {
    /// A period came due, and its Job is about to be created.
    Triggered {
        /// Its decision.
        decision: Decision,
    },
    /// A period came due, and has no Job.
    Decided {
        /// Its decision.
        decision: Decision,
    },
    /// The Job of a period was created.
    Executed {
        /// The Job.
        job_name: String,
        /// The period.
        period: PeriodId,
        /// The moment that was chosen.
        chosen: Timestamp,
        /// Whether somebody was already deleting it when it was recorded.
        found: bool,
    },
    /// A period has another outcome than a Job.
    Settled {
        /// The period.
        period: PeriodId,
        /// The moment that was chosen.
        chosen: Option<Timestamp>,
        /// Why.
        reason: Reason,
    },
    /// Periods were passed over that came due while nobody looked.
    Passed {
        /// How many, and why.
        tally: Tally,
    },
    /// A Job is ended to make room for another.
    Replaced {
        /// The one that is ended.
        job_name: String,
        /// The other.
        by: String,
    },
    /// A Job has ended.
    Ended {
        /// The Job.
        job_name: String,
        /// The period it was for.
        period: PeriodId,
        /// How: succeeded, failed or unknown.
        result: &'static str,
    },
}

impl Tell {
    /// The reason of its Event, in a word that does not change.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Tell::Triggered { .. } => "Triggered",
            Tell::Decided { .. } => "Decided",
            Tell::Executed { .. } => "Executed",
            Tell::Settled { reason, .. } => reason_of(*reason),
            Tell::Passed { tally } => reason_of(tally.reason),
            Tell::Replaced { .. } => "Replaced",
            Tell::Ended { result: "succeeded", .. } => "JobSucceeded",
            Tell::Ended { result: "failed", .. } => "JobFailed",
            Tell::Ended { .. } => "JobGone",
        }
    }

    /// Its Event. What is only for the log has none.
    #[must_use]
    pub fn event(&self) -> Option<Event> {
        let note = match self {
            Tell::Triggered { .. } | Tell::Decided { .. } => return None,
            Tell::Executed { job_name, period, .. } => {
                format!("created Job {job_name} for the period {period}")
            }
            Tell::Settled { period, reason, .. } => {
                format!("the period {period} is {} because {reason}", reason.outcome())
            }
            Tell::Passed { tally } => {
                let (first, last, outcome, reason) =
                    (tally.first, tally.last, tally.reason.outcome(), tally.reason);
                match tally.count {
                    Count::Exactly(1) => format!("the period {first} is {outcome} because {reason}"),
                    Count::Exactly(count) => {
                        format!("{count} periods from {first} to {last} are {outcome} because {reason}")
                    }
                    Count::AtLeast(count) => {
                        format!(
                            "at least {count} periods from {first} to {last} are {outcome} because {reason}"
                        )
                    }
                }
            }
            Tell::Replaced { job_name, by } => format!("deleting Job {job_name} to make room for {by}"),
            Tell::Ended { job_name, period, result: "unknown" } => {
                format!("Job {job_name} of the period {period} was deleted before it ended")
            }
            Tell::Ended { job_name, period, result } => {
                format!("Job {job_name} of the period {period} {result}")
            }
        };
        let reason = self.reason();
        let is_normal = matches!(reason, "Executed" | "JobSucceeded" | "Replaced" | "FoundRunning");
        let action = match self {
            Tell::Executed { .. } => "Create",
            Tell::Replaced { .. } => "Delete",
            _ => "Evaluate",
        };
        Some(Event {
            type_: if is_normal { EventType::Normal } else { EventType::Warning },
            reason: reason.to_owned(),
            note: Some(note),
            action: action.to_owned(),
            secondary: None,
        })
    }

    /// Writes its line of the log.
    pub fn log(&self, namespace: &str, name: &str, uid: &str, job: Option<&Job>, now: Timestamp) {
        match self {
            Tell::Triggered { decision } | Tell::Decided { decision } => {
                let Some(job) = job else { return };
                let chosen = decision.chosen().map(|chosen| chosen.to_string()).unwrap_or_default();
                tracing::info!(
                    event = "decision",
                    namespace,
                    name,
                    uid,
                    identity = job.identity(),
                    period = %decision.period_id(),
                    nominal = %decision.nominal(),
                    window = %job.window(),
                    window_start = %decision.window_start(),
                    window_end = %decision.window_end(),
                    distribution = %job.distribution(),
                    seed_strategy = %job.seed_strategy(),
                    salt = job.salt(),
                    seed_hash = %decision.seed_hash(),
                    constraints_only = %job.constraints().only(),
                    constraints_avoid = %job.constraints().avoid(),
                    attempts = decision.attempts(),
                    timezone = job.zone().name(),
                    chosen,
                    now = %now,
                );
            }
            Tell::Executed { job_name, period, chosen, found } => {
                tracing::info!(event = "job_created", namespace, name, uid, %period, job = job_name, %chosen, deleting = found);
            }
            Tell::Settled { period, chosen, reason } => {
                let chosen = chosen.map(|chosen| chosen.to_string()).unwrap_or_default();
                let outcome = reason.outcome().name();
                tracing::info!(event = "outcome", namespace, name, uid, %period, outcome, reason = reason.name(), chosen, now = %now);
            }
            Tell::Passed { tally } => {
                let (count, at_least) = match tally.count {
                    Count::Exactly(count) => (count, false),
                    Count::AtLeast(count) => (count, true),
                };
                tracing::info!(
                    event = "periods_passed", namespace, name, uid, first = %tally.first, last = %tally.last, count, at_least,
                    outcome = tally.reason.outcome().name(), reason = tally.reason.name(),
                );
            }
            Tell::Replaced { job_name, by } => {
                tracing::info!(
                    event = "replaced_job",
                    namespace,
                    name,
                    uid,
                    old_job = job_name,
                    new_job = by
                );
            }
            Tell::Ended { job_name, period, result } => {
                tracing::info!(event = "job_ended", namespace, name, uid, %period, job = job_name, result);
            }
        }
    }
}

/// The name of a reason as Kubernetes writes names.
fn reason_of(reason: Reason) -> &'static str {
    match reason {
        Reason::Started => "Executed",
        Reason::FoundRunning => "FoundRunning",
        Reason::DeadlinePassed => "DeadlinePassed",
        Reason::NoCandidate => "Unschedulable",
        Reason::Rescheduled => "Rescheduled",
        Reason::StillRunning => "StillRunning",
        Reason::Superseded => "Superseded",
    }
}
