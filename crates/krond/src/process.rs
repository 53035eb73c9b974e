//! Who a process is.
//!
//! A PID alone is nobody: the kernel hands it to the next who asks. Together with the boot it belongs to and
//! the moment the kernel started it, it names one process for ever.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One process, for ever: no other has ever had, or will have, the same identity.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ProcessId {
    /// The boot it lives in.
    pub boot: BootId,
    /// Its number, unique among the processes alive.
    pub pid: u32,
    /// When the kernel started it, in clock ticks since the boot: field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
}

impl ProcessId {
    /// How long after the boot it was started. The wall clock, which may be set, has no say in it.
    #[must_use]
    pub fn started(&self) -> Duration {
        Duration::from_millis(self.start_ticks.saturating_mul(TICK_MILLISECONDS))
    }
}

/// Linux counts a hundred ticks a second for whoever reads `/proc`, whatever it counts by itself.
const TICK_MILLISECONDS: u64 = 10;

/// One attempt at starting a child. The daemon chooses them, and none twice.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Ticket(pub u64);

/// Which boot of the machine: `/proc/sys/kernel/random/boot_id`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct BootId(u128);

impl BootId {
    /// The boot of that number.
    #[must_use]
    pub const fn new(number: u128) -> BootId {
        BootId(number)
    }
}

/// As the kernel writes it: `1b4e28ba-2fa1-11d2-883f-0016d3cca427`.
impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BootId(id) = self;
        let part = |from: u32, digits: u32| (id >> from) & ((1 << (4 * digits)) - 1);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(96, 8),
            part(80, 4),
            part(64, 4),
            part(48, 4),
            part(0, 12)
        )
    }
}

impl FromStr for BootId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<BootId, ParseIntError> {
        u128::from_str_radix(&text.trim().replace('-', ""), 16).map(BootId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_is_written_as_the_kernel_does() {
        let text = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
        let boot: BootId = text.parse().unwrap();
        assert_eq!(boot.to_string(), text);
        assert_eq!(format!("{text}\n").parse::<BootId>().unwrap(), boot);
        assert!("not a boot".parse::<BootId>().is_err());
    }
}
