//! The daily records: `outcomes/YYYY-MM-DD.jsonl`, for people. Nothing is decided by them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use kron_core::{Outcome, PeriodId, RunId};
use kron_schedule::Count;

use crate::daemon::Report;
use crate::directory::Directory;
use crate::files::Files;
use crate::state::State;
use crate::view::{RecordView, WhatView, run_name};

/// The directory of the records, in the state directory.
pub const DIRECTORY: &str = "outcomes";

/// The longest line that can be a record.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// How many records wait for a disk that does not take them. The oldest of more are lost to people; states still
/// have the latest of each job.
const WAITING_MAX: usize = 1 << 16;

/// Writes records, a file for each day.
#[derive(Debug)]
pub struct Outcomes {
    /// What is not written yet, the oldest first.
    waiting: VecDeque<RecordView>,
    directory: Directory,
    keep_days: u16,
    today: Option<(Date, File)>,
    /// Whether the last line of the file may be half a line.
    is_torn: bool,
}

impl Outcomes {
    /// Records in that directory. Those of more days ago are removed.
    #[must_use]
    pub fn new(directory: Directory, keep_days: u16) -> Outcomes {
        Outcomes { waiting: VecDeque::new(), directory, keep_days, today: None, is_torn: false }
    }

    /// Writes records down, after those that could not be written before. What cannot be written waits for the next
    /// time.
    ///
    /// # Errors
    ///
    /// If some of them are not written.
    pub fn write(&mut self, records: impl IntoIterator<Item = RecordView>) -> io::Result<()> {
        self.waiting.extend(records);
        let written = self.write_waiting();
        if written.is_err() {
            // Whatever is wrong with the file, another may be opened in its place.
            self.today = None;
            let excess = self.waiting.len().saturating_sub(WAITING_MAX);
            self.waiting.drain(..excess);
        }
        written
    }

    /// Whether records wait to be written.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        while let Some(record) = self.waiting.front() {
            let day = day(record.at);
            if self.today.as_ref().is_none_or(|(today, _)| *today != day) {
                self.forget(day);
                let name = file_name(day);
                self.is_torn = !self.ends_with_a_line(&name);
                self.today = Some((day, self.directory.append(&name)?));
            }
            let (_, file) = self.today.as_mut().expect("it was opened");
            // One write for a line, so that no reader sees half of it.
            let mut line = if self.is_torn { vec![b'\n'] } else { Vec::new() };
            serde_json::to_writer(&mut line, record)?;
            line.push(b'\n');
            self.is_torn = true;
            file.write_all(&line)?;
            self.is_torn = false;
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Whether a file is empty, or ends as a line does: a crash of the machine may have left half of one.
    fn ends_with_a_line(&self, name: &str) -> bool {
        let Ok(mut file) = self.directory.reader(name) else { return true };
        let mut last = [b'\n'];
        file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).is_err() || last == *b"\n"
    }

    /// Removes the records of days that are long over.
    fn forget(&self, today: Date) {
        let span = jiff::Span::new().days(self.keep_days);
        let Ok(oldest) = today.checked_sub(span) else { return };
        for name in self.directory.list().unwrap_or_default() {
            if parse_name(&name).is_some_and(|day| day < oldest) {
                let _ = self.directory.remove(&name);
            }
        }
    }
}

/// What a report says of outcomes.
#[must_use]
pub fn records(report: &Report, at: Timestamp) -> Vec<RecordView> {
    let (entry, whats) = match report {
        Report::Settled { entry, decision, reason, process } => {
            let what = WhatView::Outcome {
                period: decision.period_id().to_string(),
                outcome: reason.outcome().to_string(),
                reason: reason.name().to_owned(),
                chosen: decision.chosen(),
                pid: process.map(|process| process.pid),
                seed_hash: decision.seed_hash().to_string(),
            };
            (entry, vec![what])
        }
        Report::Passed { entry, passed } => {
            let whats = passed.tallies.iter().map(|tally| {
                let (count, at_least) = match tally.count {
                    Count::Exactly(count) => (count, false),
                    Count::AtLeast(count) => (count, true),
                };
                WhatView::Passed {
                    outcome: tally.reason.outcome().to_string(),
                    reason: tally.reason.name().to_owned(),
                    first: tally.first.to_string(),
                    last: tally.last.to_string(),
                    count,
                    at_least,
                }
            });
            (entry, whats.collect())
        }
        Report::Manual { entry, run, process } => {
            (entry, vec![WhatView::Manual { run: run_name(*run), pid: process.pid }])
        }
        Report::Completed { entry, run, process, exit, started_at, ended_at } => {
            let what = WhatView::Completed {
                run: run_name(*run),
                pid: Some(process.pid),
                exit: *exit,
                started_at: *started_at,
                ended_at: *ended_at,
            };
            (entry, vec![what])
        }
        Report::Paused { entry, since } => (entry, vec![WhatView::Paused { since: *since }]),
        Report::Resumed { entry, since } => (entry, vec![WhatView::Resumed { since: *since }]),
        _ => return Vec::new(),
    };
    let identity = entry.identity();
    whats.into_iter().map(|what| RecordView { at, identity: identity.to_owned(), what }).collect()
}

