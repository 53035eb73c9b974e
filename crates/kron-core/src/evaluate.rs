//! A job, its ledger and the time become steps.
//!
//! [`evaluate`] is a pure function. It performs no I/O, reads no clock and keeps nothing between
//! calls. All it may know is in its arguments, so every rule about missed, overlapping and overtaken
//! periods can be read here, and tested as a story.

use alloc::vec::Vec;

use jiff::Timestamp;
use kron_schedule::Count;

use crate::decide::{Decision, decide};
use crate::job::Job;
use crate::ledger::Ledger;
use crate::outcome::Reason;
use crate::period::{PeriodId, floor_second, to_timestamp};
use crate::policy::Overlap;
use crate::step::{Passed, Record, RunId, Settled, Step, Tally};

/// The time, and since when somebody has been looking.
///
/// What came due while nobody looked (the machine was off, the job suspended) is overtaken by the
/// latest such period. What came due since is judged by its own deadline, however late it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Watch {
    /// When watching began. Not after `now`.
    ///
    /// An adapter sets it to its `now` at start-up, at the end of a suspension, when the job's
    /// definition has changed, and after a stall or a jump of the clock forward: nobody has seen what
    /// came due in between. When the clock is set back behind it, it is lowered for good.
    pub since: Timestamp,
    /// The wall clock, read once for a whole batch. A fraction of a second does not count.
    pub now: Timestamp,
}

/// The most periods looked at one by one in a call.
///
/// A job whose windows could be open in greater number is refused ([`OPEN_MAX`](crate::OPEN_MAX)), so
/// this cuts short only how exactly a long downtime is told.
const PERIODS_MAX: usize = 10_000;

/// How far periods are counted that nobody looked at one by one; past it they are "at least" so many.
const COUNT_MAX: u64 = 1_000;

/// Says what to do about `job` now, and when to ask again.
///
/// - `job` is what its owner declares;
/// - `ledger` is what is remembered of it;
/// - `active` are its runs under way, as far as the adapter can tell;
/// - `watch` is the time, and since when somebody has been looking.
///
/// Perform the steps **in order**, finishing each before the next. A record changes the ledger, so
/// evaluating again at the same time returns no steps. Then wait until the returned instant, or
/// until something changes (a run ends, the job is edited, the clock is set), and evaluate again.
/// Waking too early is harmless.
#[must_use]
pub fn evaluate(
    job: &Job,
    ledger: &Ledger,
    active: &[RunId],
    watch: Watch,
) -> (Vec<Step>, Option<Timestamp>) {
    if job.policy().suspend {
        return (Vec::new(), None);
    }
    let view = View::new(job, ledger, active, watch);
    // There may be thousands of open periods, and each look at one decides it anew. So one look is enough for
    // a job that is idle, and nothing is kept of it.
    let (mut is_due, mut waiting) = (false, None);
    for open in view.open() {
        if view.is_due(&open) {
            is_due = true;
        } else {
            waiting = Some(waiting.map_or(open.key, |first: i64| first.min(open.key)));
        }
    }
    let mut steps = Vec::new();
    if is_due {
        let mut scribe =
            Scribe { view: &view, open: view.open().collect(), watermark: ledger.watermark(), steps };
        scribe.pass_over();
        scribe.judge();
        steps = scribe.steps;
    }
    (steps, view.wake_at(waiting))
}

/// One job at one moment. Times are whole seconds.
struct View<'a> {
    job: &'a Job,
    ledger: &'a Ledger,
    active: &'a [RunId],
    now: i64,
    since: i64,
    /// The latest nominal time whose window can have opened.
    horizon: i64,
}

/// A period that has no outcome yet and whose window has opened.
#[derive(Clone, Copy)]
struct Open {
    period: PeriodId,
    decision: Decision,
    /// When it comes due: the chosen time, or the opening of a window that holds none.
    key: i64,
    /// The last second of its window.
    closes: i64,
    /// Whether the schedule has it; a pending period of an edited job may be gone, or another.
    exists: bool,
}

