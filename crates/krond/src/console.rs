//! The console of `krond demo`: what happens, in lines for a person who watches.

use jiff::Timestamp;
use kron_core::{Reason, RunId};
use krontab::Entry;

use crate::daemon::{Because, Report};

/// An exit code in words, with the signal that it may stand for.
#[must_use]
pub fn exit_words(code: i32) -> String {
    let signal = match code - 128 {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    };
    format!("exit code {code}{signal}")
}

/// What a person wants to read of a report.
#[must_use]
pub fn line(report: &Report, now: Timestamp, colours: bool) -> Option<String> {
    let time = now.strftime("%H:%M:%S");
    let paint = |code: &str, text: &str| match colours {
        true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        false => text.to_owned(),
    };
    let tell = |entry: &Entry, code: &str, word: &str, rest: String| {
        Some(format!("{time}  {:<12} {}  {rest}", entry.name, paint(code, &format!("{word:<11}"))))
    };
    match report {
        Report::Settled { entry, decision, reason: Reason::Started, process } => {
            let late = decision.chosen().map_or(0.0, |chosen| now.duration_since(chosen).as_secs_f64());
            let pid = process.map_or(0, |process| process.pid);
            let window = format!(
                "{} to {}",
                decision.window_start().strftime("%H:%M:%S"),
                decision.window_end().strftime("%H:%M:%S")
            );
            let chosen = if decision.window_start() == decision.window_end() {
                String::new()
            } else {
                format!(", chosen from {window}")
            };
            let late = if late < 1.0 { format!("{:.1} ms", late * 1e3) } else { format!("{late:.1} s") };
            tell(entry, "32", "started", format!("pid {pid}, {late} after its time{chosen}"))
        }
        Report::Settled { entry, decision, reason, .. } => {
            let rest = format!("the period {}: {reason}", decision.period_id());
            tell(entry, "33", reason.outcome().name(), rest)
        }
        Report::Passed { entry, passed } => {
            let rest = passed.tallies.iter().map(|tally| format!("{} to {}", tally.first, tally.last));
            tell(entry, "33", "passed over", rest.collect::<Vec<_>>().join(", "))
        }
        Report::Manual { entry, process, .. } => {
            tell(entry, "32", "started", format!("pid {}, by hand", process.pid))
        }
        Report::Completed { entry, run, exit, started_at, ended_at, .. } => {
            let took = ended_at.duration_since(*started_at).as_secs_f64();
            let by_hand = if matches!(run, RunId::Manual(_)) { ", by hand" } else { "" };
            match exit {
                Some(0) => tell(entry, "2", "finished", format!("after {took:.1} s{by_hand}")),
                Some(code) => {
                    tell(entry, "31", "failed", format!("{} after {took:.1} s{by_hand}", exit_words(*code)))
                }
                None => tell(entry, "31", "finished", "nobody saw how".into()),
            }
        }
        Report::Ending { entry, process, because, .. } => {
            let why = match because {
                Because::Timeout => "it has run for as long as it may",
                Because::Replaced => "the next period takes its place",
                Because::Stopped => "krond stops",
            };
            tell(entry, "33", "ending", format!("pid {}: {why}", process.pid))
        }
        Report::Stuck { entry, process, .. } => {
            tell(entry, "31", "stuck", format!("pid {} does not end", process.pid))
        }
        Report::Adopted { entry, process, .. } => {
            tell(entry, "36", "adopted", format!("pid {} is still running", process.pid))
        }
        Report::Paused { entry, .. } => {
            tell(entry, "33", "paused", "nothing starts until it is resumed".into())
        }
        Report::Resumed { entry, since } => {
            tell(entry, "36", "resumed", format!("paused since {}", since.strftime("%H:%M:%S")))
        }
        Report::Held { entry, operation, error, .. } => {
            tell(entry, "31", "held", format!("could not {operation}: {error}"))
        }
        Report::Recovered(entry) => tell(entry, "36", "recovered", String::new()),
        Report::Fenced { entry, why, kept_as, .. } => {
            tell(entry, "31", "fenced", format!("its state was damaged ({why}) and is kept as {kept_as}"))
        }
        Report::Ahead { entry, watermark } => {
            tell(entry, "33", "waits", format!("everything up to {watermark} counts as handled"))
        }
        Report::Rescheduled { entry, period, new, .. } => {
            let new =
                new.map_or_else(|| "it is no longer scheduled".into(), |new| format!("it runs at {new}"));
            tell(entry, "36", "rescheduled", format!("the period {period}: {new}"))
        }
        Report::ZoneChanged { entry, latest, until } => {
            tell(entry, "36", "zone", format!("{latest} has been handled, and here that is {until}"))
        }
        Report::Skipped { entry, times, .. } => {
            let times = times.iter().map(|time| time.strftime("%H:%M").to_string());
            let times = times.collect::<Vec<_>>().join(", ");
            tell(entry, "33", "no time", format!("clocks went forward, and there was no {times}"))
        }
        Report::Configured(changes) => Some(format!("{time}  {} jobs", changes.jobs)),
        Report::ClockJumped(seconds) => Some(format!("{time}  the clock was set by {seconds:+.1} s")),
        Report::Stalled(duration) => {
            Some(format!("{time}  nobody looked for {:.0} s", duration.as_secs_f64()))
        }
    }
}
