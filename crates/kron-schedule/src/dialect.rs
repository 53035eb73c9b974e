//! The three cron dialects, and what each of them accepts.

use core::fmt;

use crate::dst::Dst;

/// A variant of the cron language. The caller chooses it; it is never guessed.
///
/// | | [`Posix`](Dialect::Posix) | [`Kron`](Dialect::Kron) | [`Ojs`](Dialect::Ojs) |
/// | --- | --- | --- | --- |
/// | fields | 5 | 5 | 5, or 6 with seconds first |
/// | `*` alone, values, `a-b`, lists | yes | yes | yes |
/// | `*` inside a list | no | yes | yes |
/// | steps `*/s`, `a-b/s` | no | yes | yes |
/// | steps `n/s` (from n to the end) | no | no | yes |
/// | month and weekday names, any case | no | yes | yes |
/// | 7 as Sunday | no | yes | yes |
/// | `L`, `LW`, `15W`, `5L`, `5#3` | no | no | yes |
/// | `@daily` and its like | no | yes | yes |
/// | `@every 90m` | no | whole seconds | yes |
///
/// ```
/// use kron_schedule::{Dialect, Expr};
///
/// assert!(Expr::parse("*/15 * * * *", Dialect::Kron).is_ok());
/// assert!(Expr::parse("*/15 * * * *", Dialect::Posix).is_err());
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Dialect {
    /// Kron's own: five fields with names and steps, aliases and `@every`.
    Kron,
    /// Open Job Spec: five or six fields, `L`, `W` and `#`, aliases and `@every`.
    Ojs,
    /// Strictly the POSIX grammar: numbers, ranges and lists in five fields.
    Posix,
}

impl Dialect {
    /// All dialects, in the order of their names.
    pub const ALL: [Dialect; 3] = [Dialect::Kron, Dialect::Ojs, Dialect::Posix];

    /// The dialect's name, as it is written in settings and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Kron => "kron",
            Dialect::Ojs => "ojs",
            Dialect::Posix => "posix",
        }
    }

    /// The daylight-saving policy of the surfaces that speak this dialect.
    #[must_use]
    pub const fn default_dst(self) -> Dst {
        match self {
            Dialect::Kron => Dst::KRON,
            Dialect::Ojs => Dst::OJS,
            Dialect::Posix => Dst::POSIX,
        }
    }

    /// Steps, names, 7 for Sunday, `*` in lists and `@` forms: all that POSIX leaves out.
    pub(crate) const fn is_extended(self) -> bool {
        !matches!(self, Dialect::Posix)
    }

    /// `L`, `W`, `#`, seconds, and steps that start at a single value.
    pub(crate) const fn has_quartz_forms(self) -> bool {
        matches!(self, Dialect::Ojs)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
