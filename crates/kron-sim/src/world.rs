//! A machine with a krond on it: two clocks, a disk, processes and one queue of everything that will happen.
//!
//! krond's own code runs unchanged. What it asks for is carried out here, each job's wishes in their order and
//! those of different jobs in any, with delays; and at every wish, every event and every call to the disk it may
//! all come to an end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kron_core::{PeriodId, RunId};
use krond::daemon::{
    Asker, Command, Configured, Daemon, Done, Effect, Event, Farewell, Manners, Recovered, Report, Signal,
    Ticket, Wake,
};
use krond::files::Files as _;
use krond::moment::Moment;
use krond::process::{BootId, ProcessId};
use krond::state::State;
use krond::store::{Loaded, Missing, Store};
use krond::timers::Slot;
use krond::wire;
use krontab::{Entry, Krontab, Source, Zones};

use crate::checker::{Checker, Read, Told};
use crate::disk::{Crash, Disk, Mount};
use crate::line::{FILE, Line, identity};
use crate::plant::Plant;
use crate::rng::{Rng, mix};

pub(crate) const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// The most states that are written together.
const WAVE: usize = 8;

/// How many starts a second has room for: two of every job.
const START_RATE: u32 = 16;

/// PIDs come from a ring this small, so that they are handed out again and again.
const RING: u32 = 12;

pub(crate) struct World {
    pub(crate) rng: Rng,
    /// The true time, in nanoseconds. Nobody but the checker knows it.
    pub(crate) now: u64,
    /// What the wall clock shows besides.
    pub(crate) wall_offset: i64,
    /// When the machine was booted, and how often.
    booted_at: u64,
    boot: u128,
    queue: BTreeMap<(u64, u64), Next>,
    sequence: u64,
    pub(crate) disk: Rc<RefCell<Disk>>,
    pub(crate) krond: Option<Krond>,
    life: u64,
    missing: Missing,
    plant: Option<Plant>,
    zones: Rc<Zones>,
    /// The krontab, by job.
    pub(crate) lines: BTreeMap<usize, Line>,
    /// What its lines were read as, by their versions: each is read once, and krond starts again and again.
    entries: BTreeMap<usize, Arc<Entry>>,
    /// The names of the files of jobs.
    files: Vec<String>,
    processes: BTreeMap<u32, Process>,
    last_pid: u32,
    /// PIDs that may be in use at a time.
    pub(crate) ring: u32,
    last_ticks: BTreeMap<u32, u64>,
    /// Of a thousand children, so many cannot be made.
    pub(crate) spawn_fails: u64,
    /// The longest that a wave of writes takes.
    pub(crate) write_max: u64,
    /// Whether the disk answers nothing at all, not even with an error.
    pub(crate) disk_hangs: bool,
    /// Until then nothing happens at all, or nothing in krond.
    asleep_until: u64,
    stalled_until: u64,
    /// Faults under way that concern all jobs.
    pub(crate) troubles: u32,
    held: BTreeSet<usize>,
    pub(crate) checker: Checker,
    last_asker: u64,
    hash: u64,
    trace: Option<Vec<String>>,
    pub(crate) starts: u64,
    /// The longest a run takes, in milliseconds.
    pub(crate) run_max: i64,
    pub(crate) history_max: usize,
    /// How long krond is down after a crash, if it is not left to chance.
    pub(crate) downtime: Option<u64>,
}

/// A krond that is up.
pub(crate) struct Krond {
    life: u64,
    daemon: Daemon,
    store: Store<Mount>,
    /// By slot, when the last of its wishes is carried out.
    lanes: BTreeMap<u32, u64>,
    /// States to be written, whether the old one is kept, and whether somebody waits for it.
    waiting: Vec<(Slot, Arc<State>, bool, bool)>,
    is_writing: bool,
    children: BTreeMap<Ticket, (Slot, Option<ProcessId>)>,
    tick: Option<(u64, u64)>,
    askers: BTreeMap<u64, Asking>,
    pub(crate) is_stopping: bool,
    /// It has decided to end, and nothing that is asked of it later is heard.
    has_decided: bool,
    /// What was to become of its runs when it was asked to stop.
    farewell: Farewell,
}

#[derive(Debug)]
struct Process {
    id: ProcessId,
    /// Whose run it is; a stranger is nobody's.
    run: Option<(usize, RunId)>,
    life: u64,
    gate: Gate,
    ignores_term: bool,
    /// The line that it was started by.
    version: usize,
    /// krond has lost its record by damage to a file.
    is_lost: bool,
    /// Who is told of its end, of which run as krond knows it, and whether its exit code is seen.
    watcher: Option<(u64, Slot, RunId, bool)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Gate {
    Waiting,
    Released,
    Open,
}

/// Something that will happen.
#[derive(Debug)]
enum Next {
    Start,
    Tick(u64),
    Carry(u64, Box<Effect>),
    Tell(u64, Box<Event>),
    Write(u64),
    Exec(ProcessId),
    End(ProcessId, i32),
    Nemesis(u64),
}

/// What came of waiting.
pub(crate) enum Happened {
    Something,
    /// It is time for what a nemesis had planned under that number.
    Alarm(u64),
    Nothing,
}

impl World {
    pub(crate) fn new(
        mut rng: Rng,
        lines: Vec<Line>,
        missing: Missing,
        plant: Option<Plant>,
        trace: bool,
    ) -> World {
        let jobs = lines.len();
        let disk = Rc::new(RefCell::new(Disk::new(rng.fork())));
        disk.borrow_mut().exchanges = rng.chance(800);
        let mut checker = Checker::new(jobs);
        checker.lines.clone_from(&lines);
        World {
            wall_offset: (1_772_323_200 + rng.between(0, 31_536_000)) * 1_000_000_000,
            rng,
            now: SECOND,
            booted_at: 0,
            boot: 1,
            queue: BTreeMap::new(),
            sequence: 0,
            disk,
            krond: None,
            life: 0,
            missing,
            plant,
            zones: ZONES.with(Rc::clone),
            lines: lines.into_iter().enumerate().collect(),
            entries: BTreeMap::new(),
            files: (0..jobs).map(|job| wire::file_name(&identity(job))).collect(),
            processes: BTreeMap::new(),
            last_pid: 0,
            ring: RING,
            last_ticks: BTreeMap::new(),
            spawn_fails: 0,
            write_max: 20 * MILLISECOND,
            disk_hangs: false,
            asleep_until: 0,
            stalled_until: 0,
            troubles: 0,
            held: BTreeSet::new(),
            checker,
            last_asker: 0,
            hash: 0,
            trace: trace.then(Vec::new),
            starts: 0,
            run_max: 30_000,
            history_max: 8,
            downtime: None,
        }
    }

