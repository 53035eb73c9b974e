//! Phrases such as `daily around 14:00` become schedules, each job at its own time.
//!
//! This is the Fuzzy Schedule Time Syntax, version 1.1.0, at its highest level (3). A [`Phrase`] says
//! *about* when. It stands for a [`Placeholder`], which is the same for everyone; a placeholder and
//! the identifier of a job give the job its time, by a hash, so that jobs with the same phrase do
//! not all start at once and each of them keeps its time for ever.
//!
//! ```
//! use kron_schedule::fuzzy::{Extensions, Phrase};
//! use kron_schedule::{Dst, Zone};
//!
//! let phrase = Phrase::parse("weekly on Friday around 5pm", Extensions::Off)?;
//! assert_eq!(phrase.to_string(), "weekly on friday around 17:00");
//! assert_eq!(phrase.placeholder().to_string(), "FUZZY:WEEKLY:5:AROUND:17:0 * * 5");
//!
//! let scattered = phrase.placeholder().scatter("/etc/krond.d/reports:weekly")?;
//! assert_eq!(scattered.to_string(), "38 17 * * 5");
//! let schedule = scattered.compile(&Zone::utc(), Dst::KRON)?;
//! let next = schedule.next_after("2026-03-01T00:00:00Z".parse()?);
//! assert_eq!(next, Some("2026-03-06T17:38:00Z".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A phrase without a UTC offset is in whatever zone it is compiled for. One with an offset
//! ([`Phrase::has_offset`]) is already in UTC, so it must not be given another zone.
//!
//! # Mistakes
//!
//! A [`FuzzyError`] has the words and the code of the specification, and the place:
//!
//! ```
//! use kron_schedule::fuzzy::{Extensions, Phrase};
//!
//! let text = "daily around 25:00";
//! assert_eq!(Phrase::parse(text, Extensions::Off).unwrap_err().render(text), "\
//! Error: Invalid time format '25:00' in 'daily around 25:00'
//! Time must be in 24-hour format (HH:MM, 0-23 hours) or 12-hour format with am/pm
//!   | daily around 25:00
//!   |              ^^^^^
//! ERR-SYNTAX-002 (ERR-TIME-001)");
//! ```
//!
//! # Reading order
//!
//! `phrase` is what can be said and `parse` reads it, with `interval`, `time` and `offset` for what they
//! are named after. `placeholder` is what a phrase stands for, with `window` and `weekday`; `scatter` makes a
//! schedule of it. `cluster` looks at many jobs together, and `conformance` runs the specification's
//! own list of tests.

mod cluster;
pub mod conformance;
mod cursor;
mod error;
mod extensions;
mod identifier;
mod interval;
mod offset;
mod parse;
mod phrase;
mod placeholder;
mod scatter;
mod time;
mod warning;
mod weekday;
mod window;

pub use cluster::{Cluster, ClusterKind, clusters};
pub use error::{Code, FuzzyError};
pub use extensions::Extensions;
pub use identifier::identifier;
pub use phrase::Phrase;
pub use placeholder::Placeholder;
pub use scatter::{ALGORITHM, Scattered, ScatteredCron};
pub use warning::{FuzzyWarning, FuzzyWarningKind};
