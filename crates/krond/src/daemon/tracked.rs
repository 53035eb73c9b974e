//! One job in the daemon, and what is being done about it.
//!
//! A job does one thing at a time. When it is done, [`Tracked::advance`] finds the next: first what has
//! happened is recorded, then the engine's steps are carried out, then what somebody asked for is done, and then the
//! engine is asked again.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kron_core::{
    Job, Overlap, PeriodId, Policy, Reason, Record, RunId, Settled, Step, Watch, decide, evaluate,
};
use krontab::Entry;

use super::disk::Disk;
use super::effect::{Because, Done, Effect, Report, Signal};
use super::event::{Asker, Farewell, Recovered, Ticket};
use super::{Manners, STAMP_MAX};
use crate::anchor;
use crate::moment::Moment;
use crate::process::ProcessId;
use crate::state::{Run, State};
use crate::store::Loaded;
use crate::timers::Slot;

/// How long to wait before the first retry. Each further one waits twice as long, up to the last.
const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(4);

/// How long a run that was killed may take to be gone before that is an error.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// How many local times that did not come are told of by name.
const SKIPPED_MAX: usize = 60;

/// A job, and everything that is known of it and being done about it.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) entry: Arc<Entry>,
    /// What is durable.
    pub(super) state: Arc<State>,
    /// Whether `state` is what the store holds. If not, nothing may be done but to read it.
    is_known: bool,
    /// Since when somebody watches.
    pub(super) since: Timestamp,
    /// The second that a look is due with.
    pub(super) look: Option<i64>,
    /// When to look next, unless something happens.
    pub(super) wake: Option<i64>,
    /// The second that the daemon's timers have for it. Whatever else they have is of the past.
    pub(super) timer: Option<i64>,
    /// What the engine wants done, and is not begun.
    steps: VecDeque<Step>,
    /// When the engine was asked for them.
    decided: Duration,
    /// Since the engine was asked, the machine has slept or the clock has jumped: what it said was said for another
    /// time.
    is_outdated: bool,
    /// Runs that are over, and whose end is not recorded.
    pub(super) ended: Vec<Ended>,
    pub(super) asked: VecDeque<Asked>,
    doing: Doing,
    hold: Option<Hold>,
    pub(super) live: Vec<Live>,
    /// It is no longer configured, and goes when its runs are over.
    pub(super) removed: bool,
    /// How the daemon stops, once it does.
    farewell: Option<Farewell>,
    /// The second it was last looked at.
    looked: Option<i64>,
    /// Whether people were told that its watermark lies ahead.
    is_told_ahead: bool,
    /// What the daemon's alarms have for it.
    pub(super) alarm_at: Option<Duration>,
}

/// The one thing that is being done.
#[derive(Debug)]
enum Doing {
    Nothing,
    /// The state is being read.
    Loading,
    /// A child is being made, by the definition of that time.
    Preparing(Ticket, Arc<Entry>, Prepared),
    /// A state is being written.
    Writing(Writing),
    /// A run is to be over before the next step.
    Terminating(RunId),
}

/// What a child is for.
#[derive(Debug)]
enum Prepared {
    Period(Settled),
    Manual(u64, Asker),
}

#[derive(Debug)]
struct Writing {
    next: Arc<State>,
    /// What people are told when it is durable.
    reports: Vec<Report>,
    /// The child that goes on when it is durable.
    child: Option<(Ticket, Run)>,
    /// Ends recorded by it, to be recorded again if it fails.
    ended: Vec<Ended>,
    asker: Option<(Asker, Done)>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    run: RunId,
    exit: Option<i32>,
    at: Timestamp,
}

#[derive(Debug)]
pub(super) enum Asked {
    Run(Asker),
    AcceptClock(Asker),
    Pause(Asker),
    Resume(Asker),
}

impl Asked {
    pub(super) fn asker(&self) -> Asker {
        let (Asked::Run(asker) | Asked::AcceptClock(asker) | Asked::Pause(asker) | Asked::Resume(asker)) =
            self;
        *asker
    }
}

/// A run under way.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: RunId,
    process: ProcessId,
    /// What it waits at its gate with, as long as that is not known to be open.
    at_gate: Option<Ticket>,
    /// When it has run for as long as it may.
    timeout_at: Option<Duration>,
    ending: Option<Ending>,
}

/// A run that was asked to end.
#[derive(Clone, Copy, Debug)]
struct Ending {
    because: Because,
    signal: Signal,
    /// When more is to be done about it.
    next_at: Duration,
}

