//! A whole krond, as a process of its own, with a directory for it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use krond::children::PidFd;
use krond::control::{self, Request};
use krond::wire;
use rustix::event::{Timespec, poll};
use serde_json::Value;

use super::world::{hold, is_root};

/// A directory with krontabs, a state directory, and at most one krond. Nothing of it is left when it is dropped.
pub(crate) struct World {
    directory: tempfile::TempDir,
    /// Words before the command, such as `setpriv`.
    under: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) state: PathBuf,
    daemon: Option<Child>,
}

/// What a command has said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Whoever is not root.
pub(crate) const NOBODY: [&str; 5] = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"];

impl World {
    /// A world whose krontab says this. It is quick to end runs.
    pub(crate) fn new(krontab: &str) -> World {
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::DirBuilder::new().mode(0o755).create(directory.path().join("etc")).unwrap();
        let binary = directory.path().join("krond");
        let built = env!("CARGO_BIN_EXE_krond");
        fs::hard_link(built, &binary).or_else(|_| fs::copy(built, &binary).map(drop)).unwrap();
        let state = directory.path().join("state");
        let world = World { directory, under: Vec::new(), env: Vec::new(), state, daemon: None };
        world.settings("grace = \"1s\"\n");
        world.krontab(krontab);
        world
    }

    /// The same, run by nobody, who owns the directory. `None` if that cannot be.
    pub(crate) fn of_nobody(krontab: &str) -> Option<World> {
        if !is_root() {
            println!("skipped: only root can be somebody else");
            return None;
        }
        let mut world = World::new(krontab);
        world.under = NOBODY.map(str::to_owned).to_vec();
        let status =
            Command::new("chown").arg("-R").arg("nobody:nogroup").arg(world.path("etc")).status().unwrap();
        assert!(status.success());
        assert!(Command::new("chown").arg("nobody").arg(world.directory.path()).status().unwrap().success());
        Some(world)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn settings(&self, text: &str) {
        fs::write(self.path("krond.toml"), text).unwrap();
    }

    /// Replaces the krontab.
    pub(crate) fn krontab(&self, text: &str) {
        self.krontab_as("jobs", text);
    }

    pub(crate) fn krontab_as(&self, name: &str, text: &str) {
        let path = self.path("etc").join(name);
        fs::write(&path, text.replace("DIR", self.directory.path().to_str().unwrap())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// The identity of a job of the krontab.
    pub(crate) fn identity(&self, name: &str) -> String {
        format!("{}:{name}", self.path("etc/jobs").display())
    }

    /// The state file of a job of the krontab.
    pub(crate) fn state_file(&self, name: &str) -> PathBuf {
        self.state.join(wire::file_name(&self.identity(name)))
    }

    /// What is in the state file of a job.
    pub(crate) fn state_of(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.state_file(name)).unwrap_or_default()).unwrap_or_default()
    }

    /// Makes the state directory, for what is to be found in it.
    pub(crate) fn make_state(&self) {
        fs::DirBuilder::new().mode(0o700).create(&self.state).unwrap();
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let binary = self.path("krond").into_os_string();
        let mut words = self.under.iter().map(Into::into).chain([binary]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(arguments).envs(self.env.iter().cloned());
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    /// The arguments with what says where.
    fn here(&self, arguments: &[&str]) -> Vec<String> {
        let mut words: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        words.extend(["--state-dir".to_owned(), self.state.display().to_string()]);
        words.extend(["--settings".to_owned(), self.path("krond.toml").display().to_string()]);
        if arguments[0] == "start" {
            words.extend(["--config".to_owned(), self.path("etc").display().to_string()]);
        }
        words
    }

    /// Runs a command about the krond here, to its end.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Said {
        self.ask_as_is(&self.here(arguments))
    }

    pub(crate) fn ask_as_is<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Said {
        Said::from(&self.command(arguments).output().unwrap())
    }

    /// What a command answers as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let said = self.ask(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err))
    }

    /// Starts a run by hand. It waits for what the job is at.
    pub(crate) fn run(&self, job: &str) -> Said {
        let said = self.ask(&["run", job]);
        assert_eq!(said.code, 0, "{}", said.err);
        said
    }

    /// What `krond history` has of a job.
    pub(crate) fn history(&self, job: &str) -> Vec<Value> {
        self.json(&["history", job, "--count", "100000"]).as_array().unwrap().clone()
    }

    pub(crate) fn start(&mut self) -> u32 {
        let pid = self.launch();
        self.until_up();
        pid
    }

    /// Starts krond without waiting for anything.
    pub(crate) fn launch(&mut self) -> u32 {
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        let arguments = self.here(&["start", "--foreground", "--log-format", "json"]);
        let mut command = self.command(&arguments);
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let pid = child.id();
        assert!(self.daemon.replace(child).is_none_or(|mut old| old.try_wait().unwrap().is_some()));
        pid
    }

    pub(crate) fn until_up(&mut self) {
        for _ in 0..TURNS {
            if control::ask(&self.state, &Request::Status).ok().flatten().is_some() {
                return;
            }
            let ended = self.daemon.as_mut().and_then(|daemon| daemon.try_wait().unwrap());
            assert!(ended.is_none(), "{ended:?}: {}", self.log_text());
            turn();
        }
        panic!("never up: {}", self.log_text());
    }

    /// Waits until krond has ended, and tells its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut daemon = self.daemon.take().expect("it was started");
        for _ in 0..TURNS {
            if let Some(status) = daemon.try_wait().unwrap() {
                return status.code();
            }
            turn();
        }
        let _ = daemon.kill();
        panic!("never ended: {}", self.log_text());
    }

