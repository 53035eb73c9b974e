//! The state of all jobs, in one directory: STATE's files, written its way.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, ErrorKind};

use jiff::{SignedDuration, Timestamp};
use kron_core::{Job, PeriodId};

use crate::anchor::{Anchor, Raise};
use crate::files::{Contents, FILE_BYTES_MAX, Files};
use crate::process::ProcessId;
use crate::state::State;
use crate::wire::{self, Unusable};

/// The most files written together. Their cost is shared, and so is a failure.
pub const WAVE_MAX: usize = 256;

/// How many spare files are kept: as many as a wave needs.
const SPARE_MAX: usize = WAVE_MAX;

/// How many damaged files of a job are kept for people, and as many that an operator has overruled. A disk that goes on
/// damaging files must not be filled by them.
const ASIDE_MAX: usize = 8;

/// How far after now a time in a damaged file is believed, where no anchor is left to ask.
///
/// The anchor is never earlier than a watermark, so that a later date in a damaged file is one of its damaged bytes. A
/// wrong clock may have led a job far into the future, and then the anchor and the file's time of modification say so
/// too ([`modified`]).
const SALVAGE_MAX: SignedDuration = SignedDuration::from_hours(366 * 24);

/// What is left of temporary files ends like this.
const TEMPORARY: &str = ".tmp";

/// State files in a directory.
#[derive(Debug)]
pub struct Store<F> {
    files: F,
    missing: Missing,
    /// Distinguishes temporary names.
    written: Cell<u64>,
    /// Temporary names of files that nobody can want any more: they were replaced, and that is durable. To write into
    /// one is much cheaper than to free one and create another: a file that is freed takes a millisecond on a disk
    /// that is told of it.
    spare: RefCell<Vec<String>>,
    anchor: Anchor,
}

/// What a job without a state file is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Missing {
    /// New: nothing of it has run.
    #[default]
    New,
    /// One whose file was lost: nothing up to now may run again.
    Fence,
}

/// What was found of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Loaded {
    /// Its state, as it was written.
    Found(State),
    /// No file. The state is new, or fenced if the store is told so.
    Missing(State),
    /// A file that was damaged. It is kept under another name, and a fenced state stands in its place.
    Fenced {
        /// The state that stands there now.
        state: State,
        /// What was wrong with the file.
        why: String,
        /// The name it is kept under.
        kept_as: String,
    },
    /// A file that cannot be read or replaced now. The job must wait.
    Unreadable(String),
}

/// A file as it is.
enum Read {
    Whole(Loaded),
    Damaged { file: String, contents: Contents, why: String },
}

/// A file that no daemon of this version may touch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    file: String,
    identity: String,
    why: Unusable,
}

impl<F: Files> Store<F> {
    /// The store in that directory, which must be locked.
    #[must_use]
    pub fn new(files: F, missing: Missing) -> Store<F> {
        Store { files, missing, written: Cell::new(0), spare: RefCell::default(), anchor: Anchor::default() }
    }

    /// The directory.
    #[must_use]
    pub fn files(&self) -> &F {
        &self.files
    }

    /// Removes what a crash has left half done, and what was put aside so long ago that others came after it. Only who
    /// holds the lock may.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read. A file that cannot be removed is left.
    pub fn clean(&self) -> io::Result<()> {
        self.spare.take();
        let names = self.files.list()?;
        for name in too_many(&names) {
            let _ = self.files.remove(name);
        }
        for name in names {
            if let Some(number) = name.strip_suffix(TEMPORARY) {
                // Should it stay, it is in nobody's way.
                let number = number.parse().unwrap_or_default();
                self.written.set(self.written.get().max(number));
                let _ = self.files.remove(&name);
            }
        }
        Ok(())
    }

