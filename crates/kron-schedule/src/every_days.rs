//! Every so many days, at a local time of day.

use core::fmt;

use jiff::civil::Time;

use crate::calendar::{DAY, day_and_second};

/// A schedule that occurs every N days exactly, across months and years, which cron fields cannot say.
///
/// Days are counted from 1970-01-01; it occurs on those whose number leaves the remainder `phase`.
///
/// ```
/// use jiff::civil::time;
/// use kron_schedule::{Dst, EveryDays, Zone};
///
/// let fortnightly = EveryDays::new(14, 3, time(4, 30, 0, 0)).unwrap();
/// let schedule = fortnightly.compile(&Zone::utc(), Dst::KRON);
/// let first = schedule.next_after("2026-01-01T00:00:00Z".parse()?).unwrap();
/// let second = schedule.next_after(first).unwrap();
/// assert_eq!(second.as_second() - first.as_second(), 14 * 86_400);
/// # Ok::<(), jiff::Error>(())
/// ```
// Packed, like the fields of an expression, so that a schedule stays within 64 bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(Rust, packed)]
pub struct EveryDays {
    days: u16,
    phase: u16,
    second: u32,
}

/// The longest distance between occurrences: a leap year.
const DAYS_MAX: u16 = 366;

impl EveryDays {
    /// `None` unless there are 1 to 366 days, the phase is below their number, and the time is a
    /// whole second.
    #[must_use]
    pub fn new(days: u16, phase: u16, time: Time) -> Option<EveryDays> {
        let valid = (1..=DAYS_MAX).contains(&days) && phase < days && time.subsec_nanosecond() == 0;
        let part = |value: i8| u32::from(value.unsigned_abs());
        let second = part(time.hour()) * 3_600 + part(time.minute()) * 60 + part(time.second());
        valid.then_some(EveryDays { days, phase, second })
    }

    /// The number of days from one occurrence to the next.
    #[must_use]
    pub fn days(&self) -> u16 {
        self.days
    }

    /// The remainder that the numbers of its days leave.
    #[must_use]
    pub fn phase(&self) -> u16 {
        self.phase
    }

    /// The local time of day.
    #[must_use]
    pub fn time(&self) -> Time {
        crate::zone::to_date_time(self.second()).time()
    }

    /// The second of the day.
    pub(crate) fn second(&self) -> i64 {
        self.second.into()
    }

    pub(crate) fn is_day(&self, day: i64) -> bool {
        day.rem_euclid(self.days.into()) == i64::from(self.phase)
    }

    /// Its first time at or after a civil one.
    #[inline(never)]
    pub(crate) fn next(&self, civil: i64) -> i64 {
        let (day, second) = day_and_second(civil);
        let is_past = i64::from(second) > self.second();
        self.next_day(day + i64::from(is_past)) * DAY + self.second()
    }

    /// Its last time at or before a civil one.
    pub(crate) fn prev(&self, civil: i64) -> i64 {
        let (day, second) = day_and_second(civil);
        let is_ahead = i64::from(second) < self.second();
        self.prev_day(day - i64::from(is_ahead)) * DAY + self.second()
    }

    /// The first of its days at or after a day.
    pub(crate) fn next_day(&self, day: i64) -> i64 {
        day + (i64::from(self.phase) - day).rem_euclid(self.days.into())
    }

    /// The last of its days at or before a day.
    pub(crate) fn prev_day(&self, day: i64) -> i64 {
        day - (day - i64::from(self.phase)).rem_euclid(self.days.into())
    }
}

/// "At 04:30 every 14 days".
impl fmt::Display for EveryDays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second) = (self.second / 3_600, self.second / 60 % 60, self.second % 60);
        write!(f, "At {hour:02}:{minute:02}")?;
        if second != 0 {
            write!(f, ":{second:02}")?;
        }
        match self.days {
            1 => f.write_str(" every day"),
            days => write!(f, " every {days} days"),
        }
    }
}
