//! The host daemon of Kron: krontabs in, processes out, each period at most once.

pub mod clock;
pub mod daemon;
pub mod directory;
pub mod files;
pub mod moment;
pub mod paths;
pub mod process;
pub mod settings;
pub mod state;
pub mod store;
pub mod timers;
pub mod wire;
