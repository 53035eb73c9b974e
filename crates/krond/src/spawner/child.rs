//! The child, from its making to its program.

use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Access, Mode, access};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::{Rlimit, chdir, getpid, set_parent_process_death_signal, setrlimit, setsid, umask};

use super::account::{Account, Role};
use super::environment::{From, environment};
use super::output::Outputs;
use super::wire::{self, Reply};
use super::{Launch, Limit, NOT_STARTED, Resource, Stage, Ticket};
use crate::children;
use crate::sys::{self, Single};

/// What all children stand on.
pub(crate) struct Ground {
    /// Whoever runs krond.
    pub(crate) own: Account,
    /// The limit on open files, if the spawner has changed its own.
    pub(crate) open_files: Option<Rlimit>,
}

/// Is the child: sets itself up, waits at the gate, and becomes the program, or exits.
///
/// It is a copy of the spawner, whose values are around it and not its own: it drops none of them, and never returns.
pub(crate) fn run(
    single: &Single,
    launch: &Launch,
    ground: &Ground,
    socket: BorrowedFd<'_>,
    gate: BorrowedFd<'_>,
) -> ! {
    let _guard = ExitOnUnwind;
    let Err(trouble) = attempt(single, launch, ground, socket, gate);
    // If krond does not hear it, it has ended, and nobody needs to know.
    let _ = say(socket, &trouble.reply(launch.ticket));
    sys::exit(NOT_STARTED)
}

fn attempt(
    single: &Single,
    launch: &Launch,
    ground: &Ground,
    socket: BorrowedFd<'_>,
    gate: BorrowedFd<'_>,
) -> Result<Infallible, Trouble> {
    // First of all: as long as a child keeps the other gates, they do not close when the spawner ends.
    sys::close_all_but(&mut [socket, gate]).map_err(|error| Trouble::io(Stage::Descriptors, error))?;
    sys::unblock_signals().map_err(|error| Trouble::io(Stage::Signals, error))?;
    set_parent_process_death_signal(None).map_err(|error| Trouble::io(Stage::Signals, error))?;
    setsid().map_err(|error| Trouble::io(Stage::Session, error))?;
    let pid = getpid().as_raw_nonzero().get().unsigned_abs();
    let start_ticks = children::start_ticks(pid)
        .and_then(|ticks| ticks.ok_or_else(|| io::Error::other("it is not in /proc")))
        .map_err(|error| Trouble::io(Stage::Identity, error))?;
    limit(launch, ground)?;
    let role = Role::of(launch, &ground.own)?;
    // The log is reached with krond's rights, and everything else with the user's.
    let outputs = Outputs::reach(launch)?;
    role.assume()?;
    outputs.connect(single, launch, pid)?;
    enter(launch, &role.account)?;
    if let Some(mask) = launch.umask {
        umask(Mode::from_raw_mode(mask));
    }
    let argv = texts(launch.argv.iter().map(OsString::from))?;
    let from = if launch.inherit_env {
        From::Krond(std::env::vars_os().collect())
    } else {
        From::Clean { lang: std::env::var_os("LANG") }
    };
    let env = environment(from, &role.account, &launch.env);
    let env = texts(env.into_iter().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name
    }))?;
    runnable(launch)?;

    let ready = Reply::Ready { ticket: launch.ticket, pid, start_ticks };
    say(socket, &ready).map_err(|error| Trouble::io(Stage::Gate, error))?;
    // Now krond can hear that the spawner has ended, though this child has not.
    sys::close_all_but(&mut [gate]).map_err(|error| Trouble::io(Stage::Gate, error))?;
    if !is_opened(gate) {
        sys::exit(NOT_STARTED);
    }
    let Some(program) = argv.first() else { sys::exit(NOT_FOUND) };
    let error = sys::exec(program, &argv, &env);
    eprintln!("krond: could not run `{}`: {error}", launch.argv[0]);
    sys::exit(match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NOT_FOUND,
        _ => NOT_RUNNABLE,
    })
}

/// How a run exits whose program is no longer there, as a shell says it.
const NOT_FOUND: i32 = 127;

/// How a run exits whose program can no longer be run, as a shell says it.
const NOT_RUNNABLE: i32 = 126;

