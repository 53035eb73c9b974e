//! The commands, a file for each.

pub(crate) mod accept_clock;
pub(crate) mod completions;
pub(crate) mod dashboard;
pub(crate) mod demo;
pub(crate) mod history;
pub(crate) mod jobs;
pub(crate) mod man;
pub(crate) mod metrics;
pub(crate) mod pause;
pub(crate) mod reload;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod settings;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod why;
