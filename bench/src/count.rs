//! What callgrind counts: one call, so that the number is exact. scripts/bench runs valgrind.

use std::hint::black_box;
use std::process::ExitCode;

use jiff::Timestamp;
use kron_schedule::{Dialect, Dst, Expr, Schedule};

use crate::contestant::kron_zone;
use crate::corpus::{CASES, CLASSES, Zone};

/// The names that `run` takes, with a space for what separates their parts.
pub(crate) fn list() {
    for case in cases() {
        println!("{}", case.0);
    }
}

pub(crate) fn run(name: &str) -> ExitCode {
    let Some((_, text, zone, start)) = cases().into_iter().find(|case| case.0 == name) else {
        eprintln!("no case is called {name:?}");
        return ExitCode::from(2);
    };
    let expr = Expr::parse(text, Dialect::Ojs).expect("the corpus is legal");
    let start: Timestamp = start.parse().expect("an instant");
    match expr.compile(&kron_zone(zone), Dst::KRON) {
        Ok(schedule) => println!("{:?}", measured(black_box(&schedule), black_box(start))),
        Err(error) => println!("refused: {error}"),
    }
    ExitCode::SUCCESS
}

/// Callgrind collects while this runs.
#[inline(never)]
#[expect(unsafe_code, reason = "valgrind finds it by its name")]
#[unsafe(no_mangle)]
extern "C" fn kron_bench_measured(schedule: &Schedule, start: &Timestamp, next: &mut Option<Timestamp>) {
    *next = schedule.next_after(*start);
}

fn measured(schedule: &Schedule, start: Timestamp) -> Option<Timestamp> {
    let mut next = None;
    kron_bench_measured(schedule, &start, &mut next);
    next
}

type Named = (String, &'static str, Zone, &'static str);

/// The worst cases, and the first expression of each class from an ordinary moment.
fn cases() -> Vec<Named> {
    let worst = CASES.iter().map(|case| (case.name.to_string(), case.expression, case.zone, case.start));
    let classes = CLASSES.iter().flat_map(|class| {
        Zone::ALL.map(|zone| {
            (format!("{} {}", class.name, zone.name()), class.expressions[0], zone, "2026-06-15T12:34:56Z")
        })
    });
    worst.chain(classes).collect()
}
