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

/// The day's names. Works for every day a jiff timestamp can lie in.
///
/// The year is counted from March, so that the leap day is its last and months have a regular
/// pattern of lengths (153 days in each five months).
#[expect(clippy::cast_possible_truncation, reason = "bounded by the calendar")]
pub(crate) const fn ymd(days: i64) -> Ymd {
    let shifted = days + 719_468; // from 0000-03-01
    let cycle = shifted.div_euclid(CYCLE_DAYS);
    let day_of_cycle = shifted.rem_euclid(CYCLE_DAYS);
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_cycle + cycle * 400 + (month <= 2) as i64;
    Ymd { year: year as i32, month: month as u32, day: day as u32 }
}

/// The number of the first day of a month.
pub(crate) const fn first_of_month(year: i32, month: u32) -> i64 {
    let year = year as i64 - (month <= 2) as i64;
    let month_from_march = ((month + 9) % 12) as i64;
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let day_of_year = (153 * month_from_march + 2) / 5;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * CYCLE_DAYS + day_of_cycle - 719_468
}

/// The weekday of the first day of a month, without counting days: every year moves it by one, and
/// every leap day that has passed by one more. 0 is Sunday.
pub(crate) const fn first_weekday(year: i32, month: u32) -> u32 {
    // By how much each month begins later in the week than January, in a year without a leap day.
    const SHIFTS: [u32; 12] = [0, 3, 3, 6, 1, 4, 6, 2, 5, 0, 3, 5];
    // Weekdays repeat every 400 years, and division is simplest of numbers that are not negative.
    let year = (year + 10_000).unsigned_abs();
    let leap_years = year - (month <= 2) as u32;
    let leap_days = leap_years / 4 - leap_years / 100 + leap_years / 400;
    (year + leap_days + SHIFTS[month as usize - 1]) % 7
}

pub(crate) const fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) const fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 => 28 + is_leap(year) as u32,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
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
            let first = day.first_of_month().weekday().to_sunday_zero_offset() as u32;
            assert_eq!(first_weekday(names.year, names.month), first);
            let step = if day.year() < 2201 { 1 } else { 97 };
            day = day.checked_add(jiff::Span::new().days(step)).unwrap();
            number += step;
        }
    }
}