    pub(crate) fn wall(&self) -> i64 {
        self.wall_offset + i64::try_from(self.now).expect("worlds are shorter than centuries")
    }

    /// The wall clock in whole seconds.
    pub(crate) fn second(&self) -> i64 {
        self.wall().div_euclid(1_000_000_000)
    }

    fn moment(&self) -> Moment {
        let wall =
            Timestamp::from_nanosecond(self.wall().into()).expect("within the centuries that jiff knows");
        Moment { wall, uptime: Duration::from_nanos(self.now - self.booted_at) }
    }

    fn at(&mut self, time: u64, next: Next) -> (u64, u64) {
        self.sequence += 1;
        let key = (time.max(self.now), self.sequence);
        self.queue.insert(key, next);
        key
    }

    pub(crate) fn alarm(&mut self, delay: u64, number: u64) {
        self.at(self.now + delay, Next::Nemesis(number));
    }

    /// Writes something down, for replays to be compared by and for people.
    pub(crate) fn note(&mut self, kind: u64, value: u64, text: impl FnOnce() -> String) {
        self.hash = mix(self.hash ^ mix(kind ^ mix(value ^ self.now)));
        if self.trace.is_some() {
            self.write_down(&text());
        }
    }

    fn write_down(&mut self, text: &str) {
        let line = format!("{:>10.3} {:>12} {text}", self.now as f64 / 1e9, self.second());
        self.trace.get_or_insert_default().push(line);
    }

    pub(crate) fn finish(self) -> (Checker, u64, Vec<String>, Disk) {
        let World { checker, hash, trace, disk, krond, .. } = self;
        drop(krond);
        let disk = Rc::into_inner(disk).expect("nobody has it any more").into_inner();
        (checker, hash, trace.unwrap_or_default(), disk)
    }

    /// A delay: nearly always short, and rarely most of a second.
    fn delay(&mut self) -> u64 {
        match self.rng.below(100) {
            0..=59 => 0,
            60..=97 => self.rng.below(30 * MILLISECOND),
            _ => self.rng.below(400 * MILLISECOND),
        }
    }

    /// The next thing happens.
    pub(crate) fn step(&mut self, until: u64) -> Happened {
        let Some(((time, sequence), next)) = self.queue.pop_first() else { return Happened::Nothing };
        if time > until {
            self.queue.insert((time, sequence), next);
            self.now = until;
            return Happened::Nothing;
        }
        let is_kronds = !matches!(next, Next::Exec(_) | Next::End(..) | Next::Nemesis(_));
        let wait = if is_kronds { self.asleep_until.max(self.stalled_until) } else { self.asleep_until };
        if time < wait {
            if let (Next::Tick(_), Some(krond)) = (&next, &mut self.krond)
                && krond.tick == Some((time, sequence))
            {
                krond.tick = Some((wait, sequence));
            }
            self.queue.insert((wait, sequence), next);
            return Happened::Something;
        }
        self.now = time;
        match next {
            Next::Nemesis(number) => return Happened::Alarm(number),
            Next::Start => self.start(),
            Next::Tick(life) => {
                if let Some(krond) = self.krond.as_mut().filter(|krond| krond.life == life) {
                    krond.tick = None;
                    self.tell(Event::Tick);
                }
            }
            Next::Tell(life, event) => {
                if self.is_life(life) {
                    self.tell(*event);
                }
            }
            Next::Carry(life, effect) => {
                if self.is_life(life) {
                    self.carry_out(*effect);
                }
            }
            Next::Write(life) => {
                if self.is_life(life) {
                    self.write();
                }
            }
            Next::Exec(process) => self.exec(process),
            Next::End(process, exit) => self.end(process, exit),
        }
        Happened::Something
    }

    fn is_life(&self, life: u64) -> bool {
        self.krond.as_ref().is_some_and(|krond| krond.life == life)
    }

    // krond's life.

    pub(crate) fn start_in(&mut self, delay: u64) {
        self.at(self.now + delay, Next::Start);
    }

    fn start(&mut self) {
        if self.krond.is_some() {
            return;
        }
        self.life += 1;
        self.starts += 1;
        self.held.clear();
        // Others have come and gone meanwhile, and have taken PIDs.
        for _ in 0..self.rng.below(4) {
            self.stranger();
        }
        self.note(1, self.life, || "krond starts".into());
        let store = Store::new(Mount { disk: Rc::clone(&self.disk), plant: self.plant }, self.missing);
        let cleaned = store.clean();
        self.krond = Some(Krond {
            life: self.life,
            // Every other one has a pace to keep, which leaves room for every job of a world.
            daemon: Daemon::new(Manners {
                history_max: self.history_max,
                start_rate: self.life.is_multiple_of(2).then_some(START_RATE),
                looks_max: if self.life.is_multiple_of(3) { 1 } else { Manners::default().looks_max },
                ..Manners::default()
            }),
            store,
            lanes: BTreeMap::new(),
            waiting: Vec::new(),
            is_writing: false,
            children: BTreeMap::new(),
            tick: None,
            askers: BTreeMap::new(),
            is_stopping: false,
            has_decided: false,
            farewell: Farewell::Leave,
        });
        if self.fell() {
            return;
        }
        if cleaned.is_err() {
            // The directory cannot be used: krond ends, and is started again.
            self.krond = None;
            return self.start_in(SECOND);
        }
        self.configure();
        self.see_off();
        self.calm_all();
    }

