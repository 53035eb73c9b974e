//! What threads share, from one place: `bench/interleave` builds this crate with other locks in their stead, to try the
//! orders in which threads can run.

#[cfg(not(kron_shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};
#[cfg(not(kron_shuttle))]
pub(crate) use tokio::sync::broadcast;

#[cfg(kron_shuttle)]
pub(crate) use real_tokio::sync::broadcast;
#[cfg(kron_shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, PoisonError, atomic};

/// How many threads the runtime has for tasks.
pub(crate) fn threads() -> usize {
    if cfg!(kron_shuttle) { 2 } else { tokio::runtime::Handle::current().metrics().num_workers() }
}
