//! The life of a worker: fetch, run, answer; and tell the server that it is there.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, Failure, Job};
use crate::process::{self, EndSwitch, Ended, now, pause};

/// How a worker behaves.
#[derive(Debug)]
pub(crate) struct Manners {
    pub(crate) worker_id: String,
    pub(crate) queues: Vec<String>,
    pub(crate) concurrency: usize,
    pub(crate) final_exits: Vec<u8>,
    pub(crate) grace: Duration,
    pub(crate) drain: bool,
    pub(crate) command: Vec<OsString>,
}

/// How often the server hears from a worker.
const BEAT: Duration = Duration::from_secs(5);

/// The first and the longest wait after the server could not be reached.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_LAST: Duration = Duration::from_secs(10);

/// For how long the outcome of a job is told again and again. By then the job is another's.
const ANSWER_PATIENCE: Duration = Duration::from_secs(600);

/// How much of what a command said goes into a failure's message.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// What the threads of a worker share.
struct Worker {
    client: Client,
    manners: Manners,
    /// Jobs under way, and how to end them.
    running: Mutex<HashMap<String, Arc<Run>>>,
    /// Told when a job has ended.
    ended: Condvar,
    /// How often it was asked to end.
    asked: Arc<AtomicUsize>,
    /// The server wants it to fetch no more.
    quiet: AtomicBool,
}

/// A job under way.
#[derive(Default)]
struct Run {
    switch: EndSwitch,
    /// The job is no longer this worker's: nobody wants to hear how it ended.
    disowned: AtomicBool,
    /// It is ended because the worker ends.
    given_up: AtomicBool,
}

/// Works until it is asked to end, or nothing is left to do.
pub(crate) fn work(client: Client, manners: Manners) -> Result<(), String> {
    let asked = Arc::new(AtomicUsize::new(0));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        let asked = Arc::clone(&asked);
        register(signal, move || {
            asked.fetch_add(1, Ordering::SeqCst);
        })?;
    }
    let worker = Arc::new(Worker {
        client,
        manners,
        running: Mutex::default(),
        ended: Condvar::new(),
        asked,
        quiet: AtomicBool::new(false),
    });
    tracing::info!(worker = worker.manners.worker_id, queues = ?worker.manners.queues, "working");
    let beating = Arc::clone(&worker);
    thread::Builder::new().spawn(move || beating.beat_on()).map_err(|error| format!("no thread: {error}"))?;
    worker.fetch_on()?;
    worker.finish();
    tracing::info!("ended");
    Ok(())
}

/// Calls back for each signal, from a thread of its own.
fn register(signal: i32, count: impl Fn() + Send + 'static) -> Result<(), String> {
    let mut signals =
        signal_hook::iterator::Signals::new([signal]).map_err(|error| format!("no signals: {error}"))?;
    let wait = move || signals.forever().for_each(|_| count());
    thread::Builder::new().spawn(wait).map(drop).map_err(|error| format!("no thread: {error}"))
}

impl Worker {
    fn is_ending(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 0
    }

    /// Fetches jobs and hands each to a thread, never more at once than is allowed.
    fn fetch_on(self: &Arc<Worker>) -> Result<(), String> {
        let mut wait = RETRY_FIRST;
        while !self.is_ending() {
            let free = self.wait_for_room();
            if free == 0 || self.quiet.load(Ordering::SeqCst) {
                pause(RETRY_FIRST);
                continue;
            }
            let Manners { worker_id, queues, .. } = &self.manners;
            match self.client.fetch(worker_id, queues, free, !self.manners.drain) {
                Ok(jobs) if jobs.is_empty() && self.manners.drain && self.is_idle() => return Ok(()),
                Ok(jobs) if jobs.is_empty() && self.manners.drain => pause(RETRY_FIRST),
                Ok(jobs) => {
                    wait = RETRY_FIRST;
                    jobs.into_iter().for_each(|job| self.start(job));
                }
                Err(Failure::Unreachable(why)) => {
                    tracing::warn!(error = why, "the server cannot be reached; trying again");
                    pause(wait);
                    wait = (wait * 2).min(RETRY_LAST);
                }
                Err(refused @ Failure::Refused { .. }) => {
                    return Err(format!("the server refused: {refused}"));
                }
            }
        }
        Ok(())
    }

    /// How many jobs more may be taken, waiting a moment for one to end if there is no room.
    fn wait_for_room(&self) -> usize {
        let most = self.manners.concurrency;
        let running = self.running();
        let (running, _) = self
            .ended
            .wait_timeout_while(running, RETRY_FIRST, |running| running.len() >= most)
            .unwrap_or_else(PoisonError::into_inner);
        most.saturating_sub(running.len())
    }

    fn is_idle(&self) -> bool {
        self.running().is_empty()
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Run>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Worker>, job: Job) {
        let run = Arc::new(Run::default());
        let id = job.id.clone();
        self.running().insert(id.clone(), Arc::clone(&run));
        let (worker, job) = (Arc::clone(self), Arc::new(job));
        let its_job = Arc::clone(&job);
        let work = move || {
            worker.run(&its_job, &run);
            worker.running().remove(&its_job.id);
            worker.ended.notify_all();
        };
        if let Err(error) = thread::Builder::new().spawn(work) {
            tracing::error!(%error, job = id, "no thread for a job; it is given back");
            self.running().remove(&id);
            let _ = self.client.give_back(&self.manners.worker_id, &job);
        }
    }

