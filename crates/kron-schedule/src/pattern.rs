//! Which civil times match, and the search for the nearest of them.
//!
//! Civil times are seconds counted as if 1970-01-01T00:00 had been UTC. Zones and changes of
//! clocks are no concern of this file.

use alloc::vec::Vec;
use core::hint::select_unpredictable;

use crate::calendar::{DAY, day_and_second, days_in_month, first_of_month, is_leap, weekday, ymd};
use crate::dialect::Dialect;
use crate::every_days::EveryDays;
use crate::expr::{Cron, Days, Fields, Shape, Values, Weekdays, ones};
use crate::field::Field;

/// A set of civil times without end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pattern {
    Fields(Bits),
    EveryDays(EveryDays),
}

/// Cron fields as bit sets: bit n stands for the value n.
///
/// A program may hold a million schedules. Packed, there is room for the rest of one in 64 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(Rust, packed(4))]
pub(crate) struct Bits {
    second: u64,
    minute: u64,
    hour: u32,
    day: u32,
    nearest: u32,
    month: u16,
    weekday: u8,
    last_of: u8,
    nth: [u8; 5],
    last: bool,
    last_weekday: bool,
    /// The first second wanted in a minute.
    first_second: u8,
    /// What is left of a minute after the last second wanted.
    seconds_over: u8,
    /// Whether it can match in a leap year's February only.
    leap_only: bool,
    rule: DayRule,
    repeats: Repeats,
}

/// After how many days the days that match come again: what a search need not ask the calendar for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Repeats {
    /// Every day matches.
    Daily,
    /// The same weekdays match in every week.
    Weekly,
    /// It depends on the month.
    Never,
}

/// Which of the two day fields a day must satisfy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DayRule {
    Any,
    Day,
    Weekday,
    Either,
}

impl DayRule {
    fn restricts_day(self) -> bool {
        matches!(self, DayRule::Day | DayRule::Either)
    }

    fn restricts_weekday(self) -> bool {
        matches!(self, DayRule::Weekday | DayRule::Either)
    }
}

impl Pattern {
    /// The first match at or after a civil time.
    pub(crate) fn next(&self, civil: i64) -> Option<i64> {
        match self {
            Pattern::Fields(bits) => bits.next(civil),
            Pattern::EveryDays(every) => Some(every.next(civil)),
        }
    }

    /// The last match at or before a civil time.
    pub(crate) fn prev(&self, civil: i64) -> Option<i64> {
        match self {
            Pattern::Fields(bits) => bits.prev(civil),
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
            Pattern::Fields(bits) => bits.least_distance(),
            Pattern::EveryDays(_) => DAY,
        }
    }

    /// The most matches in so many days in a row: those of one day, on as many days as match in any
    /// stretch of that length within four years.
    pub(crate) fn most_in_days(&self, days: u64) -> u64 {
        let in_day = match self {
            Pattern::Fields(bits) => bits.in_day(),
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
            Pattern::Fields(bits) => bits.is_day(day),
            Pattern::EveryDays(every) => every.is_day(day),
        }
    }

    fn next_day(&self, day: i64) -> Option<i64> {
        match self {
            Pattern::Fields(bits) => bits.next_day(day),
            Pattern::EveryDays(every) => Some(every.next_day(day)),
        }
    }
}

/// 2001-01-01, the first day of an ordinary year.
const SOME_DAY: i64 = first_of_month(2001, 1);

/// Days with every kind of year in them.
const FOUR_YEARS: i64 = 1_461;

/// The most months that are passed between the one a search begins in and the one that has a match.
/// Rarest is the fifth of some weekday. In February that takes a leap year that begins right: there is
/// one after at most 40 years, and only leap years are tried for it. Of other months, at most 18 in
/// a row have no fifth such day.
const MONTHS_MAX: u32 = 18;

/// A civil time and the day it lies in.
pub(crate) struct Time {
    pub(crate) civil: i64,
    day: i64,
}

