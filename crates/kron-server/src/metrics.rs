//! What is counted, and how Prometheus reads it.
//!
//! Written by hand: what a transaction did is counted as a whole once it is durable, and the format is a page long.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::cron::Reason;
use crate::job::State;

/// The media type of the answer.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The most queues that are told apart; all others are counted together.
pub const QUEUES_MAX: usize = 100;

/// The queue of all that are not told apart. No queue can have that name.
const OTHER_QUEUES: &str = "_other";

/// Upper ends of the buckets: seconds, and orders.
const LATENESS: [f64; 11] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 30.0, 300.0];
const COMMITS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
const GROUPS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
const REQUESTS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0];

/// Everything that has been counted since the start.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    events: BTreeMap<&'static str, u64>,
    occurrences: BTreeMap<Reason, u64>,
    lateness: Histogram,
    commits: Histogram,
    groups: Histogram,
    failed_commits: u64,
    reads: u64,
    unreadable: u64,
    requests: BTreeMap<(String, String, u16), u64>,
    latencies: BTreeMap<(String, String), Histogram>,
}

/// What is so now, and counted by others.
#[derive(Debug, Default)]
pub struct Gauges {
    /// How many jobs of a queue are in a state; no queue is for all that are not told apart.
    pub jobs: Vec<(Option<String>, State, u64)>,
    /// Cron jobs that are enabled, and that are not.
    pub crons: [u64; 2],
    /// How many clients follow events.
    pub streams: u64,
    /// For how many seconds the server has run.
    pub uptime: f64,
    /// Where everything is kept.
    pub backend: &'static str,
    /// Which time zone database is used.
    pub zones: String,
}

impl Metrics {
    /// Counts an event that was told.
    pub fn told(&self, kind: &'static str) {
        *self.counts().events.entry(kind).or_default() += 1;
    }

    /// Counts occurrences of cron jobs that ended for a reason.
    pub fn settled(&self, reason: Reason, count: u64) {
        *self.counts().occurrences.entry(reason).or_default() += count;
    }

    /// Counts how long after its chosen time a job was there.
    pub fn late(&self, seconds: f64) {
        self.counts().lateness.add(seconds.max(0.0));
    }

    /// Counts a transaction of so many orders.
    pub fn committed(&self, orders: usize, took: Duration) {
        let mut counts = self.counts();
        counts.commits.add(took.as_secs_f64());
        counts.groups.add(number(orders as u64));
    }

    /// Counts a query beside the transactions.
    pub fn read(&self) {
        self.counts().reads += 1;
    }

    /// Counts a transaction that failed.
    pub fn commit_failed(&self) {
        self.counts().failed_commits += 1;
    }

    /// Counts a job that was set aside because its row cannot be read.
    pub fn set_aside(&self) {
        self.counts().unreadable += 1;
    }

