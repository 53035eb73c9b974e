//! One history: a world, a nemesis that does its worst to it, and then peace.

use krond::daemon::Farewell;
use krond::store::Missing;

use crate::checker::{Checker, Violation};
use crate::disk::Crash;
use crate::line::Line;
use crate::plant::Plant;
use crate::rng::{Rng, mix};
use crate::tally::Tally;
use crate::world::{Happened, SECOND, World};

/// What came of a history.
#[derive(Clone, Debug)]
#[must_use]
pub struct Verdict {
    /// The seed it replays from.
    pub seed: u64,
    /// A number made of everything that happened. Replays have the same.
    pub hash: u64,
    /// What there was of everything.
    pub tally: Tally,
    /// The first promise that was broken, if one was.
    pub violation: Option<Violation>,
    /// What happened, line by line, if it was asked for.
    pub trace: Vec<String>,
}

/// Lives through the history of a seed.
pub fn run(seed: u64) -> Verdict {
    run_with(seed, Options::default())
}

/// What may be different about a history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// A bug to plant.
    pub plant: Option<Plant>,
    /// Whether a period executed twice is all that counts.
    pub duplicates_only: bool,
    /// Whether to tell what happens.
    pub trace: bool,
}

/// Lives through the history of a seed with something different about it.
pub fn run_with(seed: u64, options: Options) -> Verdict {
    let Options { plant, duplicates_only, trace } = options;
    let mut rng = Rng::new(mix(seed));
    let plan = Plan::random(&mut rng);
    let mut tally = Tally { histories: 1, ..Tally::default() };
    let lines: Vec<Line> = (0..plan.jobs).map(|job| Line::random(job, job, &mut rng)).collect();
    let mut world = World::new(rng.fork(), lines, plan.missing, plant, trace);
    world.checker.only = duplicates_only.then_some("O1");
    world.run_max = plan.run_max;
    world.history_max = plan.history_max;
    world.checker.history_max = plan.history_max;
    let mut nemesis = Nemesis { rng, plan, tally: &mut tally, removed: Vec::new(), right: 0 };
    nemesis.safety(&mut world);
    if world.checker.violation.is_none() {
        nemesis.liveness(&mut world);
    }
    tally.starts += world.starts;
    let (checker, hash, trace, disk) = world.finish();
    tally.periods += checker.periods;
    tally.executions += checker.executions;
    tally.judged += checker.judged;
    tally.results += checker.results;
    tally.full += disk.faults[0];
    tally.write_errors += disk.faults[1];
    tally.read_errors += disk.faults[2];
    tally.points += disk.points;
    Verdict { seed, hash, tally, violation: checker.violation, trace }
}

/// What a world is like, and what may happen in it.
struct Plan {
    jobs: usize,
    missing: Missing,
    run_max: i64,
    history_max: usize,
    /// How long the nemesis acts, in seconds.
    length: i64,
    /// The mean time between its acts, in seconds.
    pause: i64,
    /// What it does, each as often as it stands here.
    acts: Vec<Act>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Act {
    Kill,
    Power,
    Stop,
    Stall,
    Sleep,
    ClockBack,
    ClockForward,
    ClockAway,
    ClockRight,
    Full,
    Broken,
    NoProcesses,
    Slow,
    Damage,
    DamageAndBack,
    Delete,
    DeleteAndBack,
    Edit,
    Remove,
    ByHand,
    Accept,
    Pause,
    Stranger,
}

const ACTS: [Act; 23] = [
    Act::Kill,
    Act::Power,
    Act::Stop,
    Act::Stall,
    Act::Sleep,
    Act::ClockBack,
    Act::ClockForward,
    Act::ClockAway,
    Act::ClockRight,
    Act::Full,
    Act::Broken,
    Act::NoProcesses,
    Act::Slow,
    Act::Damage,
    Act::DamageAndBack,
    Act::Delete,
    Act::DeleteAndBack,
    Act::Edit,
    Act::Remove,
    Act::ByHand,
    Act::Accept,
    Act::Pause,
    Act::Stranger,
];

impl Plan {
    fn random(rng: &mut Rng) -> Plan {
        let jobs = rng.between(1, 8).unsigned_abs();
        // Each history has some kinds of faults and not others: together they would hide one another.
        let mut acts: Vec<Act> = Vec::new();
        for act in ACTS {
            if rng.chance(450) {
                let weight = 1 + rng.below(4);
                acts.extend((0..weight).map(|_| act));
            }
        }
        acts.push(*rng.pick(&[Act::Kill, Act::Power]));
        let missing = if rng.chance(500) { Missing::Fence } else { Missing::New };
        Plan {
            jobs: usize::try_from(jobs).expect("few"),
            missing,
            run_max: *rng.pick(&[1_000, 20_000, 60_000, 120_000]),
            history_max: *rng.pick(&[0, 3, 3, 3, 3, 3, 8, 20]),
            length: rng.between(300, 2_400),
            pause: rng.between(10, 120),
            acts,
        }
    }
}

struct Nemesis<'a> {
    rng: Rng,
    plan: Plan,
    tally: &'a mut Tally,
    removed: Vec<Line>,
    /// How far the wall clock is off.
    right: i64,
}

