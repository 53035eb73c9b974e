//! The control socket: one request, one answer, a line of JSON each.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rustix::event::{Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::daemon::Farewell;
use crate::inbox::{Message, Post};

/// The name of the socket in the state directory.
pub const SOCKET: &str = "control.sock";

/// The longest request.
const REQUEST_BYTES_MAX: u64 = 64 * 1024;

/// The most that are listened to at a time. Who has said nothing for the longest has to go for the next.
const SILENT_MAX: usize = 64;

/// The most that wait for an answer. Others are told to come back.
const ASKING_MAX: usize = 256;

/// How long a caller may take to say what it wants, or to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an answer may take. A run waits for its state to be durable.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// How long a daemon that ends waits for its last answers to be taken.
const FAREWELL: Duration = Duration::from_secs(1);

/// When to try again to take a caller.
const LATER: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What a caller wants.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Request {
    /// How the daemon is.
    Status,
    /// All jobs, or one.
    Jobs {
        /// The name or the identity of the one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<String>,
    },
    /// The numbers for Prometheus.
    Metrics,
    /// What is recorded of one job, or of all, the newest first.
    Records {
        /// The name or the identity of the one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<String>,
        /// Of periods from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Timestamp>,
        /// Up to here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Timestamp>,
        /// How many at most.
        count: usize,
    },
    /// A run now.
    Run {
        /// The name or the identity of the job.
        job: String,
    },
    /// Nothing of a job starts any more, until it is resumed.
    Pause {
        /// The name or the identity of the job.
        job: String,
    },
    /// What was paused may start again.
    Resume {
        /// The name or the identity of the job.
        job: String,
    },
    /// What accepting the clock would mean, or that it is accepted.
    AcceptClock {
        /// The name or the identity of the job.
        job: String,
        /// Whether to do it.
        yes: bool,
    },
    /// Read the krontabs again.
    Reload,
    /// End.
    Stop {
        /// What becomes of the runs, if not what the settings say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runs: Option<Farewell>,
    },
}

/// What a caller gets.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Whether it is what was asked for.
    pub ok: bool,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Answer {
    /// What was asked for.
    #[must_use]
    pub fn ok(result: impl Serialize) -> Answer {
        let result = serde_json::to_value(result).unwrap_or_default();
        Answer { ok: true, result, error: None }
    }

    /// Why there is no answer.
    #[must_use]
    pub fn error(why: impl Into<String>) -> Answer {
        Answer { ok: false, result: Value::Null, error: Some(why.into()) }
    }
}

/// Everybody who calls.
#[derive(Debug, Default)]
struct Callers {
    /// Who has not said what they want, the longest silent first.
    silent: BTreeMap<u64, Arc<UnixStream>>,
    last: u64,
    /// How many have asked, and are not answered.
    asking: usize,
}

/// The control socket of this daemon.
#[derive(Debug)]
pub(crate) struct Control {
    callers: Arc<(Mutex<Callers>, Condvar)>,
}

impl Control {
    /// Starts to listen. The socket of a daemon that is gone is replaced: whoever calls this holds the lock.
    pub(crate) fn start(state_dir: &Path, post: &Post) -> io::Result<Control> {
        let (_directory, path) = reach(state_dir)?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        rustix::fs::chmod(&path, Mode::RUSR | Mode::WUSR)?;
        let callers = Arc::<(Mutex<Callers>, Condvar)>::default();
        let control = Control { callers: Arc::clone(&callers) };
        post.thread("control", move |post| {
            for caller in listener.incoming() {
                match caller {
                    Ok(caller) => receive(caller, &callers, post),
                    // There are too many open files: it is no use to ask at once again.
                    Err(_) => drop(poll(&mut [], Some(&LATER))),
                }
            }
        })?;
        Ok(control)
    }

    /// Waits until everybody has their answer, but not for those who do not take it.
    pub(crate) fn close(self) {
        let (callers, changed) = &*self.callers;
        let callers = callers.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = changed.wait_timeout_while(callers, FAREWELL, |callers| callers.asking > 0);
    }
}

