//! One job's process: started in a group of its own, fed, listened to, and ended with all it started.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::client::Job;

/// How much of what a command writes is kept: the end of it.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// How long pipes are read after the command has ended. Something it left behind may hold them open.
const PIPES_PATIENCE: Duration = Duration::from_secs(1);

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Whether it took longer than the job allows.
    pub(crate) timed_out: bool,
}

impl Ended {
    /// In words: `exit status 3`, `signal 9`.
    pub(crate) fn words(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown end".into(),
        }
    }
}

/// A wish that a process end.
#[derive(Debug, Default)]
pub(crate) struct EndSwitch(Mutex<Option<Pid>>);

impl EndSwitch {
    /// Asks the process to end, if it runs.
    pub(crate) fn ask(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // It may be gone already.
            let _ = kill_process_group(group, signal);
        }
    }

    fn set(&self, group: Option<Pid>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = group;
    }
}

/// Runs the command for a job until it ends, or is ended.
pub(crate) fn run(command: &[OsString], job: &Job, grace: Duration, switch: &EndSwitch) -> io::Result<Ended> {
    let mut child = spawn(command, job)?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    switch.set(group);
    feed(&mut child, job);
    let stdout = listen(child.stdout.take());
    let stderr = listen(child.stderr.take());
    let (status, timed_out) = wait(&mut child, job.timeout_ms.map(Duration::from_millis), grace, switch)?;
    // Whatever it started ends with it.
    switch.kill();
    switch.set(None);
    Ok(Ended { status, stdout: stdout.end(), stderr: stderr.end(), timed_out })
}

fn spawn(command: &[OsString], job: &Job) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("KRON_JOB_ID", &job.id)
        .env("KRON_JOB_TYPE", &job.kind)
        .env("KRON_JOB_QUEUE", &job.queue)
        .env("KRON_JOB_ATTEMPT", job.attempt.to_string())
        .env("KRON_JOB_META", job.meta.get())
        .env("KRON_FENCE", job.fence.map(|fence| fence.to_string()).unwrap_or_default())
        // What lets a worker in is none of its jobs' business.
        .env_remove("KRON_TOKEN");
    for (variable, name) in [("KRON_CRON_NAME", "cron_name"), ("KRON_CRON_TRIGGERED_AT", "cron_triggered_at")]
    {
        match job.meta(name) {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()
}

/// Writes the arguments to the command, which may not want them.
fn feed(child: &mut Child, job: &Job) {
    let Some(mut stdin) = child.stdin.take() else { return };
    let args = job.args.get().to_owned();
    let write = move || drop(stdin.write_all(args.as_bytes()).and_then(|()| stdin.write_all(b"\n")));
    if let Err(error) = thread::Builder::new().spawn(write) {
        tracing::warn!(%error, "no thread to write the arguments with");
    }
}

/// Waits for the command, and ends it when its time is up.
fn wait(
    child: &mut Child,
    limit: Option<Duration>,
    grace: Duration,
    switch: &EndSwitch,
) -> io::Result<(ExitStatus, bool)> {
    let started = now();
    let mut asked: Option<Instant> = None;
    let mut killed = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, asked.is_some()));
        }
        let elapsed = started.elapsed();
        match (limit, asked) {
            (Some(limit), None) if elapsed >= limit => {
                asked = Some(now());
                switch.ask();
            }
            (_, Some(at)) if at.elapsed() >= grace && !killed => {
                killed = true;
                switch.kill();
            }
            _ => {}
        }
        // Short jobs are not kept waiting, and long ones cost nothing.
        pause((elapsed / 10).clamp(POLL_MIN, POLL_MAX));
    }
}

const POLL_MIN: Duration = Duration::from_millis(2);
const POLL_MAX: Duration = Duration::from_millis(100);

/// The end of what a pipe says.
struct Heard {
    kept: Arc<Mutex<Vec<u8>>>,
    done: Receiver<()>,
}

fn listen(pipe: Option<impl Read + Send + 'static>) -> Heard {
    let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
    let (tell, done) = mpsc::channel();
    let keep = Arc::clone(&kept);
    let read = move || {
        let Some(mut pipe) = pipe else { return };
        let mut piece = [0; 8 * 1024];
        while let Ok(read @ 1..) = pipe.read(&mut piece) {
            let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&piece[..read]);
            let over = kept.len().saturating_sub(KEPT_BYTES_MAX);
            kept.drain(..over);
        }
        let _ = tell.send(());
    };
    if let Err(error) = thread::Builder::new().spawn(read) {
        tracing::warn!(%error, "no thread to read what the command says");
    }
    Heard { kept, done }
}

impl Heard {
    fn end(self) -> String {
        match self.done.recv_timeout(PIPES_PATIENCE) {
            Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a command takes is measured here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
pub(crate) fn pause(time: Duration) {
    thread::sleep(time);
}