// What an alarm is for.
const ACT: u64 = 0;
const CALM: u64 = 1;
const REPAIR: u64 = 2;
const GO_BACK: u64 = 3;

const YEAR: i64 = 31_557_600;

impl Nemesis<'_> {
    fn safety(&mut self, world: &mut World) {
        world.start_in(0);
        let end = world.now + u64::try_from(self.plan.length).expect("positive") * SECOND;
        self.plan_next(world);
        loop {
            match world.step(end) {
                Happened::Nothing => return,
                Happened::Something => {}
                Happened::Alarm(number) => self.on_alarm(world, number),
            }
            if world.checker.violation.is_some() {
                return;
            }
        }
    }

    fn plan_next(&mut self, world: &mut World) {
        let pause = 1 + self.rng.below(2_000 * self.plan.pause.unsigned_abs());
        world.alarm(pause * 1_000_000, ACT);
    }

    fn on_alarm(&mut self, world: &mut World, number: u64) {
        match number {
            ACT => {
                let act = *self.rng.pick(&self.plan.acts);
                self.act(world, act);
                self.plan_next(world);
            }
            CALM => world.calm_all(),
            REPAIR => self.repair(world),
            _ => self.set_right(world),
        }
    }

    /// Ends every fault that lasts.
    fn repair(&mut self, world: &mut World) {
        if world.troubles > 0 {
            world.troubles = 0;
            let mut disk = world.disk.borrow_mut();
            disk.full = 0;
            disk.broken = 0;
            drop(disk);
            world.spawn_fails = 0;
            world.write_max = 20_000_000;
            world.disk_hangs = false;
            world.note(30, 0, || "what was broken is repaired".into());
            world.calm_all();
        }
    }

    fn trouble(&mut self, world: &mut World, seconds: i64) {
        world.disturb_all();
        world.troubles += 1;
        let length = self.rng.between(1, seconds).unsigned_abs() * SECOND;
        world.alarm(length, REPAIR);
    }

    fn set_clock(&mut self, world: &mut World, seconds: i64) {
        let nanos = seconds * 1_000_000_000 + self.rng.between(0, 999_999_999);
        let off = self.right + nanos;
        if off.abs() > 76 * YEAR * 1_000_000_000 {
            return;
        }
        self.right = off;
        self.tally.clock_steps += 1;
        world.set_clock(nanos);
    }

    fn set_right(&mut self, world: &mut World) {
        if self.right != 0 {
            let by = -self.right;
            self.right = 0;
            self.tally.clock_steps += 1;
            world.set_clock(by);
        }
    }

    /// A distance on the clock, in seconds: as likely short as long.
    fn distance(&mut self, most: i64) -> i64 {
        let reach =
            *self.rng.pick(&[2, 10, 60, 150, 600, 3_600, 7_200, 86_400, 30 * 86_400, YEAR, 72 * YEAR]);
        self.rng.between(1, reach.min(most))
    }

    fn job(&mut self, world: &World) -> usize {
        self.rng.index(world.jobs())
    }

    fn act(&mut self, world: &mut World, act: Act) {
        use Act::{Accept, ByHand, Edit, Pause, Remove, Sleep, Stall, Stop};
        if world.is_asleep() && matches!(act, Accept | ByHand | Edit | Pause | Remove | Sleep | Stall | Stop)
        {
            return;
        }
        self.tally.faults += 1;
        match act {
            Act::Kill | Act::Power => {
                self.crash(world, if act == Act::Kill { Crash::Kill } else { Crash::Power });
            }
            Act::Stop => {
                self.tally.stops += 1;
                let farewell = match self.rng.below(10) {
                    0..=5 => Farewell::Leave,
                    6 | 7 => Farewell::Wait,
                    _ => Farewell::End,
                };
                world.stop(farewell);
            }
            Act::Stall | Act::Sleep => {
                self.tally.sleeps += 1;
                let reach = *self.rng.pick(&[2_000, 20_000, 45_000, 300_000, 3_600_000]);
                let length = self.rng.below(reach) * 1_000_000;
                world.sleep_for(length, act == Act::Stall);
                world.alarm(length + 1, CALM);
            }
            Act::ClockBack => {
                let by = -self.distance(2 * YEAR);
                self.set_clock(world, by);
            }
            Act::ClockForward => {
                let by = self.distance(7_200);
                self.set_clock(world, by);
            }
            Act::ClockAway => {
                let by = self.distance(72 * YEAR);
                self.set_clock(world, by);
                let back = self.rng.below(300) * SECOND;
                world.alarm(back, GO_BACK);
            }
            Act::ClockRight => self.set_right(world),
            Act::Full => {
                let rate = *self.rng.pick(&[100, 500, 1_000]);
                world.disk.borrow_mut().full = rate;
                self.trouble(world, 60);
            }
            Act::Broken => {
                let rate = *self.rng.pick(&[30, 100, 400, 1_000]);
                world.disk.borrow_mut().broken = rate;
                self.trouble(world, 60);
            }
            Act::NoProcesses => {
                self.tally.spawn_windows += 1;
                world.spawn_fails = *self.rng.pick(&[300, 1_000]);
                self.trouble(world, 60);
            }
            Act::Slow if self.rng.chance(300) => {
                self.tally.hangs += 1;
                world.disk_hangs = true;
                self.trouble(world, 900);
            }
            Act::Slow => {
                world.write_max = 2 * SECOND;
                self.trouble(world, 120);
            }
            Act::Damage => {
                let job = self.job(world);
                self.tally.damaged += u64::from(world.damage(job));
            }
            Act::DamageAndBack => {
                // The rare pair: the file says nothing any more, and the clock says that it is earlier.
                let job = self.job(world);
                self.tally.damaged += u64::from(world.damage(job));
                self.step_back(world);
            }
            Act::DeleteAndBack => {
                // No file tells of a later time, but for the anchor.
                let job = self.job(world);
                self.tally.deleted += u64::from(world.delete(job));
                self.step_back(world);
            }
            Act::Delete => {
                let job = self.job(world);
                self.tally.deleted += u64::from(world.delete(job));
            }
            Act::Edit => {
                self.tally.edits += 1;
                let job = self.job(world);
                if let Some(before) = world.lines.get(&job).cloned() {
                    let line = before.edited(world.checker.lines.len(), &mut self.rng);
                    // Another zone is often found by a krond that has only its files to remember the old one by.
                    if line.zone != before.zone && !world.is_down() && self.rng.chance(500) {
                        self.tally.kills += 1;
                        world.fall(Crash::Kill);
                    }
                    world.edit(job, Some(line));
                }
            }
            Act::Remove => {
                self.tally.edits += 1;
                if let Some(line) = self.removed.pop() {
                    let line = Line { version: world.checker.lines.len(), ..line };
                    world.edit(line.job, Some(line));
                } else {
                    let job = self.job(world);
                    self.removed.extend(world.lines.get(&job).cloned());
                    world.edit(job, None);
                }
            }
            Act::ByHand => {
                self.tally.by_hand += 1;
                let job = self.job(world);
                world.run_by_hand(job);
            }
            Act::Accept => {
                let job = self.job(world);
                let is_ahead = world.checker.is_ahead(job, world.second());
                if is_ahead || self.rng.chance(100) {
                    self.tally.accepted += 1;
                    world.accept_clock(job);
                }
            }
            Act::Pause => {
                let job = self.job(world);
                if !world.checker.is_pausing(job) {
                    self.tally.pauses += 1;
                    world.pause(job, !world.checker.is_paused(job));
                }
            }
            Act::Stranger => world.stranger(),
        }
    }

    /// The clock is set back, and often that is the end of krond too.
    fn step_back(&mut self, world: &mut World) {
        let by = -self.distance(7_200);
        self.set_clock(world, by);
        if self.rng.chance(700) {
            let crash = *self.rng.pick(&[Crash::Kill, Crash::Power]);
            self.crash(world, crash);
        }
    }

    /// An end at one of the next points where there can be one, or now.
    fn crash(&mut self, world: &mut World, crash: Crash) {
        match crash {
            Crash::Kill => self.tally.kills += 1,
            Crash::Power => self.tally.power_cuts += 1,
        }
        if self.rng.chance(100) || world.krond.is_none() {
            world.fall(crash);
        } else {
            let mut disk = world.disk.borrow_mut();
            let reach = *self.rng.pick(&[8, 40, 120]);
            let at = disk.points + 1 + self.rng.below(reach);
            disk.at_point = Some((at, crate::disk::Fault::Crash(crash)));
        }
    }

    /// The faults have ended. Everything must run again.
    fn liveness(&mut self, world: &mut World) {
        world.note(31, 0, || "the faults end".into());
        world.disk.borrow_mut().at_point = None;
        world.wake();
        self.pass(world, 1);
        self.repair(world);
        world.ring = 200;
        while let Some(line) = self.removed.pop() {
            let line = Line { version: world.checker.lines.len(), ..line };
            world.edit(line.job, Some(line));
        }
        if self.rng.chance(500) {
            self.set_right(world);
        }
        // Whoever was asked to stop is let go.
        if world.krond.as_ref().is_some_and(|krond| krond.is_stopping) {
            world.fall(Crash::Kill);
        }
        world.start_in(0);
        self.pass(world, 20);
        for job in 0..world.jobs() {
            if world.checker.is_ahead(job, world.second()) {
                world.accept_clock(job);
                self.tally.accepted += 1;
            }
            if world.checker.is_paused(job) {
                world.pause(job, false);
            }
        }
        world.checker.heal();
        // Every job has one period at least that begins and ends in peace.
        let length = world.lines.values().map(Checker::takes).max().unwrap_or_default();
        self.pass(world, length);
        let wall = world.second();
        world.checker.end(world.now, wall);
        if let Some(job) = world.is_held() {
            world.checker.fail("O10", format!("j{job} is still held"));
        }
        if let Some(asker) = world.asker() {
            world.checker.fail("O12", format!("asker {asker} was never answered"));
        }
    }

    /// Lets time pass.
    fn pass(&mut self, world: &mut World, seconds: i64) {
        let end = world.now + seconds.unsigned_abs() * SECOND;
        loop {
            match world.step(end) {
                Happened::Nothing => return,
                Happened::Something => {}
                Happened::Alarm(CALM) => world.calm_all(),
                Happened::Alarm(_) => {}
            }
            if world.checker.violation.is_some() {
                return;
            }
        }
    }
}
