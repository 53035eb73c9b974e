//! `krond status`.

use std::fmt::Write as _;

use kron_core::PeriodId;
use krond::control::Request;
use krond::view::{HeldView, StatusView};
use serde_json::json;

use crate::cli::Format;
use crate::cli::answer::{Answer, Failure};
use crate::cli::place::Place;

/// Tells whether krond runs, how many jobs it has and what comes next.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  krond status\n  krond status --format json\n\n\
                        Exit codes: 0 running; 1 not running; 2 anything else.")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        match self.place.ask::<StatusView>(&Request::Status) {
            Ok(status) => Ok(Answer::of(&status, self.format, || text(&status))),
            Err(Failure::NotRunning(_)) => {
                let answer = Answer::of(&json!({ "running": false }), self.format, || "not running\n".into());
                Ok(answer.ending(1))
            }
            Err(failure) => Err(failure),
        }
    }
}

fn text(status: &StatusView) -> String {
    let since = PeriodId::new(status.started_at);
    let mut text = format!("running since {since} (pid {})\n", status.pid);
    let runs = if status.active == 1 { "run" } else { "runs" };
    let of_removed = match status.active_of_removed {
        0 => String::new(),
        1 => ", 1 of a removed job".into(),
        several => format!(", {several} of removed jobs"),
    };
    let paused = if status.paused == 0 { String::new() } else { format!(", {} paused", status.paused) };
    let _ =
        writeln!(text, "jobs:      {} ({} {runs} active{of_removed}{paused})", status.jobs, status.active);
    let _ = match &status.next {
        Some(next) => {
            let chosen = next.chosen.map(|chosen| chosen.to_string()).unwrap_or_default();
            writeln!(text, "next:      {chosen}  {}", next.identity)
        }
        None => writeln!(text, "next:      nothing"),
    };
    let _ = writeln!(text, "krontabs:  {}\nstate:     {}", status.config, status.state_dir);
    let _ = writeln!(text, "zones:     {}\nversion:   {}", status.zones, status.version);
    for held in &status.held {
        let _ = writeln!(text, "held:      {}: {}", held.identity, what_failed(held));
    }
    if status.more_held > 0 {
        let _ = writeln!(text, "           and {} more", status.more_held);
    }
    text
}

/// What a job is held by, in words.
pub(crate) fn what_failed(held: &HeldView) -> String {
    let times = if held.failures == 1 { "once".into() } else { format!("{} times in a row", held.failures) };
    format!("could not {} ({times}): {}", held.operation, held.error)
}
