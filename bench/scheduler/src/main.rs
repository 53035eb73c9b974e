//! Many tasks due at one instant: how soon the first and the last of them start, and how many never do. And many tasks
//! that wait: what they cost.
//!
//! Every contestant runs in a process of its own, with the host's clock, and its tasks do nothing but note the time. Kron
//! makes every start durable before it happens; the others keep nothing.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kron_scheduler::store::{FileStore, MemoryStore, SqliteStore, Store};
use kron_scheduler::testing::VirtualClock;
use kron_scheduler::{Clock as _, Event, Registration, Scheduler};

/// Contestants and numbers of tasks; registering takes so many seconds at the most.
/// tokio-cron-scheduler goes three times, because it does not lose the same number every time.
const BURSTS: [(&str, usize, i64); 12] = [
    ("kron, file", 10_000, 5),
    ("kron, sqlite", 10_000, 5),
    ("tokio-cron-scheduler", 10_000, 15),
    ("tokio-cron-scheduler", 10_000, 15),
    ("tokio-cron-scheduler", 10_000, 15),
    ("apalis-cron", 10_000, 15),
    (APSCHEDULER, 10_000, 15),
    ("kron, file", 100_000, 10),
    ("kron, sqlite", 100_000, 15),
    ("tokio-cron-scheduler", 100_000, 100),
    ("apalis-cron", 100_000, 60),
    (APSCHEDULER, 100_000, 200),
];
const WAVES: [(&str, usize); 5] = [
    ("kron, memory", 10_000),
    ("kron, file", 10_000),
    ("kron, file", 100_000),
    ("kron, sqlite", 10_000),
    ("kron, file", 1_000_000),
];
const IDLE: [(&str, usize); 5] = [
    ("kron, file", 10_000),
    ("tokio-cron-scheduler", 10_000),
    ("apalis-cron", 10_000),
    (APSCHEDULER, 10_000),
    ("kron, file", 1_000_000),
];
/// It is in Python: `KRON_BENCH_PYTHON` says which one has it.
const APSCHEDULER: &str = "APScheduler";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["burst", who, tasks, lead] => within(burst(who, tasks.parse().unwrap(), lead.parse().unwrap())),
        ["waves", who, tasks] => within(waves(who, tasks.parse().unwrap())),
        ["idle", who, tasks] => within(idle(who, tasks.parse().unwrap())),
        _ => all(&arguments),
    }
}

fn all(only: &[String]) {
    let chosen = |who: &str| only.is_empty() || only.iter().any(|only| who.contains(only.as_str()));
    println!(
        "{:<22} {:>9} {:>13} {:>13} {:>9}",
        "due together", "tasks", "first start", "last start", "lost"
    );
    for (who, tasks, lead) in BURSTS.into_iter().filter(|(who, ..)| chosen(who)) {
        run(&["burst", who, &tasks.to_string(), &lead.to_string()]);
    }
    println!(
        "\n{:<22} {:>9} {:>13} {:>13} {:>13}",
        "20 times together", "tasks", "best", "median", "CPU a task"
    );
    for (who, tasks) in WAVES.into_iter().filter(|(who, _)| chosen(who)) {
        run(&["waves", who, &tasks.to_string()]);
    }
    println!(
        "\n{:<22} {:>9} {:>13} {:>13} {:>9}",
        "waiting", "tasks", "registered in", "memory a task", "CPU"
    );
    for (who, tasks) in IDLE.into_iter().filter(|(who, _)| chosen(who)) {
        run(&["idle", who, &tasks.to_string()]);
    }
}

