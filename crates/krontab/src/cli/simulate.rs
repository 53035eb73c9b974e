//! What a fleet of jobs comes to: how many start in every minute, by their nominal times and by the times
//! that Kron chooses.
//!
//! `count` runs the engine over a span and fills an array; `load` is what can be said of such an array.
//! `peaks` asks who makes the highest minutes, and `flatten` which windows would lower them; `patch` writes
//! those down as a change of the files. `chart` and `page` draw it all.

pub(crate) mod chart;
pub(crate) mod count;
pub(crate) mod flatten;
pub(crate) mod load;
pub(crate) mod page;
pub(crate) mod patch;
pub(crate) mod peaks;
