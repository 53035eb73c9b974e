//! The kinds of problems, by names that do not change.

use std::fmt;

use serde::{Serialize, Serializer};

/// How bad a problem is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Severity {
    /// The entry, or the file, cannot be used.
    Error,
    /// It can be used, and perhaps does not do what its author thinks.
    Warning,
}

impl Severity {
    /// One word, as it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Makes the enum, its names and its severities from one table, so that they cannot differ.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $severity:ident $name:literal,)*) => {
        /// What kind of problem it is. Programs may branch on it, and on its name: neither changes.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// All of them, errors first, each group in the order of the names.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The name, in lower case with hyphens.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Code::$variant => $name,)*
                }
            }

            /// How bad a problem of this kind is.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self {
                    $(Code::$variant => Severity::$severity,)*
                }
            }
        }
    };
}

codes! {
    /// A file that begins with a byte order mark.
    ByteOrderMark Error "byte-order-mark",
    /// A command that is missing, or cannot be started as written.
    Command Error "command",
    /// A clause of `@only` or `@avoid` that is not one.
    Constraint Error "constraint",
    /// A character that would change the terminal it is printed on.
    ControlCharacter Error "control-character",
    /// A distribution that does not exist, or parameters it cannot have.
    Distribution Error "distribution",
    /// Two entries of one name.
    DuplicateName Error "duplicate-name",
    /// A file that is not UTF-8.
    Encoding Error "encoding",
    /// An environment variable that is not one.
    Environment Error "environment",
    /// The value of a field that it cannot have.
    Field Error "field",
    /// A file longer than a krontab may be.
    FileTooLong Error "file-too-long",
    /// An identity that a job cannot have.
    Identity Error "identity",
    /// Lines that end with CR LF.
    LineEnding Error "line-ending",
    /// A line longer than an entry may be.
    LineTooLong Error "line-too-long",
    /// An entry without a name or a command.
    MissingField Error "missing-field",
    /// An entry without a schedule.
    MissingSchedule Error "missing-schedule",
    /// A modifier that is not shaped like one.
    ModifierSyntax Error "modifier-syntax",
    /// More problems than are reported, with an error among them.
    MoreErrors Error "more-errors",
    /// A name that a job cannot have.
    Name Error "name",
    /// A schedule that no date satisfies.
    NeverMatches Error "never-matches",
    /// A quote that is not closed.
    OpenQuote Error "open-quote",
    /// A modifier, a field or a schedule in the place of another.
    Order Error "order",
    /// A quoted phrase that is not one.
    Phrase Error "phrase",
    /// A policy that does not exist, or a value it cannot have.
    Policy Error "policy",
    /// A field that stands there twice.
    RepeatedField Error "repeated-field",
    /// A key that stands twice in one modifier.
    RepeatedKey Error "repeated-key",
    /// A modifier that stands there twice.
    RepeatedModifier Error "repeated-modifier",
    /// Cron fields, an alias or `@every` that are not a schedule.
    Schedule Error "schedule",
    /// A seed strategy that does not exist.
    Seed Error "seed",
    /// A time zone that does not exist.
    TimeZone Error "time-zone",
    /// More jobs, modifiers or open windows than there may be.
    TooMany Error "too-many",
    /// A backslash at the end of a line.
    TrailingBackslash Error "trailing-backslash",
    /// Something that is neither schedule, modifier nor field.
    Unexpected Error "unexpected",
    /// A field that does not exist.
    UnknownField Error "unknown-field",
    /// A key that the modifier does not have.
    UnknownKey Error "unknown-key",
    /// A modifier that does not exist.
    UnknownModifier Error "unknown-modifier",
    /// A window that is not one.
    Window Error "window",

    /// A zone abbreviation of a phrase that has more than one meaning.
    AmbiguousZone Warning "ambiguous-zone",
    /// Phrases that fall together more than scattering promises.
    Cluster Warning "cluster",
    /// A phrase that steps through the days of the month, which start anew with every month.
    DayStep Warning "day-step",
    /// A deadline of nothing, which tolerates less than a second.
    DeadlineZero Warning "deadline-zero",
    /// Both day fields restrict, and one of them suffices.
    EitherDay Warning "either-day",
    /// Every minute of some hours, where a time of day may have been meant.
    EveryMinute Warning "every-minute",
    /// A phrase with an interval that is the same for every job.
    FixedInterval Warning "fixed-interval",
    /// A day that some months do not have.
    MissingDay Warning "missing-day",
    /// More problems than are reported, all of them warnings.
    MoreWarnings Warning "more-warnings",
    /// A modifier that changes nothing here.
    NoEffect Warning "no-effect",
    /// A phrase of which only one of two times has an offset.
    OneSidedOffset Warning "one-sided-offset",
    /// What a phrase became, where that is a surprise.
    PhraseNote Warning "phrase-note",
    /// Another remark about the schedule.
    ScheduleNote Warning "schedule-note",
    /// A step so long that only the first value is left.
    StepTooLong Warning "step-too-long",
    /// Characters that make a line read differently from what it is.
    TextDirection Warning "text-direction",
    /// A step that does not divide its field.
    UnevenStep Warning "uneven-step",
    /// A window whose ends are rounded to whole seconds.
    UnevenWindow Warning "uneven-window",
    /// Constraints that leave no second in any window that was looked at.
    Unschedulable Warning "unschedulable",
    /// The day is another one than the phrase names, because its offset or window crosses midnight.
    WeekdayMoved Warning "weekday-moved",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_in_order() {
        let names = |severity| {
            Code::ALL
                .iter()
                .filter(move |code| code.severity() == severity)
                .map(|code| code.name())
                .collect::<Vec<_>>()
        };
        for severity in [Severity::Error, Severity::Warning] {
            let names = names(severity);
            assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        }
    }
}