    /// Runs the command for a job, and tells the server how it ended.
    fn run(&self, job: &Job, run: &Run) {
        let started = now();
        tracing::info!(job = job.id, kind = job.kind, attempt = job.attempt, "begins");
        let ended = process::run(&self.manners.command, job, self.manners.grace, &run.switch);
        let took = started.elapsed().as_millis();
        if run.disowned.load(Ordering::SeqCst) {
            tracing::info!(job = job.id, "ended, and was another's by then");
            return;
        }
        let worker_id = &self.manners.worker_id;
        match ended {
            Ok(ended) if ended.status.success() && !ended.timed_out => {
                tracing::info!(job = job.id, took_ms = took, "done");
                self.tell(|| self.client.ack(worker_id, job, &result(&ended.stdout)));
            }
            Ok(_) if run.given_up.load(Ordering::SeqCst) => {
                tracing::info!(job = job.id, "given back");
                self.tell(|| self.client.give_back(worker_id, job));
            }
            Ok(ended) => {
                tracing::warn!(job = job.id, took_ms = took, end = ended.words(), "failed");
                let error = self.failure(&ended);
                self.tell(|| self.client.nack(worker_id, job, &error));
            }
            Err(error) => {
                tracing::error!(job = job.id, %error, "the command could not be started");
                let message = format!("the command could not be started: {error}");
                let error = json!({"code": "handler_error", "type": "spawn_failed", "message": message});
                self.tell(|| self.client.nack(worker_id, job, &error));
            }
        }
    }

    fn failure(&self, ended: &Ended) -> Value {
        let code = ended.status.code();
        let is_final = code
            .and_then(|code| u8::try_from(code).ok())
            .is_some_and(|code| self.manners.final_exits.contains(&code));
        let kind = if ended.timed_out { "timeout" } else { "exit" };
        let words = if ended.timed_out { format!("timed out ({})", ended.words()) } else { ended.words() };
        let said = tail(ended.stderr.trim_end());
        let message = if said.is_empty() { words } else { format!("{words}: {said}") };
        let mut error = json!({
            "code": "handler_error", "type": kind, "message": message, "details": {"exit_code": code},
        });
        if is_final {
            error["retryable"] = json!(false);
        }
        error
    }

    /// Tells the server something, until it has heard it.
    fn tell(&self, say: impl Fn() -> Result<Value, Failure>) {
        let started = now();
        let mut wait = RETRY_FIRST;
        loop {
            match say() {
                Ok(_) => return,
                // It heard it the first time, or the job is another's by now.
                Err(refused @ Failure::Refused { .. }) => {
                    tracing::warn!(error = %refused, "the server did not take the outcome");
                    return;
                }
                Err(Failure::Unreachable(why))
                    if started.elapsed() < ANSWER_PATIENCE && self.asked.load(Ordering::SeqCst) < 2 =>
                {
                    tracing::warn!(error = why, "the outcome could not be told; trying again");
                    pause(wait);
                    wait = (wait * 2).min(RETRY_LAST);
                }
                Err(Failure::Unreachable(why)) => {
                    tracing::error!(error = why, "the outcome could not be told");
                    return;
                }
            }
        }
    }

    /// Tells the server that the worker is there, and hears what it should do.
    fn beat_on(&self) {
        loop {
            let jobs: Vec<String> = self.running().keys().cloned().collect();
            let state = if self.is_ending() { "quiet" } else { "running" };
            match self.client.beat(&self.manners.worker_id, &jobs, state) {
                Ok(beaten) => {
                    self.quiet.store(beaten.state == "quiet", Ordering::SeqCst);
                    if beaten.state == "terminate" && !self.is_ending() {
                        tracing::info!("the server asks to end");
                        self.asked.store(1, Ordering::SeqCst);
                    }
                    for id in beaten.cancelled_jobs.iter().chain(&beaten.lost_jobs) {
                        self.disown(id);
                    }
                }
                Err(failure) => tracing::warn!(error = %failure, "the server did not hear a heartbeat"),
            }
            pause(BEAT);
        }
    }

    /// A job is no longer this worker's: its command is ended.
    fn disown(&self, id: &str) {
        let run = self.running().get(id).cloned();
        if let Some(run) = run
            && !run.disowned.swap(true, Ordering::SeqCst)
        {
            tracing::info!(job = id, "was cancelled or is another's; it is ended");
            run.switch.ask();
        }
    }

    /// Lets what runs end, and then ends it.
    fn finish(&self) {
        let started = now();
        let mut told = false;
        while !self.is_idle() {
            let (asked, waited) = (self.asked.load(Ordering::SeqCst), started.elapsed());
            let runs: Vec<Arc<Run>> = self.running().values().cloned().collect();
            if asked >= 2 || waited >= self.manners.grace * 2 {
                runs.iter().for_each(|run| run.switch.kill());
            } else if waited >= self.manners.grace && !told {
                told = true;
                for run in runs {
                    run.given_up.store(true, Ordering::SeqCst);
                    run.switch.ask();
                }
            }
            pause(Duration::from_millis(50));
        }
    }
}

/// What a command wrote, as the result of its job: JSON if it is, and else a text.
fn result(stdout: &str) -> Value {
    match serde_json::from_str(stdout) {
        Ok(value) => value,
        Err(_) if stdout.is_empty() => Value::Null,
        Err(_) => json!({"output": stdout}),
    }
}

/// The end of a text.
fn tail(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(MESSAGE_CHARS_MAX);
    text.chars().skip(skipped).collect()
}
