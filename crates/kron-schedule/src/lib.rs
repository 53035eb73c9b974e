//! Cron expressions become occurrences: which instants, in which zone, and why.
//!
//! This crate answers *when*. It reads an expression in one of three cron [dialects](Dialect),
//! and searches its occurrences in any time zone, in both directions, exactly at every change of
//! clocks. It does *not* wait, run anything, read a clock or look up a time zone: it is `no_std`,
//! is told the time, and is handed its zones. No input makes it panic or search without end.
//!
//! # A first example
//!
//! ```
//! use jiff::{Timestamp, tz::TimeZone};
//! use kron_schedule::{Dialect, Dst, Expr, Zone};
//!
//! // What was written becomes an expression ...
//! let expr = Expr::parse("30 9 * * MON-FRI", Dialect::Kron)?;
//! assert_eq!(expr.to_string(), "30 9 * * 1-5");
//! assert_eq!(expr.describe(), "At 09:30 on weekdays");
//!
//! // ... and with a zone and a policy for daylight saving, a schedule.
//! let zone = Zone::new(&TimeZone::get("America/New_York")?)?;
//! let schedule = expr.compile(&zone, Dst::KRON)?;
//!
//! // On Friday it is winter in New York, on Monday summer.
//! let friday: Timestamp = "2026-03-06T12:00:00Z".parse()?;
//! let next: Vec<String> = schedule.occurrences_after(friday).take(2).map(|at| at.to_string()).collect();
//! assert_eq!(next, ["2026-03-06T14:30:00Z", "2026-03-09T13:30:00Z"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The words
//!
//! - An **expression** ([`Expr`]) is what was written. It can be compared, printed in one canonical
//!   spelling, [described](Expr::describe) in English, and checked for [surprises](Expr::warnings).
//! - A **schedule** ([`Schedule`]) is what it means in a zone under a policy. It can be asked for the
//!   [next](Schedule::next_after) and the [previous](Schedule::prev_at_or_before) occurrence, and
//!   [why](Schedule::explain) an instant is or is not one.
//! - An **occurrence** is an instant. A local time yields none, one or two of them: the policy
//!   ([`Dst`]) says which, and [`Schedule::skipped_between`] tells what was lost.
//! - A **zone** ([`Zone`]) is a table made once from a [`jiff::tz::TimeZone`] and shared.
//!
//! # Mistakes
//!
//! [`ParseError`] says where, what was expected and what was found, and often what to write instead.
//! What can never match is an error when it is compiled, not a search without end:
//!
//! ```
//! use kron_schedule::{Dialect, Dst, Expr, Zone};
//!
//! let line = "0 6-22/0 * * *";
//! assert_eq!(Expr::parse(line, Dialect::Kron).unwrap_err().render(line), "\
//! expected a step of at least 1, but found `0`
//!   | 0 6-22/0 * * *
//!   |        ^");
//!
//! let line = "0 0 31 4,6 *";
//! let never = Expr::parse(line, Dialect::Kron)?.compile(&Zone::utc(), Dst::KRON).unwrap_err();
//! assert_eq!(never.render(line), "\
//! this will never match: April and June have no day 31
//!   | 0 0 31 4,6 *
//!   |     ^^^^^^");
//! # Ok::<(), kron_schedule::ParseError>(())
//! ```
//!
//! # Phrases
//!
//! [`fuzzy`] reads phrases such as `daily around 14:00`, and scatters them over the minutes by name:
//! many jobs with the same words do not start together.
//!
//! # Bounds
//!
//! Occurrences lie from 1970-01-01T00:00:00Z to the end of jiff's time in the year 9999; past either
//! end the answer is `None`. A text has at most 1,024 bytes. A search looks at no more than 22
//! months and, but for schedules that fall into one gap after another, at two stretches of offset.
//!
//! # Reading order
//!
//! `dialect`, `field` and `expr` say what can be written; `parse` (with `alias`, `duration`) reads it;
//! `compile` makes a schedule; `times` finds times of day, `days` finds days (with `calendar`, which knows months), and
//! `pattern` is both of them; `zone` knows the offsets, and `schedule` joins the two. `occurrences` (with `run`),
//! `explain`, `describe` and `warning` answer the rest.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod alias;
mod calendar;
mod compile;
mod days;
mod describe;
mod dialect;
mod dst;
mod duration;
mod error;
mod every;
mod every_days;
mod explain;
mod expr;
mod field;
pub mod fuzzy;
mod occurrences;
mod parse;
mod pattern;
mod plain;
mod run;
mod schedule;
pub mod suggest;
mod times;
mod warning;
mod zone;

pub use dialect::Dialect;
pub use dst::{Dst, Fold, Gap};
pub use duration::{Duration, DurationError};
pub use error::{ErrorKind, ParseError};
pub use every::Every;
pub use every_days::EveryDays;
pub use explain::{Explanation, Part, Verdict};
pub use expr::{Cron, Expr};
pub use field::Field;
pub use occurrences::{Count, OccurrencesAfter, OccurrencesBefore, Skipped, SkippedBetween};
pub use schedule::Schedule;
pub use warning::{Warning, WarningKind};
pub use zone::{Zone, ZoneError};

/// The examples of the README are run as well.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
