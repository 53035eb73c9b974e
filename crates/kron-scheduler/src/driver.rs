//! The loop that carries out what the machine says: it reads the clock, writes, starts callbacks, and waits.
//!
//! Every wake-up is one transaction at most: the ends of runs that have ended, and the marks of those that start.
//! A callback starts only once its mark is durable, so a crash at any point is found out afterwards.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kron_schedule::Zone;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, OwnedMutexGuard};
use tokio::task::AbortHandle;

use crate::error::{Error, shortened};
use crate::event::{Event, late_by, lateness_bound};
#[cfg(test)]
use crate::flaw::{Flaw, planted};
use crate::machine::{Ending, Machine, Reason, Selected};
use crate::record::{Change, ChangeKind, Record, whole_millis};
use crate::registration::{Callback, Running};
use crate::scheduler::Inner;
use crate::store::Store;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError, threads};

/// Open until `stop` is called. The call is remembered, whatever the loop is doing then.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_closed: AtomicBool,
    closed: Notify,
}

impl Gate {
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.closed.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }
}

/// The store, while someone has it. Whoever has it last closes it, also when a future is dropped.
pub(crate) struct Held(OwnedMutexGuard<Box<dyn Store>>);

impl Held {
    pub(crate) fn new(store: OwnedMutexGuard<Box<dyn Store>>) -> Held {
        Held(store)
    }

    fn work<R>(&mut self, work: impl FnOnce(&mut dyn Store) -> Result<R, Error>) -> Result<R, Error> {
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut **self.0)));
        done.unwrap_or_else(|_| Err(Error::store("The store panicked", std::io::Error::other("a panic"))))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if catch_unwind(AssertUnwindSafe(|| self.0.close())).is_err() {
            tracing::error!("the store panicked when it was closed");
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

/// Does something with the store, on a thread where that may block. If this is dropped meanwhile, the work is done to
/// its end, and then the store is closed.
pub(crate) async fn with_store<R: Send + 'static>(
    mut held: Held,
    work: impl FnOnce(&mut dyn Store) -> Result<R, Error> + Send + 'static,
) -> (Held, Result<R, Error>) {
    let blocks = held.0.blocks();
    let work = move || {
        let done = held.work(work);
        (held, done)
    };
    where_it_may_block(blocks, work).await
}

async fn where_it_may_block<R: Send + 'static>(blocks: bool, work: impl FnOnce() -> R + Send + 'static) -> R {
    if !blocks {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // The runtime is being shut down, and this future with it.
        Err(_) => std::future::pending().await,
    }
}

tokio::task_local! {
    /// The scheduler whose callback this is.
    static CALLED_BY: usize;
}

/// Whether this is called by a callback of that scheduler.
pub(crate) fn inside_callback(inner: &Arc<Inner>) -> bool {
    CALLED_BY.try_with(|caller| *caller == Arc::as_ptr(inner) as usize).unwrap_or(false)
}

pub(crate) struct Driver {
    shared: Arc<Shared>,
    /// Shared with a thread that writes it down, while that is waited for.
    machine: Arc<Machine>,
    zone: Zone,
    last_look: Timestamp,
    ended: UnboundedReceiver<Vec<Ended>>,
    arrived: Vec<Ended>,
    /// What has happened and is not written yet.
    pending: Vec<Change>,
    /// Whether everything is to be written anew: after an error nobody knows what the store holds, and it may want to
    /// be rid of what it has gathered.
    rewrites: bool,
    backoff: Backoff,
    /// What was started last.
    wave: Weak<Wave>,
    is_finished: bool,
}

/// What the loop and the runs share.
struct Shared {
    inner: Arc<Inner>,
    gate: Arc<Gate>,
    tasks: Vec<(Arc<str>, Callback)>,
    ended: UnboundedSender<Vec<Ended>>,
    running: Mutex<Spawned>,
    /// Closed by the last who shares this: while a callback of this scheduler exists, no other one has the store.
    held: Mutex<Option<Held>>,
}

/// Runs that wait for something, by task, so that they can be ended with the loop.
struct Spawned {
    handles: Vec<Option<AbortHandle>>,
    is_over: bool,
}

/// What a run says when it is over.
enum Ended {
    Finished {
        task: u32,
        result: Result<(), Arc<str>>,
        at: Timestamp,
    },
    /// It was not started, because `stop` came first.
    Withheld(Selected),
}

/// How long to leave the store alone after an error.
#[derive(Debug)]
struct Backoff {
    failures: u32,
    until: Timestamp,
}

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// How often a scheduler that stops tries to write what has happened, before it leaves that undone. Together with the
/// waits between them that is less than a second.
const STOP_ATTEMPTS_MAX: u32 = 5;

