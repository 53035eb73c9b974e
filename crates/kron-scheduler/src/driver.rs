//! The loop that carries out what the machine says: it reads the clock, writes, starts callbacks, and waits.
//!
//! Every wake-up is one transaction at most: the ends of runs that have ended, and the marks of those that start.
//! A callback starts only once its mark is durable, so a crash at any point is found out afterwards.

use std::collections::BTreeSet;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kron_schedule::Zone;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, OwnedMutexGuard};
use tokio::task::AbortHandle;

use crate::error::{Error, shortened};
use crate::event::{Event, late_by, lateness_bound};
use crate::flaw::{Flaw, planted};
use crate::machine::{Before, Ending, Machine, Reason, Selected};
use crate::record::{Change, ChangeKind, whole_millis};
use crate::registration::Callback;
use crate::scheduler::Inner;
use crate::store::Store;

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
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut **held.0)));
        let panicked = |_| Err(Error::store("The store panicked", std::io::Error::other("a panic")));
        (held, done.unwrap_or_else(panicked))
    };
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

/// What a run says when it is over.
enum Ended {
    Finished {
        task: u32,
        result: Result<(), Arc<str>>,
        at: Timestamp,
    },
    /// It was not started, because `stop` came first.
    Withheld {
        task: u32,
        before: Before,
    },
}

