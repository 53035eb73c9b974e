//! Every point of a small history, with every kind of fault there, one at a time.
//!
//! One job, two periods. First the history is lived through in peace, to count the points where something can
//! go wrong. Then once more for each point, each fault and whatever else may come with it.

use krond::store::Missing;

use crate::checker::Violation;
use crate::disk::{Crash, Fault};
use crate::line::{Line, Overlap};
use crate::rng::Rng;
use crate::world::{Happened, SECOND, World};

/// What came of all of them.
#[derive(Clone, Debug)]
#[must_use]
pub struct Sweep {
    /// How many histories there were.
    pub histories: u64,
    /// How many points the one in peace has, under each policy.
    pub points: Vec<u64>,
    /// The first promise that was broken, and by what.
    pub violation: Option<(String, Violation)>,
}

/// What a power cut may leave is told by the bits of a number. There are never more operations under way.
const CHOICES: u64 = 64;

/// How long there is to watch: two periods, and what comes after a crash.
const LENGTH: u64 = 130;

/// Goes through all of them.
pub fn sweep() -> Sweep {
    let mut sweep = Sweep { histories: 0, points: Vec::new(), violation: None };
    for overlap in [Overlap::Forbid, Overlap::Replace, Overlap::Allow] {
        let line = Line {
            job: 0,
            version: 0,
            every: 60,
            offset: 0,
            zone: None,
            around: false,
            window: 0,
            deadline: 30,
            overlap,
            hours: None,
            timeout: None,
            suspend: false,
        };
        let points = live(&line, None, 0, 0).0;
        sweep.points.push(points);
        let crashes = (0..CHOICES).map(|choice| (Fault::Crash(Crash::Power), choice));
        let others = [Fault::Crash(Crash::Kill), Fault::Full, Fault::Broken].map(|fault| (fault, 0));
        let faults: Vec<(Fault, u64)> = crashes.chain(others).collect();
        for point in 1..=points {
            for (fault, choice) in &faults {
                for (downtime, back) in [(0, 0), (20, 0), (70, 0), (0, 65), (20, 65)] {
                    let (_, violation) = live(&line, Some((point, *fault, *choice)), downtime, back);
                    sweep.histories += 1;
                    if let Some(violation) = violation {
                        let what = format!(
                            "{overlap:?}: {fault:?} ({choice}) at point {point}, down for {downtime} s, \
                             clock set back by {back} s"
                        );
                        sweep.violation.get_or_insert((what, violation));
                    }
                }
            }
        }
    }
    sweep
}

/// One of them: how many points it had, and what was broken.
fn live(line: &Line, fault: Option<(u64, Fault, u64)>, downtime: u64, back: i64) -> (u64, Option<Violation>) {
    let mut world = World::new(Rng::new(1), vec![line.clone()], Missing::New, None, false);
    world.downtime = Some(downtime * SECOND + 1);
    world.run_max = 20_000;
    world.disk.borrow_mut().exchanges = true;
    if let Some((point, fault, choice)) = fault {
        let mut disk = world.disk.borrow_mut();
        disk.at_point = Some((point, fault));
        disk.choice = Some(choice);
    }
    world.start_in(0);
    let end = world.now + LENGTH * SECOND;
    let mut is_set = back == 0;
    while let Happened::Something | Happened::Alarm(_) = world.step(end) {
        // The clock is set while krond is down.
        if !is_set && world.is_down() && world.starts > 0 {
            is_set = true;
            world.set_clock(-back * 1_000_000_000);
        }
    }
    let points = world.disk.borrow().points;
    world.disk.borrow_mut().at_point = None;
    world.calm_all();
    let end = world.now + 3 * LENGTH * SECOND;
    while let Happened::Something | Happened::Alarm(_) = world.step(end) {}
    let wall = world.second();
    world.checker.end(world.now, wall);
    let (checker, ..) = world.finish();
    (points, checker.violation)
}
