//! Every way a command can end, and its exit code.

use std::process::ExitCode;

use krontab::Loaded;

use super::answer;
use super::view::ProblemView;

/// How a command that could answer ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// 0: yes, or done.
    Success,
    /// 1: the answer is no. A file is invalid, or `fmt --check` would change it.
    No,
}

/// Why a command could not answer. Printed as `error: …`.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no job of that name.
    JobNotFound(String),
    /// There is nothing to remove by that name.
    NotFound(String),
    /// A file that `add` was to install is not valid.
    Refused(Invalid),
    /// A file that a job was to be read from is not valid.
    Invalid(Invalid),
    /// The arguments do not fit together, or name something that does not exist.
    Usage(String),
    /// Something written in a language of Kron, on the command line, is wrong: the message is rendered.
    Expression(String),
    /// A file cannot be read.
    Read(String),
    /// A file cannot be written.
    Write(String),
}

/// What is wrong with a file.
#[derive(Debug)]
pub(crate) struct Invalid {
    file: String,
    /// What is told, ready to be printed below the message.
    errors: Vec<String>,
    /// How many errors there are; the last that is told may stand for many.
    count: u32,
}

impl Invalid {
    pub(crate) fn new(loaded: &Loaded) -> Invalid {
        let (errors, _) = ProblemView::of(loaded);
        Invalid {
            file: loaded.path.to_string_lossy().into_owned(),
            count: errors.iter().map(|error| error.count).sum(),
            errors: errors.into_iter().map(|error| error.rendered).collect(),
        }
    }
}

/// The exit codes, in the one place that knows them. docs/reference/krontab-cli.md lists them.
impl Failure {
    fn code(&self) -> u8 {
        match self {
            Failure::JobNotFound(_) | Failure::NotFound(_) | Failure::Refused(_) => 1,
            Failure::Invalid(_)
            | Failure::Usage(_)
            | Failure::Expression(_)
            | Failure::Read(_)
            | Failure::Write(_) => USAGE,
        }
    }

    fn message(&self) -> String {
        match self {
            Failure::JobNotFound(name) => format!("job not found: {name}"),
            Failure::Refused(invalid) | Failure::Invalid(invalid) => {
                let count = match invalid.count {
                    1 => "1 error".to_owned(),
                    count => format!("{count} errors"),
                };
                let mut message = format!("{} is invalid: {count}, so none of it runs", invalid.file);
                for error in &invalid.errors {
                    message.push_str("\n\n");
                    message.push_str(error);
                }
                message
            }
            Failure::NotFound(message)
            | Failure::Usage(message)
            | Failure::Expression(message)
            | Failure::Read(message)
            | Failure::Write(message) => message.clone(),
        }
    }

    /// Tells the failure on standard error.
    pub(crate) fn print(&self) -> ExitCode {
        answer::print_error(&self.message());
        ExitCode::from(self.code())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        match exit {
            Exit::Success => ExitCode::SUCCESS,
            Exit::No => ExitCode::from(1),
        }
    }
}

/// The exit code of wrong arguments, and of everything else that is nobody's answer.
pub(crate) const USAGE: u8 = 2;