impl Backoff {
    fn fail(&mut self, now: Timestamp) -> Duration {
        let wait = BACKOFF_MIN.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MAX);
        self.failures += 1;
        self.until = now.checked_add(wait).unwrap_or(Timestamp::MAX);
        #[cfg(test)]
        if planted() == Some(Flaw::StoreErrorEndsLoop) {
            self.until = Timestamp::MAX;
        }
        wait
    }

    fn clear(&mut self) {
        *self = Backoff { failures: 0, until: Timestamp::MIN };
    }
}

impl Driver {
    pub(crate) fn new(
        inner: Arc<Inner>,
        machine: Machine,
        held: Held,
        callbacks: Vec<Callback>,
        gate: Arc<Gate>,
        zone: Zone,
    ) -> Driver {
        let (sender, ended) = unbounded_channel();
        let handles = callbacks.iter().map(|_| None).collect();
        let names = machine.records().map(|record| Arc::clone(&record.name));
        let shared = Shared {
            inner,
            gate,
            tasks: names.zip(callbacks).collect(),
            ended: sender,
            running: Mutex::new(Spawned { handles, is_over: false }),
            held: Mutex::new(Some(held)),
        };
        Driver {
            shared: Arc::new(shared),
            machine: Arc::new(machine),
            zone,
            last_look: Timestamp::MIN,
            ended,
            arrived: Vec::new(),
            pending: Vec::new(),
            rewrites: false,
            backoff: Backoff { failures: 0, until: Timestamp::MIN },
            wave: Weak::new(),
            is_finished: false,
        }
    }

    pub(crate) async fn run(mut self) {
        let mut is_stopping = false;
        loop {
            self.drain();
            let now = self.look();
            if self.shared.gate.is_closed() && !is_stopping {
                is_stopping = true;
                self.backoff.clear();
            }
            if now >= self.backoff.until {
                let selected = if is_stopping { Vec::new() } else { self.machine().poll_due(now) };
                if !selected.is_empty() || !self.pending.is_empty() || self.rewrites {
                    self.commit(selected, now).await;
                    // Something may have ended or come due meanwhile.
                    continue;
                }
            }
            if is_stopping && self.is_done() {
                break;
            }
            self.wait(now, is_stopping).await;
        }
        self.finish();
    }

    fn machine(&mut self) -> &mut Machine {
        Arc::get_mut(&mut self.machine).expect("whoever writes it down is waited for")
    }

    /// Whether everything has ended, and is written or given up.
    fn is_done(&self) -> bool {
        #[cfg(test)]
        if planted() == Some(Flaw::StopDoesNotWait) {
            return true;
        }
        if self.machine.running() > 0 {
            return false;
        }
        if self.pending.is_empty() && !self.rewrites {
            return true;
        }
        let gives_up = self.backoff.failures >= STOP_ATTEMPTS_MAX;
        if gives_up {
            tracing::error!(
                "the scheduler stops without having stored what happened last: those tasks start again next time"
            );
        }
        gives_up
    }

    /// Takes note of every run that is over.
    fn drain(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        while let Ok(ended) = self.ended.try_recv() {
            arrived.extend(ended);
        }
        if arrived.is_empty() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let mut handles = Vec::new();
        for ended in arrived {
            match ended {
                Ended::Withheld(selected) => {
                    let change = self.machine().handle_withheld(&selected);
                    #[cfg(test)]
                    if planted() == Some(Flaw::MarkedNeverCalled) {
                        continue;
                    }
                    self.pending.push(change);
                }
                Ended::Finished { task, result, at } => {
                    handles.push(task);
                    let ending = if result.is_ok() { Ending::Succeeded } else { Ending::Failed };
                    let change = self.machine().handle_ended(task, ending, at);
                    let name = Arc::clone(&shared.tasks[task as usize].0);
                    let event = match (result, &change.kind) {
                        (Err(error), ChangeKind::Failed { retry_at, .. }) => {
                            Event::TaskRunFailed { task: name, at, retry_at: *retry_at, error }
                        }
                        _ => Event::TaskRunCompleted { task: name, at },
                    };
                    self.pending.push(change);
                    shared.inner.tell(&event);
                }
            }
        }
        let mut running = shared.running();
        for task in handles {
            running.handles[task as usize] = None;
        }
    }

    /// Reads the clock, and notices what was done to it.
    fn look(&mut self) -> Timestamp {
        let now = whole_millis(self.shared.inner.clock.now());
        let back = self.last_look.duration_since(now);
        if back > SignedDuration::from_secs(1) {
            tracing::warn!(%now, was = %self.last_look, "the clock was set back: no task runs again before it has caught up");
            self.backoff.until = self.backoff.until.min(now);
        }
        self.last_look = now;
        let zone = self.shared.inner.clock.zone();
        if zone != self.zone {
            tracing::info!(
                from = self.zone.name(),
                to = zone.name(),
                "the time zone of the host has changed"
            );
            for task in self.machine().handle_zone(&zone) {
                tracing::warn!(%task, "in this time zone it never runs");
            }
            self.zone = zone;
        }
        now
    }

