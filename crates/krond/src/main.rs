//! The `krond` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == krond::spawner::MODE) {
        krond::spawner::serve();
    }
    eprintln!("usage: krond");
    ExitCode::from(2)
}
