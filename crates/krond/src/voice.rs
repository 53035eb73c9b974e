//! The threads that tell people: one prints the log, one keeps the records. Neither can hold up the daemon.

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use crate::inbox::Post;
use crate::log::{Format, Level, Line};
use crate::metrics;
use crate::outcomes::Outcomes;
use crate::view::RecordView;

/// What is printed while the daemon runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    /// The log.
    Log(Format),
    /// A line for each thing that a person who watches wants to know.
    Console {
        /// Whether in colours.
        colours: bool,
    },
}

/// The way to both threads. They end, and have told everything, when it is [closed](Voice::close).
#[derive(Debug)]
pub(crate) struct Voice {
    lines: Queue<String>,
    notes: Queue<Note>,
    format: Format,
    /// Both threads hold the other end until they have told everything.
    done: Receiver<Infallible>,
}

#[derive(Debug)]
enum Note {
    Records(Vec<RecordView>),
    Metrics(String),
}

/// How much may wait to be told. Where nobody reads, the rest is counted and not kept.
const WAITING_MAX: usize = 1 << 20;

/// How often records that the disk did not take are tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// How long the end of the daemon may wait for who does not read.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Things on their way to a thread.
#[derive(Clone, Debug)]
struct Queue<T> {
    sender: Sender<T>,
    waiting: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

impl<T> Queue<T> {
    fn new() -> (Queue<T>, Taker<T>) {
        let (sender, receiver) = mpsc::channel();
        let waiting = Arc::<AtomicUsize>::default();
        let queue = Queue { sender, waiting: Arc::clone(&waiting), dropped: Arc::default() };
        (queue, Taker { receiver, waiting })
    }

    /// Sends it, or counts it as dropped. Tells how many were dropped before it.
    fn send(&self, thing: T) -> usize {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return 0;
        }
        let _ = self.sender.send(thing);
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

/// The other end of a queue.
struct Taker<T> {
    receiver: Receiver<T>,
    waiting: Arc<AtomicUsize>,
}

impl<T> Taker<T> {
    /// The next thing, unless there is none for so long, or never will be.
    fn next_within(&mut self, time: Duration) -> Result<T, RecvTimeoutError> {
        let taken = self.receiver.recv_timeout(time)?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Ok(taken)
    }
}

impl<T> Iterator for Taker<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let taken = self.receiver.recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(taken)
    }
}

impl Voice {
    /// Starts both.
    pub(crate) fn start(
        outcomes: Outcomes,
        metrics_file: Option<PathBuf>,
        format: Format,
        post: &Post,
    ) -> io::Result<Voice> {
        let (lines, to_print) = Queue::new();
        let (notes, to_keep) = Queue::new();
        let complain = lines.clone();
        let (at_work, done) = mpsc::channel();
        let also_at_work = at_work.clone();
        post.thread("log", move |_| {
            print(to_print);
            drop(at_work);
        })?;
        post.thread("records", move |_| {
            keep(outcomes, metrics_file.as_ref(), to_keep, &complain, format);
            drop(also_at_work);
        })?;
        Ok(Voice { lines, notes, format, done })
    }

    /// Prints a line.
    pub(crate) fn print(&self, line: String) {
        let dropped = self.lines.send(line);
        self.tell_dropped("write log", dropped);
    }

    /// Writes records down.
    pub(crate) fn keep(&self, records: Vec<RecordView>) {
        if !records.is_empty() {
            let dropped = self.notes.send(Note::Records(records));
            self.tell_dropped("write outcomes", dropped);
        }
    }

    /// Replaces the file of metrics.
    pub(crate) fn publish(&self, metrics: String) {
        self.notes.send(Note::Metrics(metrics));
    }

    fn tell_dropped(&self, operation: &'static str, dropped: usize) {
        if dropped > 0 {
            let error = format!("{dropped} were dropped, because nobody took them");
            self.lines.send(complaint(operation, &error).render(self.format));
        }
    }

    /// Waits until everything is told, but not for ever.
    pub(crate) fn close(self) {
        let Voice { lines, notes, done, .. } = self;
        drop((lines, notes));
        let _ = done.recv_timeout(CLOSE_WITHIN);
    }
}

fn complaint(operation: &'static str, error: &str) -> Line {
    let line = Line::new(crate::clock::now().wall, Level::Error, "scheduler", "error");
    line.with("operation", operation).with("error", error)
}

fn print(lines: impl Iterator<Item = String>) {
    for line in lines {
        // Where nobody listens, nobody is told.
        // In one piece, for others may write to the same place.
        let _ = io::stderr().lock().write_all((line + "\n").as_bytes());
    }
}

fn keep(
    mut outcomes: Outcomes,
    metrics_file: Option<&PathBuf>,
    mut notes: Taker<Note>,
    complain: &Queue<String>,
    format: Format,
) {
    loop {
        let note = if outcomes.is_waiting() {
            notes.next_within(RETRY_EVERY)
        } else {
            notes.next().ok_or(RecvTimeoutError::Disconnected)
        };
        let (what, kept) = match note {
            Ok(Note::Records(records)) => ("write outcomes", outcomes.write(records)),
            Ok(Note::Metrics(text)) => {
                ("write metrics", metrics_file.map_or(Ok(()), |path| metrics::publish(path, &text)))
            }
            // That it fails was told when it did so first.
            Err(RecvTimeoutError::Timeout) => ("write outcomes", outcomes.write([]).or(Ok(()))),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Err(error) = kept {
            complain.send(complaint(what, &error.to_string()).render(format));
        }
    }
    if outcomes.is_waiting() {
        let _ = outcomes.write([]);
    }
}
