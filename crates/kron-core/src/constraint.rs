//! Which seconds are allowed: `only` and `avoid`.

use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

use jiff::civil::{Date, DateTime};

use crate::clause::{self, ConstraintError, Kind};

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
        self.only.in_each(civil) && !self.avoid.in_any(civil)
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
    between: Ranges<u16>,
    /// Calendar days.
    dates: Ranges<Date>,
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
                    added.dates.insert(dates, |end| end.tomorrow().unwrap_or(Date::MAX));
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

    /// Whether the time is in every set there is.
    fn in_each(&self, civil: DateTime) -> bool {
        self.sets(civil).into_iter().all(|(there_is, within)| !there_is || within)
    }

    /// Whether the time is in any set there is.
    fn in_any(&self, civil: DateTime) -> bool {
        self.sets(civil).into_iter().any(|(_, within)| within)
    }

    /// For each kind of set, whether there is one, and whether the time is in it.
    fn sets(&self, civil: DateTime) -> [(bool, bool); 6] {
        let has = |bits: u32, value: i8| (bits != 0, bits >> value & 1 == 1);
        let minute = u16::from(civil.hour().unsigned_abs()) * 60 + u16::from(civil.minute().unsigned_abs());
        [
            has(self.hours, civil.hour()),
            has(self.weekdays, civil.weekday().to_sunday_zero_offset()),
            has(self.days, civil.day()),
            has(self.months, civil.month()),
            (!self.between.0.is_empty(), self.between.hold(minute)),
            (!self.dates.0.is_empty(), self.dates.hold(civil.date())),
        ]
    }
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
            match (dates.start(), dates.end()) {
                (start, end) if start == end => write!(f, "date={start}")?,
                (start, end) => write!(f, "dates={start}..{end}")?,
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
