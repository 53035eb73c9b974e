//! `@every`: an interval, counted from an anchor and never drifting.

use core::fmt;

use crate::dialect::Dialect;
use crate::duration::Duration;

/// An interval expression, `@every 90m`. Its length is at least a nanosecond.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Every {
    dialect: Dialect,
    interval: Duration,
}

impl Every {
    pub(crate) fn new(dialect: Dialect, interval: Duration) -> Every {
        debug_assert!(interval > Duration::ZERO, "the parser refuses other intervals");
        Every { dialect, interval }
    }

    /// The dialect it was written in.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The time from one occurrence to the next.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.interval
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@every {}", self.interval)
    }
}
