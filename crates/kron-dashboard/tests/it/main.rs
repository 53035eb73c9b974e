//! The dashboard over a board of a few jobs.

mod board;
mod router;
#[cfg(feature = "serve")]
mod serve;