impl<'a> View<'a> {
    fn new(job: &'a Job, ledger: &'a Ledger, active: &'a [RunId], watch: Watch) -> View<'a> {
        let now = floor_second(watch.now);
        let since = match ledger.watermark() {
            Some(_) => floor_second(watch.since).min(now),
            None => now, // a job never seen has not been watched
        };
        View { job, ledger, active, now, since, horizon: now + job.window().opens_before().as_seconds() }
    }

    /// Open periods: those past the watermark, the latest first, and then the pending ones.
    fn open(&self) -> impl Iterator<Item = Open> + '_ {
        let pending = self.ledger.pending().iter().rev().map(|period| self.look_at_pending(*period));
        self.past_watermark().chain(pending)
    }

    /// Open periods past the watermark, the latest first. Ends where every earlier one came due
    /// unwatched and has an outcome that is in no doubt: [`Scribe::pass_over`] settles those as one.
    fn past_watermark(&self) -> impl Iterator<Item = Open> + '_ {
        let mut next = self.period_at_or_before(self.horizon);
        let mut due = false;
        core::iter::from_fn(move || {
            let period = next.filter(|period| Some(*period) > self.ledger.watermark())?;
            let open = self.look_at(period);
            if due && self.is_history(&open) {
                return None;
            }
            due |= open.key <= self.now;
            next = self.period_at_or_before(second(period) - 1);
            Some(open)
        })
        .take(PERIODS_MAX)
    }

    fn look_at(&self, period: PeriodId) -> Open {
        let decision = decide(self.job, period.nominal());
        let (opens, closes) = (decision.window_start(), decision.window_end());
        Open {
            period,
            decision,
            key: floor_second(decision.chosen().unwrap_or(opens)),
            closes: floor_second(closes),
            exists: true,
        }
    }

    fn look_at_pending(&self, period: PeriodId) -> Open {
        let exists = !self.ledger.is_displaced() && self.period_at_or_before(second(period)) == Some(period);
        Open { exists, ..self.look_at(period) }
    }

    /// Whether there is something to settle: its time has come, it is gone, or a run of it is there.
    fn is_due(&self, open: &Open) -> bool {
        open.key <= self.now || !open.exists || self.is_active(open)
    }

    fn is_active(&self, open: &Open) -> bool {
        self.active.contains(&RunId::Period(open.period))
    }

    /// Whether a period, and so every earlier one, came due unwatched, and by its deadline is either
    /// surely past it or can never be.
    fn is_history(&self, open: &Open) -> bool {
        open.closes < self.since
            && self.job.policy().deadline.is_none_or(|_| self.is_past_deadline(open.closes))
    }

    /// Whether it is too late for what was to start at that second.
    fn is_past_deadline(&self, due: i64) -> bool {
        // `now` is a whole second, so a fraction of the deadline makes no difference.
        self.job.policy().deadline.is_some_and(|deadline| self.now - due > deadline.as_seconds())
    }

    /// When to look again, once everything that is due has its outcome. `waiting` is the first second at
    /// which an open period comes due.
    fn wake_at(&self, waiting: Option<i64>) -> Option<Timestamp> {
        // Of the windows that have not opened, the first may bring a run at its chosen time; a later
        // one may too, but not before it opens.
        let opened = self.ledger.watermark().map_or(self.horizon, |mark| second(mark).max(self.horizon));
        let first = self.period_after(opened).map(|period| self.look_at(period));
        let next = first.and_then(|first| self.period_after(second(first.period)));
        let opens = |period: PeriodId| floor_second(self.job.window().bounds(period.nominal()).0);
        let looks = [waiting, first.map(|first| first.key), next.map(opens)];
        // At the end of jiff's time a window that has not opened yet can already be cut short.
        looks.into_iter().flatten().filter(|look| *look > self.now).min().map(to_timestamp)
    }

    fn period_at_or_before(&self, second: i64) -> Option<PeriodId> {
        self.job.schedule().prev_at_or_before(to_timestamp(second)).map(period_of)
    }

    fn period_after(&self, second: i64) -> Option<PeriodId> {
        self.job.schedule().next_after(to_timestamp(second)).map(period_of)
    }
}