fn run(arguments: &[&str]) {
    let mut command = if arguments[1] == APSCHEDULER {
        let Some(python) = std::env::var_os("KRON_BENCH_PYTHON") else {
            println!("{APSCHEDULER:<22} is left out: no KRON_BENCH_PYTHON");
            return;
        };
        let mut command = Command::new(python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/apscheduler_bench.py"));
        command.args(arguments.iter().filter(|argument| **argument != APSCHEDULER));
        command
    } else {
        let mut command = Command::new(std::env::current_exe().expect("this program is somewhere"));
        command.args(arguments);
        command
    };
    let status = command.env("TZ", "UTC").status();
    if !status.is_ok_and(|status| status.success()) {
        println!("{arguments:?} failed");
    }
}

fn within(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime").block_on(work);
}

/// When the tasks are due, in nanoseconds; and what became of them.
static DUE: AtomicI64 = AtomicI64::new(0);
static STARTED: AtomicUsize = AtomicUsize::new(0);
static FIRST: AtomicI64 = AtomicI64::new(i64::MAX);
static LAST: AtomicI64 = AtomicI64::new(0);

/// What every task does.
fn note() {
    let now = i64::try_from(Timestamp::now().as_nanosecond()).unwrap();
    let late = now - DUE.load(Ordering::Relaxed);
    FIRST.fetch_min(late, Ordering::Relaxed);
    LAST.fetch_max(late, Ordering::Relaxed);
    STARTED.fetch_add(1, Ordering::Relaxed);
}

async fn burst(who: &str, tasks: usize, lead: i64) {
    // The next whole minute that leaves time to register.
    let earliest = Timestamp::now() + SignedDuration::from_secs(lead);
    let due = Timestamp::from_second((earliest.as_second() / 60 + 1) * 60).unwrap();
    DUE.store(i64::try_from(due.as_nanosecond()).unwrap(), Ordering::Relaxed);
    let directory = tempfile::tempdir().unwrap();
    let kept = register(who, tasks, due, directory.path()).await;
    let ready = due.duration_since(Timestamp::now());
    if ready.is_negative() {
        println!("{who:<22} {tasks:>9} {:>13} s too late to register", -ready.as_secs());
        std::process::exit(0);
    }
    tokio::time::sleep(Duration::try_from(ready).unwrap()).await;
    // Until all have started, or none does any more.
    let (mut seen, mut still) = (0, 0);
    while seen < tasks && still < 100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = STARTED.load(Ordering::Relaxed);
        still = if now == seen { still + 1 } else { 0 };
        seen = now;
    }
    let millis = |nanos: &AtomicI64| nanos.load(Ordering::Relaxed) as f64 / 1e6;
    // Below zero if some started twice.
    let lost = tasks as i64 - seen as i64;
    println!("{who:<22} {tasks:>9} {:>10.1} ms {:>10.1} ms {lost:>9}", millis(&FIRST), millis(&LAST));
    drop(kept);
    std::process::exit(0);
}