    /// Reads the state of a job. What is damaged is put aside, and replaced by a state that lets nothing run
    /// again that may have run.
    ///
    /// # Errors
    ///
    /// If the file is of another version, or another job's. The daemon must not start.
    pub fn load(
        &self,
        job: &Job,
        now: Timestamp,
        is_running: impl Fn(&ProcessId) -> bool,
    ) -> Result<Loaded, Refused> {
        Ok(match self.read(job, now)? {
            Read::Whole(loaded) => loaded,
            Read::Damaged { file, contents, why } => {
                self.replace(job, &file, &contents, why, now, is_running)
            }
        })
    }

    /// What loading the state of a job comes to; `None` if it is damaged, so that loading would replace it. Nothing is changed.
    ///
    /// # Errors
    ///
    /// If the file is of another version, or another job's. The daemon must not start.
    pub fn look(&self, job: &Job, now: Timestamp) -> Result<Option<Loaded>, Refused> {
        Ok(match self.read(job, now)? {
            Read::Whole(loaded) => Some(loaded),
            Read::Damaged { .. } => None,
        })
    }

    fn read(&self, job: &Job, now: Timestamp) -> Result<Read, Refused> {
        let identity = job.identity();
        let file = wire::file_name(identity);
        let contents = match self.files.read(&file) {
            Ok(contents) => contents,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Read::Whole(match self.missing {
                    Missing::New => Loaded::Missing(State::new(identity)),
                    Missing::Fence => match self.anchor.latest(&self.files) {
                        Ok(anchor) => Loaded::Missing(State::fenced(job, fence(job, now, [anchor]))),
                        Err(error) => Loaded::Unreadable(format!("could not read {error}")),
                    },
                }));
            }
            Err(error) => {
                return Ok(Read::Whole(Loaded::Unreadable(format!("could not read {file}: {error}"))));
            }
        };
        match wire::decode(&contents.bytes, identity) {
            Ok(state) => {
                if let Some(watermark) = state.watermark() {
                    self.anchor.see(watermark.nominal());
                }
                Ok(Read::Whole(Loaded::Found(state)))
            }
            Err(Unusable::Corrupt(why)) => Ok(Read::Damaged { file, contents, why }),
            Err(why) => Err(Refused { file, identity: identity.to_owned(), why }),
        }
    }

    /// Puts a damaged file aside and a fenced state in its place. The name is never without a file: a crash
    /// half-way leaves the damaged one, and not what looks like a job that was never seen.
    fn replace(
        &self,
        job: &Job,
        file: &str,
        damaged: &Contents,
        why: String,
        now: Timestamp,
        is_running: impl Fn(&ProcessId) -> bool,
    ) -> Loaded {
        let anchor = match self.anchor.latest(&self.files) {
            Ok(anchor) => anchor,
            Err(error) => {
                return Loaded::Unreadable(format!("{file} is damaged ({why}), and so may be {error}"));
            }
        };
        let salvage = wire::salvage(&damaged.bytes);
        let believed = anchor.or_else(|| now.checked_add(SALVAGE_MAX).ok()).unwrap_or(Timestamp::MAX);
        let found = salvage.latest.filter(|latest| *latest <= believed);
        let fence = fence(job, now, [Some(damaged.modified), found, anchor]);
        let mut state = State::fenced(job, fence);
        state.runs = salvage.runs.into_iter().filter(|run| is_running(&run.process)).collect();
        // Whoever paused a job relies on it. That it rests for longer than it had to is the lesser harm.
        state.paused = salvage.paused.map(|since| since.unwrap_or(now));
        let kept_as = format!("{file}.corrupt.{}", stamp(now));
        let kept = match self.files.link(file, &kept_as) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        };
        let replaced = kept.and_then(|()| self.write_one(&state, now));
        match replaced {
            Ok(()) => Loaded::Fenced { state, why, kept_as },
            Err(error) => {
                Loaded::Unreadable(format!("{file} is damaged ({why}) and could not be replaced: {error}"))
            }
        }
    }

    /// Keeps a copy of a job's file under another name, before an operator overrules it; `None` if there is no file.
    ///
    /// # Errors
    ///
    /// If there is no such copy afterwards.
    pub fn archive(&self, identity: &str, now: Timestamp) -> io::Result<Option<String>> {
        let file = wire::file_name(identity);
        let kept_as = format!("{file}.archived.{}", stamp(now));
        match self.files.link(&file, &kept_as) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        self.files.sync_directory()?;
        Ok(Some(kept_as))
    }

    /// Writes one state.
    ///
    /// # Errors
    ///
    /// If it may not be durable.
    pub fn write_one(&self, state: &State, now: Timestamp) -> io::Result<()> {
        self.write(&[(state, now)]).pop().expect("one answer for one state")
    }

    /// Writes states of different jobs, as STATE says: temporary files, flushed, renamed, and the directory
    /// flushed. The flushes are shared, and so is their failure. Answers in the order asked.
    ///
    /// A state that could not be written may still be found later. Nothing was started by it, so nothing is
    /// lost but a run.
    ///
    /// What a state replaces gets the temporary name. Only when the directory is flushed can no power cut bring it
    /// back, and from then on it may be written into: never before, and never if the flush has failed.
    ///
    /// With them goes a later anchor, where they need one: it is durable when they are.
    pub fn write(&self, wave: &[(&State, Timestamp)]) -> Vec<io::Result<()>> {
        let anchor = self.write_anchor(wave);
        let mut answers: Vec<io::Result<()>> = Vec::with_capacity(wave.len());
        let mut temporary = Vec::with_capacity(wave.len());
        for (state, now) in wave {
            let modified = modified(state, *now);
            let (name, written) = match &anchor {
                Err(error) if !self.anchor.covers(modified) => (String::new(), Err(copy(error))),
                _ => match encode(state) {
                    Ok(bytes) => self.write_temporary(&bytes, modified),
                    Err(error) => (String::new(), Err(error)),
                },
            };
            answers.push(written);
            temporary.push(name);
        }
        let fail = |answers: &mut Vec<io::Result<()>>, error: &io::Error| {
            for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
                *answer = Err(copy(error));
            }
        };
        let anchor = anchor.unwrap_or_default();
        let mut names: Vec<String> = good(&answers, &temporary).cloned().collect();
        let is_empty = names.is_empty();
        names.extend(anchor.iter().map(|(name, _)| name.clone()));
        if is_empty {
            self.remove_all(&names);
            return answers;
        }
        if let Err(error) = self.files.sync(&names) {
            self.remove_all(&names);
            fail(&mut answers, &error);
            return answers;
        }
        let mut replaced = Vec::new();
        // First of all, so that no state is there without it even for a moment.
        let raised = anchor
            .as_ref()
            .map_or(Ok(()), |(name, raise)| self.replace_by(name, raise.file(), &mut replaced));
        for ((answer, name), (state, now)) in answers.iter_mut().zip(&temporary).zip(wave) {
            match &raised {
                _ if answer.is_err() => {}
                Err(error) if !self.anchor.covers(modified(state, *now)) => {
                    let _ = self.files.remove(name);
                    *answer = Err(copy(error));
                }
                _ => *answer = self.replace_by(name, &wire::file_name(&state.identity), &mut replaced),
            }
        }
        match self.files.sync_directory() {
            Ok(()) => {
                self.keep_spare(replaced);
                if let (Some((_, raise)), Ok(())) = (anchor, raised) {
                    self.anchor.raised(raise);
                }
            }
            Err(error) => {
                // A power cut may bring back any of them, and then it must say what it said.
                self.remove_all(&replaced);
                self.remove_all(&self.spare.take());
                fail(&mut answers, &error);
            }
        }
        answers
    }

    /// Writes the anchor that a wave needs to a temporary file, if it needs another.
    fn write_anchor(&self, wave: &[(&State, Timestamp)]) -> io::Result<Option<(String, Raise)>> {
        let latest = wave.iter().map(|(state, now)| modified(state, *now)).max();
        let raise = latest.map(|latest| self.anchor.raise(&self.files, latest)).transpose()?.flatten();
        let Some(raise) = raise else { return Ok(None) };
        let (name, written) = self.write_temporary(&wire::encode_anchor(raise.latest), raise.latest);
        written.map(|()| Some((name, raise)))
    }

    /// Writes a temporary file: a spare one, or a new one.
    fn write_temporary(&self, bytes: &[u8], modified: Timestamp) -> (String, io::Result<()>) {
        loop {
            let spare = self.spare.borrow_mut().pop();
            let is_spare = spare.is_some();
            let name = spare.unwrap_or_else(|| self.temporary());
            let written = match is_spare {
                true => self.files.overwrite(&name, bytes, modified),
                false => self.files.create(&name, bytes, modified).map(|()| true),
            };
            match written {
                Ok(true) => return (name, Ok(())),
                // It is kept under another name, and this one is not needed.
                Ok(false) => drop(self.files.remove(&name)),
                Err(error) => {
                    let _ = self.files.remove(&name);
                    return (name, Err(error));
                }
            }
        }
    }

    /// Puts a temporary file in the place of another, which gets its name, if there is another.
    fn replace_by(&self, temporary: &str, file: &str, replaced: &mut Vec<String>) -> io::Result<()> {
        let done = match self.files.exchange(temporary, file) {
            Ok(true) => {
                replaced.push(temporary.to_owned());
                Ok(())
            }
            Ok(false) => self.files.rename(temporary, file),
            Err(error) => Err(error),
        };
        if done.is_err() {
            let _ = self.files.remove(temporary);
        }
        done
    }

    fn keep_spare(&self, replaced: Vec<String>) {
        let mut spare = self.spare.borrow_mut();
        for name in replaced {
            if spare.len() < SPARE_MAX {
                spare.push(name);
            } else {
                let _ = self.files.remove(&name);
            }
        }
    }

    /// Takes names away. Should one stay, it is in nobody's way.
    fn remove_all(&self, names: &[String]) {
        for name in names {
            let _ = self.files.remove(name);
        }
    }

    fn temporary(&self) -> String {
        let number = self.written.get() + 1;
        self.written.set(number);
        format!("{number}{TEMPORARY}")
    }
}