impl Bits {
    #[expect(clippy::cast_possible_truncation, reason = "fields have no bits past their last value")]
    pub(crate) fn new(cron: &Cron) -> Bits {
        let fields = &cron.fields;
        let mut bits = Bits {
            second: fields.second.bits,
            minute: fields.minute.bits,
            hour: fields.hour.bits as u32,
            day: fields.day.values.bits as u32,
            nearest: fields.day.nearest,
            month: fields.month.bits as u16,
            weekday: fields.weekday.values.bits as u8,
            last_of: fields.weekday.last,
            nth: fields.weekday.nth,
            last: fields.day.last,
            last_weekday: fields.day.last_weekday,
            first_second: fields.second.bits.trailing_zeros() as u8,
            seconds_over: 59 - fields.second.bits.ilog2() as u8,
            rule: match (cron.restricts_day(), cron.restricts_weekday()) {
                (false, false) => DayRule::Any,
                (true, false) => DayRule::Day,
                (false, true) => DayRule::Weekday,
                (true, true) => DayRule::Either,
            },
            leap_only: false,
            repeats: Repeats::Never,
        };
        // A February of 28 days has every weekday four times, so where it begins makes no difference.
        bits.leap_only = bits.month == 1 << 2 && bits.days_of(first_of_month(2001, 2), 28) == 0;
        let in_all_months = u64::from(bits.month) == Field::Month.all();
        bits.repeats = match bits.rule {
            DayRule::Any if in_all_months => Repeats::Daily,
            DayRule::Weekday if in_all_months && bits.last_of == 0 && bits.nth == [0; 5] => Repeats::Weekly,
            _ => Repeats::Never,
        };
        bits
    }

    /// The fields again, as far as they have a meaning here.
    pub(crate) fn to_cron(self) -> Cron {
        let values = |field: Field, bits: u64, star: bool| Values {
            shape: if star { Shape::Star } else { Shape::List },
            bits: if star { field.all() } else { bits },
        };
        let full = |field: Field, bits: u64| values(field, bits, bits == field.all());
        let fields = Fields {
            second: full(Field::Second, self.second),
            minute: full(Field::Minute, self.minute),
            hour: full(Field::Hour, self.hour.into()),
            day: Days {
                values: values(Field::Day, self.day.into(), !self.rule.restricts_day()),
                nearest: self.nearest,
                last: self.last,
                last_weekday: self.last_weekday,
            },
            month: full(Field::Month, self.month.into()),
            weekday: Weekdays {
                values: values(Field::Weekday, self.weekday.into(), !self.rule.restricts_weekday()),
                last: self.last_of,
                nth: self.nth,
            },
        };
        Cron::new(Dialect::Ojs, fields, Default::default())
    }

    /// The minutes of a matching hour after a matching second of it, and the second that they all have, if they have one.
    pub(crate) fn minutes_after(&self, second: i64) -> Option<(i64, u64)> {
        let only = self.second.is_power_of_two().then(|| self.second.trailing_zeros())?;
        Some((only.into(), self.minute & !1 << (second / 60)))
    }

    /// How many matches a matching day has.
    fn in_day(&self) -> u64 {
        let count = self.second.count_ones() * self.minute.count_ones() * self.hour.count_ones();
        count.into()
    }

    fn least_distance(&self) -> i64 {
        // From the last value of a field to the first of the next round is a distance too.
        let least = |set: u64, round: u32| {
            let rotated = set | set.checked_shl(round).unwrap_or(0);
            ones(rotated).zip(ones(rotated).skip(1)).map(|(a, b)| b - a).min().unwrap_or(round)
        };
        let (second, minute, hour) =
            (least(self.second, 60), least(self.minute, 60), least(self.hour.into(), 24));
        let by_second = if self.second.count_ones() > 1 { second } else { u32::MAX };
        let by_minute = if self.minute.count_ones() > 1 { minute * 60 } else { u32::MAX };
        let by_hour = if self.hour.count_ones() > 1 { hour * 3_600 } else { u32::MAX };
        let spread = self.second.ilog2() - self.second.trailing_zeros();
        i64::from(by_second.min(by_minute).min(by_hour).min(86_400).saturating_sub(spread).max(1))
    }

    /// Whether satisfying one of the two day fields suffices.
    pub(crate) fn either_day(&self) -> bool {
        self.rule == DayRule::Either
    }

