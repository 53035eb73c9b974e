//! The commands, one file each: flags, help, what it does, what it answers.

pub(crate) mod add;
pub(crate) mod batch;
pub(crate) mod completions;
pub(crate) mod describe;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod fuzzy;
pub(crate) mod ical;
pub(crate) mod import;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod next;
pub(crate) mod prev;
pub(crate) mod remove;
pub(crate) mod simulate;
pub(crate) mod why;
