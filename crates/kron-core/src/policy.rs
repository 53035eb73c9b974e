//! What a job's owner wants done about lateness, overlap and suspension.

use kron_schedule::Duration;

/// The part of a job that says when *not* to start a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Policy {
    /// What to do when a period comes due while a run of the job is still active.
    pub overlap: Overlap,
    /// How late a run may start after its chosen time; `None` for as late as it takes.
    /// Never negative.
    pub deadline: Option<Duration>,
    /// While true nothing starts, and no period is handled.
    pub suspend: bool,
}

impl Default for Policy {
    /// Forbid overlap, tolerate no lateness beyond the chosen second, not suspended.
    fn default() -> Policy {
        Policy { overlap: Overlap::Forbid, deadline: Some(Duration::ZERO), suspend: false }
    }
}

/// What to do when a period comes due while a run of the job is active.
///
/// One type for Kron's `concurrency` and Open Job Spec's `overlap_policy`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Overlap {
    /// Start it beside the other.
    Allow,
    /// Skip it.
    Forbid,
    /// Hand it over at once, to start when the other has ended. Only surfaces with a queue have it.
    Queue,
    /// End the other, then start it.
    Replace,
}
