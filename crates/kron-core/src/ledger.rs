//! What must be remembered of a job so that no period is handled twice.

use alloc::vec::Vec;

use jiff::Timestamp;

use crate::civil::CivilLabel;
use crate::job::Job;
use crate::outcome::Reason;
use crate::period::PeriodId;
use crate::step::{Passed, Record, RunId, Settled};

/// The memory of one job.
///
/// Every period up to the watermark is handled, except those listed as pending: they were overtaken
/// by a later one and still wait for their own chosen time. There is no way to make a handled period
/// open again: the watermark only grows, a period becomes pending only when the watermark passes it,
/// and leaves that list once. [`accept_clock`](Ledger::accept_clock) is the one exception, and its
/// name says when to use it.
///
/// ```
/// use kron_core::{Ledger, PeriodId};
///
/// let noon: PeriodId = "2026-03-01T12:00:00Z".parse()?;
/// let one: PeriodId = "2026-03-01T13:00:00Z".parse()?;
/// let ledger = Ledger::fenced(noon);
/// assert!(ledger.is_handled(noon));
/// assert!(!ledger.is_handled(one));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ledger {
    watermark: Option<PeriodId>,
    /// Ascending, none later than the watermark.
    pending: Vec<PeriodId>,
    /// Recorded as started, and not as ended.
    active: Vec<RunId>,
    /// Clocks show other times at the periods than when they were remembered.
    is_displaced: bool,
}

impl Ledger {
    /// The ledger of a job that was never seen.
    #[must_use]
    pub fn new() -> Ledger {
        Ledger::default()
    }

    /// A ledger that takes every period up to here for handled.
    ///
    /// For a job whose memory is lost: nothing that may have run can run again.
    #[must_use]
    pub fn fenced(at: PeriodId) -> Ledger {
        Ledger { watermark: Some(at), ..Ledger::default() }
    }

    /// A ledger as a store has kept it. Pending periods past the watermark contradict it and are dropped.
    #[must_use]
    pub fn restored(watermark: Option<PeriodId>, pending: Vec<PeriodId>, active: Vec<RunId>) -> Ledger {
        let mut ledger = Ledger { watermark, pending, active, is_displaced: false };
        ledger.pending.retain(|period| Some(*period) <= watermark);
        ledger.pending.sort_unstable();
        ledger.pending.dedup();
        let mut known = Vec::new();
        ledger.active.retain(|run| {
            !known.contains(run) && {
                known.push(*run);
                true
            }
        });
        ledger
    }

    /// Every period up to here is handled, except the pending ones. `None` before the first.
    #[must_use]
    pub fn watermark(&self) -> Option<PeriodId> {
        self.watermark
    }

    /// Periods overtaken by the watermark that still wait for their chosen time, in order.
    #[must_use]
    pub fn pending(&self) -> &[PeriodId] {
        &self.pending
    }

    /// Runs recorded as started and not as ended, in the order of their starts.
    #[must_use]
    pub fn active(&self) -> &[RunId] {
        &self.active
    }

    /// Whether a period has its outcome. Such a period is never started.
    #[must_use]
    pub fn is_handled(&self, period: PeriodId) -> bool {
        Some(period) <= self.watermark && self.pending.binary_search(&period).is_err()
    }

    /// Whether the watermark lies past the latest nominal time whose window can be open now: the clock
    /// was once set wrong, and the job waits until time has caught up.
    #[must_use]
    pub fn is_ahead_of(&self, latest_open: Timestamp) -> bool {
        self.watermark.is_some_and(|watermark| watermark.nominal() > latest_open)
    }

    /// Remembers what happened. Doing so again, even much later, changes nothing more.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Settled(Settled { decision, reason, overtakes }) => {
                let period = decision.period_id();
                let is_new = !self.is_handled(period);
                if is_new && matches!(reason, Reason::Started | Reason::FoundRunning) {
                    self.begin(RunId::Period(period));
                }
                self.pass(period, overtakes);
                self.settle(period);
            }
            Record::Passed(Passed { tallies, settles, overtakes }) => {
                if let Some(last) = tallies.iter().map(|tally| tally.last).max() {
                    self.pass(last, overtakes);
                }
                for period in settles {
                    self.settle(*period);
                }
            }
            Record::Manual(run) => self.begin(*run),
            Record::Ended(run) => self.active.retain(|active| active != run),
        }
    }

    /// The same memory with the watermark set to `now`, even if that is earlier, and nothing pending.
    ///
    /// Only for an operator who knows that a wrong future clock had set the watermark: periods
    /// between `now` and the old watermark may run again.
    #[must_use]
    pub fn accept_clock(self, now: PeriodId) -> Ledger {
        Ledger { active: self.active, ..Ledger::fenced(now) }
    }

    /// The same memory for a job that may have another zone than when the latest local time of a handled period
    /// was `latest`: nothing runs that clocks had shown by then, and what was pending is gone.
    ///
    /// While clocks show at the watermark what they did, nothing changes by it. It never holds back for longer than
    /// two zones lie apart.
    #[must_use]
    pub fn carried(self, latest: &CivilLabel, job: &Job) -> Ledger {
        match (self.watermark, latest.reached_by(job)) {
            (Some(mark), Some(reached)) if mark != reached => {
                Ledger { watermark: Some(mark.max(reached)), is_displaced: true, ..self }
            }
            _ => self,
        }
    }

    /// Whether the pending periods may be others than those that were remembered.
    pub(crate) fn is_displaced(&self) -> bool {
        self.is_displaced
    }

    fn begin(&mut self, run: RunId) {
        if !self.active.contains(&run) {
            self.active.push(run);
        }
    }

    /// Raises the watermark to a period; what it overtakes stays open, if it was open.
    fn pass(&mut self, period: PeriodId, overtakes: &[PeriodId]) {
        if Some(period) <= self.watermark {
            return;
        }
        let before = self.watermark;
        self.watermark = Some(period);
        self.pending.extend(overtakes.iter().filter(|open| Some(**open) > before && **open < period));
        self.pending.sort_unstable();
        self.pending.dedup();
    }

    /// A period at or below the watermark has its outcome.
    fn settle(&mut self, period: PeriodId) {
        if let Ok(at) = self.pending.binary_search(&period) {
            self.pending.remove(at);
        }
    }
}
