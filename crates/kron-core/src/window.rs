//! A nominal time becomes the window that a run may be placed in.

use core::fmt;

use jiff::Timestamp;
use kron_schedule::Duration;

use crate::error::{JobError, Parameter};
use crate::period::{SECOND_MAX, SECOND_MIN, floor_second, to_timestamp};

/// Where around its nominal time a period may run.
///
/// Both ends belong to the window, and both are whole seconds.
///
/// ```
/// use kron_core::{Window, WindowMode};
/// use kron_schedule::Duration;
///
/// let window = Window::new(WindowMode::Around, Duration::from_seconds(90 * 60))?;
/// let (start, end) = window.bounds("2026-03-02T09:00:00Z".parse()?);
/// assert_eq!(start.to_string(), "2026-03-02T08:15:00Z");
/// assert_eq!(end.to_string(), "2026-03-02T09:45:00Z");
/// assert_eq!(window.to_string(), "around,1h30m");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Window {
    mode: WindowMode,
    duration: Duration,
    /// From the start of the window to the nominal time.
    lead: Length,
    /// From the start of the window to its end.
    length: Length,
    /// The same two in whole seconds, for a nominal time in whole seconds, which nearly all are.
    usual_lead: i64,
    usual_width: i64,
}

/// On which side of the nominal time a window lies.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum WindowMode {
    /// It begins at the nominal time.
    After,
    /// The nominal time is its middle.
    Around,
    /// It ends at the nominal time.
    Before,
}

/// The longest window: a leap year. It bounds how many periods can be open at once.
pub const WINDOW_MAX: Duration = Duration::from_seconds(366 * 86_400);

/// A duration that is not negative, split so that no decision has to divide.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Length {
    seconds: i64,
    nanos: i64,
}

const SECOND_NANOS: i64 = 1_000_000_000;

impl Window {
    /// No window at all: a period runs at its nominal time.
    pub const NONE: Window = Window {
        mode: WindowMode::After,
        duration: Duration::ZERO,
        lead: Length::new(0),
        length: Length::new(0),
        usual_lead: 0,
        usual_width: 0,
    };

    /// A window of that length.
    ///
    /// # Errors
    ///
    /// If the duration is negative, or longer than [`WINDOW_MAX`].
    pub fn new(mode: WindowMode, duration: Duration) -> Result<Window, JobError> {
        if duration < Duration::ZERO {
            return Err(JobError::value(Parameter::Window, "a duration that is not negative", duration));
        }
        if duration > WINDOW_MAX {
            return Err(JobError::value(Parameter::Window, "at most 8784h (366 days)", duration));
        }
        let nanos = duration.as_nanos();
        let lead = match mode {
            WindowMode::After => 0,
            WindowMode::Around => nanos / 2,
            WindowMode::Before => nanos,
        };
        let (lead, length) = (Length::new(lead), Length::new(nanos));
        let window = Window { mode, duration, lead, length, ..Window::NONE };
        let (start, end) = window.bounds_from(0, 0);
        Ok(Window { usual_lead: -start, usual_width: end - start, ..window })
    }

    /// On which side of the nominal time it lies.
    #[must_use]
    pub fn mode(&self) -> WindowMode {
        self.mode
    }

    /// How long it is.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// How long before a nominal time its window may open, in whole seconds: zero unless the mode
    /// is [`Around`](WindowMode::Around) or [`Before`](WindowMode::Before).
    #[must_use]
    pub fn opens_before(&self) -> Duration {
        Duration::from_seconds(self.lead.seconds + i64::from(self.lead.nanos > 0))
    }

    /// The first and the last second of the window of a nominal time.
    ///
    /// Both are rounded down to whole seconds. At the ends of jiff's time the window is cut short.
    #[must_use]
    pub fn bounds(&self, nominal: Timestamp) -> (Timestamp, Timestamp) {
        let (start, end) = self.bounds_in_seconds(nominal);
        (to_timestamp(start), to_timestamp(end))
    }

    /// The seconds from its start to a nominal time in whole seconds, and to its end.
    pub(crate) fn usual(&self) -> (i64, i64) {
        (self.usual_lead, self.usual_width)
    }

    #[inline]
    pub(crate) fn bounds_in_seconds(&self, nominal: Timestamp) -> (i64, i64) {
        self.usual_bounds(nominal).unwrap_or_else(|| self.bounds_of_any(nominal))
    }

    /// The bounds, if they lie around the nominal time as they do around nearly all.
    #[inline]
    pub(crate) fn usual_bounds(&self, nominal: Timestamp) -> Option<(i64, i64)> {
        let second = floor_second(nominal);
        let inside = SECOND_MIN + WINDOW_MAX.as_seconds()..SECOND_MAX - WINDOW_MAX.as_seconds();
        let start = second - self.usual_lead;
        (nominal.subsec_nanosecond() == 0 && inside.contains(&second))
            .then_some((start, start + self.usual_width))
    }