/// Reads all records of the jobs whose identities are wanted, the oldest first. Lines that are none are passed over.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn read(directory: &Directory, is_wanted: impl Fn(&str) -> bool) -> io::Result<Vec<RecordView>> {
    let mut found = Vec::new();
    for name in directory.list()? {
        if parse_name(&name).is_none() {
            continue;
        }
        let mut reader = BufReader::new(directory.reader(&name)?);
        let mut line = Vec::new();
        loop {
            line.clear();
            if (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let record = serde_json::from_slice::<RecordView>(&line);
            found.extend(record.into_iter().filter(|record| is_wanted(&record.identity)));
        }
    }
    Ok(found)
}

/// Which records.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Of periods from here on.
    pub from: Timestamp,
    /// Up to here.
    pub to: Timestamp,
    /// How many at most.
    pub most: usize,
}

/// How many bytes of records are looked at, however few of them are wanted.
const SCANNED_MAX: u64 = 64 << 20;

/// The newest records of the job of a state, or of all jobs, the newest first. A period may have been recorded before
/// its nominal time, and long after it.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn latest(directory: &Directory, of: Option<&State>, wanted: &Wanted) -> io::Result<Vec<RecordView>> {
    let mut days: Vec<Date> = directory.list()?.iter().filter_map(|name| parse_name(name)).collect();
    days.sort_unstable();
    // Quickly found out, where the JSON of most lines need not be read.
    let sought = of.map(|state| serde_json::to_string(&state.identity)).transpose()?;
    let mut found: Vec<RecordView> = Vec::new();
    let mut scanned = 0;
    for day in days.into_iter().rev() {
        if found.len() >= wanted.most || scanned > SCANNED_MAX {
            break;
        }
        let mut today: Vec<RecordView> = Vec::new();
        let mut reader = BufReader::new(directory.reader(&file_name(day))?);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            scanned += read as u64;
            let text = String::from_utf8_lossy(&line);
            if sought.as_ref().is_some_and(|sought| !text.contains(sought.as_str())) {
                continue;
            }
            let Ok(record) = serde_json::from_str::<RecordView>(&text) else { continue };
            let is_its = of.is_none_or(|state| state.identity == record.identity);
            if is_its && record.what.touches(wanted, record.at) {
                today.push(record);
            }
        }
        today.reverse();
        found.append(&mut today);
    }
    found.truncate(wanted.most);
    if let Some(state) = of {
        found.reverse();
        complete(&mut found, state);
        found.reverse();
        found.retain(|record| record.what.touches(wanted, record.at));
        found.truncate(wanted.most);
    }
    Ok(found)
}

/// Adds to the records of a job what its state tells and they do not: a crash or a full disk may have come between the
/// two. A state has the latest of its endings, and every run under way.
pub fn complete(records: &mut Vec<RecordView>, state: &State) {
    for told in told_by(state) {
        if records.iter().any(|record| record.identity == told.identity && tells(&record.what, &told.what)) {
            continue;
        }
        let after = records.iter().rposition(|record| record.at <= told.at).map_or(0, |at| at + 1);
        records.insert(after, told);
    }
}

/// Everything that a state tells.
fn told_by(state: &State) -> Vec<RecordView> {
    let mut told = Vec::new();
    let mut tell = |at: Timestamp, what: WhatView| {
        told.push(RecordView { at, identity: state.identity.clone(), what });
    };
    if let Some(since) = state.paused {
        tell(since, WhatView::Paused { since });
    }
    for ending in &state.history {
        let period = ending.period.to_string();
        let outcome = WhatView::Outcome {
            period: period.clone(),
            outcome: ending.reason.outcome().to_string(),
            reason: ending.reason.name().to_owned(),
            chosen: ending.chosen,
            pid: None,
            seed_hash: ending.seed_hash.clone(),
        };
        tell(ending.started_at.unwrap_or(ending.completed_at), outcome);
        if let Some(started_at) = ending.started_at {
            let (exit, ended_at) = (ending.exit, ending.completed_at);
            tell(ended_at, WhatView::Completed { run: period, pid: None, exit, started_at, ended_at });
        }
    }
    for run in &state.runs {
        let pid = run.process.pid;
        let what = match run.id {
            RunId::Manual(_) => WhatView::Manual { run: run_name(run.id), pid },
            RunId::Period(period) => WhatView::Outcome {
                period: period.to_string(),
                outcome: Outcome::Executed.to_string(),
                reason: kron_core::Reason::Started.name().to_owned(),
                chosen: run.chosen,
                pid: Some(pid),
                seed_hash: run.seed_hash.clone(),
            },
        };
        tell(run.started_at, what);
    }
    // A fence is no period, and only a skip without a chosen time can be one.
    if let Some(last) = state.last.filter(|last| last.outcome != Outcome::Skipped || last.chosen.is_some()) {
        let period = last.period.to_string();
        let what = WhatView::Outcome {
            period: period.clone(),
            outcome: last.outcome.to_string(),
            reason: UNKNOWN.to_owned(),
            chosen: last.chosen,
            pid: None,
            seed_hash: String::new(),
        };
        if !told.iter().any(|record| tells(&record.what, &what)) {
            let at = last.chosen.unwrap_or(last.period.nominal());
            told.push(RecordView { at, identity: state.identity.clone(), what });
        }
    }
    told
}

