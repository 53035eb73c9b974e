//! The one place that reads the clock, and waits.

use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};

/// The wall clock, in whole seconds. Asked for only where no `--at` is given.
pub(crate) fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "a person who gives no --at means now")]
    let now = SystemTime::now();
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let since = SignedDuration::from_secs(i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    Timestamp::UNIX_EPOCH.checked_add(since).unwrap_or(Timestamp::MAX)
}

/// Lets others get on.
pub(crate) fn pause(duration: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a person waits for whoever is before him")]
    std::thread::sleep(duration);
}
