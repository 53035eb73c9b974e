//! The `krontab` tool: checks, previews, explains and installs krontab files.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(&std::env::args_os().collect::<Vec<_>>())
}
