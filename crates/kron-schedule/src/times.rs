//! Which times of a day match, whatever the day.

use core::hint::select_unpredictable;
use core::num::{NonZeroU32, NonZeroU64};

use crate::calendar::{DAY, DAY_SECONDS, LONG_AGO, day_and_second};
use crate::expr::{Fields, ones};
use crate::field::{Field, progression};

/// A set of times of day.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Times {
    Even(Even),
    Listed(Listed),
}

/// Times at equal distances, from one day to the next too: `*/5 * * * *`, `0 */6 * * *`, and any single time of day.
///
/// Most schedules are like that, and what comes next is one division away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(Rust, packed(4))]
pub(crate) struct Even {
    /// One of them, before any time that can be asked for.
    since: i64,
    /// The first of a day: less than `every`.
    first: u32,
    every: NonZeroU32,
}

/// Any others, as bit sets: bit n stands for the value n, and no set is empty.
///
/// A program may hold a million schedules. Packed, there is room for the rest of one in 64 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(Rust, packed(4))]
pub(crate) struct Listed {
    pub(crate) second: u64,
    pub(crate) minute: u64,
    pub(crate) hour: u32,
}

/// A civil time and the day it lies in.
pub(crate) struct Time {
    pub(crate) civil: i64,
    pub(crate) day: i64,
}

/// What a search asks of either kind.
pub(crate) trait OfDay {
    /// The first time at or after a civil time, on whatever day.
    fn next(&self, civil: i64) -> Time;

    /// The first second of a day.
    fn first(&self) -> u32;

    /// The first time at or after a civil time on a day that matches, by a search for such a day at or after another.
    #[inline]
    fn next_on(&self, civil: i64, next_day: impl FnOnce(i64) -> Option<i64>) -> Option<i64> {
        let time = self.next(civil);
        let day = next_day(time.day)?;
        Some(select_unpredictable(day == time.day, time.civil, day * DAY + i64::from(self.first())))
    }

    /// The last second of a day.
    fn last(&self) -> u32;

    /// The last second at or before one of the day, if there is one.
    fn last_through(&self, second: u32) -> Option<u32>;
}

impl Times {
    #[expect(clippy::cast_possible_truncation, reason = "fields have no bits past their last value")]
    pub(crate) fn new(fields: &Fields) -> Times {
        let listed =
            Listed { second: fields.second.bits, minute: fields.minute.bits, hour: fields.hour.bits as u32 };
        Even::new(&listed).map_or(Times::Listed(listed), Times::Even)
    }

    /// The fields.
    pub(crate) fn listed(&self) -> Listed {
        match self {
            Times::Even(even) => even.listed(),
            Times::Listed(listed) => *listed,
        }
    }

    /// How many a day has.
    pub(crate) fn count(&self) -> u64 {
        let Listed { second, minute, hour } = self.listed();
        (second.count_ones() * minute.count_ones() * hour.count_ones()).into()
    }

    /// The fewest seconds between two of one day, or a day if there is only one.
    pub(crate) fn least_distance(&self) -> u32 {
        match self {
            Times::Even(even) => even.every.get(),
            Times::Listed(listed) => listed.least_distance(),
        }
    }
}

impl OfDay for Times {
    fn next(&self, civil: i64) -> Time {
        match self {
            Times::Even(even) => even.next(civil),
            Times::Listed(listed) => listed.next(civil),
        }
    }

    fn first(&self) -> u32 {
        match self {
            Times::Even(even) => even.first(),
            Times::Listed(listed) => listed.first(),
        }
    }

    fn last(&self) -> u32 {
        match self {
            Times::Even(even) => even.last(),
            Times::Listed(listed) => listed.last(),
        }
    }

    fn last_through(&self, second: u32) -> Option<u32> {
        match self {
            Times::Even(even) => even.last_through(second),
            Times::Listed(listed) => listed.last_through(second),
        }
    }
}

impl Even {
    /// `None` if the distances are not equal.
    fn new(times: &Listed) -> Option<Even> {
        let steps = (step(times.second, 60)?, step(times.minute, 60)?, step(times.hour.into(), 24)?);
        // One value in a field is a step of the whole round, and every value a step of one.
        let every = match steps {
            (60, 60, hours) => hours * 3_600,
            (60, minutes, 1) => minutes * 60,
            (seconds, 1, 1) => seconds,
            _ => return None,
        };
        Some(Even::from(times.first(), NonZeroU32::new(every)?))
    }

    fn from(first: u32, every: NonZeroU32) -> Even {
        Even { since: LONG_AGO + i64::from(first), first, every }
    }

    pub(crate) fn every(&self) -> i64 {
        self.every.get().into()
    }

    /// Those that follow a second of the day on the same day: a bit for each, up to 64.
    pub(crate) fn rest_of_day(&self, second: u32) -> u64 {
        let left = (DAY_SECONDS - 1 - second) / self.every;
        !(!0_u64).checked_shl(left).unwrap_or(0)
    }

    #[expect(clippy::cast_possible_truncation, reason = "there are 24 hours")]
    fn listed(&self) -> Listed {
        let (h, m, s) = hms(self.first);
        let (second, minute, hour) = match self.every.get() {
            every @ ..60 => (progression(s, 59, every), Field::Minute.all(), Field::Hour.all()),
            every @ ..3_600 => (1 << s, progression(m, 59, every / 60), Field::Hour.all()),
            every => (1 << s, 1 << m, progression(h, 23, every / 3_600)),
        };
        Listed { second, minute, hour: hour as u32 }
    }
}

