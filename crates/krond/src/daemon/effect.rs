//! What the daemon wants done.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use kron_core::{CivilLabel, Decision, Passed, PeriodId, Reason, RunId};
use krontab::Entry;

use super::event::{Asker, Ticket};
use crate::process::ProcessId;
use crate::state::State;
use crate::timers::Slot;

/// Something to carry out. The order of effects on one job counts, and that of different jobs does not.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Make a child that is ready to be the run, and waits at its gate.
    PrepareChild {
        /// Its ticket.
        ticket: Ticket,
        /// What to run, and as whom.
        entry: Arc<Entry>,
        /// Which run it is.
        run: RunId,
        /// When the run was to start; `None` if no period asked for it.
        chosen: Option<Timestamp>,
    },
    /// Open the gate, and tell when it is open. From then on its end is to be told as that of this run.
    ReleaseChild {
        /// Its ticket.
        ticket: Ticket,
        /// Whose run it is.
        slot: Slot,
        /// Which run it is.
        run: RunId,
        /// Who it is.
        process: ProcessId,
    },
    /// The child is not to run.
    AbortChild(Ticket),
    /// Make a state durable.
    WriteState {
        /// Whose it is.
        slot: Slot,
        /// The state.
        state: Arc<State>,
        /// Whether to keep the old one under another name.
        archive: bool,
        /// Whether somebody waits for it, or for what comes after it, at a gate or for an answer: it goes before those that nobody
        /// waits for.
        is_awaited: bool,
    },
    /// Try again to read a state.
    LoadState(Slot, Arc<Entry>),
    /// Tell when a run from before has ended.
    Watch(Slot, RunId, ProcessId),
    /// Send a signal to a run and everything that it has started.
    Signal(Slot, RunId, ProcessId, Signal),
    /// Answer who asked for something.
    Answer(Asker, Result<Done, String>),
    /// Tell people.
    Report(Report),
    /// Nothing more is to be done, ever.
    Stopped,
}

/// How a run is asked to end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Signal {
    /// Politely.
    Term,
    /// At once.
    Kill,
}

/// What somebody asked for, and got.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Done {
    /// The run has started.
    Started(RunId, ProcessId),
    /// The watermark is here now.
    Accepted(PeriodId),
    /// It is paused, since then.
    Paused(Timestamp),
    /// It is not paused any more. It had been since then, if it had.
    Resumed(Option<Timestamp>),
}

/// When to come back. Coming back too early is harmless.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wake {
    /// At that time of the wall clock.
    pub wall: Option<Timestamp>,
    /// When the machine has been up that long.
    pub uptime: Option<Duration>,
}

/// Something that people may want to know.
#[derive(Clone, Debug)]
pub enum Report {
    /// A period has its outcome, durably.
    Settled {
        /// Whose.
        entry: Arc<Entry>,
        /// Which period, and how its time came about.
        decision: Decision,
        /// Why it ended as it did.
        reason: Reason,
        /// The process that was started for it.
        process: Option<ProcessId>,
    },
    /// Many periods have theirs.
    Passed {
        /// Whose.
        entry: Arc<Entry>,
        /// Which.
        passed: Passed,
    },
    /// A run has started that no period asked for.
    Manual {
        /// Whose.
        entry: Arc<Entry>,
        /// Which run.
        run: RunId,
        /// Who it is.
        process: ProcessId,
    },
    /// A run is over, and that is durable.
    Completed {
        /// Whose.
        entry: Arc<Entry>,
        /// Which run.
        run: RunId,
        /// Who it was.
        process: ProcessId,
        /// What it ended with, if anyone saw it.
        exit: Option<i32>,
        /// When it had started.
        started_at: Timestamp,
        /// When it had ended, as far as anyone saw it.
        ended_at: Timestamp,
    },
    /// A run is asked to end.
    Ending {
        /// Whose.
        entry: Arc<Entry>,
        /// Which run.
        run: RunId,
        /// Who it is.
        process: ProcessId,
        /// Why.
        because: Because,
        /// How.
        signal: Signal,
    },
    /// A run that does not end, whatever is done.
    Stuck {
        /// Whose.
        entry: Arc<Entry>,
        /// Which run.
        run: RunId,
        /// Who it is.
        process: ProcessId,
    },
    /// A run from before the daemon's start is under way.
    Adopted {
        /// Whose.
        entry: Arc<Entry>,
        /// Which run.
        run: RunId,
        /// Who it is.
        process: ProcessId,
    },
    /// Somebody has paused a job, durably: nothing of it starts.
    Paused {
        /// Which.
        entry: Arc<Entry>,
        /// Since when.
        since: Timestamp,
    },
    /// A job that was paused may start again.
    Resumed {
        /// Which.
        entry: Arc<Entry>,
        /// Since when it had been paused.
        since: Timestamp,
    },
    /// A job has to wait because something failed. It is tried again.
    Held {
        /// Which.
        entry: Arc<Entry>,
        /// What failed.
        operation: &'static str,
        /// How.
        error: String,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// What failed before has worked.
    Recovered(Arc<Entry>),
    /// A damaged state was put aside, and nothing up to the fence runs again.
    Fenced {
        /// Whose.
        entry: Arc<Entry>,
        /// What was wrong with it.
        why: String,
        /// Where it is.
        kept_as: String,
        /// Up to where every period counts as handled.
        fence: PeriodId,
    },
    /// Every period up to a time that lies ahead counts as handled: the clock had been wrong.
    Ahead {
        /// Whose.
        entry: Arc<Entry>,
        /// Up to where.
        watermark: PeriodId,
    },
    /// The job was edited, and its next period has another time.
    Rescheduled {
        /// Which.
        entry: Arc<Entry>,
        /// The period that was next.
        period: PeriodId,
        /// When it was to run.
        previous: Option<Timestamp>,
        /// When it is to run now; `None` if the schedule no longer has it.
        new: Option<Timestamp>,
    },
    /// The job has another zone, or its zone other rules: local times that have been handled come once more, and do
    /// not count.
    ZoneChanged {
        /// Which.
        entry: Arc<Entry>,
        /// The latest local time that has been handled.
        latest: CivilLabel,
        /// When clocks show it in the new zone. Nothing runs up to there.
        until: PeriodId,
    },
    /// Clocks went forward, and local times of the schedule did not come. They are no periods.
    Skipped {
        /// Whose.
        entry: Arc<Entry>,
        /// When clocks went forward.
        at: Timestamp,
        /// The local times; of very many the first.
        times: Vec<DateTime>,
    },
    /// There is a new configuration.
    Configured(Changes),
    /// The wall clock was set, by that many seconds.
    ClockJumped(f64),
    /// Nobody looked for so long: the machine slept, or the daemon was stopped.
    Stalled(Duration),
}

/// Why a run is asked to end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Because {
    /// It has run for as long as it may.
    Timeout,
    /// A later period takes its place.
    Replaced,
    /// The daemon stops, and was told to end its runs.
    Stopped,
}

/// What a new configuration changed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Changes {
    /// Jobs there are.
    pub jobs: usize,
    /// Jobs that were not there.
    pub added: usize,
    /// Jobs that are different.
    pub changed: usize,
    /// Jobs that are no longer there.
    pub removed: usize,
}