/// Files that were put aside, beyond the latest of each job and kind.
fn too_many(names: &[String]) -> Vec<&String> {
    let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
    let mut excess = Vec::new();
    // Names end with a time, so the latest come last in order. The list is in order.
    for name in names.iter().rev() {
        let Some((kind, _)) = name.rsplit_once('.') else { continue };
        if kind.ends_with(".json.corrupt") || kind.ends_with(".json.archived") {
            let count = kept.entry(kind).or_default();
            *count += 1;
            if *count > ASIDE_MAX {
                excess.push(name);
            }
        }
    }
    excess
}

fn good<'a>(answers: &'a [io::Result<()>], names: &'a [String]) -> impl Iterator<Item = &'a String> {
    answers.iter().zip(names).filter(|(answer, _)| answer.is_ok()).map(|(_, name)| name)
}

/// The text of a state, which is never longer than what can be read. What does not fit is first the history, which
/// nothing is decided by. If that is not enough the job has very many active runs, and gets no more.
fn encode(state: &State) -> io::Result<Vec<u8>> {
    let bytes = wire::encode(state);
    if bytes.len() <= FILE_BYTES_MAX {
        return Ok(bytes);
    }
    let bytes = wire::encode(&State { history: VecDeque::new(), ..state.clone() });
    if bytes.len() <= FILE_BYTES_MAX {
        return Ok(bytes);
    }
    let (runs, pending) = (state.runs.len(), state.pending.len());
    Err(io::Error::other(format!(
        "it has too much to remember: {runs} active runs and {pending} pending periods take {} bytes, and a file has \
         at most {FILE_BYTES_MAX}",
        bytes.len()
    )))
}

