//! The host daemon of Kron: krontabs in, processes out, each period at most once.

pub mod children;
pub mod process;
pub mod spawner;
mod sys;
pub mod tree;