    /// Whether one field is satisfied by its value; the day fields look at the whole date.
    pub(crate) fn field_matches(&self, field: Field, value: u32, day: i64) -> bool {
        let date = ymd(day);
        let length = days_in_month(date.year, date.month);
        let first = day + 1 - i64::from(date.day);
        match field {
            Field::Second => self.second >> value & 1 == 1,
            Field::Minute => self.minute >> value & 1 == 1,
            Field::Hour => self.hour >> value & 1 == 1,
            Field::Month => self.has_month(value),
            Field::Day => !self.rule.restricts_day() || self.by_day(length, first) >> date.day & 1 == 1,
            Field::Weekday => {
                !self.rule.restricts_weekday() || self.by_weekday(length, first) >> date.day & 1 == 1
            }
        }
    }

    pub(crate) fn repeats(&self) -> Repeats {
        self.repeats
    }

    /// The first match at or after a civil time.
    fn next(&self, civil: i64) -> Option<i64> {
        match self.repeats {
            Repeats::Daily => Some(self.next_time(civil).civil),
            Repeats::Weekly => Some(self.next_by_week(civil)),
            Repeats::Never => self.next_by_month(civil),
        }
    }

    /// The same if in every week the same days match.
    #[inline]
    pub(crate) fn next_by_week(&self, civil: i64) -> i64 {
        let time = self.next_time(civil);
        let days = week_from(self.weekday, weekday(time.day)).trailing_zeros();
        if days == 0 { time.civil } else { self.first_of(time.day + i64::from(days)) }
    }

    /// The same if months have a say in it.
    #[inline]
    pub(crate) fn next_by_month(&self, civil: i64) -> Option<i64> {
        let time = self.next_time(civil);
        let day = self.next_day_by_month(time.day)?;
        Some(if day == time.day { time.civil } else { self.first_of(day) })
    }

    /// The first time at or after a civil time whose hour, minute and second match, on whatever day.
    ///
    /// Nothing in it branches on the hour or the minute: a processor would guess wrong as often as right.
    #[inline]
    pub(crate) fn next_time(&self, civil: i64) -> Time {
        // A minute is over after the last second wanted. Of one that is not over, all is left.
        let reached = civil + i64::from(self.seconds_over);
        let (day, second) = day_and_second(reached);
        let (hour, minute) = (second / 3_600, second % 3_600 / 60);
        let left = self.minute & !0 << minute;
        // How many hours to go until one that is wanted and has minutes left; those of the next day follow.
        let over = u32::from(left == 0);
        let hours = u64::from(self.hour) << 24 | u64::from(self.hour);
        let later = over + (hours >> (hour + over)).trailing_zeros();
        let minutes = select_unpredictable(later == 0, left, self.minute);
        let found = seconds(hour + later, minutes.trailing_zeros(), self.first_second.into());
        let at = reached - i64::from(second) + i64::from(found);
        // The first second wanted may be past in a minute that is not over.
        let at = if at >= civil { at } else { civil + self.seconds_until(civil - at) };
        Time { civil: at, day: day + i64::from(hour + later >= 24) }
    }

    /// How long it takes from so many seconds after the first wanted in a minute to one that is wanted.
    fn seconds_until(&self, passed: i64) -> i64 {
        (self.second >> (i64::from(self.first_second) + passed)).trailing_zeros().into()
    }

    /// The first match of a day that matches.
    fn first_of(&self, day: i64) -> i64 {
        let second =
            seconds(self.hour.trailing_zeros(), self.minute.trailing_zeros(), self.first_second.into());
        day * DAY + i64::from(second)
    }

    fn prev(&self, civil: i64) -> Option<i64> {
        let (day, second) = day_and_second(civil);
        let left = self.prev_in_day(second);
        let found = self.prev_day(if left.is_some() { day } else { day - 1 })?;
        let second = left.filter(|_| found == day).unwrap_or_else(|| self.last_in_day());
        Some(found * DAY + i64::from(second))
    }

    fn is_day(&self, day: i64) -> bool {
        let date = ymd(day);
        let first = day + 1 - i64::from(date.day);
        let days = self.days_of(first, days_in_month(date.year, date.month));
        self.has_month(date.month) && days >> date.day & 1 == 1
    }

