//! Which days match, whatever the time of day.

use crate::calendar::{FEBRUARY, Month, weekday};
use crate::expr::{Cron, Days, Shape, Values, Weekdays};
use crate::field::Field;

/// A set of days, by the day fields and the month field of an expression. A day that satisfies either of the two day
/// fields matches; one that does not restrict is left out here, unless both do not.
///
/// Packed, so that a schedule stays within 64 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(Rust, packed(4))]
pub(crate) struct DaySet {
    /// Weekdays: seven bits for the first seven days of a month, beginning with Sunday, seven for the next, up to the
    /// fifth; then seven for the last seven days.
    weeks: u64,
    /// Days of the month: bit n stands for the day n, and bit 0 for the last.
    day: u32,
    /// Days of the month to which the nearest weekday is wanted; bit 0 stands for the last.
    nearest: u32,
    /// Bit n stands for the month n, counted from March as [`Month`] does.
    month: u16,
    /// Whether it can match in a leap year's February only.
    leap_only: bool,
    repeats: Repeats,
}

/// After how many days the days that match come again: what a search need not ask the calendar for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Repeats {
    /// Every day matches.
    Daily,
    /// The same weekdays match in every week.
    Weekly,
    /// The same days of the month match in every month that is wanted, as far as it has them.
    Monthly,
    /// It depends on the month and on the weekday that it begins with.
    Never,
}

/// The most months that are passed between the one a search begins in and the one that has a match.
/// Rarest is the fifth of some weekday. In February that takes a leap year that begins right: there is
/// one after at most 40 years, and only leap years are tried for it. Of other months, at most 18 in
/// a row have no fifth such day.
const MONTHS_MAX: u32 = 18;

/// Days that every month has.
const SHORTEST: u32 = 28;

/// Bit n stands for the day n, and all days are wanted.
const ALL_DAYS: u32 = !1;

/// A set of weekdays times this is that set in each of five weeks.
const FIVE_WEEKS: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;
/// As many weeks as there is room for.
const NINE_WEEKS: u64 = FIVE_WEEKS | FIVE_WEEKS << 28;
/// Where the bits for the last seven days of a month begin.
const LAST_WEEK: u32 = 35;

const SUNDAY: u64 = 1;
const SATURDAY: u64 = 1 << 6;

impl DaySet {
    #[expect(clippy::cast_possible_truncation, reason = "fields have no bits past their last value")]
    pub(crate) fn new(cron: &Cron) -> DaySet {
        let (day, weekday) = (&cron.fields.day, &cron.fields.weekday);
        let (by_day, by_weekday) = (cron.restricts_day(), cron.restricts_weekday());
        let mut weeks = weekday.values.bits * FIVE_WEEKS;
        weeks |= u64::from(weekday.last) << LAST_WEEK;
        for (week, nth) in (0..).zip(weekday.nth) {
            weeks |= u64::from(nth) << (week * 7);
        }
        let mut days = DaySet {
            weeks: if by_weekday { weeks } else { 0 },
            day: if by_weekday && !by_day { 0 } else { day.values.bits as u32 | u32::from(day.last) },
            nearest: day.nearest | u32::from(day.last_weekday),
            month: from_march(cron.fields.month.bits) as u16,
            leap_only: false,
            repeats: Repeats::Never,
        };
        // A February of 28 days has every weekday four times, so where it begins makes no difference.
        let february = Month::named(2001, 2);
        days.leap_only = days.month == 1 << FEBRUARY && days.of_month(&february) & february.within() == 0;
        days.repeats = days.find_repeats();
        days
    }

    fn find_repeats(&self) -> Repeats {
        let in_all_months = u64::from(self.month) == from_march(Field::Month.all());
        if in_all_months && self.day & ALL_DAYS == ALL_DAYS {
            Repeats::Daily
        } else if in_all_months && self.day | self.nearest == 0 && self.weeks == self.week() * FIVE_WEEKS {
            Repeats::Weekly
        } else if self.weeks == 0 && self.nearest == 0 && self.day & 1 == 0 {
            Repeats::Monthly
        } else {
            Repeats::Never
        }
    }

    pub(crate) fn repeats(&self) -> Repeats {
        self.repeats
    }

