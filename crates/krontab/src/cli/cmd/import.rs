//! `krontab import`: jobs of other schedulers as a krontab, and what would change.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use jiff::SignedDuration;
use kron_schedule::Dialect;
use krontab::{FILE_BYTES_MAX, JOBS_MAX, Krontab, Source, Zones};
use serde::Serialize;

use super::explain::zone;
use crate::cli::answer::Answer;
use crate::cli::args::{AtArg, FormatArg};
use crate::cli::exit::{Exit, Failure};
use crate::cli::import::crontab::{self, Whose};
use crate::cli::import::draft::{Draft, Names, When};
use crate::cli::import::firing::Rule;
use crate::cli::import::kind::Kind;
use crate::cli::import::{Found, firing, kubernetes, systemd};
use crate::cli::load::{is_stdin, reason};
use crate::cli::span::{Span, timestamp};
use crate::cli::time;
use crate::cli::view::shown;

/// Turn crontabs, systemd timers and Kubernetes `CronJob`s into a krontab, and tell what would differ
///
/// The krontab is printed with a comment above each entry: where it comes from, what would differ, and
/// the dates of a year on which it would fire differently. For those, the rules of the other scheduler
/// are computed beside Kron's. What cannot be said in a krontab is a comment with the reason.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// Files, or directories of them such as /etc/cron.d; `-` is standard input
    #[arg(value_name = "PATHS", required = true)]
    paths: Vec<PathBuf>,
    /// What the files are [default: guessed from path and content, and told]
    #[arg(long, value_enum, value_name = "KIND")]
    from: Option<Kind>,
    /// The time zone of the host, or of the controller of the cluster
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    #[command(flatten)]
    at: AtArg,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab import /etc/crontab /etc/cron.d --tz Europe/Berlin > jobs.kron
  crontab -l | krontab import - --from crontab
  krontab import /usr/lib/systemd/system/apt-daily.timer
  kubectl get cronjobs -o yaml | krontab import - --from kubernetes --format json

Exit codes: 0 all imported, 1 something was not, 2 anything else.";

/// The most files of one import.
const FILES_MAX: usize = 1_000;

/// How far both are compared.
const YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);

/// Where the entries would be. Their names are what matters, and it is shown nowhere.
const INSTALLED: &str = "/etc/krond.d/imported";

impl Import {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        zone(zones, Some(&self.tz), Dialect::Kron)?;
        let at = self.at.or_now();
        let end = at
            .checked_add(YEAR)
            .map_err(|_| Failure::Usage("--at is too close to the end of time".into()))?;
        let span = Span::new(at, end).map_err(Failure::Usage)?;
        let mut imported = Imported {
            from: time::utc(span.start()),
            to: time::utc(span.end()),
            timezone: self.tz.clone(),
            ..Imported::default()
        };
        let mut settling = Settling { names: Names::default(), known: HashMap::new(), span };
        let mut remarks = Vec::new();
        for path in files(&self.paths)? {
            let text = text(&path)?;
            let kind = self.from.unwrap_or_else(|| Kind::guess(&path, &text));
            if self.from.is_none() {
                remarks.push(format!("{}: read as {}; --from says otherwise", shown(&path), kind.name()));
            }
            if !imported.kinds.contains(&kind) {
                imported.kinds.push(kind);
            }
            let found = read(&path, &text, kind, &self.tz);
            // Before anything is compared, which takes a few milliseconds for each.
            if imported.entries.len() + found.len() > JOBS_MAX {
                return Err(Failure::Usage(format!(
                    "expected at most {JOBS_MAX} jobs at once; import fewer files, or divide them"
                )));
            }
            for found in found {
                imported.add(&path, found, &mut settling, zones);
            }
        }
        imported.not_imported = imported.entries.iter().filter(|entry| entry.krontab.is_none()).count();
        let exit = if imported.not_imported == 0 { Exit::Success } else { Exit::No };
        let (all, left) = (imported.entries.len(), imported.not_imported);
        remarks.push(match left {
            0 => format!("{all} imported"),
            left => format!("{} imported, {left} not: the comments say why", all - left),
        });
        let answer = Answer::of(&imported, self.format.format).ending(exit);
        Ok(remarks.into_iter().fold(answer, Answer::remark))
    }
}

/// The files that were named, and those of directories that were, in order.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let failed = |error: io::Error| {
            Failure::Read(format!("could not read `{}`: {}", path.display(), reason(&error)))
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if Kind::reads(&name) && entry.path().is_file() {
                names.push(entry.path());
            }
        }
        names.sort();
        files.extend(names);
    }
    match files.len() {
        count if count > FILES_MAX => {
            Err(Failure::Usage(format!("expected at most {FILES_MAX} files, but found {count}; name fewer")))
        }
        _ => Ok(files),
    }
}

