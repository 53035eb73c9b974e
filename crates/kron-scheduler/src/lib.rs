//! A scheduler inside your program: say what is to run and when, and it runs, also after a crash.
//!
//! You register tasks, each a name, a cron expression, a retry delay and an async callback, and
//! [`initialize`](Scheduler::initialize) a [`Scheduler`] with them; [`stop`](Scheduler::stop) ends it. What happened is
//! kept in a [store], so that a task that was cut off starts again, a failure is tried again, and a gap of
//! any length is made up for with one run. It needs tokio, and nothing else.
//!
//! It does *not* spread tasks over machines, queue work, or keep a history: it remembers one record per task.
//!
//! # A first example
//!
//! ```
//! use kron_scheduler::{Registration, Scheduler, store::FileStore};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("schedule.kron");
//! let scheduler = Scheduler::new(FileStore::new(path));
//! scheduler.initialize([
//!     Registration::new("backup", "0 3 * * *", Duration::from_secs(300), || async {
//!         println!("backing up"); // an error here is tried again in five minutes
//!         Ok::<(), std::io::Error>(())
//!     }),
//! ]).await?;
//! // ... the program does what it does ...
//! scheduler.stop().await?; // waits for what is running
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - **A task starts only for a reason**: an occurrence of its schedule since its last start, a retry that has come due, or
//!   a run that was cut off. One start settles all three.
//! - **Missed occurrences are one run.** After an hour or ten years of downtime, sleep or an overlong run, a task starts once.
//! - **A new name begins with the minute in progress**; nothing before it counts. A name that is left out is forgotten.
//! - **A task never runs beside itself**; different tasks run side by side, without a limit.
//! - **A callback starts only after the store knows of it**, so a crash at any point is found out. A run that was cut off
//!   starts again: callbacks run *at least* once, and should bear a repetition.
//! - **Errors of the store delay, and lose nothing.** The scheduler tries again, with growing pauses, and stops when it
//!   is told to. If the store does not work until then, what had not been written is run again next time.
//! - **A panic is a failure**, and concerns its task alone.
//! - **Any future may be dropped at any time.** [`initialize`](Scheduler::initialize) and [`stop`](Scheduler::stop) act when
//!   they are called; what they return only waits.
//! - **A clock set back makes nothing run again**: a task waits until the clock has passed its last start.
//!
//! # Cron expressions
//!
//! Five fields in the strict POSIX form, in the host's local time: `*`, numbers, ranges and lists; no steps, no names, no
//! `7` for Sunday. An expression that never matches is an error. If day and weekday are both given, either suffices, and
//! "given" means not exactly `*`: `0 0 1-31 * 1` runs every day. When clocks are set forward, the times that are left out do
//! not run; when they are set back, the times that come twice run twice. A change of the host's time zone takes effect
//! while the program runs.
//!
//! # Retries
//!
//! A callback that fails is tried again after its delay, for as long as it fails. If an occurrence comes first, that run takes the
//! retry's place. A delay of zero is taken as a second.
//!
//! # States and events
//!
//! ```text
//! Uninitialized ──initialize──▶ Initializing ──▶ Running ──stop──▶ Stopping ──▶ Stopped
//!       ▲                            │                                           │
//!       └──────────fails─────────────┘               initialize again ◀──────────┘
//! ```
//!
//! Every transition is an [`Event`] with the specification's name, told to an
//! [observer](Builder::observer), to a [stream](Scheduler::events), and to `tracing`. How late runs start is in the events, and
//! [`Scheduler::lateness`] has the worst.
//!
//! # Errors
//!
//! There is one type, [`Error`]. Its [`kind`](Error::kind) has the specification's names, its text the specification's
//! words, and its [`details`](Error::details) the same as data.
//!
//! ```
//! use kron_scheduler::{Registration, Scheduler, store::MemoryStore};
//! use std::time::Duration;
//!
//! let scheduler = Scheduler::new(MemoryStore::new());
//! let task = Registration::new("backup", "*/5 * * * *", Duration::ZERO, || async { Ok::<(), std::io::Error>(()) });
//! // Known before anything is awaited.
//! let call = scheduler.initialize([task]);
//! let error = call.refusal().unwrap();
//! assert_eq!(error.kind().name(), "CronExpressionInvalidError");
//! assert_eq!(error.details()["field"], "minute");
//! ```
//!
//! # Testing your tasks
//!
//! With the feature `testing`, a clock that stands still until you move it, in any zone: see `testing`.
//!
//! # Features
//!
//! - `sqlite`: `store::SqliteStore`, with `SQLite` built in.
//! - `testing`: the clock, a store that fails when told to, and the suite that every store passes.
//!
//! # Reading order
//!
//! `registration` and `error` are the way in; `record` is what is remembered; [`machine`] decides, without I/O;
//! `scheduler` has the two methods and the states, `driver` the loop that carries out; [`store`] keeps.
#![forbid(unsafe_code)]

mod clock;
mod driver;
mod error;
mod event;
#[cfg(test)]
mod flaw;
pub mod machine;
#[cfg(test)]
mod oracle;
mod record;
mod registration;
mod scheduler;
pub mod store;
mod sync;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use clock::{Clock, HostClock, Sleep};
pub use error::{Error, ErrorKind};
pub use event::{Event, Lateness, lateness_bound};
pub use machine::Reason;
pub use registration::{BoxError, Callback, Callbacks, IntoRegistrations, Registration, Registrations};
pub use scheduler::{Builder, Initialize, Scheduler, State};

/// The examples of the README are run as well.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
