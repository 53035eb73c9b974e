//! What is counted, in the text format of Prometheus. No name of anyone's is in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;
use kron_core::Reason;
use kron_schedule::Count;

use crate::clock;
use crate::tell::Tell;

/// Bounds of the buckets, in milliseconds.
const BUCKETS: [u64; 10] = [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000, 600_000];

/// How long the timer may be silent before the process is not healthy.
const SILENCE: Duration = Duration::from_secs(30);

/// Everything that is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    outcomes: Mutex<BTreeMap<&'static str, u64>>,
    writes: Mutex<BTreeMap<&'static str, u64>>,
    lateness: Histogram,
    passes: Histogram,
    pass_errors: AtomicU64,
    kronjobs: AtomicI64,
    leader: AtomicBool,
    ready: AtomicBool,
    ticked: AtomicU64,
}

#[derive(Debug, Default)]
struct Histogram {
    counts: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    milliseconds: AtomicU64,
}

impl Histogram {
    fn add(&self, milliseconds: u64) {
        for (bound, count) in BUCKETS.iter().zip(&self.counts) {
            if milliseconds <= *bound {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.milliseconds.fetch_add(milliseconds, Ordering::Relaxed);
    }

    #[allow(clippy::cast_precision_loss, reason = "it is printed in seconds")]
    fn write(&self, out: &mut String, name: &str, help: &str) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        for (bound, count) in BUCKETS.iter().zip(&self.counts) {
            let seconds = *bound as f64 / 1_000.0;
            let _ = writeln!(out, "{name}_bucket{{le=\"{seconds}\"}} {}", count.load(Ordering::Relaxed));
        }
        let count = self.count.load(Ordering::Relaxed);
        let sum = self.milliseconds.load(Ordering::Relaxed) as f64 / 1_000.0;
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}");
    }
}

impl Metrics {
    /// A request that changes something was made.
    pub fn write(&self, kind: &'static str) {
        *self.writes.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    /// A Job was created, so long after its chosen time.
    pub fn created(&self, late: SignedDuration) {
        self.write("create");
        self.lateness.add(u64::try_from(late.as_millis()).unwrap_or(0));
    }

    /// A `KronJob` was looked at.
    pub(crate) fn pass(&self, took: Duration, is_ok: bool) {
        self.passes.add(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        if !is_ok {
            self.pass_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Something was told.
    pub(crate) fn tell(&self, tell: &Tell) {
        let (reason, count) = match tell {
            Tell::Executed { .. } => (Reason::Started, 1),
            Tell::Settled { reason, .. } => (*reason, 1),
            Tell::Passed { tally } => match tally.count {
                Count::Exactly(count) | Count::AtLeast(count) => (tally.reason, count),
            },
            _ => return,
        };
        *self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).entry(reason.name()).or_default() +=
            count;
    }

    pub(crate) fn kronjobs(&self, count: usize) {
        self.kronjobs.store(i64::try_from(count).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn tick(&self) {
        self.ticked.store(clock::awake().as_secs(), Ordering::Relaxed);
    }

    /// Whether this process looks after anything now.
    pub fn set_leader(&self, leader: bool) {
        self.leader.store(leader, Ordering::Relaxed);
        self.tick();
    }

    /// Whether it could take over, or has.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    /// Whether it is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Whether the timer goes on, if there is one.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        let ticked = Duration::from_secs(self.ticked.load(Ordering::Relaxed));
        !self.leader.load(Ordering::Relaxed) || clock::awake().saturating_sub(ticked) < SILENCE
    }

    /// All of it, as Prometheus reads it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let _ = writeln!(
            out,
            "# HELP kron_operator_periods_total Periods by their outcome.\n# TYPE kron_operator_periods_total counter"
        );
        for reason in Reason::ALL {
            let count = outcomes.get(reason.name()).copied().unwrap_or_default();
            let (outcome, reason) = (reason.outcome().name(), reason.name());
            let _ = writeln!(
                out,
                "kron_operator_periods_total{{outcome=\"{outcome}\",reason=\"{reason}\"}} {count}"
            );
        }
        let _ = writeln!(
            out,
            "# HELP kron_operator_writes_total Requests that change something.\n# TYPE kron_operator_writes_total counter"
        );
        for (kind, count) in &*self.writes.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = writeln!(out, "kron_operator_writes_total{{kind=\"{kind}\"}} {count}");
        }
        self.lateness.write(
            &mut out,
            "kron_operator_start_lateness_seconds",
            "From the chosen time of a period to its Job.",
        );
        self.passes.write(&mut out, "kron_operator_look_seconds", "How long one look at a KronJob takes.");
        let errors = self.pass_errors.load(Ordering::Relaxed);
        let kronjobs = self.kronjobs.load(Ordering::Relaxed);
        let leader = i32::from(self.leader.load(Ordering::Relaxed));
        for (name, kind, help, value) in [
            ("kron_operator_look_errors_total", "counter", "Looks that failed.", errors.to_string()),
            ("kron_operator_kronjobs", "gauge", "KronJobs there are.", kronjobs.to_string()),
            ("kron_operator_leader", "gauge", "Whether this process looks after them.", leader.to_string()),
        ] {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        out
    }
}