/// Takes a caller, who may be anybody.
fn receive(caller: UnixStream, callers: &Arc<(Mutex<Callers>, Condvar)>, post: &Post) {
    let _ = caller.set_read_timeout(Some(PATIENCE));
    let _ = caller.set_write_timeout(Some(PATIENCE));
    let is_allowed = socket_peercred(&caller)
        .is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid());
    if !is_allowed {
        let _ = answer(&caller, &Answer::error("only root and the user that runs krond may ask"));
        return;
    }
    let caller = Arc::new(caller);
    let number = {
        let mut callers = callers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.silent.len() >= SILENT_MAX
            && let Some((_, silent)) = callers.silent.pop_first()
        {
            let _ = silent.shutdown(Shutdown::Both);
        }
        callers.last += 1;
        let number = callers.last;
        callers.silent.insert(number, Arc::clone(&caller));
        number
    };
    let attended = {
        let (caller, callers, post) = (Arc::clone(&caller), Arc::clone(callers), post.clone());
        thread::Builder::new().spawn(move || attend(number, &caller, &callers, &post))
    };
    if let Err(error) = attended {
        callers.0.lock().unwrap_or_else(PoisonError::into_inner).silent.remove(&number);
        let _ =
            answer(&caller, &Answer::error(format!("krond could not begin a thread: {error}; try again")));
    }
}

/// Hears a caller out, and answers.
fn attend(number: u64, caller: &UnixStream, callers: &(Mutex<Callers>, Condvar), post: &Post) {
    let request = listen(caller);
    let is_asking = {
        let mut callers = callers.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was_there = callers.silent.remove(&number).is_some();
        let is_asking = was_there && callers.asking < ASKING_MAX;
        callers.asking += usize::from(is_asking);
        is_asking
    };
    if !is_asking {
        let _ = answer(caller, &Answer::error("too many are asking at once: try again"));
        return;
    }
    let _ = answer(caller, &request.map_or_else(Answer::error, |request| ask_daemon(request, post)));
    callers.0.lock().unwrap_or_else(PoisonError::into_inner).asking -= 1;
    callers.1.notify_all();
}

/// What a caller wants.
fn listen(caller: &UnixStream) -> Result<Request, String> {
    let mut line = String::new();
    let mut reader = BufReader::new(caller.take(REQUEST_BYTES_MAX));
    reader.read_line(&mut line).map_err(|error| format!("could not read the request: {error}"))?;
    if line.len() as u64 >= REQUEST_BYTES_MAX {
        return Err(format!("the request has more than {REQUEST_BYTES_MAX} bytes"));
    }
    serde_json::from_str(&line).map_err(|error| format!("could not understand the request: {error}"))
}

fn ask_daemon(request: Request, post: &Post) -> Answer {
    let (sender, receiver) = mpsc::channel();
    post.send(Message::Asked(request, sender));
    receiver.recv_timeout(ANSWER_WITHIN).unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout => Answer::error("krond did not answer in time"),
        RecvTimeoutError::Disconnected => Answer::error("krond has stopped"),
    })
}

/// The way to the socket, however long the path of its directory is: that of a socket may have 107 bytes only.
fn reach(state_dir: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(state_dir, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
    Ok((directory, path.into()))
}

/// A connection to the daemon of a state directory. `None` if there is none.
fn connect(state_dir: &Path) -> io::Result<Option<UnixStream>> {
    let connected = reach(state_dir).and_then(|(_directory, path)| UnixStream::connect(path));
    match connected {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        connected => connected.map(Some),
    }
}

/// The process of the daemon of a state directory, which can be read once it has ended. `None` if there is no
/// daemon, or it is in another namespace.
///
/// # Errors
///
/// If there is one and it cannot be reached.
pub fn process(state_dir: &Path) -> io::Result<Option<OwnedFd>> {
    let Some(stream) = connect(state_dir)? else { return Ok(None) };
    let pid = socket_peercred(&stream)?.pid;
    Ok(pidfd_open(pid, PidfdFlags::empty()).ok())
}

fn answer(mut caller: &UnixStream, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    caller.write_all(&line)
}

/// Asks the daemon of a state directory. `None` if there is none.
///
/// # Errors
///
/// If there is one and it does not answer.
pub fn ask(state_dir: &Path, request: &Request) -> io::Result<Option<Answer>> {
    let Some(mut stream) = connect(state_dir)? else { return Ok(None) };
    stream.set_read_timeout(Some(ANSWER_WITHIN + PATIENCE))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    // Who is refused is told so before everything is said.
    let said = stream.write_all(&line);
    let mut reply = String::new();
    let heard = BufReader::new(&stream).read_line(&mut reply);
    if !reply.ends_with('\n') {
        said?;
        heard?;
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended, or sent the caller away"));
    }
    Ok(Some(serde_json::from_str(&reply)?))
}
