//! A run's output on its way to the system's log.
//!
//! A small process reads what the run writes and sends it on, a line a message. It is nobody's child but that of whoever
//! takes orphans, so it lives as long as the output does, whether krond is there or not, and leaves no zombie.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, setsid, waitpid};

use super::Launch;
use crate::sys::{self, Forked, Kin, Single};

/// How much a message matters, as the log counts it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Severity {
    Warning = 4,
    Info = 6,
}

/// One output of a run, read from the other end.
#[derive(Debug)]
pub(crate) struct Stream {
    end: OwnedFd,
    lines: Lines,
    severity: Severity,
}

impl Stream {
    pub(crate) fn new(end: OwnedFd, severity: Severity) -> Stream {
        Stream { end, lines: Lines::default(), severity }
    }
}

/// Reaches the system's log.
pub(crate) fn reach(path: &Path) -> io::Result<UnixDatagram> {
    let log = UnixDatagram::unbound()?;
    log.connect(path)?;
    log.set_write_timeout(Some(PATIENCE))?;
    Ok(log)
}

/// Begins a relay: a copy of a copy, so that it is not the run's child. Of the caller's descriptors it keeps the log's
/// and the streams'.
pub(crate) fn begin(
    single: &Single,
    launch: &Launch,
    pid: u32,
    log: UnixDatagram,
    streams: Vec<Stream>,
) -> io::Result<()> {
    match sys::fork(single, Kin::Child)? {
        Forked::Here(between) => loop {
            match waitpid(Some(between), WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                Ok(Some((_, status))) if status.exit_status() == Some(0) => return Ok(()),
                Ok(_) => return Err(io::Error::other("could not make a process for it")),
                Err(error) => return Err(error.into()),
            }
        },
        Forked::Copy => {
            let _guard = ExitOnUnwind;
            let mut keep: Vec<BorrowedFd<'_>> = streams.iter().map(|stream| stream.end.as_fd()).collect();
            keep.push(log.as_fd());
            // It ends when the run's output does, and for nobody's signal to the run or to krond's service.
            let is_ready = sys::close_all_but(&mut keep)
                .and_then(|()| sys::block_signals())
                .and_then(|()| Ok(setsid()?))
                .and_then(|_| Ok(rustix::thread::set_name(c"krond: log")?));
            match is_ready.and_then(|()| sys::fork(single, Kin::Child)) {
                Ok(Forked::Here(_)) => sys::exit(0),
                Err(_) => sys::exit(1),
                Ok(Forked::Copy) => {
                    relay(&launch.name, pid, log, streams, &launch.syslog);
                    sys::exit(0)
                }
            }
        }
    }
}

/// Sends on what arrives, until nothing can.
fn relay(name: &str, pid: u32, mut log: UnixDatagram, mut streams: Vec<Stream>, path: &Path) {
    // Whoever reads krond's standard output to its end does not wait for this.
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
    let mut bytes = [0; 8 << 10];
    while !streams.is_empty() {
        let mut wanted: Vec<PollFd<'_>> =
            streams.iter().map(|stream| PollFd::new(&stream.end, PollFlags::IN)).collect();
        if let Err(error) = poll(&mut wanted, None) {
            if error == Errno::INTR {
                continue;
            }
            return;
        }
        let can_read: Vec<bool> = wanted.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut can_read = can_read.into_iter();
        streams.retain_mut(|stream| {
            if can_read.next() != Some(true) {
                return true;
            }
            let length = match rustix::io::read(&stream.end, &mut bytes) {
                Err(Errno::INTR | Errno::AGAIN) => return true,
                Err(_) => 0,
                Ok(length) => length,
            };
            let lines = if length == 0 {
                stream.lines.rest().into_iter().collect()
            } else {
                stream.lines.push(&bytes[..length])
            };
            for line in lines {
                let message = message(stream.severity, name, pid, &line);
                // The log may have been started anew. If it is not there, the line is lost, and the run goes on.
                if log.send(&message).is_err()
                    && let Ok(again) = reach(path)
                {
                    log = again;
                    let _ = log.send(&message);
                }
            }
            length > 0
        });
    }
}

/// A line as RFC 3164 has it on a local socket: the log itself adds when and where.
fn message(severity: Severity, name: &str, pid: u32, line: &[u8]) -> Vec<u8> {
    let priority = FACILITY * 8 + severity as u8;
    let mut message = format!("<{priority}>{name}[{pid}]: ").into_bytes();
    for &byte in line {
        match byte {
            // What a terminal or another reader of the log could take for something else is spelled out.
            0..=8 | 10..=31 | 127 => message.extend(format!("\\x{byte:02x}").bytes()),
            byte => message.push(byte),
        }
    }
    message
}

/// Bytes, cut into lines.
#[derive(Debug, Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// The lines that are whole now, or too long to wait for their end. Empty ones say nothing.
    fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for &byte in bytes {
            if byte == b'\n' {
                lines.extend(self.rest());
                continue;
            }
            if self.begun.len() == LINE_MAX {
                lines.extend(self.rest());
            }
            self.begun.push(byte);
        }
        lines
    }

    /// What has begun and will not go on.
    fn rest(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.begun);
        (!line.is_empty()).then_some(line)
    }
}

/// Cron's own, of the log's facilities.
const FACILITY: u8 = 9;

/// The longest line in one message; RFC 3164 has room for 1,024 bytes with what stands before it. A longer one goes
/// into several.
const LINE_MAX: usize = 900;

/// How long the log may take for a line before it is given up: a run must not hang because its log does.
const PATIENCE: Duration = Duration::from_secs(5);

struct ExitOnUnwind;

impl Drop for ExitOnUnwind {
    fn drop(&mut self) {
        sys::exit(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_lines_however_they_are_cut() {
        let text = b"one\n\ntwo\r\nthree";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let mut all: Vec<Vec<u8>> = text.chunks(size).flat_map(|bytes| lines.push(bytes)).collect();
            all.extend(lines.rest());
            assert_eq!(all, [&b"one"[..], b"two\r", b"three"], "in pieces of {size}");
        }
    }

    #[test]
    fn a_long_line_is_several() {
        let mut lines = Lines::default();
        let all = lines.push(&[b'x'; 2 * LINE_MAX + 1]);
        assert_eq!(all, [vec![b'x'; LINE_MAX], vec![b'x'; LINE_MAX]]);
        assert_eq!(lines.rest(), Some(vec![b'x']));
    }

    #[test]
    fn a_message_has_no_control_characters() {
        let message = message(Severity::Info, "backup", 7, "a\tb\x1b[2J\0ü".as_bytes());
        assert_eq!(String::from_utf8(message).unwrap(), "<78>backup[7]: a\tb\\x1b[2J\\x00ü");
    }
}
