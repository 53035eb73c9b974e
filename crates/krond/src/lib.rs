//! The host daemon of Kron: krontabs in, processes out, each period at most once.

pub mod children;
pub mod clock;
pub mod daemon;
pub mod directory;
pub mod files;
pub mod moment;
pub mod paths;
pub mod process;
pub mod settings;
pub mod spawner;
pub mod state;
pub mod store;
mod sys;
pub mod timers;
pub mod tree;
pub mod wire;
