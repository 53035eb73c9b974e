//! Kron's engine: which moment of its window a period runs at, and what to do about it now.
//!
//! Two pure functions hold everything that can go wrong in an interesting way:
//!
//! - [`decide`] takes a [`Job`] and a nominal time, and says when in its window the period runs. The
//!   same job and time give the same [`Decision`] on every machine, for ever.
//! - [`evaluate`] takes a job, its [`Ledger`], its active runs and the time, and says what to do now and
//!   when to look again. No period is ever started twice.
//!
//! The crate performs no I/O, reads no clock and starts nothing. It is `no_std`, and is told the time.
//! Whoever carries out its [`Step`]s is an adapter: a daemon, a server, an operator.
//!
//! # An adapter in a few lines
//!
//! ```
//! use jiff::Timestamp;
//! use kron_core::{Job, Ledger, Step, Watch, WindowMode, evaluate};
//! use kron_schedule::{Dialect, Dst, Duration, Expr, Zone};
//!
//! let zone = Zone::utc();
//! let schedule = Expr::parse("0 2 * * *", Dialect::Kron)?.compile(&zone, Dst::KRON)?;
//! let job = Job::builder("/etc/krond.d/backup:nightly", schedule, zone)
//!     .window(WindowMode::After, Duration::from_seconds(3_600))
//!     .build()?;
//!
//! let mut ledger = Ledger::new();
//! let since: Timestamp = "2026-03-01T12:00:00Z".parse()?;
//! let mut now = since;
//! let started = loop {
//!     let (steps, wake_at) = evaluate(&job, &ledger, ledger.active(), Watch { since, now });
//!     let mut started = None;
//!     for step in steps {
//!         match step {
//!             Step::Record(record) => ledger.apply(&record), // and make it durable
//!             Step::Start(decision) => started = Some(decision), // then start the run
//!             Step::Terminate(_) => unreachable!("this job forbids overlap"),
//!         }
//!     }
//!     if let Some(decision) = started {
//!         break decision;
//!     }
//!     now = wake_at.unwrap(); // and wait until then
//! };
//! assert_eq!(started.nominal(), "2026-03-02T02:00:00Z".parse()?);
//! assert_eq!(started.chosen(), Some(now));
//! assert!(ledger.is_handled(started.period_id()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The words
//!
//! A **period** is one scheduling opportunity, named by its nominal time ([`PeriodId`]). Its **decision** is
//! its window and chosen time, and how they came about. Its **outcome** is executed, skipped, missed or
//! unschedulable; there is exactly one, with a [`Reason`]. A **run** is one execution of a period. The
//! **ledger** is what is remembered per job so that no period is handled twice.
//!
//! # Reading order
//!
//! `job` (with `window`, `seed`, `distribution`, `constraint`, `policy`) says what a job is; `decide` chooses
//! its moments; `outcome`, `step` and `ledger` are the words of `evaluate`, which is the heart.
//!
//! # Features
//!
//! - `testing`: what tests of adapters share: `conformance`, the cases every
//!   ledger store must pass, and `story`, the language that scenarios are written in.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod calendar;
mod civil;
mod clause;
#[cfg(feature = "testing")]
pub mod conformance;
mod constraint;
mod decide;
mod distribution;
mod error;
mod evaluate;
mod job;
mod label;
mod ledger;
mod math;
mod outcome;
mod period;
mod policy;
mod prng;
mod seed;
mod step;
#[cfg(feature = "testing")]
pub mod story;
mod window;

pub use civil::{CivilLabel, CivilLabelError};
pub use clause::ConstraintError;
pub use constraint::{Clauses, Constraints};
pub use decide::{CANDIDATES_MAX, Decision, Explanation, decide, seed_material};
pub use distribution::{Anchor, Direction, Distribution, DistributionError, DistributionPart};
pub use error::{JobError, Parameter};
pub use evaluate::{Watch, evaluate};
pub use job::{Job, JobBuilder, OPEN_MAX};
pub use ledger::Ledger;
pub use outcome::{Outcome, Reason};
pub use period::{PeriodId, PeriodIdError};
pub use policy::{Overlap, Policy};
pub use seed::{PeriodKey, SeedHash, SeedStrategy};
pub use step::{Passed, Record, RunId, Settled, Step, Tally};
pub use window::{WINDOW_MAX, Window, WindowMode};
