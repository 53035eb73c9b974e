//! `krond man`.

use clap::CommandFactory;

use crate::cli::Cli;
use crate::cli::answer::{Answer, Failure};

/// Prints the manual page.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  krond man > /usr/local/share/man/man8/krond.8\n  krond man why | man -l -\n\n\
                  Exit codes: 0 done; 2 no such command."
)]
pub(crate) struct Args {
    /// A command, for its own page
    command: Option<String>,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let mut command = Cli::command();
        command.build();
        let command = match &self.command {
            None => command,
            Some(name) => command
                .find_subcommand(name)
                .cloned()
                .ok_or_else(|| Failure::Usage(format!("unknown command `{name}`")))?,
        };
        let mut out = Vec::new();
        clap_mangen::Man::new(command)
            .section("8")
            .render(&mut out)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(Answer::text(String::from_utf8_lossy(&out)))
    }
}