/// The period of an occurrence. One between two seconds comes due at the later of them, together with
/// every other since the earlier: nobody looks more often than once a second.
fn period_of(occurrence: Timestamp) -> PeriodId {
    let whole = occurrence.subsec_nanosecond() == 0;
    PeriodId::new(to_timestamp(floor_second(occurrence) + i64::from(!whole)))
}

/// The nominal time of a period, as a number.
fn second(period: PeriodId) -> i64 {
    floor_second(period.nominal())
}

/// Writes the steps down, one period after another.
struct Scribe<'a> {
    view: &'a View<'a>,
    /// What is open, apart from what was passed over.
    open: Vec<Open>,
    /// The ledger's watermark, once the steps so far are performed.
    watermark: Option<PeriodId>,
    steps: Vec<Step>,
}

impl Scribe<'_> {
    /// Settles, in one record, what came due unwatched and has been overtaken.
    ///
    /// A job that was never seen has missed nothing: its earlier periods are not told of at all.
    fn pass_over(&mut self) {
        let view = self.view;
        let due = |open: &&Open| open.exists && open.key <= view.now;
        let current = self.open.iter().filter(due).map(|open| open.period).max();
        let overtaken = |open: &Open| {
            due(&open) && open.key < view.since && Some(open.period) != current && !view.is_active(open)
        };
        let mut tallies = Tallies::default();
        let mut settles = Vec::new();
        for open in self.open.iter().filter(|open| overtaken(open)) {
            tallies.add(view.reason_overtaken(open), open.period, open.period, Count::Exactly(1));
            if Some(open.period) <= view.ledger.watermark() {
                settles.push(open.period);
            }
        }
        self.tally_history(&mut tallies);
        self.open.retain(|open| !overtaken(open));
        let tallies = tallies.0;
        let (Some(last), Some(_)) = (tallies.iter().map(|tally| tally.last).max(), view.ledger.watermark())
        else {
            return;
        };
        let overtakes = self.pass(last);
        self.steps.push(Step::Record(Record::Passed(Passed { tallies, settles, overtakes })));
    }

    /// Counts the periods between the watermark and those that were looked at.
    fn tally_history(&self, tallies: &mut Tallies) {
        let view = self.view;
        let Some(watermark) = view.ledger.watermark() else { return };
        let seen = self.open.iter().map(|open| open.period).filter(|period| *period > watermark).min();
        let last = seen.and_then(|seen| view.period_at_or_before(second(seen) - 1));
        let Some(last) = last.filter(|last| *last > watermark) else { return };
        // What is surely past its deadline was missed, even where more could not be looked at.
        let missed = view.last_missed().filter(|missed| *missed > watermark).map(|missed| missed.min(last));
        if let Some(missed) = missed {
            view.tally(watermark, missed, Reason::DeadlinePassed, tallies);
        }
        view.tally(missed.unwrap_or(watermark), last, Reason::Superseded, tallies);
    }

    /// Settles what is due, in the order it came due.
    fn judge(&mut self) {
        let view = self.view;
        let mut due: Vec<Open> = self.open.iter().copied().filter(|open| view.is_due(open)).collect();
        due.sort_by_key(|open| (open.key, open.period));
        let refusals: Vec<Option<Reason>> = due.iter().map(|open| view.refusal(open)).collect();
        let last_start = refusals.iter().rposition(Option::is_none);
        let mut running = view.active.to_vec();
        for (at, (open, refusal)) in due.iter().zip(refusals).enumerate() {
            let reason = refusal.unwrap_or_else(|| match view.job.policy().overlap {
                Overlap::Forbid if !running.is_empty() => Reason::StillRunning,
                // It would be ended as soon as it had begun.
                Overlap::Replace if Some(at) != last_start => Reason::Superseded,
                Overlap::Allow | Overlap::Forbid | Overlap::Queue | Overlap::Replace => Reason::Started,
            });
            if reason == Reason::Started && view.job.policy().overlap == Overlap::Replace {
                self.steps.extend(running.drain(..).map(Step::Terminate));
            }
            self.settle(open, reason);
            if reason == Reason::Started {
                running.push(RunId::Period(open.period));
                self.steps.push(Step::Start(open.decision));
            }
        }
    }

    /// Writes the outcome of a period down. From then on the watermark covers it.
    fn settle(&mut self, settled: &Open, reason: Reason) {
        let overtakes = self.pass(settled.period);
        let decision = settled.decision;
        self.steps.push(Step::Record(Record::Settled(Settled { decision, reason, overtakes })));
    }

    /// Raises the watermark, and names what is still open below it and was not before.
    fn pass(&mut self, period: PeriodId) -> Vec<PeriodId> {
        let passed = |open: &&Open| Some(open.period) > self.watermark && open.period < period;
        let mut overtakes: Vec<PeriodId> = self.open.iter().filter(passed).map(|open| open.period).collect();
        overtakes.sort_unstable();
        self.watermark = self.watermark.max(Some(period));
        overtakes
    }
}

