//! The heart: which task starts, when, and why. It performs no I/O, reads no clock, and is told the time.
//!
//! A [`Machine`] holds what is known of every task, and the instant at which each could start next. The driver
//! reads the clock, and then:
//!
//! 1. [`handle_ended`](Machine::handle_ended) for every run that has ended; it gives a change to write.
//! 2. [`poll_due`](Machine::poll_due) says what is to start, and counts it as running.
//! 3. One transaction writes all of that, and then the callbacks may start; if it cannot be written, or `stop` comes in
//!    between, [`handle_withheld`](Machine::handle_withheld) makes it as if the task had not been selected.
//! 4. [`poll_wake`](Machine::poll_wake) says when to come back if nothing happens before. Coming early is harmless.
//!
//! One number per task decides everything: its *base*, the last attempt or else the moment before its registration.
//! It is due once the first occurrence after its base has come. How many others have come since is never asked, so
//! a gap of any length costs one look and yields one run; a clock that is set back only makes it wait.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kron_schedule::{Dialect, Dst, Expr, Schedule, Zone};
use serde_json::{Value, json};

use crate::error::Error;
use crate::record::{Change, ChangeKind, Record, RunningMark, Stored};

/// The shortest time between a failure and the retry: a delay of zero must not keep the host busy.
pub const RETRY_SPACING_MIN: SignedDuration = SignedDuration::from_secs(1);

/// How a task is configured, checked.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) name: Arc<str>,
    pub(crate) cron: Arc<str>,
    pub(crate) retry_delay_ms: u64,
    pub(crate) plan: Arc<Plan>,
}

/// An expression, and what it means in the zone. Tasks with the same text share one.
#[derive(Debug)]
pub struct Plan {
    expr: Expr,
    /// `None` where clocks skip every time the expression names.
    schedule: Option<Schedule>,
}

impl Plan {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// `CronExpressionInvalidError`, also for an expression that never matches.
    pub fn new(text: &str, zone: &Zone, now: Timestamp) -> Result<Plan, Error> {
        let expr = Expr::parse(text, Dialect::Posix).map_err(|error| Error::cron(text, &error, now))?;
        let schedule = expr.compile(zone, dst()).map_err(|error| Error::cron(text, &error, now))?;
        Ok(Plan { expr, schedule: Some(schedule) })
    }
}

/// Times that do not exist do not run, times that come twice run twice.
fn dst() -> Dst {
    #[cfg(test)]
    return flaw::dst(Dst::POSIX);
    #[cfg(not(test))]
    Dst::POSIX
}

/// The tasks, and when each could start.
#[derive(Debug)]
pub struct Machine {
    tasks: Vec<Task>,
    /// Tasks that wait, by the instant at which they could start. A task that runs is not in it, so nothing is ever
    /// taken out of the middle.
    queue: BTreeMap<Timestamp, Vec<u32>>,
    identifier: Arc<str>,
    running: usize,
}

#[derive(Debug)]
struct Task {
    record: Record,
    plan: Arc<Plan>,
    is_running: bool,
}

/// What became of the stored tasks when a list was adopted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Adoption {
    /// Registered for the first time.
    pub new: Vec<Arc<str>>,
    /// Stored with the same configuration.
    pub preserved: usize,
    /// Stored with another configuration.
    pub overridden: Vec<Arc<str>>,
    /// Cut off while running, and to be started at once.
    pub orphaned: Vec<Arc<str>>,
    /// Stored, and no longer registered: forgotten.
    pub removed: Vec<String>,
    /// What changed of the configurations.
    pub modifications: Vec<Modification>,
    /// Tasks whose last attempt lies in the future: they wait until the clock has passed it.
    pub ahead: Vec<Arc<str>>,
    /// Stored things that were dropped because they cannot be read.
    pub discarded: Vec<String>,
}

/// A configuration that changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Modification {
    /// The task.
    pub name: Arc<str>,
    /// The field.
    pub field: &'static str,
    /// What it was.
    pub from: String,
    /// What it is.
    pub to: String,
}

/// A task that is to start.
#[derive(Clone, Debug)]
pub struct Selected {
    /// Which.
    pub task: u32,
    /// Why.
    pub reason: Reason,
    /// The instant it was to start at: the latest occurrence, or the end of the wait.
    pub due_at: Timestamp,
    /// Whether an occurrence came before the retry that was waited for.
    pub preempts: bool,
    before: Before,
}

