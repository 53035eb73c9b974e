//! Days, counted from 1970-01-01, and what the calendar calls them.
//!
//! Every decision names a day, so this is plain 32-bit arithmetic.

use jiff::civil::Date;

/// Seconds in a day.
pub(crate) const DAY: i64 = 86_400;

/// A calendar day by its names.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Ymd {
    pub(crate) year: i32,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

/// The calendar repeats every 400 years.
const CYCLE_DAYS: i32 = 146_097;
/// As many cycles as make every day of jiff's calendar positive.
const SHIFT_CYCLES: i32 = 26;

/// A day in a year that begins in March, so that the leap day is its last and months follow a straight
/// line.
struct MarchDay {
    /// Counted from [`SHIFT_CYCLES`] before the year 0.
    century: u32,
    year_of_century: u32,
    day_of_year: u32,
}

/// The day of such a year that is 1 January.
const JANUARY: u32 = 306;

impl MarchDay {
    /// Works for every day a jiff timestamp can lie in. Divisions are by constants and become
    /// multiplications (Neri and Schneider, 2022).
    fn new(days: i32) -> MarchDay {
        // From the 1 March of a year 0, cycles ago.
        let shifted = (days + 719_468 + CYCLE_DAYS * SHIFT_CYCLES).cast_unsigned();
        let quarters = 4 * shifted + 3;
        let century = quarters / CYCLE_DAYS.cast_unsigned();
        let day_of_century = quarters % CYCLE_DAYS.cast_unsigned() / 4;
        // (4 d + 3) / 1461 and what is left, by one multiplication.
        let product = 2_939_745 * u64::from(4 * day_of_century + 3);
        let (year_of_century, rest) = ((product >> 32) as u32, product & 0xFFFF_FFFF);
        #[expect(clippy::cast_possible_truncation, reason = "a day of a year")]
        let day_of_year = (rest / 2_939_745 / 4) as u32;
        MarchDay { century, year_of_century, day_of_year }
    }

    /// The year as everybody counts.
    fn year(&self) -> i32 {
        let year = (100 * self.century + self.year_of_century).cast_signed() - 400 * SHIFT_CYCLES;
        year + i32::from(self.day_of_year >= JANUARY)
    }

    /// The days since 1 January.
    fn since_january(&self) -> u32 {
        let leaps = if self.year_of_century == 0 { self.century } else { self.year_of_century } % 4 == 0;
        match self.day_of_year.checked_sub(JANUARY) {
            Some(day) => day,
            None => self.day_of_year + 59 + u32::from(leaps),
        }
    }
}

/// The day's names.
pub(crate) fn ymd(days: i32) -> Ymd {
    let march = MarchDay::new(days);
    let line = 2_141 * march.day_of_year + 197_913;
    let (month, day) = (line >> 16, (line & 0xFFFF) / 2_141);
    let month = if march.day_of_year >= JANUARY { month - 12 } else { month };
    Ymd { year: march.year(), month, day: day + 1 }
}

/// The ISO year and week of a day. A week belongs to the year that its Thursday lies in.
pub(crate) fn iso_week(days: i32) -> (i32, u32) {
    // 1970-01-01 was a Thursday: 0 for Monday to 6 for Sunday. Whole weeks before, so that it is positive.
    let weekday = (days + 3 + 7_000_000).cast_unsigned() % 7;
    let thursday = MarchDay::new(days + 3 - weekday.cast_signed());
    (thursday.year(), thursday.since_january() / 7 + 1)
}

/// The number of a day.
pub(crate) fn day_of(date: Date) -> i32 {
    first_day(date.year().into()) + i32::from(date.day_of_year()) - 1
}

/// The number of the first day of a year.
fn first_day(year: i32) -> i32 {
    let before = year - 1;
    365 * before + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 719_162
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan;
    use jiff::civil::date;

    #[test]
    fn names_of_days_and_weeks_agree_with_jiff() {
        let epoch = date(1970, 1, 1);
        // Every day that schedules are about, and every seventh from one end of jiff's to the other.
        let near = -400..200_000;
        let far = (-4_371_587..2_932_896).step_by(7);
        for days in near.chain(far) {
            let day = epoch.checked_add(days.days()).unwrap();
            let expected = (i32::from(day.year()), day.month() as u32, day.day() as u32);
            let Ymd { year, month, day: day_of_month } = ymd(days);
            assert_eq!((year, month, day_of_month), expected);
            assert_eq!(day_of(day), days);
            let week = day.iso_week_date();
            assert_eq!(iso_week(days), (i32::from(week.year()), week.week() as u32), "{day}");
        }
    }
}
