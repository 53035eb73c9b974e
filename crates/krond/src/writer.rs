//! The thread that has the store: it writes what is waiting, in waves, so that no evaluation waits for a disk.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::vec;

use krontab::{Entry, Krontab, Source, Zones};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;

use crate::children::{self, PidFd};
use crate::clock;
use crate::daemon::{Configured, Recovered};
use crate::directory::Directory;
use crate::files::Files as _;
use crate::inbox::{Message, Post};
use crate::process::ProcessId;
use crate::state::State;
use crate::store::{Loaded, Refused, Store, WAVE_MAX};
use crate::timers::Slot;
use crate::wire;

/// Something for the store to do.
#[derive(Debug)]
pub(crate) enum Task {
    /// Make a state durable.
    Write(Write),
    /// Try again to read a state.
    Retry(Slot, Arc<Entry>),
    /// Load the states of those jobs that have `true`.
    Load(Vec<(Arc<Entry>, bool)>),
}

/// A state that is to be made durable.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) slot: Slot,
    pub(crate) state: Arc<State>,
    /// Whether the old one is kept under another name.
    pub(crate) archive: bool,
    /// Whether somebody waits for it.
    pub(crate) is_awaited: bool,
}

/// How many waves in a row may be only of what somebody waits for. The others are ends of runs, first records of new jobs and what was
/// missed or skipped. They cost those at the gates as much as starts do, and can wait; but not for as long as there is always
/// somebody at a gate.
const AWAITED_WAVES_MAX: u32 = 7;

/// How many states are looked at before whoever waits for a record has their turn again.
const LOADED_MAX: usize = WAVE_MAX;

/// Starts the thread. It ends when nobody can give it tasks any more.
pub(crate) fn start(store: Store<Directory>, post: &Post) -> io::Result<Sender<Task>> {
    let (sender, receiver) = mpsc::channel();
    post.thread("writer", move |post| serve(&store, &receiver, post))?;
    Ok(sender)
}

fn serve(store: &Store<Directory>, tasks: &Receiver<Task>, post: &Post) {
    let mut waiting = Waiting::default();
    loop {
        if waiting.is_empty() {
            let Ok(task) = tasks.recv() else { return };
            waiting.tasks.push_back(task);
        }
        waiting.tasks.extend(tasks.try_iter());
        let wave = waiting.wave();
        if !wave.is_empty() {
            write(store, &wave, post);
        }
        if let Some((slot, entry)) = waiting.retries.pop_front() {
            retry(store, slot, &entry, post);
        }
        if let Some(mut loading) = waiting.loads.pop_front() {
            match loading.go_on(store, LOADED_MAX) {
                Ok(false) => waiting.loads.push_front(loading),
                Ok(true) => post.send(Message::Loaded(loading.finish(store))),
                Err(refused) => post.send(Message::Loaded(Err(refused))),
            }
        }
    }
}

fn retry(store: &Store<Directory>, slot: Slot, entry: &Entry, post: &Post) {
    let recovered = recover(store, entry);
    let recovered = recovered.unwrap_or_else(|refused| Recovered {
        loaded: Loaded::Unreadable(refused.to_string()),
        alive: Vec::new(),
    });
    post.send(Message::Retried(slot, Box::new(recovered)));
}

/// What is to be done. A job has one write or one read under way at most, so these can be done in any order. What is loaded together
/// is of jobs that the daemon does not know, and whom it does not know it has nothing to write for.
#[derive(Default)]
struct Waiting {
    tasks: VecDeque<Task>,
    awaited: VecDeque<Write>,
    unhurried: VecDeque<Write>,
    retries: VecDeque<(Slot, Arc<Entry>)>,
    loads: VecDeque<Loading>,
    /// How many waves in a row were only of what somebody waits for.
    hurried: u32,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.tasks.is_empty()
            && self.awaited.is_empty()
            && self.unhurried.is_empty()
            && self.retries.is_empty()
            && self.loads.is_empty()
    }

    /// What is written next.
    fn wave(&mut self) -> Vec<Write> {
        for task in self.tasks.drain(..) {
            match task {
                Task::Write(write) if write.is_awaited => self.awaited.push_back(write),
                Task::Write(write) => self.unhurried.push_back(write),
                Task::Retry(slot, entry) => self.retries.push_back((slot, entry)),
                Task::Load(entries) => self.loads.push_back(Loading::new(entries)),
            }
        }
        let is_turn = self.awaited.is_empty() || self.hurried >= AWAITED_WAVES_MAX;
        let queue = if is_turn && !self.unhurried.is_empty() {
            self.hurried = 0;
            &mut self.unhurried
        } else {
            self.hurried = if self.unhurried.is_empty() { 0 } else { self.hurried + 1 };
            &mut self.awaited
        };
        let size = queue.len().min(WAVE_MAX);
        queue.drain(..size).collect()
    }
}

