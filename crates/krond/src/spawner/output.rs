//! Where a run's output goes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use krontab::Output;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::umask;
use serde::{Deserialize, Serialize};

use super::child::Trouble;
use super::relay::{self, Severity, Stream};
use super::{Launch, Stage};
use crate::sys::Single;

/// How an [`Output`] is sent.
#[derive(Deserialize, Serialize)]
#[serde(remote = "Output")]
pub(crate) enum OutputShape {
    Discard,
    File(PathBuf),
    Inherit,
    Syslog,
}

/// The way to the system's log, if a run needs one.
pub(crate) struct Outputs {
    log: Option<UnixDatagram>,
}

impl Outputs {
    /// Reaches the system's log.
    pub(crate) fn reach(launch: &Launch) -> Result<Outputs, Trouble> {
        let is_needed = [&launch.stdout, &launch.stderr].contains(&&Output::Syslog);
        let log = is_needed.then(|| relay::reach(&launch.syslog)).transpose().map_err(|error| {
            let log = launch.syslog.display();
            Trouble::new(Stage::Syslog, format!("could not reach the system's log at `{log}`: {error}"))
        })?;
        Ok(Outputs { log })
    }

    /// Connects output and error. Standard input is `/dev/null` since the spawner began.
    pub(crate) fn connect(self, single: &Single, launch: &Launch, pid: u32) -> Result<(), Trouble> {
        let mut streams = Vec::new();
        let most = launch.output_max;
        let out = end(&launch.stdout, most, Severity::Info, &mut streams)?;
        let err = end(&launch.stderr, most, Severity::Warning, &mut streams)?;
        if let Some(log) = self.log {
            // Before these are its output, so that the relay does not hold what it waits for the end of.
            relay::begin(single, launch, pid, log, streams)
                .map_err(|error| Trouble::io(Stage::Syslog, error))?;
        }
        let connected = out.map_or(Ok(()), rustix::stdio::dup2_stdout);
        let connected = connected.and_then(|()| err.map_or(Ok(()), rustix::stdio::dup2_stderr));
        connected.map_err(|error| Trouble::io(Stage::Output, error))
    }
}

/// What an output is written to; `None` is what the spawner has.
fn end(
    output: &Output,
    most: Option<u64>,
    severity: Severity,
    streams: &mut Vec<Stream>,
) -> Result<Option<OwnedFd>, Trouble> {
    let failed = |what: &str, error: io::Error| {
        Trouble::new(Stage::Output, format!("could not open `{what}`: {error}"))
    };
    match output {
        Output::Inherit => Ok(None),
        Output::Discard => {
            let null = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
            null.map(Some).map_err(|error| failed("/dev/null", error.into()))
        }
        Output::File(path) => {
            let file = append(path).and_then(|file| put_aside(file, path, most));
            file.map(Some).map_err(|error| failed(&path.to_string_lossy(), error))
        }
        Output::Syslog => {
            let (end, ours) =
                pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed("a pipe", error.into()))?;
            streams.push(Stream::new(end, severity));
            Ok(Some(ours))
        }
    }
}

/// Gives a file that is too large another name, and opens a new one in its place. Where the user may not do that, the
/// file stays: output is better in a large file than nowhere.
fn put_aside(file: OwnedFd, path: &Path, most: Option<u64>) -> io::Result<OwnedFd> {
    let stat = fstat(&file)?;
    if most.is_none_or(|most| stat.st_size.unsigned_abs() <= most) {
        return Ok(file);
    }
    let mut aside = path.as_os_str().to_owned();
    aside.push(".1");
    // Another run may have done so in the meantime.
    let is_there =
        rustix::fs::lstat(path).is_ok_and(|now| (now.st_dev, now.st_ino) == (stat.st_dev, stat.st_ino));
    if is_there && rustix::fs::rename(path, &aside).is_err() {
        return Ok(file);
    }
    append(path)
}

/// Opens the end of a file, with the rights of the user that this is by now.
fn append(path: &Path) -> io::Result<OwnedFd> {
    // Without waiting, because a FIFO would wait for a reader and hold the gate meanwhile.
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let before = umask(Mode::RWXG | Mode::RWXO);
    let file = open(path, flags, Mode::RUSR | Mode::WUSR);
    umask(before);
    let file = file.map_err(|error| match error {
        rustix::io::Errno::LOOP => io::Error::other("it is a symbolic link"),
        error => error.into(),
    })?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    rustix::fs::fcntl_setfl(file.as_fd(), OFlags::APPEND)?;
    Ok(file)
}
