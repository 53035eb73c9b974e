//! `krond dashboard`.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use kron_dashboard::{Dashboard, Guard, MOUNT};
use krond::dashboard::{HostBoard, Line, relay};
use nix::unistd::User;
use rustix::process::{Signal, geteuid, set_parent_process_death_signal};

use crate::cli::answer::{Answer, Failure};
use crate::cli::place::Place;

/// Serves a web page that shows what ran, what runs, what comes next, and why. It is a process of its own that asks krond
/// at its control socket; started as root it becomes another user, and root passes its questions on.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  krond dashboard\n  krond dashboard --listen 127.0.0.1:9000 --read-only\n\n\
                  To look at it from elsewhere: ssh -L 8180:127.0.0.1:8180 HOST\n\n\
                  Exit codes: 0 ended; 1 krond is not running; 2 anything else."
)]
pub(crate) struct Args {
    /// Where to listen, on this machine alone
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8180")]
    listen: SocketAddr,
    /// Another name under which it is reached, with its port. May be repeated
    #[arg(long = "host", value_name = "NAME:PORT")]
    hosts: Vec<String>,
    /// The user to become when started as root. It must be able to read the krontabs
    #[arg(long, value_name = "USER", default_value = "nobody")]
    user: String,
    /// Let nobody run jobs from the page
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    place: Place,
    /// Begin before krond does, and end with whoever started it
    #[arg(long, hide = true)]
    wait: bool,
    /// Ask at standard input, where somebody passes questions on
    #[arg(long, hide = true)]
    relayed: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        if !self.listen.ip().is_loopback() {
            return Err(Failure::Usage(format!(
                "--listen: expected an address of this machine alone, such as 127.0.0.1:8180, but found {}: \
                 nobody has to sign in here",
                self.listen
            )));
        }
        if self.relayed || self.wait {
            // It is of no use without whoever started it.
            set_parent_process_death_signal(Some(Signal::TERM))
                .map_err(|error| Failure::Usage(format!("could not start: {error}")))?;
        }
        if self.relayed {
            let stdin = rustix::io::dup(rustix::stdio::stdin())
                .map_err(|error| Failure::Usage(format!("could not start: {error}")))?;
            return self.serve(Line::Relay(Mutex::new(UnixStream::from(stdin))));
        }
        let settings = self.place.settings()?;
        if !self.wait {
            let _: krond::view::StatusView = self.place.ask(&krond::control::Request::Status)?;
        }
        if geteuid().is_root() && self.user != "root" {
            let failed = |error: io::Error| Failure::Usage(format!("could not start: {error}"));
            let user = find_user(&self.user)?;
            let (mut child, stream) = self.spawn(Some(&user)).map_err(failed)?;
            // Whether it ends well or not, it has said why.
            let _ = relay(&stream, &settings.state_dir, !self.read_only);
            drop(stream);
            let status = child.wait().map_err(failed)?;
            let code = u8::try_from(status.code().unwrap_or(1)).unwrap_or(1);
            return Ok(Answer::text("").ending(code));
        }
        self.serve(Line::Socket(settings.state_dir))
    }

    /// Starts this program again, as another user, with somebody at its standard input who passes questions on.
    fn spawn(&self, user: Option<&User>) -> io::Result<(Child, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["dashboard", "--relayed", "--listen", &self.listen.to_string()]);
        for host in &self.hosts {
            command.args(["--host", host]);
        }
        if self.read_only {
            command.arg("--read-only");
        }
        if let Some(user) = user {
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        }
        command.env_clear().current_dir("/").stdin(Stdio::from(OwnedFd::from(theirs)));
        Ok((command.spawn()?, ours))
    }

    fn serve(&self, line: Line) -> Result<Answer, Failure> {
        let failed =
            |error: io::Error| Failure::Usage(format!("could not listen on {}: {error}", self.listen));
        let listener = TcpListener::bind(self.listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let guard = Guard::new(address.port(), self.hosts.iter().cloned().chain([address.to_string()]));
        let board = HostBoard::new(line, !self.read_only);
        let mut err = io::stderr().lock();
        // Nobody may be reading; the page is served all the same.
        // In one piece, for krond may write lines of its own to the same place.
        let line = format!("krond dashboard at http://{address}{MOUNT}\n");
        let _ = err.write_all(line.as_bytes()).and_then(|()| err.flush());
        drop(err);
        kron_dashboard::serve::serve(&listener, Dashboard::new(guard), board);
        Ok(Answer::text(""))
    }
}

fn find_user(name: &str) -> Result<User, Failure> {
    let found = User::from_name(name).map_err(|error| Failure::Usage(format!("--user: {error}")))?;
    found.ok_or_else(|| Failure::Usage(format!("--user: there is no user called {name}")))
}
