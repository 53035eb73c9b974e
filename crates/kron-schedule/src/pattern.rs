//! Which civil times match, and the search for the nearest of them: `times` of `days`.
//!
//! Civil times are seconds counted as if 1970-01-01T00:00 had been UTC. Zones and changes of
//! clocks are no concern of this file.

use alloc::vec::Vec;

use crate::calendar::{DAY, day_and_second, first_of_month};
use crate::days::{DaySet, Repeats};
use crate::dialect::Dialect;
use crate::every_days::EveryDays;
use crate::expr::{Cron, Fields, Shape, Values};
use crate::field::Field;
use crate::run::Run;
use crate::times::{Listed, OfDay, Times};

/// A set of civil times without end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pattern {
    Fields(DaysAndTimes),
    EveryDays(EveryDays),
}

/// What cron fields say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct DaysAndTimes {
    pub(crate) days: DaySet,
    pub(crate) times: Times,
}

impl Pattern {
    /// The first match at or after a civil time.
    pub(crate) fn next(&self, civil: i64) -> Option<i64> {
        match self {
            Pattern::Fields(DaysAndTimes { days, times }) => times.next_on(civil, |day| days.next_day(day)),
            Pattern::EveryDays(every) => Some(every.next(civil)),
        }
    }

    /// The last match at or before a civil time.
    pub(crate) fn prev(&self, civil: i64) -> Option<i64> {
        match self {
            Pattern::Fields(fields) => fields.prev(civil),
            Pattern::EveryDays(every) => Some(every.prev(civil)),
        }
    }

    /// Whether it matches on no more than two days of a year.
    pub(crate) fn is_rare(&self) -> bool {
        let first = self.next_day(SOME_DAY);
        let second = first.and_then(|first| self.next_day(first + 1));
        let third = second.and_then(|second| self.next_day(second + 1));
        third.is_none_or(|third| third >= SOME_DAY + 365)
    }

    /// The fewest seconds between two matches of one day, or a day if there is only one.
    pub(crate) fn least_distance(&self) -> i64 {
        match self {
            Pattern::Fields(fields) => fields.times.least_distance().into(),
            Pattern::EveryDays(_) => DAY,
        }
    }

    /// The most matches in so many days in a row: those of one day, on as many days as match in any
    /// stretch of that length within four years.
    pub(crate) fn most_in_days(&self, days: u64) -> u64 {
        let in_day = match self {
            Pattern::Fields(fields) => fields.times.count(),
            Pattern::EveryDays(_) => 1,
        };
        let days = i64::try_from(days).unwrap_or(FOUR_YEARS);
        let matching: Vec<i64> = (SOME_DAY..SOME_DAY + FOUR_YEARS).filter(|day| self.is_day(*day)).collect();
        let mut most = 1;
        let mut first = 0;
        for (last, day) in matching.iter().enumerate() {
            while matching[first] <= day - days {
                first += 1;
            }
            most = most.max(last + 1 - first);
        }
        in_day.saturating_mul(most as u64)
    }

    pub(crate) fn contains(&self, civil: i64) -> bool {
        self.next(civil) == Some(civil)
    }

    pub(crate) fn is_day(&self, day: i64) -> bool {
        match self {
            Pattern::Fields(fields) => fields.days.contains(day),
            Pattern::EveryDays(every) => every.is_day(day),
        }
    }

    fn next_day(&self, day: i64) -> Option<i64> {
        match self {
            Pattern::Fields(fields) => fields.days.next_day(day),
            Pattern::EveryDays(every) => Some(every.next_day(day)),
        }
    }
}

/// 2001-01-01, the first day of an ordinary year.
const SOME_DAY: i64 = first_of_month(2001, 1);

/// Days with every kind of year in them.
const FOUR_YEARS: i64 = 1_461;

impl DaysAndTimes {
    pub(crate) fn new(cron: &Cron) -> DaysAndTimes {
        DaysAndTimes { days: DaySet::new(cron), times: Times::new(&cron.fields) }
    }

