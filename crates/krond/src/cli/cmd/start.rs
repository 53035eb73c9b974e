//! `krond start`.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::ValueEnum;
use krond::control::{self, Request};
use krond::directory::Directory;
use krond::host;
use krond::log;
use krond::settings::Settings;
use krond::voice::Style;

use crate::cli::answer::{Answer, Failure};
use crate::cli::place::{Place, absolute};

/// Starts the daemon.
///
/// It goes to the background once it runs, unless told otherwise, and then logs to `krond.log` in the state directory.
/// `krond reload` opens that file anew.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  krond start\n  krond start --foreground --log-format json\n  \
                        krond start --config ./jobs.kron --state-dir ./state --foreground\n\n\
                        Exit codes: 0 a clean end; 1 an error in a krontab; 2 a state that cannot be used, or \
                        wrong arguments; 3 another krond has the state directory; 4 the system does not work.")]
pub(crate) struct Args {
    /// The krontabs: a directory, or one file [default: /etc/krond.d, for a person ~/.config/krond]
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Stay here, and log to standard error
    #[arg(long)]
    foreground: bool,
    /// How lines of the log are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Be in the background: in a session of its own, with its log there
    #[arg(long, hide = true, requires = "foreground", value_name = "FILE")]
    detached_log: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// `key=value`
    Text,
    /// An object a line
    Json,
}

/// The log of a daemon in the background, in its state directory.
const LOG: &str = "krond.log";

/// How long a daemon may take to come up. A million states take a while.
const UP_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let mut settings = self.place.settings()?;
        if let Some(config) = &self.config {
            settings.config = absolute(config)?;
        }
        if !self.foreground {
            return self.start_in_background(&settings);
        }
        if let Some(path) = &self.detached_log {
            // It cannot be the leader of a group, so it can be that of a session, which no terminal ends.
            let _ = rustix::process::setsid();
            settings.log_file = Some(absolute(path)?);
        }
        let format = match self.log_format {
            LogFormat::Text => log::Format::Text,
            LogFormat::Json => log::Format::Json,
        };
        host::run(&settings, Style::Log(format)).map_err(Failure::Start)?;
        Ok(Answer::text(""))
    }

    fn start_in_background(&self, settings: &Settings) -> Result<Answer, Failure> {
        let system = |error: io::Error| Failure::Start(host::Failure::Persistence(error.to_string()));
        let state_dir = &settings.state_dir;
        // It is checked before anything is written into it.
        Directory::open(state_dir).map_err(|error| Failure::Start(error.into()))?;
        if control::ask(state_dir, &Request::Status).ok().flatten().is_some() {
            let why = format!("krond is running already, with its state in {}", state_dir.display());
            return Err(Failure::Start(host::Failure::Lock(why)));
        }
        let path = state_dir.join(LOG);
        let log = log::open(&path).map_err(system)?;
        let before = log.metadata().map_err(system)?.len();
        let mut command = Command::new("/proc/self/exe");
        command.arg0("krond").args(["start", "--foreground"]);
        command.arg("--config").arg(&settings.config).arg("--state-dir").arg(state_dir);
        if let Some(path) = &self.place.settings {
            command.arg("--settings").arg(absolute(path)?);
        }
        if let LogFormat::Json = self.log_format {
            command.args(["--log-format", "json"]);
        }
        command.arg("--detached-log").arg(&path);
        command.current_dir("/").stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(system)?).stderr(log);
        let mut child = command.spawn().map_err(system)?;
        self.wait_until_up(&mut child, settings)?.map_err(|code| {
            let said = std::fs::read(&path).unwrap_or_default();
            let said = said.get(usize::try_from(before).unwrap_or(0)..).unwrap_or_default();
            let said = String::from_utf8_lossy(said);
            Failure::Ended(code, said.trim().trim_start_matches("error: ").to_owned())
        })?;
        let (pid, path) = (child.id(), path.display());
        Ok(Answer::text(format!("krond is running (pid {pid}); its log is {path}\n")))
    }

    /// Waits until the daemon answers, or has ended with a code.
    fn wait_until_up(&self, child: &mut Child, settings: &Settings) -> Result<Result<(), u8>, Failure> {
        let system = |error: io::Error| Failure::Start(host::Failure::Persistence(error.to_string()));
        for _ in 0..UP_WITHIN.as_millis() / LOOK_EVERY.as_millis() {
            if let Some(status) = child.try_wait().map_err(system)? {
                let code = status.code().and_then(|code| u8::try_from(code).ok());
                return Ok(Err(code.filter(|code| *code != 0).unwrap_or(4)));
            }
            if control::ask(&settings.state_dir, &Request::Status).ok().flatten().is_some() {
                return Ok(Ok(()));
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "somebody waits for this command, and nothing else does"
            )]
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = child.kill();
        let why = format!("krond did not come up within {} s", UP_WITHIN.as_secs());
        Err(Failure::Start(host::Failure::Persistence(why)))
    }
}
