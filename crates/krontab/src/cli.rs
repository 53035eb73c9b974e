//! Arguments become a command, the command an answer, and the answer text or JSON.
//!
//! `args` has the commands and the flags they share; each file of `cmd` is one command, with its
//! flags, its help and what it does. `load`, `config` and `fleet` find the files they are about, and
//! `simulate` counts what whole fleets of jobs come to, and `import` reads what other schedulers have. What a
//! command finds out is a `view`, which prints as text and serializes as JSON; `answer` is a view
//! ready to be printed, and `exit` maps every failure to a documented code.
//!
//! Nothing here depends on the locale or on `TZ`; only `clock` reads the clock, and only where no
//! `--at` is given.

mod answer;
mod args;
mod clock;
mod cmd;
mod config;
mod exit;
mod fleet;
mod import;
mod install;
mod load;
mod periods;
mod reference;
mod simulate;
mod span;
mod time;
mod usage;
mod view;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use krontab::Zones;

use self::answer::Answer;
use self::args::{Cli, Command};
use self::exit::Failure;

/// Runs the tool with these arguments, the first being its own name.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let zones = Zones::system();
    let answer = match Cli::try_parse_from(arguments) {
        Ok(cli) => dispatch(cli.command, &zones),
        Err(error) => return usage::explain(&error, arguments, &zones),
    };
    match answer {
        Ok(answer) => answer.print(),
        Err(failure) => failure.print(),
    }
}

fn dispatch(command: Command, zones: &Zones) -> Result<Answer, Failure> {
    match command {
        Command::Lint(args) => args.run(zones),
        Command::Explain(args) => args.run(zones),
        Command::Next(args) => args.run(zones),
        Command::Prev(args) => args.run(zones),
        Command::Why(args) => args.run(zones),
        Command::Describe(args) => args.run(zones),
        Command::Fuzzy(args) => args.run(zones),
        Command::List(args) => args.run(zones),
        Command::Add(args) => args.run(zones),
        Command::Remove(args) => args.run(zones),
        Command::Fmt(args) => args.run(zones),
        Command::Batch(args) => args.run(zones),
        Command::Simulate(args) => args.run(zones),
        Command::Import(args) => args.run(zones),
        Command::Diff(args) => args.run(zones),
        Command::Ical(args) => args.run(zones),
        Command::Completions(args) => args.run(),
        Command::Man(args) => args.run(),
        Command::Reference => Ok(Answer::text(reference::markdown())),
    }
}
