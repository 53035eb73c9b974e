//! A krond with nothing but hands, in a process of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use krond::children::{self, Exit, PidFd, Signal};
use krond::clock;
use krond::process::ProcessId;
use krond::spawner::{Answer, Launch, Spawner, Stage, Ticket};
use krontab::{Output, Program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A test that has a process of its own. It waits for all children and counts descriptors, and others would see it.
/// `under` is a command that starts that process, such as `setpriv`.
macro_rules! alone {
    ($(#[$meta:meta])* fn $name:ident() $body:block) => {
        alone!($(#[$meta])* fn $name() under [] $body);
    };
    ($(#[$meta:meta])* fn $name:ident() under [$($under:expr),*] $body:block) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            let name = concat!(module_path!(), "::", stringify!($name));
            $crate::world::alone(name, &[$($under),*], || $body);
        }
    };
}

/// Runs the body in another process, which is this test once more.
pub(crate) fn alone(name: &str, under: &[&str], body: impl FnOnce()) {
    let name = name.split_once("::").expect("a module and a name").1;
    if env::var_os(ALONE).is_some_and(|alone| alone == name) {
        return body();
    }
    if !is_root() {
        println!("skipped: `{name}` wants root");
        return;
    }
    let place = Place::new();
    let output = place.command(name, under).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(output.status.success() && said.contains("1 passed"), "{name}: {}", output.status);
}

/// Copies of the two binaries that every user can run: built things may be where only root can go.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        let directory = open_directory();
        for (name, from) in [("it", env::current_exe().unwrap()), ("krond", krond())] {
            let to = directory.path().join(name);
            fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)).unwrap();
        }
        Place { directory }
    }

    /// A process that is the named test.
    pub(crate) fn command(&self, test: &str, under: &[&str]) -> Command {
        let it = self.directory.path().join("it");
        let mut words = under.iter().map(OsStr::new).chain([it.as_os_str()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args([test, "--exact", "--nocapture", "--include-ignored"]);
        command.env(ALONE, test).env(KROND, self.directory.path().join("krond"));
        command
    }
}

/// Which test this process is.
const ALONE: &str = "KRON_TEST_ALONE";

/// Where its krond is.
const KROND: &str = "KRON_TEST_KROND";

pub(crate) fn krond() -> PathBuf {
    env::var_os(KROND).map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_krond")), PathBuf::from)
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A directory that every user can write.
pub(crate) fn open_directory() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    directory
}

/// What an entry `command=…` means.
pub(crate) fn launch(ticket: u64, argv: &[&str]) -> Launch {
    let command = krontab::Command {
        program: Program::Argv(argv.iter().map(|&word| word.to_owned()).collect()),
        user: None,
        group: None,
        cwd: None,
        env: Vec::new(),
        umask: None,
        timeout: None,
        stdout: Output::Discard,
        stderr: Output::Discard,
    };
    Launch::new(Ticket(ticket), format!("job-{ticket}"), &command, [])
}

/// A launch of `/bin/sh -c`.
pub(crate) fn shell(ticket: u64, text: &str) -> Launch {
    launch(ticket, &["/bin/sh", "-c", text])
}

/// krond, as far as it has hands.
pub(crate) struct Hands {
    pub(crate) spawner: Spawner,
    pub(crate) ready: BTreeMap<Ticket, ProcessId>,
    pub(crate) released: BTreeSet<Ticket>,
    pub(crate) failed: BTreeMap<Ticket, (Stage, String)>,
    pub(crate) ended: BTreeMap<u32, Exit>,
    pub(crate) gone: Option<Vec<Ticket>>,
    /// How much later it is than the clock says.
    pub(crate) later: Duration,
}

impl Hands {
    pub(crate) fn new() -> Hands {
        Hands {
            spawner: Spawner::start(&krond()).unwrap(),
            ready: BTreeMap::new(),
            released: BTreeSet::new(),
            failed: BTreeMap::new(),
            ended: BTreeMap::new(),
            gone: None,
            later: Duration::ZERO,
        }
    }

    /// The time, as it is or as it is made to be.
    fn now(&self) -> Duration {
        clock::now().uptime + self.later
    }

    /// Sends what is to be sent.
    pub(crate) fn flush(&mut self) {
        let now = self.now();
        self.spawner.flush(now);
    }

    pub(crate) fn release(&mut self, ticket: Ticket) {
        self.spawner.release(ticket);
        self.flush();
    }

    pub(crate) fn abort(&mut self, ticket: Ticket) {
        self.spawner.abort(ticket);
        self.flush();
    }

    /// One turn of a loop such as krond's.
    pub(crate) fn turn(&mut self) {
        self.flush();
        let flags = if self.spawner.wants_write() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut wanted = [PollFd::new(&self.spawner, flags)];
        let wanted = if self.gone.is_some() { &mut [][..] } else { &mut wanted[..] };
        poll(wanted, Some(&TURN)).unwrap();
        let ended = children::reap().unwrap();
        for answer in self.spawner.answers(self.now()).unwrap() {
            match answer {
                Answer::Ready { ticket, process } => drop(self.ready.insert(ticket, process)),
                Answer::Released { tickets } => self.released.extend(tickets),
                Answer::Failed { ticket, stage, error } => drop(self.failed.insert(ticket, (stage, error))),
                Answer::Gone { tickets } => self.gone = Some(tickets),
            }
        }
        self.ended.extend(ended.into_iter().map(|ended| (ended.pid, ended.exit)));
    }

    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Hands) -> bool) {
        for _ in 0..TURNS {
            if is_so(self) {
                return;
            }
            self.turn();
        }
        panic!("never: {what}; failed: {:?}, gone: {:?}", self.failed, self.gone);
    }

    /// Some more turns, in which something that must not happen could.
    pub(crate) fn linger(&mut self) {
        for _ in 0..30 {
            self.turn();
        }
    }

    pub(crate) fn prepare(&mut self, launch: &Launch) -> ProcessId {
        self.spawner.prepare(launch).unwrap();
        let ticket = launch.ticket;
        self.until("ready", |hands| hands.ready.contains_key(&ticket) || hands.failed.contains_key(&ticket));
        *self.ready.get(&ticket).unwrap_or_else(|| panic!("{:?}", self.failed))
    }

    /// Starts a run that has become its program.
    pub(crate) fn start(&mut self, launch: &Launch) -> ProcessId {
        let process = self.prepare(launch);
        let before = exe(process.pid);
        self.release(launch.ticket);
        // The kernel shows a new program before it shows its environment, and there always is one.
        let has_begun = |pid| {
            exe(pid).is_some_and(|now| Some(now) != before)
                && fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| !environ.is_empty())
        };
        self.until("started", |hands| hands.ended.contains_key(&process.pid) || has_begun(process.pid));
        process
    }

    pub(crate) fn run(&mut self, launch: &Launch) -> Exit {
        let process = self.start(launch);
        self.until("ended", |hands| hands.ended.contains_key(&process.pid));
        self.ended[&process.pid]
    }

    /// Why it does not start.
    pub(crate) fn fail(&mut self, launch: &Launch) -> (Stage, String) {
        self.spawner.prepare(launch).unwrap();
        let ticket = launch.ticket;
        self.until("failed", |hands| hands.failed.contains_key(&ticket) || hands.ready.contains_key(&ticket));
        self.failed.remove(&ticket).unwrap_or_else(|| panic!("{ticket:?} is ready"))
    }

    /// At the end of a test: everybody has ended, and nobody is a zombie.
    pub(crate) fn finish(mut self) {
        let first = self.spawner.pid();
        // The first one is dropped.
        self.spawner = Spawner::start(&krond()).unwrap();
        let second = self.spawner.pid();
        self.until("the first has ended", |hands| hands.ended.contains_key(&first));
        kill(second);
        self.until("nobody is left", |_| children_of(std::process::id()).is_empty());
        assert!(self.ended.contains_key(&second));
    }
}