    /// The fields again, as far as they have a meaning here.
    pub(crate) fn to_cron(self) -> Cron {
        let Listed { second, minute, hour } = self.times.listed();
        let values = |field: Field, bits: u64| Values {
            shape: if bits == field.all() { Shape::Star } else { Shape::List },
            bits,
        };
        let (day, month, weekday) = self.days.fields();
        let fields = Fields {
            second: values(Field::Second, second),
            minute: values(Field::Minute, minute),
            hour: values(Field::Hour, hour.into()),
            day,
            month,
            weekday,
        };
        Cron::new(Dialect::Ojs, fields, Default::default())
    }

    /// Whether one field is satisfied by its value; the day fields look at the whole date.
    pub(crate) fn field_matches(&self, field: Field, value: u32, day: i64) -> bool {
        let Listed { second, minute, hour } = self.times.listed();
        match field {
            Field::Second => second >> value & 1 == 1,
            Field::Minute => minute >> value & 1 == 1,
            Field::Hour => hour >> value & 1 == 1,
            Field::Day | Field::Month | Field::Weekday => self.days.field_matches(field, day),
        }
    }

    fn prev(&self, civil: i64) -> Option<i64> {
        let (day, second) = day_and_second(civil);
        let left = self.times.last_through(second);
        let found = self.days.prev_day(if left.is_some() { day } else { day - 1 })?;
        let second = left.filter(|_| found == day).unwrap_or_else(|| self.times.last());
        Some(found * DAY + i64::from(second))
    }

    /// Matches that follow one, as many as come at regular distances and are easily known.
    pub(crate) fn run_after(&self, civil: i64) -> Run {
        let (day, second) = day_and_second(civil);
        let run = |every: i64, bits: u64| Run::new(civil + every, every, bits);
        match (&self.times, self.days.repeats()) {
            (Times::Once(_), Repeats::Daily) => run(DAY, !0),
            (Times::Once(_), Repeats::Weekly) => run(DAY, self.days.weeks_after(day)),
            (Times::Once(_), Repeats::Monthly | Repeats::Irregular) => {
                let (month, days) = self.days.rest_of_month(day);
                run(DAY, days.into()).to_end_of(month)
            }
            (Times::Even(even), Repeats::Daily) => run(even.every(), !0),
            (Times::Even(even), _) => run(even.every(), even.rest_of_day(second)),
            (Times::Listed(listed), _) => run(60, listed.rest_of_hour(second)),
        }
    }

    /// Goes on with the next month that is searched, if that is known.
    pub(crate) fn go_on(&self, run: &mut Run) -> bool {
        let (Some(month), Times::Once(once)) = (run.month, &self.times) else { return false };
        let (month, days) = self.days.next_month(&month);
        run.go_on(month, once.on(month.first() - 1), days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Expr;
    use alloc::string::ToString;

    /// What `explain` shows. A day field that restricts nothing is a star, and a weekday that is wanted in every week
    /// is not told again for one of them.
    #[test]
    fn fields_come_back_by_their_meaning() {
        for (line, meaning) in [
            ("0 0 1-31 * *", "0 0 * * *"),
            ("0 0 1-31 * MON", "0 0 1-31 * 1"),
            ("0 0 * * MON,MON#1", "0 0 * * 1"),
            ("0 0 L,15W * *", "0 0 15W,L * *"),
            ("0 0 * * MONL", "0 0 * * 1L"),
            ("0 0 * * MON#2,FRI", "0 0 * * 5,1#2"),
            ("0 0 31 * *", "0 0 31 * *"),
            ("0 0 31 4,5 *", "0 0 31 4,5 *"),
            ("0 0 29 2 *", "0 0 29 2 *"),
            ("*/15 * * * * *", "0,15,30,45 * * * * *"),
            ("0-59/20 1-23/2 * 1-12 *", "0,20,40 1-23/2 * * *"),
        ] {
            let Expr::Cron(cron) = Expr::parse(line, Dialect::Ojs).unwrap() else {
                panic!("{line} has fields")
            };
            assert_eq!(DaysAndTimes::new(&cron).to_cron().to_string(), meaning, "{line}");
        }
    }
}