/// The reason of an outcome of which nothing but the outcome is left.
pub const UNKNOWN: &str = "unknown";

/// Whether a record tells what another does.
fn tells(record: &WhatView, other: &WhatView) -> bool {
    match (record, other) {
        (WhatView::Outcome { period, .. }, WhatView::Outcome { period: other, .. })
        | (WhatView::Manual { run: period, .. }, WhatView::Manual { run: other, .. })
        | (WhatView::Completed { run: period, .. }, WhatView::Completed { run: other, .. }) => {
            period == other
        }
        (WhatView::Paused { since }, WhatView::Paused { since: other }) => since == other,
        (WhatView::Passed { .. }, WhatView::Outcome { period, .. }) => {
            period.parse().is_ok_and(|id| record.is_about(id, period))
        }
        _ => false,
    }
}

impl WhatView {
    /// Whether it is about a period of that time. A run by hand is about the time when it was recorded.
    fn touches(&self, wanted: &Wanted, at: Timestamp) -> bool {
        let parse = |text: &str| text.parse::<PeriodId>().ok().map(PeriodId::nominal);
        let (first, last) = match self {
            WhatView::Outcome { period, .. } => (parse(period), parse(period)),
            WhatView::Completed { run, .. } => (parse(run).or(Some(at)), parse(run).or(Some(at))),
            WhatView::Passed { first, last, .. } => (parse(first), parse(last)),
            WhatView::Manual { .. } | WhatView::Paused { .. } => (Some(at), Some(at)),
            WhatView::Resumed { since } => (Some(*since), Some(at)),
        };
        first.is_some_and(|first| first <= wanted.to) && last.is_some_and(|last| last >= wanted.from)
    }

    /// Whether it is about that period, whose name is given too.
    #[must_use]
    pub fn is_about(&self, period: PeriodId, name: &str) -> bool {
        match self {
            WhatView::Outcome { period, .. } => period == name,
            WhatView::Completed { run, .. } => run == name,
            WhatView::Passed { first, last, .. } => {
                let parse = |text: &str| text.parse::<PeriodId>().ok();
                parse(first).is_some_and(|first| first <= period)
                    && parse(last).is_some_and(|last| period <= last)
            }
            WhatView::Manual { .. } | WhatView::Paused { .. } | WhatView::Resumed { .. } => false,
        }
    }
}

fn day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

fn file_name(day: Date) -> String {
    format!("{day}.jsonl")
}

fn parse_name(name: &str) -> Option<Date> {
    name.strip_suffix(".jsonl")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: &str, run: &str) -> RecordView {
        let what = WhatView::Manual { run: run.into(), pid: 1 };
        RecordView { at: at.parse().unwrap(), identity: "a".into(), what }
    }

    #[test]
    fn what_a_disk_does_not_take_waits_until_it_does() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("outcomes");
        let mut outcomes = Outcomes::new(Directory::open(&path).unwrap(), 90);
        let all =
            [("2026-03-01T12:00:00Z", "1"), ("2026-03-01T12:00:01Z", "2"), ("2026-03-01T12:00:02Z", "3")];
        let all = all.map(|(at, run)| record(at, run));
        // Nothing can be written where a directory stands in the place of the file.
        std::fs::create_dir(path.join("2026-03-01.jsonl")).unwrap();
        assert!(outcomes.write([all[0].clone()]).is_err());
        assert!(outcomes.write([all[1].clone()]).is_err());
        assert!(outcomes.is_waiting());
        std::fs::remove_dir(path.join("2026-03-01.jsonl")).unwrap();
        outcomes.write([all[2].clone()]).unwrap();
        assert!(!outcomes.is_waiting());
        assert_eq!(read(&Directory::open(&path).unwrap(), |_| true).unwrap(), all);
        // There is no room for everything.
        std::fs::remove_file(path.join("2026-03-01.jsonl")).unwrap();
        std::fs::create_dir(path.join("2026-03-02.jsonl")).unwrap();
        for _ in 0..3 {
            let many = (0..WAITING_MAX / 2).map(|nth| record("2026-03-02T00:00:00Z", &nth.to_string()));
            assert!(outcomes.write(many).is_err());
        }
        assert_eq!(outcomes.waiting.len(), WAITING_MAX);
    }
}
