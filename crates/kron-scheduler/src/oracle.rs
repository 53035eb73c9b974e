//! The scheduler beside a model of it, through random lives: every start, end, stop and crash is checked.
//!
//! The model is told what happens at the public boundary and nothing else, and finds occurrences by walking over
//! every minute. Its rules are few:
//!
//! - a task is *due* once an occurrence has come, running or not, active or not; *retry* and *orphan* likewise;
//! - a start needs one of the three and consumes all of them;
//! - a name that is new begins with the minute in progress, one that is left out is forgotten.
//!
//! Each check carries the name of the property it stands for. [`PROPERTIES`] lists them all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kron_schedule::Zone;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, RngAlgorithm, TestRng, TestRunner};
use tokio::sync::oneshot;

use crate::error::Error;
use crate::flaw::{Flaw, plant, planted};
use crate::store::{Change, MemoryStore, Record, Store, Stored};
use crate::testing::{FaultyStore, VirtualClock};
use crate::{Clock, ErrorKind, Registration, Scheduler, State};

/// The properties, in the order of the model's description, and where each is checked: in this file at every step
/// (`start`, `end`, `stop`, `initialize`, `quiet`), or by fixed stories in `tests/it`.
const PROPERTIES: [(&str, &str); 24] = [
    ("Start-safety", "start"),
    ("One-success-per-due", "start"),
    ("Stop-waits", "stop"),
    ("Reject-invalid", "initialize"),
    ("Accept-valid", "initialize"),
    ("Single-activation", "initialize"),
    ("No-self-overlap", "start"),
    ("Quiet-after-stop", "start"),
    ("Quiet-after-crash", "start"),
    ("Crash-exclusive", "crash"),
    ("No-start-before-init-returns", "start"),
    ("Boot-exactness", "quiet"),
    ("Forget-on-removal", "quiet"),
    ("One-start-consumes-all", "start"),
    ("No-make-up", "quiet"),
    ("Retry-not-early", "start"),
    ("Retry-cleared", "start"),
    ("Orphan-restart", "quiet"),
    ("Durable-mark", "start"),
    ("Determinism", "the_same_life_twice_starts_the_same"),
    ("Atomic-override", "initialize"),
    ("Obligation-fulfilled", "quiet, and tests/it/steps.rs"),
    ("Init-completes", "initialize, and tests/it/steps.rs"),
    ("Stop-completes", "quiet"),
];

// ---- What can happen ----

#[derive(Clone, Debug)]
enum Action {
    /// Time passes.
    Pass(i64),
    /// The clock is set, forward or back.
    Set(i64),
    /// Time passes to the next minute.
    Boundary,
    /// The nth callback that runs ends: well, badly, or with a panic.
    End(usize, u8),
    Initialize(List),
    InitializeInvalid(u8),
    /// The future is dropped before it is awaited.
    InitializeDropped(List),
    /// Two calls at once.
    InitializeTwice(List),
    Stop,
    StopDuringInitialize(List, bool),
    /// `stop` is called while marks are being written.
    StopDuringPoll,
    Crash,
    /// The store fails so often; perhaps after it has written.
    FailApply(u32, bool),
    FailReplace,
    FailOpen,
}

type List = Vec<(u8, u8, u8)>;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const CRONS: [&str; 10] = [
    "* * * * *",
    "0 * * * *",
    "30 2 * * *",
    "30 1 * * *",
    "0,15,30,45 1-3 * * *",
    "15 3 * * 0",
    "0 0 1 * *",
    "5-10 0-4 * * 1-5",
    "0 0 13 * 0",
    "59 23 * * *",
];
const DELAYS_MS: [u64; 5] = [0, 300, 45_000, 600_000, 7_200_000];
const ZONES: [&str; 6] = [
    "America/New_York",
    "Europe/Paris",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "America/Sao_Paulo",
];
/// Shortly before clocks change, or something else happens, in one of these zones.
const BEGINNINGS: [&str; 8] = [
    "2026-03-08T04:00:00Z",
    "2026-11-01T03:40:00Z",
    "2026-03-28T23:10:00Z",
    "2026-10-24T23:20:00Z",
    "2026-04-04T13:00:00Z",
    "2011-12-29T20:00:00Z",
    "2018-11-04T01:00:00Z",
    "2026-12-31T22:00:00Z",
];

