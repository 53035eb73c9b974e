//! What a command says, and every way it can end.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use krond::host;
use serde::Serialize;

use super::Format;

/// The exit code of wrong arguments, and of whatever else is nobody's answer.
pub(crate) const USAGE: u8 = 2;

/// What a command says on standard output, and its exit code.
#[derive(Debug)]
#[must_use]
pub(crate) struct Answer {
    text: String,
    code: u8,
}

impl Answer {
    /// A text as it is.
    pub(crate) fn text(text: impl Into<String>) -> Answer {
        Answer { text: text.into(), code: 0 }
    }

    /// A view as JSON, or the text for it.
    pub(crate) fn of(view: &impl Serialize, format: Format, text: impl FnOnce() -> String) -> Answer {
        Answer::text(match format {
            Format::Text => text(),
            Format::Json => serde_json::to_string_pretty(view).expect("views have texts for keys") + "\n",
        })
    }

    /// The same answer, with that exit code.
    pub(crate) fn ending(self, code: u8) -> Answer {
        Answer { code, ..self }
    }

    /// Prints it. Who closes the pipe has seen enough.
    pub(crate) fn print(self) -> ExitCode {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(self.text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Failure::Usage(format!("could not write the answer: {error}")).print()
            }
            _ => ExitCode::from(self.code),
        }
    }
}

/// Why a command has no answer. Printed as `error: …`.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No daemon runs there.
    NotRunning(String),
    /// The daemon, or the records, say no.
    No(String),
    /// The arguments are wrong, or a file is.
    Usage(String),
    /// The daemon could not start.
    Start(host::Failure),
    /// The daemon that was started in the background ended with this code, and has said why.
    Ended(u8, String),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Failure::NotRunning(_) | Failure::No(_) | Failure::Start(host::Failure::Config(_)) => 1,
            Failure::Usage(_) => USAGE,
            Failure::Start(host::Failure::State(_)) => 2,
            Failure::Start(host::Failure::Lock(_)) => 3,
            Failure::Start(host::Failure::Persistence(_)) => 4,
            Failure::Ended(code, _) => *code,
        }
    }

    /// Tells the failure on standard error.
    pub(crate) fn print(&self) -> ExitCode {
        let message = match self {
            Failure::NotRunning(message)
            | Failure::No(message)
            | Failure::Usage(message)
            | Failure::Ended(_, message) => message.clone(),
            Failure::Start(failure) => failure.to_string(),
        };
        let (red, plain) = if has_colours(&io::stderr()) { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        eprintln!("{red}error:{plain} {message}");
        ExitCode::from(self.code())
    }
}

/// Whether colours are wanted there: on a terminal, unless `NO_COLOR` says otherwise.
pub(crate) fn has_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
