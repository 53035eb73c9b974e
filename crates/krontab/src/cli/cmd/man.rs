//! `krontab man`: the manual pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;

use crate::cli::answer::Answer;
use crate::cli::args::Cli;
use crate::cli::exit::Failure;
use crate::cli::install;
use crate::cli::load::reason;

/// Print the manual page, or write the pages of all commands into a directory
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// The directory for krontab.1, krontab-lint.1 and so on; it is made, and told, if there is none
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  krontab man | man -l -
  krontab man /usr/local/share/man/man1

Exit codes: 0 printed or written, 2 anything else.";

impl Man {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let failed =
            |error: std::io::Error| Failure::Write(format!("could not write a page: {}", reason(&error)));
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        let Some(directory) = &self.directory else {
            return Ok(Answer::text(page(command).map_err(failed)?));
        };
        let made = install::make_directory(directory)?;
        let commands = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
        for command in commands.collect::<Vec<_>>().into_iter().chain([command]) {
            let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
            std::fs::write(directory.join(format!("{name}.1")), page(command).map_err(failed)?)
                .map_err(failed)?;
        }
        let made = made.iter().map(|path| format!("made directory: {}\n", path.display()));
        Ok(Answer::text(made.collect::<String>()))
    }
}

fn page(command: clap::Command) -> std::io::Result<String> {
    let mut page = Vec::new();
    Page::new(command).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
