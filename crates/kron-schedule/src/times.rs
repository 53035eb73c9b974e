//! Which times of a day match, whatever the day.

use core::hint::select_unpredictable;

use crate::calendar::{DAY, DAY_SECONDS, LONG_AGO, day_and_second};
use crate::expr::{Fields, ones};
use crate::field::{Field, progression};

/// A set of times of day.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Times {
    Once(Once),
    Even(Even),
    Listed(Listed),
}

/// One time of day, as most schedules have. What is wanted next is a matter of days only.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(Rust, packed)]
pub(crate) struct Once {
    /// Since midnight.
    second: u32,
}

/// Several times at equal distances, from one day to the next too: `*/5 * * * *`, `0 */6 * * *`.
///
/// What comes next is one division away, and dividing is multiplying by a fraction that is known beforehand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(Rust, packed)]
pub(crate) struct Even {
    /// The second after one of them, which is the first of its day and before any time that can be asked for.
    past: i64,
    every: u32,
    /// 2^63 / `every`, and up to one more.
    fraction: u64,
}

/// Any others, as bit sets: bit n stands for the value n, and no set is empty.
///
/// A program may hold a million schedules. Packed, there is room for the rest of one in 64 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(Rust, packed)]
pub(crate) struct Listed {
    pub(crate) second: u64,
    pub(crate) minute: u64,
    pub(crate) hour: u32,
}

/// What a search asks of every kind.
pub(crate) trait OfDay {
    /// The first time at or after a civil time on a day that matches, by a search for such a day at or after another.
    fn next_on(&self, civil: i64, next_day: impl FnOnce(i64) -> Option<i64>) -> Option<i64>;
}

impl Times {
    pub(crate) fn new(fields: &Fields) -> Times {
        let listed = Listed::new(fields);
        match listed.distance() {
            Some(DAY_SECONDS) => Times::Once(Once { second: listed.first() }),
            Some(every) => Times::Even(Even::new(listed.first(), every)),
            None => Times::Listed(listed),
        }
    }

    /// The fields.
    pub(crate) fn listed(&self) -> Listed {
        match self {
            Times::Once(once) => progressions(once.second, DAY_SECONDS),
            Times::Even(even) => progressions(even.first(), even.every),
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
            Times::Once(_) => DAY_SECONDS,
            Times::Even(even) => even.every,
            Times::Listed(listed) => listed.least_distance(),
        }
    }

    /// The last second of a day.
    pub(crate) fn last(&self) -> u32 {
        match self {
            Times::Once(once) => once.second,
            Times::Even(even) => DAY_SECONDS - even.every + even.first(),
            Times::Listed(listed) => listed.last(),
        }
    }

    /// The last second at or before one of the day, if there is one.
    pub(crate) fn last_through(&self, second: u32) -> Option<u32> {
        match self {
            Times::Once(once) => (once.second <= second).then_some(once.second),
            Times::Even(even) => Some(second - second.checked_sub(even.first())? % even.every),
            Times::Listed(listed) => listed.last_through(second),
        }
    }
}

impl OfDay for Times {
    fn next_on(&self, civil: i64, next_day: impl FnOnce(i64) -> Option<i64>) -> Option<i64> {
        match self {
            Times::Once(once) => once.next_on(civil, next_day),
            Times::Even(even) => even.next_on(civil, next_day),
            Times::Listed(listed) => listed.next_on(civil, next_day),
        }
    }
}

impl Once {
    /// The time on a day.
    #[inline]
    pub(crate) fn on(&self, day: i64) -> i64 {
        day * DAY + i64::from(self.second)
    }
}

impl OfDay for Once {
    #[inline]
    fn next_on(&self, civil: i64, next_day: impl FnOnce(i64) -> Option<i64>) -> Option<i64> {
        // Once it is past, the day is over.
        let (day, _) = day_and_second(civil + (DAY - 1) - i64::from(self.second));
        Some(self.on(next_day(day)?))
    }
}

