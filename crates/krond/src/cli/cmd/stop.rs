//! `krond stop`.

use std::time::Duration;

use krond::control::{self, Request};
use krond::daemon::Farewell;
use serde_json::Value;

use crate::cli::answer::{Answer, Failure};
use crate::cli::place::Place;

/// Stops the daemon. Its runs go on, and the next krond takes them over, unless told otherwise.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  krond stop\n  krond stop --graceful\n\n\
                        Exit codes: 0 stopped; 1 not running; 2 anything else.")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Start nothing more, and stop when all runs are over
    #[arg(long)]
    graceful: bool,
    /// End all runs first, as a timeout does
    #[arg(long, conflicts_with = "graceful")]
    end_runs: bool,
}

const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let state_dir = self.place.settings()?.state_dir;
        let runs = match (self.graceful, self.end_runs) {
            (true, _) => Some(Farewell::Wait),
            (_, true) => Some(Farewell::End),
            (false, false) => None,
        };
        let _: Value = self.place.ask(&Request::Stop { runs })?;
        // It answers no more when it has ended. Runs may take as long as they like.
        while control::ask(&state_dir, &Request::Status).ok().flatten().is_some() {
            #[expect(
                clippy::disallowed_methods,
                reason = "somebody waits for this command, and nothing else does"
            )]
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(Answer::text("krond has stopped\n"))
    }
}
