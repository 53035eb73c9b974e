//! `krond pause`.

use jiff::Timestamp;
use kron_core::PeriodId;
use krond::control::Request;
use serde::{Deserialize, Serialize};

use crate::cli::Format;
use crate::cli::answer::{Answer, Failure};
use crate::cli::place::Place;

/// Pauses a job: nothing of it starts until it is resumed, whatever happens to krond or the machine. A run under way
/// goes on, and `krond run` still works.
///
/// That is remembered with the job's state, for its identity: a job that is taken out of its krontab and put back is still paused.
/// Meanwhile nothing is recorded of its periods; when it is resumed, they are, as skipped or missed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  krond pause backup\n  krond resume backup\n\n\
                        Exit codes: 0 it is paused; 1 not running, job not found, or it could not be made durable; \
                        2 anything else.")]
pub(crate) struct Args {
    /// The name or the identity of the job
    job: String,
    #[command(flatten)]
    place: Place,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Paused {
    paused_since: Timestamp,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let paused: Paused = self.place.ask(&Request::Pause { job: self.job.clone() })?;
        Ok(Answer::of(&paused, self.format, || {
            let since = PeriodId::new(paused.paused_since);
            format!("{} is paused since {since}: nothing starts until `krond resume`\n", self.job)
        }))
    }
}
