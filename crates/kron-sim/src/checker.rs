//! The judge. It hears what krond says, sees what really happened, and uses no code of Kron's to decide.
//!
//! | oracle | holds that |
//! | --- | --- |
//! | O1 | no period of a job is executed twice, nor a local time that counts once, in whatever zone |
//! | O2 | whatever a power cut would leave at the moment of `execve` has the claim of that run |
//! | O3 | while somebody watches, every period has one outcome, and starts at its time |
//! | O4 | an outcome that was told is not told again, and never becomes another |
//! | O5 | no claim is without a result for long |
//! | O7 | under `forbid` and `replace`, runs of a job do not overlap |
//! | O8 | no process is signalled that krond did not start |
//! | O10 | when the faults end, every job runs again |
//! | O11 | nothing that was told is lost |
//! | O12 | whoever asks is answered |
//! | O13 | a krond that is to wait for its runs, or to end them, leaves none |
//! | O14 | a job that was told to be paused starts no period, and stays so until somebody resumes it |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kron_core::{Outcome, Passed, Reason, RunId};
use krond::process::ProcessId;
use serde_json::Value;

use crate::line::{Line, Overlap, ZONES_APART, Zone};

/// A promise that was broken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// Which oracle says so: `O1` and so on.
    pub oracle: &'static str,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.oracle, self.what)
    }
}

/// How long after its chosen time a run may begin, with all delays that a world has, in seconds.
const SLACK: i64 = 8;

/// The same if another run may have to be ended first: once politely, then not.
const SLACK_REPLACE: i64 = 30;

/// A child that is wanted.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Since when.
    at: i64,
    chosen: i64,
    /// The longest that its line has had since then.
    deadline: i64,
}

/// How long a child may be held up past its deadline from when it is wanted until it is let go, in seconds: a disk may be silent for a minute,
/// once for the records before its own and once for its own, and a stop of krond of less than 40 s is nothing that anybody notices.
const HELD_UP_MAX: i64 = 170;

/// How long a job must have been left in peace before its periods are judged strictly, in seconds.
const PEACE: i64 = 10;

/// The same under `replace`, where a row of runs may have to be ended one after another.
const PEACE_REPLACE: i64 = 150;

/// How long a run may be over without a result, in nanoseconds.
const RESULT_MAX: u64 = 60 * 1_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct Checker {
    pub(crate) lines: Vec<Line>,
    subjects: Vec<Subject>,
    pub(crate) violation: Option<Violation>,
    /// How many endings a file keeps.
    pub(crate) history_max: usize,
    /// If it is given, no other oracle is listened to.
    pub(crate) only: Option<&'static str>,
    /// Outcomes told one by one.
    pub(crate) periods: u64,
    pub(crate) executions: u64,
    /// Periods that were judged strictly.
    pub(crate) judged: u64,
    /// Results told.
    pub(crate) results: u64,
}

/// What is known of a job.
#[derive(Debug, Default)]
struct Subject {
    /// The line that is in force, if one is.
    version: Option<usize>,
    settled: BTreeMap<i64, Told>,
    passed: Vec<Range>,
    executed: BTreeMap<i64, i64>,
    /// Children that are wanted and were not let go, by their periods.
    wanted: BTreeMap<i64, Wanted>,
    /// What clocks showed at the periods that were executed, as far as krond's memory of it was not lost.
    shown: BTreeSet<i64>,
    /// Runs that were claimed and have no result.
    open: BTreeMap<RunId, ProcessId>,
    /// Those of them that were told. Others were only found in a file, and it may not be durable.
    told: BTreeSet<RunId>,
    results: BTreeSet<(RunId, ProcessId)>,
    runs: Vec<Span>,
    watermark: Option<i64>,
    /// Since when the job is left in peace, and what was handled by then.
    calm: Option<(i64, Option<i64>)>,
    /// Runs of periods that an operator has opened again while they were under way.
    reopened: BTreeSet<RunId>,
    /// The processes of those of them that had not begun. Their periods may run again.
    on_their_way: BTreeSet<ProcessId>,
    /// An operator has asked to accept the clock, and it may have been done.
    accepting: bool,
    /// Whether it is paused, as was told.
    paused: bool,
    /// Somebody has asked to pause or to resume it: it may have been done, though nobody was told.
    pausing: Pausing,
    /// Somebody has deleted its file, and that is not found out yet.
    deleted: bool,
    /// Somebody has damaged its file, and nothing else was written since.
    damaged: bool,
    /// Periods judged since the faults ended.
    judged: u64,
}

