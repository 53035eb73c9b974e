//! Initialize, stop, and everything that can happen between them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use kron_scheduler::store::{MemoryStore, Store as _};
use kron_scheduler::testing::{FaultyStore, VirtualClock};
use kron_scheduler::{Callbacks, ErrorKind, Event, Registration, Registrations, Scheduler, State};
use serde_json::json;
use tokio::sync::Semaphore;

fn clock() -> VirtualClock {
    VirtualClock::new("2026-06-01T12:00:30+00:00[UTC]").unwrap()
}

type Names = Arc<Mutex<Vec<String>>>;

/// A scheduler that writes down its events.
fn scheduler(store: impl kron_scheduler::store::Store, clock: &VirtualClock) -> (Scheduler, Names) {
    let names = Names::default();
    let told = Arc::clone(&names);
    let observer = move |event: &Event| told.lock().unwrap().push(event.to_string());
    (Scheduler::builder(store).clock(clock.clone()).observer(observer).build(), names)
}

fn every_minute() -> Registration {
    Registration::new("a", "* * * * *", Duration::from_secs(10), || async { Ok::<(), std::io::Error>(()) })
}

/// A task that runs until it is let go.
fn held(gate: &Arc<Semaphore>) -> Registration {
    let gate = Arc::clone(gate);
    Registration::new("held", "* * * * *", Duration::from_secs(10), move || {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await?.forget();
            Ok::<(), tokio::sync::AcquireError>(())
        }
    })
}

#[tokio::test]
async fn a_whole_life_in_events() {
    let clock = clock();
    let (scheduler, events) = scheduler(MemoryStore::new(), &clock);
    let mut stream = scheduler.events();
    assert_eq!(scheduler.state(), State::Uninitialized);
    scheduler.initialize([every_minute()]).await.unwrap();
    assert_eq!(scheduler.state(), State::Running);
    clock.settle().await;
    scheduler.stop().await.unwrap();
    assert_eq!(scheduler.state(), State::Stopped);
    let told = events.lock().unwrap().clone();
    assert_eq!(
        told,
        [
            "SchedulerInitializationStarted",
            "PollingStarted",
            "SchedulerInitializationCompleted",
            "TaskRunStarted a",
            "TaskRunCompleted a",
            "SchedulerStopRequested",
            "PollingStopRequested",
            "PollingStopped",
            "SchedulerStopped",
        ]
    );
    let streamed: Vec<String> =
        std::iter::from_fn(|| stream.try_recv().ok()).map(|e| e.to_string()).collect();
    assert_eq!(streamed, told);
}