pub(crate) struct Driver {
    inner: Arc<Inner>,
    machine: Machine,
    /// `None` while a transaction is under way.
    held: Option<Held>,
    callbacks: Vec<Callback>,
    gate: Arc<Gate>,
    zone: Zone,
    last_look: Timestamp,
    ended: (UnboundedSender<Ended>, UnboundedReceiver<Ended>),
    arrived: Vec<Ended>,
    /// What has happened and is not written yet.
    pending: Vec<Change>,
    /// Tasks about which a write that failed may have left something untrue in the store.
    suspects: BTreeSet<u32>,
    backoff: Backoff,
    handles: Vec<Option<AbortHandle>>,
    is_finished: bool,
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
        let handles = callbacks.iter().map(|_| None).collect();
        Driver {
            inner,
            machine,
            held: Some(held),
            callbacks,
            gate,
            zone,
            last_look: Timestamp::MIN,
            ended: unbounded_channel(),
            arrived: Vec::new(),
            pending: Vec::new(),
            suspects: BTreeSet::new(),
            backoff: Backoff { failures: 0, until: Timestamp::MIN },
            handles,
            is_finished: false,
        }
    }

    pub(crate) async fn run(mut self) {
        let mut is_stopping = false;
        loop {
            self.drain();
            let now = self.look();
            if self.gate.is_closed() && !is_stopping {
                is_stopping = true;
                self.backoff.clear();
            }
            if now >= self.backoff.until {
                let selected = if is_stopping { Vec::new() } else { self.machine.poll_due(now) };
                if !selected.is_empty() || !self.pending.is_empty() || !self.suspects.is_empty() {
                    self.commit(selected, now).await;
                    // Something may have ended or come due meanwhile.
                    continue;
                }
            }
            if is_stopping && self.is_done() {
                break;
            }
            if self.backoff.failures > 0 && planted(Flaw::StoreErrorEndsLoop) {
                return;
            }
            self.wait(now, is_stopping).await;
        }
        self.finish();
    }

    /// Whether everything has ended, and is written or given up.
    fn is_done(&self) -> bool {
        if planted(Flaw::StopDoesNotWait) {
            return true;
        }
        if self.machine.running() > 0 {
            return false;
        }
        if self.pending.is_empty() && self.suspects.is_empty() {
            return true;
        }
        let gives_up = self.backoff.failures >= STOP_ATTEMPTS_MAX;
        if gives_up {
            tracing::error!(
                changes = self.pending.len(),
                "the scheduler stops without having stored what happened last: those tasks start again next time"
            );
        }
        gives_up
    }

    /// Takes note of every run that is over.
    fn drain(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        while let Ok(ended) = self.ended.1.try_recv() {
            arrived.push(ended);
        }
        for ended in arrived {
            match ended {
                Ended::Withheld { task, before } => {
                    self.handles[task as usize] = None;
                    self.pending.push(self.machine.handle_withheld(task, before));
                }
                Ended::Finished { task, result, at } => {
                    self.handles[task as usize] = None;
                    let ending = if result.is_ok() { Ending::Succeeded } else { Ending::Failed };
                    let change = self.machine.handle_ended(task, ending, at);
                    let name = Arc::clone(&self.machine.record(task).name);
                    let event = match (result, &change.kind) {
                        (Err(error), ChangeKind::Failed { retry_at, .. }) => {
                            Event::TaskRunFailed { task: name, at, retry_at: *retry_at, error }
                        }
                        _ => Event::TaskRunCompleted { task: name, at },
                    };
                    self.pending.push(change);
                    self.inner.tell(&event);
                }
            }
        }
    }

    /// Reads the clock, and notices what was done to it.
    fn look(&mut self) -> Timestamp {
        let now = whole_millis(self.inner.clock.now());
        let back = self.last_look.duration_since(now);
        if back > SignedDuration::from_secs(1) {
            tracing::warn!(%now, was = %self.last_look, "the clock was set back: no task runs again before it has caught up");
            self.backoff.until = self.backoff.until.min(now);
        }
        self.last_look = now;
        let zone = self.inner.clock.zone();
        if zone != self.zone {
            tracing::info!(
                from = self.zone.name(),
                to = zone.name(),
                "the time zone of the host has changed"
            );
            for task in self.machine.handle_zone(&zone) {
                tracing::warn!(%task, "in this time zone it never runs");
            }
            self.zone = zone;
        }
        now
    }

    /// One transaction: what has happened, and what is about to. Then it happens.
    async fn commit(&mut self, selected: Vec<Selected>, now: Timestamp) {
        let mut changes = std::mem::take(&mut self.pending);
        let settled = changes.len();
        changes.extend(self.suspects.iter().map(|task| {
            let kind = ChangeKind::Put(Box::new(self.machine.record(*task).clone()));
            Change { task: *task, kind }
        }));
        changes.extend(selected.iter().map(|selected| selected.change.clone()));
        if planted(Flaw::StartBeforeMark) {
            let before = self.machine.handle_marked(&selected);
            self.start(selected.clone(), before, now);
            for _ in 0..64 {
                tokio::task::yield_now().await;
            }
        }
        let held = self.held.take().expect("one transaction at a time");
        let changes = Arc::new(changes);
        let given = Arc::clone(&changes);
        let (held, result) = with_store(held, move |store| store.apply(&given)).await;
        self.held = Some(held);
        match result {
            Ok(()) => {
                self.backoff.clear();
                self.suspects.clear();
                if planted(Flaw::StartBeforeMark) {
                    return;
                }
                let before = self.machine.handle_marked(&selected);
                if self.gate.is_closed() && planted(Flaw::MarkedNeverCalled) {
                    for Selected { task, .. } in selected {
                        self.machine.handle_ended(task, Ending::Succeeded, now);
                    }
                    return;
                }
                self.start(selected, before, now);
            }
            Err(error) => {
                let mut changes = Arc::unwrap_or_clone(changes);
                changes.truncate(settled);
                self.pending = changes;
                self.suspects.extend(selected.iter().map(|selected| selected.task));
                self.machine.handle_unmarked(&selected);
                let wait = self.backoff.fail(now);
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, cause, ?wait, starts = selected.len(), "the store failed, and is tried again");
            }
        }
    }

    /// Starts the callbacks of tasks whose marks are durable.
    fn start(&mut self, selected: Vec<Selected>, before: Vec<Before>, now: Timestamp) {
        let caller = Arc::as_ptr(&self.inner) as usize;
        let batch = Arc::new(Batch {
            inner: Arc::clone(&self.inner),
            gate: Arc::clone(&self.gate),
            ended: self.ended.0.clone(),
            now,
            tasks: self.machine.len(),
        });
        for (selected, before) in selected.into_iter().zip(before) {
            let at = selected.task as usize;
            let run = Run {
                name: Arc::clone(&self.machine.record(selected.task).name),
                task: selected.task,
                reason: selected.reason,
                due_at: selected.due_at,
                preempts: selected.preempts,
                batch: Arc::clone(&batch),
                callback: self.callbacks[at].clone(),
            };
            self.handles[at] = Some(tokio::spawn(CALLED_BY.scope(caller, run.run(before))).abort_handle());
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
        let clock = Arc::clone(&self.inner.clock);
        let sleep = async move {
            if polls {
                clock.sleep(until).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::pin!(sleep);
        loop {
            tokio::select! {
                biased;
                () = self.gate.closed.notified(), if !is_stopping => return,
                ended = self.ended.1.recv() => {
                    let is_success = matches!(ended, Some(Ended::Finished { result: Ok(()), .. }));
                    self.arrived.extend(ended);
                    if is_success && !is_stopping && planted(Flaw::SuccessDoesNotWake) {
                        continue;
                    }
                    return;
                }
                () = &mut sleep => return,
            }
        }
    }

    fn finish(mut self) {
        self.is_finished = true;
        drop(self.held.take()); // others may have the store before `stop` returns
        if !self.machine.is_empty() {
            self.inner.tell(&Event::PollingStopped);
        }
        self.inner.tell(&Event::SchedulerStopped);
        self.inner.handle_stopped();
    }
}

/// A loop that ends otherwise takes everything with it, as the end of the process would.
impl Drop for Driver {
    fn drop(&mut self) {
        for handle in self.handles.iter().flatten() {
            handle.abort();
        }
        if !self.is_finished {
            drop(self.held.take());
            self.inner.handle_stopped();
        }
    }
}

/// The beginning of the next minute.
fn next_minute(now: Timestamp) -> Timestamp {
    let minute = now.as_second().div_euclid(60) + 1;
    Timestamp::from_second(minute * 60).unwrap_or(Timestamp::MAX)
}

/// What runs that start together share.
struct Batch {
    inner: Arc<Inner>,
    gate: Arc<Gate>,
    ended: UnboundedSender<Ended>,
    now: Timestamp,
    tasks: usize,
}

/// One run of one task.
struct Run {
    name: Arc<str>,
    task: u32,
    reason: Reason,
    due_at: Timestamp,
    preempts: bool,
    batch: Arc<Batch>,
    callback: Callback,
}

impl Run {
    async fn run(self, before: Before) {
        let task = self.task;
        let mut report = Report { batch: Arc::clone(&self.batch), task, is_sent: false };
        if self.batch.gate.is_closed() && !planted(Flaw::StartsAfterStop) {
            report.send(Ended::Withheld { task, before });
            return;
        }
        drop(before);
        self.tell();
        let Run { callback, batch, .. } = self;
        let result = called(callback).await;
        let at = whole_millis(batch.inner.clock.now());
        report.send(Ended::Finished { task, result, at });
    }

    fn tell(&self) {
        let Batch { inner, now: at, tasks, .. } = &*self.batch;
        let (task, at) = (Arc::clone(&self.name), *at);
        let lateness = late_by(self.due_at, inner.clock.now());
        if inner.meter.count(lateness, *tasks) {
            let bound = lateness_bound(*tasks);
            tracing::warn!(%task, ?lateness, ?bound, "the run starts later than it should");
        }
        if self.preempts {
            inner.tell(&Event::TaskRetryPreempted { task: Arc::clone(&task), at });
        }
        inner.tell(&match self.reason {
            Reason::Retry => Event::TaskRetryStarted { task, at, lateness },
            reason => Event::TaskRunStarted { task, reason, at, lateness },
        });
    }
}

/// Tells the loop that a run is over, even if the run's own end is lost to a panic.
struct Report {
    batch: Arc<Batch>,
    task: u32,
    is_sent: bool,
}

impl Report {
    fn send(&mut self, ended: Ended) {
        self.is_sent = true;
        // If nobody listens, the scheduler was dropped.
        self.batch.ended.send(ended).ok();
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // A run that is aborted is not over: the next scheduler starts it again.
        if !self.is_sent && std::thread::panicking() {
            let (task, error) = (self.task, "panicked outside its callback".into());
            self.send(Ended::Finished { task, result: Err(error), at: self.batch.now });
        }
    }
}

/// Calls a callback and waits for it; a panic, wherever it comes from, is a failure.
async fn called(callback: Callback) -> Result<(), Arc<str>> {
    let mut running = None;
    poll_fn(move |context| {
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let polled = running.get_or_insert_with(|| callback.call()).as_mut().poll(context);
            if polled.is_ready() {
                running = None; // which may panic as well
            }
            polled
        }));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => Poll::Ready(result.map_err(|error| described(&*error).into())),
            Err(panic) => {
                let rest = running.take();
                catch_unwind(AssertUnwindSafe(|| drop(rest))).ok();
                let text = panic.downcast_ref::<&str>().map(ToString::to_string);
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                Poll::Ready(Err(shortened(&format!("panicked: {text}")).into()))
            }
        }
    })
    .await
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
