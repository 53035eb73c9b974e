//! The daily records: `outcomes/YYYY-MM-DD.jsonl`, for people. Nothing is decided by them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use kron_schedule::Count;

use crate::daemon::Report;
use crate::directory::Directory;
use crate::files::Files;
use crate::view::{RecordView, WhatView, run_name};
use crate::wire::reason_name;

/// The directory of the records, in the state directory.
pub const DIRECTORY: &str = "outcomes";

/// The longest line that can be a record.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Writes records, a file for each day.
#[derive(Debug)]
pub struct Outcomes {
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
        Outcomes { directory, keep_days, today: None, is_torn: false }
    }

    /// Writes records down. One that cannot be written is lost to people, and to nothing else.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn write(&mut self, records: &[RecordView]) -> io::Result<()> {
        for record in records {
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
                reason: reason_name(*reason).to_owned(),
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
                    reason: reason_name(tally.reason).to_owned(),
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
                pid: process.pid,
                exit: *exit,
                started_at: *started_at,
                ended_at: *ended_at,
            };
            (entry, vec![what])
        }
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

fn day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

fn file_name(day: Date) -> String {
    format!("{day}.jsonl")
}

fn parse_name(name: &str) -> Option<Date> {
    name.strip_suffix(".jsonl")?.parse().ok()
}