#[tokio::test]
async fn initialize_is_refused_in_call_order_before_anything_is_polled() {
    let clock = clock();
    let (scheduler, events) = scheduler(MemoryStore::new(), &clock);
    let first = scheduler.initialize([every_minute()]);
    let second = scheduler.initialize([every_minute()]);
    let error = second.refusal().expect("the second is refused");
    assert_eq!(error.to_string(), "Cannot initialize scheduler: scheduler is already initializing");
    assert_eq!(error.details(), &json!({ "currentState": "initializing" }));
    first.await.unwrap();
    // Also an invalid list: the state is looked at first.
    let invalid = Registrations::from_json(&json!(5), &Callbacks::new());
    let error = scheduler.initialize(invalid).await.unwrap_err();
    assert_eq!(error.to_string(), "Cannot initialize scheduler: scheduler is already running");
    assert_eq!(events.lock().unwrap().iter().filter(|name| name.contains("Started")).count(), 2);
    scheduler.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_refused_is_reported_and_leaves_the_scheduler_uninitialized() {
    let clock = clock();
    let store = MemoryStore::new();
    let (scheduler, events) = scheduler(store.clone(), &clock);
    for _ in 0..2 {
        let error = scheduler.initialize([every_minute(), every_minute()]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ScheduleDuplicateTask);
        assert_eq!(scheduler.state(), State::Uninitialized);
    }
    let invalid = Registrations::from_json(&json!(5), &Callbacks::new());
    assert_eq!(scheduler.initialize(invalid).await.unwrap_err().kind(), ErrorKind::RegistrationsNotArray);
    let pair = ["SchedulerInitializationStarted", "SchedulerInitializationFailed"];
    assert_eq!(*events.lock().unwrap(), [pair, pair, pair].concat());
    assert_eq!(store.to_json()["tasks"], json!([]));
    scheduler.initialize([every_minute()]).await.unwrap();
    scheduler.stop().await.unwrap();
}

#[tokio::test]
async fn no_tasks_is_a_list_as_well() {
    let clock = clock();
    let (scheduler, events) = scheduler(MemoryStore::new(), &clock);
    scheduler.initialize(Vec::new()).await.unwrap();
    clock.run_for(SignedDuration::from_hours(2)).await;
    assert_eq!(scheduler.state(), State::Running);
    scheduler.stop().await.unwrap();
    assert!(!events.lock().unwrap().iter().any(|name| name.starts_with("Polling")));
}

#[tokio::test]
async fn stop_does_nothing_where_there_is_nothing_to_stop() {
    let clock = clock();
    let (scheduler, events) = scheduler(MemoryStore::new(), &clock);
    scheduler.stop().await.unwrap();
    assert_eq!(scheduler.state(), State::Uninitialized);
    scheduler.initialize([every_minute()]).await.unwrap();
    scheduler.stop().await.unwrap();
    let before = events.lock().unwrap().len();
    scheduler.stop().await.unwrap();
    assert_eq!((scheduler.state(), events.lock().unwrap().len()), (State::Stopped, before));
}

#[tokio::test]
async fn stop_waits_for_what_runs_and_many_wait_together() {
    let clock = clock();
    let gate = Arc::new(Semaphore::new(0));
    let (scheduler, events) = scheduler(MemoryStore::new(), &clock);
    scheduler.initialize([held(&gate)]).await.unwrap();
    clock.settle().await;
    let stops: Vec<_> = (0..3).map(|_| tokio::spawn(scheduler.stop())).collect();
    drop(scheduler.stop()); // one that nobody waits for
    clock.run_for(SignedDuration::from_mins(5)).await;
    assert!(stops.iter().all(|stop| !stop.is_finished()));
    assert_eq!(scheduler.state(), State::Stopping);
    let error = scheduler.initialize([held(&gate)]).await.unwrap_err();
    assert_eq!(error.details(), &json!({ "currentState": "running" }));
    gate.add_permits(1);
    for stop in stops {
        stop.await.unwrap().unwrap();
    }
    let events = events.lock().unwrap();
    assert_eq!(events.iter().filter(|name| *name == "SchedulerStopRequested").count(), 1);
    assert_eq!(events.iter().filter(|name| *name == "TaskRunStarted held").count(), 1);
}

#[tokio::test]
async fn stop_during_initialize_lets_it_succeed_and_nothing_runs() {
    let clock = clock();
    let store = MemoryStore::new();
    let (scheduler, events) = scheduler(store.clone(), &clock);
    let call = scheduler.initialize([every_minute()]);
    let stop = tokio::spawn(scheduler.stop());
    clock.settle().await;
    assert!(!stop.is_finished(), "it waits for initialize");
    call.await.unwrap();
    stop.await.unwrap().unwrap();
    assert_eq!(scheduler.state(), State::Stopped);
    clock.run_for(SignedDuration::from_mins(5)).await;
    assert!(store.record("a").is_some(), "the list is stored");
    assert!(!events.lock().unwrap().iter().any(|name| name.starts_with("TaskRun")));
    // And it can go on.
    scheduler.initialize([every_minute()]).await.unwrap();
    clock.settle().await;
    assert!(events.lock().unwrap().contains(&"TaskRunStarted a".into()));
    scheduler.stop().await.unwrap();
}

#[tokio::test]
async fn stop_does_not_inherit_the_error_of_initialize() {
    let clock = clock();
    let store = FaultyStore::new(MemoryStore::new());
    store.faults().replace = 1;
    let (scheduler, _) = scheduler(store, &clock);
    let call = scheduler.initialize([every_minute()]);
    let stop = scheduler.stop();
    assert_eq!(call.await.unwrap_err().kind(), ErrorKind::Store);
    stop.await.unwrap();
    assert_eq!(scheduler.state(), State::Uninitialized);
}

#[tokio::test]
async fn a_dropped_initialize_leaves_nothing_behind() {
    let clock = clock();
    let store = MemoryStore::new();
    let (scheduler, events) = scheduler(store.clone(), &clock);
    let call = scheduler.initialize([every_minute()]);
    let stop = scheduler.stop();
    drop(call);
    stop.await.unwrap();
    assert_eq!(scheduler.state(), State::Uninitialized);
    assert_eq!(events.lock().unwrap().last().unwrap(), "SchedulerInitializationFailed");
    assert!(store.clone().open().is_ok(), "the store is free");
    scheduler.initialize([every_minute()]).await.unwrap();
    scheduler.stop().await.unwrap();
}

#[tokio::test]
async fn a_callback_that_waits_for_stop_is_told_and_the_scheduler_stops() {
    let clock = clock();
    let (scheduler, _) = scheduler(MemoryStore::new(), &clock);
    let scheduler = Arc::new(scheduler);
    let weak = Arc::downgrade(&scheduler);
    let told = Arc::new(Mutex::new(None));
    let tell = Arc::clone(&told);
    let suicidal = Registration::new("a", "* * * * *", Duration::ZERO, move || {
        let (weak, tell) = (weak.clone(), Arc::clone(&tell));
        async move {
            let scheduler = weak.upgrade().expect("it is there");
            *tell.lock().unwrap() = Some(scheduler.stop().await.unwrap_err().kind());
            Ok::<(), std::io::Error>(())
        }
    });
    scheduler.initialize([suicidal]).await.unwrap();
    clock.settle().await;
    assert_eq!(*told.lock().unwrap(), Some(ErrorKind::StopFromCallback));
    assert_eq!(scheduler.state(), State::Stopped);
}

#[tokio::test]
async fn a_panic_is_a_failure_and_nothing_else() {
    let clock = clock();
    let store = MemoryStore::new();
    let (scheduler, events) = scheduler(store.clone(), &clock);
    let quiet = |message: &'static str| -> Result<(), std::io::Error> {
        std::panic::resume_unwind(Box::new(message))
    };
    let inside =
        Registration::new("inside", "* * * * *", Duration::from_secs(20), move || async move { quiet("oh") });
    let before = Registration::new("before", "* * * * *", Duration::from_secs(20), move || {
        quiet("oh").ok();
        async { Ok::<(), std::io::Error>(()) }
    });
    scheduler.initialize([inside, before, every_minute()]).await.unwrap();
    clock.settle().await;
    for name in ["inside", "before"] {
        assert!(events.lock().unwrap().contains(&format!("TaskRunFailed {name}")));
        let record = store.record(name).unwrap();
        assert!(record.pending_retry_until.is_some() && record.running.is_none());
    }
    assert!(events.lock().unwrap().contains(&"TaskRunCompleted a".into()));
    scheduler.stop().await.unwrap();
}

