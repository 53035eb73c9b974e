//! A PostgreSQL that somebody started for this.

use std::fs;
use std::process::{Command, Stdio};

use crate::server::ticks;

pub struct Place {
    base: String,
    postmaster: u32,
}

impl Place {
    /// The server that `faults/with_postgres.py` names, if it was run by that.
    pub fn given() -> Option<Place> {
        let postmaster = std::env::var("KRON_TEST_POSTGRES_PID").ok()?.parse().ok()?;
        Some(Place { base: std::env::var("KRON_TEST_POSTGRES").ok()?, postmaster })
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("{}/{database}", self.base)
    }

    /// A new database.
    pub fn create(&self, database: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {database}"));
        self.url(database)
    }

    /// What a statement answers, as lines.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let command = ["-AtqX", "-v", "ON_ERROR_STOP=1", "-c", sql];
        let done =
            Command::new("psql").arg(self.url(database)).args(command).stderr(Stdio::inherit()).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{sql}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// The processor time of all its processes, those that have ended too, in seconds.
    pub fn cpu(&self) -> f64 {
        let children = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let process: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            let parent: u32 = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
            (parent == self.postmaster).then_some(process)
        });
        let living: u64 = children.map(|process| ticks(process, 11..13)).sum();
        (living + ticks(self.postmaster, 11..15)) as f64 / rustix::param::clock_ticks_per_second() as f64
    }
}
