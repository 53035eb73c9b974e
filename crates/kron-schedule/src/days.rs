//! Which days match, whatever the time of day.

use crate::calendar::{Month, is_near, months_of_four_years, months_of_length, weekday};
use crate::expr::{Cron, Days, Shape, Values, Weekdays};
use crate::field::Field;

/// A set of days, by the day fields and the month field of an expression. A day that satisfies either of the two day
/// fields matches; one that does not restrict is left out here, unless both do not.
///
/// Packed, so that a schedule stays within 64 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(Rust, packed)]
pub(crate) struct DaySet {
    /// Weekdays: seven bits for the first seven days of a month, beginning with Sunday, seven for the next, up to the
    /// fifth; then seven for the last seven days. So `MON` is bits 1, 8, 15, 22 and 29, `MON#2` is bit 8, and `MONL` is
    /// bit 36.
    weeks: u64,
    /// Days of the month: bit n stands for the day n, and bit 0 for the last.
    day: u32,
    /// Days of the month to which the nearest weekday is wanted; bit 0 stands for the last.
    nearest: u32,
    /// The months that are searched, out of the 48 that [`Month`] counts: those that are wanted and have such a day, in
    /// some years at least. For `0 0 29 2 *` that is bit 47 alone. Then come twelve bits, from January on, for
    /// the months as they were written.
    months: u64,
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
    Irregular,
}

/// The most months of those searched that are passed between the one a search begins in and the one that has a match.
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
/// Where the bits for the days after the 28th begin.
const FIFTH_WEEK: u32 = 28;
/// Where the bits for the last seven days of a month begin.
const LAST_WEEK: u32 = 35;