    /// Hands over what is left of jobs that were removed while krond was down.
    fn see_off(&mut self) {
        let mut left = Vec::new();
        for job in (0..self.jobs()).filter(|job| !self.lines.contains_key(job)).collect::<Vec<_>>() {
            let Some(krond) = &self.krond else { return };
            let read = krond.store.files().read(&self.files[job]);
            if self.fell() {
                return;
            }
            let state = read.ok().and_then(|contents| wire::decode(&contents.bytes, &identity(job)).ok());
            let line = self.checker.lines.iter().rfind(|line| line.job == job);
            let (Some(_), Some(line)) = (state.filter(|state| !state.runs.is_empty()), line) else {
                continue;
            };
            let entry = entry(&mut self.entries, line, &self.zones);
            let memory = Some(self.load(&entry));
            if self.fell() {
                return;
            }
            left.push(Configured { entry, memory });
        }
        self.tell(Event::LeftBehind(left));
    }

    /// Reads the krontab, and the states of jobs that are new, and hands them over.
    pub(crate) fn configure(&mut self) {
        let entries: Vec<Arc<Entry>> =
            self.lines.values().map(|line| entry(&mut self.entries, line, &self.zones)).collect();
        let mut jobs = Vec::new();
        for entry in entries {
            let Some(krond) = &self.krond else { return };
            let memory = (!krond.daemon.knows(entry.identity())).then(|| self.load(&entry));
            if self.fell() {
                return;
            }
            jobs.push(Configured { entry, memory });
        }
        for job in 0..self.jobs() {
            self.checker.configured(job, self.lines.get(&job).map(|line| line.version));
        }
        self.tell(Event::Configured(jobs));
    }

    pub(crate) fn jobs(&self) -> usize {
        self.checker.jobs()
    }

    fn load(&mut self, entry: &Entry) -> Recovered {
        let job = job_of(entry);
        let before = self.disk.borrow().peek(&self.files[job]);
        let now = self.moment().wall;
        let krond = self.krond.as_ref().expect("who else would load");
        let is_running = |process: &ProcessId| self.is_running(process);
        let loaded = krond.store.load(&entry.job, now, is_running);
        let loaded = loaded.unwrap_or_else(|refused| {
            self.checker.fail("O11", format!("nobody has touched it, but {refused}"));
            Loaded::Unreadable(refused.to_string())
        });
        let loaded = match (self.plant, loaded) {
            (Some(Plant::DamagedIsNew), Loaded::Fenced { .. }) => {
                let state = State::new(entry.identity());
                let _ = krond.store.write_one(&state, now);
                Loaded::Missing(state)
            }
            (Some(Plant::FenceAtNow), Loaded::Fenced { state, why, kept_as }) => {
                let ahead = entry.job.window().opens_before().as_seconds();
                let fence = PeriodId::new(Timestamp::from_second(self.second() + ahead + 1).expect("soon"));
                let state = State { runs: state.runs, ..State::fenced(&entry.job, fence) };
                let _ = krond.store.write_one(&state, now);
                Loaded::Fenced { state, why, kept_as }
            }
            (Some(Plant::EqualOnly), Loaded::Found(mut state)) => {
                let current = entry.job.schedule().prev_at_or_before(now);
                if let (Some(current), Some(last)) = (current, &mut state.last)
                    && PeriodId::new(current) != last.period
                {
                    let before =
                        PeriodId::new(Timestamp::from_second(current.as_second() - 1).expect("near"));
                    last.period = last.period.min(before);
                    state.pending.clear();
                }
                Loaded::Found(state)
            }
            (Some(Plant::NoCivilTime), Loaded::Found(state)) => {
                Loaded::Found(State { latest: None, ..state })
            }
            (Some(Plant::NoPause), Loaded::Found(state)) => Loaded::Found(State { paused: None, ..state }),
            (_, loaded) => loaded,
        };
        let (read, runs) = match &loaded {
            Loaded::Found(state) => (Read::Found, &state.runs[..]),
            Loaded::Missing(state) => {
                (Read::Missing { fenced: self.missing == Missing::Fence }, &state.runs[..])
            }
            Loaded::Fenced { state, .. } => (Read::Fenced, &state.runs[..]),
            Loaded::Unreadable(_) => (Read::Unreadable, &[][..]),
        };
        let alive: Vec<RunId> =
            runs.iter().filter(|run| self.is_running(&run.process)).map(|run| run.id).collect();
        let is_dead = self.disk.borrow().crashed.is_some();
        if !is_dead {
            if matches!(read, Read::Fenced | Read::Missing { .. }) || self.checker.is_damaged(job) {
                let kept: Vec<ProcessId> = runs.iter().map(|run| run.process).collect();
                for process in self.processes.values_mut() {
                    process.is_lost |=
                        process.run.is_some_and(|(of, _)| of == job) && !kept.contains(&process.id);
                }
            }
            let watermark = match &loaded {
                Loaded::Found(state) | Loaded::Missing(state) | Loaded::Fenced { state, .. } => {
                    state.watermark()
                }
                Loaded::Unreadable(_) => None,
            };
            let watermark = watermark.map(|mark| mark.nominal().as_second());
            let paused = match &loaded {
                Loaded::Found(state) | Loaded::Missing(state) | Loaded::Fenced { state, .. } => {
                    state.paused.is_some()
                }
                Loaded::Unreadable(_) => false,
            };
            self.checker.loaded(job, before.as_ref().map(|(bytes, _)| &bytes[..]), read, watermark, paused);
            self.note(2, job as u64, || format!("j{job} is loaded: {read:?}"));
        }
        Recovered { loaded, alive }
    }

    fn is_running(&self, process: &ProcessId) -> bool {
        let found = self.processes.get(&process.pid);
        match self.plant {
            Some(Plant::PidOnly) => found.is_some(),
            _ => found.is_some_and(|found| found.id == *process),
        }
    }

    /// Whether the daemon has just come to a sudden end.
    fn fell(&mut self) -> bool {
        let Some(crash) = self.disk.borrow_mut().crashed.take() else { return false };
        self.fall(crash);
        true
    }

    /// The daemon, or all, comes to a sudden end.
    pub(crate) fn fall(&mut self, crash: Crash) {
        self.note(3, self.life, || format!("{crash:?}"));
        self.disturb_all();
        self.krond = None;
        match crash {
            Crash::Kill => self.close_gates(),
            Crash::Power => {
                for process in std::mem::take(&mut self.processes).into_values() {
                    if let Some((job, _)) = process.run {
                        self.checker.process_ended(job, process.id, self.now);
                    }
                }
                self.boot += 1;
                self.last_ticks.clear();
                self.booted_at = self.now;
                self.last_pid = u32::try_from(self.rng.below(4)).expect("small");
                self.disk.borrow_mut().cut_power();
            }
        }
        let downtime = match self.rng.below(4) {
            0 => self.rng.below(SECOND),
            1 | 2 => self.rng.below(30 * SECOND),
            _ => self.rng.below(600 * SECOND),
        };
        self.start_in(self.downtime.unwrap_or(downtime));
    }