/// What is known of somebody's wish to pause a job, or to resume it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Pausing {
    /// What was told of it is so.
    #[default]
    Known,
    /// Nobody has answered yet.
    Asked,
    /// Its file may say otherwise, or may not be durable: it was refused or failed, or was found out by reading.
    Unsure,
}

/// An outcome, as told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) reason: Reason,
    pub(crate) chosen: Option<i64>,
    /// By the true clock and by the wall clock.
    pub(crate) at: (u64, i64),
}

#[derive(Debug)]
struct Range {
    /// When it was told, by the wall clock.
    at: i64,
    first: i64,
    last: i64,
    still_open: Vec<i64>,
}

/// When a process of a job was there.
#[derive(Debug)]
struct Span {
    process: ProcessId,
    /// What it was made for, whatever a damaged file says.
    run: RunId,
    /// Whether it has become its program.
    has_begun: bool,
    from: u64,
    to: Option<u64>,
}

/// What the store made of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Read {
    Found,
    Missing { fenced: bool },
    Fenced,
    Unreadable,
}

impl Checker {
    pub(crate) fn new(jobs: usize) -> Checker {
        Checker { subjects: (0..jobs).map(|_| Subject::default()).collect(), ..Checker::default() }
    }

    pub(crate) fn jobs(&self) -> usize {
        self.subjects.len()
    }

    pub(crate) fn fail(&mut self, oracle: &'static str, what: String) {
        if self.only.is_none_or(|only| only == oracle) {
            self.violation.get_or_insert(Violation { oracle, what });
        }
    }

    /// The true beginning and end of a process of a job.
    pub(crate) fn process_began(&mut self, job: usize, run: RunId, process: ProcessId, at: u64) {
        self.subjects[job].runs.push(Span { process, run, has_begun: false, from: at, to: None });
    }

    pub(crate) fn process_ended(&mut self, job: usize, process: ProcessId, at: u64) {
        if let Some(span) = self.subjects[job].span(process) {
            span.to = Some(at);
        }
    }

    /// A command begins, by the line of that version. `claimed` is whether its claim was durable, `others` are runs of the job that are
    /// there, and that krond had not lost by damage to its files.
    pub(crate) fn execve(
        &mut self,
        job: usize,
        version: usize,
        (run, process): (RunId, ProcessId),
        wall: i64,
        claimed: bool,
        others: &[ProcessId],
    ) {
        self.executions += 1;
        let subject = &mut self.subjects[job];
        if let Some(span) = subject.span(process) {
            span.has_begun = true;
        }
        let line = &self.lines[version];
        let overlap = line.overlap;
        let RunId::Period(period) = run else {
            if !claimed {
                self.fail("O2", format!("manual run of j{job} began without a durable claim"));
            }
            return;
        };
        let period = period.nominal().as_second();
        if subject.on_their_way.remove(&process) {
            if !claimed {
                self.fail("O2", format!("j{job} executed period {period} without a durable claim"));
            } else if !others.is_empty() && overlap != Overlap::Allow {
                self.fail(
                    "O7",
                    format!("j{job} executed period {period} beside {others:?} under {overlap:?}"),
                );
            }
            return;
        }
        // A run that was let go may be found, and told of, before it has begun: an operator who accepts the
        // clock has krond forget that it was recorded. It is one run all the same, as O1 sees to.
        let told =
            subject.settled.get(&period).filter(|told| told.reason.outcome() != Outcome::Executed).copied();
        let passed = subject.passed.iter().any(|range| range.has(period));
        let again = subject.executed.insert(period, wall);
        let is_new = line.civil(period).is_none_or(|civil| subject.shown.insert(civil));
        let is_shown_again = !is_new && line.zone.is_some();
        if again.is_none() && is_shown_again {
            let text =
                format!("j{job} executed period {period}, whose local time it had executed before: {line:?}");
            self.fail("O1", text);
        } else if let Some(before) = again {
            self.fail("O1", format!("j{job} executed period {period} at {before} and again at {wall}"));
        } else if !claimed {
            self.fail("O2", format!("j{job} executed period {period} without a durable claim"));
        } else if told.is_some() || passed {
            self.fail("O4", format!("j{job} executed period {period}, which had ended as {told:?}"));
        } else if !others.is_empty() && overlap != Overlap::Allow {
            self.fail("O7", format!("j{job} executed period {period} beside {others:?} under {overlap:?}"));
        }
    }