    /// One transaction: what has happened, and what is about to. Then it happens.
    async fn commit(&mut self, selected: Vec<Selected>, now: Timestamp) {
        let mut changes = std::mem::take(&mut self.pending);
        let mark =
            |selected: &Selected| Change { task: selected.task, kind: ChangeKind::Started { at: now } };
        changes.extend(selected.iter().map(mark));
        let rewritten = self.rewrites.then(|| Arc::clone(&self.machine));
        let result = self.write(move |store| match rewritten {
            Some(machine) => {
                store.replace(machine.identifier(), &machine.records().collect::<Vec<&Record>>())?;
                Ok(false)
            }
            None => store.apply(&changes).map(|()| store.wants_rewrite()),
        });
        let result = result.await;
        let starts = selected.len();
        match result {
            Ok(wants_rewrite) => {
                self.backoff.clear();
                // Those who are about to start do not wait for that.
                self.rewrites = wants_rewrite && starts == 0;
                self.start(selected, now);
            }
            Err(error) => {
                // The machine knows all of it, and the next write is of everything.
                self.rewrites = true;
                for selected in &selected {
                    self.machine().handle_withheld(selected);
                }
                let wait = self.backoff.fail(now);
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, cause, ?wait, starts, "the store failed, and is tried again");
            }
        }
    }

    async fn write<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Store) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        let shared = Arc::clone(&self.shared);
        let blocks = shared.held().as_ref().is_none_or(|held| held.0.blocks());
        let work = move || {
            let mut held = shared.held();
            held.as_mut().expect("it is held to the end").work(work)
        };
        where_it_may_block(blocks, work).await
    }

    /// Starts the callbacks of tasks whose marks are durable: as many side by side as there are threads.
    fn start(&mut self, selected: Vec<Selected>, now: Timestamp) {
        let threads = threads().min(selected.len());
        let wave = Wave { shared: Arc::clone(&self.shared), selected, at: now, next: AtomicUsize::new(0) };
        let wave = Arc::new(wave);
        self.wave = Arc::downgrade(&wave);
        for _ in 0..threads {
            tokio::spawn(Arc::clone(&wave).start());
        }
    }

    /// Waits until something ends, `stop` is called, or the clock says that it is time to look.
    async fn wait(&mut self, now: Timestamp, is_stopping: bool) {
        let mut until = next_minute(now);
        if now < self.backoff.until {
            until = until.min(self.backoff.until);
        } else if let Some(wake) = self.machine.poll_wake().filter(|_| !is_stopping) {
            until = until.min(wake);
        }
        // Without tasks there is nothing to look at; whatever else happens, wakes.
        let polls = !self.machine.is_empty();
        let clock = Arc::clone(&self.shared.inner.clock);
        let sleep = async move {
            if polls {
                clock.sleep(until).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        let gate = Arc::clone(&self.shared.gate);
        tokio::select! {
            biased;
            () = gate.closed.notified(), if !is_stopping => {}
            () = self.arrive() => {}
            () = sleep => {}
        }
    }

    /// Waits for a run to end. If this is dropped, nothing is lost.
    async fn arrive(&mut self) {
        loop {
            self.arrived.extend(self.ended.recv().await.into_iter().flatten());
            #[cfg(test)]
            if planted() == Some(Flaw::SuccessDoesNotWake)
                && self.arrived.iter().all(|ended| matches!(ended, Ended::Finished { result: Ok(()), .. }))
            {
                continue;
            }
            // Starts come first: what has ended can wait until all are under way.
            if self.wave.upgrade().is_none_or(|wave| wave.is_through()) {
                return;
            }
        }
    }

    fn finish(mut self) {
        self.is_finished = true;
        drop(self.shared.held().take()); // others may have the store before `stop` returns
        let inner = &self.shared.inner;
        if !self.machine.is_empty() {
            inner.tell(&Event::PollingStopped);
        }
        inner.tell(&Event::SchedulerStopped);
        inner.handle_stopped();
    }
}

/// A loop that ends otherwise takes everything with it, as the end of the process would.
impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.gate.close();
        let handles = {
            let mut running = self.shared.running();
            running.is_over = true;
            std::mem::take(&mut running.handles)
        };
        for handle in handles.into_iter().flatten() {
            handle.abort();
        }
        if !self.is_finished {
            self.shared.inner.handle_stopped();
        }
    }
}

/// The beginning of the next minute.
fn next_minute(now: Timestamp) -> Timestamp {
    let minute = now.as_second().div_euclid(60) + 1;
    Timestamp::from_second(minute * 60).unwrap_or(Timestamp::MAX)
}

