//! `krond history`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;

use kron_core::PeriodId;
use krond::console::exit_words;
use krond::directory::Directory;
use krond::files::Files;
use krond::outcomes;
use krond::state::State;
use krond::view::{RecordView, WhatView, reason_words};
use krond::wire;

use crate::cli::Format;
use crate::cli::answer::{Answer, Failure};
use crate::cli::place::{Krontabs, Place, ambiguous};

/// Lists what became of a job's periods and runs, the latest last. It reads the records and the state, so krond need not
/// run.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  krond history backup\n  krond history backup --count 100 --format json\n\n\
                        Exit codes: 0 done; 1 job not found; 2 anything else."
)]
pub(crate) struct Args {
    /// The name or the identity of the job. One that is no longer configured is found by its records, or by its state
    job: String,
    /// How many lines, the latest
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    #[command(flatten)]
    krontabs: Krontabs,
    #[command(flatten)]
    place: Place,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let settings = self.place.settings()?;
        let found = self.krontabs.find_all(&self.job, &settings);
        let configured: Vec<&str> = found.iter().flatten().map(|entry| entry.identity()).collect();
        let known = match configured.as_slice() {
            [] => forgotten(&self.job, &settings.state_dir)?,
            [identity] => Some(known((*identity).to_owned(), &settings.state_dir)?),
            several => return Err(ambiguous(&self.job, several.iter().copied())),
        };
        let Some(Known { records, .. }) = known else {
            found?;
            return Err(Failure::No(format!("job not found: {}", self.job)));
        };
        let latest = &records[records.len().saturating_sub(self.count as usize)..];
        Ok(Answer::of(&latest, self.format, || text(latest)))
    }
}

/// What is known of a job.
pub(crate) struct Known {
    pub(crate) identity: String,
    /// The oldest first.
    pub(crate) records: Vec<RecordView>,
    /// What is remembered of it, if it can be read.
    pub(crate) state: Option<State>,
}

/// What is known of the job of that identity: its records, and what its state tells beyond them.
pub(crate) fn known(identity: String, state_dir: &Path) -> Result<Known, Failure> {
    let Some(directory) = open(state_dir)? else {
        return Ok(Known { identity, records: Vec::new(), state: None });
    };
    let mut records = recorded(&directory, |of| of == identity)?;
    let state = state(&directory, &identity);
    if let Some(state) = &state {
        outcomes::complete(&mut records, state);
    }
    Ok(Known { identity, records, state })
}

/// What is known of a job that is not configured: the one of that identity, or the only one of that name, of which
/// there are records or a state.
pub(crate) fn forgotten(job: &str, state_dir: &Path) -> Result<Option<Known>, Failure> {
    let Some(directory) = open(state_dir)? else { return Ok(None) };
    let is_it =
        |identity: &str| identity == job || identity.rsplit_once(':').is_some_and(|(_, name)| name == job);
    let records = recorded(&directory, is_it)?;
    let mut identities: BTreeSet<String> = records.iter().map(|record| record.identity.clone()).collect();
    if identities.is_empty() {
        let files = directory.list().unwrap_or_default();
        let states = files.iter().filter(|name| name.ends_with(".json"));
        identities
            .extend(states.filter_map(|name| identity_in(&directory, name)).filter(|found| is_it(found)));
    }
    match Vec::from_iter(identities).as_mut_slice() {
        [] => Ok(None),
        [identity] => known(std::mem::take(identity), state_dir).map(Some),
        several => Err(ambiguous(job, several.iter().map(String::as_str))),
    }
}

/// The state directory. Where no krond has ever been, there is none.
fn open(state_dir: &Path) -> Result<Option<Directory>, Failure> {
    match state_dir.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => Directory::open(state_dir).map(Some).map_err(|error| Failure::Usage(error.to_string())),
    }
}

/// All records of the wanted jobs, the oldest first.
fn recorded(directory: &Directory, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<RecordView>, Failure> {
    let read = directory.inner(outcomes::DIRECTORY).and_then(|inner| outcomes::read(&inner, is_wanted));
    read.map_err(|error| Failure::Usage(format!("could not read the records: {error}")))
}

/// The state of a job, if there is one that can be read.
fn state(directory: &Directory, identity: &str) -> Option<State> {
    let contents = directory.read(&wire::file_name(identity)).ok()?;
    wire::decode(&contents.bytes, identity).ok()
}

/// Whose state a file has.
fn identity_in(directory: &Directory, name: &str) -> Option<String> {
    let contents = directory.read(name).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&contents.bytes).ok()?;
    Some(value.get("Identity")?.as_str()?.to_owned())
}

fn text(records: &[RecordView]) -> String {
    if records.is_empty() {
        return "nothing is recorded of it yet\n".into();
    }
    let mut text = format!("{:20}  {:21}  WHAT\n", "AT (UTC)", "PERIOD OR RUN");
    for record in records {
        let (run, what, how) = cells(&record.what);
        let at = PeriodId::new(record.at).to_string();
        let _ = writeln!(text, "{}", format!("{at:20}  {run:21}  {what:13}  {how}").trim_end());
    }
    text
}

/// What happened, in a line.
pub(crate) fn sentence(what: &WhatView) -> String {
    let (_, what, how) = cells(what);
    format!("{what:13}  {how}").trim_end().to_owned()
}

/// To what it happened, what, and how.
pub(crate) fn cells(what: &WhatView) -> (&str, &str, String) {
    match what {
        WhatView::Outcome { period, outcome, reason, chosen, pid, .. } => {
            let chosen = chosen.map(|chosen| chosen.to_string()).filter(|chosen| chosen != period);
            let chosen = chosen.map(|chosen| format!("chosen {chosen}"));
            let pid = pid.map(|pid| format!("pid {pid}"));
            let why = (reason != "started").then(|| reason_words(reason).to_owned());
            let how: Vec<String> = [why, pid, chosen].into_iter().flatten().collect();
            (period, outcome, how.join(", "))
        }
        WhatView::Passed { outcome, reason, first, last, count, at_least } => {
            let at_least = if *at_least { "at least " } else { "" };
            let periods = if *count == 1 { "period" } else { "periods" };
            (first, outcome, format!("{at_least}{count} {periods} up to {last}: {}", reason_words(reason)))
        }
        WhatView::Manual { run, pid } => (run, "started", format!("by hand, pid {pid}")),
        WhatView::Paused { .. } => ("-", "paused", "nothing starts until it is resumed".into()),
        WhatView::Resumed { since } => {
            ("-", "resumed", format!("it was paused since {}", PeriodId::new(*since)))
        }
        WhatView::Completed { run, exit, started_at, ended_at, .. } => {
            let took = ended_at.duration_since(*started_at).as_secs_f64();
            match exit {
                Some(code) => (run, "ended", format!("{} after {took:.3} s", exit_words(*code))),
                None => (run, "ended", "nobody saw how".into()),
            }
        }
    }
}
