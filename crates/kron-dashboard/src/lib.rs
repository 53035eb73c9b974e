//! Kron's web page: embedded assets, views, and a router over whatever has jobs.
//!
//! Whoever has jobs implements [`Board`], which is about facts: which jobs there are, what is recorded of them, what
//! runs. [`Dashboard::answer`] turns a [`Request`] into a [`Reply`] with them. It is a function of values, so it is
//! served by any HTTP server: kron-server has one already, and `krond dashboard` uses the small one in `serve`.
//!
//! Everything that is computed for the page (timelines, load, chosen times, calendars) is computed here, by the
//! engine that will run the jobs. The page itself only draws, and never holds more than it shows.
//!
//! # Reading order
//!
//! `board` says what is known, `request` what comes in and goes out, `guard` who may ask. `router` is the table of
//! paths; `plan`, `timeline`, `load`, `calendar` and `table` are what they answer, and `assets` is the page.

mod assets;
mod board;
mod calendar;
mod guard;
mod load;
mod plan;
mod request;
mod router;
#[cfg(feature = "serve")]
pub mod serve;
mod table;
mod timeline;

pub use board::{
    About, Act, Answer, Board, Change, Counts, Draft, Entry, Find, Job, Mark, Node, Output, Page, Permission,
    Place, Preview, Pulse, Queue, Refused, Run, Running, Soon, Trouble, Warning, Work, WorkFilter,
};
pub use guard::{Guard, POLICY};
pub use plan::{NEXT_MAX, local, next_runs};
pub use request::{Reply, Request, Response};
pub use router::{Dashboard, MOUNT, frame};
