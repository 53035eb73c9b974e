//! One decision beside a bare SHA-256 of its input: the goal is a ratio of at most 1.1. Then what a look at a job costs,
//! and timers for a million of them.
//!
//! Everything is measured in one process, in turns, in CPU time of the thread, and the best of
//! several rounds counts, so that other work on the machine disturbs as little as possible.
//!
//! The peer hashes the very texts that the decisions hash, ready in memory. Both results are looked at where
//! they are: a copy made for the measurement alone would cost a decision as much as a tenth of its hash.

mod timers;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kron_core::{Constraints, Direction, Distribution, Job, SeedStrategy, WindowMode, decide, seed_material};
use kron_core::{Ledger, OPEN_MAX, PeriodId, Watch, evaluate};
use kron_schedule::{Dialect, Dst, Duration, Expr, Zone};
use rustix::time::{ClockId, clock_gettime};
use sha2::{Digest, Sha256};

/// The most a decision may cost, in units of its hash.
const GOAL: f64 = 1.1;
const ROUNDS: usize = 15;
/// Nominal times in a round. Few enough that the texts stay in the first-level cache.
const PERIODS: usize = 256;
const REPEATS: usize = 200;

fn main() -> ExitCode {
    println!(
        "ns per decision, best of {ROUNDS} rounds of {} in turns, CPU time of the thread",
        PERIODS * REPEATS
    );
    println!("{:<44} {:>5} {:>8} {:>8} {:>6}", "decision", "bytes", "sha-256", "kron", "ratio");
    let mut reached = true;
    for case in cases() {
        let measured = measure(&case);
        let ratio = measured.kron / measured.hash;
        let note = match case.goal {
            true if ratio <= GOAL => "ok",
            true => "TOO SLOW",
            false => "",
        };
        reached &= !case.goal || ratio <= GOAL;
        let Case { name, bytes, .. } = &case;
        println!("{name:<44} {bytes:>5} {:>8.1} {:>8.1} {ratio:>6.3} {note}", measured.hash, measured.kron);
    }
    println!("goal: {GOAL} for what is marked");
    searches();
    looks();
    timers::compare();
    if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What of a decision is the search for its nominal time, which is kron-schedule's.
fn searches() {
    for zone in ["UTC", "America/New_York"] {
        let case = case(zone, SeedStrategy::Stable, Distribution::Uniform, "", Search::Chained, false);
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            best = best.min(timed(|| {
                let mut at = case.nominals[0];
                for _ in 0..PERIODS {
                    at = black_box(case.job.schedule().next_after(at).unwrap());
                }
            }));
        }
        println!("one search after another, {zone}: {best:.1} ns each");
    }
}

/// What `evaluate` costs: nothing to do, one period to close and start, and as many periods open as ever can be.
fn looks() {
    let zone = Zone::new(&TimeZone::get("America/New_York").unwrap()).unwrap();
    let schedule = Expr::parse("17 3 * * *", Dialect::Kron).unwrap().compile(&zone, Dst::KRON).unwrap();
    let job = Job::builder("production/database-backups-eu", schedule, zone)
        .window(WindowMode::After, "1h".parse().unwrap())
        .build()
        .unwrap();
    let since: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let next = job.schedule().next_after(since).unwrap();
    let chosen = decide(&job, next).chosen().unwrap();
    let ledger = Ledger::restored(Some(PeriodId::new(since)), Vec::new(), Vec::new());
    for (name, now, due) in [("with nothing due", since, false), ("with a period due", chosen, true)] {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            best = best.min(timed(|| {
                for _ in 0..PERIODS {
                    let (steps, _) = black_box(evaluate(&job, black_box(&ledger), &[], Watch { since, now }));
                    assert_ne!(steps.is_empty(), due);
                }
            }));
        }
        println!("one look {name}: {best:.1} ns");
    }
    look_at_many();
}

/// One look at a job of whose periods as many wait for their time as ever can.
fn look_at_many() {
    let zone = Zone::utc();
    let every_second = Expr::parse("@every 1s", Dialect::Kron).unwrap();
    let count = OPEN_MAX - 1;
    // So late that all of them come due at the very end of their windows.
    let job = Job::builder("production/heartbeat", every_second.compile(&zone, Dst::KRON).unwrap(), zone)
        .window(WindowMode::After, Duration::from_seconds(count as i64))
        .distribution(Distribution::SkewLate { shape: 1e12 })
        .build()
        .unwrap();
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let pending: Vec<_> = job.schedule().occurrences_before(now).take(count as usize).collect();
    let waits = |nominal: &Timestamp| decide(&job, *nominal).chosen().is_some_and(|chosen| chosen > now);
    assert!(pending.iter().all(waits));
    let pending = pending.into_iter().map(PeriodId::new).collect();
    let ledger = Ledger::restored(Some(PeriodId::new(now)), pending, Vec::new());
    let mut best = i64::MAX;
    for _ in 0..ROUNDS {
        let start = cpu_nanos();
        let (steps, wake_at) = black_box(evaluate(&job, &ledger, &[], Watch { since: now, now }));
        best = best.min(cpu_nanos() - start);
        assert!(steps.is_empty() && wake_at.is_some());
    }
    println!("one look at {count} pending periods: {:.2} ms", best as f64 / 1e6);
}

struct Case {
    name: String,
    job: Job,
    nominals: Vec<Timestamp>,
    /// An instant before each nominal time and after the one before.
    starts: Vec<Timestamp>,
    texts: Vec<String>,
    bytes: usize,
    search: Search,
    /// Whether the goal binds.
    goal: bool,
}