/// Why a job has to wait.
#[derive(Clone, Debug)]
pub struct Hold {
    /// What failed.
    pub operation: &'static str,
    /// How.
    pub error: String,
    /// How often in a row.
    pub failures: u32,
    /// When it is tried again.
    pub until: Duration,
    /// Whether that is under way.
    is_trying: bool,
}

/// What a job is at, for people.
#[derive(Clone, Debug)]
pub struct Activity {
    /// When it is to be looked at next; `None` if suspended or paused, or if its schedule has ended.
    pub wake: Option<Timestamp>,
    /// Why it has to wait, if it has to.
    pub hold: Option<Hold>,
    /// Whether it is no longer configured.
    pub removed: bool,
    /// Whether what is remembered of it could be read. Otherwise nothing can be said or done about it.
    pub is_known: bool,
}

impl Activity {
    /// Why what is asked about its memory has no answer, if that could not be read.
    #[must_use]
    pub fn unknown(&self) -> Option<String> {
        let hold = self.hold.as_ref().filter(|_| !self.is_known)?;
        Some(format!("its state could not be read: {}", hold.error))
    }
}

/// What a job's work needs of the daemon.
pub(super) struct Work<'a> {
    pub(super) slot: Slot,
    pub(super) now: Moment,
    pub(super) manners: &'a Manners,
    pub(super) stopping: bool,
    pub(super) last_ticket: &'a mut u64,
    pub(super) tickets: &'a mut HashMap<Ticket, Slot>,
    pub(super) disk: &'a mut Disk,
    pub(super) effects: &'a mut Vec<Effect>,
}

impl Work<'_> {
    fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn report(&mut self, report: Report) {
        self.push(Effect::Report(report));
    }

    pub(super) fn answer(&mut self, asker: Asker, answer: Result<Done, String>) {
        self.push(Effect::Answer(asker, answer));
    }

    /// The child is not to run.
    fn abort(&mut self, ticket: Ticket) {
        self.tickets.remove(&ticket);
        self.push(Effect::AbortChild(ticket));
    }

    fn ticket(&mut self) -> Ticket {
        *self.last_ticket += 1;
        let ticket = Ticket(*self.last_ticket);
        self.tickets.insert(ticket, self.slot);
        ticket
    }
}

impl Tracked {
    pub(super) fn new(entry: Arc<Entry>, now: Timestamp) -> Tracked {
        let state = Arc::new(State::new(entry.identity()));
        Tracked {
            entry,
            state,
            is_known: false,
            since: now,
            look: None,
            wake: None,
            timer: None,
            steps: VecDeque::new(),
            decided: Duration::ZERO,
            is_outdated: false,
            ended: Vec::new(),
            asked: VecDeque::new(),
            doing: Doing::Nothing,
            hold: None,
            live: Vec::new(),
            removed: false,
            farewell: None,
            looked: None,
            is_told_ahead: false,
            alarm_at: None,
        }
    }

    /// A job that is no longer configured, and has runs to be seen to their ends.
    pub(super) fn left_behind(entry: Arc<Entry>, now: Timestamp) -> Tracked {
        Tracked { removed: true, ..Tracked::new(entry, now) }
    }

    /// Whether nothing is under way that another step depends on, and whoever was let go is on their way.
    pub(super) fn is_quiet(&self) -> bool {
        let is_idle = matches!(self.doing, Doing::Nothing | Doing::Loading);
        is_idle && self.live.iter().all(|live| live.at_gate.is_none())
    }

