//! `krontab completions`: a script that lets a shell complete commands and flags.

use clap::{Args, Command, CommandFactory};
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
        clap_complete::generate(self.shell, &mut offered(), "krontab", &mut script);
        Ok(Answer::text(String::from_utf8_lossy(&script)))
    }
}

/// The commands that the help shows. A script would offer the hidden ones too.
fn offered() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("krontab")
        .version(env!("CARGO_PKG_VERSION"))
        .about(all.get_about().cloned().unwrap_or_default())
        .subcommands(shown.collect::<Vec<_>>())
}
