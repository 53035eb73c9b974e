//! The scheduler: two methods, and five states between them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use jiff::Timestamp;
use kron_schedule::Zone;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::clock::{Clock, HostClock};
use crate::driver::{Driver, Gate, Held, inside_callback, with_store};
use crate::error::{Error, ErrorKind};
use crate::event::{Event, Lateness, LatenessMeter, Observer};
#[cfg(test)]
use crate::flaw::{Flaw, planted};
use crate::machine::{Adoption, Config, Machine, Plan};
use crate::record::whole_millis;
use crate::registration::{Callback, IntoRegistrations, Registrations};
use crate::store::Store;
use crate::sync::{Mutex, MutexGuard, PoisonError, broadcast};

/// Runs registered tasks when their time comes, and remembers what it did.
///
/// [`initialize`](Scheduler::initialize) says what is to run, [`stop`](Scheduler::stop) ends it; after that it can be
/// initialized again. Both act when they are called, and the futures they return only wait.
///
/// Dropping a scheduler that was not stopped is like the end of the process: callbacks are dropped where they
/// are, and those tasks are started again by the next scheduler on the same store, which is free once they are gone.
#[derive(Debug)]
pub struct Scheduler {
    inner: Arc<Inner>,
}

/// Where a scheduler is in its life.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum State {
    /// It was never initialized, or that failed.
    Uninitialized,
    /// `initialize` is under way.
    Initializing,
    /// Tasks run when they are due.
    Running,
    /// `stop` was called: nothing more starts, and what runs may end.
    Stopping,
    /// Nothing runs.
    Stopped,
}

/// How a scheduler is put together.
#[must_use]
pub struct Builder {
    store: Box<dyn Store>,
    clock: Arc<dyn Clock>,
    observers: Vec<Observer>,
    discard: bool,
}

impl Builder {
    /// Another clock than the host's.
    pub fn clock(mut self, clock: impl Clock) -> Builder {
        self.clock = Arc::new(clock);
        self
    }

