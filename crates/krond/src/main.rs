//! The `krond` binary: the daemon, and what to ask it.

mod cli;

use std::process::ExitCode;

use krond::spawner;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == spawner::MODE) {
        spawner::serve();
    }
    cli::run()
}