impl Even {
    fn new(first: u32, every: u32) -> Even {
        Even { past: LONG_AGO + i64::from(first) + 1, every, fraction: (1 << 63) / u64::from(every) + 1 }
    }

    pub(crate) fn every(&self) -> i64 {
        self.every.into()
    }

    /// The first second of a day.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less than a day")]
    fn first(&self) -> u32 {
        (self.past - 1 - LONG_AGO) as u32
    }

    /// The first one at or after a civil time.
    #[inline]
    fn next(&self, civil: i64) -> i64 {
        self.past - 1 + self.every() * (self.steps((civil - self.past).cast_unsigned()) + 1)
    }

    /// How many times `every` goes into so many seconds, of which there are fewer than 2^40. The fraction is too large
    /// by at most one, so the product is too large by less than 2^-23. A quotient that is not whole lacks at least
    /// 1 / 86,400 to the next whole number, which is more: the whole part is right.
    #[inline]
    fn steps(&self, seconds: u64) -> i64 {
        ((u128::from(2 * seconds) * u128::from(self.fraction)) >> 64) as i64
    }

    /// Those that follow a second of the day on the same day: a bit for each, up to 64.
    pub(crate) fn rest_of_day(&self, second: u32) -> u64 {
        let left = (DAY_SECONDS - 1 - second) / self.every;
        !(!0_u64).checked_shl(left).unwrap_or(0)
    }
}

impl OfDay for Even {
    #[inline]
    fn next_on(&self, civil: i64, next_day: impl FnOnce(i64) -> Option<i64>) -> Option<i64> {
        let civil = self.next(civil);
        on_day(civil, day_and_second(civil).0, next_day, || self.first())
    }
}

impl Listed {
    #[expect(clippy::cast_possible_truncation, reason = "fields have no bits past their last value")]
    fn new(fields: &Fields) -> Listed {
        Listed { second: fields.second.bits, minute: fields.minute.bits, hour: fields.hour.bits as u32 }
    }

    /// The seconds from one to the next, if they are always the same, from one day to the next too.
    fn distance(&self) -> Option<u32> {
        // One value in a field is a step of the whole round, and every value a step of one.
        match (step(self.second, 60)?, step(self.minute, 60)?, step(self.hour.into(), 24)?) {
            (60, 60, hours) => Some(hours * 3_600),
            (60, minutes, 1) => Some(minutes * 60),
            (seconds, 1, 1) => Some(seconds),
            _ => None,
        }
    }

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

    /// The first second of a day.
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

    /// How long it takes from so many seconds after the first wanted in a minute to one that is wanted.
    fn seconds_until(&self, passed: i64) -> i64 {
        (self.second >> (i64::from(self.second.trailing_zeros()) + passed)).trailing_zeros().into()
    }
}

impl OfDay for Listed {
    /// Nothing in it branches on the hour or the minute: a processor would guess wrong as often as right.
    #[inline]
    fn next_on(&self, civil: i64, next_day: impl FnOnce(i64) -> Option<i64>) -> Option<i64> {
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
        on_day(at, day + i64::from(hour + later >= 24), next_day, || self.first())
    }
}

/// A time that lies on a day, if that day matches, and otherwise the first of the next day to match.
#[inline]
fn on_day(
    civil: i64,
    day: i64,
    next_day: impl FnOnce(i64) -> Option<i64>,
    first: impl FnOnce() -> u32,
) -> Option<i64> {
    let next = next_day(day)?;
    Some(select_unpredictable(next == day, civil, next * DAY + i64::from(first())))
}

