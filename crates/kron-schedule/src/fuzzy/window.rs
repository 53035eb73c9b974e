//! The part of the day that a time is chosen from.

use core::fmt;

use super::time::{DAY, TimeOfDay, WrittenTime};

/// A window in the terms of a placeholder. It may go past midnight at either side.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Window {
    /// An hour to either side, the last minute excluded.
    Around(TimeOfDay),
    /// From the first to the second, which is excluded and differs from the first.
    Between(TimeOfDay, TimeOfDay),
}

/// How far a time may be from the one it is around.
const AROUND: u16 = 60;

impl Window {
    /// Nothing if the range would have no length.
    pub(super) fn between(start: TimeOfDay, end: TimeOfDay) -> Option<Window> {
        (start != end).then_some(Window::Between(start, end))
    }

    /// How many minutes there are to choose from.
    pub(super) fn size(self) -> u16 {
        match self {
            Window::Around(_) => 2 * AROUND,
            Window::Between(start, end) => (end.minutes() + DAY - start.minutes()) % DAY,
        }
    }

    /// The minute of the window that a hash chooses, and whether it is on the day before (-1), on
    /// the day itself or on the one after (1).
    pub(super) fn choose(self, hash: u32) -> (TimeOfDay, i32) {
        let minutes = i32::try_from(hash % u32::from(self.size())).expect("below the minutes of a day");
        match self {
            Window::Around(time) => time.moved(minutes - i32::from(AROUND)),
            Window::Between(start, _) => start.moved(minutes),
        }
    }
}

/// The minute of the day, or of the window if there is one, that a hash chooses.
pub(super) fn choose(window: Option<Window>, hash: u32) -> (TimeOfDay, i32) {
    match window {
        Some(window) => window.choose(hash),
        None => {
            let minutes = i32::try_from(hash % u32::from(DAY)).expect("below the minutes of a day");
            TimeOfDay::MIDNIGHT.moved(minutes)
        }
    }
}

/// A window as it was written.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum WrittenWindow {
    Around(WrittenTime),
    Between(WrittenTime, WrittenTime),
}

impl WrittenWindow {
    /// The window in UTC, and how many days later (or earlier) it starts there. Nothing if it has no
    /// length.
    pub(super) fn to_utc(self) -> Option<(Window, i32)> {
        match self {
            WrittenWindow::Around(time) => {
                let (time, days) = time.to_utc();
                Some((Window::Around(time), days))
            }
            WrittenWindow::Between(start, end) => {
                let ((start, days), (end, _)) = (start.to_utc(), end.to_utc());
                Window::between(start, end).map(|window| (window, days))
            }
        }
    }

    /// The time that decides which day it is on.
    pub(super) fn anchor(self) -> WrittenTime {
        match self {
            WrittenWindow::Around(time) | WrittenWindow::Between(time, _) => time,
        }
    }

    pub(super) fn has_offset(self) -> bool {
        match self {
            WrittenWindow::Around(time) => time.offset.is_some(),
            WrittenWindow::Between(start, end) => start.offset.or(end.offset).is_some(),
        }
    }
}

/// "around 14:00 utc+9", "between 9:00 and 17:00".
impl fmt::Display for WrittenWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrittenWindow::Around(time) => write!(f, "around {time}"),
            WrittenWindow::Between(start, end) => write!(f, "between {start} and {end}"),
        }
    }
}
