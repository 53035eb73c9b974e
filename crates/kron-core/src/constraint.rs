//! Which seconds are allowed: `only` and `avoid`.

use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

use jiff::civil::DateTime;

use crate::calendar::{Ymd, day_of, ymd};
use crate::clause::{self, ConstraintError, Kind};
use crate::label::{Label, split_day};

/// What restricts the seconds that may be chosen, in the job's zone.
///
/// A second is allowed if it satisfies `only` and does not satisfy `avoid`. Within `only`, each kind
/// of clause must be satisfied by one of its values; of `avoid`, any clause at all rejects.
///
/// ```
/// use jiff::civil::date;
/// use kron_core::Constraints;
///
/// let mut constraints = Constraints::default();
/// constraints.add_only("hours=8-10;dow=MON-FRI")?;
/// constraints.add_only("hours=14")?;
/// constraints.add_avoid("date=2026-12-24")?;
/// assert_eq!(constraints.to_string(), "only(hours=8-10,14;dow=MON-FRI) avoid(date=2026-12-24)");
///
/// assert!(constraints.allow(date(2026, 12, 23).at(14, 30, 0, 0)));
/// assert!(!constraints.allow(date(2026, 12, 23).at(12, 30, 0, 0)));
/// assert!(!constraints.allow(date(2026, 12, 24).at(14, 30, 0, 0)));
/// # Ok::<(), kron_core::ConstraintError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Constraints {
    only: Clauses,
    avoid: Clauses,
}

impl Constraints {
    /// Adds what stands between the parentheses of `@only( )`: clauses such as `hours=8-10`, with
    /// semicolons between.
    ///
    /// Repeated, it adds values to kinds that are there and further kinds.
    ///
    /// # Errors
    ///
    /// The first mistake, with its place, what was expected and what was found. Then nothing has
    /// been added.
    pub fn add_only(&mut self, text: &str) -> Result<(), ConstraintError> {
        self.only.add(text)
    }

    /// Adds what stands between the parentheses of `@avoid( )`.
    ///
    /// # Errors
    ///
    /// As [`add_only`](Constraints::add_only).
    pub fn add_avoid(&mut self, text: &str) -> Result<(), ConstraintError> {
        self.avoid.add(text)
    }

    /// What a second must satisfy.
    #[must_use]
    pub fn only(&self) -> &Clauses {
        &self.only
    }

    /// What a second must not satisfy.
    #[must_use]
    pub fn avoid(&self) -> &Clauses {
        &self.avoid
    }

    /// Whether nothing is restricted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.only.is_empty() && self.avoid.is_empty()
    }

    /// Whether a local time is allowed.
    #[must_use]
    pub fn allow(&self, civil: DateTime) -> bool {
        let part = |value: i8| u32::from(value.unsigned_abs());
        let second = part(civil.hour()) * 3_600 + part(civil.minute()) * 60 + part(civil.second());
        self.allow_local(Local { day: day_of(civil.date()), second })
    }

    /// Whether a local time is allowed that is counted in seconds from 1970-01-01T00:00.
    pub(crate) fn allow_second(&self, second: i64) -> bool {
        let (day, second) = split_day(second);
        self.allow_local(Local { day, second })
    }

    fn allow_local(&self, local: Local) -> bool {
        self.only.in_each(local) && !self.avoid.in_any(local)
    }
}

/// A local time: a day, counted from 1970-01-01, and a second of it.
#[derive(Clone, Copy)]
struct Local {
    day: i32,
    second: u32,
}

impl Local {
    fn hour(self) -> u32 {
        self.second / 3_600
    }

    fn minute_of_day(self) -> u32 {
        self.second / 60
    }

    /// Sunday is 0. 1970-01-01 was a Thursday.
    fn weekday(self) -> u32 {
        (self.day + 4).rem_euclid(7).unsigned_abs()
    }

    fn named(self) -> Ymd {
        ymd(self.day)
    }
}

/// One line: `only(hours=8-10) avoid(dow=SUN)`, or `none`.
impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.only.is_empty(), self.avoid.is_empty()) {
            (true, true) => f.write_str("none"),
            (false, true) => write!(f, "only({})", self.only),
            (true, false) => write!(f, "avoid({})", self.avoid),
            (false, false) => write!(f, "only({}) avoid({})", self.only, self.avoid),
        }
    }
}

/// Sets of hours, days and so on. One that is empty does not count.
///
/// [`Display`](fmt::Display) prints one canonical spelling.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Clauses {
    /// Bit n stands for the hour n.
    hours: u32,
    /// Bit n stands for the weekday n, 0 being Sunday.
    weekdays: u32,
    /// Bit n stands for the day n of the month.
    days: u32,
    /// Bit n stands for the month n.
    months: u32,
    /// Minutes of the day.
    between: Ranges<u32>,
    /// Days, counted from 1970-01-01.
    dates: Ranges<i32>,
}