    /// Whoever waits at a gate sees that nobody holds it any more.
    fn close_gates(&mut self) {
        let waiting: Vec<ProcessId> = self
            .processes
            .values()
            .filter(|process| process.gate == Gate::Waiting)
            .map(|process| process.id)
            .collect();
        for process in waiting {
            let delay = self.delay();
            self.at(self.now + delay, Next::End(process, 0));
        }
    }

    // What krond hears, and what it wants.

    pub(crate) fn tell(&mut self, event: Event) {
        let now = self.moment();
        if self.disk.borrow_mut().point() {
            self.fell();
            return;
        }
        if self.trace.is_some() && !matches!(event, Event::Tick | Event::Configured(_)) {
            self.write_down(&format!("  -> {event:?}"));
        }
        let Some(krond) = &mut self.krond else { return };
        let (effects, wake) = krond.daemon.on(now, event);
        self.hash = mix(self.hash ^ effects.len() as u64);
        for effect in effects {
            self.wish(effect);
            if self.krond.is_none() {
                return;
            }
        }
        self.sleep(wake);
    }

    fn sleep(&mut self, wake: Wake) {
        let Some(krond) = &mut self.krond else { return };
        let life = krond.life;
        if let Some(tick) = krond.tick.take() {
            self.queue.remove(&tick);
        }
        let wall = wake.wall.map(|wall| {
            let nanos = i64::try_from(wall.as_nanosecond()).unwrap_or(i64::MAX);
            u64::try_from(nanos.saturating_sub(self.wall_offset)).unwrap_or_default()
        });
        let uptime = wake
            .uptime
            .map(|uptime| self.booted_at + u64::try_from(uptime.as_nanos()).expect("worlds are short"));
        let late = if self.rng.chance(20) {
            self.rng.below(500 * MILLISECOND)
        } else {
            self.rng.below(2 * MILLISECOND)
        };
        if let Some(at) = wall.into_iter().chain(uptime).min() {
            let key = self.at(at.max(self.now) + late, Next::Tick(life));
            self.krond.as_mut().expect("it is here").tick = Some(key);
        }
    }

