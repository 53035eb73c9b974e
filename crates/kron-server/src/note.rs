//! What a transaction leaves to be counted, logged and woken for once it is durable: what was undone is told to nobody.

use std::time::Duration;

use jiff::Timestamp;
use kron_core::{Distribution, Job as Plan};
use kron_zones::Zones;
use serde_json::{Map, Value, json};

use crate::bell::Bell;
use crate::cron::{Compiled, Cron, Occurrence, Reason};
use crate::metrics::Metrics;

/// The target of the lines from which fires can be computed again.
pub const DECISIONS: &str = "kron::decision";

/// Something to be counted or logged, or to wake somebody.
#[derive(Debug)]
pub enum Note {
    /// A job was made for an occurrence of a cron job.
    Fired(Box<Fired>),
    /// Occurrences of a cron job ended without a job.
    Settled {
        /// Which cron job.
        cron: String,
        /// The nominal time; of several, the first.
        scheduled: Timestamp,
        /// Why.
        reason: Reason,
        /// How many.
        count: u64,
    },
    /// A job was set aside because its row cannot be read.
    SetAside {
        /// Which job.
        job: String,
        /// What is wrong with it.
        error: String,
    },
    /// A job that was set aside can be read again.
    TakenBack {
        /// Which job.
        job: String,
    },
    /// Jobs of a queue are ready for whoever waits for them; of none, a worker may have others than before.
    Ready(Option<String>),
    /// An event of that kind was told.
    Told(&'static str),
}

/// A fire, and everything that its time was computed from.
#[derive(Debug)]
pub struct Fired {
    cron: String,
    expression: String,
    timezone: String,
    zones: String,
    anchor: Timestamp,
    /// What the chosen time was chosen by; none if nobody logs it.
    plan: Option<Plan>,
    scheduled: Timestamp,
    chosen: Timestamp,
    actual: Timestamp,
    seed_hash: Option<String>,
    job: String,
}

impl Fired {
    /// An occurrence of a cron job that has fired, by those time zones.
    #[must_use]
    pub fn new(cron: &Cron, compiled: &Compiled, occurrence: &Occurrence, zones: &Zones) -> Fired {
        let definition = &cron.definition;
        let is_logged = tracing::enabled!(target: DECISIONS, tracing::Level::INFO);
        Fired {
            cron: definition.name.clone(),
            expression: definition.cron.clone(),
            timezone: definition.timezone.clone(),
            zones: if is_logged { zones.database().to_string() } else { String::new() },
            anchor: cron.anchor,
            plan: is_logged.then(|| compiled.plan.clone()),
            scheduled: occurrence.scheduled,
            chosen: occurrence.chosen.unwrap_or(occurrence.scheduled),
            actual: occurrence.actual,
            seed_hash: occurrence.seed_hash.clone(),
            job: occurrence.job_id.clone().unwrap_or_default(),
        }
    }

    /// How long after its chosen time it was looked at, in seconds.
    fn late(&self) -> f64 {
        self.actual.duration_since(self.chosen).as_secs_f64()
    }

    fn log(&self) {
        let Some(plan) = &self.plan else { return };
        let (scheduled, chosen, actual) = (self.scheduled, self.chosen, self.actual);
        // What `krontab batch` is asked to compute the chosen time again.
        let decide = request(plan, scheduled);
        tracing::info!(
            target: DECISIONS,
            cron = self.cron, scheduled = %scheduled, chosen = %chosen, actual = %actual, job = self.job,
            expression = self.expression, timezone = self.timezone, anchor = %self.anchor,
            seed_hash = self.seed_hash, zones = self.zones, decide, "fired",
        );
    }
}

/// The request to `krontab batch` whose answer has the chosen time of a nominal one.
fn request(plan: &Plan, nominal: Timestamp) -> String {
    let mut request = json!({
        "op": "decide",
        "identity": plan.identity(),
        "nominal": nominal.to_string(),
        "timezone": plan.zone().name(),
        "window": {"mode": plan.window().mode().name(), "duration": plan.window().duration().to_string()},
        "seed": {"strategy": plan.seed_strategy().name(), "salt": plan.salt()},
    });
    if !matches!(plan.distribution(), Distribution::Uniform) {
        let written = plan.distribution().parameters().to_string();
        let pairs = written.split(',').filter_map(|pair| pair.split_once('='));
        let params: Map<String, Value> = pairs.map(|(key, value)| (key.to_owned(), json!(value))).collect();
        request["distribution"] = json!({"name": plan.distribution().name(), "params": params});
    }
    let constraints = plan.constraints();
    for (name, clauses) in [("only", constraints.only()), ("avoid", constraints.avoid())] {
        if !clauses.is_empty() {
            request[name] = json!(clauses.to_string());
        }
    }
    request.to_string()
}

impl Note {
    /// Wakes whom it concerns.
    pub fn wake(&self, bell: &Bell) {
        match self {
            Note::Ready(Some(queue)) => bell.ring(queue),
            Note::Ready(None) => bell.ring_all(),
            Note::Fired(_)
            | Note::SetAside { .. }
            | Note::Settled { .. }
            | Note::TakenBack { .. }
            | Note::Told(_) => {}
        }
    }

    /// Counts and logs it. The transaction took so long.
    pub fn take(self, metrics: &Metrics, took: Duration) {
        match self {
            Note::Fired(fired) => {
                metrics.settled(Reason::Triggered, 1);
                metrics.late(fired.late() + took.as_secs_f64());
                fired.log();
            }
            Note::Settled { cron, scheduled, reason, count } => {
                metrics.settled(reason, count);
                tracing::info!(cron, %scheduled, reason = reason.name(), count, "no job was made");
            }
            Note::SetAside { job, error } => {
                metrics.set_aside();
                tracing::error!(
                    job,
                    error,
                    "a job cannot be read and is set aside, in the state `unreadable`"
                );
            }
            Note::TakenBack { job } => {
                tracing::info!(job, "a job that was set aside can be read again and is taken back");
            }
            Note::Ready(_) => {}
            Note::Told(kind) => metrics.told(kind),
        }
    }
}