/// The time of modification a state file gets: its watermark, or now if that is later. It survives any damage
/// to the content, and bounds what the content may have said.
fn modified(state: &State, now: Timestamp) -> Timestamp {
    state.watermark().map_or(now, |watermark| watermark.nominal().max(now))
}

/// Up to where nothing can run again: wherever a window can be open, and whatever else is known.
fn fence<const N: usize>(job: &Job, now: Timestamp, known: [Option<Timestamp>; N]) -> PeriodId {
    let known = known.into_iter().flatten().map(ceiling);
    known.fold(latest_open(job, now), PeriodId::max)
}

/// The latest nominal time whose window can be open.
fn latest_open(job: &Job, now: Timestamp) -> PeriodId {
    let ahead = SignedDuration::from_secs(job.window().opens_before().as_seconds());
    ceiling(now.saturating_add(ahead).unwrap_or(Timestamp::MAX))
}

/// The first whole second at or after an instant.
fn ceiling(instant: Timestamp) -> PeriodId {
    let floor = PeriodId::new(instant);
    if floor.nominal() == instant {
        return floor;
    }
    PeriodId::new(instant.saturating_add(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MAX))
}

/// A time as part of a file name: `20260301T120000Z`.
fn stamp(now: Timestamp) -> String {
    PeriodId::new(now).to_string().replace(['-', ':'], "")
}