    /// Someone to be told of every event, in the place where it happens. More than one may be.
    pub fn observer(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Builder {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Records that cannot be read are dropped with a warning, and their tasks begin anew. Without this,
    /// `initialize` fails with the reason and leaves the store as it is.
    pub fn discard_bad_records(mut self) -> Builder {
        self.discard = true;
        self
    }

    /// The scheduler.
    #[must_use]
    pub fn build(self) -> Scheduler {
        Scheduler {
            inner: Arc::new(Inner {
                clock: self.clock,
                store: Arc::new(tokio::sync::Mutex::new(self.store)),
                observers: self.observers,
                discard: self.discard,
                stream: broadcast::channel(EVENTS_KEPT).0,
                meter: LatenessMeter::default(),
                life: Mutex::new(Life {
                    state: State::Uninitialized,
                    generation: 0,
                    stop_seen: false,
                    is_dropped: false,
                    has_tasks: false,
                    gate: Arc::default(),
                    looping: None,
                }),
                changes: watch::channel((0, State::Uninitialized)).0,
            }),
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("store", &self.store)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

/// How many events wait for a receiver that is slow. Of what is more, it is told that it missed it.
const EVENTS_KEPT: usize = 4_096;

/// What the scheduler, its futures and its loop share.
pub(crate) struct Inner {
    pub(crate) clock: Arc<dyn Clock>,
    store: Arc<tokio::sync::Mutex<Box<dyn Store>>>,
    observers: Vec<Observer>,
    discard: bool,
    stream: broadcast::Sender<Event>,
    pub(crate) meter: LatenessMeter,
    life: Mutex<Life>,
    /// The present generation and state, for those who wait for a change.
    changes: watch::Sender<(u64, State)>,
}

struct Life {
    state: State,
    /// Counts calls of `initialize` that were not refused, so that a waiting `stop` never waits for a later one.
    generation: u64,
    /// Whether `stop` was called since `initialize`.
    stop_seen: bool,
    is_dropped: bool,
    has_tasks: bool,
    gate: Arc<Gate>,
    looping: Option<AbortHandle>,
}

impl Scheduler {
    /// A scheduler with the host's clock and local time zone, and the records in that store.
    pub fn new(store: impl Store) -> Scheduler {
        Scheduler::builder(store).build()
    }

    /// The same with more to choose.
    pub fn builder(store: impl Store) -> Builder {
        Builder {
            store: Box::new(store),
            clock: Arc::new(HostClock::new()),
            observers: Vec::new(),
            discard: false,
        }
    }

    /// Makes these the tasks, and starts to run them.
    ///
    /// The list is compared with what the store remembers: new names begin with the minute in progress, known
    /// ones go on where they were, changed ones keep their history, runs that were cut off start at once, and names
    /// that are not in the list are forgotten. All of that is written in one transaction, or nothing is.
    ///
    /// The state changes and the list is checked in this call; the future it returns does the rest, in a tokio runtime.
    /// If it is dropped before it is done, the scheduler is uninitialized again. Nothing runs before it is done.
    ///
    /// # Errors
    ///
    /// The future is ready with an error at once (see [`Initialize::refusal`]) if the scheduler is active already
    /// or if something is wrong with the list; and fails later if the store does.
    pub fn initialize(&self, registrations: impl IntoRegistrations) -> Initialize {
        let inner = &self.inner;
        {
            let mut life = inner.life();
            match life.state {
                State::Initializing => return Initialize::refused(Error::already_active("initializing")),
                State::Running | State::Stopping => {
                    return Initialize::refused(Error::already_active("running"));
                }
                State::Uninitialized | State::Stopped => {}
            }
            life.generation += 1;
            life.stop_seen = false;
            inner.enter(&mut life, State::Initializing);
        }
        let mut attempt = Attempt { inner: Arc::clone(inner), is_over: false };
        inner.tell(&Event::SchedulerInitializationStarted);
        let zone = inner.clock.zone();
        let now = whole_millis(inner.clock.now());
        match registrations.into_registrations().and_then(|list| check(list, &zone, now)) {
            Ok(checked) => Initialize(Kind::Running(Box::pin(attempt.run(checked, zone)))),
            Err(error) => Initialize::refused(attempt.fail(error)),
        }
    }

    /// Lets nothing more start, and waits until everything that runs has ended.
    ///
    /// This acts at once; the future it returns only waits, and may be dropped. Any number of calls may wait
    /// together. During an `initialize` it waits for that too, which then succeeds and runs nothing. There is no time
    /// limit: put `tokio::time::timeout` around it, and drop the scheduler when that runs out.
    ///
    /// # Errors
    ///
    /// Only if a callback of this scheduler waits for it, which would never end: `StopFromCallbackError`. The
    /// scheduler stops all the same, as soon as the callback has ended. A callback that hands the waiting to another
    /// task and waits for that one is not found out, and waits for ever: it should not wait.
    pub fn stop(&self) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let inner = Arc::clone(&self.inner);
        let mut events = Vec::new();
        let (generation, waits) = {
            let mut life = inner.life();
            let waits = match life.state {
                State::Uninitialized | State::Stopped => false,
                State::Initializing => {
                    if !life.stop_seen {
                        events.push(Event::SchedulerStopRequested);
                    }
                    life.stop_seen = true;
                    true
                }
                State::Running => {
                    events.push(Event::SchedulerStopRequested);
                    if life.has_tasks {
                        events.push(Event::PollingStopRequested);
                    }
                    life.stop_seen = true;
                    inner.enter(&mut life, State::Stopping);
                    life.gate.close();
                    true
                }
                State::Stopping => true,
            };
            (life.generation, waits)
        };
        for event in &events {
            inner.tell(event);
        }
        async move {
            if !waits {
                return Ok(());
            }
            if inside_callback(&inner) {
                return Err(Error::new(
                    ErrorKind::StopFromCallback,
                    "Cannot wait for stop in a callback: the scheduler stops when the callback has ended",
                    Value::Null,
                ));
            }
            let is_over = |(present, state): &(u64, State)| {
                *present != generation || matches!(state, State::Uninitialized | State::Stopped)
            };
            // The sender lives as long as this future holds it.
            inner.changes.subscribe().wait_for(is_over).await.ok();
            Ok(())
        }
    }

    /// Where the scheduler is in its life.
    #[must_use]
    pub fn state(&self) -> State {
        self.inner.life().state
    }

    /// Every event from now on. A receiver that falls more than a few thousand behind is told how many it missed.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.inner.stream.subscribe()
    }

    /// How late runs have started.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        self.inner.meter.read()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let mut life = self.inner.life();
        life.is_dropped = true;
        life.gate.close();
        if let Some(looping) = life.looping.take() {
            looping.abort();
        }
    }
}

impl Inner {
    fn life(&self) -> MutexGuard<'_, Life> {
        // Nothing panics while it is held.
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, life: &mut Life, state: State) {
        life.state = state;
        self.changes.send_replace((life.generation, state));
    }

    /// The loop has ended.
    pub(crate) fn handle_stopped(&self) {
        let mut life = self.life();
        life.looping = None;
        self.enter(&mut life, State::Stopped);
    }

    /// Tells everyone of an event.
    pub(crate) fn tell(&self, event: &Event) {
        event.trace();
        for observer in &self.observers {
            if catch_unwind(AssertUnwindSafe(|| observer(event))).is_err() {
                tracing::error!(event = event.name(), "an observer panicked");
            }
        }
        if self.stream.receiver_count() > 0 {
            self.stream.send(event.clone()).ok();
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("state", &self.life().state).finish_non_exhaustive()
    }
}

/// The rest of [`initialize`](Scheduler::initialize).
#[must_use = "nothing runs until it is awaited"]
pub struct Initialize(Kind);

enum Kind {
    Refused(Option<Error>),
    Running(Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>),
}

impl Initialize {
    fn refused(error: Error) -> Initialize {
        Initialize(Kind::Refused(Some(error)))
    }

    /// Why the call was refused, known before anything is awaited.
    #[must_use]
    pub fn refusal(&self) -> Option<&Error> {
        match &self.0 {
            Kind::Refused(error) => error.as_ref(),
            Kind::Running(_) => None,
        }
    }
}

impl Future for Initialize {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match &mut self.0 {
            Kind::Refused(error) => {
                Poll::Ready(Err(error.take().expect("a future is not polled after it is ready")))
            }
            Kind::Running(running) => running.as_mut().poll(context),
        }
    }
}

impl fmt::Debug for Initialize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initialize").field("refusal", &self.refusal()).finish_non_exhaustive()
    }
}