    fn next_day(&self, day: i64) -> Option<i64> {
        match self.repeats {
            Repeats::Daily => Some(day),
            Repeats::Weekly => Some(day + i64::from(week_from(self.weekday, weekday(day)).trailing_zeros())),
            Repeats::Never => self.next_day_by_month(day),
        }
    }

    #[inline(never)]
    fn next_day_by_month(&self, day: i64) -> Option<i64> {
        let date = ymd(day);
        let (mut year, mut month) = (date.year, date.month);
        let mut first = day + 1 - i64::from(date.day);
        // Whether the month itself counts, and from which day on; every later month counts whole.
        let mut days = match self.has_month(month) {
            true => self.days_of(first, days_in_month(year, month)) & (!0 << date.day),
            false => 0,
        };
        for _ in 0..MONTHS_MAX + 2 {
            if days != 0 {
                return Some(first - 1 + i64::from(days.trailing_zeros()));
            }
            (year, month) = self.month_after(year, month);
            first = first_of_month(year, month);
            days = self.days_of(first, days_in_month(year, month));
        }
        None
    }

    fn prev_day(&self, day: i64) -> Option<i64> {
        match self.repeats {
            Repeats::Daily => Some(day),
            // Of the week that begins the day after, the last day to match is a week too late.
            Repeats::Weekly => Some(day - 6 + i64::from(week_from(self.weekday, weekday(day + 1)).ilog2())),
            Repeats::Never => self.prev_day_by_month(day),
        }
    }

    fn prev_day_by_month(&self, day: i64) -> Option<i64> {
        let date = ymd(day);
        let (mut year, mut month) = (date.year, date.month);
        let mut first = day + 1 - i64::from(date.day);
        let mut days = match self.has_month(month) {
            true => self.days_of(first, days_in_month(year, month)) & !(!1 << date.day),
            false => 0,
        };
        for _ in 0..MONTHS_MAX + 2 {
            if days != 0 {
                return Some(first - 1 + i64::from(days.ilog2()));
            }
            (year, month) = self.month_before(year, month);
            first = first_of_month(year, month);
            days = self.days_of(first, days_in_month(year, month));
        }
        None
    }

    fn has_month(&self, month: u32) -> bool {
        self.month >> month & 1 == 1
    }

    fn month_after(&self, year: i32, month: u32) -> (i32, u32) {
        let later = u32::from(self.month) & (!1 << month);
        match later {
            0 if self.leap_only => (next_leap_year(year), 2),
            0 => (year + 1, self.month.trailing_zeros()),
            later => (year, later.trailing_zeros()),
        }
    }

    fn month_before(&self, year: i32, month: u32) -> (i32, u32) {
        let earlier = u32::from(self.month) & !(!0 << month);
        match earlier {
            0 if self.leap_only => (prev_leap_year(year), 2),
            0 => (year - 1, u32::from(self.month).ilog2()),
            earlier => (year, earlier.ilog2()),
        }
    }

    /// The matching days of a month, by its first day and its length; bit n stands for day n.
    fn days_of(&self, first: i64, length: u32) -> u32 {
        let all = !1 & !(!1 << length);
        match self.rule {
            DayRule::Any => all,
            DayRule::Day => self.by_day(length, first),
            DayRule::Weekday => self.by_weekday(length, first),
            DayRule::Either => self.by_day(length, first) | self.by_weekday(length, first),
        }
    }

    fn by_day(&self, length: u32, first: i64) -> u32 {
        let within = !(!1 << length);
        let days = self.day & within | u32::from(self.last) << length;
        if self.last_weekday || self.nearest != 0 {
            return days | self.nearest_of(length, first);
        }
        days
    }

    /// What `W` means in a month.
    #[inline(never)]
    fn nearest_of(&self, length: u32, first: i64) -> u32 {
        let first = weekday(first);
        let mut wanted = self.nearest & !(!1 << length);
        if self.last_weekday {
            wanted |= 1 << length;
        }
        ones(wanted.into()).fold(0, |days, day| days | 1 << nearest_weekday(day, length, first))
    }

