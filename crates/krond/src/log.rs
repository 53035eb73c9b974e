//! The log: what the daemon reports becomes lines, each with everything needed to understand it later.
//!
//! Names of events and fields are given here and nowhere else.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use kron_core::{Decision, Reason};
use kron_schedule::Count;
use krontab::Entry;
use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::daemon::{Because, Report, Signal};
use crate::view::run_name;

/// Opens a file for the log of a daemon in the background, and creates it if it is not there.
///
/// # Errors
///
/// If there is none that can be opened.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Opens the file anew, which may have been moved away, and makes it standard output and error.
///
/// # Errors
///
/// If there is none that can be opened. Then both are what they were.
pub fn reopen(path: &Path) -> io::Result<()> {
    let file = open(path)?;
    rustix::stdio::dup2_stdout(&file)?;
    Ok(rustix::stdio::dup2_stderr(&file)?)
}

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Format {
    /// `key=value`, for people.
    #[default]
    Text,
    /// An object a line, for programs.
    Json,
}

/// How much a line matters.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// How it came about.
    Debug,
    /// As it should be.
    #[default]
    Info,
    /// Worth a look.
    Warn,
    /// Something failed.
    Error,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// When it happened.
    pub at: Timestamp,
    /// How much it matters.
    pub level: Level,
    /// Which part of krond tells it.
    pub component: &'static str,
    /// What happened.
    pub event: &'static str,
    /// Everything about it, in the order it is printed.
    pub fields: Vec<(&'static str, Value)>,
}

impl Line {
    /// A line without fields.
    #[must_use]
    pub fn new(at: Timestamp, level: Level, component: &'static str, event: &'static str) -> Line {
        Line { at, level, component, event, fields: Vec::new() }
    }

    /// The same line with one more field.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Line {
        self.fields.push((key, value.into()));
        self
    }

    /// The same line with one more field, if there is something to say.
    #[must_use]
    pub fn with_some(self, key: &'static str, value: Option<impl Into<Value>>) -> Line {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// The line as it is written, without its end.
    #[must_use]
    pub fn render(&self, format: Format) -> String {
        let at = format!("{:.9}", self.at);
        let level = self.level.name();
        match format {
            Format::Text => {
                let mut text =
                    format!("{at} level={level} component={} event={}", self.component, self.event);
                for (key, value) in &self.fields {
                    let _ = write!(text, " {key}={}", plain(value));
                }
                text
            }
            Format::Json => {
                let mut object = Map::new();
                object.insert("timestamp".into(), at.into());
                object.insert("level".into(), level.into());
                object.insert("component".into(), self.component.into());
                object.insert("event".into(), self.event.into());
                object.extend(self.fields.iter().map(|(key, value)| ((*key).into(), value.clone())));
                Value::Object(object).to_string()
            }
        }
    }

    /// Writes the line. Where nobody can be told, nobody is.
    pub fn print(&self, format: Format, mut to: impl Write) {
        let _ = writeln!(to, "{}", self.render(format));
    }
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERROR",
        }
    }
}

/// A value in a text line: as it is if it is a word, else in quotes with escapes, so that no value can pass
/// itself off as another field or another line.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if is_word(text) => text.clone(),
        value => value.to_string(),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !c.is_control() && !"\"=\\".contains(c))
}

