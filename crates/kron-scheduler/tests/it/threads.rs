//! The host's clock, many threads and real files.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kron_scheduler::store::{FileStore, SqliteStore, Store};
use kron_scheduler::testing::VirtualClock;
use kron_scheduler::{ErrorKind, Registration, Scheduler, State};

fn counting(name: String, count: &Arc<AtomicUsize>) -> Registration {
    let count = Arc::clone(count);
    Registration::new(name, "* * * * *", Duration::from_secs(60), move || {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok::<(), std::io::Error>(()) }
    })
}

/// Waits for something that takes a moment of real time, without sleeping.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

async fn many_start_together(store: impl Store, tasks: usize) {
    let clock = VirtualClock::new("2026-06-01T12:00:00+00:00[UTC]").unwrap();
    let scheduler = Scheduler::builder(store).clock(clock.clone()).build();
    let count = Arc::new(AtomicUsize::new(0));
    let list: Vec<_> = (0..tasks).map(|nth| counting(format!("task {nth}"), &count)).collect();
    scheduler.initialize(list).await.unwrap();
    until(|| count.load(Ordering::SeqCst) == tasks).await;
    clock.set("2026-06-01T12:01:00Z".parse().unwrap());
    until(|| count.load(Ordering::SeqCst) == 2 * tasks).await;
    scheduler.stop().await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 2 * tasks, "none is lost, none is doubled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_together_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    many_start_together(FileStore::new(directory.path().join("state")), 10_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_together_in_a_database() {
    let directory = tempfile::tempdir().unwrap();
    many_start_together(SqliteStore::new(directory.path().join("state.db")), 1_000).await;
}

/// A callback that blocks its thread is bad manners, and holds up no other while there are threads left.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_that_blocks_holds_up_no_other() {
    let clock = VirtualClock::new("2026-06-01T12:00:00+00:00[UTC]").unwrap();
    let scheduler = Scheduler::builder(kron_scheduler::store::MemoryStore::new()).clock(clock).build();
    let (count, others) = (Arc::new(AtomicUsize::new(0)), 1_000);
    let seen = Arc::clone(&count);
    let blocks = Registration::new("blocks", "* * * * *", Duration::from_secs(60), move || {
        while seen.load(Ordering::SeqCst) < others {
            std::thread::yield_now();
        }
        async { Ok::<(), std::io::Error>(()) }
    });
    let mut list = vec![blocks];
    list.extend((0..others).map(|nth| counting(format!("task {nth}"), &count)));
    scheduler.initialize(list).await.unwrap();
    until(|| count.load(Ordering::SeqCst) == others).await;
    scheduler.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stop_comes_whenever_and_everything_that_was_started_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let clock = VirtualClock::new("2026-06-01T12:00:00+00:00[UTC]").unwrap();
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for round in 0..40 {
        clock.set(
            "2026-06-01T12:00:00Z".parse::<jiff::Timestamp>().unwrap()
                + jiff::SignedDuration::from_mins(round),
        );
        let scheduler = Scheduler::builder(FileStore::new(&path)).clock(clock.clone()).build();
        let task = |nth: usize| {
            let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
            Registration::new(format!("task {nth}"), "* * * * *", Duration::from_secs(60), move || {
                begun.fetch_add(1, Ordering::SeqCst);
                let ended = Arc::clone(&ended);
                async move {
                    tokio::task::yield_now().await;
                    ended.fetch_add(1, Ordering::SeqCst);
                    Ok::<(), std::io::Error>(())
                }
            })
        };
        scheduler.initialize((0..200).map(task).collect::<Vec<_>>()).await.unwrap();
        for _ in 0..round * 3 {
            tokio::task::yield_now().await;
        }
        scheduler.stop().await.unwrap();
        assert_eq!(begun.load(Ordering::SeqCst), ended.load(Ordering::SeqCst));
        assert_eq!(scheduler.state(), State::Stopped);
        // Nothing is left marked as running.
        drop(scheduler);
        assert!(!std::fs::read_to_string(&path).unwrap().is_empty());
        let running = FileStore::new(&path)
            .open()
            .unwrap()
            .iter()
            .filter(|task| !task.to_json()["running"].is_null())
            .count();
        assert_eq!(running, 0, "round {round}");
    }
}

#[tokio::test]
async fn two_live_schedulers_cannot_share_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let first = Scheduler::new(FileStore::new(&path));
    first.initialize(Vec::new()).await.unwrap();
    let second = Scheduler::new(FileStore::new(&path));
    assert_eq!(second.initialize(Vec::new()).await.unwrap_err().kind(), ErrorKind::StoreLocked);
    first.stop().await.unwrap();
    second.initialize(Vec::new()).await.unwrap();
    second.stop().await.unwrap();
}

#[tokio::test]
async fn an_initialize_dropped_in_the_middle_lets_go_of_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let scheduler = Scheduler::new(FileStore::new(&path));
    for polls in 0..4 {
        let mut call = Box::pin(scheduler.initialize(Vec::new()));
        for _ in 0..polls {
            let polled =
                std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context))).await;
            if polled.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(call);
        scheduler.stop().await.unwrap();
        assert!(matches!(scheduler.state(), State::Uninitialized | State::Stopped));
    }
    scheduler.initialize(Vec::new()).await.unwrap();
    scheduler.stop().await.unwrap();
}

#[tokio::test]
async fn the_clock_of_the_host() {
    let directory = tempfile::tempdir().unwrap();
    let scheduler = Scheduler::new(FileStore::new(directory.path().join("state")));
    let count = Arc::new(AtomicUsize::new(0));
    scheduler.initialize([counting("now".into(), &count)]).await.unwrap();
    until(|| count.load(Ordering::SeqCst) > 0).await;
    scheduler.stop().await.unwrap();
    assert!(scheduler.lateness().worst < Duration::from_secs(60));
}

#[test]
fn without_a_runtime_it_says_so() {
    let scheduler = Scheduler::new(kron_scheduler::store::MemoryStore::new());
    let mut call = Box::pin(scheduler.initialize(Vec::new()));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = call.as_mut().poll(&mut context) else {
        panic!("it is refused")
    };
    assert_eq!(error.kind(), ErrorKind::NoRuntime);
    assert_eq!(scheduler.state(), State::Uninitialized);
}

/// Not a test of its own: what runs in the process that is killed.
#[tokio::test]
async fn a_process_to_be_killed() {
    let Ok(path) = std::env::var("KRON_SURVIVE") else { return };
    let scheduler = Scheduler::new(FileStore::new(path));
    let cron = std::env::var("KRON_CRON").expect("it is told when to run");
    let work = || async {
        println!("working");
        std::future::pending::<Result<(), std::io::Error>>().await
    };
    scheduler.initialize([Registration::new("work", cron, Duration::from_secs(3_600), work)]).await.unwrap();
    std::future::pending::<()>().await;
}

#[test]
fn kill_9_and_it_goes_on() {
    use std::io::BufRead as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    for life in 0..4 {
        // At first every minute; then rarely, so that nothing but the cut can start it again.
        let cron = if life == 0 { "* * * * *" } else { "0 0 1 1 *" };
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "threads::a_process_to_be_killed", "--nocapture"]);
        command.env("KRON_SURVIVE", &path).env("KRON_CRON", cron).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        let works = lines.any(|line| line.is_ok_and(|line| line.contains("working")));
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        assert!(works, "in life {life} it starts");
    }
}
