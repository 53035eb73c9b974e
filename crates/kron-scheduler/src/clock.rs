//! Time, and the one place that reads the host's.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kron_schedule::Zone;

/// A wait that ends by itself.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where the scheduler has the time from.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time.
    fn now(&self) -> Timestamp;

    /// The zone that schedules are read in. It may change; the scheduler asks at every look at the clock.
    fn zone(&self) -> Zone;

    /// Waits until about that instant. Waking early is harmless, waking late makes runs late.
    fn sleep(&self, until: Timestamp) -> Sleep;
}

/// The host's clock, and its local time zone: `TZ`, or else `/etc/localtime`.
///
/// A change of zone is noticed within minutes. A host that has no zone, or one that cannot be read, is taken to
/// keep UTC, and a warning says so.
#[derive(Debug, Default)]
pub struct HostClock {
    zone: Mutex<Option<(TimeZone, Zone)>>,
}

impl HostClock {
    /// The host's clock.
    #[must_use]
    pub fn new() -> HostClock {
        HostClock::default()
    }
}

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn zone(&self) -> Zone {
        let mut known = self.zone.lock().unwrap_or_else(PoisonError::into_inner);
        // jiff looks at the host again every few minutes, and answers from memory in between.
        let found = TimeZone::try_system();
        match (&found, &*known) {
            (Ok(found), Some((zone, table))) if found == zone => return table.clone(),
            (Err(_), Some((_, table))) => return table.clone(),
            _ => {}
        }
        let made = found.and_then(|zone| {
            Zone::new(&zone)
                .map(|table| (zone, table))
                .map_err(|error| jiff::Error::from_args(format_args!("{error}")))
        });
        match made {
            Ok((zone, table)) => known.insert((zone, table)).1.clone(),
            Err(error) => {
                tracing::warn!(%error, "the host's time zone could not be found out: UTC is taken");
                known.insert((TimeZone::UTC, Zone::utc())).1.clone()
            }
        }
    }

    fn sleep(&self, until: Timestamp) -> Sleep {
        let wait = Duration::try_from(until.duration_since(self.now())).unwrap_or_default();
        Box::pin(tokio::time::sleep(wait))
    }
}
