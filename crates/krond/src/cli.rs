//! Arguments become a command, and the command an answer with an exit code.
//!
//! Each file of `cmd` is one command: its flags, its help and what it does. `place` finds the daemon they are about,
//! and `answer` is how they end.

mod answer;
mod cmd;
mod place;
mod reference;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use self::answer::{Answer, Failure};

/// The daemon of Kron: it runs what krontabs say, each period at most once, and can tell why.
#[derive(Parser)]
#[command(name = "krond", version, subcommand_required = true, arg_required_else_help = true)]
#[command(
    after_help = "Try it:\n  krond demo\n\nExit codes: 0 done; 1 no, or not running, or an error in a krontab; \
                        2 wrong arguments, or a state that cannot be used; 3 another krond has the state \
                        directory; 4 the system does not work. Each command's help has its own."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(cmd::demo::Args),
    Start(cmd::start::Args),
    Stop(cmd::stop::Args),
    Reload(cmd::reload::Args),
    Status(cmd::status::Args),
    Jobs(cmd::jobs::Args),
    Run(cmd::run::Args),
    Pause(cmd::pause::Args),
    Resume(cmd::resume::Args),
    History(cmd::history::Args),
    Why(cmd::why::Args),
    AcceptClock(cmd::accept_clock::Args),
    Dashboard(cmd::dashboard::Args),
    Metrics(cmd::metrics::Args),
    Settings(cmd::settings::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
    /// Print the reference of all commands in Markdown.
    #[command(hide = true)]
    Reference,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Runs the command that the arguments name.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    match dispatch(cli.command) {
        Ok(answer) => answer.print(),
        Err(failure) => failure.print(),
    }
}

/// Prints what the arguments ask for without being a command: help, the version, or what is wrong. Who does not know
/// the commands is told them on standard output.
fn explain(error: &clap::Error) -> ExitCode {
    let is_missing = matches!(
        error.kind(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
    );
    // Who closes the pipe has seen enough.
    if error.kind() == ErrorKind::InvalidSubcommand {
        let _ = error.print();
    }
    if is_missing || error.kind() == ErrorKind::InvalidSubcommand {
        let _ = Cli::command().print_help();
        return ExitCode::from(answer::USAGE);
    }
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { answer::USAGE } else { 0 })
}

fn dispatch(command: Command) -> Result<Answer, Failure> {
    match command {
        Command::Demo(args) => args.run(),
        Command::Start(args) => args.run(),
        Command::Stop(args) => args.run(),
        Command::Reload(args) => args.run(),
        Command::Status(args) => args.run(),
        Command::Jobs(args) => args.run(),
        Command::Run(args) => args.run(),
        Command::Pause(args) => args.run(),
        Command::Resume(args) => args.run(),
        Command::History(args) => args.run(),
        Command::Why(args) => args.run(),
        Command::AcceptClock(args) => args.run(),
        Command::Dashboard(args) => args.run(),
        Command::Metrics(args) => args.run(),
        Command::Settings(args) => args.run(),
        Command::Completions(args) => args.run(),
        Command::Man(args) => args.run(),
        Command::Reference => Ok(Answer::text(reference::markdown())),
    }
}
