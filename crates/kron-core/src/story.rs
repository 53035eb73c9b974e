//! A small language for scenarios: a job, a clock that is moved by hand, and what was seen.
//!
//! A story plays the adapter. It performs what [`evaluate`] asks for against a ledger in memory, and
//! checks the promises at every step: no period is started twice or settled twice, a start has its
//! record, the watermark never moves back, evaluating again changes nothing.
//!
//! ```
//! use kron_core::{Overlap, story::Story};
//!
//! let mut story = Story::at("2024-07-09T14:59:00Z", "0 * * * *").overlap(Overlap::Forbid).known();
//! story.until("15:00").saw(["15:00: 15:00 executed"]);
//! story.until("16:00").saw(["16:00: 16:00 skipped, another run was still active"]);
//! story.ends("15:00").until("17:00").saw(["16:00: ended 15:00", "17:00: 17:00 executed"]);
//! ```
//!
//! Times are UTC, `15:00` or `15:00:30` on the day the story begins, or written in full.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jiff::Timestamp;
use jiff::tz::Offset;
use kron_schedule::{Count, Dialect, Dst, Duration, Expr, Zone};

use crate::{
    Constraints, Job, Ledger, Overlap, PeriodId, Policy, Reason, Record, RunId, Step, Watch, WindowMode,
    evaluate,
};

/// A scenario under way; see the [module](self).
pub struct Story {
    line: String,
    zone: Zone,
    dst: Dst,
    window: (WindowMode, Duration),
    constraints: Constraints,
    policy: Policy,
    /// The day that short times lie on.
    day: String,
    now: Timestamp,
    since: Timestamp,
    ledger: Ledger,
    active: Vec<RunId>,
    started: BTreeMap<PeriodId, Timestamp>,
    seen: Vec<String>,
}

/// The most wake-ups in one stretch of a story: two months of minutes.
const WAKES_MAX: u32 = 100_000;

impl Story {
    /// Begins a story at an instant with a job of that schedule, with defaults for everything else.
    ///
    /// # Panics
    ///
    /// If the time or the schedule is no such thing. All of a story's methods are like that: a
    /// mistake in a test ends it.
    #[must_use]
    #[track_caller]
    pub fn at(start: &str, line: &str) -> Story {
        let start: Timestamp = start.parse().expect("a story begins at a time");
        let policy = Policy::default();
        Story {
            line: line.to_string(),
            zone: Zone::utc(),
            dst: Dst::KRON,
            window: (WindowMode::After, Duration::ZERO),
            constraints: Constraints::default(),
            policy,
            day: Offset::UTC.to_datetime(start).date().to_string(),
            now: start,
            since: start,
            ledger: Ledger::new(),
            active: Vec::new(),
            started: BTreeMap::new(),
            seen: Vec::new(),
        }
    }

    /// Sets another schedule. Like every setting, it can also be changed in the middle of a story.
    #[must_use]
    pub fn line(mut self, line: &str) -> Story {
        self.edit(line);
        self
    }

    /// Changes the schedule in the middle of a story.
    pub fn edit(&mut self, line: &str) -> &mut Story {
        self.line = line.to_string();
        self.edited()
    }

    /// Whoever changes a definition watches it from then on.
    fn edited(&mut self) -> &mut Story {
        self.since = self.now;
        self
    }

    /// The zone that the schedule and its constraints are read in.
    #[must_use]
    pub fn zone(mut self, zone: &Zone) -> Story {
        self.zone = zone.clone();
        self
    }

    /// A window.
    #[must_use]
    #[track_caller]
    pub fn window(mut self, mode: WindowMode, duration: &str) -> Story {
        self.set_window(mode, duration);
        self
    }

    /// Changes the window in the middle of a story.
    #[track_caller]
    pub fn set_window(&mut self, mode: WindowMode, duration: &str) -> &mut Story {
        self.window = (mode, duration.parse().expect("a duration"));
        self.edited()
    }

    /// What to do about overlap.
    #[must_use]
    pub fn overlap(mut self, overlap: Overlap) -> Story {
        self.policy.overlap = overlap;
        self
    }

    /// How late a run may start; `none` for as late as it takes.
    #[must_use]
    #[track_caller]
    pub fn deadline(mut self, deadline: &str) -> Story {
        self.set_deadline(deadline);
        self
    }

    /// Changes the deadline in the middle of a story.
    #[track_caller]
    pub fn set_deadline(&mut self, deadline: &str) -> &mut Story {
        self.policy.deadline = match deadline {
            "none" => None,
            deadline => Some(deadline.parse().expect("a duration")),
        };
        self.edited()
    }