/// Why a run is started.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reason {
    /// An occurrence of its schedule has come.
    Occurrence,
    /// It was cut off by the end of the process.
    Orphan,
    /// It has failed, and the retry delay is over.
    Retry,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// Well.
    Succeeded,
    /// With an error or a panic.
    Failed,
}

/// What a record was before its task was marked, so that the mark can be withdrawn.
#[derive(Clone, Debug)]
struct Before {
    last_attempt_at: Option<Timestamp>,
    pending_retry_until: Option<Timestamp>,
    running: Option<RunningMark>,
}

impl Machine {
    /// Compares registrations with what is stored: new, preserved, overridden and cut-off tasks.
    ///
    /// Nothing is written here. What is to be stored from now on is [`records`](Machine::records).
    ///
    /// # Errors
    ///
    /// One of the errors of reading a record, if a record of a registered name cannot be read and `discard` is not
    /// set. Its configuration does not matter: the registration's takes its place first.
    pub fn adopt(
        stored: Vec<Stored>,
        configs: Vec<Config>,
        identifier: Arc<str>,
        zone: &Zone,
        discard: bool,
        now: Timestamp,
    ) -> Result<(Machine, Adoption), Error> {
        let mut adoption = Adoption::default();
        let names: HashMap<Arc<str>, usize> =
            configs.iter().enumerate().map(|(at, config)| (Arc::clone(&config.name), at)).collect();
        let mut known: Vec<Option<Record>> = vec![None; configs.len()];
        let mut seen: HashSet<usize> = HashSet::new();
        for item in stored {
            let at = match item.name() {
                Some(name) => match names.get(name) {
                    Some(at) => *at,
                    None => {
                        adoption.removed.push(name.to_owned());
                        continue;
                    }
                },
                // Without a name it may be anyone's, so it is not passed over.
                None => match (item, discard) {
                    (Stored::Raw(value), false) => return Err(unreadable(&value)),
                    (item, _) => {
                        adoption.discarded.push(crate::error::shortened(&item.to_json().to_string()));
                        continue;
                    }
                },
            };
            if !seen.insert(at) {
                if discard {
                    adoption.discarded.push(configs[at].name.to_string());
                    continue;
                }
                let reason = "there is another record of this name";
                return Err(Error::invalid_value("name", &json!(*configs[at].name), reason));
            }
            let record = match item {
                Stored::Record(record) => Ok(record),
                Stored::Raw(mut value) => {
                    overlay(&mut value, &configs[at]);
                    Record::from_json(&value)
                }
            };
            match record {
                Ok(record) => known[at] = Some(record),
                Err(error) if !discard => return Err(error.with("taskName", json!(*configs[at].name))),
                Err(_) => adoption.discarded.push(configs[at].name.to_string()),
            }
        }
        adoption.removed.sort_unstable();

        let floor = minute_start(zone, now);
        let mut machine = Machine {
            tasks: Vec::with_capacity(configs.len()),
            queue: BTreeMap::new(),
            identifier,
            running: 0,
        };
        for (config, record) in configs.into_iter().zip(known) {
            let record = adopt_one(&config, record, floor, now, &mut adoption);
            machine.tasks.push(Task { record, plan: config.plan, is_running: false });
        }
        #[cfg(test)]
        flaw::adopted(&mut machine, &adoption, floor, now);
        machine.fill_queue();
        Ok((machine, adoption))
    }

