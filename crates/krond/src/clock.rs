//! The one place that reads the clocks.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use crate::moment::Moment;

/// Both clocks, now.
#[must_use]
pub fn now() -> Moment {
    let wall = clock_gettime(ClockId::Realtime);
    let uptime = clock_gettime(ClockId::Boottime);
    let nanoseconds = |time: rustix::time::Timespec| u32::try_from(time.tv_nsec).unwrap_or_default();
    let fraction = i32::try_from(wall.tv_nsec).unwrap_or_default();
    Moment {
        wall: Timestamp::new(wall.tv_sec, fraction).unwrap_or(Timestamp::MAX),
        uptime: Duration::new(uptime.tv_sec.unsigned_abs(), nanoseconds(uptime)),
    }
}