    /// The fields again, as far as they have a meaning here.
    pub(crate) fn fields(&self) -> (Days, Values, Weekdays) {
        let values = |field: Field, bits: u64, star: bool| Values {
            shape: if star { Shape::Star } else { Shape::List },
            bits: if star { field.all() } else { bits },
        };
        let nth = [0, 1, 2, 3, 4].map(|week| self.week_at(week * 7));
        let always = nth.iter().fold(!0, |always, week| always & week);
        let day = Days {
            values: values(Field::Day, (self.day & ALL_DAYS).into(), !self.restricts_day()),
            nearest: self.nearest & ALL_DAYS,
            last: self.day & 1 == 1,
            last_weekday: self.nearest & 1 == 1,
        };
        let month = from_january(self.month.into());
        let month = values(Field::Month, month, month == Field::Month.all());
        let weekday = Weekdays {
            values: values(Field::Weekday, always.into(), !self.restricts_weekday()),
            last: self.week_at(LAST_WEEK),
            nth: nth.map(|week| week & !always),
        };
        (day, month, weekday)
    }

    /// Whether satisfying one of the two day fields suffices.
    pub(crate) fn either(&self) -> bool {
        self.restricts_day() && self.restricts_weekday()
    }

    fn restricts_day(&self) -> bool {
        let is_star = self.day == if self.weeks == 0 { ALL_DAYS } else { 0 };
        !is_star || self.nearest != 0
    }

    fn restricts_weekday(&self) -> bool {
        self.weeks != 0
    }

    /// Whether the day, the month or the weekday field is satisfied by a day.
    pub(crate) fn field_matches(&self, field: Field, day: i64) -> bool {
        let (month, day) = Month::of(day);
        match field {
            Field::Day => !self.restricts_day() || self.by_day(&month) >> day & 1 == 1,
            Field::Weekday => !self.restricts_weekday() || self.by_weekday(&month) >> day & 1 == 1,
            _ => self.has(&month),
        }
    }

    pub(crate) fn contains(&self, day: i64) -> bool {
        let (month, day) = Month::of(day);
        self.has(&month) && self.of_month(&month) >> day & 1 == 1
    }

    /// The first day to match at or after a day.
    #[inline]
    pub(crate) fn next_day(&self, day: i64) -> Option<i64> {
        match self.repeats {
            Repeats::Daily => Some(day),
            Repeats::Weekly => Some(self.next_by_week(day)),
            Repeats::Monthly => self.next_by_month(day),
            Repeats::Never => self.next_by_calendar(day),
        }
    }

    /// The same if in every week the same days match.
    #[inline]
    pub(crate) fn next_by_week(&self, day: i64) -> i64 {
        day + i64::from(week_from(self.week(), day).trailing_zeros())
    }

    /// The same if in every month the same days match.
    #[inline]
    pub(crate) fn next_by_month(&self, day: i64) -> Option<i64> {
        self.next_by(day, |_| self.day)
    }

    /// The same if it is not that simple.
    #[inline]
    pub(crate) fn next_by_calendar(&self, day: i64) -> Option<i64> {
        self.next_by(day, |month| self.of_month(month))
    }

    /// The same by what tells the days of a month, which may go past its end: few months need be asked for their length.
    #[inline(always)]
    fn next_by(&self, day: i64, of_month: impl Fn(&Month) -> u32) -> Option<i64> {
        let (mut month, day) = Month::of(day);
        // Of the month itself what is left, and every later month whole.
        let mut days = if self.has(&month) { of_month(&month) & !0 << day } else { 0 };
        for _ in 0..MONTHS_MAX + 2 {
            let day = days.trailing_zeros();
            if day <= SHORTEST || days != 0 && day <= month.length() {
                return Some(month.first - 1 + i64::from(day));
            }
            month = self.month_after(&month);
            days = of_month(&month);
        }
        None
    }

    /// The last day to match at or before a day.
    pub(crate) fn prev_day(&self, day: i64) -> Option<i64> {
        match self.repeats {
            Repeats::Daily => Some(day),
            // Of the week that begins the day after, the last day to match is a week too late.
            Repeats::Weekly => Some(day - 6 + i64::from(week_from(self.week(), day + 1).ilog2())),
            Repeats::Monthly | Repeats::Never => self.prev_by_calendar(day),
        }
    }