fn list() -> impl Strategy<Value = List> {
    prop::collection::vec((0..4u8, 0..10u8, 0..5u8), 0..5).prop_map(|mut list| {
        let mut seen = Vec::new();
        list.retain(|entry| {
            !seen.contains(&entry.0) && {
                seen.push(entry.0);
                true
            }
        });
        list
    })
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => (0..5_400_000i64).prop_map(Action::Pass),
        3 => (0..3_000i64).prop_map(Action::Pass),
        2 => (0..4 * 86_400_000i64).prop_map(Action::Set),
        1 => (-10_000_000..0i64).prop_map(Action::Set),
        5 => Just(Action::Boundary),
        9 => (0..4usize, prop_oneof![3 => Just(0u8), 2 => Just(1u8), 1 => Just(2u8)])
            .prop_map(|(nth, how)| Action::End(nth, how)),
        5 => list().prop_map(Action::Initialize),
        1 => (0..5u8).prop_map(Action::InitializeInvalid),
        1 => list().prop_map(Action::InitializeDropped),
        1 => list().prop_map(Action::InitializeTwice),
        3 => Just(Action::Stop),
        1 => (list(), any::<bool>()).prop_map(|(list, fails)| Action::StopDuringInitialize(list, fails)),
        1 => Just(Action::StopDuringPoll),
        2 => Just(Action::Crash),
        1 => (1..4u32, any::<bool>()).prop_map(|(times, after)| Action::FailApply(times, after)),
        1 => Just(Action::FailReplace),
        1 => Just(Action::FailOpen),
    ]
}

#[derive(Clone, Debug)]
struct Life {
    zone: usize,
    beginning: usize,
    first: List,
    actions: Vec<Action>,
}

fn life() -> impl Strategy<Value = Life> {
    (0..ZONES.len(), 0..BEGINNINGS.len(), list(), prop::collection::vec(action(), 1..30))
        .prop_map(|(zone, beginning, first, actions)| Life { zone, beginning, first, actions })
}

// ---- The model ----

#[derive(Clone, Debug)]
struct Known {
    cron: &'static str,
    delay: SignedDuration,
    running: bool,
    due: bool,
    retry_at: Option<Timestamp>,
    orphan: bool,
    last_start: Option<Timestamp>,
    last_success: Option<Timestamp>,
    last_failure: Option<Timestamp>,
    floor: Timestamp,
    /// The start of the last run that ended well, unless the clock was set back or the schedule changed since.
    good: Option<Timestamp>,
}