/// A list in which nothing is wrong.
struct Checked {
    configs: Vec<Config>,
    callbacks: Vec<Callback>,
}

/// Checks a list; the first mistake in order wins.
fn check(list: Registrations, zone: &Zone, now: Timestamp) -> Result<Checked, Error> {
    let mut names = HashSet::with_capacity(list.0.len());
    let mut plans: HashMap<Arc<str>, Arc<Plan>> = HashMap::new();
    let mut checked = Checked { configs: Vec::new(), callbacks: Vec::new() };
    for (index, registration) in list.0.into_iter().enumerate() {
        let at = |error: Error| error.with("registrationIndex", json!(index));
        if registration.name.is_empty() {
            return Err(at(Error::invalid("name", &json!(""), "must not be empty")));
        }
        if !names.insert(Arc::clone(&registration.name)) {
            return Err(at(Error::duplicate(&registration.name)));
        }
        let cron = &registration.cron;
        let plan = match plans.get(cron) {
            Some(plan) => Arc::clone(plan),
            None => {
                let named = |error: Error| at(error).with("taskName", json!(*registration.name));
                let plan = Arc::new(Plan::new(cron, zone, now).map_err(named)?);
                plans.insert(Arc::clone(cron), Arc::clone(&plan));
                plan
            }
        };
        let retry_delay_ms = registration.retry_delay_ms().map_err(at)?;
        checked.configs.push(Config {
            name: registration.name,
            cron: registration.cron,
            retry_delay_ms,
            plan,
        });
        checked.callbacks.push(registration.callback);
    }
    Ok(checked)
}

/// One `initialize` that was not refused. However it is dropped, the scheduler can be initialized again.
struct Attempt {
    inner: Arc<Inner>,
    is_over: bool,
}