    fn prev_by_calendar(&self, day: i64) -> Option<i64> {
        let (mut month, day) = Month::of(day);
        let mut through = !(!1 << day);
        for _ in 0..MONTHS_MAX + 2 {
            let days = if self.has(&month) { self.of_month(&month) & through } else { 0 };
            if let Some(day) = days.checked_ilog2() {
                return Some(month.first - 1 + i64::from(day));
            }
            month = self.month_before(&month);
            through = month.within();
        }
        None
    }

    /// The days that follow a day in some weeks: bit 0 stands for the first day after it.
    pub(crate) fn weeks_after(&self, day: i64) -> u64 {
        u64::from(week_from(self.week(), day + 1)) * NINE_WEEKS
    }

    /// The days that follow a day in its month: bit 0 stands for the first day after it.
    pub(crate) fn rest_of_month(&self, day: i64) -> (Month, u32) {
        let (month, day) = Month::of(day);
        (month, (self.of_month(&month) & month.within()) >> day >> 1)
    }

    /// The next month that is wanted, and its days; bit n stands for the day n.
    pub(crate) fn next_month(&self, month: &Month) -> (Month, u32) {
        let month = self.month_after(month);
        (month, self.of_month(&month) & month.within())
    }

    #[inline]
    fn has(&self, month: &Month) -> bool {
        self.month >> month.month & 1 == 1
    }

    #[inline]
    fn month_after(&self, month: &Month) -> Month {
        let later = u32::from(self.month) & !1 << month.month;
        match later {
            0 if self.leap_only => month.leap_after(),
            0 => Month::new(month.year + 1, self.month.trailing_zeros()),
            later => Month::new(month.year, later.trailing_zeros()),
        }
    }

    fn month_before(&self, month: &Month) -> Month {
        let earlier = u32::from(self.month) & !(!0 << month.month);
        match earlier {
            0 if self.leap_only => month.leap_before(),
            0 => Month::new(month.year - 1, u32::from(self.month).ilog2()),
            earlier => Month::new(month.year, earlier.ilog2()),
        }
    }

    /// The days of a month that match; bit n stands for the day n. There may be some past its end.
    #[inline]
    fn of_month(&self, month: &Month) -> u32 {
        self.by_day(month) | self.by_weekday(month)
    }

    #[inline]
    fn by_day(&self, month: &Month) -> u32 {
        let mut days = self.day & ALL_DAYS;
        if self.day & 1 == 1 {
            days |= 1 << month.length();
        }
        if self.nearest != 0 {
            days |= self.by_nearest(month);
        }
        days
    }

    /// The days from Monday to Friday that are nearest to others, without leaving the month.
    #[inline(never)]
    fn by_nearest(&self, month: &Month) -> u32 {
        let (first, length) = (weekday(month.first), month.length());
        let wanted = self.nearest & month.within() & ALL_DAYS | (self.nearest & 1) << length;
        let saturdays = wanted & days_of_weeks(SATURDAY * FIVE_WEEKS, first);
        let sundays = wanted & days_of_weeks(SUNDAY * FIVE_WEEKS, first);
        let days = wanted & !saturdays & !sundays | saturdays >> 1 | sundays << 1;
        // From a Saturday that is the first, and from a Sunday that is the last, it is two days the other way.
        days & month.within() & ALL_DAYS | (days & 1) << 3 | sundays >> length << (length - 2)
    }

    #[inline]
    fn by_weekday(&self, month: &Month) -> u32 {
        if self.weeks == 0 {
            return 0;
        }
        let first = weekday(month.first);
        let days = days_of_weeks(self.weeks, first);
        match self.weeks >> LAST_WEEK {
            0 => days,
            last => {
                let begin = month.length() - 6;
                days | week_from(last, month.first + i64::from(begin) - 1) << begin
            }
        }
    }

    /// The weekdays of the first seven days of a month; of all days, if they are the same in every week.
    fn week(&self) -> u64 {
        self.weeks & 0x7f
    }

