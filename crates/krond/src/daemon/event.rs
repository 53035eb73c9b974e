//! What happens to the daemon.

use std::sync::Arc;

use kron_core::RunId;
use krontab::Entry;
use serde::{Deserialize, Serialize};

pub use crate::process::Ticket;

use super::effect::Report;
use crate::process::ProcessId;
use crate::store::Loaded;
use crate::timers::Slot;

/// Something that has happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed.
    Tick,
    /// This is the configuration now: at the start, and whenever it was read again.
    Configured(Vec<Configured>),
    /// Jobs that are no longer configured, and may have runs under way from before.
    LeftBehind(Vec<Configured>),
    /// A state that could not be read was tried again.
    StateLoaded(Slot, Box<Recovered>),
    /// The state that was to be written is durable.
    StateWritten(Slot),
    /// The state that was to be written may not be durable.
    StateFailed(Slot, String),
    /// The child is there and waits at its gate.
    SpawnReady(Ticket, ProcessId),
    /// There is no such child.
    SpawnFailed(Ticket, String),
    /// The gate of a child that was released is open, or nobody holds it any more.
    Released(Ticket),
    /// A run is over; if it was ended by the daemon, so is everything that it had started. The exit code is 128 and
    /// the number for a signal, and `None` where nobody saw it.
    Exited(Slot, RunId, Option<i32>),
    /// Somebody asks for something.
    Command(Command),
}

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Asker(pub u64);

/// A job as its file has it.
#[derive(Clone, Debug)]
pub struct Configured {
    /// What its line says.
    pub entry: Arc<Entry>,
    /// What is remembered of it. Needed unless the daemon [knows](super::Daemon::knows) it already.
    pub memory: Option<Recovered>,
}

/// What is left of a job from before.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// What the store found.
    pub loaded: Loaded,
    /// The runs of it that are under way indeed.
    pub alive: Vec<RunId>,
}

impl Recovered {
    /// What people must be told, if the job's state was damaged. It is told once: the next who looks finds the fence.
    pub(crate) fn alert(&self, entry: &Arc<Entry>) -> Option<Report> {
        let Loaded::Fenced { state, why, kept_as } = &self.loaded else { return None };
        let fence = state.watermark().expect("a fenced state has one");
        let (why, kept_as) = (why.clone(), kept_as.clone());
        Some(Report::Fenced { entry: Arc::clone(entry), why, kept_as, fence })
    }
}

/// What somebody asks for.
#[derive(Clone, Debug)]
pub enum Command {
    /// A run now, which has nothing to do with any period.
    Run(Slot, Asker),
    /// The clock is right and the watermark of this job was set by a wrong one.
    AcceptClock(Slot, Asker),
    /// Nothing of this job is to start, until it is resumed.
    Pause(Slot, Asker),
    /// What was paused may start again.
    Resume(Slot, Asker),
    /// No more starts, and then the end.
    Stop(Farewell),
}

/// What becomes of the runs when the daemon stops.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Farewell {
    /// They go on without it, and the next daemon takes them over.
    #[default]
    Leave,
    /// It waits until they are over.
    Wait,
    /// It ends them.
    End,
}