/// Writes states together.
fn write(store: &Store<Directory>, wave: &[Write], post: &Post) {
    let started = clock::now();
    let mut answers = Vec::new();
    let mut states = Vec::new();
    for Write { slot, state, archive, .. } in wave {
        let archived = if *archive { store.archive(&state.identity, started.wall).map(drop) } else { Ok(()) };
        match archived {
            Ok(()) => states.push((*slot, &**state)),
            Err(error) => answers.push((*slot, Err(format!("could not keep the old state: {error}")))),
        }
    }
    let bare: Vec<(&State, _)> = states.iter().map(|(_, state)| (*state, started.wall)).collect();
    let written = store.write(&bare).into_iter().map(|answer| answer.map_err(|error| error.to_string()));
    answers.extend(states.iter().map(|(slot, _)| *slot).zip(written));
    let took = clock::now().uptime.saturating_sub(started.uptime);
    post.send(Message::Written(answers, took));
}

/// Loads what is remembered of each job that has `true`.
pub(crate) fn load_all(
    store: &Store<Directory>,
    entries: Vec<(Arc<Entry>, bool)>,
) -> Result<Vec<Configured>, String> {
    let mut loading = Loading::new(entries);
    loading.go_on(store, usize::MAX)?;
    loading.finish(store)
}

/// States that are being loaded. The first that must not be touched ends it, and then nothing is: of what is replaced only a krond
/// that goes on can tell, and the next would find nothing wrong with it. So all are looked at before any is replaced.
struct Loading {
    left: vec::IntoIter<(Arc<Entry>, bool)>,
    /// What was found of each that is new, unless it is damaged.
    looked: Vec<(Arc<Entry>, bool, Option<Loaded>)>,
}

impl Loading {
    fn new(entries: Vec<(Arc<Entry>, bool)>) -> Loading {
        Loading { looked: Vec::with_capacity(entries.len()), left: entries.into_iter() }
    }

    /// Looks at some more, and tells whether that was all.
    fn go_on(&mut self, store: &Store<Directory>, most: usize) -> Result<bool, String> {
        let now = clock::now().wall;
        for (entry, is_new) in self.left.by_ref().take(most) {
            let looked = if is_new { store.look(&entry.job, now) } else { Ok(None) };
            self.looked.push((entry, is_new, looked.map_err(|refused| refused.to_string())?));
        }
        Ok(self.left.as_slice().is_empty())
    }

    fn finish(self, store: &Store<Directory>) -> Result<Vec<Configured>, String> {
        let configured = |(entry, is_new, looked): (Arc<Entry>, bool, Option<Loaded>)| {
            let memory = match looked {
                _ if !is_new => None,
                Some(loaded) => Some(recovered(loaded)),
                None => Some(recover(store, &entry).map_err(|refused| refused.to_string())?),
            };
            Ok(Configured { entry, memory })
        };
        self.looked.into_iter().map(configured).collect()
    }
}

/// Finds the jobs that have runs on record and are not among these: they were removed while nobody watched. And what
/// could not be looked at.
pub(crate) fn left_behind(
    store: &Store<Directory>,
    configured: &[Configured],
    zones: &Zones,
) -> (Vec<Configured>, Vec<io::Error>) {
    let known: HashSet<String> = configured.iter().map(|job| wire::file_name(job.entry.identity())).collect();
    let names = match store.files().list() {
        Ok(names) => names,
        Err(error) => return (Vec::new(), vec![error]),
    };
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for name in names.into_iter().filter(|name| name.ends_with(".json") && !known.contains(name)) {
        match store.files().read(&name) {
            Ok(contents) => found.extend(with_runs(&name, &contents.bytes, zones)),
            Err(error) => failed.push(io::Error::new(error.kind(), format!("{name}: {error}"))),
        }
    }
    (found, failed)
}

/// A job that is no longer configured, if its state is one and has runs in it. What is damaged is nobody's.
fn with_runs(name: &str, bytes: &[u8], zones: &Zones) -> Option<Configured> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Whose {
        identity: String,
    }
    let Whose { identity } = serde_json::from_slice(bytes).ok()?;
    let state = wire::decode(bytes, &identity).ok()?;
    if wire::file_name(&identity) != name || state.runs.is_empty() {
        return None;
    }
    let alive = state.runs.iter().filter(|run| is_running(&run.process)).map(|run| run.id).collect();
    let entry = Arc::new(stand_in(&identity, zones)?);
    Some(Configured { entry, memory: Some(Recovered { loaded: Loaded::Found(state), alive }) })
}

/// An entry for a job of which nothing is known but who it was. It is never asked what to run, or when.
fn stand_in(identity: &str, zones: &Zones) -> Option<Entry> {
    let name = identity.rsplit_once(':').map_or("removed", |(_, name)| name);
    let source = Source::stdin().with_identity(identity);
    let parse = |name: &str| {
        let line = format!("@yearly name={name} command=/bin/false\n");
        Krontab::parse(&line, &source, zones).entries.pop()
    };
    parse(name).or_else(|| parse("removed"))
}

