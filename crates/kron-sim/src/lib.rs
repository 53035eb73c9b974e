//! Worlds with bad clocks, disks and processes for krond to live in, and the checker that judges it.
//!
//! What krond promises, and what is checked here in every history of every seed:
//!
//! - no period of a job is executed twice, across crashes, power cuts, damaged files and changes of the clock;
//! - no command begins before its claim would survive a power cut;
//! - no outcome that was told changes, and none is lost;
//! - every run that began has one result, even if nobody saw its end;
//! - under `forbid` and `replace`, no two runs of a job are under way at once;
//! - no process is signalled that krond did not start;
//! - while krond watches undisturbed, every period has its outcome, and starts at its chosen time;
//! - once faults end, every job runs again.
//!
//! A seed is a history. `kron_sim::run(seed)` lives through it, the same each time, and
//! `scripts/campaign sim --seed N --trace` tells it.
//!
//! # Reading order
//!
//! `line` is what jobs are, and when they are due, told without Kron. `disk` is the disk, `world` the machine
//! with krond on it, `history` what is done to it, and `checker` the judge. `plant` has bugs to test the judge
//! with, and `exhaustive` goes through every point of one small history.

mod checker;
mod disk;
mod exhaustive;
mod history;
mod line;
mod plant;
mod rng;
mod tally;
mod world;

pub use checker::Violation;
pub use exhaustive::{Sweep, sweep};
pub use history::{Options, Verdict, run, run_with};
pub use plant::Plant;
pub use rng::Rng;
pub use tally::Tally;