#[tokio::test]
async fn an_observer_that_panics_disturbs_nobody() {
    let clock = clock();
    let builder = Scheduler::builder(MemoryStore::new()).clock(clock.clone());
    let scheduler = builder.observer(|_| std::panic::resume_unwind(Box::new("oh"))).build();
    scheduler.initialize([every_minute()]).await.unwrap();
    clock.settle().await;
    assert_eq!(scheduler.lateness().starts, 1);
    scheduler.stop().await.unwrap();
}

#[tokio::test]
async fn a_dropped_scheduler_takes_its_callbacks_with_it() {
    let clock = clock();
    let store = MemoryStore::new();
    let gate = Arc::new(Semaphore::new(0));
    let (first, _) = scheduler(store.clone(), &clock);
    first.initialize([held(&gate)]).await.unwrap();
    clock.settle().await;
    drop(first);
    clock.settle().await;
    assert_eq!(Arc::strong_count(&gate), 1, "callback and loop are gone");
    assert!(store.record("held").unwrap().running.is_some(), "as after a crash");
    let (second, events) = scheduler(store.clone(), &clock);
    gate.add_permits(1);
    second.initialize([held(&gate)]).await.unwrap();
    clock.settle().await;
    assert!(events.lock().unwrap().contains(&"TaskRunStarted held".into()));
    second.stop().await.unwrap();
    assert!(store.record("held").unwrap().running.is_none());
}

#[tokio::test]
async fn a_store_that_fails_for_an_hour_delays_and_loses_nothing() {
    let clock = clock();
    let store = FaultyStore::new(MemoryStore::new());
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let task = Registration::new("a", "0 * * * *", Duration::ZERO, move || {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok::<(), std::io::Error>(()) }
    });
    let (scheduler, _) = scheduler(store.clone(), &clock);
    scheduler.initialize([task]).await.unwrap();
    store.faults().apply = u32::MAX;
    clock.run_for(SignedDuration::from_hours(3)).await;
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    let tries = u32::MAX - store.faults().apply;
    assert!((100..1_000).contains(&tries), "it is tried again, and not all the time: {tries}");
    store.faults().apply = 0;
    clock.run_for(SignedDuration::from_secs(31)).await;
    assert_eq!(runs.load(Ordering::Relaxed), 1, "once for all that was missed");
    scheduler.stop().await.unwrap();
}

#[tokio::test]
async fn stop_returns_although_the_store_never_works_again() {
    let clock = clock();
    let store = FaultyStore::new(MemoryStore::new());
    let gate = Arc::new(Semaphore::new(0));
    let (scheduler, _) = scheduler(store.clone(), &clock);
    scheduler.initialize([held(&gate)]).await.unwrap();
    clock.settle().await;
    store.faults().apply = u32::MAX;
    let stop = tokio::spawn(scheduler.stop());
    gate.add_permits(1);
    clock.run_for(SignedDuration::from_secs(1)).await;
    assert!(stop.is_finished());
    assert!(store.store().record("held").unwrap().running.is_some(), "it will be started again");
}
