//! Testing the tester: bugs planted on purpose, most of them some peer's, must be caught soon.
//!
//! A comparison that lets one of these through proves nothing when it is green.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kron_schedule::{Expr, Fold, Gap, Schedule, Zone};

use crate::compare::{Answers, answers};
use crate::generator::{Case, NamedZone, Random, zones};
use crate::oracle::Oracle;

/// Cases tried until a bug must have shown itself. The rarest here takes a twentieth of them.
const CASES: u64 = 20_000;

/// A schedule with a bug in its making, in `next`, in `prev` or in its lists.
struct Planted {
    schedule: Schedule,
    listed: Schedule,
    next: fn(&Schedule, Timestamp) -> Option<Timestamp>,
    prev: fn(&Schedule, Timestamp) -> Option<Timestamp>,
}

impl Planted {
    fn new(schedule: Schedule) -> Planted {
        let listed = schedule.clone();
        Planted { schedule, listed, next: Schedule::next_after, prev: Schedule::prev_at_or_before }
    }
}

impl Answers for Planted {
    fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        (self.next)(&self.schedule, instant)
    }

    fn prev_at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        (self.prev)(&self.schedule, instant)
    }

    fn list_after(&self, instant: Timestamp, count: usize) -> Vec<Timestamp> {
        self.listed.list_after(instant, count)
    }
}

const SECOND: SignedDuration = SignedDuration::from_secs(1);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const HOUR: SignedDuration = SignedDuration::from_hours(1);
const EIGHT_YEARS: SignedDuration = SignedDuration::from_hours(8 * 365 * 24);

#[test]
fn nothing_planted_is_not_caught() {
    assert_eq!(caught_after(|case| Planted::new(right(case))), None);
}

#[test]
fn a_fold_ignored() {
    expect_caught(|case| Planted::new(compile(case, case.dst.gap, Fold::Both, &case.zone.kron)));
}

#[test]
fn a_fold_that_runs_once_where_it_should_run_twice() {
    expect_caught(|case| Planted::new(compile(case, case.dst.gap, Fold::First, &case.zone.kron)));
}

#[test]
fn a_gap_skipped_where_it_should_be_made_up_for() {
    expect_caught(|case| Planted::new(compile(case, Gap::Skip, case.dst.fold, &case.zone.kron)));
}

#[test]
fn a_gap_shifted_instead_of_skipped() {
    fn shifted(schedule: &Schedule, after: Timestamp) -> Option<Timestamp> {
        let next = schedule.next_after(after)?;
        let mut gaps = schedule.skipped_between(after, next);
        gaps.next().map_or(Some(next), |gap| gap.at().checked_add(HOUR / 2).ok())
    }
    expect_caught(|case| Planted { next: shifted, ..Planted::new(right(case)) });
}

#[test]
fn an_answer_a_minute_late() {
    let late: fn(&Schedule, Timestamp) -> _ = |schedule, after| Some(schedule.next_after(after)? + MINUTE);
    expect_caught(|case| Planted { next: late, ..Planted::new(right(case)) });
}

#[test]
fn an_answer_that_does_not_advance() {
    let stuck: fn(&Schedule, Timestamp) -> _ = |schedule, after| schedule.next_after(after - SECOND);
    expect_caught(|case| Planted { next: stuck, ..Planted::new(right(case)) });
}

#[test]
fn a_start_rounded_up() {
    let late: fn(&Schedule, Timestamp) -> _ =
        |schedule, after| schedule.next_after(after.checked_add(SECOND).ok()?);
    expect_caught(|case| Planted { next: late, ..Planted::new(right(case)) });
}

#[test]
fn a_previous_occurrence_that_excludes_the_instant() {
    let before: fn(&Schedule, Timestamp) -> _ = |schedule, at| schedule.prev_at_or_before(at - SECOND);
    expect_caught(|case| Planted { prev: before, ..Planted::new(right(case)) });
}

#[test]
fn a_clock_that_is_never_changed() {
    expect_caught(|case| Planted::new(compile(case, case.dst.gap, case.dst.fold, &never_changed(case))));
}

#[test]
fn a_list_that_goes_on_when_clocks_change() {
    expect_caught(|case| {
        let listed = compile(case, case.dst.gap, case.dst.fold, &never_changed(case));
        Planted { listed, ..Planted::new(right(case)) }
    });
}

#[test]
fn a_list_that_loses_what_clocks_repeat() {
    expect_caught(|case| {
        let listed = compile(case, case.dst.gap, Fold::First, &case.zone.kron);
        Planted { listed, ..Planted::new(right(case)) }
    });
}

/// cron, cronexpr, cron-lite and jiff-cron lose the leap day after 2096.
#[test]
fn a_search_that_gives_up_after_eight_years() {
    let hasty: fn(&Schedule, Timestamp) -> _ =
        |schedule, after| schedule.next_after(after).filter(|next| next.duration_since(after) < EIGHT_YEARS);
    expect_caught(|case| Planted { next: hasty, ..Planted::new(right(case)) });
}

/// The zone, with the offset of the start for ever.
fn never_changed(case: &Case<'_>) -> Zone {
    let fixed = TimeZone::fixed(case.zone.jiff.to_offset(case.start));
    Zone::new(&fixed).expect("a fixed offset has no changes")
}

fn right(case: &Case<'_>) -> Schedule {
    compile(case, case.dst.gap, case.dst.fold, &case.zone.kron)
}

fn compile(case: &Case<'_>, gap: Gap, fold: Fold, zone: &Zone) -> Schedule {
    let expr = Expr::parse(&case.text, case.dialect).expect("generated expressions are valid");
    expr.compile(zone, kron_schedule::Dst { gap, fold }).expect("what never matches is left out")
}

fn expect_caught(plant: impl Fn(&Case<'_>) -> Planted) {
    match caught_after(plant) {
        Some(number) => println!("caught by case {number}"),
        None => panic!("{CASES} cases did not show it"),
    }
}

fn caught_after(plant: impl Fn(&Case<'_>) -> Planted) -> Option<u64> {
    let zones: Vec<NamedZone> = zones();
    (0..CASES).find(|number| {
        let case = Case::random(&mut Random::of_case(1, *number), &zones);
        let expr = Expr::parse(&case.text, case.dialect).expect("generated expressions are valid");
        let possible = expr.compile(&case.zone.kron, case.dst).is_ok();
        let oracle = Oracle::new(&case.text, &case.zone.jiff, &case.dst.to_string());
        possible && answers(&plant(&case), &oracle, case.start).is_err()
    })
}
