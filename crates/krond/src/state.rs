//! What is remembered of one job: STATE's record, as a value.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use kron_core::{CivilLabel, Decision, Job, Ledger, Outcome, PeriodId, Reason, Record, RunId, decide};

use crate::process::ProcessId;

/// The memory of one job. It changes only by [`apply`](State::apply) and [`end`](State::end), on a copy that
/// replaces the old one when it is durable.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Whose memory it is.
    pub identity: String,
    /// Since when nothing of it starts, if somebody has paused it.
    pub paused: Option<Timestamp>,
    /// How the period of the watermark ended; `None` before the first.
    pub last: Option<Last>,
    /// The latest local time of a handled period, for the day that the job is given another zone.
    pub latest: Option<CivilLabel>,
    /// Periods overtaken by the watermark that still wait for their chosen time, in order.
    pub pending: Vec<PeriodId>,
    /// Runs that have started and are not known to have ended, in the order of their starts.
    pub runs: Vec<Run>,
    /// How the latest periods ended, the oldest first. For people; nothing is decided by it.
    pub history: VecDeque<Ending>,
}

/// How the latest handled period ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Last {
    /// The watermark: every period up to here is handled, except the pending ones.
    pub period: PeriodId,
    /// How it ended.
    pub outcome: Outcome,
    /// When it was to run; `None` if unschedulable.
    pub chosen: Option<Timestamp>,
}

/// A run under way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Run {
    /// Which run of the job.
    pub id: RunId,
    /// The process that was started.
    pub process: ProcessId,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it was to start; `None` for a run that no period asked for.
    pub chosen: Option<Timestamp>,
    /// The seed of its decision, to reproduce it by; empty for a run that no period asked for.
    pub seed_hash: String,
    /// How long it may run, as its job said when it was started.
    pub timeout: Option<Duration>,
}

/// How a period ended, in full.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ending {
    /// The period.
    pub period: PeriodId,
    /// Why it ended as it did, and so how.
    pub reason: Reason,
    /// When it was to run; `None` if unschedulable.
    pub chosen: Option<Timestamp>,
    /// When its run started, if there was one.
    pub started_at: Option<Timestamp>,
    /// When its run ended, or when it was settled without one.
    pub completed_at: Timestamp,
    /// What the run ended with: an exit code, 128 and the number of a signal, or `None` where nobody saw it.
    pub exit: Option<i32>,
    /// The seed of its decision, to reproduce it by.
    pub seed_hash: String,
}

impl State {
    /// The memory of a job that was never seen.
    #[must_use]
    pub fn new(identity: impl Into<String>) -> State {
        State {
            identity: identity.into(),
            paused: None,
            last: None,
            latest: None,
            pending: Vec::new(),
            runs: Vec::new(),
            history: VecDeque::new(),
        }
    }

    /// The memory of a job whose memory is lost: nothing up to there can run again.
    #[must_use]
    pub fn fenced(job: &Job, at: PeriodId) -> State {
        let last = Last { period: at, outcome: Outcome::Skipped, chosen: None };
        State { last: Some(last), latest: CivilLabel::of(job, at), ..State::new(job.identity()) }
    }

    /// What the engine needs to know of it.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let runs = self.runs.iter().map(|run| run.id).collect();
        Ledger::restored(self.watermark(), self.pending.clone(), runs)
    }

    /// The same, for a job that may have another zone than when it was written.
    #[must_use]
    pub fn ledger_of(&self, job: &Job) -> Ledger {
        match &self.latest {
            Some(latest) => self.ledger().carried(latest, job),
            None => self.ledger(),
        }
    }

    /// Every period up to here is handled, except the pending ones.
    #[must_use]
    pub fn watermark(&self) -> Option<PeriodId> {
        self.last.map(|last| last.period)
    }

    /// Remembers an outcome, or many. A start comes with its run.
    pub fn apply(&mut self, record: &Record, job: &Job, run: Option<Run>, now: Timestamp) {
        let mut ledger = self.ledger();
        ledger.apply(record);
        match record {
            Record::Settled(settled) => {
                self.raise(&ledger, settled.reason, &settled.decision, job);
                if settled.reason.outcome() != Outcome::Executed {
                    self.history.push_back(Ending::unstarted(&settled.decision, settled.reason, now));
                }
            }
            Record::Passed(passed) => {
                for tally in &passed.tallies {
                    let last = decide(job, tally.last.nominal());
                    self.raise(&ledger, tally.reason, &last, job);
                    self.history.push_back(Ending::unstarted(&last, tally.reason, now));
                }
            }
            Record::Manual(_) | Record::Ended(_) => {}
        }
        self.pending = ledger.pending().to_vec();
        self.runs.extend(run);
    }

    /// Remembers that a run is over. A run of a period ends in its history, and its outcome stays what it was.
    pub fn end(&mut self, run: RunId, exit: Option<i32>, now: Timestamp) {
        let Some(at) = self.runs.iter().position(|known| known.id == run) else { return };
        let run = self.runs.remove(at);
        if let RunId::Period(period) = run.id {
            self.history.push_back(Ending {
                period,
                reason: Reason::Started,
                chosen: run.chosen,
                started_at: Some(run.started_at),
                completed_at: now,
                exit,
                seed_hash: run.seed_hash,
            });
        }
    }

    /// The same memory with the watermark at `now`, even if that is earlier. See [`Ledger::accept_clock`].
    #[must_use]
    pub fn accept_clock(self, job: &Job, now: PeriodId) -> State {
        let fenced = State::fenced(job, now);
        State { paused: self.paused, runs: self.runs, history: self.history, ..fenced }
    }

    /// Forgets the oldest endings beyond that many.
    pub fn cap_history(&mut self, most: usize) {
        let excess = self.history.len().saturating_sub(most);
        self.history.drain(..excess);
    }

    /// Notes how the period at the watermark ended, if that is the one.
    fn raise(&mut self, after: &Ledger, reason: Reason, decision: &Decision, job: &Job) {
        let period = decision.period_id();
        if after.watermark() == Some(period) && self.watermark() < Some(period) {
            let outcome = reason.outcome();
            self.last = Some(Last { period, outcome, chosen: decision.chosen() });
            self.latest = self.latest.take().max(CivilLabel::of(job, period));
        }
    }
}

impl Ending {
    fn unstarted(decision: &Decision, reason: Reason, now: Timestamp) -> Ending {
        Ending {
            period: decision.period_id(),
            reason,
            chosen: decision.chosen(),
            started_at: None,
            completed_at: now,
            exit: None,
            seed_hash: decision.seed_hash().to_string(),
        }
    }
}