    /// The bounds of a nominal time that may lie between two seconds, or close to the end of time.
    #[inline(never)]
    pub(crate) fn bounds_of_any(&self, nominal: Timestamp) -> (i64, i64) {
        let nanos = i64::from(nominal.subsec_nanosecond()).rem_euclid(SECOND_NANOS);
        let (start, end) = self.bounds_from(floor_second(nominal), nanos);
        (start.max(SECOND_MIN), end.min(SECOND_MAX))
    }

    /// Rounded down, both of them.
    fn bounds_from(&self, second: i64, nanos: i64) -> (i64, i64) {
        let start_nanos = nanos - self.lead.nanos;
        let borrowed = i64::from(start_nanos < 0);
        let start = second - self.lead.seconds - borrowed;
        let end_nanos = start_nanos + borrowed * SECOND_NANOS + self.length.nanos;
        let end = start + self.length.seconds + i64::from(end_nanos >= SECOND_NANOS);
        (start, end)
    }
}

impl Length {
    const fn new(nanos: i64) -> Length {
        Length { seconds: nanos / SECOND_NANOS, nanos: nanos % SECOND_NANOS }
    }
}

impl Default for Window {
    fn default() -> Window {
        Window::NONE
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.mode, self.duration)
    }
}

impl WindowMode {
    /// Its name in a krontab: `after`, `around` or `before`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WindowMode::After => "after",
            WindowMode::Around => "around",
            WindowMode::Before => "before",
        }
    }
}

impl fmt::Display for WindowMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    fn bounds(mode: WindowMode, duration: &str, nominal: &str) -> (std::string::String, std::string::String) {
        let window = Window::new(mode, duration.parse().unwrap()).unwrap();
        let (start, end) = window.bounds(nominal.parse().unwrap());
        (start.to_string(), end.to_string())
    }

    #[test]
    fn both_ends_are_rounded_down() {
        use WindowMode::{After, Around, Before};
        for (mode, duration, nominal, start, end) in [
            (After, "2h", "2026-05-04T06:00:00Z", "2026-05-04T06:00:00Z", "2026-05-04T08:00:00Z"),
            (Before, "2h", "2026-05-04T06:00:00Z", "2026-05-04T04:00:00Z", "2026-05-04T06:00:00Z"),
            (Around, "5s", "2027-01-01T10:00:00Z", "2027-01-01T09:59:57Z", "2027-01-01T10:00:02Z"),
            // Two nanoseconds around a whole second touch two seconds.
            (Around, "2ns", "2027-01-01T10:00:00Z", "2027-01-01T09:59:59Z", "2027-01-01T10:00:00Z"),
            (Around, "1ns", "2027-01-01T10:00:00Z", "2027-01-01T10:00:00Z", "2027-01-01T10:00:00Z"),
            (After, "999ms", "2027-01-01T10:00:00Z", "2027-01-01T10:00:00Z", "2027-01-01T10:00:00Z"),
            (After, "600ms", "2027-01-01T10:00:00.5Z", "2027-01-01T10:00:00Z", "2027-01-01T10:00:01Z"),
            (Before, "600ms", "2027-01-01T10:00:00.5Z", "2027-01-01T09:59:59Z", "2027-01-01T10:00:00Z"),
            (Around, "1s", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"),
            (After, "1s", "1969-12-31T23:59:58.5Z", "1969-12-31T23:59:58Z", "1969-12-31T23:59:59Z"),
            // Time ends in 9999.
            (After, "24h", "9999-12-30T21:00:00Z", "9999-12-30T21:00:00Z", "9999-12-30T22:00:00Z"),
        ] {
            assert_eq!(bounds(mode, duration, nominal), (start.to_string(), end.to_string()));
        }
    }

    #[test]
    fn plain_integers_agree_with_whole_nanoseconds() {
        let mut state = 7_u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mode =
                [WindowMode::After, WindowMode::Around, WindowMode::Before][(state >> 60) as usize % 3];
            let duration = i64::try_from((state >> 3) % 7_300_000_001).unwrap();
            let nominal = i128::from(state % 8_000_000_000) - 4_000_000_000;
            let window = Window::new(mode, Duration::from_nanos(duration)).unwrap();
            let before = match mode {
                WindowMode::After => 0,
                WindowMode::Around => duration / 2,
                WindowMode::Before => duration,
            };
            let start = nominal - i128::from(before);
            let end = start + i128::from(duration);
            let floored = |nanos: i128| i64::try_from(nanos.div_euclid(1_000_000_000)).unwrap();
            let at = Timestamp::from_nanosecond(nominal).unwrap();
            assert_eq!(window.bounds_in_seconds(at), (floored(start), floored(end)));
            let opens = floor_second(at) - window.opens_before().as_seconds();
            assert!(opens <= floored(start));
        }
    }
}