    /// The daemon wants a child for a period, by the line of that version.
    pub(crate) fn starting(&mut self, job: usize, version: usize, period: i64, chosen: i64, second: i64) {
        let line = &self.lines[version];
        let extra = if line.overlap == Overlap::Replace { 130 } else { 61 };
        let (opens, closes) = line.bounds(period);
        let wanted = Wanted { at: second, chosen, deadline: line.deadline };
        self.subjects[job].wanted.insert(period, wanted);
        if self.subjects[job].paused {
            self.fail("O14", format!("j{job} is paused and starts period {period} at {second}"));
        } else if second < chosen {
            self.fail("O3", format!("j{job} starts period {period} at {second}, before its time {chosen}"));
        } else if second > chosen + line.deadline + extra {
            let text =
                format!("j{job} starts period {period} at {second}, past {chosen} and {} s", line.deadline);
            self.fail("O3", text);
        } else if !line.is_period(period) || chosen < opens || chosen > closes || !line.allows(chosen) {
            self.fail("O3", format!("j{job} has no period {period} at {chosen}: {line:?}"));
        }
    }

    /// The daemon lets the child of a period go.
    pub(crate) fn letting_go(&mut self, job: usize, period: i64, second: i64) {
        let wanted = self.subjects[job].wanted.remove(&period);
        let latest = wanted.map(|wanted| wanted.at.max(wanted.chosen + wanted.deadline) + HELD_UP_MAX);
        if latest.is_none_or(|latest| second > latest) {
            self.fail("O3", format!("j{job} lets period {period} go at {second}, past {latest:?}"));
        }
    }

    pub(crate) fn told_settled(
        &mut self,
        job: usize,
        version: usize,
        period: i64,
        told: Told,
        process: Option<ProcessId>,
    ) {
        let Told { reason, at, .. } = told;
        self.periods += 1;
        let line = &self.lines[version];
        let subject = &mut self.subjects[job];
        let before = subject.settled.insert(period, told);
        let passed = subject.passed.iter().any(|range| range.has(period));
        let ran = subject.executed.contains_key(&period);
        subject.raise(period, at.1);
        if let Some(process) = process {
            let run = RunId::Period(period_id(period));
            if !subject.results.contains(&(run, process)) {
                subject.open.insert(run, process);
                subject.told.insert(run);
            }
        }
        let executed = matches!(reason, Reason::Started | Reason::FoundRunning);
        if let Some(before) = before {
            let text = format!("j{job}: period {period} was told as {before:?} and again as {reason:?}");
            self.fail("O4", text);
        } else if passed {
            self.fail("O4", format!("j{job}: period {period} was passed over and then told as {reason:?}"));
        } else if ran && !executed {
            self.fail("O4", format!("j{job}: period {period} was executed and is told as {reason:?}"));
        } else if reason != Reason::Rescheduled && !line.is_period(period) {
            self.fail("O3", format!("j{job} has no period {period}: {line:?}"));
        } else if reason == Reason::NoCandidate {
            let (opens, closes) = line.bounds(period);
            if line.allows(opens) && line.allows(closes) && closes - opens < 3_600 {
                self.fail("O3", format!("j{job}: period {period} can be scheduled: {line:?}"));
            }
        }
    }

    pub(crate) fn told_passed(&mut self, job: usize, passed: &Passed, at: i64) {
        let seconds = |period: kron_core::PeriodId| period.nominal().as_second();
        let first = passed.tallies.iter().map(|tally| seconds(tally.first)).min();
        let last = passed.tallies.iter().map(|tally| seconds(tally.last)).max();
        let (Some(first), Some(last)) = (first, last) else { return };
        let subject = &mut self.subjects[job];
        let single = match &passed.tallies[..] {
            [only] if only.first == only.last => Some(seconds(only.first)),
            _ => None,
        };
        let again = single.filter(|period| {
            subject.settled.contains_key(period) || subject.passed.iter().any(|range| range.has(*period))
        });
        // Everything between the old watermark and the new has its outcome, but for what is named. Below the old
        // one, only what is named has.
        let still_open = passed.overtakes.iter().map(|period| seconds(*period)).collect();
        let first = subject.watermark.map_or(first, |mark| first.max(mark + 1));
        subject.passed.push(Range { at, first, last, still_open });
        for period in passed.settles.iter().map(|period| seconds(*period)) {
            subject.passed.push(Range { at, first: period, last: period, still_open: Vec::new() });
        }
        subject.raise(last, at);
        if let Some(period) = again {
            self.fail("O4", format!("j{job}: period {period} had its outcome and was passed over"));
        }
    }

