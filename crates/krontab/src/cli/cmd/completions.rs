//! `krontab completions`: a script that lets a shell complete commands and flags.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::answer::Answer;
use crate::cli::args::Cli;
use crate::cli::exit::Failure;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  krontab completions bash > /etc/bash_completion.d/krontab
  krontab completions fish > ~/.config/fish/completions/krontab.fish

Exit codes: 0 printed, 2 anything else.";

impl Completions {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "krontab", &mut script);
        Ok(Answer::text(String::from_utf8_lossy(&script)))
    }
}
