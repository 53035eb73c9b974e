//! How many steps a scheduler takes for its obligations, whatever their number.
//!
//! On a runtime of one thread, everything that can go on does so once between two turns of a test. So the number of
//! turns is how often each of the scheduler's futures was polled; it has two, its loop and the wave that starts.

use std::future::Future as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use kron_scheduler::store::MemoryStore;
use kron_scheduler::testing::VirtualClock;
use kron_scheduler::{Registration, Scheduler};

/// The bound: so many steps, and one more for so many tasks.
const STEPS: usize = 8;
const TASKS_A_STEP: usize = 128;

async fn steps_until(done: impl Fn() -> bool) -> usize {
    let mut steps = 0;
    while !done() {
        steps += 1;
        tokio::task::yield_now().await;
    }
    steps
}

#[tokio::test]
async fn every_obligation_takes_a_few_steps_and_few_more_for_many_tasks() {
    for tasks in [0, 1, 10, 100, 1_000, 10_000, 100_000] {
        let bound = STEPS + tasks / TASKS_A_STEP;
        let clock = VirtualClock::new("2026-06-01T12:00:30+00:00[UTC]").unwrap();
        let scheduler = Scheduler::builder(MemoryStore::new()).clock(clock.clone()).build();
        let (started, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let task = |nth: usize| {
            let (started, ended, gate) = (Arc::clone(&started), Arc::clone(&ended), Arc::clone(&gate));
            Registration::new(format!("{nth}"), "* * * * *", Duration::from_secs(60), move || {
                started.fetch_add(1, Ordering::Relaxed);
                let (ended, gate) = (Arc::clone(&ended), Arc::clone(&gate));
                async move {
                    if nth == 0 {
                        gate.acquire().await.ok();
                    }
                    ended.fetch_add(1, Ordering::Relaxed);
                    Ok::<(), std::io::Error>(())
                }
            })
        };

        // Init-completes: it waits for no callback.
        let mut call = Box::pin(scheduler.initialize((0..tasks).map(task).collect::<Vec<_>>()));
        let mut steps = 1;
        while std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await.is_pending() {
            steps += 1;
            tokio::task::yield_now().await;
        }
        assert!(steps <= bound, "initialize of {tasks}: {steps} steps");

        // Obligation-fulfilled: the minute in progress obliges all of them.
        let steps = steps_until(|| started.load(Ordering::Relaxed) == tasks).await;
        assert!(steps <= bound, "{tasks} starts: {steps} steps");

        // Stop-completes: from the instant that nothing runs any more, and the first still does.
        let stop = tokio::spawn(scheduler.stop());
        gate.close();
        steps_until(|| ended.load(Ordering::Relaxed) == tasks).await;
        let steps = steps_until(|| stop.is_finished()).await;
        assert!(steps <= bound, "stop of {tasks}: {steps} steps");
    }
}
