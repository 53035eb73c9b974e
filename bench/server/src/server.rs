//! A kron-server as a process of its own, in a directory of its own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub struct Server {
    process: Child,
    pub address: String,
    home: tempfile::TempDir,
}

impl Server {
    /// One that keeps everything in SQLite, in its own directory.
    pub fn start(binary: &Path) -> Server {
        Server::start_on(binary, None)
    }

    /// One on a PostgreSQL database, if one is named.
    pub fn start_on(binary: &Path, database: Option<&str>) -> Server {
        let home = tempfile::Builder::new().prefix("kron-bench").tempdir_in(place()).unwrap();
        let settings = home.path().join("settings.toml");
        // Everybody comes from this host.
        fs::write(&settings, "[limits]\nconnections = 15000\nconnections_per_address = 15000\n").unwrap();
        let log = File::create(home.path().join("log")).unwrap();
        let mut process = Command::new(binary)
            .arg("--config")
            .arg(settings)
            .args(["--listen", "127.0.0.1:0"])
            .args(match database {
                Some(url) => ["--database", url, "--database-direct", url].map(OsString::from).to_vec(),
                None => vec!["--data".into(), home.path().join("data").into()],
            })
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().rsplit('/').next().unwrap().to_owned();
        assert!(!address.is_empty(), "{}", fs::read_to_string(home.path().join("log")).unwrap());
        Server { process, address, home }
    }

    /// The most memory that it has ever had, in MB, and what it has now.
    pub fn memory(&self) -> (u64, u64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let of = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
        };
        (of("VmHWM:"), of("VmRSS:"))
    }

    /// The processor time that it has used, in seconds.
    pub fn cpu(&self) -> f64 {
        ticks(self.process.id(), 11..13) as f64 / rustix::param::clock_ticks_per_second() as f64
    }
}

/// The sum of some numbers in the status of a process, from its state on. None is left of one that is gone.
pub fn ticks(process: u32, columns: Range<usize>) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let rest: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    rest.get(columns).unwrap_or_default().iter().map(|ticks| ticks.parse::<u64>().unwrap_or(0)).sum()
}

/// Where databases are: on a real disk, which the directory for temporary files need not be.
pub fn place() -> std::path::PathBuf {
    std::env::var_os("KRON_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.home.path().join("log")).unwrap_or_default());
        }
    }
}
