//! Which moment of a window, and what to do about it.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod policy;

pub use policy::{Overlap, Policy};