    pub(crate) fn stop(&mut self) {
        let said = self.ask(&["stop"]);
        assert_eq!((said.code, said.out.as_str()), (0, "krond has stopped\n"), "{}", said.err);
        assert_eq!(self.ended(), Some(0));
    }

    /// Ends krond as a crash does.
    pub(crate) fn crash(&mut self) {
        let mut daemon = self.daemon.take().expect("it was started");
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.daemon.as_ref().expect("it was started").id();
        let kill = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
        assert!(kill.success());
    }

    pub(crate) fn log_text(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The lines of the log, as far as they are whole.
    pub(crate) fn log(&self) -> Vec<Value> {
        self.log_text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The lines about an event of a job, or of no job if that is empty.
    pub(crate) fn events(&self, event: &str, name: &str) -> Vec<Value> {
        let is_it = |line: &Value| line["event"] == event && line["name"].as_str().unwrap_or("") == name;
        self.log().into_iter().filter(is_it).collect()
    }

    /// How many periods of a job have ended for that reason.
    pub(crate) fn reasons(&self, name: &str, reason: &str) -> usize {
        self.log().iter().filter(|line| line["name"] == name && line["reason"] == reason).count()
    }

    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut(&World) -> bool) {
        for _ in 0..TURNS {
            if is_so(self) {
                return;
            }
            turn();
        }
        let log = self.log_text();
        let tail = log.char_indices().rev().nth(6_000).map_or(0, |(at, _)| at);
        panic!("never: {what}\n{}", &log[tail..]);
    }

    /// The lines of a file that a job writes.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(str::to_owned).collect()
    }

    /// Processes that jobs of this world have started, by what their environment says.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mark = format!("KRON_IDENTITY={}/", self.directory.path().display());
        let is_ours = |pid: &u32| {
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
                environ.split(|byte| *byte == 0).any(|word| word.starts_with(mark.as_bytes()))
            })
        };
        let numbers =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        numbers.filter(is_ours).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        // One in the background has said who it is.
        if let Ok(Some(answer)) = control::ask(&self.state, &Request::Status)
            && let Some(pid) = answer.result["pid"].as_u64()
        {
            kill(u32::try_from(pid).unwrap());
        }
        // What was at its gate may have just been let go.
        for round in 0..50 {
            let processes = self.processes();
            if processes.is_empty() && round > 0 {
                break;
            }
            processes.into_iter().for_each(kill);
            turn();
        }
    }
}

impl From<&Output> for Said {
    fn from(output: &Output) -> Said {
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

fn kill(pid: u32) {
    let _ = hold(pid).map(|held: PidFd| held.signal(krond::children::Signal::Kill));
}

/// The most turns: two minutes, for a machine that has much else to do.
const TURNS: usize = 6_000;

/// Waits for a moment.
pub(crate) fn turn() {
    poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 })).unwrap();
}

/// Waits for so long.
pub(crate) fn pause(milliseconds: i64) {
    let (tv_sec, rest) = (milliseconds / 1_000, milliseconds % 1_000);
    poll(&mut [], Some(&Timespec { tv_sec, tv_nsec: rest * 1_000_000 })).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}
