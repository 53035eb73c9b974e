//! Times of day, to the minute: `14:00`, `3:30pm`, `noon`, each with an offset or without.

use alloc::string::ToString;
use core::fmt;
use core::ops::Range;

use super::error::{Code, FuzzyError};
use super::offset::{self, Offset};
use super::parse::Parser;

/// The minutes of a day.
pub(super) const DAY: u16 = 24 * 60;

/// A time of day in whole minutes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct TimeOfDay(u16);

impl TimeOfDay {
    pub(super) const MIDNIGHT: TimeOfDay = TimeOfDay(0);
    const NOON: TimeOfDay = TimeOfDay(DAY / 2);

    /// Nothing unless the hour is below 24 and the minute below 60.
    pub(super) fn new(hour: u16, minute: u16) -> Option<TimeOfDay> {
        (hour < 24 && minute < 60).then_some(TimeOfDay(hour * 60 + minute))
    }

    pub(super) fn hour(self) -> u16 {
        self.0 / 60
    }

    pub(super) fn minute(self) -> u16 {
        self.0 % 60
    }

    /// The minutes since midnight.
    pub(super) fn minutes(self) -> u16 {
        self.0
    }

    /// The time so many minutes later, or earlier, and how many days on that is.
    pub(super) fn moved(self, minutes: i32) -> (TimeOfDay, i32) {
        let moved = i32::from(self.0) + minutes;
        let within = u16::try_from(moved.rem_euclid(DAY.into())).expect("below the minutes of a day");
        (TimeOfDay(within), moved.div_euclid(DAY.into()))
    }
}

/// "9:30".
impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:02}", self.hour(), self.minute())
    }
}

/// A time as it was written, with its offset if it has one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct WrittenTime {
    pub(super) time: TimeOfDay,
    pub(super) offset: Option<Offset>,
}

impl WrittenTime {
    /// The time in UTC, and how many days later (or earlier) it is there.
    pub(super) fn to_utc(self) -> (TimeOfDay, i32) {
        let offset = self.offset.map_or(0, Offset::minutes);
        self.time.moved(-i32::from(offset))
    }
}

/// "9:30 utc+9".
impl fmt::Display for WrittenTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.time.fmt(f)?;
        match self.offset {
            None => Ok(()),
            Some(offset) => write!(f, " {offset}"),
        }
    }
}

#[derive(Clone, Copy)]
enum Meridiem {
    Am,
    Pm,
}

impl Parser<'_> {
    /// Reads a time and the offset behind it. `place` is that of the next word.
    ///
    /// Its parts may touch or be apart: `9:30amutc+9`, `9:30 am utc+9`.
    pub(super) fn time(&mut self, place: Range<usize>) -> Result<WrittenTime, FuzzyError> {
        let word = self.cursor.slice(place.clone());
        let (time, end) = match keyword(word) {
            Some((time, length)) => (time, place.start + length),
            None => {
                let digits = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
                let clock = place.start..place.start + digits;
                let (meridiem, end) = self.meridiem(clock.end);
                if end == clock.end && end < place.end && !offset::begins(self.cursor.slice(end..place.end)) {
                    return Err(self.bad_time(place, None)); // letters that are no part of a time
                }
                let whole = clock.start..end;
                (self.clock(self.cursor.slice(clock), meridiem, whole)?, end)
            }
        };
        self.cursor.move_to(end);
        Ok(WrittenTime { time, offset: self.offset()? })
    }

    /// Looks for `am` or `pm` at or after a place, and tells where the time ends.
    fn meridiem(&self, at: usize) -> (Option<Meridiem>, usize) {
        let mut ahead = self.cursor.clone();
        ahead.move_to(at);
        let Some(place) = ahead.peek() else { return (None, at) };
        let word = ahead.slice(place.clone());
        // An offset may touch it, but `amen` is something else.
        let is_it = |letters: &str| {
            word.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(letters))
                && (word.len() == 2 || offset::begins(&word[2..]))
        };
        match (is_it("am"), is_it("pm")) {
            (true, _) => (Some(Meridiem::Am), place.start + 2),
            (_, true) => (Some(Meridiem::Pm), place.start + 2),
            _ => (None, at),
        }
    }

    /// Reads the digits of a time. `whole` is the place of all of it, for the error.
    fn clock(
        &self,
        clock: &str,
        meridiem: Option<Meridiem>,
        whole: Range<usize>,
    ) -> Result<TimeOfDay, FuzzyError> {
        let (hour, minute) = match clock.split_once(':') {
            Some((hour, minute)) => (hour, Some(minute)),
            None => (clock, None),
        };
        let hours = match meridiem {
            None => 0..24,
            Some(_) => 1..13,
        };
        let cause = if is_outside(hour, &hours) {
            Some(if meridiem.is_none() { Code::Hour } else { Code::TwelveHour })
        } else if minute.is_some_and(|minute| is_outside(minute, &(0..60))) {
            Some(Code::Minute)
        } else {
            None
        };
        let well_formed = matches!(hour.len(), 1 | 2)
            && minute.map_or(meridiem.is_some(), |minute| minute.len() == 2)
            && cause.is_none();
        let time = || {
            let hour = number(hour)?;
            let hour = match meridiem {
                None => hour,
                Some(Meridiem::Am) => hour % 12,
                Some(Meridiem::Pm) => hour % 12 + 12,
            };
            TimeOfDay::new(hour, minute.map_or(Some(0), number)?)
        };
        match well_formed.then(time).flatten() {
            Some(time) => Ok(time),
            None => Err(self.bad_time(whole, cause)),
        }
    }

    fn bad_time(&self, place: Range<usize>, cause: Option<Code>) -> FuzzyError {
        let headline = self.in_phrase("Invalid time format", place.clone());
        let help = (self.cursor.slice(place.clone()) == "24:00")
            .then(|| "the end of a day is the start of the next, `0:00` or `midnight`".to_string());
        FuzzyError::new(
            Code::TimeFormat,
            place,
            headline,
            "Time must be in 24-hour format (HH:MM, 0-23 hours) or 12-hour format with am/pm",
        )
        .because(cause)
        .with_help(help)
    }
}

/// A time keyword at the start of a word, if nothing but an offset touches it; and its length.
fn keyword(word: &str) -> Option<(TimeOfDay, usize)> {
    [("midnight", TimeOfDay::MIDNIGHT), ("noon", TimeOfDay::NOON)].into_iter().find_map(|(name, time)| {
        let start = word.get(..name.len())?;
        let rest = &word[name.len()..];
        let alone = rest.is_empty() || offset::begins(rest);
        (alone && start.eq_ignore_ascii_case(name)).then_some((time, name.len()))
    })
}

/// Whether a text is a number, but none of these. A number with a minus sign is never one of them.
fn is_outside(text: &str, within: &Range<u16>) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let is_number = !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit());
    // What is too long for a number is outside all the more.
    is_number && !number(text).is_some_and(|number| within.contains(&number))
}

/// A number in plain digits.
pub(super) fn number(text: &str) -> Option<u16> {
    let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}
