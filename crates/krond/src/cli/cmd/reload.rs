//! `krond reload`.

use krond::control::Request;
use serde_json::Value;

use crate::cli::answer::{Answer, Failure};
use crate::cli::place::Place;

/// Reads the krontabs again: all of them, or, if there is an error, none.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  krond reload\n\nExit codes: 0 done; 1 not running, or an error in a krontab; \
                        2 anything else. SIGHUP does the same."
)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let answer: Value = self.place.ask(&Request::Reload)?;
        let jobs = if answer["jobs"] == 1 { "job" } else { "jobs" };
        Ok(Answer::text(format!("krond has {} {jobs} now\n", answer["jobs"])))
    }
}
