//! The only place that asks what time it is.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// The time of day.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Time since the machine was started, which goes on while it sleeps and is never set.
#[must_use]
pub fn awake() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
