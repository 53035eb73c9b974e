//! Each test is a short life in which several things happen at once. It is lived some thousands of times, each time with
//! another order of everything that threads and tasks do between two steps.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kron_scheduler::store::{MemoryStore, Store};
use kron_scheduler::testing::VirtualClock;
use kron_scheduler::{ErrorKind, Registration, Scheduler, State};
use tokio::sync::Semaphore;

const LIVES: usize = 2_000;
/// How many of the steps of a life are taken in an order that its chance does not favour.
const CHANGES: usize = 3;

fn check<F: Future<Output = ()> + 'static>(life: fn() -> F) {
    let live = move || shuttle::future::block_on(life());
    shuttle::check_random(live, LIVES);
    shuttle::check_pct(live, LIVES, CHANGES);
}

fn scheduler(store: &MemoryStore) -> (Arc<Scheduler>, VirtualClock) {
    let clock = VirtualClock::new("2026-06-01T12:00:30+00:00[UTC]").unwrap();
    (Arc::new(Scheduler::builder(store.clone()).clock(clock.clone()).build()), clock)
}

/// How many runs have begun and ended.
#[derive(Clone, Default)]
struct Runs {
    begun: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    /// How many are under way, each of its own name.
    under_way: Arc<[AtomicUsize; 3]>,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Runs {
    /// Three tasks that are due at once and take some steps.
    fn tasks(&self) -> Vec<Registration> {
        let task = |nth: usize| {
            let runs = self.clone();
            Registration::new(NAMES[nth], "* * * * *", Duration::from_secs(60), move || {
                let runs = runs.clone();
                assert_eq!(
                    runs.under_way[nth].fetch_add(1, Ordering::SeqCst),
                    0,
                    "no task runs beside itself"
                );
                runs.begun.fetch_add(1, Ordering::SeqCst);
                // Also if it is dropped in the middle.
                let gone = Gone(runs.clone(), nth);
                async move {
                    if nth > 0 {
                        tokio::task::yield_now().await;
                    }
                    runs.ended.fetch_add(1, Ordering::SeqCst);
                    drop(gone);
                    Ok::<(), std::io::Error>(())
                }
            })
        };
        (0..3).map(task).collect()
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

struct Gone(Runs, usize);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.under_way[self.1].fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn stop_comes_at_any_moment() {
    check(|| async {
        let (store, runs) = (MemoryStore::new(), Runs::default());
        let (scheduler, _) = scheduler(&store);
        let stopper = Arc::clone(&scheduler);
        let early = tokio::spawn(async move { stopper.stop().await });
        scheduler.initialize(runs.tasks()).await.unwrap();
        let stopper = Arc::clone(&scheduler);
        let other = tokio::spawn(async move { stopper.stop().await });
        scheduler.stop().await.unwrap();
        // What was started has ended, nothing else was, and the store says the same.
        assert_eq!(scheduler.state(), State::Stopped);
        assert_eq!(runs.begun(), runs.ended());
        let records = NAMES.map(|name| store.record(name).unwrap());
        assert!(records.iter().all(|record| record.running.is_none()));
        let attempts = records.iter().filter(|record| record.last_attempt_at.is_some()).count();
        let successes = records.iter().filter(|record| record.last_success_at.is_some()).count();
        assert_eq!((attempts, successes), (runs.begun(), runs.begun()));
        assert!(store.clone().open().is_ok(), "the store is free");
        early.await.unwrap().unwrap();
        other.await.unwrap().unwrap();
        assert_eq!(runs.begun(), runs.ended());
    });
}

#[test]
fn a_scheduler_is_dropped_at_any_moment_and_the_next_one_goes_on() {
    check(|| async {
        let (store, runs) = (MemoryStore::new(), Runs::default());
        let (first, _) = scheduler(&store);
        first.initialize(runs.tasks()).await.unwrap();
        let dropper = tokio::spawn(async move { drop(first) });
        // As soon as the store is free, nothing of the first one is left.
        let (second, clock) = scheduler(&store);
        let error = loop {
            match second.initialize(runs.tasks()).await {
                Ok(()) => break None,
                Err(error) if error.kind() == ErrorKind::StoreLocked => tokio::task::yield_now().await,
                Err(error) => break Some(error),
            }
        };
        assert!(error.is_none(), "{error:?}");
        dropper.await.unwrap();
        while NAMES.iter().any(|name| store.record(name).unwrap().last_success_at.is_none()) {
            tokio::task::yield_now().await;
        }
        second.stop().await.unwrap();
        drop(clock);
        assert!(NAMES.iter().all(|name| store.record(name).unwrap().running.is_none()));
        assert!(runs.begun() >= 3 && runs.ended() >= 3 && runs.begun() <= 6);
    });
}

#[test]
fn one_of_several_calls_of_initialize_is_the_first() {
    check(|| async {
        let (store, runs) = (MemoryStore::new(), Runs::default());
        let (scheduler, _) = scheduler(&store);
        let calls: Vec<_> = (0..3)
            .map(|nth| {
                let (scheduler, tasks) = (Arc::clone(&scheduler), runs.tasks());
                tokio::spawn(async move {
                    let call = scheduler.initialize(tasks);
                    if nth == 0 {
                        drop(call); // before it is done
                        return Err(ErrorKind::InitializationCancelled);
                    }
                    call.await.map_err(|error| error.kind())
                })
            })
            .collect();
        let mut accepted = 0;
        for call in calls {
            match call.await.unwrap() {
                Ok(()) => accepted += 1,
                Err(kind) => {
                    let refusals = [ErrorKind::SchedulerAlreadyActive, ErrorKind::InitializationCancelled];
                    assert!(refusals.contains(&kind), "{kind:?}");
                }
            }
        }
        assert!(accepted <= 1, "{accepted}");
        scheduler.stop().await.unwrap();
        assert_eq!(runs.begun(), runs.ended());
        assert!(runs.begun() <= 3 * accepted);
    });
}

/// No wake-up is lost: neither that of an end, nor that of a clock.
#[test]
fn an_occurrence_that_came_during_a_run_starts_at_its_end() {
    check(|| async {
        let store = MemoryStore::new();
        let (scheduler, clock) = scheduler(&store);
        let (gate, begun) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (held, told) = (Arc::clone(&gate), Arc::clone(&begun));
        let task = Registration::new("a", "* * * * *", Duration::from_secs(60), move || {
            told.add_permits(1);
            let held = Arc::clone(&held);
            async move {
                held.acquire().await.unwrap().forget();
                Ok::<(), std::io::Error>(())
            }
        });
        scheduler.initialize([task]).await.unwrap();
        begun.acquire().await.unwrap().forget();
        let ender = Arc::clone(&gate);
        let end = tokio::spawn(async move { ender.add_permits(1) });
        clock.set("2026-06-01T12:01:00Z".parse().unwrap());
        begun.acquire().await.unwrap().forget();
        end.await.unwrap();
        gate.add_permits(1);
        scheduler.stop().await.unwrap();
        assert_eq!(store.record("a").unwrap().running, None);
    });
}