/// Runs that start together. Each is taken by whoever comes next, so one that blocks its thread holds up no other.
struct Wave {
    shared: Arc<Shared>,
    selected: Vec<Selected>,
    at: Timestamp,
    next: AtomicUsize,
}

/// How many runs are started before everything else on the thread has its turn.
const STARTS_A_TURN: usize = 256;

impl Wave {
    /// Takes one run after the other as far as it goes without waiting. Those that wait become tasks of their own.
    async fn start(self: Arc<Wave>) {
        while !self.is_through() {
            let ended = poll_fn(|context| Poll::Ready(self.turn(context))).await;
            self.shared.send(ended);
            tokio::task::yield_now().await;
        }
        // Who waits for the wave is to look again.
        self.shared.send(Vec::new());
    }

    /// Whether every run was taken by someone.
    fn is_through(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.selected.len()
    }

    /// Starts some, and says which of them are over already.
    fn turn(&self, context: &mut Context<'_>) -> Vec<Ended> {
        let mut ended = Vec::new();
        let mut now = None;
        for _ in 0..STARTS_A_TURN {
            let Some(selected) = self.selected.get(self.next.fetch_add(1, Ordering::Relaxed)) else { break };
            if self.is_withheld() {
                ended.push(Ended::Withheld(selected.clone()));
                continue;
            }
            // When one has ended the next one starts.
            self.tell(selected, now.take().unwrap_or_else(|| self.shared.inner.clock.now()));
            let mut run = Run { shared: Arc::clone(&self.shared), task: selected.task, running: None };
            match run.advance(context) {
                Poll::Ready(over) => {
                    if let Ended::Finished { at, .. } = &over {
                        now = Some(*at);
                    }
                    ended.push(over);
                }
                Poll::Pending => run.spawn(),
            }
        }
        ended
    }

    /// Whether `stop` has come first.
    fn is_withheld(&self) -> bool {
        #[cfg(test)]
        if planted() == Some(Flaw::StartsAfterStop) {
            return false;
        }
        self.shared.gate.is_closed()
    }

    fn tell(&self, selected: &Selected, now: Timestamp) {
        let Shared { inner, tasks, .. } = &*self.shared;
        let (task, at) = (Arc::clone(&tasks[selected.task as usize].0), self.at);
        let lateness = late_by(selected.due_at, now);
        if inner.meter.count(lateness, tasks.len()) {
            let bound = lateness_bound(tasks.len());
            tracing::warn!(%task, ?lateness, ?bound, "the run starts later than it should");
        }
        if selected.preempts {
            inner.tell(&Event::TaskRetryPreempted { task: Arc::clone(&task), at });
        }
        inner.tell(&match selected.reason {
            Reason::Retry => Event::TaskRetryStarted { task, at, lateness },
            reason => Event::TaskRunStarted { task, reason, at, lateness },
        });
    }
}

impl Shared {
    fn send(&self, ended: Vec<Ended>) {
        // If nobody listens, the scheduler was dropped: the next one starts it again.
        self.ended.send(ended).ok();
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, Spawned> {
        // Nothing panics while it is held.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run of one task.
struct Run {
    /// Before what is shared, so that it is gone when the store is closed.
    running: Option<Running>,
    task: u32,
    shared: Arc<Shared>,
}

impl Run {
    /// Goes on with the callback, and calls it first of all. A panic, wherever it comes from, is a failure.
    fn advance(&mut self, context: &mut Context<'_>) -> Poll<Ended> {
        let Run { running, task, shared } = self;
        let callback = &shared.tasks[*task as usize].1;
        let caller = Arc::as_ptr(&shared.inner) as usize;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            CALLED_BY.sync_scope(caller, || {
                let polled = running.get_or_insert_with(|| callback.call()).as_mut().poll(context);
                if polled.is_ready() {
                    *running = None; // which may panic as well, like the text of an error
                }
                polled.map(|result| result.map_err(|error| described(&*error).into()))
            })
        }));
        let result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => result,
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(ToString::to_string);
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                let rest = running.take();
                catch_unwind(AssertUnwindSafe(|| drop((rest, panic)))).ok();
                Err(shortened(&format!("panicked: {text}")).into())
            }
        };
        let at = whole_millis(shared.inner.clock.now());
        Poll::Ready(Ended::Finished { task: *task, result, at })
    }

    /// Goes on as a task of its own.
    fn spawn(self) {
        let (shared, task) = (Arc::clone(&self.shared), self.task);
        let handle = tokio::spawn(self).abort_handle();
        let mut running = shared.running();
        if running.is_over {
            handle.abort();
        } else {
            running.handles[task as usize] = Some(handle);
        }
    }
}

impl Future for Run {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.advance(context).map(|ended| self.shared.send(vec![ended]))
    }
}

/// An error with its causes, in one line.
fn described(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    shortened(&text)
}