    /// Whether nothing is under way, and no run: nothing more will be told of it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.doing, Doing::Nothing) && self.live.is_empty() && self.ended.is_empty()
    }

    /// What a child is being made with, if one is.
    pub(super) fn preparing(&self) -> Option<Ticket> {
        match self.doing {
            Doing::Preparing(ticket, ..) => Some(ticket),
            _ => None,
        }
    }

    pub(super) fn activity(&self) -> Activity {
        Activity {
            wake: self.timer.and_then(|second| Timestamp::from_second(second).ok()),
            hold: self.hold.clone(),
            removed: self.removed,
            is_known: self.is_known,
        }
    }

    /// A state was tried again. Only who waits for one takes it up: a job that is at work knows better.
    pub(super) fn loaded(&mut self, memory: Recovered, work: &mut Work<'_>) {
        if matches!(self.doing, Doing::Loading) {
            self.doing = Doing::Nothing;
            self.recall(memory, work);
        }
    }

    /// Takes up what is remembered, at the start or when a state could be read at last.
    pub(super) fn recall(&mut self, memory: Recovered, work: &mut Work<'_>) {
        let entry = Arc::clone(&self.entry);
        if let Some(alert) = memory.alert(&entry) {
            work.report(alert);
        }
        let state = match memory.loaded {
            Loaded::Found(state) | Loaded::Missing(state) | Loaded::Fenced { state, .. } => state,
            Loaded::Unreadable(error) => return self.hold("read state", error, work),
        };
        for run in &state.runs {
            if memory.alive.contains(&run.id) {
                let (entry, process) = (Arc::clone(&entry), run.process);
                let ran = work.now.uptime.saturating_sub(process.started());
                self.begin(run, ran, None, work);
                work.push(Effect::Watch(work.slot, run.id, process));
                work.report(Report::Adopted { entry, run: run.id, process });
            } else {
                self.ended.push(Ended { run: run.id, exit: None, at: work.now.wall });
            }
        }
        self.state = Arc::new(state);
        self.is_known = true;
        self.tell_zone_changed(work);
        self.since = work.now.wall;
        self.look = (!self.removed).then(|| work.now.second());
        self.succeeded(work);
        self.end_for_good(work);
    }

    /// Takes on another definition. What came due by the old one and has no record yet is decided again.
    pub(super) fn edit(&mut self, entry: Arc<Entry>, work: &mut Work<'_>) {
        self.tell_rescheduled(&entry, work);
        self.withdraw(work);
        self.entry = entry;
        self.tell_zone_changed(work);
        self.removed = false;
        self.since = work.now.wall;
        self.looked = None;
        self.steps.clear();
        self.look = Some(work.now.second());
    }

    /// Takes on another command for the same schedule. What came due stays so, and is what the new command is for.
    pub(super) fn change_command(&mut self, entry: Arc<Entry>, work: &mut Work<'_>) {
        self.entry = entry;
        if let Some(settled) = self.withdraw(work) {
            self.steps.push_front(Step::Record(Record::Settled(settled)));
        }
    }

    /// Gives up the child that is being made for a period, if one is, and tells what for. It may wait for its turn, or for
    /// a directory that hangs, much longer than its definition counts.
    fn withdraw(&mut self, work: &mut Work<'_>) -> Option<Settled> {
        match mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Preparing(ticket, _, Prepared::Period(settled)) => {
                work.abort(ticket);
                Some(settled)
            }
            doing => {
                self.doing = doing;
                None
            }
        }
    }

    fn tell_rescheduled(&self, entry: &Arc<Entry>, work: &mut Work<'_>) {
        let after = self.state.watermark().map_or(work.now.wall, |mark| mark.nominal().max(work.now.wall));
        let Some(nominal) = self.entry.job.schedule().next_after(after) else { return };
        let period = PeriodId::new(nominal);
        let is_handled = self.state.ledger_of(&entry.job).is_handled(period);
        let exists = entry.job.schedule().matches(nominal) && !is_handled;
        let previous = decide(&self.entry.job, nominal).chosen();
        let new = if exists { decide(&entry.job, nominal).chosen() } else { None };
        if previous != new {
            work.report(Report::Rescheduled { entry: Arc::clone(entry), period, previous, new });
        }
    }

    /// Tells people if a local time that has been handled comes once more, because the zone is another.
    fn tell_zone_changed(&self, work: &mut Work<'_>) {
        let job = &self.entry.job;
        let until = self.state.ledger_of(job).watermark();
        let (Some(mark), Some(until), Some(latest)) = (self.state.watermark(), until, &self.state.latest)
        else {
            return;
        };
        if job.schedule().next_after(mark.nominal()).is_some_and(|next| PeriodId::new(next) <= until) {
            let (entry, latest) = (Arc::clone(&self.entry), latest.clone());
            work.report(Report::ZoneChanged { entry, latest, until });
        }
    }

    /// The job is no longer configured. Its runs go on, and their ends are recorded.
    pub(super) fn remove(&mut self, work: &mut Work<'_>) {
        self.removed = true;
        self.give_up("it is no longer configured", work);
        self.steps.clear();
        self.look = None;
        self.wake = None;
    }

    /// What was to be done next was decided for a time that is no more: it is forgotten, and a child that is not let go
    /// yet is decided about again. Whether anything was forgotten.
    pub(super) fn outdate(&mut self, is_unwatched: bool) -> bool {
        self.is_outdated |= is_unwatched;
        !mem::take(&mut self.steps).is_empty()
    }

    /// Whether the start of a period, to be at `chosen`, was decided for a time that is no more: nobody has watched since, or
    /// the disk has kept it waiting past its deadline.
    fn is_of_the_past(&self, chosen: Option<Timestamp>, work: &Work<'_>) -> bool {
        let deadline = self.entry.job.policy().deadline;
        let waited = chosen.map(|chosen| work.now.second() - chosen.as_second());
        let is_late = waited.zip(deadline).is_some_and(|(waited, deadline)| waited > deadline.as_seconds());
        self.is_outdated || is_late && work.disk.has_hung_since(self.decided)
    }

    /// What was to start is not started. Whether its period may still run is decided again.
    fn reconsider(&mut self, work: &Work<'_>) {
        self.steps.clear();
        self.look = Some(work.now.second());
    }

    /// No more starts.
    pub(super) fn stop(&mut self, farewell: Farewell, work: &mut Work<'_>) {
        self.farewell = Some(farewell);
        self.steps.clear();
        self.give_up("krond is stopping", work);
        // A child at its gate whose record is under way is let go or not by what becomes of the record. What is being
        // read is told once, and so is asked for once.
        if matches!(self.doing, Doing::Terminating(_)) {
            self.doing = Doing::Nothing;
        }
        self.end_for_good(work);
    }

    /// Ends all runs, if that is how the daemon stops.
    fn end_for_good(&mut self, work: &mut Work<'_>) {
        if self.farewell == Some(Farewell::End) {
            let runs: Vec<RunId> =
                self.live.iter().filter(|live| live.ending.is_none()).map(|live| live.id).collect();
            for run in runs {
                self.end_run(run, Because::Stopped, work);
            }
        }
    }

    /// Why what somebody asks for is not done, if it is not.
    pub(super) fn refusal(&self, asked: &Asked, stopping: bool) -> Option<String> {
        if stopping {
            Some("krond is stopping".into())
        } else if self.removed {
            Some("it is no longer configured".into())
        } else if matches!(asked, Asked::AcceptClock(_) | Asked::Pause(_) | Asked::Resume(_)) {
            self.activity().unknown()
        } else if !self.live.is_empty() && self.entry.job.policy().overlap != Overlap::Allow {
            Some("a run of it is active, and its policy does not allow another beside it".into())
        } else {
            self.hold.as_ref().map(|hold| format!("it is held: {}", hold.error))
        }
    }

    /// Does what somebody asked for, unless something has come in between since.
    fn grant(&mut self, asked: &Asked, work: &mut Work<'_>) {
        match (self.refusal(asked, work.stopping), asked) {
            (Some(why), _) => work.answer(asked.asker(), Err(why)),
            (None, Asked::Run(asker)) => self.prepare_manual(*asker, work),
            (None, Asked::AcceptClock(asker)) => self.accept_clock(*asker, work),
            (None, Asked::Pause(asker)) => self.pause(*asker, work),
            (None, Asked::Resume(asker)) => self.resume(*asker, work),
        }
    }

    /// Starts nothing more: neither the child that is being made, nor what somebody asked for, who is told why.
    fn give_up(&mut self, why: &str, work: &mut Work<'_>) {
        self.withdraw(work);
        for asked in mem::take(&mut self.asked) {
            work.answer(asked.asker(), Err(why.into()));
        }
        match mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Preparing(ticket, _, Prepared::Manual(_, asker)) => {
                work.abort(ticket);
                work.answer(asker, Err(why.into()));
            }
            doing => self.doing = doing,
        }
    }

    /// Does what can be done now.
    pub(super) fn advance(&mut self, work: &mut Work<'_>) {
        loop {
            if let Doing::Terminating(run) = self.doing
                && !self.live.iter().any(|live| live.id == run)
            {
                self.doing = Doing::Nothing;
            }
            if !matches!(self.doing, Doing::Nothing) || self.hold.as_ref().is_some_and(|hold| !hold.is_trying)
            {
                return;
            }
            if !self.is_known && (self.removed || work.stopping) {
                return;
            } else if !self.is_known {
                self.doing = Doing::Loading;
                work.push(Effect::LoadState(work.slot, Arc::clone(&self.entry)));
            } else if !self.ended.is_empty() {
                self.record_ends(work);
            } else if work.stopping || self.removed {
                return;
            } else if let Some(step) = self.steps.pop_front() {
                self.perform(step, work);
            } else if let Some(asked) = self.asked.pop_front() {
                self.grant(&asked, work);
            } else if let Some(second) = self.look.take() {
                self.evaluate(second, work);
            } else {
                // Whatever had failed is no longer wanted.
                return self.succeeded(work);
            }
        }
    }

    /// Asks the engine what to do, as of a second.
    fn evaluate(&mut self, second: i64, work: &mut Work<'_>) {
        let now = work.now.second();
        let second = if now - second > STAMP_MAX { now } else { second };
        let ledger = self.state.ledger_of(&self.entry.job);
        let watch = Watch { since: self.since, now: timestamp(second) };
        let (steps, wake) = evaluate(&self.job_now(), &ledger, ledger.active(), watch);
        self.steps = steps.into();
        self.decided = work.now.uptime;
        self.is_outdated = false;
        self.wake = wake.map(|wake| wake.as_second());
        // What came due while the job was at work has its own second, too.
        if let Some(due) = self.wake.take_if(|wake| *wake <= now) {
            self.look = Some(due);
        }
        self.tell_ahead(second, work);
        self.tell_skipped(second, work);
    }

    /// The job as it is to be taken now: one that is paused is suspended, whatever its line says.
    fn job_now(&self) -> Cow<'_, Job> {
        let job = &self.entry.job;
        match self.state.paused {
            None => Cow::Borrowed(job),
            Some(_) => {
                let policy = Policy { suspend: true, ..*job.policy() };
                Cow::Owned(job.clone().with_policy(policy).expect("only times can make a policy wrong"))
            }
        }
    }

    /// Tells people of local times that did not come since the last look.
    fn tell_skipped(&mut self, second: i64, work: &mut Work<'_>) {
        let Some(looked) = self.looked.replace(second).filter(|looked| *looked < second) else { return };
        let gaps = self.entry.job.schedule().skipped_between(timestamp(looked), timestamp(second));
        for gap in gaps.take(SKIPPED_MAX) {
            let (entry, times) = (Arc::clone(&self.entry), gap.times().take(SKIPPED_MAX).collect());
            work.report(Report::Skipped { entry, at: gap.at(), times });
        }
    }

    /// Tells people once that the job waits for the clock.
    fn tell_ahead(&mut self, second: i64, work: &mut Work<'_>) {
        let opens_before = self.entry.job.window().opens_before().as_seconds();
        let is_ahead = self.state.ledger().is_ahead_of(timestamp(second + opens_before + anchor::STEP));
        if let (true, false, Some(watermark)) = (is_ahead, self.is_told_ahead, self.state.watermark()) {
            work.report(Report::Ahead { entry: Arc::clone(&self.entry), watermark });
        }
        self.is_told_ahead = is_ahead;
    }

    fn perform(&mut self, step: Step, work: &mut Work<'_>) {
        match step {
            Step::Record(Record::Settled(Settled { reason: Reason::Started, ref decision, .. }))
                if self.is_of_the_past(decision.chosen(), work) =>
            {
                self.reconsider(work);
            }
            Step::Record(Record::Settled(settled)) if settled.reason == Reason::Started => {
                let ticket = work.ticket();
                work.push(Effect::PrepareChild {
                    ticket,
                    entry: Arc::clone(&self.entry),
                    run: RunId::Period(settled.decision.period_id()),
                    chosen: settled.decision.chosen(),
                });
                self.doing = Doing::Preparing(ticket, Arc::clone(&self.entry), Prepared::Period(settled));
            }
            Step::Record(record) => self.record(record, work),
            // It was begun with its record, which is durable by now.
            Step::Start(_) => {}
            Step::Terminate(run) => {
                self.doing = Doing::Terminating(run);
                self.end_run(run, Because::Replaced, work);
            }
        }
    }

    /// Records what needs no child: this, and what follows of the same kind, in one write.
    fn record(&mut self, record: Record, work: &mut Work<'_>) {
        let mut next = State::clone(&self.state);
        let mut reports = Vec::new();
        let mut record = Some(record);
        while let Some(settled) = record.take() {
            next.apply(&settled, &self.entry.job, None, work.now.wall);
            let entry = Arc::clone(&self.entry);
            match settled {
                Record::Settled(Settled { decision, reason, .. }) => {
                    reports.push(Report::Settled { entry, decision, reason, process: None });
                }
                Record::Passed(passed) => reports.push(Report::Passed { entry, passed }),
                Record::Manual(_) | Record::Ended(_) => {}
            }
            if let Some(Step::Record(Record::Settled(more))) = self.steps.front()
                && more.reason != Reason::Started
            {
                record = Some(Record::Settled(more.clone()));
                self.steps.pop_front();
            }
        }
        self.write(Writing { reports, ..Writing::of(next) }, false, work);
    }

    fn record_ends(&mut self, work: &mut Work<'_>) {
        let ended = mem::take(&mut self.ended);
        let mut next = State::clone(&self.state);
        let mut reports = Vec::new();
        for end in &ended {
            let Some(run) = next.runs.iter().find(|run| run.id == end.run) else { continue };
            reports.push(Report::Completed {
                entry: Arc::clone(&self.entry),
                run: end.run,
                process: run.process,
                exit: end.exit,
                started_at: run.started_at,
                ended_at: end.at,
            });
            next.end(end.run, end.exit, end.at);
        }
        self.write(Writing { reports, ended, ..Writing::of(next) }, false, work);
    }

    fn prepare_manual(&mut self, asker: Asker, work: &mut Work<'_>) {
        let number = self.state.runs.iter().filter_map(|run| match run.id {
            RunId::Manual(number) => Some(number + 1),
            RunId::Period(_) => None,
        });
        // Numbered by the clock, so that the runs of different days differ in the records.
        let clock = u64::try_from(work.now.wall.as_millisecond()).unwrap_or_default();
        let number = number.max().unwrap_or_default().max(clock);
        let (ticket, entry) = (work.ticket(), Arc::clone(&self.entry));
        let run = RunId::Manual(number);
        work.push(Effect::PrepareChild { ticket, entry: Arc::clone(&entry), run, chosen: None });
        self.doing = Doing::Preparing(ticket, entry, Prepared::Manual(number, asker));
    }

    fn accept_clock(&mut self, asker: Asker, work: &mut Work<'_>) {
        let now = PeriodId::new(work.now.wall);
        let next = State::clone(&self.state).accept_clock(&self.entry.job, now);
        self.steps.clear();
        self.look = Some(work.now.second());
        let asker = Some((asker, Done::Accepted(now)));
        self.write(Writing { asker, ..Writing::of(next) }, true, work);
    }

    /// Somebody is about to pause the job: what is not on record yet does not start before that is done. Should it fail,
    /// it is decided again.
    pub(super) fn stand_back(&mut self, work: &mut Work<'_>) {
        self.withdraw(work);
        self.steps.clear();
        if matches!(self.doing, Doing::Terminating(_)) {
            self.doing = Doing::Nothing;
        }
        self.look = Some(work.now.second());
    }

    fn pause(&mut self, asker: Asker, work: &mut Work<'_>) {
        if let Some(since) = self.state.paused {
            return work.answer(asker, Ok(Done::Paused(since)));
        }
        let since = work.now.wall;
        let next = State { paused: Some(since), ..State::clone(&self.state) };
        let reports = vec![Report::Paused { entry: Arc::clone(&self.entry), since }];
        let asker = Some((asker, Done::Paused(since)));
        self.write(Writing { reports, asker, ..Writing::of(next) }, false, work);
    }

    /// From here on somebody watches again. What came due meanwhile is history, but for the latest within its deadline.
    fn resume(&mut self, asker: Asker, work: &mut Work<'_>) {
        let Some(since) = self.state.paused else {
            return work.answer(asker, Ok(Done::Resumed(None)));
        };
        self.since = work.now.wall;
        self.looked = None;
        self.look = Some(work.now.second());
        let next = State { paused: None, ..State::clone(&self.state) };
        let reports = vec![Report::Resumed { entry: Arc::clone(&self.entry), since }];
        let asker = Some((asker, Done::Resumed(Some(since))));
        self.write(Writing { reports, asker, ..Writing::of(next) }, false, work);
    }

    fn write(&mut self, mut writing: Writing, archive: bool, work: &mut Work<'_>) {
        Arc::make_mut(&mut writing.next).cap_history(work.manners.history_max);
        let state = Arc::clone(&writing.next);
        // Somebody may also wait for what comes after it.
        let is_awaited = writing.child.is_some()
            || writing.asker.is_some()
            || !self.asked.is_empty()
            || !self.steps.is_empty()
            || self.look.is_some();
        work.disk.asked(work.now.uptime);
        work.push(Effect::WriteState { slot: work.slot, state, archive, is_awaited });
        self.doing = Doing::Writing(writing);
    }

    /// The child is there. Its record comes before it goes on.
    pub(super) fn ready(&mut self, ticket: Ticket, process: ProcessId, work: &mut Work<'_>) {
        match mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Preparing(expected, _, Prepared::Period(settled))
                if expected == ticket && self.is_of_the_past(settled.decision.chosen(), work) =>
            {
                work.abort(ticket);
                self.reconsider(work);
            }
            Doing::Preparing(expected, entry, prepared) if expected == ticket => {
                let mut next = State::clone(&self.state);
                let (run, report, record, asker) = start_of(&entry, prepared, process, work.now.wall);
                next.apply(&record, &entry.job, Some(run.clone()), work.now.wall);
                let reports = vec![report];
                let child = Some((ticket, run));
                self.write(Writing { reports, child, asker, ..Writing::of(next) }, false, work);
            }
            doing => {
                self.doing = doing;
                work.abort(ticket);
            }
        }
    }

    /// The state is durable: it is what is remembered now, and the child may go on.
    pub(super) fn written(&mut self, work: &mut Work<'_>) {
        let Doing::Writing(writing) = mem::replace(&mut self.doing, Doing::Nothing) else { return };
        if let Some((ticket, run)) = &writing.child
            && matches!(run.id, RunId::Period(_))
            && self.is_of_the_past(run.chosen, work)
        {
            // Nobody was told of the record. The next one takes its place, and should there be none, the period has
            // had its run: it is never another's.
            work.abort(*ticket);
            return self.reconsider(work);
        }
        self.state = writing.next;
        if let Some((ticket, run)) = writing.child {
            let (slot, process) = (work.slot, run.process);
            work.push(Effect::ReleaseChild { ticket, slot, run: run.id, process });
            self.begin(&run, Duration::ZERO, Some(ticket), work);
            self.end_for_good(work);
        }
        for report in writing.reports {
            work.report(report);
        }
        if let Some((asker, done)) = writing.asker {
            work.answer(asker, Ok(done));
        }
        self.succeeded(work);
    }

    /// The state may not be durable. Nothing is started by it, and it is decided again.
    pub(super) fn write_failed(&mut self, error: String, work: &mut Work<'_>) {
        let Doing::Writing(writing) = mem::replace(&mut self.doing, Doing::Nothing) else { return };
        if let Some((ticket, _)) = writing.child {
            work.abort(ticket);
        }
        if let Some((asker, _)) = writing.asker {
            work.answer(asker, Err(format!("its state could not be written: {error}")));
        }
        self.ended = writing.ended.into_iter().chain(mem::take(&mut self.ended)).collect();
        self.hold("write state", error, work);
    }

    /// There is no child. If its record is under way by then, it is a run that has ended.
    pub(super) fn spawn_failed(&mut self, ticket: Ticket, error: String, work: &mut Work<'_>) {
        let prepared = match mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Preparing(expected, _, prepared) if expected == ticket => prepared,
            doing => return self.doing = doing,
        };
        work.tickets.remove(&ticket);
        match prepared {
            Prepared::Period(_) => self.hold("start", error, work),
            Prepared::Manual(_, asker) => work.answer(asker, Err(error)),
        }
    }

    /// Lets the job wait. What it was about to do is decided again when it is tried again.
    fn hold(&mut self, operation: &'static str, error: String, work: &mut Work<'_>) {
        let failures = self.hold.take().map_or(0, |hold| hold.failures);
        let retry_in = RETRY_MIN.saturating_mul(1 << failures.min(8)).min(RETRY_MAX);
        self.steps.clear();
        self.hold = Some(Hold {
            operation,
            error: error.clone(),
            failures: failures + 1,
            until: work.now.uptime + retry_in,
            is_trying: false,
        });
        work.report(Report::Held { entry: Arc::clone(&self.entry), operation, error, retry_in });
    }

    fn succeeded(&mut self, work: &mut Work<'_>) {
        if self.hold.take().is_some() {
            work.report(Report::Recovered(Arc::clone(&self.entry)));
        }
    }

    /// A run is under way.
    fn begin(&mut self, run: &Run, ran: Duration, at_gate: Option<Ticket>, work: &Work<'_>) {
        let Run { id, process, .. } = *run;
        let timeout = run.timeout.or(self.entry.command.timeout.map(seconds));
        let timeout_at = timeout.map(|timeout| work.now.uptime + timeout.saturating_sub(ran));
        self.live.push(Live { id, process, at_gate, timeout_at, ending: None });
    }

    /// A child that was let go is on its way.
    pub(super) fn released(&mut self, ticket: Ticket) {
        for live in self.live.iter_mut().filter(|live| live.at_gate == Some(ticket)) {
            live.at_gate = None;
        }
    }

    /// A run is over.
    pub(super) fn exited(&mut self, run: RunId, exit: Option<i32>, at: Timestamp) {
        let Some(place) = self.live.iter().position(|live| live.id == run) else { return };
        self.live.remove(place);
        self.ended.push(Ended { run, exit, at });
    }

    /// Asks a run to end.
    fn end_run(&mut self, run: RunId, because: Because, work: &mut Work<'_>) {
        let Some(live) = self.live.iter_mut().find(|live| live.id == run) else { return };
        let signal = if live.ending.is_some() { Signal::Kill } else { Signal::Term };
        let patience = if signal == Signal::Kill { STUCK_AFTER } else { work.manners.grace };
        live.ending = Some(Ending { because, signal, next_at: work.now.uptime + patience });
        let (entry, process) = (Arc::clone(&self.entry), live.process);
        work.push(Effect::Signal(work.slot, run, process, signal));
        work.report(Report::Ending { entry, run, process, because, signal });
    }

    /// Something by the other clock is due.
    pub(super) fn alarm(&mut self, work: &mut Work<'_>) {
        let now = work.now.uptime;
        if let Some(hold) = self.hold.as_mut().filter(|hold| !hold.is_trying && hold.until <= now) {
            hold.is_trying = true;
            self.look = Some(work.now.second());
        }
        let due: Vec<(RunId, Because, Option<Signal>)> = self
            .live
            .iter()
            .filter(|live| live.next_alarm().is_some_and(|at| at <= now))
            .map(|live| match live.ending {
                Some(ending) => (live.id, ending.because, Some(ending.signal)),
                None => (live.id, Because::Timeout, None),
            })
            .collect();
        for (run, because, sent) in due {
            if sent == Some(Signal::Kill) {
                self.tell_stuck(run, work);
            }
            self.end_run(run, because, work);
        }
    }

    /// Even killing did not help. Who waits for its end is decided about again.
    fn tell_stuck(&mut self, run: RunId, work: &mut Work<'_>) {
        let Some(live) = self.live.iter().find(|live| live.id == run) else { return };
        let (entry, process) = (Arc::clone(&self.entry), live.process);
        work.report(Report::Stuck { entry, run, process });
        if matches!(self.doing, Doing::Terminating(waits) if waits == run) {
            self.doing = Doing::Nothing;
            self.hold("end run", format!("process {} does not end", process.pid), work);
        }
    }

    pub(super) fn next_alarm(&self) -> Option<Duration> {
        let hold = self.hold.as_ref().filter(|hold| !hold.is_trying).map(|hold| hold.until);
        self.live.iter().filter_map(Live::next_alarm).chain(hold).min()
    }
}

