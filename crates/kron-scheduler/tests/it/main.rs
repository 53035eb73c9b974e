//! Tests over the public interface.
//!
//! - `errors`: the specification's names, messages and details, word by word.
//! - `lifecycle`: initialize, stop, and everything that can happen between them.
//! - `stories`: occurrences, retries, orphans, overrides, changes of clocks.
//! - `stores`: the suite that every store passes, and what is refused.
//! - `steps`: how many steps the scheduler takes, at most.
//! - `threads`: the real clock, many threads and real files.
//!
//! The random lives beside the model, and the planted bugs, are in `src/oracle.rs`.

mod errors;
mod lifecycle;
mod steps;
mod stores;
mod stories;
mod threads;
