//! Days, counted from 1970-01-01, and what the Gregorian calendar calls them.
//!
//! Plain integers, because the search does this arithmetic for every candidate day.

/// Seconds in a civil day.
pub(crate) const DAY: i64 = 86_400;
/// The same for seconds of one day.
pub(crate) const DAY_SECONDS: u32 = 86_400;

/// The Gregorian calendar repeats after 400 years, weekdays included: 146,097 days are 20,871 weeks.
pub(crate) const CYCLE_DAYS: i64 = 146_097;

/// A calendar day by its names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ymd {
    pub(crate) year: i32,
    /// 1 to 12.
    pub(crate) month: u32,
    /// 1 to 31.
    pub(crate) day: u32,
}

/// Whole cycles of the calendar that are added before dividing and taken away again, because division is
/// cheapest of numbers that are not negative. They reach from before jiff's first year to past its last.
const CYCLES: i64 = 50;
/// Days from the first of March of that early year 0 to 1970-01-01.
const DAYS_BEFORE: i64 = CYCLES * CYCLE_DAYS + 719_468;
#[expect(clippy::cast_possible_truncation, reason = "a few thousand years")]
const YEARS_BEFORE: i32 = (CYCLES * 400) as i32;

/// A midnight before any time that jiff can tell.
pub(crate) const LONG_AGO: i64 = -DAYS_BEFORE * DAY;

/// The day that a civil second lies in, and the second of that day.
#[expect(clippy::cast_possible_truncation, reason = "a day has fewer seconds than a u32 can count")]
#[expect(clippy::cast_sign_loss, reason = "what is added makes it positive")]
#[expect(clippy::cast_possible_wrap, reason = "a number of days")]
pub(crate) const fn day_and_second(civil: i64) -> (i64, u32) {
    let since = (civil - LONG_AGO) as u64;
    let day = since / DAY as u64;
    (day as i64 - DAYS_BEFORE, (since % DAY as u64) as u32)
}

/// A month of a year that is counted from March, so that the leap day is its last. Centuries, years and months then
/// begin at such regular distances that one division or multiplication finds each of them: Neri and Schneider,
/// "Euclidean affine functions and their application to calendar algorithms" (2022).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Month {
    /// Since a year long ago, and the one before for January and February.
    pub(crate) year: u32,
    /// 3 is March, 12 December, 13 January and 14 February.
    pub(crate) month: u32,
    /// Its first day.
    pub(crate) first: i64,
}

pub(crate) const FEBRUARY: u32 = 14;

impl Month {
    #[inline]
    pub(crate) const fn new(year: u32, month: u32) -> Month {
        let century = year / 100;
        let days = 1_461 * year / 4 - century + century / 4 + (979 * month - 2_919) / 32;
        Month { year, month, first: days as i64 - DAYS_BEFORE }
    }

    /// By its names.
    #[expect(clippy::cast_sign_loss, reason = "what is added makes it positive")]
    pub(crate) const fn named(year: i32, month: u32) -> Month {
        let year = (year + YEARS_BEFORE) as u32;
        if month <= 2 { Month::new(year - 1, month + 12) } else { Month::new(year, month) }
    }

    /// The month that a day lies in, and which day of the month it is. Works for every day a jiff timestamp can lie in.
    ///
    /// A fraction is kept in the lower bits of a product, so that the quotient and what is left of it come out of the
    /// same one.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the calendar")]
    #[expect(clippy::cast_sign_loss, reason = "what is added makes it positive")]
    pub(crate) const fn of(day: i64) -> (Month, u32) {
        // A century has 146,097 / 4 days on average.
        let quarters = 4 * (day + DAYS_BEFORE) as u32 + 3;
        let century = quarters / 146_097;
        // A year has 1,461 / 4 days, and 1 / 1,461 is 2,939,745 / 2^32.
        let quarters = (quarters % 146_097) | 3;
        let years = 2_939_745 * quarters as u64;
        let day_of_year = years as u32 / 2_939_745 / 4;
        // Five months have 153 days, and 5 / 153 is 2,141 / 2^16.
        let months = 2_141 * day_of_year + 197_913;
        let (month, day_of_month) = (months >> 16, (months & 0xffff) / 2_141 + 1);
        let year = 100 * century + (years >> 32) as u32;
        (Month { year, month, first: day + 1 - day_of_month as i64 }, day_of_month)
    }

