//! A daemon that is measured, and what it uses.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A process that ends with its measurement.
pub struct Daemon {
    child: Child,
    ended_by: Signal,
}

impl Daemon {
    pub fn start(command: &mut Command, ended_by: Signal, log: &Path) -> Self {
        let log = fs::File::create(log).unwrap();
        let out = log.try_clone().unwrap();
        let child = command.stdin(Stdio::null()).stdout(out).stderr(log).spawn().unwrap();
        Self { child, ended_by }
    }

    /// Whether it has not ended by itself.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Seconds of processor time so far.
    pub fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }

    /// Bytes of memory, now and at most.
    pub fn memory(&self) -> (u64, u64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
        };
        (field("VmRSS:"), field("VmHWM:"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), self.ended_by);
        let _ = self.child.wait();
    }
}

/// Says where this was measured, without which no figure means anything.
pub fn machine() {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{cores} x {}, load {}", model.trim_matches([' ', '\t', ':']), load());
}

/// How much else the machine has to do.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