    /// What is to be stored, in the order by which changes name their tasks.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &Record> {
        self.tasks.iter().map(|task| &task.record)
    }

    /// What is known of a task.
    #[must_use]
    pub fn record(&self, task: u32) -> &Record {
        &self.tasks[task as usize].record
    }

    /// The identifier of this activation.
    #[must_use]
    pub fn identifier(&self) -> &Arc<str> {
        &self.identifier
    }

    /// How many tasks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// How many are running.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// Takes every task that is due, and counts it as running. The same tasks, states and time give the same answer.
    pub fn poll_due(&mut self, now: Timestamp) -> Vec<Selected> {
        let mut selected = Vec::new();
        while let Some(entry) = self.queue.first_entry().filter(|entry| *entry.key() <= now) {
            let (queued_for, mut due) = entry.remove_entry();
            due.sort_unstable();
            selected.reserve(due.len());
            for at in due {
                selected.push(self.tasks[at as usize].select(at, queued_for, now, &self.identifier));
            }
        }
        self.running += selected.len();
        #[cfg(test)]
        flaw::selected(self, &selected);
        selected
    }

    /// It does not start after all: it is as if it had not been selected. What comes back takes its mark out of the
    /// store, if it got there.
    pub fn handle_withheld(&mut self, selected: &Selected) -> Change {
        let task = &mut self.tasks[selected.task as usize];
        let Before { last_attempt_at, pending_retry_until, running } = selected.before.clone();
        task.record = Record { last_attempt_at, pending_retry_until, running, ..task.record.clone() };
        task.is_running = false;
        self.running -= 1;
        let kind = ChangeKind::Put(Box::new(task.record.clone()));
        self.enqueue(selected.task);
        Change { task: selected.task, kind }
    }

    /// A run has ended. What comes back is to be written.
    pub fn handle_ended(&mut self, at: u32, ending: Ending, now: Timestamp) -> Change {
        let task = &mut self.tasks[at as usize];
        let kind = match ending {
            Ending::Succeeded => ChangeKind::Succeeded { at: now },
            Ending::Failed => ChangeKind::Failed { at: now, retry_at: task.retry_at(now) },
        };
        task.record.apply(&kind, &self.identifier);
        task.is_running = false;
        self.running = self.running.saturating_sub(1);
        #[cfg(test)]
        flaw::ended(task, ending, now);
        self.enqueue(at);
        Change { task: at, kind }
    }

    /// When something could start next.
    #[must_use]
    pub fn poll_wake(&self) -> Option<Timestamp> {
        self.queue.first_key_value().map(|(at, _)| *at)
    }

    /// The host's zone has changed: every schedule means something else from now on. What comes back are the tasks
    /// that have no time left to run at.
    pub fn handle_zone(&mut self, zone: &Zone) -> Vec<Arc<str>> {
        let mut plans: HashMap<Arc<str>, Arc<Plan>> = HashMap::new();
        let mut silent = Vec::new();
        for task in &mut self.tasks {
            let plan = plans.entry(Arc::clone(&task.record.cron_expression)).or_insert_with(|| {
                let expr = task.plan.expr.clone();
                let schedule = expr.compile(zone, dst()).ok();
                Arc::new(Plan { expr, schedule })
            });
            if plan.schedule.is_none() {
                silent.push(Arc::clone(&task.record.name));
            }
            task.plan = Arc::clone(plan);
        }
        self.fill_queue();
        silent
    }

    fn fill_queue(&mut self) {
        self.queue.clear();
        for at in 0..self.tasks.len() {
            if !self.tasks[at].is_running {
                self.enqueue(u32::try_from(at).expect("there are fewer than 2^32 tasks"));
            }
        }
    }

    fn enqueue(&mut self, at: u32) {
        if let Some(instant) = self.tasks[at as usize].starts_at() {
            self.queue.entry(instant).or_default().push(at);
        }
    }
}

impl Task {
    /// The instant from which on the task could start, if it waits.
    fn starts_at(&self) -> Option<Timestamp> {
        if self.is_orphan() {
            return Some(Timestamp::MIN);
        }
        [self.next_occurrence(), self.next_retry()].into_iter().flatten().min()
    }

    fn is_orphan(&self) -> bool {
        !self.is_running && self.record.running.is_some()
    }

    /// The first occurrence that no run has begun after.
    fn next_occurrence(&self) -> Option<Timestamp> {
        self.plan.schedule.as_ref()?.next_after(self.base())
    }

    /// What occurrences are counted after: the last attempt, but nothing before the registration.
    fn base(&self) -> Timestamp {
        let before = self.record.registered_at.checked_sub(SignedDuration::from_nanos(1));
        let before = before.unwrap_or(Timestamp::MIN);
        self.record.last_attempt_at.map_or(before, |attempt| attempt.max(before))
    }

    fn next_retry(&self) -> Option<Timestamp> {
        let until = self.record.pending_retry_until?;
        let failure = self.record.last_failure_at.unwrap_or(Timestamp::MIN);
        Some(until.max(failure.checked_add(RETRY_SPACING_MIN).unwrap_or(until)))
    }

    fn retry_at(&self, now: Timestamp) -> Timestamp {
        now.checked_add(Duration::from_millis(self.record.retry_delay_ms)).unwrap_or(Timestamp::MAX)
    }