fn recover(store: &Store<Directory>, entry: &Entry) -> Result<Recovered, Refused> {
    store.load(&entry.job, clock::now().wall, is_running).map(recovered)
}

/// What is loaded, and who of it is there.
fn recovered(loaded: Loaded) -> Recovered {
    let alive = match &loaded {
        Loaded::Found(state) | Loaded::Missing(state) | Loaded::Fenced { state, .. } => {
            state.runs.iter().filter(|run| is_running(&run.process)).map(|run| run.id).collect()
        }
        Loaded::Unreadable(_) => Vec::new(),
    };
    Recovered { loaded, alive }
}

/// Whether that very process is there. One that cannot be looked at is taken for there: what is not known to have
/// ended must not be overlapped.
fn is_running(process: &ProcessId) -> bool {
    match children::identify(process) {
        Ok(None) => false,
        Ok(Some(pidfd)) => !has_ended(&pidfd),
        Err(_) => true,
    }
}

/// Whether a process has ended, and nobody has taken it yet.
fn has_ended(pidfd: &PidFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Missing;

    fn task(slot: u32, is_awaited: bool) -> Task {
        Task::Write(Write { slot: Slot(slot), state: Arc::new(State::new("x")), archive: false, is_awaited })
    }

    fn slots(wave: &[Write]) -> Vec<u32> {
        wave.iter().map(|write| write.slot.0).collect()
    }

    #[test]
    fn a_state_that_is_refused_leaves_what_is_damaged_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        let store = Store::new(Directory::open(&path).unwrap(), Missing::New);
        let text = "@daily name=a command=/bin/true\n@daily name=b command=/bin/true\n";
        let parsed = Krontab::parse(text, &Source::new("/etc/krond.d/x").unwrap(), &Zones::bundled());
        let new: Vec<_> = parsed.entries.into_iter().map(|entry| (Arc::new(entry), true)).collect();
        let file = |at: usize| path.join(wire::file_name(new[at].0.identity()));
        std::fs::write(file(0), "damaged").unwrap();
        let foreign = format!(r#"{{"Version":"2","Identity":"{}"}}"#, new[1].0.identity());
        std::fs::write(file(1), foreign).unwrap();
        let refused = load_all(&store, new.clone()).unwrap_err();
        assert!(refused.contains("Version"), "{refused}");
        assert_eq!(std::fs::read(file(0)).unwrap(), b"damaged");
        // Once the other is away, it is told of.
        std::fs::remove_file(file(1)).unwrap();
        let loaded = load_all(&store, new).unwrap();
        let first = loaded[0].memory.as_ref().map(|memory| &memory.loaded);
        assert!(matches!(first, Some(Loaded::Fenced { .. })), "{first:?}");
    }

    #[test]
    fn who_is_waited_for_goes_first_and_the_others_are_not_forgotten() {
        let mut waiting = Waiting::default();
        waiting.tasks.extend([task(0, false), task(1, true), task(2, false), task(3, true)]);
        assert_eq!(slots(&waiting.wave()), [1, 3]);
        for number in 10..10 + AWAITED_WAVES_MAX - 1 {
            waiting.tasks.push_back(task(number, true));
            assert_eq!(slots(&waiting.wave()), [number]);
        }
        waiting.tasks.push_back(task(99, true));
        assert_eq!(slots(&waiting.wave()), [0, 2], "somebody is always waited for");
        assert_eq!(slots(&waiting.wave()), [99]);
        assert!(waiting.wave().is_empty() && waiting.is_empty());
    }

    #[test]
    fn who_is_waited_for_does_not_wait_until_very_many_are_loaded() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::new(Directory::open(&place.path().join("state")).unwrap(), Missing::New);
        let text: String =
            (0..=LOADED_MAX).map(|job| format!("@daily name=j{job} command=/bin/true\n")).collect();
        let parsed = Krontab::parse(&text, &Source::new("/etc/krond.d/x").unwrap(), &Zones::bundled());
        let new = parsed.entries.into_iter().map(|entry| (Arc::new(entry), true)).collect();
        let mut waiting = Waiting::default();
        waiting.tasks.extend([task(0, false), Task::Load(new), task(1, true)]);
        assert_eq!(slots(&waiting.wave()), [1]);
        let loading = waiting.loads.front_mut().unwrap();
        assert_eq!(loading.go_on(&store, LOADED_MAX), Ok(false), "there are more, and it is another's turn");
        assert_eq!(slots(&waiting.wave()), [0]);
        let mut loading = waiting.loads.pop_front().unwrap();
        assert_eq!(loading.go_on(&store, LOADED_MAX), Ok(true));
        assert_eq!(loading.finish(&store).unwrap().len(), LOADED_MAX + 1);
        assert!(waiting.is_empty());
    }
}