/// Kron alone, with a clock that is set: from the instant that all are due to the start of the last. That leaves out
/// the wait for the timer, and can be repeated often enough to see past a busy machine.
async fn waves(who: &str, tasks: usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let clock = VirtualClock::new("2026-06-01T12:00:30+00:00[UTC]").unwrap();
    let builder = match who {
        "kron, memory" => Scheduler::builder(MemoryStore::new()),
        "kron, file" => Scheduler::builder(FileStore::new(path)),
        "kron, sqlite" => Scheduler::builder(SqliteStore::new(path)),
        _ => panic!("no store is called {who}"),
    };
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let count = move |event: &Event| {
        if matches!(event, Event::TaskRunCompleted { .. }) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    let scheduler = builder.clock(clock.clone()).observer(count).build();
    let task = |nth: usize| {
        Registration::new(format!("task {nth}"), "* * * * *", Duration::from_secs(60), || async {
            note();
            Ok::<(), std::io::Error>(())
        })
    };
    scheduler.initialize((0..tasks).map(task).collect::<Vec<_>>()).await.unwrap();
    let mut times = Vec::new();
    let mut spent = 0.0;
    for wave in 0..=20 {
        LAST.store(0, Ordering::Relaxed);
        let before = cpu();
        if wave > 0 {
            DUE.store(i64::try_from(Timestamp::now().as_nanosecond()).unwrap(), Ordering::Relaxed);
            clock.set(clock.now() + SignedDuration::from_secs(60));
        }
        while ended.load(Ordering::Relaxed) < (wave + 1) * tasks {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if wave > 0 {
            spent += cpu() - before;
            times.push(LAST.load(Ordering::Relaxed) as f64 / 1e6);
        }
        // Until what has ended is written.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    times.sort_by(f64::total_cmp);
    let each = spent / (20.0 * tasks as f64) * 1e9;
    println!("{who:<22} {tasks:>9} {:>10.1} ms {:>10.1} ms {each:>10.0} ns", times[0], times[10]);
    scheduler.stop().await.unwrap();
    std::process::exit(0);
}

async fn idle(who: &str, tasks: usize) {
    let before = resident();
    let start = Timestamp::now();
    let directory = tempfile::tempdir().unwrap();
    // A date that does not come soon.
    let due = Timestamp::now() + SignedDuration::from_hours(24 * 100);
    let kept = register(who, tasks, due, directory.path()).await;
    let took = Timestamp::now().duration_since(start).as_secs_f64();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let memory = (resident() - before) as f64 / tasks as f64;
    let (spent, seconds) = (cpu(), 61);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let share = (cpu() - spent) / seconds as f64 * 100.0;
    println!("{who:<22} {tasks:>9} {took:>11.2} s {memory:>11.0} B {share:>7.3} %");
    drop(kept);
    std::process::exit(0);
}

/// Registers tasks that are due at that instant, and gives what must be kept for them to run.
async fn register(
    who: &str,
    tasks: usize,
    due: Timestamp,
    directory: &std::path::Path,
) -> Box<dyn std::any::Any> {
    let civil = due.to_zoned(jiff::tz::TimeZone::UTC);
    let (minute, hour, day, month) = (civil.minute(), civil.hour(), civil.day(), civil.month());
    let five = format!("{minute} {hour} {day} {month} *");
    let six = format!("0 {five}");
    match who {
        "kron, memory" => kron(MemoryStore::new(), tasks, &five).await,
        "kron, file" => kron(FileStore::new(directory.join("state")), tasks, &five).await,
        "kron, sqlite" => kron(SqliteStore::new(directory.join("state.db")), tasks, &five).await,
        "tokio-cron-scheduler" => {
            use tokio_cron_scheduler::{Job, JobScheduler};
            let scheduler = JobScheduler::new().await.unwrap();
            for _ in 0..tasks {
                let job = Job::new_async(six.as_str(), |_, _| Box::pin(async { note() })).unwrap();
                scheduler.add(job).await.unwrap();
            }
            scheduler.start().await.unwrap();
            Box::new(scheduler)
        }
        "apalis-cron" => {
            use apalis::prelude::WorkerBuilder;
            use apalis_cron::{CronScheduler, Tick};
            let schedule: cron::Schedule = six.parse().unwrap();
            for nth in 0..tasks {
                let worker = WorkerBuilder::new(format!("worker {nth}"))
                    .backend(CronScheduler::new(schedule.clone()))
                    .build(|_: Tick| async { note() });
                tokio::spawn(worker.run());
            }
            Box::new(())
        }
        _ => panic!("no contestant is called {who}"),
    }
}

async fn kron(store: impl Store, tasks: usize, cron: &str) -> Box<dyn std::any::Any> {
    let scheduler = Scheduler::new(store);
    let task = |nth: usize| {
        Registration::new(format!("task {nth}"), cron, Duration::from_secs(60), || async {
            note();
            Ok::<(), std::io::Error>(())
        })
    };
    scheduler.initialize((0..tasks).map(task).collect::<Vec<_>>()).await.unwrap();
    Box::new(scheduler)
}

/// The memory this process has, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

/// The time this process has spent, in seconds.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
