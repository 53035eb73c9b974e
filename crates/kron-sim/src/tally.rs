//! How much of everything there was.

use std::fmt;
use std::ops::AddAssign;

macro_rules! tally {
    ($($(#[$doc:meta])* $field:ident: $label:literal,)*) => {
        /// How much of everything there was.
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        pub struct Tally {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl AddAssign for Tally {
            fn add_assign(&mut self, other: Tally) {
                $(self.$field += other.$field;)*
            }
        }

        impl fmt::Display for Tally {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(writeln!(f, "{:>14}  {}", self.$field, $label)?;)*
                Ok(())
            }
        }
    };
}

tally! {
    /// Histories lived through.
    histories: "histories",
    /// Periods whose outcome was told, one by one.
    periods: "periods with an outcome of their own",
    /// Periods that came due in peace, and were judged strictly.
    judged: "of them came due in peace and were judged strictly",
    /// Commands that began.
    executions: "executions",
    /// Ends of runs that were told.
    results: "results",
    /// Points where everything could have ended.
    points: "points where a crash was possible",
    /// Starts of krond.
    starts: "starts of krond",
    /// What was done to the worlds.
    faults: "acts of the nemesis",
    /// Sudden ends of krond alone.
    kills: "kill -9",
    /// Sudden ends of everything.
    power_cuts: "power cuts",
    /// Orderly ends.
    stops: "orderly stops",
    /// Clocks set.
    clock_steps: "steps of the clock",
    /// Sleeps of the machine, or of krond alone.
    sleeps: "sleeps and stalls",
    /// Calls that found no space.
    full: "calls that found the disk full",
    /// Writing calls that failed.
    write_errors: "writing calls that failed",
    /// Reading calls that failed.
    read_errors: "reading calls that failed",
    /// Times without an answer of the disk.
    hangs: "times when the disk answered nothing for minutes",
    /// Times without processes.
    spawn_windows: "times when no process could be made",
    /// Files damaged.
    damaged: "state files damaged",
    /// Files deleted.
    deleted: "state files deleted",
    /// Lines edited.
    edits: "edits of the krontab",
    /// Runs by hand.
    by_hand: "runs asked for by hand",
    /// Clocks accepted.
    accepted: "clocks accepted by an operator",
    /// Jobs paused, and resumed.
    pauses: "times somebody asked to pause a job, or to resume it",
}
