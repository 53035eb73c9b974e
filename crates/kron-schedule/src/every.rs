//! `@every`: an interval, counted from an anchor and never drifting.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::Range;

use crate::dialect::Dialect;
use crate::duration::Duration;
use crate::expr::Span;

/// An interval expression, `@every 90m`. Its length is at least a nanosecond.
#[derive(Clone, Copy, Debug)]
pub struct Every {
    dialect: Dialect,
    interval: Duration,
    span: Span,
}

impl Every {
    pub(crate) fn new(dialect: Dialect, interval: Duration, span: Span) -> Every {
        debug_assert!(interval > Duration::ZERO, "the parser refuses other intervals");
        Every { dialect, interval, span }
    }

    /// Where it stands in the text, in bytes.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.start.into()..self.span.end.into()
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

impl PartialEq for Every {
    fn eq(&self, other: &Every) -> bool {
        (self.dialect, self.interval) == (other.dialect, other.interval)
    }
}

impl Eq for Every {}

impl Hash for Every {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.dialect, self.interval).hash(state);
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@every {}", self.interval)
    }
}