    /// What restricts the seconds that may be chosen.
    #[must_use]
    pub fn constraints(mut self, constraints: Constraints) -> Story {
        self.constraints = constraints;
        self
    }

    /// The job was seen before: whatever is nominal by now has its outcome.
    #[must_use]
    pub fn known(self) -> Story {
        let now = PeriodId::new(self.now);
        self.remembering(Ledger::fenced(now))
    }

    /// What is remembered when the story begins.
    #[must_use]
    pub fn remembering(mut self, ledger: Ledger) -> Story {
        self.ledger = ledger;
        self
    }

    /// Time passes, with somebody watching.
    #[track_caller]
    pub fn until(&mut self, time: &str) -> &mut Story {
        let end = self.time(time);
        assert!(end >= self.now, "time goes forward; `clock` sets it back");
        for _ in 0..WAKES_MAX {
            match self.look() {
                Some(wake) if wake <= end => self.now = wake,
                _ => {
                    self.now = end;
                    self.look();
                    return self;
                }
            }
        }
        panic!("the story wakes up more than {WAKES_MAX} times before {time}");
    }

    /// Time passes with nobody watching, and then somebody looks. Runs go on meanwhile.
    #[track_caller]
    pub fn off_until(&mut self, time: &str) -> &mut Story {
        self.now = self.time(time);
        self.since = self.now;
        self.look();
        self
    }

    /// The wall clock is set, while somebody watches. Nobody has seen what it jumps over.
    #[track_caller]
    pub fn clock(&mut self, time: &str) -> &mut Story {
        let time = self.time(time);
        self.since = if time > self.now { time } else { self.since.min(time) };
        self.now = time;
        self.look();
        self
    }

    /// Time passes with somebody watching, who can do nothing (a disk fails) until now.
    #[track_caller]
    pub fn held_until(&mut self, time: &str) -> &mut Story {
        self.now = self.time(time);
        self.look();
        self
    }

    /// The job is suspended.
    pub fn suspend(&mut self) -> &mut Story {
        self.policy.suspend = true;
        self
    }

    /// The job goes on; it is watched from here.
    #[track_caller]
    pub fn resume(&mut self) -> &mut Story {
        self.policy.suspend = false;
        self.since = self.now;
        self.look();
        self
    }

    /// The run of a period ends.
    #[track_caller]
    pub fn ends(&mut self, period: &str) -> &mut Story {
        let run = RunId::Period(PeriodId::new(self.time(period)));
        assert!(self.active.contains(&run), "there is no run of {period}");
        self.end(run);
        self
    }

    /// Every run that is active ends.
    pub fn end_all(&mut self) {
        for run in core::mem::take(&mut self.active) {
            self.end(run);
        }
    }

    /// Somebody starts a run by hand.
    pub fn starts_by_hand(&mut self, number: u64) -> &mut Story {
        self.ledger.apply(&Record::Manual(RunId::Manual(number)));
        self.active.push(RunId::Manual(number));
        self
    }

    /// The run that was started by hand ends.
    pub fn hand_run_ends(&mut self, number: u64) -> &mut Story {
        self.end(RunId::Manual(number));
        self
    }

    /// What happened since the last time this was asked. It must be exactly this.
    #[track_caller]
    pub fn saw<const N: usize>(&mut self, expected: [&str; N]) -> &mut Story {
        let seen = core::mem::take(&mut self.seen);
        assert_eq!(seen, expected, "what was seen, and what was expected");
        self
    }

    /// What happened since the last time, as text, for stories too long to be written down.
    pub fn take_seen(&mut self) -> Vec<String> {
        core::mem::take(&mut self.seen)
    }

