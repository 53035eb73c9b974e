//! What time it is, on both clocks.

use std::time::Duration;

use jiff::Timestamp;

/// One reading of the two clocks.
///
/// Calendars follow the wall clock, which people and programs set as they please. Waits and timeouts follow
/// the other, which only ever counts on, also while the machine sleeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Moment {
    /// The wall clock.
    pub wall: Timestamp,
    /// Time since the boot, sleep included.
    pub uptime: Duration,
}

impl Moment {
    /// The wall clock in whole seconds: the grid that chosen times are compared on.
    #[must_use]
    pub fn second(&self) -> i64 {
        self.wall.as_second() - i64::from(self.wall.subsec_nanosecond() < 0)
    }

    /// How much further the wall clock went since then than time did, in seconds. Nearly zero unless it was set.
    #[must_use]
    pub fn jump_since(&self, then: &Moment) -> f64 {
        let wall = self.wall.duration_since(then.wall).as_secs_f64();
        let uptime = self.uptime.saturating_sub(then.uptime).as_secs_f64();
        wall - uptime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_floored_before_1970_too() {
        let at = |nanoseconds| Moment {
            wall: Timestamp::from_nanosecond(nanoseconds).unwrap(),
            uptime: Duration::ZERO,
        };
        assert_eq!(at(1_999_999_999).second(), 1);
        assert_eq!(at(-1).second(), -1);
        assert_eq!(at(-1_000_000_000).second(), -1);
    }

    #[test]
    fn a_jump_is_what_the_wall_clock_did_alone() {
        let before = Moment { wall: Timestamp::UNIX_EPOCH, uptime: Duration::from_secs(5) };
        let wall = Timestamp::from_second(-50).unwrap();
        let after = Moment { wall, uptime: Duration::from_secs(15) };
        assert!((after.jump_since(&before) + 60.0).abs() < 1e-9);
    }
}
