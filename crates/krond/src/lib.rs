//! The host daemon of Kron: krontabs in, processes out, each period at most once.

pub mod daemon;
pub mod files;
pub mod moment;
pub mod process;
pub mod state;
pub mod store;
pub mod timers;
pub mod wire;