/// Whether the search for the next occurrence is part of it.
#[derive(Clone, Copy, PartialEq)]
enum Search {
    No,
    /// From instants that are known, as a scheduler knows the last time of each of its jobs.
    Known,
    /// Each from the answer to the one before, as when the times of one job are listed.
    Chained,
}

fn cases() -> Vec<Case> {
    let uniform = Distribution::Uniform;
    let late = Distribution::SkewLate { shape: 2.0 };
    let odd = Distribution::SkewLate { shape: 2.5 };
    let normal = Distribution::Normal { mu: None, sigma: None };
    let exponential = Distribution::Exponential { lambda: 1.0, direction: Direction::Early };
    let mut cases = Vec::new();
    for (zone, strategy, distribution, only, goal) in [
        ("UTC", SeedStrategy::Stable, uniform, "", true),
        ("America/New_York", SeedStrategy::Stable, uniform, "", true),
        ("America/New_York", SeedStrategy::Daily, uniform, "", true),
        ("America/New_York", SeedStrategy::Weekly, uniform, "", true),
        ("America/New_York", SeedStrategy::Stable, late, "", true),
        ("America/New_York", SeedStrategy::Stable, odd, "", false),
        ("America/New_York", SeedStrategy::Stable, normal, "", false),
        ("America/New_York", SeedStrategy::Stable, exponential, "", false),
        ("America/New_York", SeedStrategy::Stable, uniform, "dow=MON-SUN;hours=0-23", false),
    ] {
        for search in [Search::No, Search::Known, Search::Chained] {
            let goal = goal && search != Search::Chained;
            cases.push(case(zone, strategy, distribution, only, search, goal));
        }
    }
    cases
}

fn case(
    zone: &str,
    strategy: SeedStrategy,
    distribution: Distribution,
    only: &str,
    search: Search,
    goal: bool,
) -> Case {
    let place = Zone::new(&TimeZone::get(zone).unwrap()).unwrap();
    let schedule = Expr::parse("17 3 * * *", Dialect::Kron).unwrap().compile(&place, Dst::KRON).unwrap();
    let mut constraints = Constraints::default();
    if !only.is_empty() {
        constraints.add_only(&only.replace("MON-SUN", "1-7")).unwrap();
    }
    // With a stable key of 20 characters this makes 55 bytes, the most that one block takes.
    let job = Job::builder("production/database-backups-eu", schedule, place)
        .window(WindowMode::After, "1h".parse().unwrap())
        .distribution(distribution)
        .seed(strategy, "t-7")
        .constraints(constraints)
        .build()
        .unwrap();
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let nominals: Vec<_> = job.schedule().occurrences_after(start).take(PERIODS).collect();
    let texts: Vec<_> = nominals.iter().map(|nominal| seed_material(&job, *nominal)).collect();
    let bytes = texts[0].len();
    let constrained = if only.is_empty() { "" } else { ", only" };
    let starts = nominals.iter().enumerate();
    let starts = starts.map(|(n, nominal)| *nominal - SignedDuration::from_secs(1 + 337 * n as i64 % 80_000));
    let starts = starts.collect();
    let searched = match search {
        Search::No => "",
        Search::Known => "next + ",
        Search::Chained => "list + ",
    };
    let kind = match distribution {
        Distribution::Exponential { .. } => "exponential",
        Distribution::Normal { .. } => "normal",
        Distribution::SkewEarly { .. } => "skewEarly",
        Distribution::SkewLate { shape: 2.0 } => "skewLate 2",
        Distribution::SkewLate { .. } => "skewLate 2.5",
        Distribution::Uniform => "uniform",
    };
    let city = zone.rsplit('/').next().unwrap();
    let name = format!("{searched}{strategy}, {kind}{constrained}, {city}");
    Case { name, job, nominals, starts, texts, bytes, search, goal }
}

struct Measured {
    hash: f64,
    kron: f64,
}

fn measure(case: &Case) -> Measured {
    let mut best = Measured { hash: f64::INFINITY, kron: f64::INFINITY };
    for _ in 0..ROUNDS {
        let hash = timed(|| {
            for text in &case.texts {
                black_box(&Sha256::digest(black_box(text.as_bytes())));
            }
        });
        let kron = match case.search {
            Search::No => timed(|| {
                for nominal in &case.nominals {
                    black_box(&decide(black_box(&case.job), *nominal));
                }
            }),
            Search::Known => timed(|| {
                for start in &case.starts {
                    let at = case.job.schedule().next_after(*start).unwrap();
                    black_box(&decide(black_box(&case.job), at));
                }
            }),
            Search::Chained => timed(|| {
                let mut at = case.nominals[0];
                for _ in 0..PERIODS {
                    black_box(&decide(black_box(&case.job), at));
                    at = case.job.schedule().next_after(at).unwrap();
                }
            }),
        };
        best.hash = best.hash.min(hash);
        best.kron = best.kron.min(kron);
    }
    best
}

/// Nanoseconds for one of the [`PERIODS`], of a function that handles all of them.
fn timed(all: impl Fn()) -> f64 {
    let start = cpu_nanos();
    for _ in 0..REPEATS {
        all();
    }
    (cpu_nanos() - start) as f64 / (PERIODS * REPEATS) as f64
}

fn cpu_nanos() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The allocator of the system, with a count of the bytes that are in use.
struct Counted;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTED: Counted = Counted;

// SAFETY: the system's allocator does all of it; what is added only counts.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Bytes in use.
fn allocated() -> usize {
    ALLOCATED.load(Ordering::Relaxed)
}