    fn by_weekday(&self, length: u32, first: i64) -> u32 {
        let first = weekday(first);
        let within = !(!1 << length);
        let mut days = 0;
        if self.weekday != 0 {
            let week = week_from(self.weekday, first);
            days |= (week | week << 7 | week << 14 | week << 21 | week << 28) << 1;
        }
        if self.nth != [0; 5] {
            for (shift, nth) in [1, 8, 15, 22, 29].into_iter().zip(self.nth) {
                days |= week_from(nth, first) << shift;
            }
        }
        if self.last_of != 0 {
            // The last seven days begin `length - 7` days after the first.
            days |= week_from(self.last_of, (first + length) % 7) << (length - 6);
        }
        days & within
    }

    fn last_in_day(&self) -> u32 {
        seconds(self.hour.ilog2(), self.minute.ilog2(), self.second.ilog2())
    }

    fn prev_in_day(&self, second: u32) -> Option<u32> {
        let (h, m, s) = hms(second);
        if self.hour >> h & 1 == 1 {
            if self.minute >> m & 1 == 1
                && let Some(s) = below(self.second, s + 1)
            {
                return Some(seconds(h, m, s));
            }
            if let Some(m) = below(self.minute, m) {
                return Some(seconds(h, m, self.second.ilog2()));
            }
        }
        let h = below(self.hour.into(), h)?;
        Some(seconds(h, self.minute.ilog2(), self.second.ilog2()))
    }
}

/// The first leap year after a year.
fn next_leap_year(year: i32) -> i32 {
    let next = year - year.rem_euclid(4) + 4;
    if is_leap(next) { next } else { next + 4 }
}

/// The last leap year before a year.
fn prev_leap_year(year: i32) -> i32 {
    let previous = (year - 1) - (year - 1).rem_euclid(4);
    if is_leap(previous) { previous } else { previous - 4 }
}

/// The Monday-to-Friday day nearest to a day, without leaving the month.
fn nearest_weekday(day: u32, length: u32, first: u32) -> u32 {
    match (first + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == length => day - 2,
        0 => day + 1,
        _ => day,
    }
}

/// Seven days from one that is the weekday `first`: bit n is set if the day n later is in the set.
fn week_from(weekdays: u8, first: u32) -> u32 {
    let twice = u32::from(weekdays) << 7 | u32::from(weekdays);
    twice >> first & 0x7f
}

/// The largest value of the set below `value`.
fn below(set: u64, value: u32) -> Option<u32> {
    (set & !(!0 << value)).checked_ilog2()
}

fn hms(second: u32) -> (u32, u32, u32) {
    (second / 3_600, second / 60 % 60, second % 60)
}

fn seconds(h: u32, m: u32, s: u32) -> u32 {
    h * 3_600 + m * 60 + s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Expr;
    use alloc::format;

    /// One cycle of the calendar, and a little of the next.
    const DAYS: i64 = 146_097 + 366;

    fn bits(line: &str) -> Bits {
        match Expr::parse(line, Dialect::Ojs).unwrap() {
            Expr::Cron(cron) => Bits::new(&cron),
            Expr::Every(_) => unreachable!("it has fields"),
        }
    }

    /// Every set of months with every weekday, over one cycle of the calendar.
    #[test]
    fn no_more_months_in_a_row_lack_a_fifth_weekday() {
        let months: Vec<(u32, u32, u32)> = (2000..2400 + 28)
            .flat_map(|year| {
                (1..=12).map(move |month| {
                    (month, weekday(first_of_month(year, month)), days_in_month(year, month))
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
        let bits = bits(line);
        let mut last = None;
        for day in 0..DAYS {
            if bits.is_day(day) {
                let since = last.map_or(0, |last| last + 1);
                for from in [since, since + (day - since) / 2, since.max(day - 45), day] {
                    assert_eq!(bits.next_day(from), Some(day), "{line} from {from}");
                }
                last = Some(day);
            }
            if last.is_some() && day % 31 == 0 {
                assert_eq!(bits.prev_day(day), last, "{line} before {day}");
            }
        }
        assert!(last.is_some(), "{line} comes");
    }
}