    pub(crate) fn told_completed(&mut self, job: usize, run: RunId, process: ProcessId) {
        self.results += 1;
        let subject = &mut self.subjects[job];
        subject.open.remove(&run);
        subject.told.remove(&run);
        let is_new = subject.results.insert((run, process));
        let alive = subject.runs.iter().any(|span| span.process == process && span.to.is_none());
        if !is_new {
            self.fail("O4", format!("j{job}: the result of {run:?} was told twice"));
        } else if alive {
            self.fail("O4", format!("j{job}: {run:?} was told to be over and is not"));
        }
    }

    /// A run from before is still there, also if the file that told of it was damaged.
    pub(crate) fn told_adopted(&mut self, job: usize, run: RunId, process: ProcessId) {
        self.subjects[job].open.insert(run, process);
    }

    pub(crate) fn told_fenced(&mut self, job: usize, fence: i64, at: i64) {
        self.subjects[job].raise(fence, at);
    }

    pub(crate) fn accept_asked(&mut self, job: usize) {
        self.subjects[job].accepting = true;
    }

    /// An operator has overruled the watermark: what lies after it may run again. Whoever has asked as well may be obeyed later, and not be told.
    pub(crate) fn accepted(&mut self, job: usize, mark: i64, is_asked_again: bool) {
        let subject = &mut self.subjects[job];
        subject.accepting = is_asked_again;
        subject.forget_after(mark);
    }

    /// Somebody asks to pause it, or to resume it. Who is about to be resumed may start from now on.
    pub(crate) fn pause_asked(&mut self, job: usize, pause: bool) {
        let subject = &mut self.subjects[job];
        subject.paused &= pause;
        subject.pausing = Pausing::Asked;
    }

    /// What was asked for is done.
    pub(crate) fn paused(&mut self, job: usize, paused: bool) {
        let subject = &mut self.subjects[job];
        subject.paused = paused;
        subject.pausing = Pausing::Known;
    }

    /// What was asked for is not done, as far as krond knows, or nobody was told.
    pub(crate) fn unsure_paused(&mut self, job: usize, is_paused: bool) {
        let subject = &mut self.subjects[job];
        subject.paused = is_paused;
        subject.pausing = Pausing::Unsure;
    }

    /// Whether somebody waits to be told that it is paused, or resumed.
    pub(crate) fn is_pausing(&self, job: usize) -> bool {
        self.subjects[job].pausing == Pausing::Asked
    }

    /// Whether it is paused, as was told.
    pub(crate) fn is_paused(&self, job: usize) -> bool {
        self.subjects[job].paused
    }

    pub(crate) fn deleted(&mut self, job: usize) {
        self.subjects[job].deleted = true;
    }

    pub(crate) fn damaged(&mut self, job: usize) {
        self.subjects[job].damaged = true;
    }

    /// Whether the job's file may have lost its runs to damage.
    pub(crate) fn is_damaged(&self, job: usize) -> bool {
        self.subjects[job].damaged
    }

    /// Whether the job's file was deleted and it is not yet known to be there again.
    pub(crate) fn is_deleted(&self, job: usize) -> bool {
        self.subjects[job].deleted
    }

    /// A write of its state has succeeded, so what was deleted is there again.
    pub(crate) fn written(&mut self, job: usize) {
        self.subjects[job].deleted = false;
        self.subjects[job].damaged = false;
    }