/// What a report says, in lines.
#[must_use]
pub fn lines(report: &Report, now: Timestamp) -> Vec<Line> {
    let line = |level, component, event| Line::new(now, level, component, event);
    let of = |entry: &Entry, level, component, event| {
        line(level, component, event).with("identity", entry.identity()).with("name", entry.name.as_str())
    };
    match report {
        Report::Settled { entry, decision, reason, process } => {
            let settled = settled(entry, decision, *reason, process.map(|process| process.pid), now);
            let trigger = of(entry, Level::Info, "scheduler", "trigger")
                .with("period", decision.period_id().to_string())
                .with("chosen", time(decision.chosen()))
                .with("now", now.to_string());
            let trigger = (*reason == Reason::Started).then_some(trigger);
            let (seed, sample) = sampled(entry, decision, now);
            let decision = decision_line(entry, decision, now);
            [Some(seed), sample, Some(decision), trigger, Some(settled)].into_iter().flatten().collect()
        }
        Report::Passed { entry, passed } => passed
            .tallies
            .iter()
            .map(|tally| {
                let (count, at_least) = match tally.count {
                    Count::Exactly(count) => (count, false),
                    Count::AtLeast(count) => (count, true),
                };
                of(entry, Level::Info, "policy", "periods_superseded")
                    .with("outcome", tally.reason.outcome().name())
                    .with("reason", tally.reason.name())
                    .with("first", tally.first.to_string())
                    .with("last", tally.last.to_string())
                    .with("count", count)
                    .with("at_least", at_least)
            })
            .collect(),
        Report::Manual { entry, run, process } => vec![
            of(entry, Level::Info, "executor", "execution_started")
                .with("run", run_name(*run))
                .with("pid", process.pid),
        ],
        Report::Completed { entry, run, process, exit, started_at, ended_at } => {
            let level = if *exit == Some(0) { Level::Info } else { Level::Warn };
            vec![
                of(entry, level, "executor", "execution_completed")
                    .with("run", run_name(*run))
                    .with("pid", process.pid)
                    .with("exit_code", exit.map_or_else(|| "unknown".into(), Value::from))
                    .with("duration", seconds(ended_at.duration_since(*started_at))),
            ]
        }
        Report::Ending { entry, run, process, because, signal } => {
            let event = match because {
                Because::Timeout => "execution_timeout",
                Because::Replaced => "replaced_job",
                Because::Stopped => "execution_stopped",
            };
            let signal = match signal {
                Signal::Term => "TERM",
                Signal::Kill => "KILL",
            };
            vec![
                of(entry, Level::Warn, "executor", event)
                    .with("run", run_name(*run))
                    .with("pid", process.pid)
                    .with("signal", signal),
            ]
        }
        Report::Stuck { entry, run, process } => vec![
            of(entry, Level::Error, "executor", "error")
                .with("operation", "end run")
                .with("error", "the process does not end, even though it was killed")
                .with("run", run_name(*run))
                .with("pid", process.pid),
        ],
        Report::Adopted { entry, run, process } => vec![
            of(entry, Level::Info, "executor", "process_adopted")
                .with("run", run_name(*run))
                .with("pid", process.pid),
        ],
        Report::Paused { entry, .. } => vec![of(entry, Level::Info, "scheduler", "paused")],
        Report::Resumed { entry, since } => {
            vec![of(entry, Level::Info, "scheduler", "resumed").with("paused_since", since.to_string())]
        }
        Report::Held { entry, operation, error, retry_in } => vec![
            of(entry, Level::Error, "scheduler", "error")
                .with("operation", *operation)
                .with("error", error.as_str())
                .with("retry_in", format!("{:.3}s", retry_in.as_secs_f64())),
        ],
        Report::Recovered(entry) => vec![of(entry, Level::Info, "scheduler", "recovered")],
        Report::Fenced { entry, why, kept_as, fence } => vec![
            of(entry, Level::Error, "scheduler", "state_corrupt")
                .with("error", why.as_str())
                .with("kept_as", kept_as.as_str())
                .with("fence", fence.to_string()),
        ],
        Report::Ahead { entry, watermark } => vec![
            of(entry, Level::Warn, "scheduler", "clock_anomaly")
                .with("watermark", watermark.to_string())
                .with(
                    "message",
                    format!(
                        "every period up to {watermark} counts as handled, because the clock once said so; if it \
                         was wrong, run `krond accept-clock {}`",
                        entry.identity()
                    ),
                ),
        ],
        Report::Rescheduled { entry, period, previous, new } => vec![
            of(entry, Level::Info, "scheduler", "reschedule")
                .with("period", period.to_string())
                .with("previous_chosen", time(*previous))
                .with("new_chosen", time(*new))
                .with("reason", "definition changed"),
        ],
        Report::ZoneChanged { entry, latest, until } => vec![
            of(entry, Level::Info, "scheduler", "zone_changed")
                .with("handled", latest.to_string())
                .with("zone", entry.job.zone().name())
                .with("until", until.to_string())
                .with("reason", "these local times have been handled"),
        ],
        Report::Skipped { entry, at, times } => vec![
            of(entry, Level::Info, "scheduler", "dst_skip")
                .with("transition", at.to_string())
                .with("count", times.len())
                .with("times", times.iter().map(|time| civil(*time, entry)).collect::<Vec<_>>().join(" ")),
        ],
        Report::Configured(changes) => vec![
            line(Level::Info, "scheduler", "config_reloaded")
                .with("jobs", changes.jobs)
                .with("added", changes.added)
                .with("changed", changes.changed)
                .with("removed", changes.removed),
        ],
        Report::ClockJumped(seconds) => vec![
            line(Level::Warn, "scheduler", "clock_anomaly")
                .with("jumped", format!("{seconds:+.3}s"))
                .with("message", "the clock was set"),
        ],
        Report::Stalled(duration) => vec![
            line(Level::Warn, "scheduler", "clock_anomaly")
                .with("stalled", format!("{:.3}s", duration.as_secs_f64()))
                .with("message", "nobody looked: the machine slept, or krond was stopped"),
        ],
    }
}