    /// Something is to be carried out: after everything that was wanted for the same job before.
    fn wish(&mut self, effect: Effect) {
        let delay = self.delay();
        let now = self.now;
        let Some(krond) = &mut self.krond else { return };
        let slot_of = |entry: &Entry, daemon: &Daemon| daemon.slot(entry.identity());
        let slot = match &effect {
            Effect::PrepareChild { ticket, entry, run, chosen } => {
                let slot = slot_of(entry, &krond.daemon).expect("a job that starts is there");
                krond.children.insert(*ticket, (slot, None));
                if let (RunId::Period(period), Some(chosen)) = (run, chosen) {
                    let (job, version) = (job_of(entry), version_of(entry));
                    let second =
                        (self.wall_offset + i64::try_from(now).expect("short")).div_euclid(1_000_000_000);
                    let period = period.nominal().as_second();
                    self.checker.starting(job, version, period, chosen.as_second(), second);
                }
                Some(slot)
            }
            Effect::AbortChild(ticket) => krond.children.get(ticket).map(|(slot, _)| *slot),
            Effect::ReleaseChild { slot, run, .. } => {
                if let (RunId::Period(period), Some((entry, ..))) = (run, krond.daemon.job(*slot)) {
                    let second =
                        (self.wall_offset + i64::try_from(now).expect("short")).div_euclid(1_000_000_000);
                    self.checker.letting_go(job_of(entry), period.nominal().as_second(), second);
                }
                Some(*slot)
            }
            Effect::WriteState { slot, .. }
            | Effect::LoadState(slot, _)
            | Effect::Watch(slot, ..)
            | Effect::Signal(slot, ..) => Some(*slot),
            Effect::Answer(asker, _) => {
                krond.askers.get(&asker.0).and_then(|asking| krond.daemon.slot(&identity(asking.job)))
            }
            Effect::Report(report) => subject(report).and_then(|entry| slot_of(entry, &krond.daemon)),
            Effect::Stopped => None,
        };
        // Nobody's wishes go one after another as well, and the end comes after everything.
        let is_end = matches!(effect, Effect::Stopped);
        krond.has_decided |= is_end;
        let last = krond.lanes.values().copied().max().filter(|_| is_end);
        let now = now.max(last.unwrap_or_default());
        let lane = krond.lanes.entry(slot.map_or(u32::MAX, |slot| slot.0)).or_default();
        let free = (*lane).max(now);
        *lane = free + delay;
        let (at, life) = (*lane, krond.life);
        if at == self.now {
            self.carry_out(effect);
        } else {
            self.at(at, Next::Carry(life, Box::new(effect)));
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        if self.disk.borrow_mut().point() {
            self.fell();
            return;
        }
        let Some(krond) = &mut self.krond else { return };
        let life = krond.life;
        match effect {
            Effect::PrepareChild { ticket, entry, run, .. } => self.prepare(ticket, &entry, run),
            Effect::ReleaseChild { ticket, slot, run, process } => {
                krond.children.remove(&ticket);
                let delay = self.delay();
                self.at(self.now + delay, Next::Tell(life, Box::new(Event::Released(ticket))));
                match self.processes.get_mut(&process.pid).filter(|found| found.id == process) {
                    Some(child) => {
                        child.watcher = Some((life, slot, run, true));
                        if child.gate == Gate::Waiting {
                            child.gate = Gate::Released;
                            self.at(self.now + delay, Next::Exec(process));
                        }
                    }
                    None => {
                        self.at(self.now + delay, Next::Tell(life, Box::new(Event::Exited(slot, run, None))));
                    }
                }
            }
            Effect::AbortChild(ticket) => {
                if let Some((_, Some(process))) = krond.children.remove(&ticket) {
                    let delay = self.delay();
                    if self.processes.get(&process.pid).is_some_and(|child| child.gate == Gate::Waiting) {
                        self.at(self.now + delay, Next::End(process, 0));
                    }
                }
            }
            Effect::WriteState { slot, state, archive, is_awaited } => {
                krond.waiting.push((slot, state, archive, is_awaited));
                if !krond.is_writing {
                    krond.is_writing = true;
                    let delay = self.rng.below(self.write_max);
                    self.at(self.now + delay, Next::Write(life));
                }
            }
            Effect::LoadState(slot, entry) => {
                let memory = self.load(&entry);
                if !self.fell() {
                    let delay = self.delay();
                    self.at(
                        self.now + delay,
                        Next::Tell(life, Box::new(Event::StateLoaded(slot, Box::new(memory)))),
                    );
                }
            }
            Effect::Watch(slot, run, process) => {
                let by_pid = self.plant == Some(Plant::PidOnly);
                let found = self.processes.get_mut(&process.pid);
                match found.filter(|found| by_pid || found.id == process) {
                    Some(found) => found.watcher = Some((life, slot, run, false)),
                    None => {
                        let delay = self.delay();
                        self.at(self.now + delay, Next::Tell(life, Box::new(Event::Exited(slot, run, None))));
                    }
                }
            }
            Effect::Signal(slot, run, process, signal) => {
                let job = krond.daemon.job(slot).map(|(entry, ..)| job_of(entry));
                self.signal(job, run, process, signal);
            }
            Effect::Answer(asker, answer) => {
                let asking = krond.askers.remove(&asker.0);
                let is_same = |other: &Asking| asking.is_some_and(|asking| *other == asking);
                let is_asked_again = krond.askers.values().any(is_same);
                self.note(6, asker.0, || format!("answer {}: {answer:?}", asker.0));
                match (asking, answer) {
                    (Some(Asking { job, .. }), Ok(Done::Accepted(mark))) => {
                        self.checker.accepted(job, mark.nominal().as_second(), is_asked_again);
                        self.disturbed(job);
                    }
                    (Some(Asking { job, .. }), Ok(Done::Paused(_))) => self.checker.paused(job, true),
                    (Some(Asking { job, .. }), Ok(Done::Resumed(_))) => {
                        self.checker.paused(job, false);
                        self.disturbed(job);
                    }
                    (Some(Asking { job, wish: Wish::Pause { was_paused } }), Err(_)) => {
                        self.checker.unsure_paused(job, was_paused);
                        self.disturbed(job);
                    }
                    (Some(_), _) => {}
                    (None, answer) => {
                        self.checker.fail("O12", format!("{asker:?} did not wait for {answer:?}"));
                    }
                }
            }
            Effect::Report(report) => self.hear(&report),
            Effect::Stopped => {
                let unanswered = krond.askers.len();
                let farewell = krond.farewell;
                self.krond = None;
                self.check_farewell(farewell);
                self.note(7, self.life, || "krond has stopped".into());
                if unanswered > 0 {
                    self.checker.fail("O12", format!("krond stopped with {unanswered} askers left waiting"));
                }
                self.close_gates();
                let delay = self.rng.below(20 * SECOND);
                self.start_in(delay);
            }
        }
    }

    /// Who waits for its runs, or ends them, leaves none. Those of a job whose state cannot be read are not known to it.
    fn check_farewell(&mut self, farewell: Farewell) {
        let is_left = |process: &&Process| {
            let is_known =
                |(job, _): (usize, RunId)| !self.held.contains(&job) && self.lines.contains_key(&job);
            process.gate != Gate::Waiting && !process.is_lost && process.run.is_some_and(is_known)
        };
        let left = self.processes.values().find(is_left).map(|process| process.id);
        if let (Some(process), Farewell::Wait | Farewell::End) = (left, farewell) {
            self.checker.fail("O13", format!("krond stopped by {farewell:?} and left {process:?}"));
        }
    }

    /// A wave of writes.
    fn write(&mut self) {
        let now = self.moment().wall;
        let Some(krond) = &mut self.krond else { return };
        let life = krond.life;
        if self.disk_hangs {
            self.at(self.now + SECOND, Next::Write(life));
            if self.plant == Some(Plant::Unnoticed) {
                // An answer to what nobody has asked for.
                self.tell(Event::StateWritten(Slot(u32::MAX)));
            }
            return;
        }
        // Those of different jobs may be written in any order, and whoever is waited for goes first.
        if life.is_multiple_of(2) {
            krond.waiting.sort_by_key(|(.., is_awaited)| !is_awaited);
        }
        let size = krond.waiting.len().min(WAVE);
        let wave: Vec<(Slot, Arc<State>, bool)> =
            krond.waiting.drain(..size).map(|(slot, state, archive, _)| (slot, state, archive)).collect();
        let mut failed: BTreeMap<Slot, String> = BTreeMap::new();
        for (slot, state, _) in wave.iter().filter(|(_, _, archive)| *archive) {
            match krond.store.archive(&state.identity, now) {
                Err(error) if !is_harmless(&error) => {
                    failed.insert(*slot, error.to_string());
                }
                _ => {}
            }
        }
        let written: Vec<&(Slot, Arc<State>, bool)> =
            wave.iter().filter(|(slot, ..)| !failed.contains_key(slot)).collect();
        let states: Vec<(&State, Timestamp)> = written.iter().map(|(_, state, _)| (&**state, now)).collect();
        let answers = if states.is_empty() { Vec::new() } else { krond.store.write(&states) };
        for ((slot, ..), answer) in written.iter().zip(answers) {
            if let Err(error) = answer {
                failed.insert(*slot, error.to_string());
            }
        }
        krond.is_writing = !krond.waiting.is_empty();
        let again = krond.is_writing;
        if self.fell() {
            return;
        }
        self.note(8, wave.len() as u64, || {
            format!("{} states are written, {} failed", wave.len(), failed.len())
        });
        for (slot, state, _) in wave {
            let delay = self.delay();
            let event = match failed.remove(&slot) {
                Some(error) => Event::StateFailed(slot, error),
                None => {
                    self.checker.written(job_named(&state.identity));
                    Event::StateWritten(slot)
                }
            };
            self.at(self.now + delay, Next::Tell(life, Box::new(event)));
        }
        if again {
            let delay = self.rng.below(self.write_max);
            self.at(self.now + delay, Next::Write(life));
        }
    }

    // Processes.

    fn prepare(&mut self, ticket: Ticket, entry: &Entry, run: RunId) {
        let delay = self.delay();
        let job = job_of(entry);
        let life = self.life;
        let process = if self.rng.chance(self.spawn_fails) {
            None
        } else {
            self.fork(Some((job, run)), version_of(entry))
        };
        let event = match process {
            Some(process) => {
                self.note(9, u64::from(process.pid), || {
                    format!("j{job} has a child {process:?} for {run:?}")
                });
                if let Some(krond) = &mut self.krond
                    && let Some((_, child)) = krond.children.get_mut(&ticket)
                {
                    *child = Some(process);
                }
                if self.plant == Some(Plant::ReleaseFirst) {
                    let child = self.processes.get_mut(&process.pid).expect("it was just made");
                    child.gate = Gate::Released;
                    self.at(self.now + delay / 2, Next::Exec(process));
                }
                Event::SpawnReady(ticket, process)
            }
            None => Event::SpawnFailed(ticket, "no process left".into()),
        };
        self.at(self.now + delay, Next::Tell(life, Box::new(event)));
    }

    /// A new process, if there is a PID for it.
    fn fork(&mut self, run: Option<(usize, RunId)>, version: usize) -> Option<ProcessId> {
        let pid = (1..=self.ring).map(|step| (self.last_pid + step) % self.ring + 100);
        let pid = pid.into_iter().find(|pid| !self.processes.contains_key(pid))?;
        self.last_pid = pid - 100;
        // The kernel does not hand out a PID again within a tick of its clock.
        let ticks = (self.now - self.booted_at) / (10 * MILLISECOND);
        let last = self.last_ticks.get(&pid).copied().unwrap_or_default();
        let start_ticks = ticks.max(last + 1);
        self.last_ticks.insert(pid, start_ticks);
        let id = ProcessId { boot: BootId::new(self.boot), pid, start_ticks };
        if let Some((job, run)) = run {
            self.checker.process_began(job, run, id, self.now);
        }
        let ignores_term = self.rng.chance(200);
        let (life, gate) = (self.life, if run.is_some() { Gate::Waiting } else { Gate::Open });
        let process = Process { id, run, life, gate, ignores_term, version, is_lost: false, watcher: None };
        self.processes.insert(pid, process);
        Some(id)
    }

    /// A process that is none of krond's.
    pub(crate) fn stranger(&mut self) {
        if let Some(process) = self.fork(None, 0) {
            let life = self.rng.below(300 * SECOND);
            self.at(self.now + life, Next::End(process, 0));
        }
    }

    fn exec(&mut self, id: ProcessId) {
        let Some(process) = self.processes.get_mut(&id.pid).filter(|process| process.id == id) else {
            return;
        };
        let Some((job, run)) = process.run else { return };
        process.gate = Gate::Open;
        let version = process.version;
        let wall = self.second();
        let others: Vec<ProcessId> = self
            .processes
            .values()
            .filter(|other| other.id != id && other.gate == Gate::Open && !other.is_lost)
            .filter(|other| other.run.is_some_and(|(of, _)| of == job))
            .map(|other| other.id)
            .collect();
        let claimed = self.is_claimed(job, run, id) || self.checker.is_deleted(job);
        self.note(10, u64::from(id.pid), || format!("execve j{job} {run:?} {id:?}"));
        self.checker.execve(job, version, (run, id), wall, claimed, &others);
        let millis = match self.rng.below(20) {
            0..=14 => self.rng.between(10, 4_000),
            15..=18 => self.rng.between(10, self.run_max),
            _ => self.rng.between(10, 6 * self.run_max),
        };
        let exit = i32::from(self.rng.chance(100));
        self.at(self.now + millis.unsigned_abs() * MILLISECOND, Next::End(id, exit));
    }

    /// Whether the disk would tell of this run, whatever happened to it now. Read from the bytes alone.
    fn is_claimed(&self, job: usize, run: RunId, process: ProcessId) -> bool {
        let period = match run {
            RunId::Period(period) => period.to_string(),
            RunId::Manual(_) => String::new(),
        };
        let claim = format!("\"PeriodID\":\"{period}\",\"PID\":{},", process.pid);
        let ticks = format!("\"BootID\":\"{}\",\"StartTicks\":{}", process.boot, process.start_ticks);
        let says = |text: &str| text.contains(&claim) && text.contains(&ticks);
        let is_it = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(says);
        self.disk.borrow().surely_says(&self.files[job], is_it)
    }

    fn signal(&mut self, job: Option<usize>, run: RunId, process: ProcessId, signal: Signal) {
        let by_pid = self.plant == Some(Plant::PidOnly);
        let delay = self.delay();
        let Some(found) = self.processes.get(&process.pid) else { return };
        if !by_pid && found.id != process {
            return;
        }
        // Which period it is for may have been read from a damaged file. Whose it is, and that it is this very process, may not.
        let is_own = found.run.is_some_and(|(of, _)| Some(of) == job);
        let (id, ignores) = (found.id, found.ignores_term);
        self.note(11, u64::from(id.pid), || format!("{signal:?} to {id:?}"));
        if !is_own || id != process {
            self.checker.fail("O8", format!("{signal:?} for {run:?} was sent to the stranger {id:?}"));
        }
        match signal {
            Signal::Kill => {
                self.at(self.now + delay, Next::End(id, 137));
            }
            Signal::Term if !ignores => {
                let delay = delay + self.rng.below(3 * SECOND);
                self.at(self.now + delay, Next::End(id, 143));
            }
            Signal::Term => {}
        }
    }

    fn end(&mut self, id: ProcessId, exit: i32) {
        if self.processes.get(&id.pid).is_none_or(|process| process.id != id) {
            return;
        }
        let process = self.processes.remove(&id.pid).expect("it was just there");
        self.note(12, u64::from(id.pid), || format!("{id:?} ends with {exit}"));
        let Some((job, _)) = process.run else { return };
        self.checker.process_ended(job, id, self.now);
        if let Some((life, slot, run, is_child)) = process.watcher
            && self.is_life(life)
        {
            let exit = (is_child && process.life == life).then_some(exit);
            let delay = self.delay();
            self.at(self.now + delay, Next::Tell(life, Box::new(Event::Exited(slot, run, exit))));
        }
    }

    // What is heard of krond.

    fn hear(&mut self, report: &Report) {
        let at = (self.now, self.second());
        let second = |time: Timestamp| time.as_second();
        self.note(13, 0, || tell_of(report));
        match report {
            Report::Settled { entry, decision, reason, process } => {
                let told = Told { reason: *reason, chosen: decision.chosen().map(second), at };
                let (job, version) = (job_of(entry), version_of(entry));
                self.checker.told_settled(job, version, second(decision.nominal()), told, *process);
            }
            Report::Passed { entry, passed } => self.checker.told_passed(job_of(entry), passed, at.1),
            Report::Completed { entry, run, process, .. } => {
                self.checker.told_completed(job_of(entry), *run, *process);
            }
            Report::Adopted { entry, run, process } => {
                self.checker.told_adopted(job_of(entry), *run, *process);
            }
            Report::Fenced { entry, fence, .. } => {
                self.checker.told_fenced(job_of(entry), second(fence.nominal()), at.1);
            }
            Report::Held { entry, .. } => {
                let job = job_of(entry);
                // It may have been removed before this was heard, and then nobody hears that it recovers.
                if self.lines.contains_key(&job) {
                    self.held.insert(job);
                }
                self.checker.disturb(job, at.1);
            }
            Report::Recovered(entry) => {
                let job = job_of(entry);
                self.held.remove(&job);
                self.disturbed(job);
            }
            Report::Manual { .. }
            | Report::Ending { .. }
            | Report::Stuck { .. }
            | Report::Paused { .. }
            | Report::Resumed { .. }
            | Report::Ahead { .. }
            | Report::Skipped { .. }
            | Report::ZoneChanged { .. }
            | Report::Rescheduled { .. }
            | Report::Configured(_)
            | Report::ClockJumped(_)
            | Report::Stalled(_) => {}
        }
    }

    /// Something has happened to a job, and it may be at peace from now on.
    fn disturbed(&mut self, job: usize) {
        let wall = self.second();
        self.checker.disturb(job, wall);
        let awake = self.now >= self.asleep_until.max(self.stalled_until);
        let peaceful = awake && self.krond.as_ref().is_some_and(|krond| !krond.is_stopping);
        if self.troubles == 0 && peaceful && !self.held.contains(&job) {
            self.checker.calm(job, wall);
        }
    }

    pub(crate) fn disturb_all(&mut self) {
        let wall = self.second();
        for job in 0..self.jobs() {
            self.checker.disturb(job, wall);
        }
    }

    pub(crate) fn calm_all(&mut self) {
        for job in 0..self.jobs() {
            self.disturbed(job);
        }
    }

    pub(crate) fn is_held(&self) -> Option<usize> {
        self.held.first().copied()
    }

    // What others do to the machine.

    /// Sets the wall clock, which whoever waits for it notices.
    pub(crate) fn set_clock(&mut self, by: i64) {
        self.note(14, by.unsigned_abs(), || format!("the clock is set by {:.3} s", by as f64 / 1e9));
        self.disturb_all();
        self.wall_offset += by;
        if let Some(krond) = &mut self.krond {
            let life = krond.life;
            if let Some(tick) = krond.tick.take() {
                self.queue.remove(&tick);
            }
            let delay = self.delay();
            let key = self.at(self.now + delay, Next::Tick(life));
            self.krond.as_mut().expect("it is here").tick = Some(key);
        }
        self.calm_all();
    }

    /// The machine sleeps, or only krond is stopped, for so long.
    pub(crate) fn sleep_for(&mut self, nanos: u64, only_krond: bool) {
        self.note(15, nanos, || format!("sleep of {:.3} s, krond alone: {only_krond}", nanos as f64 / 1e9));
        self.disturb_all();
        let until = self.now + nanos;
        if only_krond {
            self.stalled_until = until;
        } else {
            self.asleep_until = until;
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.krond.is_none()
    }

    /// Whether krond does not hear.
    pub(crate) fn is_asleep(&self) -> bool {
        self.now < self.asleep_until.max(self.stalled_until)
    }

    /// Whoever sleeps wakes.
    pub(crate) fn wake(&mut self) {
        self.now = self.now.max(self.asleep_until).max(self.stalled_until);
    }

    fn ask(&mut self, asking: Asking, command: impl FnOnce(Slot, Asker) -> Command) {
        self.last_asker += 1;
        let asker = Asker(self.last_asker);
        // Who has decided to end hears nobody any more.
        let Some(krond) = self.krond.as_mut().filter(|krond| !krond.has_decided) else { return };
        let Some(slot) = krond.daemon.slot(&identity(asking.job)) else { return };
        krond.askers.insert(asker.0, asking);
        self.tell(Event::Command(command(slot, asker)));
    }

    /// Whether there is somebody who would hear what is asked about a job.
    fn is_heard(&self, job: usize) -> bool {
        let hears = |krond: &Krond| !krond.has_decided && krond.daemon.slot(&identity(job)).is_some();
        self.krond.as_ref().is_some_and(hears)
    }

    pub(crate) fn run_by_hand(&mut self, job: usize) {
        self.note(16, job as u64, || format!("j{job} is to run by hand"));
        self.ask(Asking { job, wish: Wish::Run }, Command::Run);
    }

    /// Pauses a job, or lets it go on.
    pub(crate) fn pause(&mut self, job: usize, pause: bool) {
        if !self.is_heard(job) {
            return;
        }
        self.note(22, job as u64, || format!("j{job} is to be paused: {pause}"));
        let wall = self.second();
        self.checker.disturb(job, wall);
        let wish = Wish::Pause { was_paused: self.checker.is_paused(job) };
        self.checker.pause_asked(job, pause);
        self.ask(Asking { job, wish }, if pause { Command::Pause } else { Command::Resume });
    }

    pub(crate) fn accept_clock(&mut self, job: usize) {
        self.note(17, job as u64, || format!("j{job} is to accept the clock"));
        let wall = self.second();
        self.checker.disturb(job, wall);
        self.checker.accept_asked(job);
        self.ask(Asking { job, wish: Wish::AcceptClock }, Command::AcceptClock);
    }

    pub(crate) fn stop(&mut self, farewell: Farewell) {
        self.disturb_all();
        let Some(krond) = &mut self.krond else { return };
        krond.is_stopping = true;
        if !krond.has_decided {
            krond.farewell = farewell;
        }
        self.note(18, farewell as u64, || format!("krond is to stop, and its runs: {farewell:?}"));
        self.tell(Event::Command(Command::Stop(farewell)));
    }

    /// Somebody still waits for an answer.
    pub(crate) fn asker(&self) -> Option<u64> {
        self.krond.as_ref().and_then(|krond| krond.askers.keys().next().copied())
    }

    pub(crate) fn edit(&mut self, job: usize, line: Option<Line>) {
        self.note(19, job as u64, || format!("j{job} is edited: {line:?}"));
        let wall = self.second();
        self.checker.disturb(job, wall);
        match line {
            Some(line) => {
                self.checker.lines.push(line.clone());
                self.lines.insert(job, line);
            }
            None => {
                self.lines.remove(&job);
                self.held.remove(&job);
            }
        }
        if self.krond.as_ref().is_some_and(|krond| !krond.is_stopping) {
            self.configure();
            self.disturbed(job);
        }
    }

    pub(crate) fn damage(&mut self, job: usize) -> bool {
        let done = self.disk.borrow_mut().damage(&self.files[job]);
        if done {
            self.checker.damaged(job);
        }
        self.note(20, job as u64, || format!("the file of j{job} is damaged: {done}"));
        done
    }

    pub(crate) fn delete(&mut self, job: usize) -> bool {
        let done = self.disk.borrow_mut().delete(&self.files[job]);
        if done {
            self.checker.deleted(job);
        }
        self.note(21, job as u64, || format!("the file of j{job} is deleted: {done}"));
        done
    }
}

/// Who waits for an answer about a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Asking {
    job: usize,
    wish: Wish,
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wish {
    Run,
    AcceptClock,
    /// To pause it, or to let it go on; and whether it was paused by then.
    Pause {
        was_paused: bool,
    },
}

thread_local! {
    static ZONES: Rc<Zones> = Rc::new(Zones::bundled());
}

/// What a line is read as.
fn entry(known: &mut BTreeMap<usize, Arc<Entry>>, line: &Line, zones: &Zones) -> Arc<Entry> {
    let read = || {
        let text = line.text();
        let source = Source::new(FILE).expect("an absolute path");
        let mut parsed = Krontab::parse(&text, &source, zones);
        assert!(!parsed.has_errors(), "{text}: {:?}", parsed.problems);
        Arc::new(parsed.entries.remove(0))
    };
    Arc::clone(known.entry(line.version).or_insert_with(read))
}

/// Whether a copy is there already, or there is nothing to copy.
fn is_harmless(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotFound)
}

fn job_named(identity: &str) -> usize {
    identity[FILE.len() + 2..].parse().expect("jobs are numbered")
}

fn job_of(entry: &Entry) -> usize {
    entry.name[1..].parse().expect("jobs are numbered")
}

fn version_of(entry: &Entry) -> usize {
    let text = entry.description.as_deref().expect("every line has one");
    text[1..].parse().expect("it is its version")
}

/// Whom a report is about, if it is about one job.
fn subject(report: &Report) -> Option<&Arc<Entry>> {
    match report {
        Report::Settled { entry, .. }
        | Report::Passed { entry, .. }
        | Report::Manual { entry, .. }
        | Report::Completed { entry, .. }
        | Report::Ending { entry, .. }
        | Report::Stuck { entry, .. }
        | Report::Adopted { entry, .. }
        | Report::Paused { entry, .. }
        | Report::Resumed { entry, .. }
        | Report::Held { entry, .. }
        | Report::Recovered(entry)
        | Report::Fenced { entry, .. }
        | Report::Ahead { entry, .. }
        | Report::Skipped { entry, .. }
        | Report::ZoneChanged { entry, .. }
        | Report::Rescheduled { entry, .. } => Some(entry),
        Report::Configured(_) | Report::ClockJumped(_) | Report::Stalled(_) => None,
    }
}

/// A report in a few words.
fn tell_of(report: &Report) -> String {
    let about = subject(report).map(|entry| entry.name.clone()).unwrap_or_default();
    let what = match report {
        Report::Settled { decision, reason, process, .. } => {
            let chosen = decision.chosen().map(Timestamp::as_second);
            format!("{} chosen {chosen:?}: {reason:?} {process:?}", decision.nominal().as_second())
        }
        Report::Passed { passed, .. } => format!("{passed:?}"),
        Report::Completed { run, exit, .. } => format!("{run:?} completed: {exit:?}"),
        Report::Held { operation, error, retry_in, .. } => {
            format!("held: {operation}: {error}, for {retry_in:?}")
        }
        Report::Fenced { why, fence, .. } => format!("fenced at {fence}: {why}"),
        Report::Ahead { watermark, .. } => format!("ahead: {watermark}"),
        Report::Recovered(_) => "recovered".into(),
        Report::Paused { .. } => "paused".into(),
        Report::Resumed { since, .. } => format!("resumed, paused since {since}"),
        Report::ZoneChanged { latest, until, .. } => format!("{latest} has been, and is {until} here"),
        Report::Skipped { times, .. } => format!("no such times: {times:?}"),
        Report::Ending { run, because, signal, .. } => format!("{run:?} is ended by {signal:?}: {because:?}"),
        Report::Adopted { run, process, .. } => format!("{run:?} is adopted: {process:?}"),
        Report::Manual { run, process, .. } => format!("{run:?} by hand: {process:?}"),
        Report::Stuck { run, .. } => format!("{run:?} is stuck"),
        Report::Rescheduled { period, previous, new, .. } => {
            format!("{period} is rescheduled from {previous:?} to {new:?}")
        }
        Report::Configured(changes) => format!("{changes:?}"),
        Report::ClockJumped(jump) => format!("the clock jumped by {jump} s"),
        Report::Stalled(slept) => format!("stalled for {slept:?}"),
    };
    format!("  {about} {what}")
}
