//! Processes that krond has started, whether in this life or in one before.
//!
//! Its children are waited for with [`reap`], all of them: runs, what was stopped at a gate, the spawner, and, where
//! krond is the host's first process, orphans. So there is never a zombie, and a run costs no descriptor. A run of an
//! earlier krond is another's child now: [`identify`] gives a [`PidFd`] that can be read once it has ended, and its
//! exit code stays unknown.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal as Number, WaitId, WaitIdOptions, WaitOptions, WaitStatus, pidfd_open,
    pidfd_send_signal, wait, waitid,
};

use crate::process::{BootId, ProcessId};

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// One number for both, as a shell says it: 128 and the signal.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
        }
    }

    fn of(status: WaitStatus) -> Option<Exit> {
        status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
    }
}

/// A child that has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ended {
    /// Its number. Nobody else has had it until now, so it is enough.
    pub pid: u32,
    /// How.
    pub exit: Exit,
}

/// Takes every child that has ended. Ask at each `SIGCHLD`, and before [`Spawner::answers`]. Never blocks.
///
/// [`Spawner::answers`]: crate::spawner::Spawner::answers
///
/// # Errors
/// If the kernel does not answer.
pub fn reap() -> io::Result<Vec<Ended>> {
    let mut all = Vec::new();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                let pid = pid.as_raw_nonzero().get().unsigned_abs();
                all.extend(Exit::of(status).map(|exit| Ended { pid, exit }));
            }
            // Nobody has ended, or nobody is left.
            Ok(None) | Err(Errno::CHILD) => return Ok(all),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What krond says to a process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Signal {
    /// Do nothing more, until further notice.
    Stop,
    /// Please end.
    Terminate,
    /// End.
    Kill,
}

/// A hold on one process. It never becomes another one, whatever happens to the number.
#[derive(Debug)]
pub struct PidFd(OwnedFd);

/// What waiting has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Waited {
    /// It has not ended.
    Running,
    /// It has ended. How is known to its parent alone, and only the first time.
    Ended(Option<Exit>),
}

impl PidFd {
    /// Signals it. Returns whether it was still there.
    ///
    /// # Errors
    /// If it may not be signalled.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        let number = match signal {
            Signal::Stop => Number::STOP,
            Signal::Terminate => Number::TERM,
            Signal::Kill => Number::KILL,
        };
        match pidfd_send_signal(&self.0, number) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks whether it has ended, and takes it if it is a child. Never blocks.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn wait(&self) -> io::Result<Waited> {
        match waitid(WaitId::PidFd(self.0.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(Some(status)) => {
                let exit = status.exit_status().map(Exit::Code);
                Ok(Waited::Ended(exit.or_else(|| status.terminating_signal().map(Exit::Signal))))
            }
            Ok(None) => Ok(Waited::Running),
            // Another's child, or taken already.
            Err(Errno::CHILD) => {
                let mut wanted = [PollFd::new(&self.0, PollFlags::IN)];
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                let has_ended = poll(&mut wanted, Some(&now))? > 0;
                Ok(if has_ended { Waited::Ended(None) } else { Waited::Running })
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Finds a process, if it is that very one. `None` is: it has ended and was waited for.
///
/// # Errors
/// If that cannot be found out; then nothing may be done to it.
pub fn identify(process: &ProcessId) -> io::Result<Option<PidFd>> {
    if boot_id()? != process.boot {
        return Ok(None);
    }
    identify_in_this_boot(process.pid, process.start_ticks)
}

/// The same, without asking which boot this is.
pub(crate) fn identify_in_this_boot(number: u32, ticks: u64) -> io::Result<Option<PidFd>> {
    let Some(pid) = i32::try_from(number).ok().and_then(Pid::from_raw) else { return Ok(None) };
    // Held first and looked at then: if the number has these ticks now, it had them when it was held, for a process
    // with this identity was there before either.
    let held = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(held) => PidFd(held),
        Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok((start_ticks(number)? == Some(ticks)).then_some(held))
}

/// This boot.
///
/// # Errors
/// If the kernel does not say.
pub fn boot_id() -> io::Result<BootId> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    text.parse().map_err(io::Error::other)
}

/// When the process that has this number now was started, in clock ticks since the boot. `None` if there is none.
///
/// # Errors
/// If the kernel does not say.
pub fn start_ticks(pid: u32) -> io::Result<Option<u64>> {
    Ok(Stat::read(pid)?.map(|stat| stat.start_ticks))
}

/// What `/proc/PID/stat` says of a process, as far as krond asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stat {
    pub(crate) state: u8,
    pub(crate) parent: u32,
    pub(crate) session: u32,
    pub(crate) threads: u32,
    pub(crate) start_ticks: u64,
}

impl Stat {
    pub(crate) fn read(pid: u32) -> io::Result<Option<Stat>> {
        match fs::read(format!("/proc/{pid}/stat")) {
            Ok(text) => match Stat::parse(&text) {
                Some(stat) => Ok(Some(stat)),
                None => Err(io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat makes no sense")),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The second field is what the process calls itself, in parentheses, and may have any of them inside.
    fn parse(text: &[u8]) -> Option<Stat> {
        let after = text.iter().rposition(|&byte| byte == b')')? + 1;
        let text = str::from_utf8(text.get(after..)?).ok()?;
        // These count from the third field.
        let mut fields = text.split_ascii_whitespace();
        let state = fields.next()?.bytes().next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let threads = fields.nth(13)?.parse().ok()?;
        let start_ticks = fields.nth(1)?.parse().ok()?;
        Some(Stat { state, parent, session, threads, start_ticks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_the_rest() {
        let text = b"42 (a) R 1 1 1 ( x) S 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 123456 99 1 2";
        let stat = Stat { state: b'S', parent: 7, session: 41, threads: 3, start_ticks: 123_456 };
        assert_eq!(Stat::parse(text), Some(stat));
        assert_eq!(Stat::parse(b"42 (a) S 7"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn this_process_is_itself_and_no_other() {
        let boot = boot_id().unwrap();
        let pid = std::process::id();
        let start_ticks = start_ticks(pid).unwrap().unwrap();
        let is_found = |process: ProcessId| identify(&process).unwrap().is_some();
        assert!(is_found(ProcessId { boot, pid, start_ticks }));
        assert!(!is_found(ProcessId { boot, pid, start_ticks: start_ticks + 1 }));
        assert!(!is_found(ProcessId { boot: BootId::new(1), pid, start_ticks }));
        assert!(!is_found(ProcessId { boot, pid: 0, start_ticks }));
        assert!(!is_found(ProcessId { boot, pid: u32::MAX, start_ticks }));
    }
}
