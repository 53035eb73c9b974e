//! `krond stop`.

use std::path::Path;

use krond::control::{self, Request};
use krond::daemon::Farewell;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
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

const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let state_dir = self.place.settings()?.state_dir;
        let runs = match (self.graceful, self.end_runs) {
            (true, _) => Some(Farewell::Wait),
            (_, true) => Some(Farewell::End),
            (false, false) => None,
        };
        let process = control::process(&state_dir).ok().flatten();
        let _: Value = self.place.ask(&Request::Stop { runs })?;
        // Runs may take as long as they like. Once the process has ended, another can be started.
        if let Some(process) = process {
            while let Err(Errno::INTR) = poll(&mut [PollFd::new(&process, PollFlags::IN)], None) {}
        } else {
            wait_for_silence(&state_dir);
        }
        Ok(Answer::text("krond has stopped\n"))
    }
}

/// Waits until nobody answers any more, where the daemon cannot be seen.
fn wait_for_silence(state_dir: &Path) {
    while control::ask(state_dir, &Request::Status).ok().flatten().is_some() {
        let _ = poll(&mut [], Some(&LOOK_EVERY));
    }
}
