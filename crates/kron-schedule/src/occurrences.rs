//! Many occurrences: in order, counted, and those that a change of clocks swallowed.

use core::iter::FusedIterator;

use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::dst::Gap;
use crate::run::Run;
use crate::schedule::{Calendar, Kind, Schedule};
use crate::zone::{Segment, floor_second, to_date_time, to_timestamp};

impl Schedule {
    /// All occurrences after an instant, in order.
    ///
    /// ```
    /// use kron_schedule::{Dialect, Dst, Expr, Zone};
    ///
    /// let schedule = Expr::parse("0 0 29 2 *", Dialect::Kron)?.compile(&Zone::utc(), Dst::KRON)?;
    /// let leap_days: Vec<String> = schedule
    ///     .occurrences_after("2092-01-01T00:00:00Z".parse()?)
    ///     .take(3)
    ///     .map(|at| at.to_string())
    ///     .collect();
    /// // 2100 is not a leap year.
    /// assert_eq!(leap_days, ["2092-02-29T00:00:00Z", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn occurrences_after(&self, instant: Timestamp) -> OccurrencesAfter<'_> {
        OccurrencesAfter { schedule: self, after: Some(instant), run: Run::default() }
    }

    /// All occurrences at or before an instant, the latest first.
    pub fn occurrences_before(&self, instant: Timestamp) -> OccurrencesBefore<'_> {
        OccurrencesBefore { schedule: self, through: Some(instant) }
    }

    /// How many occurrences lie after one instant, up to and including another.
    ///
    /// Intervals are counted by arithmetic, calendar schedules up to 64 at a time and not far past `at_most`.
    ///
    /// ```
    /// use kron_schedule::{Count, Dialect, Dst, Expr, Zone};
    ///
    /// let schedule = Expr::parse("0 * * * *", Dialect::Kron)?.compile(&Zone::utc(), Dst::KRON)?;
    /// let (start, end) = ("2026-01-01T00:00:00Z".parse()?, "2026-01-02T00:00:00Z".parse()?);
    /// assert_eq!(schedule.count_between(start, end, 1_000), Count::Exactly(24));
    /// assert_eq!(schedule.count_between(start, end, 10), Count::AtLeast(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count_between(&self, after: Timestamp, through: Timestamp, at_most: u64) -> Count {
        if let Kind::Interval(interval) = self.kind() {
            return match interval.count_between(after, through) {
                count if count > u128::from(at_most) => Count::AtLeast(at_most),
                count => Count::Exactly(u64::try_from(count).unwrap_or(at_most)),
            };
        }
        match self.occurrences_after(after).count_through(floor_second(through), at_most) {
            count if count > at_most => Count::AtLeast(at_most),
            count => Count::Exactly(count),
        }
    }

    /// The gaps after one instant, up to and including another, that swallowed local times of this
    /// schedule: one entry for each change of clocks.
    ///
    /// There are none where the policy is [`Gap::After`], since nothing is lost then. A pass that
    /// [`Fold::First`](crate::Fold::First) drops is no occurrence and is not reported. Finding the next
    /// entry takes one look for each change of clocks in between: two for a year.
    ///
    /// ```
    /// use jiff::tz::TimeZone;
    /// use kron_schedule::{Dialect, Dst, Expr, Zone};
    ///
    /// let zone = Zone::new(&TimeZone::get("America/New_York")?)?;
    /// let schedule = Expr::parse("*/30 2 * * *", Dialect::Ojs)?.compile(&zone, Dst::OJS)?;
    /// let (start, end) = ("2026-01-01T00:00:00Z".parse()?, "2027-01-01T00:00:00Z".parse()?);
    /// let skipped: Vec<_> = schedule.skipped_between(start, end).collect();
    /// assert_eq!(skipped.len(), 1);
    /// assert_eq!(skipped[0].at(), "2026-03-08T07:00:00Z".parse()?);
    /// let times: Vec<String> = skipped[0].times().map(|time| time.to_string()).collect();
    /// assert_eq!(times, ["2026-03-08T02:00:00", "2026-03-08T02:30:00"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn skipped_between(&self, after: Timestamp, through: Timestamp) -> SkippedBetween<'_> {
        let calendar = match self.kind() {
            Kind::Calendar(calendar) if calendar.gap == Gap::Skip => Some(calendar),
            _ => None,
        };
        SkippedBetween { calendar, after: floor_second(after).max(-1), through: floor_second(through) }
    }
}

