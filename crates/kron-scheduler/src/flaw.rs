//! Bugs that tests plant, to see that the checks catch them. Outside this crate's own tests none of this is compiled.

use std::cell::Cell;

/// A bug, by the name of what it breaks. Each is one that a scheduler of this kind has had or could easily have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flaw {
    /// A first registration claims an attempt that never was, and so loses the minute in progress.
    ForgedHistory,
    /// A first registration runs for occurrences before it.
    BootMakesUp,
    /// Every missed occurrence is run, one after the other.
    MakeUp,
    /// A run that was cut off is forgotten.
    OrphanForgotten,
    /// The last attempt is when a failed run ended, which hides what came due meanwhile.
    FailureMovesAttempt,
    /// A failure takes the last success with it.
    FailureForgetsSuccess,
    /// A start leaves the pending retry where it was.
    RetryNotCleared,
    /// A retry delay of zero is taken at its word.
    ZeroDelaySpins,
    /// A retry is taken before its time.
    RetryEarly,
    /// A changed configuration begins a new history.
    OverrideForgets,
    /// A local time that happens twice runs once.
    FoldRunsOnce,
    /// A local time that does not exist runs after the gap.
    GapRuns,
    /// A run may join one that is under way.
    Overlap,
    /// An error of the store ends the loop.
    StoreErrorEndsLoop,
    /// A run that ends well wakes nobody.
    SuccessDoesNotWake,
    /// What was selected when `stop` came is left marked as running, and never called.
    MarkedNeverCalled,
    /// What was selected when `stop` came is started all the same.
    StartsAfterStop,
    /// `stop` does not wait for what is running.
    StopDoesNotWait,
    /// Callbacks are started before the store knows of it.
    StartBeforeMark,
    /// `stop` during `initialize` is forgotten once that is done.
    StopForgotten,
}

thread_local! {
    static PLANTED: Cell<Option<Flaw>> = const { Cell::new(None) };
}

/// The bug that a test has planted on this thread.
pub(crate) fn planted() -> Option<Flaw> {
    PLANTED.get()
}

/// Plants a bug on this thread, or takes it out.
pub(crate) fn plant(flaw: Option<Flaw>) {
    PLANTED.set(flaw);
}
