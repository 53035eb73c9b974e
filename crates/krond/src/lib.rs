//! The host daemon of Kron: krontabs in, processes out, each period at most once.
//!
//! krond is a library with a thin binary. Its heart, [`daemon`], is a machine without I/O: it is told the time and
//! what has happened, and says what to do. [`host`] is that machine on a real host; the simulator has others.
//!
//! # The walk
//!
//! ```text
//! config ──▶ daemon ──▶ spawner ──▶ a child at its gate
//!              │  ▲                        │
//!              ▼  │                        ▼
//!            store: STATE's files ──▶ the gate opens, and the child becomes the run
//! ```
//!
//! # Reading order
//!
//! - [`state`] is what is remembered of a job, [`wire`] how it is written down, [`store`] where; [`anchor`] is what
//!   is known when a state is lost, [`files`] all that is asked of a disk, and [`directory`] a real one.
//! - [`daemon`] with [`timers`] and [`moment`] decides. [`process`] says who a process is.
//! - [`spawner`] makes children that wait at a gate, [`children`] waits for them, [`tree`] finds what they started.
//! - [`host`] joins all of it, with threads for what may block: `writer`, `ender`, [`voice`], [`control`].
//! - [`log`], [`outcomes`], [`metrics`], [`console`] and [`view`] are for people.

pub mod anchor;
pub mod children;
pub mod clock;
pub mod config;
pub mod console;
pub mod control;
pub mod daemon;
pub mod dashboard;
pub mod directory;
mod ender;
pub mod files;
pub mod host;
mod inbox;
pub mod log;
pub mod metrics;
pub mod moment;
mod notify;
pub mod outcomes;
pub mod paths;
pub mod process;
pub mod settings;
pub mod spawner;
pub mod state;
pub mod store;
mod sys;
pub mod timers;
pub mod tree;
pub mod view;
pub mod voice;
pub mod wire;
mod writer;
