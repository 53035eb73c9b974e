//! `krond resume`.

use jiff::Timestamp;
use kron_core::PeriodId;
use krond::control::Request;
use serde::{Deserialize, Serialize};

use crate::cli::Format;
use crate::cli::answer::{Answer, Failure};
use crate::cli::place::Place;

/// Resumes a job that was paused. What came due meanwhile is not made up for, but for the latest period if it is within its
/// deadline: `krond jobs --format json` tells it as `onResume` before.
///
/// A job that was not paused stays as it is. One that its line suspends is resumed by taking `suspend=true` away.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  krond resume backup\n\n\
                        Exit codes: 0 it is not paused; 1 not running, job not found, or it could not be made durable; \
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
struct Resumed {
    was_paused_since: Option<Timestamp>,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let resumed: Resumed = self.place.ask(&Request::Resume { job: self.job.clone() })?;
        Ok(Answer::of(&resumed, self.format, || match resumed.was_paused_since {
            Some(since) => format!("{} is resumed; it was paused since {}\n", self.job, PeriodId::new(since)),
            None => format!("{} was not paused\n", self.job),
        }))
    }
}
