//! `krond completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::cli::answer::{Answer, Failure};

/// Prints completions for a shell.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  krond completions bash > /etc/bash_completion.d/krond\n  krond completions fish > ~/.config/fish/completions/krond.fish\n\n\
                        Exit codes: 0 done; 2 wrong arguments."
)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let mut out = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "krond", &mut out);
        Ok(Answer::text(String::from_utf8_lossy(&out)))
    }
}
