//! `krond settings`.

use krond::settings::REFERENCE;

use crate::cli::answer::{Answer, Failure};

/// Prints a settings file with every setting, its default and what it does.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  krond settings > /etc/krond.toml\n\nExit codes: 0 done.")]
pub(crate) struct Args {}

impl Args {
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "it is a command like the others")]
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        Ok(Answer::text(REFERENCE))
    }
}
