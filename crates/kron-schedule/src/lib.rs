//! Text becomes occurrences.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod alias;
mod calendar;
mod compile;
mod dialect;
mod dst;
mod duration;
mod error;
mod every;
mod every_days;
mod expr;
mod field;
mod occurrences;
mod parse;
mod pattern;
mod schedule;
mod suggest;
mod zone;

pub use dialect::Dialect;
pub use dst::{Dst, Fold, Gap};
pub use duration::{Duration, DurationError};
pub use error::{ErrorKind, ParseError};
pub use every::Every;
pub use every_days::EveryDays;
pub use expr::{Cron, Expr};
pub use field::Field;
pub use occurrences::{Count, OccurrencesAfter, OccurrencesBefore, Skipped, SkippedBetween};
pub use schedule::Schedule;
pub use zone::{Zone, ZoneError};