    /// Counts an answer.
    pub fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let mut counts = self.counts();
        let route = (method.to_owned(), route.to_owned());
        let latency = counts.latencies.entry(route.clone()).or_insert_with(|| Histogram::new(&REQUESTS));
        latency.add(took.as_secs_f64());
        *counts.requests.entry((route.0, route.1, status)).or_default() += 1;
    }

    /// A panic elsewhere cannot have left half a number.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it, as Prometheus reads it.
    #[must_use]
    pub fn render(&self, gauges: &Gauges) -> String {
        let mut text = Text::default();
        text.head("kron_build_info", "gauge", "What runs.");
        let zones =
            [("version", env!("CARGO_PKG_VERSION")), ("backend", gauges.backend), ("zones", &gauges.zones)];
        text.line("kron_build_info", &zones, 1.0);
        text.head("kron_uptime_seconds", "gauge", "For how long the server has run.");
        text.line("kron_uptime_seconds", &[], gauges.uptime);
        text.head("kron_jobs", "gauge", "Jobs by queue and state.");
        for (queue, state, count) in &gauges.jobs {
            let labels = [("queue", queue.as_deref().unwrap_or(OTHER_QUEUES)), ("state", state.name())];
            text.line("kron_jobs", &labels, number(*count));
        }
        text.head("kron_cron_jobs", "gauge", "Registered cron jobs.");
        for (enabled, count) in ["true", "false"].into_iter().zip(gauges.crons) {
            text.line("kron_cron_jobs", &[("enabled", enabled)], number(count));
        }

        let counts = self.counts();
        text.head("kron_events_total", "counter", "What happened, by the type of its event.");
        for (kind, count) in &counts.events {
            text.line("kron_events_total", &[("type", kind)], number(*count));
        }
        text.head(
            "kron_cron_occurrences_total",
            "counter",
            "Occurrences of cron jobs by how they ended, and why.",
        );
        for (reason, count) in &counts.occurrences {
            let labels = [("outcome", reason.outcome().name()), ("reason", reason.name())];
            text.line("kron_cron_occurrences_total", &labels, number(*count));
        }
        let help = "How long after its chosen time the job of a cron job was there.";
        text.histogram("kron_cron_lateness_seconds", help, [(&[][..], &counts.lateness)]);
        let help = "How long transactions took, from the first order to the disk.";
        text.histogram("kron_store_commit_seconds", help, [(&[][..], &counts.commits)]);
        let help = "How many orders shared a transaction.";
        text.histogram("kron_store_commit_orders", help, [(&[][..], &counts.groups)]);
        text.head(
            "kron_store_commits_failed_total",
            "counter",
            "Transactions that failed, of which nothing was done.",
        );
        text.line("kron_store_commits_failed_total", &[], number(counts.failed_commits));
        text.head("kron_store_reads_total", "counter", "Queries beside the transactions.");
        text.line("kron_store_reads_total", &[], number(counts.reads));
        let help = "Jobs that were set aside because their rows cannot be read.";
        text.head("kron_store_unreadable_total", "counter", help);
        text.line("kron_store_unreadable_total", &[], number(counts.unreadable));
        text.head("kron_event_streams", "gauge", "Clients that follow events.");
        text.line("kron_event_streams", &[], number(gauges.streams));
        text.head("kron_http_requests_total", "counter", "Requests by route and status.");
        for ((method, route, status), count) in &counts.requests {
            let labels = [("method", &**method), ("route", route), ("status", &status.to_string())];
            text.line("kron_http_requests_total", &labels, number(*count));
        }
        let labels: Vec<_> = counts
            .latencies
            .keys()
            .map(|(method, route)| [("method", &**method), ("route", &**route)])
            .collect();
        let latencies = labels.iter().map(|labels| &labels[..]).zip(counts.latencies.values());
        text.histogram(
            "kron_http_request_seconds",
            "How long requests took until they were answered.",
            latencies,
        );
        text.0
    }
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            events: BTreeMap::new(),
            // Known from the start, so that the first of its kind is seen as a change.
            occurrences: Reason::ALL.into_iter().map(|reason| (reason, 0)).collect(),
            lateness: Histogram::new(&LATENESS),
            commits: Histogram::new(&COMMITS),
            groups: Histogram::new(&GROUPS),
            failed_commits: 0,
            reads: 0,
            unreadable: 0,
            requests: BTreeMap::new(),
            latencies: BTreeMap::new(),
        }
    }
}

#[derive(Debug)]
struct Histogram {
    ends: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
    count: u64,
}

impl Histogram {
    fn new(ends: &'static [f64]) -> Histogram {
        Histogram { ends, counts: vec![0; ends.len()], sum: 0.0, count: 0 }
    }

    fn add(&mut self, value: f64) {
        if let Some(at) = self.ends.iter().position(|end| value <= *end) {
            self.counts[at] += 1;
        }
        self.sum += value;
        self.count += 1;
    }
}

type Labels<'l> = [(&'l str, &'l str)];

#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        self.0.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{value}\"", if at == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn histogram<'h>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (&'h Labels<'h>, &'h Histogram)>,
    ) {
        self.head(name, "histogram", help);
        for (labels, histogram) in series {
            let mut total = 0;
            let counts = histogram.counts.iter().map(|count| {
                total += count;
                total
            });
            let ends = histogram.ends.iter().map(ToString::to_string).chain(["+Inf".into()]);
            for (end, count) in ends.zip(counts.chain([histogram.count])) {
                let labels: Vec<_> = labels.iter().copied().chain([("le", &*end)]).collect();
                self.line(&format!("{name}_bucket"), &labels, number(count));
            }
            self.line(&format!("{name}_sum"), labels, histogram.sum);
            self.line(&format!("{name}_count"), labels, number(histogram.count));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows floating point only")]
fn number(count: u64) -> f64 {
    count as f64
}
