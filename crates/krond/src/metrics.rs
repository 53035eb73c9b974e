//! Numbers for Prometheus, in its text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use kron_core::Reason;
use kron_schedule::Count;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::daemon::Report;

/// Upper ends of the buckets, in seconds.
const LATENESS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 60.0];
const WRITING: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0];

/// Replaces a file by that text at once, so that no collector reads half of it.
///
/// Others may be able to write in its directory. So whatever has the temporary name is taken away, and a file is made
/// that was not there: no link is followed, and nobody else has it open.
///
/// # Errors
///
/// If the file is not replaced.
pub fn publish(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    let mut temporary = name.to_os_string();
    temporary.push(".tmp");
    match rustix::fs::unlinkat(&directory, &temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let mut file = File::from(rustix::fs::openat(&directory, &temporary, flags, mode)?);
    file.write_all(text.as_bytes())?;
    Ok(rustix::fs::renameat(&directory, &temporary, &directory, name)?)
}

/// What has been counted since the start.
#[derive(Debug)]
pub struct Metrics {
    outcomes: BTreeMap<&'static str, (&'static str, u64)>,
    completed: BTreeMap<&'static str, u64>,
    lateness: Histogram,
    writing: Histogram,
    failures: u64,
}

/// What is so now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gauges {
    /// Jobs there are.
    pub jobs: usize,
    /// Runs under way.
    pub active: usize,
    /// Jobs that have to wait.
    pub held: usize,
    /// Jobs that somebody has paused.
    pub paused: usize,
    /// When the daemon started.
    pub started_at: Timestamp,
}

impl Metrics {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Metrics {
        let outcome = |reason: Reason| (reason.name(), (reason.outcome().name(), 0));
        let results = ["failed", "succeeded", "unknown"];
        Metrics {
            outcomes: Reason::ALL.into_iter().map(outcome).collect(),
            completed: results.into_iter().map(|result| (result, 0)).collect(),
            lateness: Histogram::new(&LATENESS),
            writing: Histogram::new(&WRITING),
            failures: 0,
        }
    }

    /// Counts what a report says.
    pub fn count(&mut self, report: &Report, now: Timestamp) {
        match report {
            Report::Settled { decision, reason, .. } => {
                self.add(*reason, 1);
                if let (Reason::Started, Some(chosen)) = (reason, decision.chosen()) {
                    self.lateness.add(now.duration_since(chosen).as_secs_f64().max(0.0));
                }
            }
            Report::Passed { passed, .. } => {
                for tally in &passed.tallies {
                    let (Count::Exactly(count) | Count::AtLeast(count)) = tally.count;
                    self.add(tally.reason, count);
                }
            }
            Report::Completed { exit, .. } => {
                let result = match exit {
                    Some(0) => "succeeded",
                    Some(_) => "failed",
                    None => "unknown",
                };
                *self.completed.entry(result).or_default() += 1;
            }
            Report::Held { .. } => self.failures += 1,
            _ => {}
        }
    }

    /// Counts how long a write of states took.
    pub fn count_write(&mut self, took: Duration) {
        self.writing.add(took.as_secs_f64());
    }

    fn add(&mut self, reason: Reason, count: u64) {
        if let Some((_, total)) = self.outcomes.get_mut(reason.name()) {
            *total += count;
        }
    }

    /// All of it, as Prometheus reads it.
    #[must_use]
    pub fn render(&self, gauges: &Gauges) -> String {
        let mut text = Text::default();
        text.head("krond_build_info", "gauge", "The version of krond.");
        text.line("krond_build_info", &format!("version=\"{}\"", env!("CARGO_PKG_VERSION")), 1.0);
        text.head("krond_start_time_seconds", "gauge", "When krond started, in seconds since 1970.");
        #[expect(
            clippy::cast_precision_loss,
            reason = "a second more or less in three hundred million years"
        )]
        text.line("krond_start_time_seconds", "", gauges.started_at.as_second() as f64);
        for (name, help, value) in [
            ("krond_jobs", "Jobs that are configured.", gauges.jobs),
            ("krond_active_runs", "Runs under way.", gauges.active),
            ("krond_held_jobs", "Jobs that have to wait because something failed.", gauges.held),
            ("krond_paused_jobs", "Jobs that somebody has paused.", gauges.paused),
        ] {
            text.head(name, "gauge", help);
            text.line(name, "", number(value as u64));
        }
        text.head("krond_outcomes_total", "counter", "Periods by how they ended, and why.");
        for (reason, (outcome, count)) in &self.outcomes {
            let labels = format!("outcome=\"{outcome}\",reason=\"{reason}\"");
            text.line("krond_outcomes_total", &labels, number(*count));
        }
        text.head("krond_runs_completed_total", "counter", "Runs by how they ended.");
        for (result, count) in &self.completed {
            text.line("krond_runs_completed_total", &format!("result=\"{result}\""), number(*count));
        }
        text.head("krond_failures_total", "counter", "Failures that made a job wait.");
        text.line("krond_failures_total", "", number(self.failures));
        text.histogram(
            "krond_lateness_seconds",
            "How long after its chosen time a run started.",
            &self.lateness,
        );
        text.histogram(
            "krond_state_write_seconds",
            "How long it took to make states durable.",
            &self.writing,
        );
        text.0
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
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

#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: f64) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let mut total = 0;
        for (end, count) in histogram.ends.iter().zip(&histogram.counts) {
            total += count;
            self.line(&format!("{name}_bucket"), &format!("le=\"{end}\""), number(total));
        }
        self.line(&format!("{name}_bucket"), "le=\"+Inf\"", number(histogram.count));
        self.line(&format!("{name}_sum"), "", histogram.sum);
        self.line(&format!("{name}_count"), "", number(histogram.count));
    }
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows floating point only")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_is_followed_to_publish() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let (path, victim) = (place.path().join("krond.prom"), place.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        symlink(&victim, place.path().join("krond.prom.tmp")).unwrap();
        symlink(&victim, &path).unwrap();
        for text in ["one", "two"] {
            publish(&path, text).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert!(path.symlink_metadata().unwrap().is_file());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2);
    }

    #[test]
    fn every_reason_is_there_from_the_start() {
        let text = Metrics::new().render(&Gauges::default());
        for reason in Reason::ALL {
            assert!(text.contains(&format!("reason=\"{}\"}} 0\n", reason.name())), "{text}");
        }
    }

    #[test]
    fn buckets_add_up() {
        let mut metrics = Metrics::new();
        metrics.count_write(Duration::from_millis(2));
        metrics.count_write(Duration::from_secs(2));
        let text = metrics.render(&Gauges::default());
        assert!(text.contains("krond_state_write_seconds_bucket{le=\"0.001\"} 0\n"), "{text}");
        assert!(text.contains("krond_state_write_seconds_bucket{le=\"0.0025\"} 1\n"), "{text}");
        assert!(text.contains("krond_state_write_seconds_bucket{le=\"1\"} 1\n"), "{text}");
        assert!(text.contains("krond_state_write_seconds_bucket{le=\"+Inf\"} 2\n"), "{text}");
        assert!(text.contains("krond_state_write_seconds_sum 2.002\n"), "{text}");
    }
}
