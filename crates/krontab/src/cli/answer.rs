//! What a command says, and how it gets to the terminal.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::args::Format;
use super::exit::{Exit, USAGE};

/// What a command says: on standard output the answer, on standard error remarks about it.
#[derive(Debug)]
#[must_use]
pub(crate) struct Answer {
    output: String,
    remarks: Vec<String>,
    exit: Exit,
}

impl Answer {
    /// A view in the format that was asked for.
    pub(crate) fn of(view: &(impl Display + Serialize), format: Format) -> Answer {
        Answer::text(match format {
            Format::Text => view.to_string(),
            Format::Json => serde_json::to_string_pretty(view).expect("views have texts for keys") + "\n",
        })
    }

    /// A text as it is.
    pub(crate) fn text(output: impl Into<String>) -> Answer {
        Answer { output: output.into(), remarks: Vec::new(), exit: Exit::Success }
    }

    /// The same answer, with that exit code.
    pub(crate) fn ending(self, exit: Exit) -> Answer {
        Answer { exit, ..self }
    }

    /// The same answer, with a line on standard error.
    pub(crate) fn remark(mut self, remark: impl Into<String>) -> Answer {
        self.remarks.push(remark.into());
        self
    }

    /// Prints it.
    pub(crate) fn print(self) -> ExitCode {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(self.output.as_bytes()).and_then(|()| stdout.flush());
        drop(stdout);
        for remark in &self.remarks {
            tell(&printable(remark));
        }
        printed(written, self.exit)
    }
}

/// The exit code of an answer, if it could be written. Who closes the pipe has seen enough.
pub(crate) fn printed(written: io::Result<()>, exit: Exit) -> ExitCode {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            print_error(&format!("could not write the answer: {error}"));
            ExitCode::from(USAGE)
        }
        _ => exit.into(),
    }
}

/// `error: …` on standard error.
pub(crate) fn print_error(message: &str) {
    let colour =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let (red, plain) = if colour { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    tell(&format!("{red}error:{plain} {}", printable(message)));
}

/// A message without what would change the terminal it is printed on: it may quote an argument, or the
/// name of a file.
fn printable(message: &str) -> String {
    message.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect()
}

/// A line on standard error. If nobody can be told, the exit code still says it.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