impl Live {
    fn next_alarm(&self) -> Option<Duration> {
        self.ending.map(|ending| ending.next_at).or(self.timeout_at)
    }
}

impl Writing {
    fn of(next: State) -> Writing {
        Writing { next: Arc::new(next), reports: Vec::new(), child: None, ended: Vec::new(), asker: None }
    }
}

/// What is recorded and told of a start, by the definition that it was decided with.
fn start_of(
    entry: &Arc<Entry>,
    prepared: Prepared,
    process: ProcessId,
    started_at: Timestamp,
) -> (Run, Report, Record, Option<(Asker, Done)>) {
    let entry = Arc::clone(entry);
    let timeout = entry.command.timeout.map(seconds);
    match prepared {
        Prepared::Period(settled) => {
            let Settled { decision, reason, .. } = settled;
            let run = Run {
                id: RunId::Period(decision.period_id()),
                process,
                started_at,
                chosen: decision.chosen(),
                seed_hash: decision.seed_hash().to_string(),
                timeout,
            };
            let report = Report::Settled { entry, decision, reason, process: Some(process) };
            (run, report, Record::Settled(settled), None)
        }
        Prepared::Manual(number, asker) => {
            let id = RunId::Manual(number);
            let run = Run { id, process, started_at, chosen: None, seed_hash: String::new(), timeout };
            let report = Report::Manual { entry, run: id, process };
            (run, report, Record::Manual(id), Some((asker, Done::Started(id, process))))
        }
    }
}

fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}

fn seconds(duration: kron_schedule::Duration) -> Duration {
    Duration::from_secs(duration.as_seconds().unsigned_abs())
}