/// What is in a file, if it is text.
fn text(path: &Path) -> Result<String, Failure> {
    let failed =
        |error: &io::Error| Failure::Read(format!("could not read `{}`: {}", path.display(), reason(error)));
    let bytes = match is_stdin(path) {
        true => krontab::read(io::stdin().lock()),
        // A pipe or a device could keep us waiting.
        false if path.exists() && !path.is_file() => {
            return Err(Failure::Read(format!("expected a file, but `{}` is none", path.display())));
        }
        false => File::open(path).and_then(krontab::read),
    };
    let bytes = bytes.map_err(|error| failed(&error))?;
    if bytes.len() > FILE_BYTES_MAX {
        let path = path.display();
        return Err(Failure::Read(format!(
            "`{path}` is too long: at most {FILE_BYTES_MAX} bytes are read; divide it"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        Failure::Read(format!("`{}` is not UTF-8: line {line} has a byte that is none", path.display()))
    })
}

/// What a file of that kind has.
fn read(path: &Path, text: &str, kind: Kind, zone: &str) -> Vec<Found> {
    match kind {
        Kind::Crontab => crontab::read(text, Whose::One(Kind::owner(path)), zone),
        Kind::System => crontab::read(text, Whose::Lines, zone),
        Kind::Systemd => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            systemd::read(text, name.strip_suffix(".timer").unwrap_or(&name), zone)
        }
        Kind::Kubernetes => kubernetes::read(text, zone)
            .unwrap_or_else(|error| vec![Found { line: 1, text: shown(path), outcome: Err(error) }]),
    }
}

/// What came of everything.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Imported {
    /// Times are compared from here on, up to there.
    from: String,
    to: String,
    timezone: String,
    not_imported: usize,
    entries: Vec<EntryView>,
    #[serde(skip)]
    kinds: Vec<Kind>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryView {
    file: String,
    line: usize,
    /// As it was written there.
    text: String,
    /// The name that it has here; null if it was not imported, as is the line.
    name: Option<String>,
    krontab: Option<String>,
    /// Why it was not imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What would differ, besides when it fires.
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    firing: Option<FiringView>,
}

/// How firing there and firing here differ. Windows are left out: both put runs off only within them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FiringView {
    /// How often it fires there, and here.
    there: usize,
    here: usize,
    only_there: usize,
    only_here: usize,
    /// The first of them.
    only_there_at: Vec<String>,
    only_here_at: Vec<String>,
}

/// The most dates that are listed of each kind.
const DATES_MAX: usize = 5;

impl Imported {
    fn add(&mut self, path: &Path, found: Found, settling: &mut Settling, zones: &Zones) {
        let text = found.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut view = EntryView {
            file: shown(path),
            line: found.line,
            text,
            name: None,
            krontab: None,
            reason: None,
            notes: Vec::new(),
            firing: None,
        };
        match found.outcome.and_then(|draft| settling.settle(draft, zones)) {
            Ok(Settled { name, line, notes, firing }) => {
                (view.name, view.krontab, view.notes, view.firing) = (Some(name), Some(line), notes, firing);
            }
            Err(reason) => view.reason = Some(reason),
        }
        self.entries.push(view);
    }
}

/// An entry that Kron has read, and compared.
struct Settled {
    name: String,
    line: String,
    notes: Vec<String>,
    firing: Option<FiringView>,
}

/// What is needed to settle entries one after the other.
struct Settling {
    names: Names,
    /// What was found of schedules that came before: people write the same ones again and again.
    known: HashMap<(String, String, Rule), Firing>,
    span: Span,
}

/// When something fires.
#[derive(Clone)]
struct Firing {
    there: Arc<[i64]>,
    /// The longest distance of two runs, in seconds.
    longest: i64,
    view: Option<FiringView>,
}

/// How much is repeated of a line that Kron refuses, in characters.
const REFUSED_MAX: usize = 200;

impl Settling {
    fn settle(&mut self, draft: Draft, zones: &Zones) -> Result<Settled, String> {
        let span = self.span;
        let zone = zones.find(&draft.zone).map_err(|error| error.to_string())?;
        let key = match &draft.when {
            When::Calendar(fields) => {
                let both = if fields.needs_both_days() { fields.weekday_names() } else { String::new() };
                Some((format!("{} {both}", fields.kron()), draft.zone.clone(), draft.rule))
            }
            When::Every(_) => None,
        };
        let mut firing = match (&draft.when, &key) {
            (When::Calendar(fields), Some(key)) => Some(self.known.get(key).cloned().unwrap_or_else(|| {
                let there = firing::firings(fields, draft.rule, &zone, span);
                let longest =
                    there.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(span.to - span.from);
                Firing { there: there.into(), longest, view: None }
            })),
            _ => None,
        };
        let longest = match (&draft.when, &firing) {
            (When::Every(seconds), _) => Some(*seconds),
            (_, firing) => firing.as_ref().map(|firing| firing.longest),
        };
        let name = self.names.take(&draft.name);
        let line = draft.line(&name, longest);
        let source = Source::new(INSTALLED).map_err(|error| error.to_string())?;
        let parsed = Krontab::parse(&line, &source, zones);
        if let Some(problem) = parsed.problems.iter().find(|problem| problem.is_error()) {
            let line = shown(Path::new(&line));
            // A line can be as long as a file.
            let line = match line.char_indices().nth(REFUSED_MAX) {
                Some((end, _)) => format!("{}…", &line[..end]),
                None => line,
            };
            return Err(format!("Kron refuses `{line}`: {}", problem.message()));
        }
        let entry = parsed.entries.first().ok_or("there is nothing to run")?;
        let job = &entry.job;
        if let Some(firing) = firing.as_mut().filter(|firing| firing.view.is_none()) {
            let occurrences = job.schedule().occurrences_after(timestamp(span.from - 1));
            let here: Vec<i64> = occurrences
                .take_while(|at| at.as_second() < span.to)
                .filter(|at| job.constraints().allow(job.zone().to_civil(*at)))
                .map(|at| at.as_second())
                .collect();
            firing.view = Some(FiringView::new(&firing.there, &here));
            // They are compared, and no longer needed.
            firing.there = Arc::new([]);
        }
        if let (Some(key), Some(firing)) = (key, &firing) {
            self.known.insert(key, firing.clone());
        }
        Ok(Settled { name, line, notes: draft.notes, firing: firing.and_then(|firing| firing.view) })
    }
}