/// The fields of times at equal distances.
#[expect(clippy::cast_possible_truncation, reason = "there are 24 hours")]
fn progressions(first: u32, every: u32) -> Listed {
    let (h, m, s) = hms(first);
    let (second, minute, hour) = match every {
        0..60 => (progression(s, 59, every), Field::Minute.all(), Field::Hour.all()),
        60..3_600 => (1 << s, progression(m, 59, every / 60), Field::Hour.all()),
        _ => (1 << s, 1 << m, progression(h, 23, every / 3_600)),
    };
    Listed { second, minute, hour: hour as u32 }
}

/// The distance between the values of a set, if it is always the same, and the same from the last to the first of the
/// next round.
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

    fn fields(line: &str) -> Fields {
        match Expr::parse(line, Dialect::Ojs).unwrap() {
            Expr::Cron(cron) => cron.fields,
            Expr::Every(_) => unreachable!("it has fields"),
        }
    }

    fn times(line: &str) -> Times {
        Times::new(&fields(line))
    }

    #[test]
    fn even_times_are_known_as_such() {
        for (line, first, every) in [
            ("* * * * *", 0, 60),
            ("*/5 * * * *", 0, 300),
            ("7,37 * * * *", 420, 1_800),
            ("17 * * * *", 1_020, 3_600),
            ("30 1-23/6 * * *", 5_400, 21_600),
            ("* * * * * *", 0, 1),
            ("5-59/15 * * * * *", 5, 15),
            ("0 0,30 * * * *", 0, 1_800),
        ] {
            assert_eq!(times(line), Times::Even(Even::new(first, every)), "{line}");
        }
        for (line, second) in [("30 9 * * *", 34_200), ("0 0 * * *", 0), ("59 59 23 * * *", 86_399)] {
            assert_eq!(times(line), Times::Once(Once { second }), "{line}");
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

    /// Every distance that fields can have, at both ends of jiff's time and around multiples.
    #[test]
    fn a_fraction_divides_exactly() {
        for every in (1..=DAY_SECONDS).filter(|every| DAY_SECONDS.is_multiple_of(*every)) {
            let (even, every) = (Even::new(0, every), u64::from(every));
            let most = (1 << 40) / every;
            for quotient in
                (0..1_000).chain(most - 1_000..most).chain((0..most).step_by((most / 1_000) as usize))
            {
                for seconds in [quotient * every, quotient * every + every / 2, quotient * every + every - 1]
                {
                    assert_eq!(even.steps(seconds), (seconds / every).cast_signed(), "{seconds} / {every}");
                }
            }
        }
    }

    /// From every second of a day, both ways, beside the same fields as bit sets.
    #[test]
    fn even_times_are_those_of_the_fields() {
        for line in
            ["* * * * *", "7,37 * * * *", "30 1-23/6 * * *", "30 9 * * *", "5-59/15 * * * * *", "0 0 0 * * *"]
        {
            let (even, listed) = (times(line), Listed::new(&fields(line)));
            assert!(!matches!(even, Times::Listed(_)), "{line} is even");
            assert_eq!(even.listed(), listed, "{line}");
            assert_eq!(even.last(), listed.last(), "{line}");
            for second in 0..DAY_SECONDS {
                assert_eq!(even.last_through(second), listed.last_through(second), "{line} through {second}");
                let civil = 20_000 * DAY + i64::from(second);
                for first_day in [20_000, 20_003] {
                    let next = |day: i64| Some(day.max(first_day));
                    assert_eq!(
                        even.next_on(civil, next),
                        listed.next_on(civil, next),
                        "{line} from {second}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_least_distance_is_that_of_the_two_times_closest_to_each_other() {
        for (line, distance) in [
            ("*/15 * * * * *", 15),
            ("* * * * * *", 1),
            ("10,40 * * * * *", 30),
            ("*/5 * * * *", 300),
            ("0 */6 * * *", 21_600),
            ("0 9 * * *", 86_400),
            ("0,50 * * * *", 600),
            ("0 9-17 * * *", 3_600),
        ] {
            assert_eq!(times(line).least_distance(), distance, "{line}");
        }
    }
}
