//! The control socket: one request, one answer, a line of JSON each.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::net::sockopt::socket_peercred;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::daemon::Farewell;
use crate::inbox::{Message, Post};

/// The name of the socket in the state directory.
pub const SOCKET: &str = "control.sock";

/// The longest request.
const REQUEST_BYTES_MAX: u64 = 64 * 1024;

/// The most that talk at a time. Others are told to come back.
const CALLERS_MAX: usize = 32;

/// How long a caller may take to say what it wants, or to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an answer may take. A run waits for its state to be durable.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

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
    /// A run now.
    Run {
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

/// Starts to listen. The socket of a daemon that is gone is replaced: whoever calls this holds the lock.
pub(crate) fn start(state_dir: &Path, post: Post) -> io::Result<()> {
    let path = state_dir.join(SOCKET);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    rustix::fs::chmod(&path, Mode::RUSR | Mode::WUSR)?;
    let talking = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            if talking.fetch_add(1, Ordering::Relaxed) >= CALLERS_MAX {
                talking.fetch_sub(1, Ordering::Relaxed);
                let _ = answer(&caller, &Answer::error("too many are asking at once: try again"));
                continue;
            }
            let (post, talking) = (post.clone(), Arc::clone(&talking));
            thread::spawn(move || {
                let _ = talk(&caller, &post);
                talking.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok(())
}

fn talk(caller: &UnixStream, post: &Post) -> io::Result<()> {
    caller.set_read_timeout(Some(PATIENCE))?;
    caller.set_write_timeout(Some(PATIENCE))?;
    let peer = socket_peercred(caller)?.uid;
    if !peer.is_root() && peer != rustix::process::geteuid() {
        return answer(caller, &Answer::error("only root and the user that runs krond may ask"));
    }
    let mut line = String::new();
    BufReader::new(caller.take(REQUEST_BYTES_MAX)).read_line(&mut line)?;
    let request = match serde_json::from_str::<Request>(&line) {
        Ok(request) => request,
        Err(error) => {
            return answer(caller, &Answer::error(format!("could not understand the request: {error}")));
        }
    };
    let (sender, receiver) = mpsc::channel();
    post.send(Message::Asked(request, sender));
    let reply = receiver.recv_timeout(ANSWER_WITHIN);
    answer(caller, &reply.unwrap_or_else(|_| Answer::error("krond did not answer in time")))
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
    let mut stream = match UnixStream::connect(state_dir.join(SOCKET)) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    stream.set_read_timeout(Some(ANSWER_WITHIN + PATIENCE))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(Some(serde_json::from_str(&reply)?))
}
