//! `krontab man`: the manual pages.

use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, roman};

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

/// The page of a command. What stands below its help has sections of its own.
fn page(command: clap::Command) -> std::io::Result<String> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut page = Vec::new();
    Page::new(command.after_help(Resettable::Reset)).render(&mut page)?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    let end = page.find(".SH VERSION\n").unwrap_or(page.len());
    page.insert_str(end, &sections(&after));
    Ok(page)
}

/// The examples, which are kept line by line, the exit codes, and the rest.
fn sections(after: &str) -> String {
    let mut roff = Roff::new();
    for block in after.split("\n\n") {
        if let Some(examples) = block.strip_prefix("Examples:\n") {
            roff.control("SH", ["EXAMPLES"]).control("nf", []);
            for line in examples.lines() {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            roff.control("fi", []);
        } else if let Some(codes) = block.strip_prefix("Exit codes: ") {
            roff.control("SH", ["EXIT STATUS"]).text([roman(codes)]);
        } else if let Some(environment) = block.strip_prefix("Environment: ") {
            roff.control("SH", ["ENVIRONMENT"]).text([roman(environment)]);
        } else if !block.is_empty() {
            roff.control("SH", ["NOTES"]).text([roman(block)]);
        }
    }
    // The page has begun already.
    let rendered = roff.render();
    rendered.lines().skip_while(|line| !line.starts_with(".SH")).map(|line| format!("{line}\n")).collect()
}