impl Attempt {
    async fn run(mut self, checked: Checked, zone: Zone) -> Result<(), Error> {
        let inner = Arc::clone(&self.inner);
        if tokio::runtime::Handle::try_current().is_err() {
            let message = "Cannot initialize scheduler: there is no tokio runtime";
            return Err(self.fail(Error::new(ErrorKind::NoRuntime, message, Value::Null)));
        }
        let Checked { configs, callbacks } = checked;
        let held = Held::new(Arc::clone(&inner.store).lock_owned().await);
        let (discard, clock) = (inner.discard, Arc::clone(&inner.clock));
        let adopt = {
            let zone = zone.clone();
            move |store: &mut dyn Store| {
                let now = whole_millis(clock.now());
                let stored = store.open()?;
                let (machine, adoption) =
                    Machine::adopt(stored, configs, new_identifier()?, &zone, discard, now)?;
                store.replace(machine.identifier(), &machine.records().collect::<Vec<_>>())?;
                Ok((machine, adoption))
            }
        };
        let (held, adopted) = with_store(held, adopt).await;
        let (machine, adoption) = match adopted {
            Ok(adopted) => adopted,
            Err(error) => {
                drop(held); // others may have the store before anyone hears of the error
                return Err(self.fail(error));
            }
        };
        log(&adoption, machine.len());
        self.finish(machine, held, callbacks, zone)
    }

    /// The list is stored. From here to the end nothing waits, so nothing can be cancelled.
    fn finish(
        &mut self,
        machine: Machine,
        held: Held,
        callbacks: Vec<Callback>,
        zone: Zone,
    ) -> Result<(), Error> {
        let inner = &self.inner;
        let tasks = machine.len();
        let gate = Arc::new(Gate::default());
        let interrupted = {
            let mut life = inner.life();
            if life.is_dropped {
                drop(life);
                drop(held);
                return Err(self.fail(cancelled()));
            }
            let interrupted = life.stop_seen;
            #[cfg(test)]
            let interrupted = interrupted && planted() != Some(Flaw::StopForgotten);
            life.has_tasks = tasks > 0;
            life.gate = Arc::clone(&gate);
            inner.enter(&mut life, if interrupted { State::Stopping } else { State::Running });
            interrupted
        };
        self.is_over = true;
        if interrupted {
            tracing::warn!("stop was called during initialize: the list is stored, and nothing runs");
            drop(held);
            inner.tell(&Event::SchedulerInitializationCompleted { tasks, interrupted });
            inner.tell(&Event::SchedulerStopped);
            inner.handle_stopped();
            return Ok(());
        }
        if tasks > 0 {
            inner.tell(&Event::PollingStarted);
        }
        inner.tell(&Event::SchedulerInitializationCompleted { tasks, interrupted });
        let driver = Driver::new(Arc::clone(inner), machine, held, callbacks, gate, zone);
        let looping = tokio::spawn(driver.run()).abort_handle();
        let mut life = inner.life();
        if life.is_dropped {
            looping.abort();
        } else {
            life.looping = Some(looping);
        }
        Ok(())
    }

    fn fail(&mut self, error: Error) -> Error {
        self.is_over = true;
        let inner = &self.inner;
        inner.tell(&Event::SchedulerInitializationFailed { error: error.clone() });
        inner.enter(&mut inner.life(), State::Uninitialized);
        error
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_over {
            self.fail(cancelled());
        }
    }
}

fn cancelled() -> Error {
    Error::new(
        ErrorKind::InitializationCancelled,
        "Initialization was cancelled before it was done",
        Value::Null,
    )
}

/// 128 random bits: two activations never have the same.
fn new_identifier() -> Result<Arc<str>, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::store("Could not make an identifier", error))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)).into())
}

/// Tells what became of the stored tasks.
fn log(adoption: &Adoption, total: usize) {
    tracing::info!(
        total,
        added = adoption.new.len(),
        removed = adoption.removed.len(),
        overridden = adoption.overridden.len(),
        orphaned = adoption.orphaned.len(),
        preserved = adoption.preserved,
        "tasks compared with the store"
    );
    for name in &adoption.removed {
        tracing::info!(task = %name, "no longer registered: forgotten");
    }
    for modification in &adoption.modifications {
        let crate::machine::Modification { name, field, from, to } = modification;
        tracing::info!(task = %name, field, %from, %to, "configuration changed");
    }
    for name in &adoption.orphaned {
        tracing::info!(task = %name, "its last run was cut off: it starts again");
    }
    for name in &adoption.ahead {
        tracing::warn!(task = %name, "its last attempt lies in the future: it waits until the clock has passed it");
    }
    for what in &adoption.discarded {
        tracing::warn!(record = %what, "a stored record could not be read, and is dropped");
    }
}
