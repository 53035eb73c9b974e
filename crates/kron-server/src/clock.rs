//! The time: the host's, or one that tests set.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

/// Where the time comes from. Nothing else in the server asks what time it is.
#[derive(Debug)]
pub enum Clock {
    /// The host's wall clock.
    System,
    /// One that tests set, and that may stand still.
    Set(watch::Sender<Setting>),
}

/// What a clock was set to.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    at: Timestamp,
    /// When it was set, if it goes on from there.
    since: Option<Instant>,
}

/// The longest sleep. The host's clock can be set at any time, and nobody tells.
const SLEEP_MAX: Duration = Duration::from_secs(5);

impl Clock {
    /// A clock that can be set. It shows the host's time until then.
    #[must_use]
    pub fn settable() -> Clock {
        let setting = Setting { at: host(), since: Some(instant()) };
        Clock::Set(watch::Sender::new(setting))
    }

    /// The time, in milliseconds.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::System => host(),
            Clock::Set(setting) => setting.borrow().now(),
        }
    }

    /// Sets the clock, if it is one that can be set.
    #[must_use]
    pub fn set(&self, at: Timestamp, running: bool) -> bool {
        match self {
            Clock::System => false,
            Clock::Set(setting) => {
                setting.send_replace(Setting { at: floor_ms(at), since: running.then(instant) });
                true
            }
        }
    }

    /// Whether time passes by itself.
    #[must_use]
    pub fn is_running(&self) -> bool {
        match self {
            Clock::System => true,
            Clock::Set(setting) => setting.borrow().since.is_some(),
        }
    }

    /// Waits until that time has come; `None` never comes. Returns early when the clock is set.
    pub async fn until(&self, at: Option<Timestamp>) {
        let mut changes = match self {
            Clock::System => None,
            Clock::Set(setting) => Some(setting.subscribe()),
        };
        loop {
            let left = at.map(|at| at.duration_since(self.now()));
            if left.is_some_and(|left| !left.is_positive()) {
                return;
            }
            let wait = left.map_or(SLEEP_MAX, |left| SLEEP_MAX.min(left.unsigned_abs()));
            match &mut changes {
                None => tokio::time::sleep(wait).await,
                Some(changes) => {
                    let wait = if self.is_running() { wait } else { SLEEP_MAX };
                    if let Ok(Ok(())) = tokio::time::timeout(wait, changes.changed()).await {
                        return;
                    }
                }
            }
        }
    }
}

impl Setting {
    fn now(&self) -> Timestamp {
        match self.since {
            None => self.at,
            Some(since) => floor_ms(self.at + since.elapsed()),
        }
    }
}

/// The beginning of a second.
#[must_use]
pub fn floor_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second() - i64::from(at.subsec_nanosecond() < 0)).unwrap_or(at)
}

/// The first whole second that is not before a time.
#[must_use]
pub fn ceil_second(at: Timestamp) -> Timestamp {
    let floor = floor_second(at);
    if floor == at { at } else { floor.checked_add(Duration::from_secs(1)).unwrap_or(floor) }
}

/// The time in whole milliseconds, which is how times are stored and shown.
#[must_use]
pub fn floor_ms(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

/// How long things take is told by another clock, which nobody sets.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn instant() -> Instant {
    Instant::now()
}

/// The host's time in nanoseconds since 1970, as traces have it, whatever tests have set.
#[cfg(feature = "otel")]
#[must_use]
pub fn nanos() -> u128 {
    Timestamp::now().as_nanosecond().unsigned_abs()
}

fn host() -> Timestamp {
    floor_ms(Timestamp::now())
}