/// How a decision came about: its seed, and what was drawn with it, unless there was nothing to choose from.
fn sampled(entry: &Entry, decision: &Decision, now: Timestamp) -> (Line, Option<Line>) {
    let of = |event| {
        Line::new(now, Level::Debug, "seed", event)
            .with("identity", entry.identity())
            .with("name", entry.name.as_str())
            .with("period", decision.period_id().to_string())
    };
    let seed = of("seed_computed")
        .with("seed_strategy", entry.job.seed_strategy().name())
        .with("period_key", decision.period_key().to_string())
        .with("salt", entry.job.salt())
        .with("seed_hash", decision.seed_hash().to_string());
    let attempts = decision.attempts();
    let rejected = attempts - u32::from(decision.chosen().is_some() && attempts > 0);
    let sample = (attempts > 0).then(|| {
        let offset = decision.chosen().map(|chosen| chosen.duration_since(decision.window_start()));
        of("sample")
            .with("distribution", entry.job.distribution().name())
            .with("attempts", attempts)
            .with("rejected", rejected)
            .with_some("mapped_offset_ns", offset.map(|offset| offset.as_secs() * 1_000_000_000))
            .with("candidate", time(decision.chosen()))
    });
    (seed, sample)
}

/// Everything that is needed to compute the same decision again.
fn decision_line(entry: &Entry, decision: &Decision, now: Timestamp) -> Line {
    let job = &entry.job;
    let explained = decision.explain(job);
    Line::new(now, Level::Info, "scheduler", "decision")
        .with("identity", entry.identity())
        .with("name", entry.name.as_str())
        .with("period", decision.period_id().to_string())
        .with("nominal", decision.nominal().to_string())
        .with("schedule", entry.schedule.text())
        .with("timezone", entry.zone_name())
        .with("window_mode", job.window().mode().name())
        .with("window_start", decision.window_start().to_string())
        .with("window_end", decision.window_end().to_string())
        .with("distribution", job.distribution().name())
        .with("dist_params", job.distribution().parameters().to_string())
        .with("seed_strategy", job.seed_strategy().name())
        .with("salt", job.salt())
        .with("seed_hash", explained.decision().seed_hash().to_string())
        .with("constraints", job.constraints().to_string())
        .with("attempts", decision.attempts())
        .with("chosen", time(decision.chosen()))
}

fn settled(entry: &Entry, decision: &Decision, reason: Reason, pid: Option<u32>, now: Timestamp) -> Line {
    let policy = entry.job.policy();
    let (level, component, event) = match reason {
        Reason::Started => (Level::Info, "executor", "execution_started"),
        Reason::FoundRunning => (Level::Warn, "executor", "execution_found"),
        Reason::DeadlinePassed => (Level::Info, "policy", "missed_deadline"),
        Reason::NoCandidate => (Level::Warn, "constraints", "constraint_unsatisfiable"),
        Reason::Rescheduled => (Level::Info, "policy", "period_rescheduled"),
        Reason::StillRunning => (Level::Info, "policy", "skipped_concurrency"),
        Reason::Superseded => (Level::Info, "policy", "period_superseded"),
    };
    let line = Line::new(now, level, component, event)
        .with("identity", entry.identity())
        .with("name", entry.name.as_str())
        .with("period", decision.period_id().to_string())
        .with("outcome", reason.outcome().name())
        .with("reason", reason.name())
        .with("chosen", time(decision.chosen()))
        .with("now", now.to_string());
    match reason {
        Reason::DeadlinePassed => line.with_some("deadline", policy.deadline.map(|limit| limit.to_string())),
        Reason::NoCandidate => line
            .with("window_start", decision.window_start().to_string())
            .with("window_end", decision.window_end().to_string()),
        _ => line.with_some("pid", pid),
    }
}

/// A local time with its zone: `2026-03-08T02:30[America/New_York]`.
fn civil(time: DateTime, entry: &Entry) -> String {
    format!("{}[{}]", time.strftime("%Y-%m-%dT%H:%M"), entry.zone_name())
}

fn time(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "-".into(), |time| time.to_string())
}

fn seconds(duration: SignedDuration) -> String {
    format!("{:.3}s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_pass_for_another_field_or_line() {
        let at: Timestamp = "2026-03-01T12:00:00.5Z".parse().unwrap();
        let line = Line::new(at, Level::Warn, "executor", "error")
            .with("a", "plain")
            .with("b", "two words")
            .with("c", "x=1\nlevel=ERROR")
            .with("d", "say \"hi\" \\ \u{1b}[31m")
            .with("e", 3)
            .with("f", "");
        assert_eq!(
            line.render(Format::Text),
            "2026-03-01T12:00:00.500000000Z level=WARN component=executor event=error a=plain b=\"two words\" \
             c=\"x=1\\nlevel=ERROR\" d=\"say \\\"hi\\\" \\\\ \\u001b[31m\" e=3 f=\"\""
        );
        let json: Value = serde_json::from_str(&line.render(Format::Json)).unwrap();
        assert_eq!(json["c"], "x=1\nlevel=ERROR");
        assert_eq!(json["timestamp"], "2026-03-01T12:00:00.500000000Z");
    }
}
