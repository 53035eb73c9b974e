//! Why the daemon does not run.

use std::fmt;

use crate::config;
use crate::directory::DirectoryError;

/// Why the daemon does not run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The krontabs have errors, each of them ready to be printed.
    Config(Vec<String>),
    /// A state cannot be used.
    State(String),
    /// Another daemon has the state directory.
    Lock(String),
    /// The state directory, or something else of the system, does not work.
    Persistence(String),
}

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Failure {
        match error.is_io() {
            true => Failure::Persistence(error.to_string()),
            false => Failure::State(error.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Config(errors) => f.write_str(&config::listed(errors)),
            Failure::State(why) | Failure::Lock(why) | Failure::Persistence(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Failure {}