    /// Every period that was started, and when.
    pub fn starts(&self) -> impl Iterator<Item = (PeriodId, Timestamp)> + '_ {
        self.started.iter().map(|(period, at)| (*period, *at))
    }

    /// What is remembered now.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The job as it is defined now.
    #[must_use]
    #[track_caller]
    pub fn job(&self) -> Job {
        let expr = Expr::parse(&self.line, Dialect::Ojs).expect("a schedule");
        let schedule = expr.compile(&self.zone, self.dst).expect("a schedule that comes");
        let (mode, duration) = self.window;
        Job::builder("story", schedule, self.zone.clone())
            .window(mode, duration)
            .constraints(self.constraints.clone())
            .policy(self.policy)
            .build()
            .expect("a job")
    }

    /// Evaluates once, and performs every step.
    #[track_caller]
    fn look(&mut self) -> Option<Timestamp> {
        let job = self.job();
        let watch = Watch { since: self.since, now: self.now };
        let (steps, wake) = evaluate(&job, &self.ledger, &self.active, watch);
        for step in &steps {
            self.perform(step);
        }
        let (again, wake_again) = evaluate(&job, &self.ledger, &self.active, watch);
        assert_eq!(again, [], "evaluating again changes nothing");
        assert_eq!(wake, wake_again, "nor when to look again");
        assert!(wake.is_none_or(|wake| wake > self.now), "the next look is later");
        wake
    }

    #[track_caller]
    fn perform(&mut self, step: &Step) {
        match step {
            Step::Record(record) => self.record(record),
            Step::Start(decision) => {
                let period = decision.period_id();
                let chosen = decision.chosen().expect("what starts has a time");
                assert!(self.ledger.is_handled(period), "the record of {period} precedes its start");
                assert_eq!(self.started.insert(period, self.now), None, "{period} is started once");
                assert!(
                    (decision.window_start()..=decision.window_end()).contains(&chosen),
                    "within the window"
                );
                assert!(chosen <= self.now, "{period} is not started early");
                self.active.push(RunId::Period(period));
            }
            Step::Terminate(run) => {
                let name = self.run(*run);
                self.see(&format!("terminate {name}"));
                self.end(*run);
            }
        }
    }

    #[track_caller]
    fn record(&mut self, record: &Record) {
        let before = self.ledger.clone();
        match record {
            Record::Settled(settled) => {
                let period = settled.decision.period_id();
                assert!(!before.is_handled(period), "{period} is settled once");
                let name = self.short(period.nominal());
                self.see(&format!("{name} {}", told(settled.reason)));
            }
            Record::Passed(passed) => {
                for tally in &passed.tallies {
                    assert!(!before.is_handled(tally.first) && !before.is_handled(tally.last), "passed once");
                    let (first, last) = (self.short(tally.first.nominal()), self.short(tally.last.nominal()));
                    let count = match tally.count {
                        Count::Exactly(1) => first,
                        Count::Exactly(n) => format!("{first} to {last}, {n} periods,"),
                        Count::AtLeast(n) => format!("{first} to {last}, at least {n} periods,"),
                    };
                    self.see(&format!("{count} {}", told(tally.reason)));
                }
            }
            Record::Manual(_) | Record::Ended(_) => unreachable!("evaluate settles periods"),
        }
        let overtakes = match record {
            Record::Settled(settled) => settled.overtakes.as_slice(),
            Record::Passed(passed) => passed.overtakes.as_slice(),
            Record::Manual(_) | Record::Ended(_) => &[],
        };
        let newly = overtakes.iter().all(|period| Some(*period) > before.watermark());
        assert!(newly, "only what the watermark passes becomes pending");
        self.ledger.apply(record);
        assert!(self.ledger.watermark() >= before.watermark(), "the watermark never moves back");
        let mut twice = self.ledger.clone();
        twice.apply(record);
        assert_eq!(twice, self.ledger, "a record that is applied twice changes nothing more");
    }

    fn end(&mut self, run: RunId) {
        self.active.retain(|active| *active != run);
        self.ledger.apply(&Record::Ended(run));
        let name = self.run(run);
        self.see(&format!("ended {name}"));
    }

    fn see(&mut self, what: &str) {
        let now = self.short(self.now);
        self.seen.push(format!("{now}: {what}"));
    }

    fn run(&self, run: RunId) -> String {
        match run {
            RunId::Period(period) => self.short(period.nominal()),
            RunId::Manual(number) => format!("by hand {number}"),
        }
    }

    #[track_caller]
    fn time(&self, text: &str) -> Timestamp {
        let full = match text.len() {
            5 => format!("{}T{text}:00Z", self.day),
            8 => format!("{}T{text}Z", self.day),
            _ => text.to_string(),
        };
        full.parse().expect("a time: `15:00`, `15:00:30`, or in full")
    }

    fn short(&self, at: Timestamp) -> String {
        let full = at.to_string();
        match full.strip_prefix(&format!("{}T", self.day)) {
            // `15:00`, but `15:00:30`.
            Some(time) => time.strip_suffix(":00Z").or(time.strip_suffix('Z')).unwrap_or(time).to_string(),
            None => full,
        }
    }
}

/// "executed", "skipped, another run was still active".
fn told(reason: Reason) -> String {
    match reason {
        Reason::Started => reason.outcome().to_string(),
        _ => format!("{}, {reason}", reason.outcome()),
    }
}
