//! A million jobs that are not due: how long krond takes to be ready, what each of them costs, and what it does meanwhile.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::{Daemon, machine};

/// Jobs in one file of the directory of krontabs, which may have a megabyte.
const A_FILE: usize = 10_000;
/// How long nothing happens while its processor time is looked at.
const QUIET: Duration = Duration::from_secs(60);
/// By then it must be ready.
const PATIENCE: Duration = Duration::from_secs(600);
/// By then it must be at rest: every new job has got a state file.
const REST_WITHIN: Duration = Duration::from_secs(3_600);
/// At rest it needs less than this in a time.
const REST: (Duration, f64) = (Duration::from_secs(5), 0.05);

pub fn measure(krond: &Path, count: usize) {
    machine();
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("krontabs");
    fs::create_dir(&config).unwrap();
    for first in (0..count).step_by(A_FILE) {
        let mut file =
            std::io::BufWriter::new(fs::File::create(config.join(format!("{first:07}.kron"))).unwrap());
        for n in first..count.min(first + A_FILE) {
            // Half a year from any day on, one is due; none on the day of the measurement but by chance.
            let (minute, hour, day, month) = (n % 60, n / 60 % 24, n / 1_440 % 28 + 1, n / 40_320 % 12 + 1);
            writeln!(file, "{minute} {hour} {day} {month} * @win(after,1h) name=j{n} command=/bin/true")
                .unwrap();
        }
    }
    for (start, what) in [(0, "first start"), (1, "started again")] {
        let began = Instant::now();
        let mut command = Command::new(krond);
        command.args(["start", "--foreground", "--config"]).arg(&config);
        command.arg("--state-dir").arg(place.path().join("state"));
        let log = place.path().join(format!("krond{start}.log"));
        let mut daemon = Daemon::start(&mut command, Signal::TERM, &log);
        let ready = || {
            let mut ask = Command::new(krond);
            ask.arg("status").arg("--state-dir").arg(place.path().join("state"));
            ask.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
        };
        while !ready() && began.elapsed() < PATIENCE {
            assert!(daemon.is_running(), "krond has ended: {}", fs::read_to_string(&log).unwrap_or_default());
            thread::sleep(Duration::from_millis(50));
        }
        let (took, cpu) = (began.elapsed(), daemon.cpu_seconds());
        let (now, most) = daemon.memory();
        println!("{count} jobs, {what}: ready in {:.2} s, {cpu:.2} s of processor time", took.as_secs_f64());
        println!("  {} MB, {} bytes a job; {} MB at most", now >> 20, now / count as u64, most >> 20);
        let is_at_rest = |daemon: &Daemon| {
            let before = daemon.cpu_seconds();
            thread::sleep(REST.0);
            daemon.cpu_seconds() - before < REST.1
        };
        while !is_at_rest(&daemon) {
            assert!(began.elapsed() < REST_WITHIN, "krond does not come to rest");
        }
        let (rested, before) = (began.elapsed().as_secs_f64(), daemon.cpu_seconds());
        thread::sleep(QUIET);
        let (idle, memory) = (daemon.cpu_seconds() - before, daemon.memory().0 >> 20);
        println!("  at rest after {rested:.0} s and {before:.2} s of processor time");
        println!("  {idle:.2} s of processor time in the {QUIET:?} after that; {memory} MB");
    }
}
