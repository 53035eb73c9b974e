//! Jobs of other schedulers become entries of a krontab, and what would change by that is told.
//!
//! `kind` finds out what a file is. `crontab`, `systemd` (with `calendar`) and `kubernetes` (with `yaml`)
//! read it into drafts: fields of a calendar, and what to run. `draft` writes a draft as a line of a
//! krontab, and `firing` computes when the other scheduler would run it, so that both can be compared
//! date by date. `fields` is what calendars are made of.

pub(crate) mod calendar;
pub(crate) mod crontab;
pub(crate) mod draft;
pub(crate) mod fields;
pub(crate) mod firing;
pub(crate) mod kind;
pub(crate) mod kubernetes;
pub(crate) mod systemd;
pub(crate) mod yaml;

use self::draft::Draft;

/// Something of a file that is, or is not, a job.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The line it begins on, counted from 1.
    pub(crate) line: usize,
    /// As it was written, in a line.
    pub(crate) text: String,
    /// The job, or why there is none.
    pub(crate) outcome: Result<Draft, String>,
}