    /// The daemon has read the job's file, which had these bytes.
    pub(crate) fn loaded(
        &mut self,
        job: usize,
        bytes: Option<&[u8]>,
        read: Read,
        watermark: Option<i64>,
        paused: bool,
    ) {
        match read {
            Read::Unreadable => {}
            Read::Fenced => {
                let subject = &mut self.subjects[job];
                subject.shown.clear();
                subject.open.clear();
                subject.told.clear();
                subject.damaged = false;
                subject.notice_accepted(watermark);
                self.unsure_paused(job, paused);
            }
            Read::Missing { fenced } => {
                let subject = &mut self.subjects[job];
                subject.shown.clear();
                subject.open.clear();
                subject.told.clear();
                if !subject.deleted {
                    if !subject.settled.is_empty() || !subject.executed.is_empty() {
                        self.fail("O11", format!("the state of j{job} is gone, and nobody has deleted it"));
                    }
                } else if !fenced {
                    // An operator's decision: it begins anew.
                    let version = subject.version;
                    let runs = std::mem::take(&mut subject.runs);
                    *subject = Subject { version, runs, deleted: true, ..Subject::default() };
                }
                let subject = &mut self.subjects[job];
                subject.notice_accepted(watermark);
                subject.watermark = subject.watermark.max(watermark);
                self.unsure_paused(job, paused);
            }
            Read::Found => {
                let value = bytes.and_then(|bytes| serde_json::from_slice(bytes).ok());
                match value {
                    Some(value) => self.found(job, &value),
                    None => self.fail("O11", format!("j{job}: a state was read where there is none")),
                }
            }
        }
    }

    /// Compares a state file with what was told.
    fn found(&mut self, job: usize, state: &Value) {
        let subject = &mut self.subjects[job];
        let watermark = time(&state["LastHandledPeriodID"]);
        subject.notice_accepted(watermark);
        // Where it was deleted, what stands there again may not be durable: only a write that has succeeded is.
        let list = |key: &str| state[key].as_array().cloned().unwrap_or_default();
        let pending: Vec<i64> = list("Pending").iter().filter_map(time).collect();
        let is_handled = |period: i64| Some(period) <= watermark && !pending.contains(&period);
        let lost = |period: &&i64| !is_handled(**period);
        let lost = subject.settled.keys().find(lost).or_else(|| subject.executed.keys().find(lost)).copied();
        let mut runs = BTreeMap::new();
        for run in list("OtherExecutions").iter().chain(state.get("ActiveExecution")) {
            let id = match (run["Manual"].as_u64(), time(&run["PeriodID"])) {
                (Some(number), _) => RunId::Manual(number),
                (None, Some(period)) => RunId::Period(period_id(period)),
                (None, None) => continue,
            };
            let number = |key: &str| run[key].as_u64().unwrap_or_default();
            let process = ProcessId {
                boot: run["BootID"]
                    .as_str()
                    .unwrap_or_default()
                    .parse()
                    .unwrap_or(krond::process::BootId::new(0)),
                pid: u32::try_from(number("PID")).unwrap_or_default(),
                start_ticks: number("StartTicks"),
            };
            runs.insert(id, process);
        }
        let history: BTreeMap<i64, String> = list("History")
            .iter()
            .filter_map(|ending| Some((time(&ending["PeriodID"])?, ending["Outcome"].as_str()?.to_owned())))
            .collect();
        // A fenced state may stand there already, which a crash kept krond from telling of.
        let damaged = std::mem::take(&mut subject.damaged);
        if damaged {
            subject.shown.clear();
        }
        // And a history that is full may have had it.
        let excused = damaged || history.len() >= self.history_max;
        let vanished = subject.told.iter().filter(|_| !excused).find(|run| match run {
            RunId::Period(period) => {
                let period = period.nominal().as_second();
                !runs.contains_key(*run) && history.get(&period).is_none_or(|outcome| outcome != "executed")
            }
            RunId::Manual(_) => false,
        });
        let vanished = vanished.copied();
        let told_over = runs.iter().find(|(run, process)| subject.results.contains(&(**run, **process)));
        let told_over = told_over.map(|(run, _)| *run);
        subject.told.retain(|run| runs.contains_key(run));
        subject.open = runs;
        subject.watermark = watermark;
        let is_paused = state["Paused"].is_string();
        let was_paused = std::mem::replace(&mut subject.paused, is_paused);
        let is_sure = subject.pausing == Pausing::Known && !damaged;
        if !is_sure {
            subject.pausing = Pausing::Unsure;
        }
        if let Some(period) = lost {
            self.fail("O11", format!("j{job}: the outcome of {period} was told and is lost: {state}"));
        } else if let Some(run) = vanished {
            self.fail("O11", format!("j{job}: {run:?} has neither a claim nor a result: {state}"));
        } else if let Some(run) = told_over {
            self.fail("O4", format!("j{job}: {run:?} was told to be over and is active again: {state}"));
        } else if is_sure && is_paused != was_paused {
            self.fail(
                "O14",
                format!("j{job} was told to be paused, {was_paused}, and that is lost: {state}"),
            );
        }
    }

