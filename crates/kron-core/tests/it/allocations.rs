//! Does the engine leave memory alone where a million jobs would notice?

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use jiff::Timestamp;
use kron_core::story::Story;
use kron_core::{Ledger, Overlap, Watch, WindowMode, decide, evaluate};

/// The system's allocator, counting the calls of each thread.
struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator can be written in no other way; this one only counts")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations<T>(work: impl FnOnce() -> T) -> u64 {
    let before = CALLS.get();
    drop(work());
    CALLS.get() - before
}

#[test]
fn the_count_counts() {
    assert_eq!(allocations(|| std::hint::black_box(Box::new(7_u64))), 1);
}

#[test]
fn evaluating_an_idle_job_allocates_nothing() {
    let now: Timestamp = "2026-03-02T11:05:00Z".parse().unwrap();
    let at = |line: &str| Story::at("2026-03-02T11:05:00Z", line);
    for (story, handled) in [
        (at("0 * * * *"), "2026-03-02T11:00:00Z"),
        (at("0 0 29 2 *").overlap(Overlap::Replace), "2026-03-02T11:00:00Z"),
        (at("@every 1h").window(WindowMode::Around, "30m"), "2026-03-02T11:00:00Z"),
        // Its window is open, and its time has not come.
        (at("0 * * * *").window(WindowMode::After, "30m"), "2026-03-02T10:00:00Z"),
    ] {
        let (job, ledger) = (story.job(), Ledger::fenced(handled.parse().unwrap()));
        let (steps, wake) = evaluate(&job, &ledger, &[], Watch { since: now, now });
        assert!(steps.is_empty() && wake.is_some(), "it is idle");
        assert_eq!(allocations(|| evaluate(&job, &ledger, &[], Watch { since: now, now })), 0);
    }
}

#[test]
fn deciding_allocates_nothing() {
    let job = Story::at("2026-03-02T10:30:00Z", "0 * * * *").window(WindowMode::After, "1h").job();
    let nominal = "2026-03-02T11:00:00Z".parse().unwrap();
    assert_eq!(allocations(|| decide(&job, nominal)), 0);
    assert_eq!(allocations(|| job.schedule().next_after(nominal)), 0);
}