impl OfDay for Even {
    #[inline]
    fn next(&self, civil: i64) -> Time {
        let every = NonZeroU64::from(self.every);
        let passed = (civil - 1 - self.since).cast_unsigned() % every;
        let civil = civil - 1 - passed.cast_signed() + self.every();
        Time { civil, day: day_and_second(civil).0 }
    }

    #[inline]
    fn first(&self) -> u32 {
        self.first
    }

    fn last(&self) -> u32 {
        DAY_SECONDS - self.every.get() + self.first
    }

    fn last_through(&self, second: u32) -> Option<u32> {
        let passed = second.checked_sub(self.first)?;
        Some(second - passed % self.every)
    }
}

impl Listed {
    fn least_distance(&self) -> u32 {
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
        by_second.min(by_minute).min(by_hour).min(DAY_SECONDS).saturating_sub(spread).max(1)
    }

    /// The minutes that follow in the hour of a second of the day, the next one first, if all of them have one second.
    pub(crate) fn rest_of_hour(&self, second: u32) -> u64 {
        let (_, m, _) = hms(second);
        if self.second.is_power_of_two() { self.minute >> m >> 1 } else { 0 }
    }
}

impl OfDay for Listed {
    /// Nothing in it branches on the hour or the minute: a processor would guess wrong as often as right.
    #[inline]
    fn next(&self, civil: i64) -> Time {
        // A minute is over after the last second wanted. Of one that is not over, all is left.
        let reached = civil + i64::from(59 - self.second.ilog2());
        let (day, second) = day_and_second(reached);
        let (hour, minute) = (second / 3_600, second % 3_600 / 60);
        let left = self.minute & !0 << minute;
        // How many hours to go until one that is wanted and has minutes left; those of the next day follow.
        let over = u32::from(left == 0);
        let hours = u64::from(self.hour) << 24 | u64::from(self.hour);
        let later = over + (hours >> (hour + over)).trailing_zeros();
        let minutes = select_unpredictable(later == 0, left, self.minute);
        let found = seconds(hour + later, minutes.trailing_zeros(), self.second.trailing_zeros());
        let at = reached - i64::from(second) + i64::from(found);
        // The first second wanted may be past in a minute that is not over.
        let at = if at >= civil { at } else { civil + self.seconds_until(civil - at) };
        Time { civil: at, day: day + i64::from(hour + later >= 24) }
    }

    #[inline]
    fn first(&self) -> u32 {
        seconds(self.hour.trailing_zeros(), self.minute.trailing_zeros(), self.second.trailing_zeros())
    }

    fn last(&self) -> u32 {
        seconds(self.hour.ilog2(), self.minute.ilog2(), self.second.ilog2())
    }

    fn last_through(&self, second: u32) -> Option<u32> {
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

impl Listed {
    /// How long it takes from so many seconds after the first wanted in a minute to one that is wanted.
    fn seconds_until(&self, passed: i64) -> i64 {
        (self.second >> (i64::from(self.second.trailing_zeros()) + passed)).trailing_zeros().into()
    }
}

/// The distance between the values of a set, if it is always the same, from the last to the first of the next round too.
fn step(set: u64, round: u32) -> Option<u32> {
    let count = set.count_ones();
    let step = round / count;
    let is_even = round.is_multiple_of(count) && set == progression(set.trailing_zeros(), round - 1, step);
    is_even.then_some(step)
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
    use crate::{Dialect, Expr};

    fn times(line: &str) -> Times {
        match Expr::parse(line, Dialect::Ojs).unwrap() {
            Expr::Cron(cron) => Times::new(&cron.fields),
            Expr::Every(_) => unreachable!("it has fields"),
        }
    }

    #[test]
    fn even_times_are_known_as_such() {
        for (line, first, every) in [
            ("* * * * *", 0, 60),
            ("*/5 * * * *", 0, 300),
            ("7,37 * * * *", 420, 1_800),
            ("17 * * * *", 1_020, 3_600),
            ("30 1-23/6 * * *", 5_400, 21_600),
            ("30 9 * * *", 34_200, 86_400),
            ("* * * * * *", 0, 1),
            ("5-59/15 * * * * *", 5, 15),
            ("0 0,30 * * * *", 0, 1_800),
            ("59 59 23 * * *", 86_399, 86_400),
        ] {
            let every = NonZeroU32::new(every).unwrap();
            assert_eq!(times(line), Times::Even(Even::from(first, every)), "{line}");
        }
        for line in [
            "*/7 * * * *",
            "0 */5 * * *",
            "0,1 * * * *",
            "* 9 * * *",
            "0,30 9 * * *",
            "0 9-17 * * *",
            "*/20 0 * * * *",
            "*/15 * 9 * * *",
        ] {
            assert!(matches!(times(line), Times::Listed(_)), "{line}");
        }
    }

    /// From every second of a day, both ways, beside the same fields as bit sets.
    #[test]
    fn even_times_are_those_of_the_fields() {
        for line in
            ["* * * * *", "7,37 * * * *", "30 1-23/6 * * *", "30 9 * * *", "5-59/15 * * * * *", "0 0 0 * * *"]
        {
            let Times::Even(even) = times(line) else { panic!("{line} is even") };
            let listed = even.listed();
            assert_eq!((even.first(), even.last()), (listed.first(), listed.last()), "{line}");
            for second in 0..DAY_SECONDS {
                assert_eq!(even.last_through(second), listed.last_through(second), "{line} through {second}");
                let civil = 20_000 * i64::from(DAY_SECONDS) + i64::from(second);
                let (a, b) = (even.next(civil), listed.next(civil));
                assert_eq!((a.civil, a.day), (b.civil, b.day), "{line} from {second}");
            }
        }
    }
}