fn copy(error: &io::Error) -> io::Error {
    let told = || io::Error::new(error.kind(), error.to_string());
    error.raw_os_error().map_or_else(told, io::Error::from_raw_os_error)
}

impl Loaded {
    /// The state to go on with, if there is one.
    #[must_use]
    pub fn state(self) -> Option<State> {
        match self {
            Loaded::Found(state) | Loaded::Missing(state) | Loaded::Fenced { state, .. } => Some(state),
            Loaded::Unreadable(_) => None,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { file, identity, why } = self;
        match why {
            Unusable::Version(found) => write!(
                f,
                "{file} (of {identity}) has Version {found:?}, and this krond reads \"1\": use the krond that wrote it"
            ),
            Unusable::Identity(found) => write!(
                f,
                "{file} (of {identity}) says that it is of {found}: put the right file in its place, or move it \
                 away to begin anew"
            ),
            Unusable::Corrupt(why) => write!(f, "{file} (of {identity}) is damaged: {why}"),
        }
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kron_core::conformance::cases;
    use kron_core::{Ledger, Outcome, Reason, Record, RunId};
    use krontab::{Entry, Krontab, Source, Zones};

    use super::*;
    use crate::directory::Directory;
    use crate::process::BootId;
    use crate::state::{Last, Run};

    fn entry() -> Entry {
        let text = "0 * * * * @win(around,10m) name=job command=/bin/true\n";
        let source = Source::new("/etc/krond.d/file").unwrap();
        Krontab::parse(text, &source, &Zones::bundled()).entries.remove(0)
    }

    fn open(path: &Path) -> Store<Directory> {
        let store = Store::new(Directory::open(&path.join("state")).unwrap(), Missing::New);
        store.clean().unwrap();
        store
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn process(pid: u32) -> ProcessId {
        ProcessId { boot: BootId::new(1), pid, start_ticks: 5 }
    }

    fn run(id: RunId) -> Run {
        let now = at("2026-03-01T00:00:00Z");
        let (chosen, seed_hash) = (None, String::new());
        Run { id, process: process(9), started_at: now, chosen, seed_hash, timeout: None }
    }

    fn found(loaded: Result<Loaded, Refused>) -> State {
        match loaded {
            Ok(Loaded::Found(state) | Loaded::Missing(state)) => state,
            other => panic!("{other:?}"),
        }
    }

    /// Every case of the engine's suite, with the store closed and opened between any two records.
    #[test]
    fn the_store_keeps_ledgers_as_all_stores_must() {
        let now = at("2026-03-01T00:00:00Z");
        let job = entry().job;
        for case in cases() {
            let directory = tempfile::tempdir().unwrap();
            for record in &case.records {
                let store = open(directory.path());
                let mut state = found(store.load(&job, now, |_| true));
                match record {
                    Record::Ended(run) => state.end(*run, Some(0), now),
                    Record::Manual(id) => state.apply(record, &job, Some(run(*id)), now),
                    Record::Settled(settled) => {
                        let period = settled.decision.period_id();
                        let starts = matches!(settled.reason, Reason::Started | Reason::FoundRunning);
                        let is_new = !state.ledger().is_handled(period);
                        let started = (starts && is_new).then(|| run(RunId::Period(period)));
                        state.apply(record, &job, started, now);
                    }
                    Record::Passed(_) => state.apply(record, &job, None, now),
                }
                store.write_one(&state, now).unwrap();
            }
            let state = found(open(directory.path()).load(&job, now, |_| true));
            assert_eq!(state.ledger(), case.expected, "{}", case.name);
        }
    }

    #[test]
    fn files_are_closed_to_others_and_nothing_is_left_behind() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let state = State::new("a");
        store.write_one(&state, at("2026-03-01T00:00:00Z")).unwrap();
        let path = directory.path().join("state");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&path.join(wire::file_name("a"))), 0o600);
        assert_eq!(store.files().list().unwrap(), ["anchor.0".to_owned(), wire::file_name("a")]);
        // What was replaced is written into again, and goes when the next daemon starts.
        for history in 0..3 {
            store.write_one(&State { pending: vec![], ..state.clone() }, at("2026-03-01T00:00:00Z")).unwrap();
            assert_eq!(store.files().list().unwrap().len(), 3, "after {history} more");
        }
        assert_eq!(store.files().read(&wire::file_name("a")).unwrap().bytes, wire::encode(&state));
        std::fs::write(path.join("7.tmp"), "half").unwrap();
        store.clean().unwrap();
        assert_eq!(store.files().list().unwrap(), ["anchor.0".to_owned(), wire::file_name("a")]);
    }

