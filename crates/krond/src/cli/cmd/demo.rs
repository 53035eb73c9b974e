//! `krond demo`.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use krond::control::{self, Request};
use krond::daemon::Farewell;
use krond::host;
use krond::paths::Paths;
use krond::settings::Settings;
use krond::voice::Style;

use crate::cli::answer::{Answer, Failure, has_colours};

/// Runs a handful of lively jobs in a temporary directory, and tells what happens. Ctrl-C ends it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  krond demo\n  krond demo --seconds 60\n\nWhat it does is forgotten when it ends.\n\n\
                  Exit codes: 0 it has ended; 2 there is no place for it; 4 the system does not work."
)]
pub(crate) struct Args {
    /// End after so many seconds
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
}

/// The jobs of the demonstration.
const KRONTAB: &str = include_str!("demo.krontab");

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let failed =
            |error: io::Error| Failure::Usage(format!("could not make a directory to run in: {error}"));
        let directory = temporary().map_err(failed)?;
        let result = self.run_in(&directory);
        let _ = fs::remove_dir_all(&directory);
        result
    }

    fn run_in(&self, directory: &Path) -> Result<Answer, Failure> {
        let failed =
            |error: io::Error| Failure::Usage(format!("could not write {}: {error}", directory.display()));
        let config = directory.join("demo.krontab");
        fs::write(&config, KRONTAB).map_err(failed)?;
        let paths = Paths { config, settings: directory.join("krond.toml"), state: directory.join("state") };
        let settings = Settings::load(None, &paths).map_err(|error| Failure::Usage(error.to_string()))?;
        let settings = Settings { grace: Duration::from_secs(2), on_stop: Farewell::End, ..settings };
        introduce(&settings);
        let page = Page::open(&settings.state_dir);
        if let Some(seconds) = self.seconds {
            end_after(Duration::from_secs(seconds), settings.state_dir.clone()).map_err(Failure::Start)?;
        }
        host::run(&settings, Style::Console { colours: has_colours(&io::stderr()) })
            .map_err(Failure::Start)?;
        drop(page);
        Ok(Answer::text("The demonstration is over; its directory is removed.\n"))
    }
}

fn introduce(settings: &Settings) {
    let state = settings.state_dir.display();
    eprintln!("krond runs these jobs; Ctrl-C ends it.\n");
    for line in KRONTAB.lines() {
        eprintln!("    {line}");
    }
    eprintln!("\nAsk it from another terminal:");
    for command in ["jobs", "history tide", "why tide --at now", "run tide", "status"] {
        eprintln!("    krond {command} --state-dir {state}");
    }
    eprintln!();
}

/// The dashboard of the demonstration: a process of its own, which ends with it.
struct Page(Option<Child>);

impl Page {
    /// Starts it. Where that fails, there is less to look at, and no more.
    fn open(state_dir: &Path) -> Page {
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "krond".into()));
        command.args(["dashboard", "--listen", "127.0.0.1:0", "--user", "root", "--wait", "--state-dir"]);
        Page(command.arg(state_dir).stdin(Stdio::null()).spawn().ok())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

/// Runs are ended with the demonstration, so that nothing of it is left behind.
fn end_after(duration: Duration, state_dir: PathBuf) -> Result<(), host::Failure> {
    let end = move || {
        #[expect(clippy::disallowed_methods, reason = "the demonstration lasts as long as was asked for")]
        thread::sleep(duration);
        let _ = control::ask(&state_dir, &Request::Stop { runs: None });
    };
    let failed = |error| host::Failure::Persistence(format!("could not begin a thread: {error}"));
    thread::Builder::new().spawn(end).map(drop).map_err(failed)
}

/// A directory of one's own, which was not there before.
fn temporary() -> io::Result<PathBuf> {
    let name = |number: u32| format!("krond-demo-{}-{number}", std::process::id());
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..NAMES_MAX {
        let path = std::env::temp_dir().join(name(number));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// How many names are tried.
const NAMES_MAX: u32 = 100;
