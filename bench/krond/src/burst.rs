//! Many jobs that are due in one second: when each of them starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;

use crate::process::{Daemon, load, machine};

/// How long before the minute everything must be ready. Reading 10,000 jobs takes a moment.
const AHEAD: Duration = Duration::from_secs(8);
/// What has not started by then never will: the next minute would be counted with it.
const PATIENCE: Duration = Duration::from_secs(52);

/// Jobs in one table. A krontab may have a megabyte.
const A_TABLE: usize = 1_000;

/// Most that the last start may come later than the bare loop's (G12), and that the first may come after its second (G13).
const GATE_GOAL: f64 = 1.5;
const FIRST_GOAL: Duration = Duration::from_millis(3);

pub fn measure(krond: &Path, counts: &[usize]) {
    machine();
    let note = std::env::current_exe().unwrap().with_file_name("note");
    for count in counts {
        println!(
            "\n{:<36} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}   load",
            format!("{count} in one second"),
            "started",
            "a second",
            "first",
            "p50",
            "p99",
            "last"
        );
        let bare = line("posix_spawn, a bare loop", *count, bare(&note, *count));
        let kron = line("krond", *count, krond_without_shell(krond, &note, *count));
        let shell = line("krond, with a shell each", *count, krond_with_shell(krond, &note, *count));
        let cron = line("Debian's cron, a shell each", *count, debian(&note, *count));
        let (Some(bare), Some(kron)) = (bare, kron) else { continue };
        let last = kron.last.as_secs_f64() / bare.last.as_secs_f64();
        println!("last, krond / bare: {last:.2} (goal at most {GATE_GOAL}: {})", met(last <= GATE_GOAL));
        println!(
            "first, krond: {:.1?} (goal at most {FIRST_GOAL:?}: {})",
            kron.first,
            met(kron.first <= FIRST_GOAL)
        );
        if let (Some(shell), Some(cron)) = (shell, cron) {
            let ratio = cron.last.as_secs_f64() / shell.last.as_secs_f64();
            println!(
                "last, cron / krond with a shell: {ratio:.2}; without one {:.2}",
                cron.last.as_secs_f64() / kron.last.as_secs_f64()
            );
        }
    }
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "not met" }
}

/// When the first and the last started after the minute.
struct Lateness {
    first: Duration,
    last: Duration,
}

fn line(who: &str, count: usize, mut late: Vec<Duration>) -> Option<Lateness> {
    late.sort_unstable();
    let (Some(first), Some(last)) = (late.first().copied(), late.last().copied()) else {
        println!("{who:<36} nothing started");
        return None;
    };
    let part = |part: f64| late[((late.len() as f64 * part).ceil() as usize).saturating_sub(1)];
    let rate = (late.len() - 1) as f64 / (last - first).as_secs_f64();
    let started = format!("{}{}", late.len(), if late.len() == count { "" } else { "!" });
    let [first_, p50, p99, last_] =
        [first, part(0.5), part(0.99), last].map(|time| format!("{:.1} ms", time.as_secs_f64() * 1e3));
    println!("{who:<36} {started:>8} {rate:>9.0} {first_:>9} {p50:>9} {p99:>9} {last_:>9}   {}", load());
    Some(Lateness { first, last })
}

/// The file that everything notes its start in.
struct Notes(PathBuf);

impl Notes {
    fn new(place: &Path) -> Self {
        let path = place.join("notes");
        fs::write(&path, []).unwrap();
        Self(path)
    }