impl FiringView {
    /// Compares two lists of seconds, both in order.
    fn new(there: &[i64], here: &[i64]) -> FiringView {
        // As often as it is in the one more than in the other.
        let only = |these: &[i64], others: &[i64]| -> Vec<i64> {
            let mut others = others.iter().peekable();
            let is_only = |at: &&i64| {
                while others.next_if(|other| *other < *at).is_some() {}
                others.next_if(|other| *other == *at).is_none()
            };
            these.iter().filter(is_only).copied().collect()
        };
        let (only_there, only_here) = (only(there, here), only(here, there));
        let dates =
            |seconds: &[i64]| seconds.iter().take(DATES_MAX).map(|at| time::utc(timestamp(*at))).collect();
        FiringView {
            there: there.len(),
            here: here.len(),
            only_there: only_there.len(),
            only_here: only_here.len(),
            only_there_at: dates(&only_there),
            only_here_at: dates(&only_here),
        }
    }
}

/// What is to be said of all entries of a kind.
fn remarks(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Crontab => &[
            "user: cron runs a user's crontab as that user; a line without `user=` runs as whoever runs krond",
        ],
        Kind::System => &[],
        Kind::Systemd => &[
            "the lines start the units that the timers started: disable each timer, with `systemctl disable --now NAME.timer`",
        ],
        Kind::Kubernetes => &[
            "history limits and the labels of CronJobs have no meaning on a host; suspend each CronJob before its line is installed",
        ],
    }
}

/// What is to be said of all crontabs, of whatever kind.
const OF_CRON: [&str; 4] = [
    "missed runs: neither cron nor Kron makes up for what was due while the host was down; Kron tells of it, \
             and `@policy(deadline=1h)` would make up for it",
    "shell: cron gives every command to a shell, so each line says `shell=true`; where none is needed, leave it out",
    "output: cron mails it; here it goes where krond's output goes, unless `stdout=` and `stderr=` say otherwise",
    "environment: cron's PATH is /usr/bin:/bin where the crontab has none; here the directories of the system and of /usr/local are in it",
];

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zone = &self.timezone;
        writeln!(
            f,
            "# Written by `krontab import`; the host is in {zone}. Firing is compared up to {}.",
            self.to
        )?;
        let is_cron = self.kinds.iter().any(|kind| matches!(kind, Kind::Crontab | Kind::System));
        let of_cron = OF_CRON.iter().filter(|_| is_cron);
        for remark in of_cron.chain(self.kinds.iter().flat_map(|kind| remarks(*kind))) {
            writeln!(f, "# - {remark}")?;
        }
        for entry in &self.entries {
            writeln!(f, "\n# {}:{}: {}", entry.file, entry.line, entry.text)?;
            if let Some(reason) = &entry.reason {
                writeln!(f, "#   not imported: {reason}")?;
            }
            for note in &entry.notes {
                writeln!(f, "#   note: {note}")?;
            }
            if let Some(firing) = &entry.firing {
                writeln!(f, "#   {firing}")?;
            }
            if let Some(line) = &entry.krontab {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for FiringView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.only_there + self.only_here == 0 {
            return match self.there {
                0 => write!(f, "does not fire before then, neither there nor here"),
                1 => write!(f, "fires at the same time, once"),
                times => write!(f, "fires at the same {times} times"),
            };
        }
        let mut out = String::from("fires differently");
        for (only, at, place) in
            [(self.only_there, &self.only_there_at, "there"), (self.only_here, &self.only_here_at, "here")]
        {
            if only > 0 {
                let more =
                    if only > at.len() { format!(" and {} more", only - at.len()) } else { String::new() };
                let _ = write!(out, "; only {place}: {}{more}", at.join(", "));
            }
        }
        f.write_str(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fires_twice_at_once_counts_twice() {
        let view = FiringView::new(&[0, 60, 60, 120], &[0, 60, 180]);
        assert_eq!((view.only_there, view.only_here), (2, 1));
        assert_eq!(
            view.to_string(),
            "fires differently; only there: 1970-01-01T00:01:00Z, 1970-01-01T00:02:00Z; only here: 1970-01-01T00:03:00Z"
        );
    }
}