    #[test]
    fn what_cannot_be_cleaned_away_is_in_nobodys_way() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let now = at("2026-03-01T00:00:00Z");
        let store = open(directory.path());
        for number in 1..=9 {
            std::fs::create_dir_all(path.join(format!("{number}.tmp/stays"))).unwrap();
        }
        store.clean().unwrap();
        for job in ["a", "b", "c"] {
            store.write_one(&State::new(job), now).unwrap();
        }
        assert!(path.join("9.tmp").exists());
    }

    #[test]
    fn of_what_was_put_aside_the_latest_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let path = directory.path().join("state");
        let name = |job: &str, kind: &str, day: usize| {
            format!("{}.{kind}.202603{day:02}T000000Z", wire::file_name(job))
        };
        for (job, kind, days) in [("a", "corrupt", 12), ("a", "archived", 9), ("b", "corrupt", 3)] {
            for day in 1..=days {
                std::fs::write(path.join(name(job, kind, day)), "").unwrap();
            }
        }
        store.clean().unwrap();
        let left = store.files().list().unwrap();
        assert_eq!(left.len(), 8 + 8 + 3);
        for (job, kind, day, is_left) in
            [("a", "corrupt", 4, false), ("a", "corrupt", 5, true), ("a", "archived", 1, false)]
        {
            assert_eq!(left.contains(&name(job, kind, day)), is_left, "{job} {kind} {day}");
        }
    }

    #[test]
    fn whatever_is_written_can_be_read() {
        use crate::state::Ending;
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let entry = entry();
        let now = at("2026-03-01T00:00:00Z");
        let periods = |count: i64| {
            let nth = move |nth| Timestamp::from_second(now.as_second() - nth).unwrap();
            (1..=count).rev().map(nth).map(PeriodId::new)
        };
        let full = |runs: i64| {
            let mut state = State::fenced(&entry.job, PeriodId::new(now));
            // As many as the engine and the settings allow.
            state.pending = periods(10_000).collect();
            state.history = periods(1_000)
                .map(|period| Ending {
                    period,
                    reason: Reason::DeadlinePassed,
                    chosen: Some(at("2026-02-28T23:59:59.123456789Z")),
                    started_at: Some(at("2026-02-28T23:59:59.123456789Z")),
                    completed_at: at("2026-02-28T23:59:59.123456789Z"),
                    exit: Some(-2_147_483_648),
                    seed_hash: "ab".repeat(32),
                })
                .collect();
            state.runs = periods(runs)
                .map(|period| Run { seed_hash: "ab".repeat(32), ..run(RunId::Period(period)) })
                .collect();
            state
        };
        let load = || found(store.load(&entry.job, now, |_| true));
        store.write_one(&full(300), now).unwrap();
        assert_eq!(load(), full(300));
        // With more runs, the history has to give way.
        store.write_one(&full(2_000), now).unwrap();
        assert_eq!(load(), State { history: VecDeque::new(), ..full(2_000) });
        // And with still more, the run that is one too many.
        let error = store.write_one(&full(4_000), now).unwrap_err().to_string();
        assert!(error.contains("4000 active runs and 10000 pending periods take"), "{error}");
        assert_eq!(load().runs.len(), 2_000, "what is there is left");
        assert_eq!(store.write(&[(&full(4_000), now), (&State::new("other"), now)]).len(), 2);
        assert!(store.files().read(&wire::file_name("other")).is_ok(), "nobody else is concerned");
    }

    #[test]
    fn a_lost_file_and_a_clock_set_back_let_nothing_run_again() {
        let directory = tempfile::tempdir().unwrap();
        let entry = entry();
        let store = open(directory.path());
        let handled: PeriodId = "2026-03-01T12:00:00Z".parse().unwrap();
        store.write_one(&State::fenced(&entry.job, handled), at("2026-03-01T12:00:03Z")).unwrap();
        let path = directory.path().join("state").join(wire::file_name(entry.identity()));
        std::fs::remove_file(&path).unwrap();
        // The next krond has an earlier clock.
        let store = Store::new(Directory::open(&directory.path().join("state")).unwrap(), Missing::Fence);
        let now = at("2026-03-01T10:00:00Z");
        let Ok(Loaded::Missing(state)) = store.load(&entry.job, now, |_| true) else { panic!("it is lost") };
        assert_eq!(state.watermark(), Some("2026-03-01T12:00:10Z".parse().unwrap()));
        assert_eq!(store.archive(entry.identity(), now).unwrap(), None, "an operator can still overrule it");
        // So does one whose file is damaged, with a time that says nothing.
        std::fs::write(&path, "{").unwrap();
        let epoch = std::time::SystemTime::UNIX_EPOCH;
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(epoch).unwrap();
        let state = store.load(&entry.job, now, |_| true).unwrap().state().unwrap();
        assert_eq!(state.watermark(), Some("2026-03-01T12:00:10Z".parse().unwrap()));
    }

    #[test]
    fn what_is_kept_under_another_name_is_never_written_into() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let now = at("2026-03-02T00:00:00Z");
        let write = |hour: u8| {
            let period: PeriodId = format!("2026-03-01T{hour:02}:00:00Z").parse().unwrap();
            let last = Last { period, outcome: Outcome::Skipped, chosen: None };
            store.write_one(&State { last: Some(last), ..State::new("a") }, now).unwrap();
            store.files().read(&wire::file_name("a")).unwrap().bytes
        };
        let third = (1..4).map(write).last().unwrap();
        let kept = store.archive("a", now).unwrap().unwrap();
        let last = (4..8).map(write).last().unwrap();
        assert_eq!(store.files().read(&kept).unwrap().bytes, third);
        assert_eq!(store.files().read(&wire::file_name("a")).unwrap().bytes, last);
        assert_eq!(store.files().list().unwrap().len(), 4, "with the anchor, and one to write into");
    }

    #[test]
    fn a_damaged_file_is_kept_and_nothing_that_may_have_run_can_run_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let entry = entry();
        let file = wire::file_name(entry.identity());
        // Its watermark is ahead of the clock: the clock was once wrong.
        let watermark: PeriodId = "2026-05-01T00:00:00Z".parse().unwrap();
        let mut state = State::fenced(&entry.job, watermark);
        state.runs.push(run(RunId::Period(watermark)));
        store.write_one(&state, at("2026-03-01T00:00:00Z")).unwrap();
        let path = directory.path().join("state").join(&file);
        let modified = path.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, "{\"Version\":\"1\",\"Iden").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();

        let now = at("2026-03-01T12:00:00Z");
        let Ok(Loaded::Fenced { state, kept_as, .. }) = store.load(&entry.job, now, |_| true) else {
            panic!("it is damaged")
        };
        assert_eq!(state.watermark(), Some(watermark));
        assert_eq!(kept_as, format!("{file}.corrupt.20260301T120000Z"));
        assert_eq!(store.files().read(&kept_as).unwrap().bytes, b"{\"Version\":\"1\",\"Iden");
        // The state that stands in its place is durable.
        assert_eq!(found(store.load(&entry.job, now, |_| true)), state);
    }

    /// One bit of a date can be a year. Without an anchor nobody could tell.
    #[test]
    fn a_date_after_the_anchor_is_one_of_the_damaged_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let entry = entry();
        let now = at("2026-03-01T12:00:00Z");
        let handled: PeriodId = "2026-03-01T11:00:00Z".parse().unwrap();
        open(directory.path()).write_one(&State::fenced(&entry.job, handled), now).unwrap();
        let file = path.join(wire::file_name(entry.identity()));
        let modified = file.metadata().unwrap().modified().unwrap();
        let text = std::fs::read_to_string(&file).unwrap().replace("2026-03-01T11", "2026-07-01T11");
        let load = || {
            std::fs::write(&file, &text).unwrap();
            std::fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
            let loaded = open(directory.path()).load(&entry.job, now, |_| true).unwrap();
            loaded.state().unwrap().watermark().unwrap().to_string()
        };
        // A window opens 5 min before its time.
        assert_eq!(load(), "2026-03-01T12:05:00Z");
        std::fs::remove_file(path.join("anchor.0")).unwrap();
        std::fs::remove_file(path.join("anchor.1")).unwrap();
        assert_eq!(load(), "2026-07-01T11:00:00Z");
    }

    #[test]
    fn the_fence_covers_every_window_that_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let entry = entry();
        let path = directory.path().join("state").join(wire::file_name(entry.identity()));
        std::fs::write(&path, "").unwrap();
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
        let state = store.load(&entry.job, at("2026-03-01T11:57:00.5Z"), |_| true).unwrap().state().unwrap();
        // The window of 12:00 opened at 11:55.
        assert_eq!(state.watermark(), Some("2026-03-01T12:02:01Z".parse().unwrap()));
        assert_eq!(state.ledger(), Ledger::fenced(state.watermark().unwrap()));
    }

    #[test]
    fn a_run_in_a_damaged_file_is_kept_if_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let entry = entry();
        let period: PeriodId = "2026-03-01T11:00:00Z".parse().unwrap();
        let mut state = State::fenced(&entry.job, period);
        state.runs.push(run(RunId::Period(period)));
        let text = String::from_utf8(wire::encode(&state)).unwrap().replace("\"skipped\"", "\"skippet\"");
        let path = directory.path().join("state").join(wire::file_name(entry.identity()));
        let now = at("2026-03-01T12:00:00Z");
        for (is_there, expected) in [(true, 1), (false, 0)] {
            std::fs::write(&path, &text).unwrap();
            let loaded = store.load(&entry.job, now, |_| is_there).unwrap();
            assert_eq!(loaded.state().unwrap().runs.len(), expected);
        }
    }

    #[test]
    fn what_is_no_file_holds_the_job_and_what_is_foreign_refuses() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let entry = entry();
        let now = at("2026-03-01T12:00:00Z");
        let path = directory.path().join("state").join(wire::file_name(entry.identity()));
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(store.load(&entry.job, now, |_| true), Ok(Loaded::Unreadable(_))));
        std::fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(matches!(store.load(&entry.job, now, |_| true), Ok(Loaded::Unreadable(_))));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, wire::encode(&State::new("other"))).unwrap();
        assert_eq!(
            store.load(&entry.job, now, |_| true).unwrap_err().to_string(),
            format!(
                "{} (of /etc/krond.d/file:job) says that it is of other: put the right file in its place, or move it \
                 away to begin anew",
                wire::file_name(entry.identity())
            )
        );
    }
}