    pub(crate) const fn length(&self) -> u32 {
        // 31 days have March, May, July, August, October, December and January.
        const LONG: u32 = 1 << 3 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 13;
        match self.month {
            FEBRUARY => 28 + is_leap(self.year + 1) as u32,
            month => 30 + (LONG >> month & 1),
        }
    }

    /// Its days, and bit 0.
    pub(crate) const fn within(&self) -> u32 {
        !(!1 << self.length())
    }

    /// The first February with a 29th after the month, which is a February.
    pub(crate) const fn leap_after(&self) -> Month {
        let next = (self.year + 1) / 4 * 4 + 4;
        let next = if is_leap(next) { next } else { next + 4 };
        Month::new(next - 1, FEBRUARY)
    }

    /// The last February with a 29th before the month.
    pub(crate) const fn leap_before(&self) -> Month {
        let last = self.year / 4 * 4;
        let last = if is_leap(last) { last } else { last - 4 };
        Month::new(last - 1, FEBRUARY)
    }
}

/// By the year of the February, since the same year long ago.
const fn is_leap(year: u32) -> bool {
    // Of the years that four divides, 25 divides the centuries, and 16 every fourth of those.
    year.is_multiple_of(4) && (!year.is_multiple_of(25) || year.is_multiple_of(16))
}

/// The day's names.
#[expect(clippy::cast_possible_wrap, reason = "bounded by the calendar")]
pub(crate) const fn ymd(day: i64) -> Ymd {
    let (Month { year, month, .. }, day) = Month::of(day);
    let is_early = month > 12;
    let year = (year + is_early as u32) as i32 - YEARS_BEFORE;
    Ymd { year, month: if is_early { month - 12 } else { month }, day }
}

/// The number of the first day of a month.
pub(crate) const fn first_of_month(year: i32, month: u32) -> i64 {
    Month::named(year, month).first
}

/// The most days the month ever has.
pub(crate) const fn days_in_month_max(month: u32) -> u32 {
    Month::named(2000, month).length()
}

/// The weekday of a day. 0 is Sunday, and 1970-01-01 was a Thursday.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the calendar")]
pub(crate) const fn weekday(day: i64) -> u32 {
    // Cycles are whole weeks. 1 / 7 is 613,566,757 / 2^32, and the lower half of the product is the fraction of a week.
    let weeks = 613_566_757 * ((day + CYCLES * CYCLE_DAYS) as u32 + 4) as u64;
    (((weeks as u32) as u64 * 7) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{Date, date};

    #[test]
    fn days_and_names_agree_with_jiff_on_every_day() {
        let epoch = date(1970, 1, 1);
        let mut day: Date = date(1969, 1, 1);
        let mut number = i64::from((day - epoch).get_days());
        // Every day to 2201, and then every 97th to the end of jiff's calendar.
        while day < date(9999, 9, 1) {
            let names = ymd(number);
            let expected = (i32::from(day.year()), day.month() as u32, day.day() as u32);
            assert_eq!((names.year, names.month, names.day), expected);
            assert_eq!(first_of_month(names.year, names.month) + i64::from(names.day) - 1, number);
            assert_eq!(Month::named(names.year, names.month).length(), day.days_in_month() as u32);
            assert_eq!(weekday(number), day.weekday().to_sunday_zero_offset() as u32);
            assert_eq!(day_and_second(number * DAY), (number, 0));
            assert_eq!(day_and_second(number * DAY + 86_399), (number, 86_399));
            let step = if day.year() < 2201 { 1 } else { 97 };
            day = day.checked_add(jiff::Span::new().days(step)).unwrap();
            number += step;
        }
    }
}
