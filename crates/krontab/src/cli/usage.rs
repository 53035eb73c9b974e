//! Wrong arguments, told in Kron's words where those are fixed, and in clap's where they are not.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use krontab::Zones;

use super::answer::{self, Answer, print_error};
use super::args::Cli;
use super::exit::{Exit, USAGE};

/// Prints what the arguments ask for without being a command: help, the version, or what is wrong.
pub(crate) fn explain(error: &clap::Error, arguments: &[OsString], zones: &Zones) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayVersion => Answer::text(version(zones)).print(),
        ErrorKind::DisplayHelp => answer::printed(error.print(), Exit::Success),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let _ = Cli::command().print_help();
            ExitCode::from(USAGE)
        }
        ErrorKind::InvalidSubcommand => {
            print_error(&unknown_command(error));
            let _ = Cli::command().print_help();
            ExitCode::from(USAGE)
        }
        _ => {
            let command = arguments.get(1).and_then(|command| command.to_str()).unwrap_or_default();
            match canonical(error, command) {
                Some(message) => print_error(&message),
                None => {
                    let _ = error.print();
                }
            }
            ExitCode::from(USAGE)
        }
    }
}

fn version(zones: &Zones) -> String {
    format!("krontab {}\ntime zones: {}\n", env!("CARGO_PKG_VERSION"), zones.database())
}

fn unknown_command(error: &clap::Error) -> String {
    let command = texts(error, ContextKind::InvalidSubcommand).join(" ");
    // The likeliest comes last.
    match texts(error, ContextKind::SuggestedSubcommand).last() {
        Some(meant) => format!("unknown command `{command}`; did you mean `{meant}`?"),
        None => format!("unknown command `{command}`"),
    }
}

/// The messages whose words are fixed.
fn canonical(error: &clap::Error, command: &str) -> Option<String> {
    let takes_job = matches!(command, "explain" | "next" | "prev" | "why");
    let one_job = || format!("{command} requires exactly one <job> argument");
    let arguments = texts(error, ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::MissingRequiredArgument if takes_job && arguments.iter().any(|name| name == "<JOB>") => {
            Some(one_job())
        }
        ErrorKind::MissingRequiredArgument => {
            let flag = arguments.first()?.split(' ').next().filter(|name| name.starts_with("--"))?;
            Some(format!("{flag} is required"))
        }
        ErrorKind::UnknownArgument if arguments.first().is_some_and(|name| !name.starts_with('-')) => {
            match command {
                "lint" => Some("lint does not accept positional arguments".into()),
                _ => takes_job.then(one_job),
            }
        }
        _ => None,
    }
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}
