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

/// A month, as one of the 48 of four years.
///
/// Four years are counted from a first of March, as of 1968 or 2024, so that a leap day is the last of their days. Then
/// their months begin after as many days as [`BEGINS`] says, whichever four years they are. Those that end in
/// February 2100, 2200 or 2300, but not 2400, and so on, lack their last day. That matters for the length of that
/// February, and for where the next four years begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Month {
    /// The first day of its four years.
    years: i64,
    /// 0 is the first March, 47 the last February.
    number: u32,
}

/// The days from the first March to each month of four years, and to their end.
const BEGINS: [u16; 49] = {
    const LENGTHS: [u16; 12] = [31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 31, 28];
    let mut begins = [0; 49];
    let mut number = 0;
    while number < 48 {
        let leap = (number == LEAP_FEBRUARY as usize) as u16;
        begins[number + 1] = begins[number] + LENGTHS[number % 12] + leap;
        number += 1;
    }
    begins
};

/// The only one of 48 months that can have a leap day.
const LEAP_FEBRUARY: u32 = 47;

/// Days of four years with a leap day.
const FOUR_YEARS: u32 = 1_461;

impl Month {
    /// The month that a day lies in, and which day of the month it is. Works for every day a jiff timestamp can lie in.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the calendar")]
    pub(crate) const fn of(day: i64) -> (Month, u32) {
        let passed = match before_2100(day) {
            true => (day - MARCH_1968) as u32 % FOUR_YEARS,
            false => four_years_of(day).1,
        };
        // No month has more than 31 days, so this is right or one too early: 33 / 1,024 is a little less than 1 / 31.
        let guess = (33 * passed) >> 10;
        let number = guess + (BEGINS[guess as usize + 1] as u32 <= passed) as u32;
        let month = Month { years: day - passed as i64, number };
        (month, passed - BEGINS[number as usize] as u32 + 1)
    }

    /// By its names.
    #[expect(clippy::cast_sign_loss, reason = "what is added makes it positive")]
    pub(crate) const fn named(year: i32, month: u32) -> Month {
        let months = 12 * (year + YEARS_BEFORE) as u32 + month - 3;
        let years = months / 48;
        let (century, years) = (years / 25, years % 25);
        let days = century as i64 * CYCLE_DAYS / 4 + (years * FOUR_YEARS) as i64;
        Month { years: days - DAYS_BEFORE, number: months % 48 }
    }

    /// The first month after it that is in a set of some of the 48.
    #[inline]
    pub(crate) const fn next_in(&self, months: u64) -> Month {
        match months >> self.number >> 1 {
            0 => Month { years: self.end_of_years(), number: months.trailing_zeros() },
            later => Month { years: self.years, number: self.number + 1 + later.trailing_zeros() },
        }
    }

    /// The last month before it that is in a set of some of the 48.
    pub(crate) const fn prev_in(&self, months: u64) -> Month {
        match months & !(!0 << self.number) {
            0 => Month { years: Month::of(self.years - 1).0.years, number: months.ilog2() },
            earlier => Month { years: self.years, number: earlier.ilog2() },
        }
    }

    #[inline]
    pub(crate) const fn is_in(&self, months: u64) -> bool {
        months >> self.number & 1 == 1
    }