impl Clauses {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hours | self.weekdays | self.days | self.months == 0
            && self.between.0.is_empty()
            && self.dates.0.is_empty()
    }

    fn add(&mut self, text: &str) -> Result<(), ConstraintError> {
        let mut added = self.clone();
        for clause in clause::parse(text)? {
            match clause {
                clause::Clause::Between(minutes) => added.between.insert(minutes, |end| end + 1),
                clause::Clause::Dates(dates) => {
                    added.dates.insert(day_of(*dates.start())..=day_of(*dates.end()), |end| end + 1);
                }
                clause::Clause::Values(kind, bits) => *added.values_mut(kind) |= bits,
            }
        }
        *self = added;
        Ok(())
    }

    fn values_mut(&mut self, kind: Kind) -> &mut u32 {
        match kind {
            Kind::Days => &mut self.days,
            Kind::Hours => &mut self.hours,
            Kind::Months => &mut self.months,
            Kind::Weekdays => &mut self.weekdays,
        }
    }

    /// Whether the time is in every set there is. What it is called is found out only for a set that
    /// asks, because a decision may have to look at many.
    fn in_each(&self, local: Local) -> bool {
        (self.hours == 0 || has(self.hours, local.hour()))
            && (self.weekdays == 0 || has(self.weekdays, local.weekday()))
            && (self.days == 0 || has(self.days, local.named().day))
            && (self.months == 0 || has(self.months, local.named().month))
            && (self.between.0.is_empty() || self.between.hold(local.minute_of_day()))
            && (self.dates.0.is_empty() || self.dates.hold(local.day))
    }

    /// Whether the time is in any set there is.
    fn in_any(&self, local: Local) -> bool {
        (self.hours != 0 && has(self.hours, local.hour()))
            || (self.weekdays != 0 && has(self.weekdays, local.weekday()))
            || (self.days != 0 && has(self.days, local.named().day))
            || (self.months != 0 && has(self.months, local.named().month))
            || (!self.between.0.is_empty() && self.between.hold(local.minute_of_day()))
            || (!self.dates.0.is_empty() && self.dates.hold(local.day))
    }
}

fn has(bits: u32, value: u32) -> bool {
    bits >> value & 1 == 1
}

impl fmt::Display for Clauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut next = |f: &mut fmt::Formatter<'_>| f.write_str(core::mem::replace(&mut separator, ";"));
        for (kind, bits) in [
            (Kind::Hours, self.hours),
            (Kind::Weekdays, self.weekdays),
            (Kind::Days, self.days),
            (Kind::Months, self.months),
        ] {
            if bits != 0 {
                next(f)?;
                kind.fmt_clause(bits, f)?;
            }
        }
        for minutes in &self.between.0 {
            next(f)?;
            let (start, end) = (minutes.start(), minutes.end());
            write!(f, "between={:02}:{:02}-{:02}:{:02}", start / 60, start % 60, end / 60, end % 60)?;
        }
        for dates in &self.dates.0 {
            next(f)?;
            let (start, end) = (Label::date(*dates.start()), Label::date(*dates.end()));
            match start == end {
                true => write!(f, "date={start}")?,
                false => write!(f, "dates={start}..{end}")?,
            }
        }
        Ok(())
    }
}

/// Ranges in order, with something between each two.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Ranges<T>(Vec<RangeInclusive<T>>);

impl<T> Default for Ranges<T> {
    fn default() -> Ranges<T> {
        Ranges(Vec::new())
    }
}

impl<T: Copy + Ord> Ranges<T> {
    /// Adds a range, and joins it with those it touches. `after` gives the value after another.
    fn insert(&mut self, range: RangeInclusive<T>, after: impl Fn(T) -> T) {
        let (mut start, mut end) = range.into_inner();
        let first = self.0.partition_point(|other| after(*other.end()) < start);
        let count = self.0[first..].partition_point(|other| *other.start() <= after(end));
        if let [touched_first, ..] = &self.0[first..first + count] {
            start = start.min(*touched_first.start());
        }
        if let [.., touched_last] = &self.0[first..first + count] {
            end = end.max(*touched_last.end());
        }
        self.0.splice(first..first + count, [start..=end]);
    }

    fn hold(&self, value: T) -> bool {
        let first = self.0.partition_point(|range| *range.end() < value);
        self.0.get(first).is_some_and(|range| *range.start() <= value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ranges_hold_what_was_put_into_them() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u16::try_from((state >> 33) % below).unwrap()
        };
        for _ in 0..500 {
            let (mut ranges, mut all) = (Ranges::default(), BTreeSet::new());
            for _ in 0..random(12) {
                let start = random(60);
                let end = start + random(8);
                ranges.insert(start..=end, |end| end + 1);
                all.extend(start..=end);
                assert!((0..80).all(|value| ranges.hold(value) == all.contains(&value)));
                assert!(ranges.0.windows(2).all(|pair| pair[0].end() + 1 < *pair[1].start()));
            }
        }
    }
}
