//! The record of occurrences: every due instant with its outcome and its reason.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What became of one occurrence, or of several in a row.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Occurrence {
    /// The nominal time; of several, the first.
    pub scheduled: Timestamp,
    /// One, several in a row, or local times that clocks skipped.
    pub kind: Kind,
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// When somebody looked.
    pub actual: Timestamp,
    /// The time in its window that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Timestamp>,
    /// The job that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The job that stood in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_job_id: Option<String>,
    /// The seed of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_hash: Option<String>,
    /// Of several, the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// How many.
    pub count: u64,
    /// Whether there were more than were counted.
    #[serde(default)]
    pub at_least: bool,
    /// Local times that did not come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub civil: Vec<String>,
}

/// How much an entry of the record stands for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Local times that clocks skipped.
    Gap,
    /// One occurrence.
    One,
    /// Several in a row that nobody looked at one by one.
    Range,
}

/// Where an entry stands in the record: by its time, and then by its kind.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Place {
    /// The nominal time; of several, the first.
    pub scheduled: Timestamp,
    /// One, several in a row, or local times that clocks skipped.
    pub kind: Kind,
}

impl Place {
    /// As a cursor holds it.
    #[must_use]
    pub fn key(self) -> String {
        format!("{} {}", self.kind.name(), self.scheduled.as_second())
    }

    /// The place that a key stands for, if it is one.
    #[must_use]
    pub fn read(key: &str) -> Option<Place> {
        let (kind, second) = key.split_once(' ')?;
        let kind = [Kind::Gap, Kind::One, Kind::Range].into_iter().find(|it| it.name() == kind)?;
        Some(Place { scheduled: Timestamp::from_second(second.parse().ok()?).ok()?, kind })
    }
}

impl Occurrence {
    /// Where it stands in the record.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { scheduled: self.scheduled, kind: self.kind }
    }
}

impl Kind {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Gap => "gap",
            Kind::One => "one",
            Kind::Range => "range",
        }
    }
}

/// How an occurrence ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A job was made.
    Executed,
    /// None was made, and nobody had decided that.
    Missed,
    /// By policy none was made.
    Skipped,
    /// No time of its window satisfies the constraints.
    Unschedulable,
}

/// Why an occurrence ended as it did.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its deadline passed before anybody looked.
    DeadlinePassed,
    /// The cron job is disabled.
    Disabled,
    /// Clocks skipped it.
    DstSkip,
    /// The one before was still active.
    OverlapSkip,
    /// A later one had come due by the time anybody looked.
    PassedOver,
    /// The schedule was changed while it waited for its chosen time.
    Rescheduled,
    /// Its time had come.
    Triggered,
    /// No candidate satisfies the constraints.
    Unschedulable,
}

impl Outcome {
    /// Its word.
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
    /// All of them.
    pub const ALL: [Reason; 8] = [
        Reason::DeadlinePassed,
        Reason::Disabled,
        Reason::DstSkip,
        Reason::OverlapSkip,
        Reason::PassedOver,
        Reason::Rescheduled,
        Reason::Triggered,
        Reason::Unschedulable,
    ];

    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reason::DeadlinePassed => "deadline_passed",
            Reason::Disabled => "disabled",
            Reason::DstSkip => "dst_skip",
            Reason::OverlapSkip => "overlap_skip",
            Reason::PassedOver => "passed_over",
            Reason::Rescheduled => "rescheduled",
            Reason::Triggered => "triggered",
            Reason::Unschedulable => "unschedulable",
        }
    }

    /// The outcome that it implies.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Reason::Triggered => Outcome::Executed,
            Reason::Disabled | Reason::DstSkip | Reason::OverlapSkip => Outcome::Skipped,
            Reason::DeadlinePassed | Reason::PassedOver | Reason::Rescheduled => Outcome::Missed,
            Reason::Unschedulable => Outcome::Unschedulable,
        }
    }

    /// In words, to follow an outcome.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Reason::DeadlinePassed => "its deadline had passed before anybody looked",
            Reason::Disabled => "the cron job was disabled",
            Reason::DstSkip => "clocks were set forward and the local time did not come",
            Reason::OverlapSkip => "the run before was still active",
            Reason::PassedOver => "a later occurrence had come due by the time anybody looked",
            Reason::Rescheduled => "the schedule was changed before its chosen time came",
            Reason::Triggered => "its time had come",
            Reason::Unschedulable => "no time tried in its window satisfies the constraints",
        }
    }
}