    /// Its first day.
    #[inline]
    pub(crate) const fn first(&self) -> i64 {
        self.years + BEGINS[self.number as usize] as i64
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a month is short")]
    pub(crate) const fn length(&self) -> u32 {
        match self.number {
            LEAP_FEBRUARY => (self.end_of_years() - self.first()) as u32,
            number => (BEGINS[number as usize + 1] - BEGINS[number as usize]) as u32,
        }
    }

    /// Its days, and bit 0.
    pub(crate) const fn within(&self) -> u32 {
        !(!1 << self.length())
    }

    /// The first day of the next four years.
    #[inline]
    const fn end_of_years(&self) -> i64 {
        let end = self.years + FOUR_YEARS as i64;
        // Where a leap day is missing, that is their second day.
        if before_2100(end) { end } else { end - four_years_of(end).1 as i64 }
    }
}

/// From here to [`MARCH_2100`], four years begin 1,461 days after those before. That is nearly all that is ever asked
/// for, and leaves the centuries out.
const MARCH_1968: i64 = first_of_month(1968, 3);
const MARCH_2100: i64 = first_of_month(2100, 3);

#[inline]
const fn before_2100(day: i64) -> bool {
    MARCH_1968 <= day && day < MARCH_2100
}

/// Whether a day is so long before 2100 that neither its four years nor the next eight know of it. The compiler leaves
/// centuries out of all that is asked of the month after this.
#[inline]
pub(crate) const fn is_near(day: i64) -> bool {
    MARCH_1968 <= day && day < first_of_month(2088, 3)
}

/// Which four years a day lies in, counted since long ago, and how many of their days have passed.
#[cold]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is added makes it positive"
)]
const fn four_years_of(day: i64) -> (u32, u32) {
    // A century has 146,097 / 4 days on average. Every fourth is a day longer, as the one that ended in February 2000.
    let days = (day + DAYS_BEFORE) as u32;
    let century = (4 * days + 3) / CYCLE_DAYS as u32;
    let passed = days - (century as i64 * CYCLE_DAYS / 4) as u32;
    (25 * century + passed / FOUR_YEARS, passed % FOUR_YEARS)
}

/// Those of the 48 months that have so many days, in some years at least.
pub(crate) fn months_of_length(days: u32) -> u64 {
    let lengths = (0..48).zip(BEGINS.windows(2)).map(|(number, begins)| (number, begins[1] - begins[0]));
    lengths.filter(|(_, length)| u32::from(*length) >= days).fold(0, |set, (number, _)| set | 1 << number)
}

/// A set of months by their names, bit 1 for January, as a set of some of the 48.
pub(crate) const fn months_of_four_years(names: u64) -> u64 {
    let from_march = names >> 3 & 0x3ff | (names & 0b110) << 9;
    from_march * (1 | 1 << 12 | 1 << 24 | 1 << 36)
}

/// The day's names.
#[expect(clippy::cast_possible_wrap, reason = "bounded by the calendar")]
pub(crate) const fn ymd(day: i64) -> Ymd {
    let (Month { number, .. }, day_of_month) = Month::of(day);
    // From March 3 to February 14.
    let month = number % 12 + 3;
    let is_early = month > 12;
    let year = 4 * four_years_of(day).0 + number / 12 + is_early as u32;
    Ymd {
        year: year as i32 - YEARS_BEFORE,
        month: if is_early { month - 12 } else { month },
        day: day_of_month,
    }
}

/// The number of the first day of a month.
pub(crate) const fn first_of_month(year: i32, month: u32) -> i64 {
    Month::named(year, month).first()
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

    /// From each month to all that follow and precede within some years, over the ends of centuries.
    #[test]
    fn months_follow_each_other_as_in_jiff() {
        let all = months_of_four_years(0x1ffe);
        let (leap_february, may) = (1 << LEAP_FEBRUARY, months_of_four_years(1 << 5));
        let mut month = Month::named(1899, 1);
        let mut first = date(1899, 1, 1);
        while first < date(2410, 1, 1) {
            let number = |day: Date| i64::from((day - date(1970, 1, 1)).get_days());
            let years = |day: Date, years: i16| date(day.year() + years, 5, 1);
            assert_eq!(month, Month::named(first.year().into(), first.month() as u32));
            assert_eq!((month.first(), month.length()), (number(first), first.days_in_month() as u32));
            let next_may = if first.month() < 5 { years(first, 0) } else { years(first, 1) };
            assert_eq!(month.next_in(may).first(), number(next_may));
            let last_may = if first.month() > 5 { years(first, 0) } else { years(first, -1) };
            assert_eq!(month.prev_in(may).first(), number(last_may));
            // The one February of four years that may have a leap day, whether it has or not.
            let leap = (first.year() + 3 + i16::from(first.month() > 1)) / 4 * 4;
            assert_eq!(month.next_in(leap_february).first(), number(date(leap, 2, 1)));
            let leap = (first.year() - i16::from(first.month() <= 2)) / 4 * 4;
            assert_eq!(month.prev_in(leap_february).first(), number(date(leap, 2, 1)));

            let next = month.next_in(all);
            assert_eq!(next.prev_in(all), month);
            month = next;
            first = first.checked_add(jiff::Span::new().months(1)).unwrap();
        }
    }

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