    /// Counts it as running. `queued_for` is the instant that it waited for.
    fn select(&mut self, at: u32, queued_for: Timestamp, now: Timestamp, identifier: &Arc<str>) -> Selected {
        let is_orphan = self.is_orphan();
        let occurrence = match self.record.pending_retry_until {
            // It waited for nothing else.
            None if !is_orphan => Some(queued_for),
            _ => self.next_occurrence().filter(|occurrence| *occurrence <= now),
        };
        let (reason, due_at) = match (is_orphan, occurrence) {
            (true, _) => (Reason::Orphan, now),
            (false, Some(first)) => (Reason::Occurrence, self.latest(first, now)),
            (false, None) => (Reason::Retry, self.next_retry().unwrap_or(now)),
        };
        let preempts = reason != Reason::Retry && self.record.pending_retry_until.is_some();
        let before = Before {
            last_attempt_at: self.record.last_attempt_at,
            pending_retry_until: self.record.pending_retry_until,
            running: self.record.running.take(),
        };
        self.record.apply(&ChangeKind::Started { at: now }, identifier);
        self.is_running = true;
        Selected { task: at, reason, due_at, preempts, before }
    }

    /// The latest occurrence, given the first that has come. Less than a minute after one there is no other.
    fn latest(&self, first: Timestamp, now: Timestamp) -> Timestamp {
        let latest = |schedule: &Schedule| schedule.prev_at_or_before(now);
        if now.duration_since(first) < SignedDuration::from_secs(60) {
            return first;
        }
        self.plan.schedule.as_ref().and_then(latest).unwrap_or(first)
    }
}

/// One registration, and the record of its name if there is one.
fn adopt_one(
    config: &Config,
    record: Option<Record>,
    floor: Timestamp,
    now: Timestamp,
    adoption: &mut Adoption,
) -> Record {
    let Some(mut record) = record else {
        adoption.new.push(Arc::clone(&config.name));
        return Record {
            name: Arc::clone(&config.name),
            cron_expression: Arc::clone(&config.cron),
            retry_delay_ms: config.retry_delay_ms,
            registered_at: floor,
            last_attempt_at: None,
            last_success_at: None,
            last_failure_at: None,
            pending_retry_until: None,
            running: None,
        };
    };
    let mut changed = |field, from: String, to: String| {
        if from != to {
            let name = Arc::clone(&config.name);
            adoption.modifications.push(Modification { name, field, from, to });
        }
    };
    let same = *record.cron_expression == *config.cron && record.retry_delay_ms == config.retry_delay_ms;
    if !same {
        changed("cronExpression", record.cron_expression.to_string(), config.cron.to_string());
        changed("retryDelayMs", record.retry_delay_ms.to_string(), config.retry_delay_ms.to_string());
    }
    if record.running.is_some() {
        adoption.orphaned.push(Arc::clone(&config.name));
    } else if same {
        adoption.preserved += 1;
    } else {
        adoption.overridden.push(Arc::clone(&config.name));
    }
    if record.last_attempt_at.is_some_and(|attempt| attempt > now) {
        adoption.ahead.push(Arc::clone(&config.name));
    }
    // The registration's texts take the place of the record's, so that there is one copy of each.
    record.name = Arc::clone(&config.name);
    record.cron_expression = Arc::clone(&config.cron);
    record.retry_delay_ms = config.retry_delay_ms;
    record
}

/// The registration's configuration takes the place of what the record says about it.
fn overlay(value: &mut Value, config: &Config) {
    if let Value::Object(object) = value {
        object.insert("cronExpression".into(), json!(*config.cron));
        object.insert("retryDelayMs".into(), json!(config.retry_delay_ms));
    }
}

/// Why something without a name is no record.
fn unreadable(value: &Value) -> Error {
    Record::from_json(value)
        .err()
        .unwrap_or_else(|| Error::invalid_structure(value, "Task state has no name"))
}

/// The beginning of the local minute that an instant lies in.
pub(crate) fn minute_start(zone: &Zone, now: Timestamp) -> Timestamp {
    let civil = zone.to_civil(now);
    let into = SignedDuration::new(civil.second().into(), civil.subsec_nanosecond());
    now.checked_sub(into).unwrap_or(now)
}

#[cfg(test)]
mod flaw;