/// How long a turn waits at most.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// The most turns: half a minute.
const TURNS: usize = 6_000;

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..TURNS {
        if is_so() {
            return;
        }
        poll(&mut [], Some(&TURN)).unwrap();
    }
    panic!("never: {what}");
}

/// The children of a process, zombies too.
pub(crate) fn children_of(pid: u32) -> Vec<(u32, String)> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let Some(child) = entry.unwrap().file_name().to_str().and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(format!("/proc/{child}/stat")) else { continue };
        let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse::<u32>().unwrap();
        if parent == pid {
            children.push((child, stat));
        }
    }
    children
}

/// The spawner of a krond.
pub(crate) fn spawner_of(krond: u32) -> Option<u32> {
    let is_it = |child: &u32| {
        fs::read(format!("/proc/{child}/cmdline")).is_ok_and(|words| words.starts_with(b"krond: spawner"))
    };
    children_of(krond).into_iter().map(|(child, _)| child).find(is_it)
}

/// What a process runs.
pub(crate) fn exe(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// Whether a process with that number is there and has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with('Z'))
}

pub(crate) fn hold(pid: u32) -> Option<PidFd> {
    let boot = children::boot_id().unwrap();
    let start_ticks = children::start_ticks(pid).unwrap()?;
    children::identify(&ProcessId { boot, pid, start_ticks }).unwrap()
}

pub(crate) fn kill(pid: u32) {
    if let Some(held) = hold(pid) {
        held.signal(Signal::Kill).unwrap();
    }
}

/// What a file says, once it says anything.
pub(crate) fn read(path: &Path) -> String {
    let mut text = String::new();
    eventually("a file is written", || {
        text = fs::read_to_string(path).unwrap_or_default();
        text.ends_with('\n')
    });
    text
}

/// The numbers of the open descriptors of a process.
pub(crate) fn descriptors(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let number = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}