#[derive(Debug)]
struct Model {
    zone: TimeZone,
    now: Timestamp,
    known: BTreeMap<&'static str, Known>,
    active: bool,
    stop_seen: bool,
    initializing: bool,
    /// Whether the process has died since the last `initialize`.
    is_dead: bool,
    /// What speaks for starts, and starts, by name and in order: an occurrence, a failure, a run that was cut off, a
    /// first appearance, another schedule.
    ledger: BTreeMap<&'static str, Vec<Entry>>,
    /// Names that have just appeared, and whether they are to start for it.
    appeared: Vec<(&'static str, bool)>,
    /// When each task was started.
    starts: Vec<(&'static str, Timestamp)>,
    parked: BTreeMap<&'static str, oneshot::Sender<u8>>,
    violations: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Entry {
    Reason,
    Start,
}

impl Model {
    fn enter(&mut self, name: &'static str, entry: Entry) {
        self.ledger.entry(name).or_default().push(entry);
    }

    /// In no window that ends now and begins after a start are there more starts than reasons for them.
    fn count(&mut self) {
        for (name, entries) in self.ledger.clone() {
            let mut surplus = 0;
            for entry in entries.iter().rev() {
                if *entry == Entry::Start && surplus > 0 {
                    self.violated("No-make-up", format!("{name} started {surplus} times too often"));
                    break;
                }
                surplus += if *entry == Entry::Start { 1 } else { -1 };
            }
        }
    }

    fn violated(&mut self, property: &str, what: impl std::fmt::Display) {
        let name = property;
        assert!(PROPERTIES.iter().any(|(property, _)| *property == name), "{name} is a property");
        self.violations.push(format!("{property}: {what} at {}", self.now));
    }

    fn violation(&self, only: Option<&str>) -> Option<&String> {
        self.violations.iter().find(|violation| only.is_none_or(|only| violation.starts_with(only)))
    }

    /// Time has passed, or the clock was set: occurrences on the way make their tasks due.
    fn sync(&mut self, now: Timestamp) {
        if now >= self.now {
            let (from, zone) = (self.now, self.zone.clone());
            self.now = now;
            for (name, known) in &mut self.known {
                let occurrences =
                    minutes(from, now).filter(|minute| matches(known.cron, zone.to_datetime(*minute)));
                // More than one are like one: a start takes them all.
                for (nth, minute) in occurrences.enumerate() {
                    if nth == 0 {
                        self.ledger.entry(name).or_default().push(Entry::Reason);
                    }
                    known.due |= minute >= known.floor && known.last_start.is_none_or(|start| minute > start);
                    if known.due {
                        break;
                    }
                }
            }
        } else {
            self.now = now;
            let zone = self.zone.clone();
            for known in self.known.values_mut() {
                known.due = comes_after_base(known, now, &zone);
                known.good = None;
            }
        }
    }

    fn obligation(&self, name: &str) -> bool {
        let pending = |known: &Known| {
            !known.running && (known.due || known.orphan || known.retry_at.is_some_and(|at| at <= self.now))
        };
        self.active && self.known.get(name).is_some_and(pending)
    }

    fn initialized(&mut self, list: &List) {
        let now = self.now;
        let floor = Timestamp::from_second(now.as_second().div_euclid(60) * 60).unwrap();
        let zone = self.zone.clone();
        let before = std::mem::take(&mut self.known);
        for (name, cron, delay) in list {
            let (name, cron) = (NAMES[*name as usize], CRONS[*cron as usize]);
            let delay = SignedDuration::from_millis(DELAYS_MS[*delay as usize].cast_signed());
            let known = match before.get(name) {
                Some(known) => {
                    let mut known = Known { delay, ..known.clone() };
                    if known.cron != cron {
                        self.ledger.entry(name).or_default().push(Entry::Reason);
                        known.cron = cron;
                        known.good = None;
                        known.due = comes_after_base(&known, now, &zone);
                    }
                    known
                }
                None => {
                    self.ledger.entry(name).or_default().push(Entry::Reason);
                    self.appeared.push((name, matches(cron, zone.to_datetime(floor))));
                    Known {
                        cron,
                        delay,
                        running: false,
                        due: matches(cron, zone.to_datetime(floor)),
                        retry_at: None,
                        orphan: false,
                        last_start: None,
                        last_success: None,
                        last_failure: None,
                        floor,
                        good: None,
                    }
                }
            };
            self.known.insert(name, known);
        }
        self.is_dead = false;
        self.active = !self.stop_seen;
    }

    /// The process has died. What had ended and was not written yet is cut off as well.
    fn crashed(&mut self, store: &MemoryStore) {
        self.active = false;
        // A callback that still waits has outlived its process.
        if self.parked.values().any(|parked| !parked.is_closed()) {
            self.violated("Crash-exclusive", "a callback has survived");
        }
        self.parked.clear();
        self.is_dead = true;
        for (name, known) in &mut self.known {
            let record = store.record(name);
            let marked = record.as_ref().and_then(|record| record.running.clone());
            known.orphan |= known.running || marked.is_some();
            if known.orphan {
                self.ledger.entry(name).or_default().push(Entry::Reason);
            }
            if let Some(mark) = marked {
                known.last_start = known.last_start.max(Some(mark.started_at));
                known.retry_at = None;
            }
            known.running = false;
            known.last_success = record.and_then(|record| record.last_success_at);
        }
    }

    /// A callback is invoked.
    fn started(&mut self, name: &'static str, store: &MemoryStore) {
        if self.initializing {
            self.violated("No-start-before-init-returns", name);
        }
        if self.stop_seen {
            self.violated("Quiet-after-stop", name);
        }
        if self.is_dead {
            self.violated("Quiet-after-crash", name);
        }
        if self.parked.contains_key(name) {
            self.violated("No-self-overlap", name);
        }
        if self.ledger.get(name).is_none_or(|entries| entries.last() != Some(&Entry::Reason)) {
            self.violated(
                "One-start-consumes-all",
                format!("{name} starts, and nothing has happened since it did"),
            );
        }
        self.enter(name, Entry::Start);
        let record = store.record(name);
        if record.as_ref().is_none_or(|record| record.running.is_none()) {
            self.violated("Durable-mark", format!("{name} starts and the store says {record:?}"));
        }
        if !self.obligation(name) {
            let known = self.known.get(name).cloned();
            self.violated("Start-safety", format!("{name} starts without a reason: {known:?}"));
        }
        let (now, zone) = (self.now, self.zone.clone());
        let spacing = SignedDuration::from_secs(1);
        let is_early = |known: &Known| {
            let failure = known.last_failure.filter(|failure| *failure <= now);
            !known.due && !known.orphan && failure.is_some_and(|failure| now < failure + spacing)
        };
        if self.known.get(name).is_some_and(is_early) {
            self.violated("Retry-not-early", format!("{name} is tried again at once"));
        }
        let is_stale = |known: &Known| !known.due && !known.orphan && known.retry_at.is_none();
        if self.known.get(name).is_some_and(is_stale) {
            self.violated("Retry-cleared", format!("{name} starts, and has not failed since it did"));
        }
        if let Some(known) = self.known.get_mut(name) {
            known.due = false;
            known.retry_at = None;
            known.orphan = false;
            known.running = true;
            known.last_start = Some(now);
            let (good, cron) = (known.good, known.cron);
            if let Some(good) = good
                && !minutes(good, now).any(|minute| matches(cron, zone.to_datetime(minute)))
            {
                self.violated("One-success-per-due", format!("{name} succeeded at {good} and starts again"));
            }
        }
        self.starts.push((name, now));
    }

    fn ended(&mut self, name: &'static str, is_well: bool) {
        let now = self.now;
        if let Some(known) = self.known.get_mut(name) {
            known.running = false;
            if is_well {
                known.good = known.last_start;
                known.last_success = Some(now);
            } else {
                known.last_failure = Some(now);
                known.retry_at = now.checked_add(known.delay).ok();
                self.enter(name, Entry::Reason);
            }
        }
    }
}

/// Whether an occurrence lies after the last start and not before the registration.
fn comes_after_base(known: &Known, now: Timestamp, zone: &TimeZone) -> bool {
    let before = known.floor - SignedDuration::from_secs(1);
    let base = known.last_start.map_or(before, |start| start.max(before));
    minutes(base, now).any(|minute| matches(known.cron, zone.to_datetime(minute)))
}

/// The whole minutes after `from`, up to `to`.
fn minutes(from: Timestamp, to: Timestamp) -> impl Iterator<Item = Timestamp> {
    let minute = |at: Timestamp| at.as_nanosecond().div_euclid(60_000_000_000);
    (minute(from) + 1..=minute(to)).map(|minute| Timestamp::from_nanosecond(minute * 60_000_000_000).unwrap())
}

/// The specification's grammar and its rule for the two day fields, written a second time.
fn matches(cron: &str, civil: jiff::civil::DateTime) -> bool {
    let fields: Vec<&str> = cron.split(' ').collect();
    let has = |field: &str, value: i8| {
        field == "*"
            || field.split(',').any(|item| {
                let (from, to) = item.split_once('-').unwrap_or((item, item));
                (from.parse::<i8>().unwrap()..=to.parse().unwrap()).contains(&value)
            })
    };
    let day = has(fields[2], civil.day());
    let weekday = has(fields[4], civil.weekday().to_sunday_zero_offset());
    let either = fields[2] != "*" && fields[4] != "*";
    has(fields[0], civil.minute())
        && has(fields[1], civil.hour())
        && has(fields[3], civil.month())
        && (if either { day || weekday } else { day && weekday })
}

// ---- The world ----

/// The process that called `stop` has died.
const DEAD: usize = usize::MAX;

struct World {
    clock: VirtualClock,
    store: FaultyStore,
    scheduler: Option<Arc<Scheduler>>,
    model: Arc<Mutex<Model>>,
    /// Calls of `stop` that have not returned. Those before a crash are nobody's any more.
    stops: Arc<Mutex<usize>>,
    faulty: bool,
}

/// The store; if that bug is planted, one that says that something is written when it is not yet.
#[derive(Debug)]
struct Hasty {
    store: FaultyStore,
    late: Vec<Change>,
}

impl Store for Hasty {
    fn open(&mut self) -> Result<Vec<Stored>, Error> {
        self.store.open()
    }

    fn replace(&mut self, identifier: &Arc<str>, records: &[&Record]) -> Result<(), Error> {
        self.late.clear();
        self.store.replace(identifier, records)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Error> {
        if planted() != Some(Flaw::StartBeforeMark) {
            return self.store.apply(changes);
        }
        let late = std::mem::replace(&mut self.late, changes.to_vec());
        self.store.apply(&late)
    }

    fn close(&mut self) {
        self.store.close();
    }

    fn blocks(&self) -> bool {
        false
    }
}

impl World {
    fn new(life: &Life) -> World {
        let zone = TimeZone::get(ZONES[life.zone]).unwrap();
        let now: Timestamp = BEGINNINGS[life.beginning].parse().unwrap();
        let clock = VirtualClock::at(now, Zone::new(&zone).unwrap());
        let model = Model {
            zone,
            now,
            known: BTreeMap::new(),
            active: false,
            stop_seen: false,
            initializing: false,
            is_dead: false,
            ledger: BTreeMap::new(),
            appeared: Vec::new(),
            starts: Vec::new(),
            parked: BTreeMap::new(),
            violations: Vec::new(),
        };
        let store = FaultyStore::new(MemoryStore::new());
        let mut world = World {
            clock,
            store,
            scheduler: None,
            model: Arc::new(Mutex::new(model)),
            stops: Arc::default(),
            faulty: false,
        };
        world.boot();
        world
    }

    fn boot(&mut self) {
        let store = Hasty { store: self.store.clone(), late: Vec::new() };
        let scheduler = Scheduler::builder(store).clock(self.clock.clone()).build();
        self.scheduler = Some(Arc::new(scheduler));
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        model.sync(self.clock.now());
        model
    }

    fn scheduler(&self) -> &Arc<Scheduler> {
        self.scheduler.as_ref().expect("it was booted")
    }

    fn registrations(&self, list: &List) -> Vec<Registration> {
        let registration = |(name, cron, delay): &(u8, u8, u8)| {
            let name = NAMES[*name as usize];
            let (model, clock, store) = (Arc::clone(&self.model), self.clock.clone(), self.store.clone());
            let delay = Duration::from_millis(DELAYS_MS[*delay as usize]);
            Registration::new(name, CRONS[*cron as usize], delay, move || {
                let lock = || model.lock().unwrap_or_else(PoisonError::into_inner);
                let (sender, receiver) = oneshot::channel();
                {
                    let mut model = lock();
                    model.sync(clock.now());
                    model.started(name, store.store());
                    model.parked.insert(name, sender);
                }
                let (model, clock) = (Arc::clone(&model), clock.clone());
                async move {
                    let how = receiver.await.unwrap_or(0);
                    {
                        let mut model = model.lock().unwrap_or_else(PoisonError::into_inner);
                        model.sync(clock.now());
                        model.ended(name, how == 0);
                    }
                    match how {
                        0 => Ok(()),
                        1 => Err(std::io::Error::other("as told")),
                        // A panic that prints nothing.
                        _ => std::panic::resume_unwind(Box::new("as told")),
                    }
                }
            })
        };
        list.iter().map(registration).collect()
    }

    async fn initialize(&mut self, list: &List, stops: bool) {
        let before = self.store.store().to_json();
        let scheduler = Arc::clone(self.scheduler());
        let idle = matches!(scheduler.state(), State::Uninitialized | State::Stopped);
        let fails = {
            let faults = self.store.faults();
            idle && (faults.open > 0 || faults.replace > 0)
        };
        let call = scheduler.initialize(self.registrations(list));
        if idle {
            let mut model = self.model();
            model.stop_seen = false;
            model.initializing = true;
        }
        if stops {
            self.stop();
        }
        let Some(result) = in_steps(call).await else {
            self.model().violated("Init-completes", "initialize does not return");
            return;
        };
        let mut model = self.model();
        model.initializing &= !idle;
        match (&result, idle, fails) {
            (Ok(()), true, false) => model.initialized(list),
            (Err(error), true, true) if error.kind() == ErrorKind::Store => {}
            (Err(error), false, _) if error.kind() == ErrorKind::SchedulerAlreadyActive => {}
            (Ok(()), ..) => model.violated("Single-activation", format!("{list:?} was accepted")),
            (Err(error), ..) => model.violated("Accept-valid", format!("{list:?} was refused: {error}")),
        }
        drop(model);
        if result.is_err() && self.store.store().to_json() != before {
            self.model().violated("Atomic-override", "a failed initialize has written");
        }
    }

    async fn initialize_invalid(&mut self, which: u8) {
        let before = (self.store.store().to_json(), self.scheduler().state());
        let registration = |name: &'static str, cron: &'static str| {
            Registration::new(name, cron, Duration::ZERO, || async { Ok::<(), std::io::Error>(()) })
        };
        let list = match which {
            0 => vec![registration("", "* * * * *")],
            1 => vec![registration("a", "* * * * *"), registration("a", "* * * * *")],
            2 => vec![registration("a", "*/5 * * * *")],
            3 => vec![registration("a", "0 0 30 2 *")],
            _ => vec![registration("a", "0 0 * * 7")],
        };
        let result = self.scheduler().initialize(list).await;
        let after = (self.store.store().to_json(), self.scheduler().state());
        let expected = match before.1 {
            State::Stopped => State::Uninitialized,
            state => state,
        };
        let mut model = self.model();
        if result.is_ok() || after.0 != before.0 || after.1 != expected {
            model.violated("Reject-invalid", format!("list {which}: {result:?}, {:?}", after.1));
        }
    }

    fn stop(&mut self) {
        let scheduler = Arc::clone(self.scheduler());
        let (model, stops) = (Arc::clone(&self.model), Arc::clone(&self.stops));
        let stop = scheduler.stop();
        {
            let mut model = self.model();
            model.active = false;
            model.stop_seen = true;
        }
        *stops.lock().unwrap() += 1;
        tokio::spawn(async move {
            stop.await.expect("stop does not fail");
            if *stops.lock().unwrap() == DEAD {
                return;
            }
            let mut model = model.lock().unwrap_or_else(PoisonError::into_inner);
            let running: Vec<&str> =
                model.known.iter().filter(|(_, known)| known.running).map(|(name, _)| *name).collect();
            if !running.is_empty() {
                let what = format!("stop returned while {running:?} ran");
                model.violated("Stop-waits", what);
            }
            *stops.lock().unwrap() -= 1;
        });
    }

    async fn crash(&mut self) {
        // The calls that wait hold the scheduler no longer: only its shared part, which does not keep it alive.
        drop(self.scheduler.take());
        *self.stops.lock().unwrap() = DEAD;
        self.stops = Arc::default();
        // Whatever was under way is gone before anything else happens.
        self.clock.settle().await;
        let mut model = self.model();
        model.crashed(self.store.store());
        drop(model);
        self.boot();
    }

    async fn act(&mut self, action: &Action) {
        let millis = SignedDuration::from_millis;
        match action {
            Action::Pass(by) => self.clock.run_for(millis(*by)).await,
            Action::Set(by) => {
                self.clock.set(self.clock.now() + millis(*by));
                drop(self.model());
            }
            Action::Boundary => {
                let second = self.clock.now().as_second().div_euclid(60) * 60 + 60;
                self.clock.run_to(Timestamp::from_second(second).unwrap()).await;
            }
            Action::End(nth, how) => {
                let mut model = self.model();
                let names: Vec<&str> = model.parked.keys().copied().collect();
                if let Some(name) = names.get(nth % names.len().max(1)) {
                    model.parked.remove(name).expect("it is there").send(*how).ok();
                }
            }
            Action::Initialize(list) => self.initialize(list, false).await,
            Action::InitializeInvalid(which) => self.initialize_invalid(*which).await,
            Action::InitializeDropped(list) => {
                let idle = matches!(self.scheduler().state(), State::Uninitialized | State::Stopped);
                drop(self.scheduler().initialize(self.registrations(list)));
                if idle {
                    self.model().stop_seen = false;
                }
            }
            Action::InitializeTwice(list) => {
                let idle = matches!(self.scheduler().state(), State::Uninitialized | State::Stopped);
                let scheduler = Arc::clone(self.scheduler());
                if idle && self.store.faults().replace == 0 && self.store.faults().open == 0 {
                    let first = scheduler.initialize(self.registrations(list));
                    let second = scheduler.initialize(self.registrations(list));
                    let refused = second.refusal().map(|error| error.details()["currentState"].clone());
                    drop(second);
                    self.model().stop_seen = false;
                    if refused != Some("initializing".into()) {
                        self.model().violated("Single-activation", format!("the second call: {refused:?}"));
                    }
                    let Some(result) = in_steps(first).await else {
                        self.model().violated("Init-completes", "initialize does not return");
                        return;
                    };
                    result.expect("the first call is not disturbed");
                    self.model().initialized(list);
                }
            }
            Action::Stop => self.stop(),
            Action::StopDuringInitialize(list, fails) => {
                let idle = matches!(self.scheduler().state(), State::Uninitialized | State::Stopped);
                if idle {
                    self.store.faults().replace += u32::from(*fails);
                    self.initialize(list, true).await;
                }
            }
            Action::StopDuringPoll => {
                if self.scheduler().state() == State::Running {
                    let scheduler = Arc::clone(self.scheduler());
                    let model = Arc::clone(&self.model);
                    self.store.faults().during_apply = Some(Box::new(move || {
                        let mut model = model.lock().unwrap_or_else(PoisonError::into_inner);
                        model.active = false;
                        model.stop_seen = true;
                        drop(scheduler.stop());
                    }));
                    // To a minute at which something may be due.
                    let second = self.clock.now().as_second().div_euclid(60) * 60 + 60;
                    self.clock.run_to(Timestamp::from_second(second).unwrap()).await;
                    self.store.faults().during_apply = None;
                }
            }
            Action::Crash => self.crash().await,
            Action::FailApply(times, after_writing) => {
                let mut faults = self.store.faults();
                faults.apply = *times;
                faults.after_writing = *after_writing;
                drop(faults);
                self.faulty = true;
            }
            Action::FailReplace => self.store.faults().replace = 1,
            Action::FailOpen => self.store.faults().open = 1,
        }
    }

    /// Everything that can happen has happened: nothing may be owed.
    async fn quiet(&mut self) {
        let before = self.model().starts.len();
        self.clock.settle().await;
        self.model().count();
        self.appeared(before);
        let owed: Vec<&str> = {
            let model = self.model();
            NAMES.into_iter().filter(|name| model.obligation(name)).collect()
        };
        let stops = *self.stops.lock().unwrap();
        let idle = self.model().known.values().all(|known| !known.running);
        let starts = self.model().starts.len();
        if owed.is_empty() && !(stops > 0 && idle) && !self.faulty {
            self.compare();
            return;
        }
        // The lag that is allowed: a second; and while the store fails, until it is tried again.
        let lag = if self.faulty { 4_000 } else { 1_000 };
        self.clock.run_for(SignedDuration::from_millis(lag)).await;
        if self.store.faults().apply == 0 {
            self.faulty = false;
        }
        let faulty = self.faulty;
        let mut model = self.model();
        for name in owed {
            let started = model.starts[starts..].iter().any(|(started, _)| *started == name);
            if !started && model.obligation(name) && !faulty {
                let known = model.known[name].clone();
                model.violated("Obligation-fulfilled", format!("{name} was not started: {known:?}"));
            }
        }
        if stops > 0 && idle && *self.stops.lock().unwrap() > 0 {
            model.violated("Stop-completes", "nothing runs, and stop does not return");
        }
    }

    /// A name that was new began with the minute in progress, and with nothing else.
    fn appeared(&mut self, before: usize) {
        let undisturbed = self.store.faults().apply == 0;
        let mut model = self.model();
        let appeared = std::mem::take(&mut model.appeared);
        if !model.active || !undisturbed {
            return;
        }
        for (name, expected) in appeared {
            let started = model.starts[before..].iter().any(|(started, _)| *started == name);
            if started != expected {
                let returns = model.starts[..before].iter().any(|(started, _)| *started == name);
                let property = if returns { "Forget-on-removal" } else { "Boot-exactness" };
                model.violated(property, format!("{name} is new, and whether it started is {started}"));
            }
        }
    }

    /// The store says what the model knows.
    fn compare(&self) {
        if self.store.faults().apply > 0 {
            return;
        }
        let store = self.store.store().clone();
        let mut model = self.model();
        for (name, known) in model.known.clone() {
            let Some(record) = store.record(name) else { continue };
            let owned = record.running.is_some();
            if owned != (known.running || known.orphan) {
                let what = format!("{name}: the store says running is {owned}, which is not so: {known:?}");
                model.violated("Orphan-restart", what);
            }
            if record.last_success_at != known.last_success {
                let what =
                    format!("{name} succeeded {:?}, and the store says {record:?}", known.last_success);
                model.violated("Atomic-override", what);
            }
        }
    }
}

/// Awaits something that may be asked only so often before it is done.
async fn in_steps<T>(call: impl Future<Output = T>) -> Option<T> {
    let mut call = std::pin::pin!(call);
    for _ in 0..16 {
        let polled = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
        if let Poll::Ready(done) = polled {
            return Some(done);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Lives a life, and says which tasks were started when; or what was the first violation, of that property if one is
/// named.
fn live(life: &Life, only: Option<&str>) -> Result<Vec<(&'static str, Timestamp)>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime is made");
    runtime.block_on(async {
        let mut world = World::new(life);
        world.initialize(&life.first, false).await;
        world.quiet().await;
        for (nth, action) in life.actions.iter().enumerate() {
            world.act(action).await;
            world.quiet().await;
            let model = world.model();
            if let Some(violation) = model.violation(only) {
                return Err(format!("after action {nth}, {action:?}: {violation}"));
            }
        }
        // In the end everything ends.
        let acted = {
            let mut model = world.model();
            std::mem::take(&mut model.parked)
        };
        for (_, parked) in acted {
            parked.send(0).ok();
        }
        world.stop();
        world.quiet().await;
        let mut model = world.model();
        match model.violation(only) {
            Some(violation) => Err(format!("in the end: {violation}")),
            None => Ok(std::mem::take(&mut model.starts)),
        }
    })
}

fn runner(cases: u32, seed: u8, shrinks: u32) -> TestRunner {
    let config = Cases { cases, failure_persistence: None, max_shrink_iters: shrinks, ..Cases::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]))
}

/// Lives random lives until one goes wrong.
fn first_violation(cases: u32, seed: u8, shrinks: u32, only: Option<&str>) -> Option<String> {
    let lived = |life: Life| live(&life, only).map(drop).map_err(TestCaseError::fail);
    let checked = runner(cases, seed, shrinks).run(&life(), lived);
    checked.err().map(|error| error.to_string())
}

/// How many lives are lived; `KRON_LIVES` asks for more.
fn lives() -> u32 {
    std::env::var("KRON_LIVES").ok().and_then(|lives| lives.parse().ok()).unwrap_or(400)
}

#[test]
fn no_life_goes_otherwise_than_the_model() {
    if let Some(violation) = first_violation(lives(), 7, 2_000, None) {
        panic!("{violation}");
    }
}

#[test]
fn the_same_life_twice_starts_the_same() {
    runner(60, 11, 100)
        .run(&life(), |life| {
            let mut other = life.clone();
            other.first.reverse();
            let sorted = |life| {
                let mut starts = live(life, None).map_err(TestCaseError::fail)?;
                starts.sort_by_key(|(name, at)| (*at, *name));
                Ok::<_, TestCaseError>(starts)
            };
            prop_assert_eq!(sorted(&life)?, sorted(&other)?, "Determinism");
            Ok(())
        })
        .unwrap();
}

/// Every planted bug is caught, by the property named beside it.
#[test]
fn every_planted_bug_is_caught() {
    use Flaw::*;
    let flaws = [
        (ForgedHistory, "Boot-exactness"),
        (ForgedHistory, "Forget-on-removal"),
        (BootMakesUp, "Boot-exactness"),
        (BootMakesUp, "Forget-on-removal"),
        (MakeUp, "No-make-up"),
        (MakeUp, "One-start-consumes-all"),
        (MakeUp, "One-success-per-due"),
        (OrphanForgotten, "Orphan-restart"),
        (FailureMovesAttempt, "Obligation-fulfilled"),
        (FailureForgetsSuccess, "Atomic-override"),
        (RetryNotCleared, "Retry-cleared"),
        (ZeroDelaySpins, "Retry-not-early"),
        (RetryEarly, "Start-safety"),
        (OverrideForgets, "Start-safety"),
        (FoldRunsOnce, "Obligation-fulfilled"),
        (GapRuns, "Start-safety"),
        (Overlap, "No-self-overlap"),
        (StoreErrorEndsLoop, "Obligation-fulfilled"),
        (SuccessDoesNotWake, "Obligation-fulfilled"),
        (MarkedNeverCalled, "Orphan-restart"),
        (StartsAfterStop, "Quiet-after-stop"),
        (StopDoesNotWait, "Stop-waits"),
        (StartBeforeMark, "Durable-mark"),
        (StopForgotten, "Quiet-after-stop"),
    ];
    let mut missed = Vec::new();
    for (flaw, property) in flaws {
        plant(Some(flaw));
        let caught = (1..=4).find_map(|seed| first_violation(400, seed, 0, Some(property)));
        plant(None);
        match caught {
            Some(violation) => println!("{flaw:?}: {}", violation.lines().next().unwrap_or_default()),
            None => missed.push((flaw, property)),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
