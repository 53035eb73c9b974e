//! Days, counted from 1970-01-01, and what the Gregorian calendar calls them.
//!
//! Plain integers, because the search does this arithmetic for every candidate day.

/// Seconds in a civil day.
pub(crate) const DAY: i64 = 86_400;

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

/// The day that a civil second lies in, and the second of that day.
#[expect(clippy::cast_possible_truncation, reason = "a day has fewer seconds than a u32 can count")]
#[expect(clippy::cast_sign_loss, reason = "what is added makes it positive")]
#[expect(clippy::cast_possible_wrap, reason = "a number of days")]
pub(crate) const fn day_and_second(civil: i64) -> (i64, u32) {
    let since = (civil + DAYS_BEFORE * DAY) as u64;
    let day = since / DAY as u64;
    (day as i64 - DAYS_BEFORE, (since % DAY as u64) as u32)
}

/// The day's names. Works for every day a jiff timestamp can lie in.
///
/// The year is counted from March, so that the leap day is its last. Centuries, years and months then begin at such
/// regular distances that one division or multiplication finds each of them: Neri and Schneider, "Euclidean affine
/// functions and their application to calendar algorithms" (2022). A fraction is kept in the lower bits of a
/// product, so that the quotient and what is left of it come out of the same one.
#[expect(clippy::cast_possible_truncation, reason = "bounded by the calendar")]
#[expect(clippy::cast_sign_loss, reason = "what is added makes it positive")]
#[expect(clippy::cast_possible_wrap, reason = "bounded by the calendar")]
pub(crate) const fn ymd(days: i64) -> Ymd {
    // A century has 146,097 / 4 days on average.
    let quarters = 4 * (days + DAYS_BEFORE) as u32 + 3;
    let century = quarters / 146_097;
    // A year has 1,461 / 4 days, and 1 / 1,461 is 2,939,745 / 2^32.
    let quarters = (quarters % 146_097) | 3;
    let years = 2_939_745 * quarters as u64;
    let day_of_year = years as u32 / 2_939_745 / 4;
    // Five months have 153 days, and 5 / 153 is 2,141 / 2^16. March is 3, and February is 14.
    let months = 2_141 * day_of_year + 197_913;
    let (month, day) = (months >> 16, (months & 0xffff) / 2_141 + 1);
    let is_early = month > 12;
    let year = 100 * century + (years >> 32) as u32 + is_early as u32;
    Ymd { year: year as i32 - YEARS_BEFORE, month: if is_early { month - 12 } else { month }, day }
}

/// The number of the first day of a month: the same distances, multiplied.
#[expect(clippy::cast_sign_loss, reason = "what is added makes it positive")]
pub(crate) const fn first_of_month(year: i32, month: u32) -> i64 {
    let is_early = month <= 2;
    let year = (year + YEARS_BEFORE) as u32 - is_early as u32;
    let month = if is_early { month + 12 } else { month };
    let century = year / 100;
    let days = 1_461 * year / 4 - century + century / 4 + (153 * month - 457) / 5;
    days as i64 - DAYS_BEFORE
}

/// The weekday of a day. 0 is Sunday, and 1970-01-01 was a Thursday.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the calendar")]
pub(crate) const fn weekday(day: i64) -> u32 {
    // Cycles are whole weeks. 1 / 7 is 613,566,757 / 2^32, and the lower half of the product is the fraction of a week.
    let weeks = 613_566_757 * ((day + CYCLES * CYCLE_DAYS) as u32 + 4) as u64;
    (((weeks as u32) as u64 * 7) >> 32) as u32
}

pub(crate) const fn is_leap(year: i32) -> bool {
    // Of the years that four divides, 25 divides the centuries, and 16 every fourth of those.
    year % 4 == 0 && (year % 25 != 0 || year % 16 == 0)
}

pub(crate) const fn days_in_month(year: i32, month: u32) -> u32 {
    if month == 2 {
        return 28 + is_leap(year) as u32;
    }
    // Long are the odd ones up to July, and the even ones from August on.
    30 + ((month ^ month >> 3) & 1)
}

/// The most days the month ever has.
pub(crate) const fn days_in_month_max(month: u32) -> u32 {
    days_in_month(2000, month)
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
            assert_eq!(days_in_month(names.year, names.month), day.days_in_month() as u32);
            assert_eq!(is_leap(names.year), day.in_leap_year());
            assert_eq!(weekday(number), day.weekday().to_sunday_zero_offset() as u32);
            assert_eq!(day_and_second(number * DAY), (number, 0));
            assert_eq!(day_and_second(number * DAY + 86_399), (number, 86_399));
            let step = if day.year() < 2201 { 1 } else { 97 };
            day = day.checked_add(jiff::Span::new().days(step)).unwrap();
            number += step;
        }
    }
}