/// The months of four years.
const ALL_MONTHS: u64 = (1 << 48) - 1;
/// Where the bits for the months as they were written begin: bit 1 of them stands for January.
const WRITTEN: u32 = 47;

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
            months: months_of_four_years(cron.fields.month.bits) | cron.fields.month.bits << WRITTEN,
            repeats: Repeats::Irregular,
        };
        let earliest = days.earliest();
        if earliest > SHORTEST {
            days.months &= months_of_length(earliest) | !ALL_MONTHS;
        }
        debug_assert!(days.months() != 0, "what can never match is refused before");
        days.repeats = days.find_repeats();
        days
    }

    /// The earliest day of the month that can match in any month.
    fn earliest(&self) -> u32 {
        // Every month has a last day, which is bit 0, and a last week.
        let in_other_weeks = self.weeks & !(0x7f << FIFTH_WEEK) != 0;
        let by_weekday = match self.restricts_weekday() {
            true if in_other_weeks => 1,
            true => FIFTH_WEEK + 1,
            false => u32::MAX,
        };
        (self.day | self.nearest).trailing_zeros().min(by_weekday)
    }

    fn find_repeats(&self) -> Repeats {
        let in_all_months = self.written_months() == Field::Month.all();
        if in_all_months && self.day & ALL_DAYS == ALL_DAYS {
            Repeats::Daily
        } else if in_all_months && self.day | self.nearest == 0 && self.weeks == self.week() * FIVE_WEEKS {
            Repeats::Weekly
        } else if self.weeks == 0 && self.nearest == 0 && self.day & 1 == 0 {
            Repeats::Monthly
        } else {
            Repeats::Irregular
        }
    }

    pub(crate) fn repeats(&self) -> Repeats {
        self.repeats
    }

    /// The months that are searched.
    #[inline]
    fn months(&self) -> u64 {
        self.months & ALL_MONTHS
    }

    /// The months as they were written, bit 1 for January.
    fn written_months(&self) -> u64 {
        self.months >> WRITTEN & Field::Month.all()
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
        let month = self.written_months();
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
            _ => month.is_in(months_of_four_years(self.written_months())),
        }
    }

    pub(crate) fn contains(&self, day: i64) -> bool {
        let (month, day) = Month::of(day);
        month.is_in(self.months()) && self.of_month(&month) >> day & 1 == 1
    }

    /// The first day to match at or after a day.
    pub(crate) fn next_day(&self, day: i64) -> Option<i64> {
        match self.repeats {
            Repeats::Daily => Some(day),
            Repeats::Weekly => self.next_weekly(day),
            Repeats::Monthly | Repeats::Irregular => self.next_in_months(day),
        }
    }

    /// The same if in every week the same days match.
    #[inline]
    pub(crate) fn next_weekly(&self, day: i64) -> Option<i64> {
        // Of five weeks that are all the same, at least four are left from any weekday on.
        Some(day + i64::from((self.weeks >> weekday(day)).trailing_zeros()))
    }

    fn next_in_months(&self, day: i64) -> Option<i64> {
        let (mut month, day) = Month::of(day);
        // Of the month itself what is left, and every later month whole.
        let mut days = if month.is_in(self.months()) { self.of_month(&month) & !0 << day } else { 0 };
        for _ in 0..MONTHS_MAX + 2 {
            if let Some(found) = first_of(days, &month) {
                return Some(found);
            }
            month = month.next_in(self.months());
            days = self.of_month(&month);
        }
        None
    }

    /// The same as [`next_day`](Self::next_day) if in every month the same days match, and it is soon.
    #[inline]
    pub(crate) fn soon_monthly(&self, day: i64) -> Option<i64> {
        self.soon(day, |_| self.day)
    }

    /// The same for any days, if it is soon.
    #[inline]
    pub(crate) fn soon_irregular(&self, day: i64) -> Option<i64> {
        self.soon(day, |month| self.of_month(month))
    }

    /// The first day to match at or after a day, if it is soon: in what is left of the month or in the next month that
    /// is searched. That is so nearly always, and the search for it calls nothing and needs few registers.
    #[inline(always)]
    fn soon(&self, day: i64, of_month: impl Fn(&Month) -> u32) -> Option<i64> {
        if !is_near(day) {
            return None;
        }
        let (month, day) = Month::of(day);
        let left = if month.is_in(self.months()) { of_month(&month) & !0 << day } else { 0 };
        if let Some(found) = first_of(left, &month) {
            return Some(found);
        }
        let month = month.next_in(self.months());
        first_of(of_month(&month), &month)
    }

    /// The last day to match at or before a day.
    pub(crate) fn prev_day(&self, day: i64) -> Option<i64> {
        match self.repeats {
            Repeats::Daily => Some(day),
            Repeats::Weekly => Some(self.prev_weekly(day)),
            Repeats::Monthly | Repeats::Irregular => self.prev_in_months(day),
        }
    }

    fn prev_weekly(&self, day: i64) -> i64 {
        // The weekday in the fifth week becomes the highest bit.
        let earlier = self.weeks << (63 - FIFTH_WEEK - weekday(day));
        day - i64::from(earlier.leading_zeros())
    }

    fn prev_in_months(&self, day: i64) -> Option<i64> {
        let (mut month, day) = Month::of(day);
        let mut through = !(!1 << day);
        for _ in 0..MONTHS_MAX + 2 {
            let days = if month.is_in(self.months()) { self.of_month(&month) & through } else { 0 };
            if let Some(day) = days.checked_ilog2() {
                return Some(month.first() - 1 + i64::from(day));
            }
            month = month.prev_in(self.months());
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
        let month = month.next_in(self.months());
        (month, self.of_month(&month) & month.within())
    }

    /// The days of a month that match; bit n stands for the day n. There may be some past its end.
    #[inline]
    fn of_month(&self, month: &Month) -> u32 {
        let days = self.by_day(month);
        if self.weeks == 0 { days } else { days | self.by_weekday(month) }
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
    #[expect(clippy::cast_possible_truncation, reason = "no month has more than 31 days")]
    fn by_nearest(&self, month: &Month) -> u32 {
        let length = month.length();
        let wanted = self.nearest & month.within() & ALL_DAYS | (self.nearest & 1) << length;
        // A month that begins with a Sunday, 0, has its first Saturday on the 7th. A Sunday is a day later, or six
        // days earlier.
        let saturdays = (FIVE_WEEKS << (7 - weekday(month.first()))) as u32;
        let sundays = wanted & (saturdays << 1 | saturdays >> 6);
        let saturdays = wanted & saturdays;
        let days = wanted & !saturdays & !sundays | saturdays >> 1 | sundays << 1;
        // From a Saturday that is the first, and from a Sunday that is the last, it is two days the other way.
        days & month.within() & ALL_DAYS | (days & 1) << 3 | sundays >> length << (length - 2)
    }

    #[inline]
    fn by_weekday(&self, month: &Month) -> u32 {
        let days = days_of_weeks(self.weeks, weekday(month.first()));
        match self.weeks >> LAST_WEEK {
            0 => days,
            last => {
                let begin = month.length() - 6;
                days | week_from(last, month.first() + i64::from(begin) - 1) << begin
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

/// The first of some days of a month, of which there may be some past its end.
#[inline]
fn first_of(days: u32, month: &Month) -> Option<i64> {
    let day = days.trailing_zeros();
    // Few need be compared with the length of the month, which takes longer to find out.
    let is_within = day <= SHORTEST || days != 0 && day <= month.length();
    is_within.then(|| month.first() - 1 + i64::from(day))
}

/// The days of a month that begins with the weekday `first`, of seven bits for each week.
///
/// Each week of the month begins with that weekday. So the weekdays from it on move to the front of the seven bits,
/// and those before it to the end: all weeks at once. A month that begins with a Wednesday, 3, has its second
/// Monday on the 13th; the lowest bit is on the right:
///
/// ```text
///                       week 3   week 2   week 1
///                       SFTWTMS  SFTWTMS  SFTWTMS
/// weeks of MON#2        0000000  0000010  0000000
/// front                 0001111  0001111  0001111   of each week, what comes from the right by `>> 3`
/// weeks >> 3, in front  0000000  0000000  0000000   Wednesday to Saturday; here there is none of them
/// weeks << 4, not so    0000000  0100000  0000000   Sunday to Tuesday
///                       TMSSFTW  TMSSFTW  TMSSFTW
/// ```
///
/// That is bit 12, for the 13th, and shifted by one bit 13.
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
                    (name, weekday(month.first()), month.length())
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
            }
        }
        for weekday in 0..7 {
            check(&format!("0 0 * 2,4,6,9,12 {weekday}#5"));
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
