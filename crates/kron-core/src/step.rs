//! What `evaluate` asks an adapter to carry out.

use alloc::vec::Vec;

use kron_schedule::Count;

use crate::decide::Decision;
use crate::outcome::Reason;
use crate::period::PeriodId;

/// Something the adapter carries out. Steps are performed in order, each finished before the next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make this durable before anything that follows.
    Record(Record),
    /// Start the run of this period; its record is durable by now.
    Start(Decision),
    /// End this run, and wait until it has ended.
    Terminate(RunId),
}

/// Something that happened, to be remembered. [`Ledger::apply`](crate::Ledger::apply) says what of it
/// matters for what may still happen; the rest is for people.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// One period has its outcome.
    Settled(Settled),
    /// Many periods have theirs, without having been looked at one by one.
    Passed(Passed),
    /// A run that no period asked for has started.
    Manual(RunId),
    /// A run has ended.
    Ended(RunId),
}

/// One period with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The period, and how its chosen time came about.
    pub decision: Decision,
    /// Why it ended as it did.
    pub reason: Reason,
    /// Earlier periods that still wait for their chosen time. They stay open.
    pub overtakes: Vec<PeriodId>,
}

/// Periods that came due while nobody watched, and were overtaken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Passed {
    /// What became of them; one entry for each reason.
    pub tallies: Vec<Tally>,
    /// Those of them that the ledger had listed as pending.
    pub settles: Vec<PeriodId>,
    /// Earlier periods that still wait for their chosen time. They stay open.
    pub overtakes: Vec<PeriodId>,
}

/// How many periods ended for one reason, and the first and last of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tally {
    /// Why they ended as they did.
    pub reason: Reason,
    /// The earliest of them.
    pub first: PeriodId,
    /// The latest of them.
    pub last: PeriodId,
    /// How many there are, as far as they were counted.
    pub count: Count,
}

/// A run of a job.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum RunId {
    /// The one run of a period.
    Period(PeriodId),
    /// A run that somebody asked for by hand. The adapter numbers them.
    Manual(u64),
}
