//! The fields of a cron expression, their bounds and the names of their values.

use core::fmt;

/// One of the fields of a cron expression.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Field {
    /// 0 to 59; only in six-field expressions.
    Second,
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// Day of the month, 1 to 31.
    Day,
    /// 1 to 12, or `JAN` to `DEC`.
    Month,
    /// Day of the week, 0 (Sunday) to 6, or `SUN` to `SAT`; 7 is Sunday too where the dialect says so.
    Weekday,
}

impl Field {
    /// All fields, as a six-field expression has them.
    pub const ALL: [Field; 6] =
        [Field::Second, Field::Minute, Field::Hour, Field::Day, Field::Month, Field::Weekday];

    /// One word: `second`, `minute`, `hour`, `day`, `month` or `weekday`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::Day => "day",
            Field::Month => "month",
            Field::Weekday => "weekday",
        }
    }

    /// The smallest value.
    #[must_use]
    pub const fn min(self) -> u32 {
        match self {
            Field::Second | Field::Minute | Field::Hour | Field::Weekday => 0,
            Field::Day | Field::Month => 1,
        }
    }

    /// The largest value. Sunday as 7 is a spelling of 0 and does not count.
    #[must_use]
    pub const fn max(self) -> u32 {
        match self {
            Field::Second | Field::Minute => 59,
            Field::Hour => 23,
            Field::Day => 31,
            Field::Month => 12,
            Field::Weekday => 6,
        }
    }

    /// Three-letter names, the first for the smallest value; empty for fields without.
    pub(crate) const fn names(self) -> &'static [&'static str] {
        match self {
            Field::Month => &MONTHS,
            Field::Weekday => &WEEKDAYS,
            Field::Second | Field::Minute | Field::Hour | Field::Day => &[],
        }
    }

    /// All values of the field, as bits.
    pub(crate) const fn all(self) -> u64 {
        match self {
            Field::Second | Field::Minute => const { progression(0, 59, 1) },
            Field::Hour => const { progression(0, 23, 1) },
            Field::Day => const { progression(1, 31, 1) },
            Field::Month => const { progression(1, 12, 1) },
            Field::Weekday => const { progression(0, 6, 1) },
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The bits `from`, `from + step`, … up to `to`, which is below 64. The loop runs at most 30 times.
pub(crate) const fn progression(from: u32, to: u32, step: u32) -> u64 {
    if step == 1 {
        return u64::MAX >> (63 - to) & u64::MAX << from;
    }
    let mut bits = 0;
    let mut value = from;
    while value <= to {
        bits |= 1 << value;
        value += step;
    }
    bits
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
