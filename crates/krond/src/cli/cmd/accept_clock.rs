//! `krond accept-clock`.

use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write};

use krond::control::Request;
use serde_json::Value;

use crate::cli::answer::{Answer, Failure};
use crate::cli::place::Place;

/// Says that the clock is right, and that a wrong one had led a job into the future.
///
/// Such a job waits until time has caught up, because nothing may run twice. This sets it to now, keeps its old state
/// beside the new one, and first lists what could run again.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  krond accept-clock backup\n  krond accept-clock backup --yes\n\n\
                        Exit codes: 0 done; 1 not running, job not found, or not confirmed; 2 anything else.")]
pub(crate) struct Args {
    /// The name or the identity of the job
    job: String,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    place: Place,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let job = self.job.clone();
        let preview: Value = self.place.ask(&Request::AcceptClock { job: job.clone(), yes: false })?;
        if preview["isAhead"] != Value::Bool(true) {
            return Ok(Answer::text(format!("{job} does not wait for the clock: nothing to do\n")));
        }
        let told = text(&preview);
        if !self.yes {
            eprint!("{told}");
            if !io::stdin().is_terminal() {
                return Err(Failure::No("not confirmed: add --yes to do it".into()));
            }
            eprint!("Set it to now? [y/N] ");
            let _ = io::stderr().flush();
            let mut line = String::new();
            let _ = io::stdin().lock().read_line(&mut line);
            if !matches!(line.trim(), "y" | "Y" | "yes") {
                return Err(Failure::No("not confirmed: nothing was changed".into()));
            }
        }
        let done: Value = self.place.ask(&Request::AcceptClock { job, yes: true })?;
        let told = if self.yes { told } else { String::new() };
        let watermark = done["watermark"].as_str().unwrap_or_default();
        Ok(Answer::text(format!("{told}{} counts as handled up to {watermark} now\n", self.job)))
    }
}

fn text(preview: &Value) -> String {
    let word = |key: &str| preview[key].as_str().unwrap_or("-").to_owned();
    let mut text = format!(
        "{}: every period up to {} counts as handled, and it is {}.\n",
        word("identity"),
        word("watermark"),
        word("now")
    );
    let again = preview["couldRunAgain"].as_array().map(Vec::as_slice).unwrap_or_default();
    if again.is_empty() {
        text.push_str("No period lies between: nothing can run again.\n");
    } else {
        text.push_str("These periods lie between, and could run again if they have run:\n");
        for period in again {
            let _ = writeln!(text, "  {}", period.as_str().unwrap_or_default());
        }
        if preview["more"] == Value::Bool(true) {
            text.push_str("  and more\n");
        }
    }
    text
}
