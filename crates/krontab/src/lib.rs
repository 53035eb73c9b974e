//! The krontab language: a file of scheduled commands, read with every mistake pointed at.
//!
//! A krontab has one entry a line: a schedule, then modifiers, then fields.
//!
//! ```text
//! # m  h  dom mon dow
//! 30   2  *   *   *    @tz(Europe/Paris) @win(after,1h)  name=backup  command="/usr/bin/backup --all"
//! @every 15m           @policy(deadline=1m)              name=poll    command=/usr/local/bin/poll
//! "daily around 14:00"                                   name=report  command=/usr/local/bin/report
//! ```
//!
//! This crate turns such a text into [`Entry`]s, each with a [`kron_core::Job`] to decide about and a
//! [`Command`] to run. It does not run anything, and reads neither a clock nor the environment; the
//! time zone database ([`Zones`]) and the files that it loads and checks ([`Directory`], [`security`]) are
//! the only things it looks at outside its arguments.
//!
//! # A first example
//!
//! ```
//! use krontab::{Krontab, Source, Zones};
//!
//! let text = "\
//! 30 2 * * * @tz(Europe/Paris) @win(after,1h) name=backup command=\"/usr/bin/backup --all\"
//! @dayly name=report command=/usr/local/bin/report
//! ";
//! let source = Source::new("/etc/krond.d/nightly")?;
//! let parsed = Krontab::parse(text, &source, &Zones::bundled());
//!
//! // The good line is there ...
//! let backup = &parsed.entries[0];
//! assert_eq!(backup.identity(), "/etc/krond.d/nightly:backup");
//! assert_eq!(backup.command.program.argv(), ["/usr/bin/backup", "--all"]);
//! let decision = kron_core::decide(&backup.job, "2026-03-01T01:30:00Z".parse().unwrap());
//! assert_eq!(decision.chosen().unwrap().to_string(), "2026-03-01T02:24:10Z");
//!
//! // ... and the bad one is told, with its place and what was probably meant.
//! assert!(parsed.has_errors());
//! assert_eq!(parsed.problems[0].line(), 2);
//! assert_eq!(parsed.problems[0].help(), Some("did you mean `@daily`?"));
//! # Ok::<(), krontab::SourceError>(())
//! ```
//!
//! # Bounds
//!
//! A file has at most [`FILE_BYTES_MAX`] bytes and [`JOBS_MAX`] jobs, a line at most [`LINE_BYTES_MAX`]
//! bytes. At most [`PROBLEMS_MAX`] errors and as many warnings are reported; the rest is counted.
//!
//! # Reading order
//!
//! `file` makes lines, `token` makes tokens of a line, and `parts` finds out which token is what.
//! `schedule`, `modifier` and `field` (with `command`) read them; `entry` joins them into a job.
//! `problem` and `code` are how mistakes are told and `secret` what they do not show, `canonical` is what `fmt` writes and `edit` changes a line. `directory`
//! and `security` look at the world, and `loaded` is what they find.

pub mod batch;
mod canonical;
mod code;
mod command;
mod directory;
mod edit;
mod entry;
mod field;
mod file;
mod loaded;
mod modifier;
mod parts;
mod problem;
mod schedule;
mod secret;
pub mod security;
mod source;
mod token;

use std::collections::HashMap;

pub use code::{Code, Severity};
pub use command::{Command, Output, Program, Variable};
pub use directory::Directory;
pub use edit::with_window;
pub use entry::Entry;
pub use file::{FILE_BYTES_MAX, JOBS_MAX, LINE_BYTES_MAX, read};
pub use kron_zones::{Database, ZoneNameError, Zones};
pub use loaded::Loaded;
pub use problem::{Cause, PROBLEMS_MAX, PhraseCode, Problem};
pub use schedule::{ScheduleKind, Written};
pub use source::{Source, SourceError};

use kron_schedule::fuzzy::{self, Placeholder};

use crate::file::Content;
use crate::problem::{Mistake, Problems};

/// The krontab language.
#[derive(Clone, Copy, Debug)]
pub struct Krontab;

/// What a file says, and everything that is wrong with it.
#[derive(Clone, Debug)]
#[must_use]
pub struct Parsed {
    /// The entries without errors, in the order of the file.
    pub entries: Vec<Entry>,
    /// All errors and warnings, in the order of the file.
    pub problems: Vec<Problem>,
}

impl Krontab {
    /// Reads a whole file, and reports all of its problems at once.
    pub fn parse(text: &str, source: &Source, zones: &Zones) -> Parsed {
        Krontab::entries(text, Problems::new(source), zones)
    }

    /// Reads a whole file that may be no text, or only some of it. Lines that are UTF-8 are read as
    /// [`parse`](Krontab::parse) reads them, and each of the others is an error.
    ///
    /// ```
    /// use krontab::{Code, Krontab, Source, Zones};
    ///
    /// let bytes = b"# caf\xe9\n@daily name=a command=/bin/true\n@dayly name=b command=/bin/true\n";
    /// let parsed = Krontab::parse_bytes(bytes, &Source::new("/etc/krond.d/x")?, &Zones::bundled());
    /// let found: Vec<_> = parsed.problems.iter().map(|problem| (problem.line(), problem.code())).collect();
    /// assert_eq!(found, [(1, Code::Encoding), (3, Code::Schedule)]);
    /// assert_eq!(parsed.entries.len(), 1);
    /// # Ok::<(), krontab::SourceError>(())
    /// ```
    pub fn parse_bytes(bytes: &[u8], source: &Source, zones: &Zones) -> Parsed {
        let mut problems = Problems::new(source);
        let text = file::decode(bytes, &mut problems);
        Krontab::entries(&text, problems, zones)
    }