/// Occurrences in order; see [`Schedule::occurrences_after`].
#[derive(Clone, Debug)]
pub struct OccurrencesAfter<'s> {
    schedule: &'s Schedule,
    /// Where the search goes on after `run`: at the last occurrence that is known.
    after: Option<Timestamp>,
    /// What follows and need not be searched for.
    run: Run,
}

impl Iterator for OccurrencesAfter<'_> {
    type Item = Timestamp;

    #[inline]
    fn next(&mut self) -> Option<Timestamp> {
        self.run.next().or_else(|| self.search())
    }
}

impl OccurrencesAfter<'_> {
    /// The next occurrence when the run is over, and the run that follows.
    #[inline(never)]
    fn search(&mut self) -> Option<Timestamp> {
        let Kind::Calendar(calendar) = self.schedule.kind() else {
            self.after = self.schedule.next_after(self.after?);
            return self.after;
        };
        if calendar.go_on(&mut self.run) {
            self.after = self.run.last().map(to_timestamp);
            return self.run.next();
        }
        let found = self.schedule.next_after(self.after?);
        self.run = found.map_or(Run::default(), |found| calendar.run_after(found.as_second()));
        self.after = self.run.last().map(to_timestamp).or(found);
        found
    }

    /// How many are not after a second, but at most so many and 63.
    fn count_through(mut self, through: i64, at_most: u64) -> u64 {
        let mut count = 0;
        while count <= at_most && self.next().is_some_and(|at| at.as_second() <= through) {
            let run = self.run.before(through + 1);
            count += 1 + u64::from(run.bits.count_ones());
            self.run.bits &= !run.bits;
        }
        count
    }
}

impl FusedIterator for OccurrencesAfter<'_> {}

/// Occurrences, the latest first; see [`Schedule::occurrences_before`].
#[derive(Clone, Debug)]
pub struct OccurrencesBefore<'s> {
    schedule: &'s Schedule,
    through: Option<Timestamp>,
}

impl Iterator for OccurrencesBefore<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        let at = self.schedule.prev_at_or_before(self.through?);
        self.through = at.and_then(|at| at.checked_sub(jiff::SignedDuration::from_nanos(1)).ok());
        at
    }
}

impl FusedIterator for OccurrencesBefore<'_> {}

/// A number of occurrences, as far as they were counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Count {
    /// There are more than the caller wanted counted.
    AtLeast(u64),
    /// All of them.
    Exactly(u64),
}

/// Gaps that swallowed something; see [`Schedule::skipped_between`].
#[derive(Clone, Debug)]
pub struct SkippedBetween<'s> {
    calendar: Option<&'s Calendar>,
    after: i64,
    through: i64,
}

impl<'s> Iterator for SkippedBetween<'s> {
    type Item = Skipped<'s>;

    fn next(&mut self) -> Option<Skipped<'s>> {
        let calendar = self.calendar?;
        let gap = calendar.next_gap(self.after, self.through)?;
        self.after = gap.begin;
        Some(Skipped { calendar, gap })
    }
}

impl FusedIterator for SkippedBetween<'_> {}

/// The local times of a schedule that one change of clocks left out.
#[derive(Clone, Copy, Debug)]
pub struct Skipped<'s> {
    calendar: &'s Calendar,
    gap: Segment,
}

impl<'s> Skipped<'s> {
    /// The instant at which clocks were set forward.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        to_timestamp(self.gap.begin)
    }

    /// The local times that did not come, in order. There is at least one.
    pub fn times(&self) -> impl Iterator<Item = DateTime> + use<'s> {
        let Skipped { calendar, gap } = *self;
        let mut from = gap.reached();
        core::iter::from_fn(move || {
            let civil = calendar.next_match(from).filter(|civil| *civil < gap.opens())?;
            from = civil + 1;
            Some(to_date_time(civil))
        })
    }
}