    #[expect(clippy::cast_possible_truncation, reason = "seven bits")]
    fn week_at(&self, bit: u32) -> u8 {
        (self.weeks >> bit) as u8 & 0x7f
    }
}

/// A set of months as [`Month`] counts them: January and February come last.
fn from_march(months: u64) -> u64 {
    months & !0b111 | (months & 0b110) << 12
}

/// The same as everyone counts them.
fn from_january(months: u64) -> u64 {
    months & 0x1ff8 | months >> 12 & 0b110
}

/// The days of a month that begins with the weekday `first`, of seven bits for each week.
///
/// Each week of the month begins with that weekday. So the weekdays from it on move to the front of the seven bits,
/// and those before it to the end: all weeks at once.
#[expect(clippy::cast_possible_truncation, reason = "no month has more than 31 days")]
fn days_of_weeks(weeks: u64, first: u32) -> u32 {
    let front = (0x7f >> first) * FIVE_WEEKS;
    let days = weeks >> first & front | weeks << (7 - first) & !front;
    (days << 1) as u32
}

/// Seven days from a day on: bit n is set if the day n later is in a set of weekdays.
#[expect(clippy::cast_possible_truncation, reason = "seven bits, twice")]
fn week_from(weekdays: u64, day: i64) -> u32 {
    let twice = weekdays << 7 | weekdays;
    (twice >> weekday(day)) as u32 & 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, Expr};
    use alloc::format;
    use alloc::vec::Vec;

    /// One cycle of the calendar, and a little of the next.
    const DAYS: i64 = 146_097 + 366;

    fn days(line: &str) -> DaySet {
        match Expr::parse(line, Dialect::Ojs).unwrap() {
            Expr::Cron(cron) => DaySet::new(&cron),
            Expr::Every(_) => unreachable!("it has fields"),
        }
    }

    /// Every set of months with every weekday, over one cycle of the calendar.
    #[test]
    fn no_more_months_in_a_row_lack_a_fifth_weekday() {
        let months: Vec<(u32, u32, u32)> = (2000..2400 + 28)
            .flat_map(|year| {
                (1..=12).map(move |name| {
                    let month = Month::named(year, name);
                    (name, weekday(month.first), month.length())
                })
            })
            .collect();
        let mut most = 0;
        for weekday in 0..7 {
            let lacks: Vec<(u32, bool)> = months
                .iter()
                .map(|(month, first, length)| (*month, 29 + (weekday + 7 - first) % 7 > *length))
                .collect();
            for set in (2..1 << 13).step_by(2).filter(|set: &u32| *set != 1 << 2) {
                let mut run = 0;
                for (_, lacks) in lacks.iter().filter(|(month, _)| set >> month & 1 == 1) {
                    run = if *lacks { run + 1 } else { 0 };
                    most = most.max(run);
                }
            }
        }
        assert_eq!(most, MONTHS_MAX);
    }

    #[test]
    fn the_rarest_days_are_found_from_every_day_of_the_calendar() {
        for month in 1..=12 {
            for days in ["29", "30", "31", "29W", "31W"] {
                if month == 2 && !days.starts_with("29")
                    || days.starts_with("31") && [4, 6, 9, 11].contains(&month)
                {
                    continue; // refused when it is compiled
                }
                check(&format!("0 0 {days} {month} *"));
            }
            for weekday in 0..7 {
                check(&format!("0 0 * {month} {weekday}#5"));
                check(&format!("0 0 * 2,4,6,9,12 {weekday}#5"));
            }
        }
    }

    /// Walks the days one by one, and compares both searches with what has been seen.
    fn check(line: &str) {
        let days = days(line);
        let mut last = None;
        for day in 0..DAYS {
            if days.contains(day) {
                let since = last.map_or(0, |last| last + 1);
                for from in [since, since + (day - since) / 2, since.max(day - 45), day] {
                    assert_eq!(days.next_day(from), Some(day), "{line} from {from}");
                }
                last = Some(day);
            }
            if last.is_some() && day % 31 == 0 {
                assert_eq!(days.prev_day(day), last, "{line} before {day}");
            }
        }
        assert!(last.is_some(), "{line} comes");
    }
}
