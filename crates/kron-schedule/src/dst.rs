//! What happens to local times that do not exist, or happen twice.

use core::fmt;

/// The daylight-saving policy of a schedule: one rule for each kind of odd local time.
///
/// ```
/// use kron_schedule::{Dst, Fold, Gap};
///
/// assert_eq!(Dst::KRON, Dst { gap: Gap::Skip, fold: Fold::Auto });
/// assert_eq!(Dst::KRON.to_string(), "gap=skip,fold=auto");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Dst {
    /// A local time that does not exist, because clocks were set forward over it.
    pub gap: Gap,
    /// A local time that happens twice, because clocks were set back over it.
    pub fold: Fold,
}

impl Dst {
    /// The default of krontab and `KronJob`.
    pub const KRON: Dst = Dst { gap: Gap::Skip, fold: Fold::Auto };
    /// The default of Open Job Spec cron jobs.
    pub const OJS: Dst = Dst { gap: Gap::Skip, fold: Fold::First };
    /// The default of the declarative scheduler.
    pub const POSIX: Dst = Dst { gap: Gap::Skip, fold: Fold::Both };
}

/// What becomes of a local time that does not exist.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Gap {
    /// It occurs once, at the first instant after the gap.
    After,
    /// It does not occur; [`Schedule::skipped_between`](crate::Schedule::skipped_between) tells of it.
    Skip,
}

/// What becomes of a local time that happens twice.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Fold {
    /// [`Both`](Fold::Both) for an interval, that is an expression whose minute or hour field
    /// begins with `*`; [`First`](Fold::First) for any other.
    Auto,
    /// It occurs both times.
    Both,
    /// It occurs once, the first time.
    First,
}

impl fmt::Display for Dst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gap = match self.gap {
            Gap::After => "after",
            Gap::Skip => "skip",
        };
        let fold = match self.fold {
            Fold::Auto => "auto",
            Fold::Both => "both",
            Fold::First => "first",
        };
        write!(f, "gap={gap},fold={fold}")
    }
}
