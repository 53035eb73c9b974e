//! `krond run`.

use krond::control::Request;
use serde_json::Value;

use crate::cli::Format;
use crate::cli::answer::{Answer, Failure};
use crate::cli::place::Place;

/// Runs a job now. Its periods know nothing of it: what was to run still does.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  krond run backup\n\n\
                        Exit codes: 0 started; 1 not running, job not found, or refused; 2 anything else.")]
pub(crate) struct Args {
    /// The name or the identity of the job
    job: String,
    #[command(flatten)]
    place: Place,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let started: Value = self.place.ask(&Request::Run { job: self.job.clone() })?;
        Ok(Answer::of(&started, self.format, || {
            let run = started["run"].as_str().unwrap_or_default();
            format!("started {} (pid {}, {run})\n", self.job, started["pid"])
        }))
    }
}
