//! Bugs planted between krond and its world, to see that the checker would find them.
//!
//! None of them is in krond: each is a way to the disk, to processes or to a loaded state that does less than
//! krond asked for, and so behaves as a krond that had asked for less.

/// A bug.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Plant {
    /// M1: the child goes on before its record is durable.
    ReleaseFirst,
    /// M2: the directory is never flushed.
    NoDirectoryFlush,
    /// M3: files are never flushed.
    NoFileFlush,
    /// M4: only the period at the watermark counts as handled, and none before it.
    EqualOnly,
    /// M5: a damaged state is taken for that of a new job.
    DamagedIsNew,
    /// M6: a process is known by its PID alone.
    PidOnly,
    /// M7: a damaged state is fenced at the present time, whatever the file's time of modification says.
    FenceAtNow,
    /// M8: a flush that failed is tried again, and then believed.
    FlushAgain,
    /// M9: nobody looks at the anchor when a state is lost.
    NoAnchor,
    /// M10: nobody remembers what clocks showed when a period was handled.
    NoCivilTime,
    /// M11: nobody remembers that a job was paused.
    NoPause,
    /// M12: nobody notices that the disk hangs.
    Unnoticed,
}

impl Plant {
    /// All of them, M1 to M12.
    pub const ALL: [Plant; 12] = [
        Plant::ReleaseFirst,
        Plant::NoDirectoryFlush,
        Plant::NoFileFlush,
        Plant::EqualOnly,
        Plant::DamagedIsNew,
        Plant::PidOnly,
        Plant::FenceAtNow,
        Plant::FlushAgain,
        Plant::NoAnchor,
        Plant::NoCivilTime,
        Plant::NoPause,
        Plant::Unnoticed,
    ];

    /// `M1` to `M12`.
    #[must_use]
    pub fn name(self) -> String {
        format!("M{}", self as u8 + 1)
    }
}