    /// How long after the minute each start came, once all have started or it is too late for that.
    fn wait(&self, minute: Duration, count: usize) -> Vec<Duration> {
        let end = minute + PATIENCE;
        loop {
            let late = self.between(minute, end);
            if late.len() >= count || now() >= end {
                return late;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// How long after the first each start came that came before the second.
    fn between(&self, begin: Duration, end: Duration) -> Vec<Duration> {
        let notes = fs::read(&self.0).unwrap();
        let notes = notes.chunks_exact(8).map(|note| u64::from_ne_bytes(note.try_into().unwrap()));
        let notes = notes.map(Duration::from_nanos);
        notes.filter(|note| *note >= begin && *note < end).map(|note| note - begin).collect()
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

/// The beginning of a minute that leaves time to get ready.
fn next_minute() -> Duration {
    let ready = (now() + AHEAD).as_secs();
    Duration::from_secs((ready / 60 + 1) * 60)
}

/// The standard library spawns with `posix_spawn`. Nobody decides, remembers or waits here.
fn bare(note: &Path, count: usize) -> Vec<Duration> {
    let place = tempfile::tempdir().unwrap();
    let notes = Notes::new(place.path());
    let minute = next_minute();
    thread::sleep(minute.saturating_sub(now()));
    let start =
        || Command::new(note).arg(&notes.0).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let children: Vec<_> = (0..count).map(|_| start()).collect();
    let late = notes.wait(minute, count);
    for mut child in children {
        child.wait().unwrap();
    }
    late
}

fn krond_without_shell(krond: &Path, note: &Path, count: usize) -> Vec<Duration> {
    by_krond(krond, count, &|notes| format!("command=\"{} {}\"", note.display(), notes.display()))
}

fn krond_with_shell(krond: &Path, note: &Path, count: usize) -> Vec<Duration> {
    by_krond(krond, count, &|notes| format!("shell=true command=\"{} {}\"", note.display(), notes.display()))
}

fn by_krond(krond: &Path, count: usize, command: &dyn Fn(&Path) -> String) -> Vec<Duration> {
    let place = tempfile::tempdir().unwrap();
    let notes = Notes::new(place.path());
    let command = command(&notes.0);
    let config = place.path().join("krontabs");
    fs::create_dir(&config).unwrap();
    for first in (0..count).step_by(A_TABLE) {
        let line = |n| format!("* * * * * name=j{n} stdout=discard stderr=discard {command}\n");
        let table: String = (first..count.min(first + A_TABLE)).map(line).collect();
        fs::write(config.join(format!("{first}.kron")), table).unwrap();
    }
    let mut start = Command::new(krond);
    start.args(["start", "--foreground", "--config"]).arg(&config);
    start.arg("--state-dir").arg(place.path().join("state"));
    measured(&mut start, Signal::TERM, &notes, count)
}

/// The real one, with tables of its own in a mount namespace, so that it finds nothing of this machine's. Takes root.
fn debian(note: &Path, count: usize) -> Vec<Duration> {
    let place = tempfile::tempdir().unwrap();
    let notes = Notes::new(place.path());
    let tables = place.path().join("cron.d");
    fs::create_dir(&tables).unwrap();
    for first in (0..count).step_by(A_TABLE) {
        let job = format!("* * * * * root {} {}\n", note.display(), notes.0.display());
        let table = format!("MAILTO=\"\"\n{}", job.repeat(A_TABLE.min(count - first)));
        fs::write(tables.join(format!("bench{first}")), table).unwrap();
    }
    let script = "mount --bind \"$1\" /etc/cron.d && mkdir -p \"$2/spool\" && mount --bind \"$2/spool\" /var/spool/cron/crontabs \
                  && : > \"$2/empty\" && mount --bind \"$2/empty\" /etc/crontab && mount -t tmpfs tmpfs /run && exec cron -f";
    let mut start = Command::new("unshare");
    start
        .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"])
        .arg(&tables)
        .arg(place.path());
    // `unshare` takes no notice of less, and its child ends with it.
    measured(&mut start, Signal::KILL, &notes, count)
}

/// What a daemon is like in its second minute: in its first it may have files to make.
fn measured(start: &mut Command, ended_by: Signal, notes: &Notes, count: usize) -> Vec<Duration> {
    let log = notes.0.with_file_name("log");
    let warm = next_minute();
    let _daemon = Daemon::start(start, ended_by, &log);
    if notes.wait(warm, count).is_empty() {
        let told = fs::read_to_string(&log).unwrap_or_default();
        println!("{}", told.lines().take(5).collect::<Vec<_>>().join("\n"));
    }
    let minute = next_minute();
    fs::write(&notes.0, []).unwrap();
    notes.wait(minute, count)
}
