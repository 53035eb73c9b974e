//! `krond metrics`.

use krond::control::Request;

use crate::cli::answer::{Answer, Failure};
use crate::cli::place::Place;

/// Prints the numbers for Prometheus.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  krond metrics\n\nThe setting `metrics_file` keeps them in a file for the textfile \
                        collector.\n\nExit codes: 0 done; 1 not running; 2 anything else."
)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        Ok(Answer::text(self.place.ask::<String>(&Request::Metrics)?))
    }
}