fn limit(launch: &Launch, ground: &Ground) -> Result<(), Trouble> {
    use rustix::process::Resource as R;
    if let Some(limit) = ground.open_files {
        setrlimit(R::Nofile, limit).map_err(|error| Trouble::io(Stage::Limits, error))?;
    }
    for Limit { resource, soft, hard } in &launch.limits {
        let which = match resource {
            Resource::AddressSpace => R::As,
            Resource::Core => R::Core,
            Resource::Cpu => R::Cpu,
            Resource::Data => R::Data,
            Resource::FileSize => R::Fsize,
            Resource::Memlock => R::Memlock,
            Resource::OpenFiles => R::Nofile,
            Resource::Processes => R::Nproc,
            Resource::Stack => R::Stack,
        };
        let limit = Rlimit { current: *soft, maximum: *hard };
        setrlimit(which, limit)
            .map_err(|error| Trouble::new(Stage::Limits, format!("could not limit {resource:?}: {error}")))?;
    }
    Ok(())
}

/// Enters the directory of the run.
fn enter(launch: &Launch, account: &Account) -> Result<(), Trouble> {
    let enter = |path: &Path| {
        chdir(path).map_err(|error| {
            Trouble::new(Stage::Directory, format!("could not enter `{}`: {error}", path.display()))
        })
    };
    match &launch.cwd {
        Some(path) => enter(path),
        // The spawner is in `/` already.
        None if account.home.is_absolute() => enter(&account.home).or_else(|_| enter(Path::new("/"))),
        None => enter(Path::new("/")),
    }
}

fn texts(texts: impl Iterator<Item = OsString>) -> Result<Vec<CString>, Trouble> {
    texts
        .map(|text| CString::new(text.into_vec()))
        .collect::<Result<_, _>>()
        .map_err(|_| Trouble::new(Stage::Arguments, "an argument or a variable has a zero byte in it"))
}

/// Looks whether the user can run the program, as far as that can be known before.
fn runnable(launch: &Launch) -> Result<(), Trouble> {
    let trouble = |problem: &dyn fmt::Display| {
        let program = launch.argv.first().map_or("", String::as_str);
        Err(Trouble::new(Stage::Program, format!("could not run `{program}`: {problem}")))
    };
    let Some(program) = launch.argv.first().map(Path::new).filter(|program| program.is_absolute()) else {
        return trouble(&"it is not an absolute path");
    };
    match program.metadata() {
        Err(error) => return trouble(&error),
        Ok(found) if found.is_dir() => return trouble(&"it is a directory"),
        Ok(found) if found.file_type().is_fifo() || found.file_type().is_socket() => {
            return trouble(&"it is not a file");
        }
        Ok(_) => {}
    }
    // The real user is asked for, and by now is the effective one.
    match access(program, Access::EXEC_OK) {
        Ok(()) => Ok(()),
        Err(error) => trouble(&error),
    }
}

/// Waits until the gate opens or closes.
fn is_opened(gate: BorrowedFd<'_>) -> bool {
    loop {
        match rustix::io::read(gate, &mut [0; 1]) {
            Err(Errno::INTR) => {}
            read => return read == Ok(1),
        }
    }
}

fn say(socket: BorrowedFd<'_>, reply: &Reply) -> io::Result<()> {
    let frame = wire::frame(reply)?;
    loop {
        match send(socket, &frame, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            sent => return sent.map(drop).map_err(io::Error::from),
        }
    }
}

/// Why a child cannot be: what it was doing, and what went wrong.
#[derive(Debug)]
pub(crate) struct Trouble {
    stage: Stage,
    error: String,
}

impl Trouble {
    pub(crate) fn new(stage: Stage, error: impl Into<String>) -> Trouble {
        Trouble { stage, error: error.into() }
    }

    pub(crate) fn io(stage: Stage, error: impl Into<io::Error>) -> Trouble {
        Trouble::new(stage, error.into().to_string())
    }

    fn reply(mut self, ticket: Ticket) -> Reply {
        let end = (0..=ERROR_MAX).rev().find(|&end| self.error.is_char_boundary(end));
        self.error.truncate(end.unwrap_or_default());
        Reply::Failed { ticket, stage: self.stage, error: self.error }
    }
}

/// The longest text of an error: with every byte escaped, it still fits into a packet.
const ERROR_MAX: usize = 2 << 10;

/// A copy of the spawner must never go on as a second one, so a panic ends it here.
struct ExitOnUnwind;

impl Drop for ExitOnUnwind {
    fn drop(&mut self) {
        sys::exit(NOT_STARTED);
    }
}
