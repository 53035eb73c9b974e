//! `krontab batch`: many questions on standard input, as many answers on standard output.

use std::io;

use clap::Args;
use krontab::Zones;

use crate::cli::answer::Answer;
use crate::cli::exit::Failure;

/// Answer many questions, one JSON object a line, in the order they come
///
/// For programs that ask a lot: one process answers all of it. Questions are read from standard input
/// and answers written to standard output; docs/reference/batch.md lists them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Batch {}

const EXAMPLES: &str = "\
Examples:
  krontab batch < questions.jsonl > answers.jsonl

Exit codes: 0 every line has its answer, 2 standard input or output failed.";

impl Batch {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        krontab::batch::run(io::stdin().lock(), io::stdout().lock(), zones)
            .map_err(|error| Failure::Read(format!("the conversation broke off: {error}")))?;
        Ok(Answer::text(""))
    }
}