impl View<'_> {
    /// Why a due period is not to be started, whatever else is running. The order is the rule.
    fn refusal(&self, open: &Open) -> Option<Reason> {
        if !open.exists {
            Some(Reason::Rescheduled)
        } else if self.is_active(open) {
            Some(Reason::FoundRunning)
        } else if open.decision.chosen().is_none() {
            Some(Reason::NoCandidate)
        } else if self.is_past_deadline(open.key) {
            Some(Reason::DeadlinePassed)
        } else {
            None
        }
    }

    /// The latest period that is past its deadline wherever in its window it was to run.
    fn last_missed(&self) -> Option<PeriodId> {
        let deadline = self.job.policy().deadline?.as_seconds();
        let any = to_timestamp(self.now);
        let after_nominal = floor_second(self.job.window().bounds(any).1) - self.now;
        self.period_at_or_before(self.now - deadline - after_nominal - 1)
    }

    /// Counts the periods after one, up to and including another.
    fn tally(&self, after: PeriodId, last: PeriodId, reason: Reason, tallies: &mut Tallies) {
        let Some(first) = self.period_after(second(after)).filter(|first| *first <= last) else { return };
        // Of several occurrences between two seconds one period is made.
        let seconds = (second(last) - second(after)).unsigned_abs();
        let count = match self.job.schedule().count_between(after.nominal(), last.nominal(), COUNT_MAX) {
            Count::Exactly(count) => Count::Exactly(count.min(seconds)),
            Count::AtLeast(count) => Count::AtLeast(count.min(seconds)),
        };
        tallies.add(reason, first, last, count);
    }

    /// Why a period ends that a later one has overtaken.
    fn reason_overtaken(&self, open: &Open) -> Reason {
        self.refusal(open).unwrap_or(Reason::Superseded)
    }
}

/// Tallies, one for each reason that there is.
#[derive(Default)]
struct Tallies(Vec<Tally>);

impl Tallies {
    fn add(&mut self, reason: Reason, first: PeriodId, last: PeriodId, count: Count) {
        match self.0.iter_mut().find(|tally| tally.reason == reason) {
            Some(tally) => {
                tally.first = tally.first.min(first);
                tally.last = tally.last.max(last);
                tally.count = sum(tally.count, count);
            }
            None => self.0.push(Tally { reason, first, last, count }),
        }
    }
}

fn sum(a: Count, b: Count) -> Count {
    match (a, b) {
        (Count::Exactly(a), Count::Exactly(b)) => Count::Exactly(a + b),
        (Count::Exactly(a) | Count::AtLeast(a), Count::Exactly(b) | Count::AtLeast(b)) => {
            Count::AtLeast(a + b)
        }
    }
}
