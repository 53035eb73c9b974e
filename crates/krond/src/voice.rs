//! The threads that tell people: one prints the log, one keeps the records. Neither can hold up the daemon.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use crate::log::{Format, Line};
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
    lines: Sender<String>,
    notes: Sender<Note>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
enum Note {
    Records(Vec<RecordView>),
    Metrics(String),
}

impl Voice {
    /// Starts both.
    pub(crate) fn start(outcomes: Outcomes, metrics_file: Option<PathBuf>, format: Format) -> Voice {
        let (lines, to_print) = mpsc::channel();
        let (notes, to_keep) = mpsc::channel();
        let complain = lines.clone();
        let threads = vec![
            thread::spawn(move || print(&to_print)),
            thread::spawn(move || keep(outcomes, metrics_file.as_ref(), &to_keep, &complain, format)),
        ];
        Voice { lines, notes, threads }
    }

    /// Prints a line.
    pub(crate) fn print(&self, line: String) {
        let _ = self.lines.send(line);
    }

    /// Writes records down.
    pub(crate) fn keep(&self, records: Vec<RecordView>) {
        if !records.is_empty() {
            let _ = self.notes.send(Note::Records(records));
        }
    }

    /// Replaces the file of metrics.
    pub(crate) fn publish(&self, metrics: String) {
        let _ = self.notes.send(Note::Metrics(metrics));
    }

    /// Waits until everything is told.
    pub(crate) fn close(self) {
        let Voice { lines, notes, threads } = self;
        drop((lines, notes));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

fn print(lines: &Receiver<String>) {
    for line in lines {
        // Where nobody listens, nobody is told.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

fn keep(
    mut outcomes: Outcomes,
    metrics_file: Option<&PathBuf>,
    notes: &Receiver<Note>,
    complain: &Sender<String>,
    format: Format,
) {
    for note in notes {
        let (what, kept) = match note {
            Note::Records(records) => ("write outcomes", outcomes.write(&records)),
            Note::Metrics(text) => ("write metrics", replace(metrics_file, &text)),
        };
        if let Err(error) = kept {
            let line = Line::new(crate::clock::now().wall, crate::log::Level::Error, "scheduler", "error");
            let line = line.with("operation", what).with("error", error.to_string());
            let _ = complain.send(line.render(format));
        }
    }
}

/// Replaces a file at once, so that no collector reads half of it.
fn replace(path: Option<&PathBuf>, text: &str) -> io::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let mut temporary = path.clone().into_os_string();
    temporary.push(".tmp");
    fs::write(&temporary, text)?;
    fs::rename(&temporary, path)
}