    /// What line is in force for a job, from now on.
    pub(crate) fn configured(&mut self, job: usize, version: Option<usize>) {
        let subject = &mut self.subjects[job];
        subject.version = version;
        // Who is not let go yet may be held to the deadline of the line as it is by then.
        let deadline = version.map_or(0, |version| self.lines[version].deadline);
        for wanted in subject.wanted.values_mut() {
            wanted.deadline = wanted.deadline.max(deadline);
        }
    }

    /// Something happens to the job. What came due in peace until now is judged.
    pub(crate) fn disturb(&mut self, job: usize, wall: i64) {
        let Some((from, floor)) = self.subjects[job].calm.take() else { return };
        let Some(version) = self.subjects[job].version else { return };
        let line = self.lines[version].clone();
        if line.suspend {
            return;
        }
        let (_, slack) = leeway(&line);
        // In Kathmandu clocks had shown more by then, and what they had shown does not count again.
        let held = |line: &&Line| line.job == job && line.zone == Some(Zone::Kathmandu);
        let is_held = line.zone == Some(Zone::Kolkata) && self.lines.iter().any(|line| held(&line));
        let floor = floor.map(|floor| if is_held { floor + ZONES_APART } else { floor });
        for period in line.periods(from - line.window - 1, wall) {
            let (opens, closes) = line.bounds(period);
            if opens < from || Some(period) <= floor {
                continue;
            }
            if closes + slack > wall {
                break;
            }
            // It was under way when the clock was set back to before its time.
            let subject = &self.subjects[job];
            let settled = subject.settled.get(&period).is_some_and(|told| told.at.1 < from);
            if settled || subject.passed.iter().any(|range| range.at < from && range.has(period)) {
                continue;
            }
            self.judge(job, &line, period, slack);
        }
    }

    /// A job is left in peace from now on.
    pub(crate) fn calm(&mut self, job: usize, wall: i64) {
        let Some(version) = self.subjects[job].version else { return };
        let (peace, _) = leeway(&self.lines[version]);
        let subject = &mut self.subjects[job];
        if subject.paused || subject.pausing == Pausing::Asked {
            return;
        }
        subject.calm = Some((wall + peace, subject.watermark));
    }

    /// Judges a period whose whole window lay in peace.
    fn judge(&mut self, job: usize, line: &Line, period: i64, slack: i64) {
        self.judged += 1;
        let subject = &mut self.subjects[job];
        subject.judged += 1;
        let Some(told) = subject.settled.get(&period).copied() else {
            return self.fail("O3", format!("j{job}: period {period} has no outcome: {line:?}"));
        };
        let began = subject.executed.get(&period).copied();
        let (opens, closes) = line.bounds(period);
        let chosen = told.chosen.unwrap_or(opens);
        let in_time = |wall: i64| (chosen..=chosen + slack).contains(&wall);
        let is_right = match told.reason {
            // Under `replace` the next may have ended it before it could begin.
            Reason::Started => began.map_or(line.overlap == Overlap::Replace, in_time),
            Reason::StillRunning => line.overlap == Overlap::Forbid && subject.was_running(&told),
            Reason::Superseded => line.overlap == Overlap::Replace,
            Reason::NoCandidate => !line.allows(opens) || !line.allows(closes),
            Reason::FoundRunning => subject.reopened.contains(&RunId::Period(period_id(period))),
            Reason::DeadlinePassed | Reason::Rescheduled => false,
        };
        if !is_right || chosen < opens || chosen > closes {
            self.fail(
                "O3",
                format!("j{job}: period {period}, begun at {began:?}, ended as {told:?}: {line:?}"),
            );
        }
    }

    /// Which jobs wait for the clock.
    pub(crate) fn is_ahead(&self, job: usize, wall: i64) -> bool {
        let subject = &self.subjects[job];
        let Some(version) = subject.version else { return false };
        let line = &self.lines[version];
        let latest = wall + if line.around { line.window / 2 } else { 0 };
        subject.watermark > Some(latest + krond::anchor::STEP)
    }

    /// How long it takes at most until a period of the line has been judged, in seconds.
    pub(crate) fn takes(line: &Line) -> i64 {
        let (peace, slack) = leeway(line);
        // A minute more than it takes, for those that have to wait for something first.
        let held = if line.zone == Some(Zone::Kolkata) { ZONES_APART } else { 0 };
        60 + peace + held + line.every + 2 * line.window + slack
    }

