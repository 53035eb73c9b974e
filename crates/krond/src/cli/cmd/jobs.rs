//! `krond jobs`.

use std::fmt::Write as _;

use krond::control::Request;
use krond::view::JobView;

use crate::cli::Format;
use crate::cli::answer::{Answer, Failure};
use crate::cli::place::Place;

/// Lists the jobs of the running daemon: what ran, what runs, and what comes next.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  krond jobs\n  krond jobs backup --format json\n\n\
                        Exit codes: 0 done; 1 not running, or job not found; 2 anything else.")]
pub(crate) struct Args {
    /// The name or the identity of one job
    job: Option<String>,
    #[command(flatten)]
    place: Place,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let jobs: Vec<JobView> = self.place.ask(&Request::Jobs { job: self.job.clone() })?;
        Ok(Answer::of(&jobs, self.format, || text(&jobs)))
    }
}

fn text(jobs: &[JobView]) -> String {
    if jobs.is_empty() {
        return "no jobs: `krond status` tells where they are looked for\n".into();
    }
    let width =
        |cell: fn(&JobView) -> usize, head: &str| jobs.iter().map(cell).max().unwrap_or(0).max(head.len());
    let (name, schedule) = (width(|job| job.name.len(), "JOB"), width(|job| job.schedule.len(), "SCHEDULE"));
    let mut text = format!(
        "{:name$}  {:schedule$}  {:20}  {:13}  {:6}  IDENTITY\n",
        "JOB", "SCHEDULE", "NEXT RUN (UTC)", "LAST", "ACTIVE"
    );
    for job in jobs {
        let next = match (&job.next, &job.held) {
            (_, Some(_)) => "held".into(),
            (None, None) if job.paused_since.is_some() => "paused".into(),
            (Some(next), None) => next.chosen.map_or_else(|| "-".into(), |chosen| chosen.to_string()),
            (None, None) if job.suspended => "suspended".into(),
            (None, None) => "-".to_owned(),
        };
        let last = job.last.as_ref().map_or("-", |last| last.outcome.as_str());
        let _ = writeln!(
            text,
            "{:name$}  {:schedule$}  {next:20}  {last:13}  {:6}  {}",
            job.name,
            job.schedule,
            job.active.len(),
            job.identity
        );
    }
    text
}