    fn entries(text: &str, mut problems: Problems<'_>, zones: &Zones) -> Parsed {
        let source = problems.source();
        let mut entries = Vec::new();
        let mut names: HashMap<String, usize> = HashMap::new();
        let mut jobs = 0;
        for line in file::lines(text, &mut problems).unwrap_or_default() {
            let (text, read): (_, fn(_, _, _, _) -> _) = match line.content {
                Content::Damaged(text) => (text, entry::read_damaged),
                Content::Entry(text) => (text, entry::read),
                Content::Blank | Content::Comment(_) | Content::Unreadable(_) => continue,
            };
            jobs += 1;
            if jobs > JOBS_MAX {
                let message = format!("expected at most {JOBS_MAX} jobs in a file, but here is another");
                let mistake = Mistake::new(Code::TooMany, 0..0, message);
                problems.push(line.number, text, mistake.with_help("put some of them into another file"));
                break;
            }
            let mut reading = read(line.number, text, source, zones);
            if let Some(name) = reading.name {
                if let Some(first) = names.get(&name.value) {
                    let message = format!("the name `{}` is taken by line {first}", name.value);
                    reading.mistakes.push(Mistake::new(Code::DuplicateName, name.span, message));
                    reading.entry = None;
                } else {
                    names.insert(name.value, line.number);
                }
            }
            for mistake in reading.mistakes {
                problems.push(line.number, text, mistake);
            }
            entries.extend(reading.entry);
        }
        clusters(&entries, text, &mut problems);
        Parsed { entries, problems: problems.finish() }
    }

    /// The file with every entry in one canonical spelling; comments, blank lines and order stay.
    ///
    /// Lines with errors stay as they are. What is written twice is written the same.
    ///
    /// ```
    /// use krontab::{Krontab, Source, Zones};
    ///
    /// let text = "# nightly\n00 02 * * mon-fri  @tz(UTC)  command=\"/bin/true\" name=x\n";
    /// let source = Source::new("/etc/krond.d/x")?;
    /// assert_eq!(
    ///     Krontab::canonical(text, &source, &Zones::bundled()),
    ///     "# nightly\n0 2 * * 1-5 @tz(UTC) name=x command=/bin/true\n",
    /// );
    /// # Ok::<(), krontab::SourceError>(())
    /// ```
    #[must_use]
    pub fn canonical(text: &str, source: &Source, zones: &Zones) -> String {
        canonical::file(text, source, zones)
    }
}

/// Tells of phrases that fall together more than scattering promises, on the line of the first.
fn clusters(entries: &[Entry], text: &str, problems: &mut Problems<'_>) {
    let scattered: Vec<(&Entry, &Placeholder)> =
        entries.iter().filter_map(|entry| Some((entry, entry.schedule.scattered()?))).collect();
    let jobs = scattered.iter().map(|(entry, placeholder)| (entry.identity(), *placeholder));
    for cluster in fuzzy::clusters(jobs) {
        let Some((first, _)) = cluster.members().iter().min().and_then(|first| scattered.get(*first)) else {
            continue;
        };
        let line = text.split('\n').nth(first.line - 1).unwrap_or_default();
        let mistake = Mistake::new(Code::Cluster, 0..0, cluster.to_string()).with_help(cluster.advice());
        problems.push(first.line, line, mistake);
    }
}

/// Looks for phrases that fall together in all of these files, which one daemon will run, where each of
/// them was only looked at by itself.
///
/// What was told about one file is told about all of them instead, on the line of the first.
pub fn join_clusters(files: &mut [&mut Loaded]) {
    let mut found = Vec::new();
    let scattered: Vec<(usize, &Entry, &Placeholder)> = files
        .iter()
        .enumerate()
        .flat_map(|(file, loaded)| loaded.parsed.entries.iter().map(move |entry| (file, entry)))
        .filter_map(|(file, entry)| Some((file, entry, entry.schedule.scattered()?)))
        .collect();
    let jobs = scattered.iter().map(|(_, entry, placeholder)| (entry.identity(), *placeholder));
    for cluster in fuzzy::clusters(jobs) {
        let first = cluster.members().iter().min().and_then(|first| scattered.get(*first));
        let Some((file, entry, _)) = first else { continue };
        let loaded = &files[*file];
        let Ok(source) = Source::new(&loaded.path) else { continue };
        let line = loaded.bytes.split(|byte| *byte == b'\n').nth(entry.line - 1).unwrap_or_default();
        let mistake = Mistake::new(Code::Cluster, 0..0, cluster.to_string()).with_help(cluster.advice());
        found.push((*file, Problem::new(&source, entry.line, &String::from_utf8_lossy(line), mistake)));
    }
    for loaded in files.iter_mut() {
        loaded.parsed.problems.retain(|problem| problem.code() != Code::Cluster);
    }
    for (file, problem) in found {
        let problems = &mut files[file].parsed.problems;
        let place = problems.partition_point(|other| other.line() < problem.line());
        problems.insert(place, problem);
    }
}

impl Parsed {
    /// Whether anything is wrong with it, warnings aside.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }

    /// How many errors there are, those included that are only counted.
    #[must_use]
    pub fn error_count(&self) -> u32 {
        self.problems.iter().filter(|problem| problem.is_error()).map(Problem::count).sum()
    }

    /// The entry of that name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// What is legal about an entry and perhaps a surprise.
    pub fn warnings<'p>(&'p self, entry: &'p Entry) -> impl Iterator<Item = &'p Problem> {
        self.problems.iter().filter(|problem| problem.line() == entry.line && !problem.is_error())
    }
}
