//! Weekdays by name, and the working week.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use jiff::civil::Weekday;

use crate::suggest;

/// The names, Sunday first, as cron counts them.
pub(super) const NAMES: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// The weekday with this name, in any case.
pub(super) fn named(name: &str) -> Option<Weekday> {
    position(|known| known.eq_ignore_ascii_case(name))
}

/// The weekday whose name begins with these three letters.
pub(super) fn abbreviated(letters: &str) -> Option<Weekday> {
    position(|known| known[..3].eq_ignore_ascii_case(letters))
}

/// The name someone probably meant.
pub(super) fn suggested(word: &str) -> Option<&'static str> {
    abbreviated(word).map(name).or_else(|| suggest::closest(word, NAMES))
}

fn position(is_it: impl Fn(&str) -> bool) -> Option<Weekday> {
    Weekday::Sunday.cycle_forward().take(7).find(|weekday| is_it(name(*weekday)))
}

/// "monday".
pub(super) fn name(weekday: Weekday) -> &'static str {
    NAMES[usize::from(number(weekday))]
}

/// 0 for Sunday, as cron counts.
pub(super) fn number(weekday: Weekday) -> u8 {
    weekday.to_sunday_zero_offset().unsigned_abs()
}

/// The weekday of a number from 0 to 6.
pub(super) fn numbered(number: u16) -> Option<Weekday> {
    i8::try_from(number).ok().and_then(|number| Weekday::from_sunday_zero_offset(number).ok())
}

/// Five days in a row: Monday to Friday, until a change of zone or a window moves them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Workweek {
    first: Weekday,
}

impl Workweek {
    /// Monday to Friday.
    pub(super) const USUAL: Workweek = Workweek { first: Weekday::Monday };

    pub(super) fn moved(self, days: i32) -> Workweek {
        Workweek { first: self.first.wrapping_add(days) }
    }

    /// The names of its ends: "monday to friday".
    pub(super) fn names(self) -> String {
        format!("{} to {}", name(self.first), name(self.first.wrapping_add(4)))
    }

    /// The working week that is written so in a cron field.
    pub(super) fn of_field(text: &str) -> Option<Workweek> {
        Weekday::Sunday
            .cycle_forward()
            .take(7)
            .map(|first| Workweek { first })
            .find(|week| week.to_string() == text)
    }
}

/// The cron field: `1-5`, or `0-1,4-6` where the days go past Saturday.
impl fmt::Display for Workweek {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match number(self.first) {
            first @ 0..=2 => write!(f, "{first}-{}", first + 4),
            3 => f.write_str("0,3-6"),
            6 => f.write_str("0-3,6"),
            first => write!(f, "0-{},{first}-6", first - 3),
        }
    }
}