    /// The faults have ended.
    pub(crate) fn heal(&mut self) {
        for subject in &mut self.subjects {
            subject.judged = 0;
        }
    }

    /// The world ends. Nothing may be left undone.
    pub(crate) fn end(&mut self, now: u64, wall: i64) {
        let recent = now - RESULT_MAX;
        for job in 0..self.subjects.len() {
            self.disturb(job, wall);
            let subject = &self.subjects[job];
            let suspended = subject.version.is_none_or(|version| self.lines[version].suspend);
            let is_there = |span: &Span| span.to.is_none_or(|to| to > recent);
            let is_alive = |process: &ProcessId| {
                subject.runs.iter().any(|span| span.process == *process && is_there(span))
            };
            let open = subject.open.iter().find(|(_, process)| !is_alive(process));
            let open = open.map(|(run, process)| (*run, *process));
            let judged = subject.judged;
            if let Some((run, process)) = open {
                self.fail("O5", format!("j{job}: {run:?} of {process:?} is over and has no result"));
            } else if !suspended && judged == 0 {
                let watermark = self.subjects[job].watermark;
                self.fail("O10", format!("j{job} does not run again; its watermark is {watermark:?}"));
            }
        }
    }
}

/// How long a job must have been left in peace, and how late it may be then.
fn leeway(line: &Line) -> (i64, i64) {
    match line.overlap {
        Overlap::Replace => (PEACE_REPLACE, SLACK_REPLACE),
        Overlap::Allow | Overlap::Forbid => (PEACE, SLACK),
    }
}

impl Subject {
    fn span(&mut self, process: ProcessId) -> Option<&mut Span> {
        self.runs.iter_mut().rev().find(|span| span.process == process)
    }

    /// Periods up to here are handled, as was told at that time.
    fn raise(&mut self, period: i64, at: i64) {
        self.watermark = self.watermark.max(Some(period));
        // What is told before the peace has come began before it.
        if let Some((from, floor)) = &mut self.calm
            && at < *from
        {
            *floor = self.watermark;
        }
    }

    /// A clock was to be accepted, and may have been, though nobody was told.
    fn notice_accepted(&mut self, watermark: Option<i64>) {
        if self.accepting && watermark < self.watermark {
            self.forget_after(watermark.unwrap_or(i64::MIN));
        }
        if std::mem::take(&mut self.accepting) {
            self.shown.clear();
        }
    }

    fn forget_after(&mut self, mark: i64) {
        self.reopened.extend(self.open.keys().copied());
        // What it was executed for may have been forgotten before, when the clock was accepted once already.
        let is_on_its_way = |span: &&Span| match span.run {
            RunId::Period(period) => period.nominal().as_second() > mark && !span.has_begun,
            RunId::Manual(_) => false,
        };
        let is_open = |span: &&Span| self.open.values().any(|process| *process == span.process);
        let waiting = self.runs.iter().filter(is_on_its_way).filter(is_open);
        self.on_their_way.extend(waiting.map(|span| span.process));
        self.shown.clear();
        self.settled.retain(|period, _| *period <= mark);
        self.executed.retain(|period, _| *period <= mark);
        for range in &mut self.passed {
            range.last = range.last.min(mark);
        }
        self.passed.retain(|range| range.first <= range.last);
        self.watermark = Some(mark);
    }

    /// Whether another run was there when this outcome came about, or had only just ended.
    fn was_running(&self, told: &Told) -> bool {
        let (at, wall) = told.at;
        let ago = u64::try_from(wall - told.chosen.unwrap_or(wall)).unwrap_or_default() + 5;
        let since = at.saturating_sub(ago * 1_000_000_000);
        self.runs.iter().any(|span| span.from <= at && span.to.is_none_or(|to| to >= since))
    }
}

impl Range {
    fn has(&self, period: i64) -> bool {
        (self.first..=self.last).contains(&period) && !self.still_open.contains(&period)
    }
}

fn time(value: &Value) -> Option<i64> {
    let time: jiff::Timestamp = value.as_str()?.parse().ok()?;
    Some(time.as_second())
}

fn period_id(second: i64) -> kron_core::PeriodId {
    kron_core::PeriodId::new(jiff::Timestamp::from_second(second).expect("it was one before"))
}
