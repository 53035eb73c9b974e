//! How a period ends, and why.

use core::fmt;

/// How a period ended. Each period has exactly one outcome, for good.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    /// A run was started for it.
    Executed,
    /// No run was started because the deadline had passed.
    Missed,
    /// By policy, no run was started.
    Skipped,
    /// No time of its window satisfies the constraints.
    Unschedulable,
}

/// Why a period ended as it did. The reason implies the outcome.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reason {
    /// Its time had come, and nothing stood in the way.
    Started,
    /// A run of it was found under way that no record told of.
    FoundRunning,
    /// Its deadline passed before a run could be started.
    DeadlinePassed,
    /// None of the candidates tried satisfies the constraints.
    NoCandidate,
    /// The job was edited, and its schedule no longer has this period.
    Rescheduled,
    /// Another run of the job was active.
    StillRunning,
    /// A later period had come due by the time anyone looked.
    Superseded,
}

impl Outcome {
    /// One word: `executed`, `missed`, `skipped` or `unschedulable`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Executed => "executed",
            Outcome::Missed => "missed",
            Outcome::Skipped => "skipped",
            Outcome::Unschedulable => "unschedulable",
        }
    }
}

impl Reason {
    /// Every reason there is.
    pub const ALL: [Reason; 7] = [
        Reason::Started,
        Reason::FoundRunning,
        Reason::DeadlinePassed,
        Reason::NoCandidate,
        Reason::Rescheduled,
        Reason::StillRunning,
        Reason::Superseded,
    ];

    /// Its name in files, logs, metrics and answers, in lower case with hyphens: `deadline-passed`. It never changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Started => "started",
            Reason::FoundRunning => "found-running",
            Reason::DeadlinePassed => "deadline-passed",
            Reason::NoCandidate => "no-candidate",
            Reason::Rescheduled => "rescheduled",
            Reason::StillRunning => "still-running",
            Reason::Superseded => "superseded",
        }
    }

    /// The outcome that a period with this reason has.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Reason::Started | Reason::FoundRunning => Outcome::Executed,
            Reason::DeadlinePassed => Outcome::Missed,
            Reason::Rescheduled | Reason::StillRunning | Reason::Superseded => Outcome::Skipped,
            Reason::NoCandidate => Outcome::Unschedulable,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A clause to follow the outcome: "skipped because another run was still active".
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reason::Started => "its time had come",
            Reason::FoundRunning => "a run of it was found under way",
            Reason::DeadlinePassed => "its deadline had passed",
            Reason::NoCandidate => "no time tried in its window satisfies the constraints",
            Reason::Rescheduled => "the job was edited and no longer has this period",
            Reason::StillRunning => "another run was still active",
            Reason::Superseded => "a later period had come due",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed_once_and_has_a_name_of_its_own() {
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            // Whoever adds one is reminded of the list by its length.
            assert_eq!(reason as usize, at);
            assert!(Reason::ALL[..at].iter().all(|other| other.name() != reason.name()), "{reason:?}");
            assert!(reason.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
        }
    }
}
